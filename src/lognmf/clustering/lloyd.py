"""Samples of many embeddings as matrices, and Lloyd's iterations on them.

A *problem* is one restart of one embedding; the restarts of an embedding share its samples. Arrays have
axes b (embeddings), R (restarts), K (clusters), n (samples) and k (components). The costly steps are two
matrix products: centres × samples (distances) and members × samples (sums).
"""

from __future__ import annotations

from dataclasses import dataclass

import array_api_compat
import numpy as np

from lognmf.core.arrays import Array, kernels, namespace, take, to_numpy

SLACK = 1e-11
"""Rounding error allowed, relative to the squared norms a distance is computed from."""

_SHRINK = 0.8
"""The running problems are regrouped when they fill at most this share of the batch."""


@dataclass(frozen=True)
class Points:
    """Samples of b embeddings, ready for products.

    ``rows`` (b, k + 1, n) are the samples, scaled and centred, above a row of ones, with which
    a product with centres also adds their norms, and a product with members also counts
    them. ``square`` (b, 1, n) are the squared norms of the samples.
    """

    rows: Array
    square: Array

    @classmethod
    def of(cls, V: Array) -> Points:
        xp = namespace(V)
        X = xp.permute_dims(xp.astype(V, xp.float64), (1, 2, 0))
        # Neither changes the clusters. Unscaled, tiny codes would vanish when squared; uncentred,
        # a common offset would cost digits of every distance.
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

    def take(self, index: np.ndarray) -> Points:
        return Points(take(self.rows, index, axis=0), take(self.square, index, axis=0))

    def at(self, index: Array) -> Array:
        """Samples with their ones: (b, …) indices → (b, …, k + 1)."""
        xp, (b, width, _) = namespace(index), self.rows.shape
        columns = xp.take_along_axis(self.rows, xp.reshape(index, (b, 1, -1)), axis=2)
        return xp.reshape(xp.permute_dims(columns, (0, 2, 1)), (*index.shape, width))

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
        """Squared distances (b, …, n), with those within rounding set to zero."""
        xp = namespace(distance)
        b, _, n = self.square.shape
        least = SLACK * xp.reshape(self.square, (b, *[1] * (distance.ndim - 2), n))
        return xp.where(distance > least, distance, xp.zeros_like(distance))


def lloyd(points: Points, centres: Array, max_iter: int, tol: float) -> Array:
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
    """Places (b', R') in the flat batch that hold all running problems; None if too few have ended.

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
    """Centres of all problems in their original order."""
    xp = namespace(parts[0][1])
    order = np.concatenate([problem.reshape(-1) for problem, _ in parts])
    flat = xp.concat([xp.reshape(x, (-1, 1, *x.shape[2:])) for _, x in parts])
    return _regroup(flat, np.argsort(order).reshape(shape))


def _step(points: Points, centres: Array) -> tuple[Array, Array]:
    """Labels for the centres, and the centres of these labels; an empty cluster's stays."""
    xp = namespace(centres)
    labels, members, distance = assign(points, centres)
    sums = points.sums(members)
    if xp.any(sums[..., -1] == 0):
        labels, sums = _fill(points, labels, points.snap(distance), sums)
    count = sums[..., -1:]
    return labels, xp.where(count > 0, sums[..., :-1] / xp.maximum(count, xp.ones_like(count)), centres)


def assign(points: Points, centres: Array) -> tuple[Array, Array, Array]:
    """Labels (b, R, n), members (b, R, K, n) as truths or as 0 and 1, squared distances (b, R, n)."""
    xp, K = namespace(centres), centres.shape[2]
    products = points.products(centres)
    compiled = kernels(products)
    if compiled is not None:
        return compiled.nearest(products, points.square, SLACK)
    least = xp.min(products, axis=2)
    distance = least + points.square
    bound = least + SLACK * (points.square + xp.abs(distance))
    near = products <= bound[:, :, None, :]
    # The first of the near ones has the highest rank: small integers, cheaper than argmax.
    small = xp.uint8 if K < 2**8 else xp.int32
    ranks = xp.arange(K, 0, -1, dtype=small, device=array_api_compat.device(centres))
    ranks = xp.astype(near, small) * ranks[:, None]
    top = xp.max(ranks, axis=2)
    return K - top, ranks == top[:, :, None, :], distance


def _fill(points: Points, labels: Array, distance: Array, sums: Array) -> tuple[Array, Array]:
    """Let each empty cluster take the farthest sample that no other took, while any is off its centre.

    A cluster's only member is not taken: its centre moves there anyway.
    """
    xp = namespace(sums)
    labels, slack = xp.astype(labels, xp.int64), SLACK * xp.max(points.square, axis=2, keepdims=True)
    clusters, samples = _arange_like(sums[..., -1]), _arange_like(distance)
    empty = sums[..., -1] == 0
    for _ in range(sums.shape[2] - 1):
        lone = xp.take_along_axis(sums[..., -1], labels, axis=2) == 1
        distance = xp.where(lone, xp.zeros_like(distance), distance)
        far = xp.max(distance, axis=2, keepdims=True)
        able = (far > 0) & xp.any(empty, axis=2, keepdims=True)
        if not xp.any(able):
            break
        sample = first((distance > 0) & (distance >= far - slack))
        to = able & (clusters == first(empty)[..., None])
        off = able & (clusters == pick(labels, sample)[..., None])
        change = xp.astype(to, sums.dtype) - xp.astype(off, sums.dtype)
        sums = sums + change[..., None] * points.at(sample)[:, :, None, :]
        taken = able & (samples == sample[..., None])
        labels = xp.where(taken, first(empty)[..., None], labels)
        distance = xp.where(taken, xp.zeros_like(distance), distance)
        empty = empty & ~to
    return labels, sums


def first(true: Array) -> Array:
    """Index of the first True along the last axis; 0 if there is none."""
    xp = namespace(true)
    return xp.argmax(xp.astype(true, xp.uint8), axis=-1)


def first_least(values: Array, slack: Array) -> Array:
    """Index of the first value along the last axis that is the least but for ``slack``."""
    return first(values <= namespace(values).min(values, axis=-1, keepdims=True) + slack)


def pick(x: Array, index: Array) -> Array:
    """``x[i, j, …, index[i, j, …], :]``: one entry along the axis after those of ``index``."""
    xp, axis = namespace(x), index.ndim
    index = xp.reshape(index, (*index.shape, *[1] * (x.ndim - axis)))
    return xp.squeeze(xp.take_along_axis(x, index, axis=axis), axis=axis)


def _arange_like(x: Array) -> Array:
    """0, 1, … for the last axis of ``x``."""
    return namespace(x).arange(x.shape[-1], device=array_api_compat.device(x))
