"""k-means for many embeddings at once, on the device where they were fitted.

A *problem* is one restart of one embedding; the restarts of an embedding share its
samples. Everything heavy is one of two matrix products: centres × samples (distances) and
members × samples (sums). Equal embeddings and seeds give equal labels whatever the batch,
the chunk or the device. That is not a matter of equal bits, which no library promises:
all is computed in float64, and wherever the least or the largest of several numbers is
chosen, the first one *within rounding* is taken, so that what is tied stays tied.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from numbers import Integral
from typing import Any

import array_api_compat
import numpy as np

from lognmf.core.arrays import Array, is_torch, join, kernels, like, namespace, take, to_numpy

__all__ = ["kmeans"]

_SLACK = 1e-11
"""What counts as rounding, relative to the squared norms a distance is computed from."""

_SHRINK = 0.8
"""The running problems are gathered when they fill at most this share of the batch."""

_MEMORY = {"cpu": 2**24, "accelerator": 2**32}
"""Bytes for temporaries: what stays in a CPU's caches (`benchmarks/kmeans.py --memory 256` is half
as fast), what keeps a GPU busy."""


def kmeans(
    V: Array,
    n_clusters: int,
    *,
    seed: Any,
    n_init: int = 10,
    max_iter: int = 300,
    tol: float = 1e-4,
    memory: int | None = None,
) -> Array:
    """Cluster the rows of every embedding by k-means.

    Starts are drawn by greedy k-means++; a cluster that runs empty takes the sample
    farthest from its centre; of the ``n_init`` restarts the one of the least inertia wins.
    An embedding's labels depend on its entries and its seed alone. Random numbers are used
    in the order of scikit-learn's KMeans, which finds the same labels with
    ``random_state=seed`` unless rounding decides or a cluster runs empty.

    Parameters
    ----------
    V : array of shape (n, B, k)
        B embeddings of n samples, of any array library.
    n_clusters : int
        Number of clusters, at most n.
    seed : int or array-like of B ints
        Seed of every embedding's starts, from 0 to 2³² − 1. One int serves them all.
    n_init : int, default=10
        Restarts.
    max_iter : int, default=300
        Iterations of a restart at most.
    tol : float, default=1e-4
        A restart has converged when its labels stay, or when its centres move by at most
        ``tol`` times the variance of the embedding (squared, summed over the centres).
    memory : int or None, default=None
        Bytes that temporaries may take; the batch goes in chunks. At least one restart of
        one embedding is held, whatever it takes. None is 16 MiB on a CPU, 4 GiB on a GPU.

    Returns
    -------
    labels : array of shape (n, B), int64
        Clusters from 0 to ``n_clusters`` − 1, in the library and on the device of V. Equal
        rows share their label, so an embedding with fewer distinct rows than clusters
        leaves some clusters empty.

    Examples
    --------
    >>> import numpy as np
    >>> V = np.array([[0.0, 1.0], [0.1, 1.0], [5.0, 0.0], [5.1, 0.0]])
    >>> labels = kmeans(np.stack([V, 2 * V], axis=1), 2, seed=0)
    >>> labels.shape, bool((labels[0] == labels[1]).all()), bool((labels[1] == labels[2]).any())
    ((4, 2), True, False)
    """
    V = V.detach() if is_torch(V) else V
    _check(V, n_clusters, n_init)
    uniform = _Uniform(_seeds(seed, V.shape[1]), (n_init, 1 + (n_clusters - 1) * _n_candidates(n_clusters)))
    parts = []
    for settings, restarts in _chunks(V.shape, n_clusters, n_init, memory or _memory(V)):
        points = _Points.of(V[:, settings, :])
        trials = [
            _solve(points, like(uniform(settings, some), points.rows), n_clusters, max_iter, tol)
            for some in restarts
        ]
        parts.append(_winners(points, trials))
    return join(parts)


@dataclass(frozen=True)
class _Points:
    """Samples of b embeddings, ready for products.

    ``rows`` (b, k + 1, n) are the samples, scaled and centred, above a row of ones: with it
    a product with centres also adds their norms, and a product with members also counts
    them. ``square`` (b, 1, n) are the squared norms of the samples.
    """

    rows: Array
    square: Array

    @classmethod
    def of(cls, V: Array) -> _Points:
        xp = namespace(V)
        X = xp.permute_dims(xp.astype(V, xp.float64), (1, 2, 0))
        # Neither moves a cluster. Without the scale tiny codes would vanish when squared,
        # without the centre a common offset would cost the digits of every distance.
        largest = xp.max(xp.abs(X), axis=(1, 2), keepdims=True)
        if not xp.all(xp.isfinite(largest)):
            msg = "V must be finite; it holds NaN or infinity."
            raise ValueError(msg)
        X = X / xp.where(largest > 0, largest, xp.ones_like(largest))
        X = X - xp.mean(X, axis=2, keepdims=True)
        rows = xp.concat([X, xp.ones_like(X[:, :1, :])], axis=1)
        return cls(rows, xp.sum(X * X, axis=1, keepdims=True))

    @property
    def spread(self) -> Array:
        """Sum of squares (b, 1): n k times the mean variance."""
        return namespace(self.square).sum(self.square, axis=2)

    def take(self, index: np.ndarray) -> _Points:
        return _Points(take(self.rows, index, axis=0), take(self.square, index, axis=0))

    def at(self, index: Array) -> Array:
        """Samples with their ones: (b, …) indices → (b, …, k + 1)."""
        xp, (b, width, _) = namespace(index), self.rows.shape
        found = xp.take_along_axis(self.rows, xp.reshape(index, (b, 1, -1)), axis=2)
        return xp.reshape(xp.permute_dims(found, (0, 2, 1)), (*index.shape, width))

    def products(self, centres: Array) -> Array:
        """``‖c‖² − 2 v·c`` for centres (b, R, K, k) → (b, R, K, n): distances less ``‖v‖²``."""
        xp, (b, R, K, k) = namespace(centres), centres.shape
        sides = xp.concat([-2 * centres, xp.sum(centres * centres, axis=3, keepdims=True)], axis=3)
        return xp.reshape(xp.matmul(xp.reshape(sides, (b, R * K, k + 1)), self.rows), (b, R, K, -1))

    def sums(self, members: Array) -> Array:
        """Sums of samples, and in the last column their numbers: (b, R, K, n) → (b, R, K, k + 1)."""
        xp, (b, R, K, n) = namespace(members), members.shape
        weights = xp.astype(xp.reshape(members, (b, R * K, n)), self.rows.dtype, copy=False)
        return xp.reshape(xp.matmul(weights, xp.permute_dims(self.rows, (0, 2, 1))), (b, R, K, -1))

    def snap(self, distance: Array) -> Array:
        """Squared distances (b, …, n), rounding taken for zero."""
        xp = namespace(distance)
        b, _, n = self.square.shape
        least = _SLACK * xp.reshape(self.square, (b, *[1] * (distance.ndim - 2), n))
        return xp.where(distance > least, distance, xp.zeros_like(distance))


def _solve(
    points: _Points, uniform: Array, n_clusters: int, max_iter: int, tol: float
) -> tuple[Array, Array]:
    """Labels (b, R, n) and inertia (b, R) of every restart."""
    xp = namespace(uniform)
    centres = _lloyd(points, _starts(points, uniform, n_clusters), max_iter, tol)
    labels, _, distance = _assign(points, centres)
    return labels, xp.sum(points.snap(distance), axis=2)


def _winners(points: _Points, trials: list[tuple[Array, Array]]) -> Array:
    """Labels (n, b) of the restarts of least inertia."""
    xp = namespace(points.rows)
    labels, inertia = (xp.concat(list(side), axis=1) for side in zip(*trials, strict=True))
    # Restarts that found the same clusters number them differently: the first one wins.
    best = _first_least(inertia, _SLACK * points.spread)
    return xp.permute_dims(xp.astype(_pick(labels, best), xp.int64), (1, 0))


# Starts ------------------------------------------------------------------------------------------


def _n_candidates(n_clusters: int) -> int:
    """Samples tried for every centre, as many as scikit-learn tries."""
    return 2 + int(math.log(n_clusters))


def _starts(points: _Points, uniform: Array, n_clusters: int) -> Array:
    """Centres (b, R, K, k) of greedy k-means++, from uniform numbers (b, R, 1 + (K − 1) L).

    Each centre is the one of L samples, drawn by their squared distance to the centres so
    far, that brings the samples closest.
    """
    xp, L = namespace(uniform), _n_candidates(n_clusters)
    n, slack = points.square.shape[2], _SLACK * points.spread[:, :, None]
    first = points.at(_whole(uniform[:, :, :1], n))
    chosen = [first[:, :, 0, :-1]]
    closest = _squared(points, first)[:, :, 0, :]
    for step in range(n_clusters - 1):
        draws = uniform[:, :, 1 + step * L : 1 + (step + 1) * L]
        candidates = points.at(_sample(closest, draws))
        distance = xp.minimum(closest[:, :, None, :], _squared(points, candidates))
        best = _first_least(xp.sum(distance, axis=3), slack)
        closest = _pick(distance, best)
        chosen.append(_pick(candidates, best)[:, :, :-1])
    return xp.stack(chosen, axis=2)


def _squared(points: _Points, samples: Array) -> Array:
    """Squared distances of all samples to some of them: (b, R, L, k + 1) → (b, R, L, n)."""
    return points.snap(points.products(samples[..., :-1]) + points.square[:, :, None, :])


def _sample(weights: Array, uniform: Array) -> Array:
    """Indices drawn by ``weights`` (b, R, n): (b, R, L); evenly where all weights are 0."""
    xp = namespace(weights)
    sums = xp.cumulative_sum(weights, axis=2)
    total = sums[:, :, -1:]
    drawn = _first(sums[:, :, None, :] > (uniform * total)[..., None])
    return xp.where(total > 0, drawn, _whole(uniform, weights.shape[2]))


def _whole(uniform: Array, n: int) -> Array:
    """Uniform numbers in [0, 1) as integers from 0 to n − 1."""
    xp = namespace(uniform)
    return xp.astype(xp.floor(uniform * n), xp.int64)


@dataclass(frozen=True)
class _Uniform:
    """Uniform random numbers: to every seed its own table, a restart a row."""

    seeds: np.ndarray
    shape: tuple[int, int]

    def __call__(self, settings: slice, restarts: slice) -> np.ndarray:
        seeds, which = np.unique(self.seeds[settings], return_inverse=True)
        tables = [np.random.RandomState(seed).random_sample(self.shape)[restarts] for seed in seeds]
        return np.stack(tables)[which]


# Lloyd's iterations ------------------------------------------------------------------------------


def _lloyd(points: _Points, centres: Array, max_iter: int, tol: float) -> Array:
    """Centres (b, R, K, k) after Lloyd's iterations.

    A problem that has converged is frozen. When many have, the others are gathered.
    """
    xp, (b, R, _, k) = namespace(centres), centres.shape
    limit = tol / (points.square.shape[2] * k) * points.spread
    running, labels = xp.ones_like(centres[:, :, 0, 0], dtype=xp.bool), None
    problem = np.arange(b * R).reshape(b, R)
    ended: list[tuple[np.ndarray, Array]] = []
    for _ in range(max_iter):
        before, (labels, moved) = labels, _step(points, centres)
        shift = xp.sum((moved - centres) ** 2, axis=(2, 3))
        centres = xp.where(running[:, :, None, None], moved, centres)
        running = running & (shift > limit)
        if before is not None:
            running = running & xp.any(labels != before, axis=2)
        alive = to_numpy(running)
        if not alive.any():
            break
        keep = _gather(alive)
        if keep is not None:
            left = np.setdiff1d(np.arange(alive.size), keep)[:, None]
            ended.append((_regroup(problem, left), _regroup(centres, left)))
            problem, centres, labels, running = (
                _regroup(x, keep) for x in (problem, centres, labels, running)
            )
            embeddings = keep[:, 0] // alive.shape[1]
            points, limit = points.take(embeddings), take(limit, embeddings, axis=0)
    return _restore([*ended, (problem, centres)], (b, R))


def _gather(running: np.ndarray) -> np.ndarray | None:
    """Places (b', R') in the flat batch that hold all running problems; None if it is not worth it.

    Restarts of an embedding stay in its row, so a row may be filled up with frozen ones.
    """
    count = running.sum(axis=1)
    embeddings, width = np.flatnonzero(count), count.max()
    if len(embeddings) * width > _SHRINK * running.size:
        return None
    restarts = np.argsort(~running[embeddings], axis=1, kind="stable")[:, :width]
    return embeddings[:, None] * running.shape[1] + restarts


def _regroup(x: Array, places: np.ndarray) -> Array:
    """Problems at ``places`` (b', R') of the flat batch: (b, R, …) → (b', R', …)."""
    xp = namespace(x)
    flat = xp.reshape(x, (-1, *x.shape[2:]))
    return xp.reshape(take(flat, places.reshape(-1), axis=0), (*places.shape, *x.shape[2:]))


def _restore(parts: list[tuple[np.ndarray, Array]], shape: tuple[int, int]) -> Array:
    """Centres of all problems in their first order."""
    xp = namespace(parts[0][1])
    order = np.concatenate([problem.reshape(-1) for problem, _ in parts])
    flat = xp.concat([xp.reshape(x, (-1, 1, *x.shape[2:])) for _, x in parts])
    return _regroup(flat, np.argsort(order).reshape(shape))


def _step(points: _Points, centres: Array) -> tuple[Array, Array]:
    """Labels for the centres, and the centres of these labels; an empty cluster's stays."""
    xp = namespace(centres)
    labels, members, distance = _assign(points, centres)
    sums = points.sums(members)
    if xp.any(sums[..., -1] == 0):
        labels, sums = _fill(points, labels, points.snap(distance), sums)
    count = sums[..., -1:]
    return labels, xp.where(count > 0, sums[..., :-1] / xp.maximum(count, xp.ones_like(count)), centres)


