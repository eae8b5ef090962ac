"""Most of the nearest neighbours of many dense samples.

A round draws some samples as centres of cells, puts every sample into the cell of its nearest centre, and
compares the samples of a cell with those of the cells around it, by one product. Rounds go on until the true
neighbours of a sample of the data are found. Nothing depends on the number of threads.
"""

from __future__ import annotations

import numpy as np

from lognmf.core.threads import in_blocks, threads_for
from lognmf.graph.dense import Best, Points, measured, nearest_dense, smallest, squared_norms

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
        with threads_for(X, n):
            for _ in range(rounds):
                best = _better(best, _round(X, points, rng, compared, k + _SPARE))
                found = (best.places[tested][:, :, None] == true[:, None, :]).any(axis=1)
                if found.mean() >= RECALL:
                    nearest, squared = measured(X, X, np.arange(n), best.places)
                    return nearest[:, :k], squared[:, :k], float(found.mean())
    return *nearest_dense(X, X, k, but_itself=True), 1.0


def _round(X: np.ndarray, points: Points, rng: np.random.RandomState, compared: int, count: int) -> Best:
    """The ``count`` nearest of every sample among those of its own and of nearby cells."""
    n = X.shape[0]
    chosen = np.sort(rng.choice(n, max(1, n // CELL), replace=False))
    centres = points(X[chosen])
    sizes = squared_norms(centres).astype(np.float32)
    cell = np.empty(n, dtype=np.int32)

    def assign(rows: slice) -> None:
        cell[rows] = (sizes - 2 * points(X[rows]) @ centres.T).argmin(axis=1)

    in_blocks(assign, n, 1024)
    order = np.argsort(cell, kind="stable")
    starts = np.concatenate([[0], np.cumsum(np.bincount(cell, minlength=len(centres)))])
    best = Best(np.empty((n, count), np.float32), np.empty((n, count), np.int32))

    def search(cells: slice) -> None:
        distances = sizes - 2 * centres[cells] @ centres.T
        distances[np.arange(len(distances)), np.arange(cells.start, cells.stop)] = -np.inf
        for place, near in zip(range(cells.start, cells.stop), np.argsort(distances, axis=1), strict=True):
            enough = np.searchsorted(np.cumsum(starts[near + 1] - starts[near]), compared) + 1
            others = np.concatenate([order[starts[c] : starts[c + 1]] for c in near[:enough]])
            _compare(points(X[others]), others, starts[place + 1] - starts[place], best)

    in_blocks(search, len(centres), 16)
    return best


def _compare(samples: np.ndarray, others: np.ndarray, members: int, best: Best) -> None:
    """Fill in the nearest of the first ``members`` of these ``samples``, whose places are ``others``."""
    sizes, step = squared_norms(samples).astype(np.float32), max(1, _PRODUCTS // len(others))
    for start in range(0, members, step):
        some = slice(start, min(start + step, members))
        products = sizes - 2 * samples[some] @ samples.T
        products[np.arange(len(products)), np.arange(some.start, some.stop)] = np.inf  # not the sample itself
        found = smallest(products, best.places.shape[1])
        best.values[others[some]], best.places[others[some]] = found.values, others[found.places]


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
