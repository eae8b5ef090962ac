"""Exact nearest neighbours among sparse samples, by an index of the samples that have each feature.

The loops are compiled by numba at their first call, and cached on disk.
"""

# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from lognmf.core.compiling import compiled
from lognmf.core.threads import in_blocks, threads_for

_PRODUCTS = 1 << 21
"""Numbers in the products of the samples that a thread takes at a time."""

_FREQUENT = 1 / 8
"""Share of the samples from which a feature is frequent: a dense product is then quicker than its list."""

_DENSE = 1 << 25
"""Numbers that the frequent features may fill: 256 MB."""


def nearest_sparse(
    Y: sp.csr_array, X: sp.csr_array, k: int, *, but_itself: bool
) -> tuple[np.ndarray, np.ndarray]:
    """The k rows of ``X`` (n, p) nearest to each of ``Y`` (m, p), and squared distances: (m, k), (m, k).

    Both have sorted indices. Of samples at equal distance the first one is taken.
    """
    (m, _), n = Y.shape, X.shape[0]
    nearest, squared = np.empty((m, k), dtype=np.intp), np.empty((m, k))
    by_feature = sp.csc_array(X)
    frequent = _frequent(by_feature)
    index = _index(by_feature, frequent)
    right = by_feature[:, frequent].toarray().astype(np.float64, copy=False).T
    right *= -2
    rows_Y, rows_X = ((_small(Z.indptr), _small(Z.indices), Z.data) for Z in (Y, X))
    sizes_X = _squared_norms(rows_X[0], rows_X[2])
    sizes_Y = sizes_X if Y is X else _squared_norms(rows_Y[0], rows_Y[2])
    # Sums of so many products err by at most this share of ‖y‖² + ‖x‖².
    error = np.finfo(np.float64).eps * (8 + np.diff(X.indptr).max() + np.diff(Y.indptr).max())

    def search(some: slice) -> None:
        products = Y[some][:, frequent].toarray() @ right
        found = nearest[some], squared[some]
        _search(some.start, rows_Y, rows_X, index, sizes_Y, sizes_X, error, but_itself, products, *found)

    with threads_for(X, m):
        in_blocks(search, m, max(1, min(64, _PRODUCTS // n)))
    return nearest, squared


def _frequent(by_feature: sp.csc_array) -> np.ndarray:
    """Features that many samples have, in order."""
    n = by_feature.shape[0]
    count = np.diff(by_feature.indptr)
    most = np.argsort(-count, kind="stable")[: _DENSE // n]
    return np.sort(most[count[most] > _FREQUENT * n])


def _index(by_feature: sp.csc_array, frequent: np.ndarray) -> tuple[np.ndarray, ...]:
    """Where the list of each feature starts and ends (empty if frequent), its samples, and their values."""
    starts, ends = by_feature.indptr[:-1], by_feature.indptr[1:].copy()
    ends[frequent] = starts[frequent]
    return _small(starts), _small(ends), _small(by_feature.indices), by_feature.data.astype(np.float64)


def _small(indices: np.ndarray) -> np.ndarray:
    """Indices of 32 bits where they are large enough, so that the loops are compiled for few types."""
    return indices.astype(
        np.int32 if indices.max(initial=0) <= np.iinfo(np.int32).max else np.int64, copy=False
    )


@compiled
def _squared_norms(indptr, values):
    """``‖x_i‖²`` of sparse rows in double precision."""
    sizes = np.zeros(len(indptr) - 1)
    for i in range(len(sizes)):
        for e in range(indptr[i], indptr[i + 1]):
            sizes[i] += np.float64(values[e]) * np.float64(values[e])
    return sizes


@compiled
def _difference(i, Y, j, X):
    """``‖y_i − x_j‖²`` by the differences of two sparse rows."""
    (starts, columns, values), (other_starts, other_columns, other_values) = Y, X
    e, end, f, other_end = starts[i], starts[i + 1], other_starts[j], other_starts[j + 1]
    total = 0.0
    while e < end or f < other_end:
        if f == other_end or (e < end and columns[e] < other_columns[f]):
            step = np.float64(values[e])
            e += 1
        elif e == end or columns[e] > other_columns[f]:
            step = np.float64(other_values[f])
            f += 1
        else:
            step = np.float64(values[e]) - np.float64(other_values[f])
            e += 1
            f += 1
        total += step * step
    return total


@compiled
def _insert(value, place, values, places):
    """Put a value that is below the last one into ascending ``values``, behind equal ones."""
    at = len(values) - 1
    while at > 0 and values[at - 1] > value:
        values[at] = values[at - 1]
        places[at] = places[at - 1]
        at -= 1
    values[at] = value
    places[at] = place


@compiled
def _search(first, Y, X, index, sizes_Y, sizes_X, error, but_itself, products, nearest, squared):
    """Fill the neighbours of the rows of ``Y`` from ``first`` on.

    ``products`` hold −2 y·x over the frequent features; here the others are added. They bound every distance
    from below, and less closely from above. Only samples whose lower bound is not beyond the upper bounds of
    the k first are measured.
    """
    starts, features, values = Y
    begin, end, samples, sample_values = index
    n, k = len(sizes_X), nearest.shape[1]
    lower, places = np.empty(k), np.empty(k, dtype=np.int64)
    for row in range(len(nearest)):
        i, distance = first + row, products[row]
        for e in range(starts[i], starts[i + 1]):
            weight = -2.0 * np.float64(values[e])
            for f in range(begin[features[e]], end[features[e]]):
                distance[samples[f]] += weight * sample_values[f]
        if but_itself:
            distance[i] = np.inf
        lower[:] = np.inf
        for j in range(n):
            distance[j] += (1.0 - error) * (sizes_Y[i] + sizes_X[j])
            if distance[j] < lower[k - 1]:
                _insert(distance[j], j, lower, places)
        upper = 0.0
        for place in range(k):
            upper = max(upper, lower[place] + 2.0 * error * (sizes_Y[i] + sizes_X[places[place]]))
        squared[row, :] = np.inf
        for j in range(n):
            if distance[j] <= upper:
                exact = _difference(i, Y, j, X)
                if exact < squared[row, k - 1]:
                    _insert(exact, j, squared[row], nearest[row])
