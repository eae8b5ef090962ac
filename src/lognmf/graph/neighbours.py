"""Nearest neighbours among samples in rows; equal samples are found first."""

from __future__ import annotations

import itertools
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse as sp

from lognmf.core.arrays import is_torch
from lognmf.core.matrices import rows_of
from lognmf.graph.approximate import nearest_approximately
from lognmf.graph.dense import nearest_dense

METHODS = ("auto", "exact", "approximate")
"""Ways to find neighbours: "auto" is exact up to `EXACT_WORK`."""

EXACT_WORK = 5e11
"""n² (p + 100) of dense samples up to which "auto" is exact: some twelve seconds of one core."""

DENSE_UP_TO = 1 << 20
"""Numbers up to which sparse samples are searched as dense ones: compiled loops take time to load."""


FEWEST = 5
"""As many are always sought, and fewer are the first of them: among samples that are equally near, a graph
must not depend on whether another one of more neighbours was built before."""


@dataclass(frozen=True, eq=False)
class Neighbours:
    """The nearest others of every distinct sample."""

    first: np.ndarray  # (m,) the first of every set of equal samples
    group: np.ndarray  # (n,) the set of every sample
    nearest: np.ndarray  # (m, k) sets, the nearest first
    squared: np.ndarray  # (m, k) their squared distances
    recall: float = 1.0  # share of true neighbours, as measured on some samples

    def fewer(self, n_neighbors: int) -> Neighbours:
        """The same for at most so many neighbours."""
        return replace(self, nearest=self.nearest[:, :n_neighbors], squared=self.squared[:, :n_neighbors])


def find_neighbours(X: Any, n_neighbors: int, method: str = "auto") -> Neighbours:
    """The nearest others among the distinct samples, all of them where there are no more.

    Sparse samples, and tensors on a GPU, are always searched exactly.
    """
    first, group = distinct_rows(X)
    m = len(first)
    k = min(max(n_neighbors, FEWEST), m - 1)
    if not k:
        return Neighbours(first, group, np.empty((m, 0), dtype=np.intp), np.empty((m, 0)))
    distinct = X if m == X.shape[0] else rows_of(X, first)
    large = float(m) ** 2 * (X.shape[1] + 100) > EXACT_WORK
    dense = not (sp.issparse(X) or is_torch(X))
    if dense and (method == "approximate" or (method == "auto" and large)):
        found = Neighbours(first, group, *nearest_approximately(distinct, k))
    else:
        found = Neighbours(first, group, *nearest(distinct, distinct, k, but_itself=True))
    return found.fewer(n_neighbors)


def nearest(Y: Any, X: Any, k: int, *, but_itself: bool = False) -> tuple[np.ndarray, np.ndarray]:
    """The k rows of ``X`` (n, p) nearest to each of ``Y`` (m, p), and squared distances: (m, k), (m, k).

    ``but_itself`` is for Y = X: a row is then not its own neighbour.
    """
    if is_torch(X):
        from lognmf.graph.tensors import nearest_tensor

        return nearest_tensor(Y, X, k, but_itself=but_itself)
    if not sp.issparse(X):
        return nearest_dense(Y, X, k, but_itself=but_itself)
    if X.shape[0] * X.shape[1] <= DENSE_UP_TO:
        dense = X.toarray()
        return nearest_dense(dense if Y is X else Y.toarray(), dense, k, but_itself=but_itself)
    from lognmf.graph.inverted import nearest_sparse

    return nearest_sparse(Y, X, k, but_itself=but_itself)


# Equal samples -------------------------------------------------------------------------

BLOCK = 1 << 16
"""Numbers per block of work."""


def distinct_rows(X: Any) -> tuple[np.ndarray, np.ndarray]:
    """The first of every set of equal rows (m,), in order, and for each row the number of its set (n,)."""
    group = _sets_of_equal(_hashes(X))
    while not (equal := _equal_rows(X, group)).all():
        # Rows of one hash that are not equal: those that equal the first stay, the others are another set.
        group = _sets_of_equal(2 * group + ~equal)
    return _firsts(group), group


def _sets_of_equal(values: np.ndarray) -> np.ndarray:
    """The number of each value's set (n,), sets in the order of their first values."""
    _, first, inverse = np.unique(values, return_index=True, return_inverse=True)
    number = np.empty(len(first), dtype=np.intp)
    number[np.argsort(first)] = np.arange(len(first))
    return number[inverse]


def _firsts(group: np.ndarray) -> np.ndarray:
    """The first member of every set (m,)."""
    return np.unique(group, return_index=True)[1]


def _equal_rows(X: Any, group: np.ndarray) -> np.ndarray:
    """Whether each row equals the first one of its set (n,)."""
    first = _firsts(group)[group]
    others = np.flatnonzero(first != np.arange(len(group)))
    equal = np.ones(len(group), dtype=bool)
    if is_torch(X):
        from lognmf.graph.tensors import equal_rows

        equal[others] = equal_rows(X, others, first[others])
        return equal
    step = max(1, BLOCK // max(1, X.nnz // X.shape[0] if sp.issparse(X) else X.shape[1]))
    for start in range(0, len(others), step):
        rows = others[start : start + step]
        if sp.issparse(X):
            difference = sp.csr_array(X[rows] != X[first[rows]])
            equal[rows] = np.diff(difference.indptr) == 0
        else:
            equal[rows] = (X[rows] == X[first[rows]]).all(axis=1)
    return equal


def _hashes(X: Any) -> np.ndarray:
    """A number for each row (n,): equal for equal rows, and hardly ever for others."""
    if is_torch(X):
        from lognmf.graph.tensors import hashes

        return hashes(X)
    n = X.shape[0]
    if sp.issparse(X):
        if not X.data.all():  # a stored zero is no entry
            X = X.copy()
            X.eliminate_zeros()
        ends = itertools.pairwise(X.indptr.tolist())
        rows = (X.indices[a:b].tobytes() + X.data[a:b].tobytes() for a, b in ends)
    else:
        step = max(1, BLOCK // X.shape[1])
        blocks = (X[start : start + step] + 0.0 for start in range(0, n, step))  # −0 is 0
        rows = (row.tobytes() for block in blocks for row in block)
    return np.fromiter(map(hash, rows), dtype=np.int64, count=n)
