"""First factors where the blocks are on workers: the same for the same blocks, whatever the workers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import scipy.linalg
import scipy.sparse as sp
from scipy.sparse.linalg import eigsh

from lognmf.core.arrays import Array, like, to_numpy
from lognmf.core.data import InMemory
from lognmf.core.starts import ARPACK_SEED
from lognmf.models.on_workers import Remote, RemoteCodes
from lognmf.models.worker_tasks import first_part

MOST_FEATURES = 8192
"""Features up to which ``XᵀX`` is made for a start by singular vectors."""

Drawn = tuple[np.ndarray, Sequence[Any]]
"""U (p, k), and futures of the codes (rows, k) of every block."""


def draw_remote(
    data: Remote, model: Any, given: Sequence[Any], rng: np.random.RandomState
) -> tuple[Array, RemoteCodes]:
    """U (p, B, k) and codes on workers of all restarts, as a batch."""
    U0, V0 = given
    if U0 is not None and V0 is not None:
        draws = [(U0[:, 0, :], V0)]
    else:
        draws = [STARTS[model.init](data, model.n_components, rng) for _ in range(model.n_init)]
        draws = [(U if U0 is None else U0[:, 0, :], V if V0 is None else V0) for U, V in draws]
    U = np.stack([U for U, _ in draws], axis=1).astype(data.pattern.dtype)
    parts = data.source.client.map(first_part, data.blocks, *[V for _, V in draws], pure=False)
    return U, RemoteCodes(data, tuple(parts), len(draws), model.n_components)


def _random(data: Remote, k: int, rng: np.random.RandomState) -> Drawn:
    """Uniform on [0, 1)."""
    U = rng.uniform(size=(data.shape[1], k))
    heights, dtype = np.diff(data.source.edges).tolist(), data.pattern.dtype
    return U, data.source.client.map(_uniform, heights, _seeds(data, rng), k=k, dtype=dtype, pure=False)


def _seeds(data: Remote, rng: np.random.RandomState) -> list[int]:
    return rng.randint(2**31 - 1, size=len(data.blocks)).tolist()


def _uniform(height: int, seed: int, k: int, dtype: Any) -> np.ndarray:
    return np.random.RandomState(seed).uniform(size=(height, k)).astype(dtype)


def _scaled(data: Remote, k: int, rng: np.random.RandomState) -> Drawn:
    """The random start with U at the scale of the data."""
    U, V = _random(data, k, rng)
    fitting, VV = data.added(data.source.client.map(_fitting, data.blocks, V, U=data.sent(U), pure=False))
    return U * (fitting / np.sum((U.T @ U) * VV)), V


def _fitting(block: InMemory, V: np.ndarray, U: np.ndarray) -> tuple[Any, ...]:
    XU = _times(block, U)
    return np.sum(XU * V, dtype=np.float64), V.T.astype(np.float64) @ V


def _nndsvda(data: Remote, k: int, rng: np.random.RandomState) -> Drawn:
    """NNDSVD, the zeros of each factor filled with the factor's mean."""
    U, codes = _nndsvd(data, k, rng)
    seeds = [None] * len(data.blocks)
    return np.where(U > 0, U, U.mean()), data.source.client.map(
        _left, data.blocks, seeds, codes=data.sent(codes), pure=False
    )


def _nndsvdar(data: Remote, k: int, rng: np.random.RandomState) -> Drawn:
    """NNDSVD, zeros filled with random numbers up to a hundredth of the factor's mean."""
    U, codes = _nndsvd(data, k, rng)
    U = np.where(U > 0, U, U.mean() / 100 * (1 - rng.uniform(size=U.shape)))
    return U, data.source.client.map(
        _left, data.blocks, _seeds(data, rng), codes=data.sent(codes), pure=False
    )


