"""
What does lam do?
=================

``lam`` is the weight of the graph: the larger, the more alike are the codes of samples that are near one
another. Clusters move apart, and the error grows. Too much of it hurts both. The same data with five
values.
"""

# %%
# Pictures of four digits that are often mixed up. Four components.
import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.decomposition import PCA

from lognmf import LogSparseNMF, cluster, metrics, normalize

digits = load_digits()
chosen = np.isin(digits.target, [3, 5, 8, 9])
X, y = normalize(digits.data[chosen]), digits.target[chosen]
values = [0, 0.1, 1, 10, 100]
models = [LogSparseNMF(4, lam=lam, alpha=0, beta=0, random_state=0).fit(X) for lam in values]

# %%
# For each value: the four parts, and the samples on the two widest axes of their codes, coloured by the
# true digit, which no fit has seen. The accuracy is that of k-means on the codes.
figure, places = plt.subplots(
    len(values), 5, figsize=(9, 2 * len(values)), layout="constrained", width_ratios=(1, 1, 1, 1, 2.2)
)
for row, (lam, model) in enumerate(zip(values, models, strict=True)):
    for part, axes in zip(model.components_, places[row], strict=False):
        axes.imshow(part.reshape(8, 8), cmap="gray_r")
        axes.set(xticks=[], yticks=[])
    places[row, 0].set_ylabel(f"lam = {lam:g}", fontsize=12)
    accuracy = metrics.clustering_accuracy(y, cluster(model.embedding_, 4, random_state=0))
    error = model.reconstruction_err_ / models[0].reconstruction_err_
    across, up = PCA(2).fit_transform(model.embedding_).T
    axes = places[row, -1]
    axes.scatter(across, up, c=np.unique(y, return_inverse=True)[1], cmap="tab10", vmax=9, s=6)
    axes.set(xticks=[], yticks=[], title=f"accuracy {accuracy:.0%}, error × {error:.2f}")
plt.show()

# %%
# Up to ``lam=1`` the clouds of points separate while the parts stay digits. Beyond that each cloud shrinks
# to a thread, the parts dissolve, and clusters merge. The best value differs from data to data: `tune`
# compares many without labels, and `NMFClustering` finds clusters without any. For parts leave ``lam=0``,
# the default: then new samples are coded exactly as the training samples were.
