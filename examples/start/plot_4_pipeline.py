"""
In a Pipeline and GridSearchCV
==============================

Codes make good features: few numbers, none negative, each with a part to look at. Here a classifier works
on the codes of digits, and a grid search finds how many parts it needs.
"""

# %%
# The whole chain is one estimator. Only training pictures are used in each fold, for the parts as well.
import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import Normalizer

from lognmf import LogSparseNMF

X, y = load_digits(return_X_y=True)
X_train, X_test, y_train, y_test = train_test_split(X, y, test_size=0.5, random_state=0, stratify=y)
chain = make_pipeline(Normalizer(), LogSparseNMF(random_state=0), LogisticRegression(C=30, max_iter=1000))
search = GridSearchCV(chain, {"logsparsenmf__n_components": [4, 8, 16, 32]}, cv=3).fit(X_train, y_train)
print(f"best number of parts: {search.best_params_['logsparsenmf__n_components']}")
print(f"accuracy on the test pictures: {search.score(X_test, y_test):.1%}")

# %%
# More parts help up to a point. The dotted line is the classifier on all 64 pixels.
pixels = make_pipeline(Normalizer(), LogisticRegression(C=30, max_iter=1000)).fit(X_train, y_train)
ks = np.array(search.cv_results_["param_logsparsenmf__n_components"], dtype=int)
means, spreads = search.cv_results_["mean_test_score"], search.cv_results_["std_test_score"]
figure, axes = plt.subplots(figsize=(7, 4), layout="constrained")
axes.errorbar(ks, means, spreads, marker="o", capsize=3, label="codes of LogSparseNMF, cross-validated")
axes.plot(ks, [search.score(X_test, y_test)] * len(ks), "--", label="best codes, test pictures")
axes.axhline(pixels.score(X_test, y_test), color="0.4", linestyle=":", label="64 pixels, test pictures")
axes.set(xlabel="number of parts", ylabel="accuracy", xticks=ks, title="Digits classified from their codes")
axes.legend(loc="lower right")
plt.show()
