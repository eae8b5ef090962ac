"""
Nine methods side by side
=========================

`compare` fits all nine methods from random starts, clusters their codes, and ranks them beside k-means,
spectral clustering and `NMFClustering`. One line, one table, one picture.
"""

# %%
# 500 pictures of digits, one seed. With ``y`` the ranking goes by accuracy; without labels it goes by the
# cut of the neighbour graph. The row "spectral start" has the clusters from which ``init="spectral"``
# begins. Nothing is missing here, so WNMF is NMF.
from sklearn.datasets import load_digits

from lognmf import compare, normalize, plots

X, y = load_digits(return_X_y=True)
X, y = normalize(X[:500]), y[:500]
rows = compare(X, 10, y=y, seeds=[0])
for row in rows:
    print(f"{row.model:20s} accuracy {row.accuracy:.1%}, {row.seconds:.2f} s")

# %%
# Do not read too much into one data set and one seed: the order changes from set to set
# (:doc:`/reproduction`). Methods have their default settings here; some have weights that could be tuned.
plots.comparison(rows)