def _nndsvd(data: Remote, k: int, rng: np.random.RandomState) -> tuple[np.ndarray, tuple[Any, ...]]:
    """U (p, k) with zeros, and what `_left` needs to make V of a block: `lognmf.core.starts.nndsvda`."""
    n, p = data.shape
    if p > MOST_FEATURES:
        msg = (
            f"On workers a start by singular vectors takes at most {MOST_FEATURES} features; got {p}. "
            'Use init="scaled".'
        )
        raise ValueError(msg)
    space, values = _right_vectors(data, min(k, n, p), rng.uniform(size=min(n, p)))
    to_left = space / np.where(values > 0, values, np.inf)
    squares, sums = data.added(data.each(_both_sides, data.blocks, to_left))
    U, scale, sign, mean = np.zeros((p, k)), np.zeros(k), np.zeros(k), 0.0
    for j, value in enumerate(values):
        sides = (
            [(0, np.abs(space[:, j]))] if j == 0 else [(s, np.maximum(s * space[:, j], 0)) for s in (1, -1)]
        )
        share, s, u = max(
            ((np.sqrt(squares[s, j]) * np.linalg.norm(u), s, u) for s, u in sides), key=lambda side: side[0]
        )
        if share == 0 or value == 0:
            continue
        size = np.sqrt(value * share)
        U[:, j], scale[j], sign[j] = size * u / np.linalg.norm(u), size / np.sqrt(squares[s, j]), s
        mean += scale[j] * sums[s, j] / (n * k)
    return U, (to_left, scale, sign, mean)


def _right_vectors(data: Remote, count: int, first: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The leading right singular vectors (p, count) and singular values, largest first."""
    (G,) = data.added(data.each(_gram, data.blocks))
    p = len(G)
    if 2 * count >= p:
        squares, space = scipy.linalg.eigh(G, subset_by_index=(p - count, p - 1))
    else:
        squares, space = eigsh(G, count, v0=np.resize(first, p), rng=ARPACK_SEED)
    values = np.sqrt(np.maximum(squares, 0))
    values[values < 1e-7 * values.max()] = 0  # beyond the rank of X: the root of what rounding leaves
    order = np.argsort(-values, kind="stable")
    space = np.where(np.abs(space) > p**0.5 * np.finfo(float).eps, space, 0.0)
    return space[:, order], values[order]


def _gram(block: InMemory) -> tuple[np.ndarray]:
    G = block.X.T @ block.X
    return ((G.toarray() if sp.issparse(G) else to_numpy(G)).astype(np.float64) / block.unit**2,)


def _both_sides(block: InMemory, to_left: np.ndarray) -> tuple[np.ndarray, ...]:
    """Sums of squares and of entries of left singular vectors: all, the positive, the negative ones."""
    left = _vectors(block, to_left)
    parts = np.abs(left), np.maximum(left, 0), np.maximum(-left, 0)
    return np.stack([(F**2).sum(axis=0) for F in parts]), np.stack([F.sum(axis=0) for F in parts])


def _vectors(block: InMemory, to_left: np.ndarray) -> np.ndarray:
    left = _times(block, to_left)
    return np.where(np.abs(left) > 1e2 * np.finfo(left.dtype).eps, left, 0.0).astype(np.float64)


def _times(block: InMemory, F: np.ndarray) -> np.ndarray:
    """``X @ F`` in NumPy."""
    return to_numpy(block.times(like(F[:, None, :], block.pattern)))[:, 0, :]


def _left(block: InMemory, seed: int | None, codes: tuple[Any, ...]) -> np.ndarray:
    """The codes of a block, their zeros filled."""
    to_left, scale, sign, mean = codes
    left = _vectors(block, to_left)
    own = sign[: left.shape[1]]
    V = np.zeros((len(left), len(scale)))
    V[:, : len(own)] = np.where(own == 0, np.abs(left), np.maximum(own * left, 0)) * scale[: len(own)]
    fill = mean if seed is None else mean / 100 * (1 - np.random.RandomState(seed).uniform(size=V.shape))
    return np.where(V > 0, V, fill)


STARTS: dict[str, Callable[[Remote, int, np.random.RandomState], Drawn]] = {
    "random": _random,
    "scaled": _scaled,
    "nndsvda": _nndsvda,
    "nndsvdar": _nndsvdar,
}
"""Starts by the estimators' ``init``."""