def _assign(points: _Points, centres: Array) -> tuple[Array, Array, Array]:
    """Labels (b, R, n), members (b, R, K, n) as truths or as 0 and 1, squared distances (b, R, n)."""
    xp, K = namespace(centres), centres.shape[2]
    products = points.products(centres)
    compiled = kernels(products)
    if compiled is not None:
        return compiled.nearest(products, points.square, _SLACK)
    least = xp.min(products, axis=2)
    distance = least + points.square
    bound = least + _SLACK * (points.square + xp.abs(distance))
    near = products <= bound[:, :, None, :]
    # The first of the near ones has the highest rank: small integers, cheaper than argmax.
    small = xp.uint8 if K < 2**8 else xp.int32
    ranks = xp.arange(K, 0, -1, dtype=small, device=array_api_compat.device(centres))
    ranks = xp.astype(near, small) * ranks[:, None]
    top = xp.max(ranks, axis=2)
    return K - top, ranks == top[:, :, None, :], distance


def _fill(points: _Points, labels: Array, distance: Array, sums: Array) -> tuple[Array, Array]:
    """Let every empty cluster take the farthest sample, each another one, while any is off its centre.

    A lone member is not taken: its centre moves there anyway.
    """
    xp = namespace(sums)
    labels, slack = xp.astype(labels, xp.int64), _SLACK * xp.max(points.square, axis=2, keepdims=True)
    clusters, samples = _arange_like(sums[..., -1]), _arange_like(distance)
    empty = sums[..., -1] == 0
    for _ in range(sums.shape[2] - 1):
        lone = xp.take_along_axis(sums[..., -1], labels, axis=2) == 1
        distance = xp.where(lone, xp.zeros_like(distance), distance)
        far = xp.max(distance, axis=2, keepdims=True)
        able = (far > 0) & xp.any(empty, axis=2, keepdims=True)
        if not xp.any(able):
            break
        sample = _first((distance > 0) & (distance >= far - slack))
        to = able & (clusters == _first(empty)[..., None])
        off = able & (clusters == _pick(labels, sample)[..., None])
        change = xp.astype(to, sums.dtype) - xp.astype(off, sums.dtype)
        sums = sums + change[..., None] * points.at(sample)[:, :, None, :]
        taken = able & (samples == sample[..., None])
        labels = xp.where(taken, _first(empty)[..., None], labels)
        distance = xp.where(taken, xp.zeros_like(distance), distance)
        empty = empty & ~to
    return labels, sums


