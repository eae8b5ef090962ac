"""
What does lam do?
=================

``lam`` is the weight of the graph: the larger, the more alike are the codes of samples that are near one
another. Clusters move apart, and the error grows. Too much of it makes the clusters worse again. The same
data with six values.
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
values = [0, 0.1, 1, 3, 10, 100]
models = [LogSparseNMF(4, lam=lam, alpha=0, beta=0, random_state=0).fit(X) for lam in values]

# %%
# For each value: the four parts, and the samples on the first two principal axes of their codes, coloured
# by the true digit, which no fit has seen. The accuracy is that of k-means on the codes. The last number is
# the largest share of samples whose largest code is in the same component.
figure, places = plt.subplots(
    len(values), 5, figsize=(9, 1.9 * len(values)), layout="constrained", width_ratios=(1, 1, 1, 1, 2.6)
)
for row, (lam, model) in enumerate(zip(values, models, strict=True)):
    for part, axes in zip(model.components_, places[row], strict=False):
        axes.imshow(part.reshape(8, 8), cmap="gray_r")
        axes.set(xticks=[], yticks=[])
    places[row, 0].set_ylabel(f"lam = {lam:g}", fontsize=12)
    accuracy = metrics.clustering_accuracy(y, cluster(model.embedding_, 4, random_state=0))
    error = model.reconstruction_err_ / models[0].reconstruction_err_
    in_one = np.bincount(model.embedding_.argmax(axis=1)).max() / len(X)
    across, up = PCA(2).fit_transform(model.embedding_).T
    axes = places[row, -1]
    for digit in np.unique(y):
        axes.scatter(across[y == digit], up[y == digit], s=6, label=str(digit))
    axes.set(xticks=[], yticks=[])
    axes.set_title(f"accuracy {accuracy:.0%}, error × {error:.2f}, in one part {in_one:.0%}", fontsize=9)
figure.legend(*axes.get_legend_handles_labels(), loc="outside upper right", ncols=4, markerscale=2)
plt.show()

# %%
# Up to ``lam=3`` the digits separate better, for a little error. From ``lam=10`` on, one component has the
# largest code of nearly every sample, the parts are no longer digits, and k-means on the codes does worse.
# The best value differs from data to data: `tune` compares many without labels, and `NMFClustering` finds
# clusters without a choice of ``lam``. For parts leave ``lam=0``, the default: then new samples are coded
# exactly as the training samples were.
