"""Most of the nearest neighbours of many dense samples.

A round draws some samples as centres of cells, puts every sample into the cell of its nearest centre, and
compares the samples of a cell with those of the cells around it, by one product. Rounds go on until the true
neighbours of a sample of the data are found. Nothing depends on the number of threads.
"""

from __future__ import annotations

import numpy as np

from lognmf.core.threads import in_blocks, threads_for
from lognmf.neighbours.dense import Best, Points, measured, nearest_dense, smallest

CELL = 256
"""Samples per cell on average."""

COMPARED = 4096
"""Samples with which each sample is compared in a round, at least."""

RECALL = 0.99
"""Share of the true neighbours of the tested samples at which rounds end."""

_TESTED = 1000
"""Samples whose true neighbours are searched for."""

_SPARE = 3
"""Extra candidates per sample: products in single precision may confuse the last ones."""

_PRODUCTS = 1 << 22
"""Numbers of a block of products: 16 MB."""


def nearest_approximately(X: np.ndarray, k: int) -> tuple[np.ndarray, np.ndarray, float]:
    """For each row of ``X`` (n, p) k others, most of them its nearest, squared distances, and the recall.

    Where rounds would cost half of an exact search or more, that is made, and the recall is 1.
    """
    n = X.shape[0]
    compared = max(COMPARED, 16 * (k + _SPARE))
    rounds = n // (3 * compared)
    if rounds:
        rng = np.random.RandomState(0)
        tested = rng.choice(n, min(n, _TESTED), replace=False)
        true = nearest_dense(X[tested], X, k + 1, but_itself=False)[0][:, 1:]  # the first one is itself
        points, best = Points.single(X), Best(np.empty((n, 0), np.float32), np.empty((n, 0), np.int32))
        for _ in range(rounds):
            with threads_for(X, n):
                best = _better(best, _round(points, rng, compared, k + _SPARE))
            found = (best.places[tested][:, :, None] == true[:, None, :]).any(axis=1)
            if found.mean() >= RECALL:
                nearest, squared = measured(X, X, np.arange(n), best.places)
                return nearest[:, :k], squared[:, :k], float(found.mean())
    return *nearest_dense(X, X, k, but_itself=True), 1.0


def _round(points: Points, rng: np.random.RandomState, compared: int, count: int) -> Best:
    """The ``count`` nearest of every sample among those of its own and of nearby cells."""
    n = points.X.shape[0]
    centres = np.sort(rng.choice(n, max(1, n // CELL), replace=False))
    right = points.right(centres)
    order, starts = _cells(points, right)
    best = Best(np.empty((n, count), np.float32), np.empty((n, count), np.int32))

    def search(cells: slice) -> None:
        distances = points.left(centres[cells]) @ right.T
        distances[np.arange(len(distances)), np.arange(cells.start, cells.stop)] = -np.inf
        for own, near in zip(range(cells.start, cells.stop), np.argsort(distances, axis=1), strict=True):
            enough = np.searchsorted(np.cumsum(starts[near + 1] - starts[near]), compared) + 1
            others = np.concatenate([order[starts[cell] : starts[cell + 1]] for cell in near[:enough]])
            _compare(points, others[: starts[own + 1] - starts[own]], others, best)

    in_blocks(search, len(centres), 16)
    return best


def _cells(points: Points, right: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Samples in the order of their cells, and where each cell starts and the last one ends."""
    cell = np.empty(points.X.shape[0], dtype=np.int32)

    def assign(rows: slice) -> None:
        cell[rows] = (points.left(rows) @ right.T).argmin(axis=1)

    in_blocks(assign, len(cell), 1024)
    ends = np.cumsum(np.bincount(cell, minlength=len(right)))
    return np.argsort(cell, kind="stable"), np.concatenate([[0], ends])


def _compare(points: Points, rows: np.ndarray, others: np.ndarray, best: Best) -> None:
    """Fill in the nearest of ``rows`` among ``others``, which begin with them."""
    right, step = points.right(others).T, max(1, _PRODUCTS // len(others))
    for start in range(0, len(rows), step):
        some = rows[start : start + step]
        products = points.left(some) @ right
        products[np.arange(len(some)), np.arange(start, start + len(some))] = np.inf  # nobody is his own
        found = smallest(products, best.places.shape[1])
        best.values[some], best.places[some] = found.values, others[found.places]


def _better(one: Best, other: Best) -> Best:
    """The nearest of both, each once."""
    count = other.places.shape[1]
    if not one.places.shape[1]:
        return other
    better = Best(np.empty_like(other.values), np.empty_like(other.places))

    def choose(rows: slice) -> None:
        values, places = (
            np.concatenate(pair, axis=1)
            for pair in ((one.values[rows], other.values[rows]), (one.places[rows], other.places[rows]))
        )
        order = np.argsort(places, axis=1, kind="stable")
        values, places = (np.take_along_axis(both, order, axis=1) for both in (values, places))
        values[:, 1:][places[:, 1:] == places[:, :-1]] = np.inf
        order = np.argsort(values, axis=1, kind="stable")[:, :count]
        better.values[rows], better.places[rows] = (
            np.take_along_axis(both, order, axis=1) for both in (values, places)
        )

    in_blocks(choose, len(better.values), 4096)
    return better
