"""
Digits clustered without labels
===============================

1797 pictures of handwritten digits, and nobody says which is which. `NMFClustering` sorts them into ten
groups. Labels are used only at the end, to judge.
"""

# %%
# Scale every picture to unit norm, so that bold writing counts no more than thin writing.
from sklearn.cluster import KMeans
from sklearn.datasets import load_digits

from lognmf import NMFClustering, metrics, normalize, plots

digits = load_digits()
X = normalize(digits.data)
clusterer = NMFClustering(10, random_state=0).fit(X)

# %%
# Pictures from each cluster, one cluster a row. Most rows hold one digit.
plots.samples(X, clusterer.labels_, image_shape=(8, 8), per_class=20, title="clusters found")

# %%
# What was tried? The clusterer compares several clusterings on the graph of nearest neighbours and keeps
# the one of the largest *modularity*: the share of the graph's edges that stay within clusters, less what
# chance would give.
for row in clusterer.rows_:
    mark = "<- chosen" if row["chosen"] else ""
    print(f"{row['candidate'][:40]:40s} modularity {row['modularity']:.3f} {mark}")

# %%
# How good is it? *Accuracy* is the share of pictures in the right cluster, under the best one-to-one match
# of clusters and digits. k-means on the same pictures:
kmeans = KMeans(10, n_init=10, random_state=0).fit_predict(X)
for name, labels in {"NMFClustering": clusterer.labels_, "k-means": kmeans}.items():
    accuracy = metrics.clustering_accuracy(digits.target, labels)
    nmi = metrics.normalized_mutual_info(digits.target, labels)
    print(f"{name:14s} accuracy {accuracy:.1%}, normalised mutual information {nmi:.2f}")

# %%
# The clusterer also has parts and codes that go with the clusters. Left: the codes of all pictures on their
# two widest axes. Right: the codes themselves; each cluster has a component of its own.
plots.codes(clusterer)

# sphinx_gallery_thumbnail_number = 2
