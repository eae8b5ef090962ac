"""Nearest neighbours among samples in rows, by exact distances; equal samples are found first."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from hashlib import sha256
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.spatial.distance import cdist

from lognmf.core.arrays import positive, squared_row_norms

_SPARE = 3
"""Extra candidates per sample, so that few samples need a second, exact search."""

_GLANCE = 16
"""Columns by which most samples are seen to differ."""

BLOCK = 1 << 17
"""Numbers per block of work."""


def distinct_rows(X: Any) -> tuple[np.ndarray, np.ndarray]:
    """The first of every set of equal rows (m,), in order, and for each row the number of its set (n,)."""
    numbers: dict[Any, int] = {}
    group = np.array([numbers.setdefault(key, len(numbers)) for key in _row_keys(X)])
    first = np.full(len(numbers), len(group))
    np.minimum.at(first, group, np.arange(len(group)))
    return first, group


def _row_keys(X: Any) -> Iterator[Any]:
    """Something for each row that is equal for equal rows, and only for them."""
    if sp.issparse(X):
        return _sparse_row_keys(X if X.has_sorted_indices else X.sorted_indices())
    # Few rows are equal in a few columns, and only these are looked at in full. 0.0 makes −0 a 0.
    few = X[:, np.linspace(0, X.shape[1] - 1, min(X.shape[1], _GLANCE)).astype(int)] + 0.0
    _, alike, count = np.unique(few, axis=0, return_inverse=True, return_counts=True)
    seen = count[alike.reshape(-1)] > 1
    return (sha256((row + 0.0).tobytes()).digest() if seen[i] else i for i, row in enumerate(X))


def _sparse_row_keys(X: sp.csr_array) -> Iterator[bytes]:
    """The same for the rows of a CSR matrix with sorted indices; stored zeros are no entries."""
    for start, stop in itertools.pairwise(X.indptr):
        values = X.data[start:stop]
        entries = values != 0
        key = sha256(X.indices[start:stop][entries].tobytes())
        key.update(values[entries].tobytes())
        yield key.digest()


@dataclass(frozen=True, eq=False)
class Neighbours:
    """The nearest others of every distinct sample."""

    first: np.ndarray  # (m,) the first of every set of equal samples
    group: np.ndarray  # (n,) the set of every sample
    nearest: np.ndarray  # (m, k) sets, the nearest first
    squared: np.ndarray  # (m, k) their squared distances


def find_neighbours(X: Any, n_neighbors: int) -> Neighbours:
    """The nearest others among the distinct samples, all of them where there are no more."""
    first, group = distinct_rows(X)
    m = len(first)
    k = min(n_neighbors, m - 1)
    if not k:
        return Neighbours(first, group, np.empty((m, 0), dtype=np.intp), np.empty((m, 0)))
    distinct = X if m == X.shape[0] else X[first]
    return Neighbours(first, group, *nearest(distinct, distinct, k, but_itself=True))


def nearest(Y: Any, X: Any, k: int, *, but_itself: bool = False) -> tuple[np.ndarray, np.ndarray]:
    """The k rows of ``X`` (n, p) nearest to each of ``Y`` (m, p), and squared distances: (m, k), (m, k).

    ``but_itself`` is for Y = X: a row is then not its own neighbour.
    """
    others = X.shape[0] - but_itself
    count = min(k + _SPARE, others)
    sizes = squared_norms(Y)
    candidates, rough = _candidates(Y, X, sizes, count, but_itself)
    exact = _candidate_distances(Y, X, candidates)
    order = np.argsort(exact, axis=1, kind="stable")[:, :k]
    neighbours = np.take_along_axis(candidates, order, axis=1)
    squared = np.take_along_axis(exact, order, axis=1)
    if count < others:
        # A sample j outside the candidates may be nearer only within the products' rounding error, a
        # small part of ‖y_i‖² + ‖x_j‖² ≤ 3 ‖y_i‖² + 2 d_ij².
        slack = 24 * np.finfo(X.dtype).eps * np.sqrt(X.shape[1]) * (sizes + positive(rough))
        for i in np.flatnonzero(squared[:, -1] >= rough - slack):
            squared[i], neighbours[i] = _settle(Y, X, int(i), k, but_itself)
    return neighbours, squared


def squared_norms(X: Any) -> np.ndarray:
    """``‖x_i‖²``, without a copy of ``X``."""
    return squared_row_norms(X) if sp.issparse(X) else np.einsum("ij,ij->i", X, X, dtype=np.float64)


def _candidates(
    Y: Any, X: Any, sizes: np.ndarray, count: int, but_itself: bool
) -> tuple[np.ndarray, np.ndarray]:
    """The nearest by products, and the squared distance of the last: (m, count), (m,).

    Works on blocks of samples in any memory order, so that X is not copied. ``sizes`` are ‖y_i‖² (m,).
    """
    m = Y.shape[0]
    sizes_X = sizes if but_itself else squared_norms(X)
    candidates, last = np.empty((m, count), dtype=np.intp), np.empty(m)
    step = max(16, BLOCK // max(X.shape))
    for start in range(0, m, step):
        rows = slice(start, min(start + step, m))
        distances = _products(Y, X, rows)
        distances *= -2
        distances += sizes_X
        if but_itself:
            distances[np.arange(len(distances)), np.arange(rows.start, rows.stop)] = np.inf
        candidates[rows], last[rows] = _smallest(distances, count)
    return candidates, last + sizes


def _products(Y: Any, X: Any, rows: slice) -> np.ndarray:
    """Inner products of a few rows of ``Y`` with all of ``X``: (m, n)."""
    if sp.issparse(X):
        return np.ascontiguousarray((X @ Y[rows].toarray().T).T)
    return Y[rows] @ X.T


def _smallest(values: np.ndarray, count: int) -> tuple[np.ndarray, np.ndarray]:
    """Columns of the ``count`` smallest values of each row, and the largest of these: (m, count), (m,).

    The ``count``-th of the minima over groups of columns is a bound that few values reach, and
    only these are sorted: several times faster than partitioning every row.
    """
    m, n = values.shape
    groups = np.linspace(0, n, min(n, 4 * count), endpoint=False).astype(np.intp)
    minima = np.minimum.reduceat(values, groups, axis=1)
    bound = np.partition(minima, count - 1, axis=1)[:, count - 1 : count]
    rows, columns = np.nonzero(values <= bound)
    reached = values[rows, columns]
    order = np.lexsort((reached, rows))
    chosen = order[np.searchsorted(rows, np.arange(m))[:, None] + np.arange(count)]
    return columns[chosen], reached[chosen[:, -1]]


def _candidate_distances(Y: Any, X: Any, candidates: np.ndarray) -> np.ndarray:
    """Squared distances of the rows of ``Y`` to some of ``X`` by differences, in blocks: (n, c)."""
    n, c = candidates.shape
    squared = np.empty((n, c))
    rows_per_block = max(1, BLOCK // (c * X.shape[1]))
    for start in range(0, n, rows_per_block):
        rows = slice(start, min(start + rows_per_block, n))
        for j in range(c):
            difference = Y[rows] - X[candidates[rows, j]]
            squared[rows, j] = squared_row_norms(difference)
    return squared


def _settle(Y: Any, X: Any, i: int, k: int, but_itself: bool) -> tuple[np.ndarray, np.ndarray]:
    """The k nearest to row ``i`` of ``Y`` by its exact distances to all of ``X``."""
    if sp.issparse(X):
        one = Y[[i]].toarray()
        blocks = range(0, X.shape[0], max(1, BLOCK // X.shape[1]))
        parts = [cdist(one, X[s : s + blocks.step].toarray(), "sqeuclidean") for s in blocks]
        squared = np.concatenate(parts, axis=1).ravel()
    else:
        squared = cdist(Y[i : i + 1], X, "sqeuclidean").ravel()
    if but_itself:
        squared[i] = np.inf
    nearest = np.argpartition(squared, k - 1)[:k]
    nearest = nearest[np.argsort(squared[nearest], kind="stable")]
    return squared[nearest], nearest
