"""
Nine methods side by side
=========================

`compare` fits all nine methods from random starts, clusters their codes, and ranks them beside k-means,
spectral clustering and `NMFClustering`. One line, one table, one picture.
"""

# %%
# 500 pictures of digits, one seed. Without ``y`` the ranking goes by the cut of the neighbour graph, which
# needs no labels.
from sklearn.datasets import load_digits

from lognmf import compare, normalize, plots

X, y = load_digits(return_X_y=True)
X, y = normalize(X[:500]), y[:500]
rows = compare(X, 10, y=y, seeds=[0])
for row in rows:
    print(f"{row.model:20s} accuracy {row.accuracy:.1%}, {row.seconds:.2f} s")

# %%
# Do not read too much into one data set: the order changes from set to set (:doc:`/defaults`,
# :doc:`/reproduction`). Methods are at their defaults here, and each has weights that could be tuned.
plots.comparison(rows)