# Choosing ----------------------------------------------------------------------------------------


def _first(true: Array) -> Array:
    """Index of the first True along the last axis; 0 if there is none."""
    xp = namespace(true)
    return xp.argmax(xp.astype(true, xp.uint8), axis=-1)


def _first_least(values: Array, slack: Array) -> Array:
    """Index of the first value along the last axis that is the least but for ``slack``."""
    return _first(values <= namespace(values).min(values, axis=-1, keepdims=True) + slack)


def _pick(x: Array, index: Array) -> Array:
    """``x[i, j, …, index[i, j, …], :]``: one entry along the axis after those of ``index``."""
    xp, axis = namespace(x), index.ndim
    index = xp.reshape(index, (*index.shape, *[1] * (x.ndim - axis)))
    return xp.squeeze(xp.take_along_axis(x, index, axis=axis), axis=axis)


def _arange_like(x: Array) -> Array:
    """0, 1, … for the last axis of ``x``."""
    return namespace(x).arange(x.shape[-1], device=array_api_compat.device(x))


# The border --------------------------------------------------------------------------------------


def _check(V: Array, n_clusters: int, n_init: int) -> None:
    if V.ndim != 3 or 0 in V.shape:
        msg = f"V must have shape (samples, embeddings, components), none of them 0; got {tuple(V.shape)}."
        raise ValueError(msg)
    n = V.shape[0]
    if not (_is_whole(n_clusters) and 1 <= n_clusters <= n):
        msg = f"n_clusters must be an integer from 1 to {n}, the number of samples; got {n_clusters!r}."
        raise ValueError(msg)
    if not (_is_whole(n_init) and n_init >= 1):
        msg = f"n_init must be an integer of at least 1; got {n_init!r}."
        raise ValueError(msg)


