"""
Digits clustered without labels
===============================

1797 pictures of handwritten digits, and nobody says which is which. `NMFClustering` sorts them into ten
groups. Labels are used only at the end, to judge.
"""

# %%
# Scale every picture to unit norm, so that bold writing counts no more than thin writing.
from sklearn.cluster import KMeans, SpectralClustering
from sklearn.datasets import load_digits

from lognmf import NMFClustering, metrics, normalize, plots

digits = load_digits()
X = normalize(digits.data)
clusterer = NMFClustering(10, random_state=0).fit(X)

# %%
# Pictures from each cluster, one cluster per row. Most rows hold one digit; where two digits share a row,
# the clusterer took them for one.
names = [f"cluster {j}" for j in range(10)]
plots.samples(X, clusterer.labels_, image_shape=(8, 8), per_class=20, class_names=names, cmap="gray_r")

# %%
# What was tried? The clusterer makes several clusterings: spectral ones, k-means, linkage. It judges them by
# their *modularity*, the share of the neighbour graph's edges that stay within clusters minus the share
# expected by chance, and by their *silhouette*, how much closer samples are to their own cluster than to the
# next; the silhouette counts only where clusters are far apart. Parts and codes are then fitted to the best.
print(f"{'candidate':48s} modularity silhouette")
for row in clusterer.rows_:
    mark = "<- chosen" if row["chosen"] else ""
    print(f"{row['candidate']:48s} {row['modularity']:10.4f} {row['silhouette']:10.4f} {mark}")

# %%
# How good is it? *Accuracy* is the share of pictures in the right cluster, under the best one-to-one match
# of clusters and digits. Two clusterers of scikit-learn on the same pictures:
spectral = SpectralClustering(10, affinity="nearest_neighbors", random_state=0)
found = {
    "NMFClustering": clusterer.labels_,
    "spectral clustering": spectral.fit_predict(X),
    "k-means": KMeans(10, n_init=10, random_state=0).fit_predict(X),
}
for name, labels in found.items():
    accuracy = metrics.clustering_accuracy(digits.target, labels)
    nmi = metrics.normalized_mutual_info(digits.target, labels)
    print(f"{name:19s} accuracy {accuracy:.1%}, normalised mutual information {nmi:.2f}")

# %%
# Left: the codes of all pictures on their first two principal axes. Right: the codes themselves; each
# cluster has its own component.
plots.codes(clusterer)

# sphinx_gallery_thumbnail_number = 2
