"""Exact nearest neighbours among dense samples: candidates by products, their distances by differences."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

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

_PRODUCTS = 1 << 22
"""Numbers of samples and products that a thread takes at a time; a sixteenth of it, for all threads
together, where there are few samples."""

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
        for points in (Points.single, Points.plain) if single else (Points.plain,):
            if len(rows):
                found = _by_products(Y, X, rows, k, but_itself, points)
                neighbours[rows], squared[rows], sure = found
                rows = rows[~sure]

        def settle(some: slice) -> None:
            neighbours[rows[some]], squared[rows[some]] = _settle(Y, X, rows[some], k, but_itself)

        in_blocks(settle, len(rows), _SETTLED)
    return neighbours, squared


@dataclass(frozen=True, eq=False)
class Points:
    """Samples as they enter products: less ``shift`` (p,), in units of ``unit``, of type ``dtype``."""

    shift: np.ndarray | None
    unit: float
    dtype: Any

    @classmethod
    def plain(cls, X: np.ndarray, *_: np.ndarray) -> Points:
        """As they are, without a copy."""
        return cls(None, 1.0, X.dtype)

    @classmethod
    def single(cls, X: np.ndarray, *others: np.ndarray) -> Points:
        """In single precision, centred so that a common offset costs no digits, and without overflow."""
        shift = X.mean(axis=0)
        largest = (max((Z.max(axis=0) - shift).max(), (shift - Z.min(axis=0)).max()) for Z in (X, *others))
        return cls(shift, float(max(largest)) or 1.0, np.float32)

    def __call__(self, X: np.ndarray) -> np.ndarray:
        """Some samples."""
        return X if self.shift is None else ((X - self.shift) / self.unit).astype(self.dtype)


def squared_norms(X: Any) -> np.ndarray:
    """``‖x_i‖²`` in double precision, without a copy of ``X``."""
    return np.einsum("ij,ij->i", X, X, dtype=np.float64)


def _by_products(
    Y: np.ndarray, X: np.ndarray, rows: np.ndarray, k: int, but_itself: bool, kind: Any
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Neighbours of some ``rows`` of ``Y``, their squared distances, and which of them are sure."""
    points, (n, p), others = kind(X, *(() if Y is X else (Y,))), X.shape, X.shape[0] - but_itself
    count = min(k + (_SPARE if points.shift is None else _SPARE_SINGLE), others)
    right = points(X)
    sizes = squared_norms(right).astype(points.dtype)
    candidates, bound = np.empty((len(rows), count), dtype=np.intp), np.empty(len(rows))

    def search(some: slice) -> None:
        queries = points(Y[rows[some]])
        products = queries @ right.T
        products *= -2
        products += sizes
        if but_itself:
            products[np.arange(len(queries)), rows[some]] = np.inf
        best, norms = smallest(products, count), squared_norms(queries)
        last = best.values[:, -1] + norms
        candidates[some], bound[some] = best.places, last - slack(p, points.dtype, norms, last)

    largest = _PRODUCTS if n >= _SINGLE_FROM else _PRODUCTS // (16 * allowed())
    in_blocks(search, len(rows), max(16, largest // (n + p)))
    neighbours, squared = measured(Y, X, rows, candidates)
    bound *= points.unit * points.unit
    if count > k + _SPARE:
        # A tie that reaches beyond the first spare ones is decided in the same way with few samples as with
        # many.
        spare, norms = squared[:, k + _SPARE - 1], squared_norms(Y[rows])
        bound = np.minimum(bound, spare - slack(p, X.dtype, norms, spare))
    sure = (squared[:, k - 1] < bound) | (count == others)
    return neighbours[:, :k], squared[:, :k], sure


def slack(p: int, dtype: Any, sizes: np.ndarray, rough: np.ndarray) -> np.ndarray:
    """How much nearer than ``rough`` a sample j of p features may be that is not among the candidates.

    The error of a product is a small part of ‖y_i‖² + ‖x_j‖² ≤ 3 ‖y_i‖² + 2 d_ij².
    """
    info = np.finfo(dtype)
    return 24 * info.eps * np.sqrt(p) * (sizes + positive(rough)) + 24 * p * float(info.tiny)


class Best(NamedTuple):
    """The smallest values of each row, ascending, and their columns: (m, count) each."""

    values: np.ndarray
    places: np.ndarray


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
    """Candidates (m, c) of some ``rows`` of ``Y``, the nearest first by differences; squared distances."""
    candidates = np.sort(candidates, axis=1)  # of equal distances the first sample is taken
    m, c = candidates.shape
    squared = np.empty((m, c))

    def measure(some: slice) -> None:
        queries = Y[rows[some]]
        for j in range(c):
            squared[some, j] = squared_row_norms(queries - X[candidates[some, j]])

    in_blocks(measure, m, max(1, _BLOCK // X.shape[1]))
    order = np.argsort(squared, axis=1, kind="stable")
    return np.take_along_axis(candidates, order, axis=1), np.take_along_axis(squared, order, axis=1)


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
