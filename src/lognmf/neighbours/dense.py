"""Exact nearest neighbours among dense samples: candidates by products, their distances by differences."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.spatial.distance import cdist

from lognmf.core.arrays import positive
from lognmf.core.matrices import squared_row_norms
from lognmf.core.threads import allowed, in_blocks, threads_for

_SPARE = 3
"""Extra candidates per sample, so that few samples need a search through all distances."""

_SPARE_SINGLE = 11
"""The same in single precision, so that few samples need double precision."""

_SINGLE_FROM = 4096
"""Samples from which products in single precision come first."""

_MEMORY = 1 << 28
"""Bytes for the temporaries of all threads."""

_SMALL = 1 << 17
"""Numbers of a block of products where there are fewer than `_SINGLE_FROM` samples."""

_QUERIES = 1024
"""Samples that a thread takes at a time, at most; it multiplies them with twice as many at a time."""

_BLOCK = 1 << 16
"""Numbers per block of differences, so that they stay in a core's cache."""

_SETTLED = 16
"""Samples whose distances to all others are computed at a time."""


def nearest_dense(Y: np.ndarray, X: np.ndarray, k: int, *, but_itself: bool) -> tuple[np.ndarray, np.ndarray]:
    """The k rows of ``X`` (n, p) nearest to each of ``Y`` (m, p), and squared distances: (m, k), (m, k).

    What products in single precision do not decide is left to those in double precision, and what these do
    not decide, ties above all, to the distances to all samples.
    """
    rows = np.arange(Y.shape[0])
    neighbours, squared = np.empty((len(rows), k), dtype=np.intp), np.empty((len(rows), k))
    single = X.dtype == np.float64 and X.shape[0] >= max(_SINGLE_FROM, 2 * (k + _SPARE_SINGLE))
    with threads_for(X, len(rows)):
        if single:
            neighbours[:], squared[:], sure = _by_single_products(Y, X, k, but_itself)
            rows = rows[~sure]
        if len(rows):
            neighbours[rows], squared[rows], sure = _by_products(Y, X, rows, k, but_itself)
            rows = rows[~sure]

        def settle(some: slice) -> None:
            neighbours[rows[some]], squared[rows[some]] = _settle(Y, X, rows[some], k, but_itself)

        in_blocks(settle, len(rows), _SETTLED)
    return neighbours, squared


def squared_norms(X: Any) -> np.ndarray:
    """``‖x_i‖²`` in double precision, without a copy of ``X``."""
    return np.einsum("ij,ij->i", X, X, dtype=np.float64)


@dataclass(frozen=True, eq=False)
class _Plain:
    """Samples with their squared norms ``sizes`` (n,), as they are: nothing of the size of X is made."""

    X: np.ndarray
    sizes: np.ndarray

    def left(self, rows: Any) -> np.ndarray:
        return self.X[rows]

    def distances(self, left: np.ndarray, rows: slice) -> np.ndarray:
        products = left @ self.X[rows].T
        products *= -2
        products += self.sizes[rows]
        return products


@dataclass(frozen=True, eq=False)
class Points:
    """Samples as they enter products: less ``shift`` (p,), in units of ``unit``, of type ``dtype``."""

    X: np.ndarray
    shift: Any
    unit: float
    dtype: Any

    @classmethod
    def single(cls, X: np.ndarray) -> Points:
        """In single precision, centred so that a common offset costs no digits, and without overflow."""
        shift = X.mean(axis=0)
        return cls(X, shift, _largest(X, shift) or 1.0, np.float32)

    def left(self, rows: Any) -> np.ndarray:
        """Samples beside a column of ones."""
        points = self._points(rows)
        points[:, -1] = 1
        return points

    def right(self, rows: Any) -> np.ndarray:
        """Those, times −2, beside a column of their squared norms: a product is a distance but for ‖y‖²."""
        points = self._points(rows)
        points[:, -1] = squared_norms(points[:, :-1])
        points[:, :-1] *= -2
        return points

    def distances(self, left: np.ndarray, rows: Any) -> np.ndarray:
        """Squared distances of others to some samples, less ‖y‖²."""
        return left @ self.right(rows).T

    def sizes(self) -> np.ndarray:
        """Squared norms of all samples, in double precision."""
        sizes = np.empty(self.X.shape[0])

        def fill(rows: slice) -> None:
            sizes[rows] = squared_norms(self._points(rows)[:, :-1])

        in_blocks(fill, len(sizes), _QUERIES)
        return sizes

    def _points(self, rows: Any) -> np.ndarray:
        some = self.X[rows]
        points = np.empty((some.shape[0], some.shape[1] + 1), dtype=self.dtype)
        points[:, :-1] = (some - self.shift) / self.unit
        return points


