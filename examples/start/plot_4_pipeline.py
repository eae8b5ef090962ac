"""
In a Pipeline and GridSearchCV
==============================

Codes make good features: none is negative, and each has a part to look at. Here a classifier works on the
codes of digits, and a grid search finds how many parts it needs.
"""

# %%
# The whole chain is one estimator. Only training pictures are used in each fold, for the parts as well.
import matplotlib.pyplot as plt
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import Normalizer

from lognmf import LogSparseNMF

KS = [4, 8, 16, 24, 32, 48]
X, y = load_digits(return_X_y=True)
X_train, X_test, y_train, y_test = train_test_split(X, y, test_size=0.5, random_state=0, stratify=y)
chain = make_pipeline(Normalizer(), LogSparseNMF(random_state=0), LogisticRegression(C=30, max_iter=1000))
search = GridSearchCV(chain, {"logsparsenmf__n_components": KS}, cv=3).fit(X_train, y_train)
pixels = make_pipeline(Normalizer(), LogisticRegression(C=30, max_iter=1000)).fit(X_train, y_train)
best = search.best_params_["logsparsenmf__n_components"]
print(f"best number of parts: {best}")
print(f"accuracy on the test pictures: {search.score(X_test, y_test):.1%} from {best} codes,")
print(f"{pixels.score(X_test, y_test):.1%} from all 64 pixels")

# %%
# More parts help, but less and less. The star marks the best number.
means, spreads = search.cv_results_["mean_test_score"], search.cv_results_["std_test_score"]
figure, axes = plt.subplots(figsize=(7, 4), layout="constrained")
axes.errorbar(KS, means, spreads, marker="o", capsize=3)
axes.plot(best, search.best_score_, "*", markersize=16, color="tab:orange")
axes.set(xlabel="number of parts", ylabel="accuracy, cross-validated", xticks=KS)
axes.set_title("Digits classified from their codes")
plt.show()