def _is_whole(value: object) -> bool:
    return isinstance(value, Integral) and not isinstance(value, bool)


def _seeds(seed: Any, B: int) -> np.ndarray:
    """One seed to every embedding."""
    seeds = np.asarray(seed)
    if (
        seeds.shape not in ((), (B,))
        or seeds.dtype.kind not in "iu"
        or not ((seeds >= 0) & (seeds < 2**32)).all()
    ):
        msg = f"seed must be an integer from 0 to 2**32 - 1, or {B} of them, one per embedding; got {seed!r}."
        raise ValueError(msg)
    return np.broadcast_to(seeds, (B,))


def _memory(V: Array) -> int:
    on_cpu = not is_torch(V) or V.device.type == "cpu"
    return _MEMORY["cpu" if on_cpu else "accelerator"]


def _chunks(
    shape: tuple[int, int, int], n_clusters: int, n_init: int, memory: int
) -> list[tuple[slice, list[slice]]]:
    """Embeddings, and blocks of their restarts, whose temporaries fit into ``memory`` bytes."""
    (n, B, k), L = shape, _n_candidates(n_clusters)
    # Of a restart: products and masks, or k-means++ candidates; labels and distances; centres.
    restart = n * (max(11 * n_clusters, 24 * L) + 48) + 40 * n_clusters * (k + 1)
    shared = n * 40 * (k + 1)
    embeddings = max(1, int(memory // (shared + n_init * restart)))
    restarts = n_init if embeddings > 1 else int(np.clip((memory - shared) // restart, 1, n_init))
    blocks = _slices(n_init, restarts)
    return [(settings, blocks) for settings in _slices(B, embeddings)]


def _slices(size: int, step: int) -> list[slice]:
    return [slice(start, min(start + step, size)) for start in range(0, size, step)]