def _by_products(
    Y: np.ndarray, X: np.ndarray, rows: np.ndarray, k: int, but_itself: bool
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Neighbours of some ``rows`` of ``Y`` by products of the data's precision, and which are sure."""
    others = X.shape[0] - but_itself
    count = min(k + _SPARE, others)
    right = _Plain(X, squared_norms(X))
    left = right if Y is X else _Plain(Y, squared_norms(Y))
    candidates, last = _candidates(left, right, rows, count, but_itself)
    neighbours, squared = measured(Y, X, rows, candidates)
    sure = np.full(len(rows), count == others)
    if count < others:
        sizes = left.sizes[rows]
        sure = squared[:, k - 1] < last + sizes - slack(X.shape[1], X.dtype, sizes, last + sizes)
    return neighbours[:, :k], squared[:, :k], sure


def _by_single_products(
    Y: np.ndarray, X: np.ndarray, k: int, but_itself: bool
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Neighbours of all rows of ``Y`` by products in single precision, and which are sure."""
    left = right = Points.single(X)
    if Y is not X:
        unit = max(right.unit, _largest(Y, right.shift))
        left, right = (replace(right, X=Z, unit=unit) for Z in (Y, X))
    rows = np.arange(Y.shape[0])
    candidates, last = _candidates(left, right, rows, k + _SPARE_SINGLE, but_itself)
    neighbours, squared = measured(Y, X, rows, candidates)
    sizes = left.sizes()
    rough = last + sizes
    bound = (rough - slack(X.shape[1], np.float32, sizes, rough)) * left.unit * left.unit
    # A tie that reaches beyond the first spare ones is decided in the same way with few samples as with many.
    spare, sizes = squared[:, k + _SPARE - 1], squared_norms(Y)
    bound = np.minimum(bound, spare - slack(X.shape[1], X.dtype, sizes, spare))
    return neighbours[:, :k], squared[:, :k], squared[:, k - 1] < bound


def _largest(X: np.ndarray, shift: Any) -> float:
    """The largest entry of ``|X − shift|``, or a little more."""
    return float(np.maximum(X.max(axis=0) - shift, shift - X.min(axis=0)).max())


def slack(p: int, dtype: Any, sizes: np.ndarray, rough: np.ndarray) -> np.ndarray:
    """How much nearer than ``rough`` a sample j of p features may be that is not among the candidates.

    The error of a product is a small part of ‖y_i‖² + ‖x_j‖² ≤ 3 ‖y_i‖² + 2 d_ij².
    """
    info = np.finfo(dtype)
    return 24 * info.eps * np.sqrt(p) * (sizes + positive(rough)) + 24 * p * float(info.tiny)


def _candidates(
    left: Any, right: Any, rows: np.ndarray, count: int, but_itself: bool
) -> tuple[np.ndarray, np.ndarray]:
    """The ``count`` nearest of ``rows`` by products (m, count); the last one's distance less ‖y‖² (m,)."""
    candidates, last = np.empty((len(rows), count), dtype=np.intp), np.empty(len(rows))
    n, p = right.X.shape
    if n < _SINGLE_FROM:
        queries, chunk = max(16, _SMALL // max(n, p)), n
    else:
        queries = int(np.clip(_MEMORY // (8 * allowed() * (3 * p + 2 * _QUERIES)), 16, _QUERIES))
        chunk = max(2 * queries, 4 * count)

    def search(some: slice) -> None:
        best = _best(left, right, rows[some], chunk, count, but_itself)
        candidates[some], last[some] = best.places, best.values[:, -1]

    in_blocks(search, len(rows), queries)
    return candidates, last


@dataclass(frozen=True, eq=False)
class Best:
    """The smallest values of each row so far, ascending, and their columns: (m, count) each."""

    values: np.ndarray
    places: np.ndarray

    def merged(self, rows: list[np.ndarray], values: list[np.ndarray], places: list[np.ndarray]) -> Best:
        """The smallest of these and of more; of equal ones the first."""
        m, count = self.values.shape
        all_rows = np.concatenate([np.repeat(np.arange(m), count), *rows])
        all_values = np.concatenate([self.values.reshape(-1), *values])
        all_places = np.concatenate([self.places.reshape(-1), *places])
        order = np.lexsort((all_places, all_values, all_rows))
        chosen = order[np.searchsorted(all_rows[order], np.arange(m))[:, None] + np.arange(count)]
        return Best(all_values[chosen], all_places[chosen])


def _best(left: Any, right: Any, rows: np.ndarray, chunk: int, count: int, but_itself: bool) -> Best:
    """The ``count`` smallest products of each of some rows with all samples, chunk by chunk.

    After the first chunk few products are below what a row has already, and only these are looked at.
    """
    queries, n = left.left(rows), right.X.shape[0]
    best: Best | None = None
    pending: tuple[list[np.ndarray], ...] = ([], [], [])
    for start in range(0, n, chunk):
        products = right.distances(queries, slice(start, start + chunk))
        if but_itself:
            own = np.flatnonzero((rows >= start) & (rows < start + chunk))
            products[own, rows[own] - start] = np.inf
        if best is None:
            best = smallest(products, count)
            continue
        row, column = np.divmod(np.flatnonzero(products < best.values[:, -1:]), products.shape[1])
        for parts, more in zip(pending, (row, products[row, column], column + start), strict=True):
            parts.append(more)
        if sum(map(len, pending[0])) > best.values.size:
            best, pending = best.merged(*pending), ([], [], [])
    assert best is not None
    return best.merged(*pending) if pending[0] else best


def smallest(values: np.ndarray, count: int) -> Best:
    """The ``count`` smallest values of each row.

    The ``count``-th of the minima over groups of columns is a bound that few values reach, and
    only these are sorted: several times faster than partitioning every row.
    """
    m, n = values.shape
    groups = np.linspace(0, n, min(n, 4 * count), endpoint=False).astype(np.intp)
    minima = np.minimum.reduceat(values, groups, axis=1)
    bound = np.partition(minima, count - 1, axis=1)[:, count - 1 : count]
    rows, columns = np.divmod(np.flatnonzero(values <= bound), n)
    reached = values[rows, columns]
    order = np.lexsort((reached, rows))
    chosen = order[np.searchsorted(rows, np.arange(m))[:, None] + np.arange(count)]
    return Best(reached[chosen], columns[chosen])


def measured(
    Y: np.ndarray, X: np.ndarray, rows: np.ndarray, candidates: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Candidates of some ``rows`` of ``Y``, the nearest first by differences; squared distances."""
    candidates = np.sort(candidates, axis=1)  # of equal distances the first sample is taken
    squared = candidate_distances(Y, X, rows, candidates)
    order = np.argsort(squared, axis=1, kind="stable")
    return np.take_along_axis(candidates, order, axis=1), np.take_along_axis(squared, order, axis=1)


def candidate_distances(Y: np.ndarray, X: np.ndarray, rows: np.ndarray, candidates: np.ndarray) -> np.ndarray:
    """Squared distances of ``rows`` (m,) of ``Y`` to some of ``X`` by differences: (m, c)."""
    m, c = candidates.shape
    squared = np.empty((m, c))

    def measure(some: slice) -> None:
        own = Y[rows[some]]
        for j in range(c):
            squared[some, j] = squared_row_norms(own - X[candidates[some, j]])

    in_blocks(measure, m, max(1, _BLOCK // X.shape[1]))
    return squared


def _settle(
    Y: np.ndarray, X: np.ndarray, rows: np.ndarray, k: int, but_itself: bool
) -> tuple[np.ndarray, np.ndarray]:
    """The k nearest to some ``rows`` of ``Y`` by their distances to all of ``X``, and these, squared."""
    squared = cdist(Y[rows], X, "sqeuclidean")
    if but_itself:
        squared[np.arange(len(rows)), rows] = np.inf
    nearest = np.argpartition(squared, k - 1, axis=1)[:, :k]
    found = np.take_along_axis(squared, nearest, axis=1)
    order = np.argsort(found, axis=1, kind="stable")
    return np.take_along_axis(nearest, order, axis=1), np.take_along_axis(found, order, axis=1)
