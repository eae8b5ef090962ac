"""First factors. Every start is strictly positive where it can be: zeros never leave.

A start is one function of the data, wherever they are, and one line in `STARTS`.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.linalg
import scipy.sparse as sp
from scipy.sparse.linalg import ArpackError, LinearOperator, eigsh

from lognmf.core.arrays import Array, Matrix, double, like, namespace, on_gpu, to_numpy
from lognmf.core.data import Data, InBlocks, InMemory
from lognmf.core.matrices import on_cpu
from lognmf.core.rows import Rows, each, reduced

ARPACK: dict[str, Any] = {"rng": 0} if "rng" in inspect.signature(eigsh).parameters else {}
"""Where ARPACK's Krylov space ends early it goes on from random numbers; without a seed no fit repeats. SciPy
before 1.17 takes none."""

Factors = tuple[np.ndarray, Rows]
"""U (p, k) and V (n, k) in NumPy float64."""


@dataclass(frozen=True)
class Start:
    """A way to draw first factors.

    ``draw(data, k, rng)`` draws only from ``rng``. U and V grow with X by these powers of its unit.
    """

    draw: Callable[[Any, int, np.random.RandomState], Factors]
    powers: tuple[float, float] = (0.0, 0.0)
    in_memory: bool = False  # whether it needs all of X in memory
    of_graph: bool = False  # whether ``draw`` also takes ``W``, the neighbour graph of the samples

    def __call__(self, data: Any, k: int, rng: np.random.RandomState, **options: Any) -> Factors:
        """First factors for data in their own units."""
        return self.draw(data, k, rng, **options)


def random(data: Data, k: int, rng: np.random.RandomState) -> Factors:
    """Uniform on [0, 1): the paper's start."""
    return rng.uniform(size=(data.shape[1], k)), data.uniform(k, rng)


def scaled(data: Data, k: int, rng: np.random.RandomState) -> Factors:
    """The random start with U at the scale of the data: the best multiple of ``V Uᵀ`` for X.

    For unit-norm samples the plain random start is some hundred times too large. The first
    update of U repairs that, unless an outlier part may absorb the whole misfit: then hardly
    anything moves for hundreds of iterations.
    """
    U, V = random(data, k, rng)
    XU = data.times(like(U[:, None, :], data.pattern))
    fitting, VV = reduced(_fit_of_start, XU, V)
    return U * (fitting / np.sum((U.T @ U) * VV)), V


def _fit_of_start(XU: Array, V: np.ndarray) -> tuple[Any, ...]:
    return np.sum(to_numpy(XU)[:, 0, :] * V), V.T @ V


def nndsvda(data: Data, k: int, rng: np.random.RandomState) -> Factors:
    """NNDSVD, the zeros of each factor filled with the factor's mean.

    Boutsidis and Gallopoulos (2008): the dominant nonnegative part of each singular
    pair. A multiplicative update cannot leave zero, so plain NNDSVD is not offered.
    They, and scikit-learn, fill with the mean of X, which is right for no scale but 1.
    """
    U, V, mean = _nndsvd(data, k, rng)
    return np.where(U > 0, U, U.mean()), each(_filled, V, shared=(mean,))


def _filled(V: np.ndarray, number: float) -> np.ndarray:
    return np.where(V > 0, V, number)


def nndsvdar(data: Data, k: int, rng: np.random.RandomState) -> Factors:
    """NNDSVD, zeros filled with random numbers up to a hundredth of the factor's mean."""
    U, V, mean = _nndsvd(data, k, rng)
    U = _sprinkled(U, rng.uniform(size=U.shape), U.mean())
    return U, each(_sprinkled, V, data.uniform(k, rng), shared=(mean,))


def _sprinkled(F: np.ndarray, uniform: np.ndarray, mean: float) -> np.ndarray:
    # 1 − [0, 1) is in (0, 1]: no zero can be drawn.
    return np.where(F > 0, F, mean / 100 * (1 - uniform))


STARTS: dict[str, Start] = {
    "random": Start(random),
    "scaled": Start(scaled, (1.0, 0.0)),
    "nndsvda": Start(nndsvda, (0.5, 0.5)),
    "nndsvdar": Start(nndsvdar, (0.5, 0.5)),
}
"""Starts by the estimators' ``init``."""


def batch(
    start: Start, data: Data, k: int, n_init: int, rng: np.random.RandomState, **options: Any
) -> tuple[Array, Rows]:
    """``n_init`` starts drawn one after another, as a batch like the data: U (p, B, k), V (n, B, k).

    They are drawn for X itself, and are those of ``X / unit``.
    """
    whole = data.in_unit(1.0)
    draws = [start(whole, k, rng, **options) for _ in range(n_init)]
    powers = [data.unit**power for power in start.powers]
    U = like(np.stack([U for U, _ in draws], axis=1) / powers[0], data.pattern)
    return U, data.map_rows(_side_by_side, *(V for _, V in draws), shared=(powers[1],))[0][0]


def _side_by_side(block: InMemory, *more: Any) -> tuple[tuple[Array], tuple[()]]:
    *codes, unit = more
    return (like(np.stack([np.asarray(V) for V in codes], axis=1) / unit, block.pattern),), ()


def _nndsvd(data: Data, k: int, rng: np.random.RandomState) -> tuple[np.ndarray, Rows, float]:
    """Factors with exact zeros, and the mean of V; components beyond the rank of X are zero."""
    n, p = data.shape
    left, values, right = _leading_svd(data, min(k, n, p), rng)
    values = _without_rounding(values, values.max(initial=0), max(n, p))
    right = _without_rounding(right, np.abs(right).max(initial=0), max(n, p)).T
    (largest,) = reduced(_largest, left, combine=np.maximum)
    left = each(_without_rounding, left, shared=(largest, max(n, p)))
    squares, sums = reduced(_sides, left)
    U, scale, sign = np.zeros((p, k)), np.zeros(k), np.zeros(k)
    for j, value in enumerate(values):
        # X ≥ 0, so its first singular pair has one sign (Perron–Frobenius): side 0 is its size.
        sides = [0] if j == 0 else [1, -1]
        parts = {s: np.abs(right[:, j]) if s == 0 else np.maximum(s * right[:, j], 0) for s in sides}
        lengths = {s: (np.linalg.norm(parts[s]), np.sqrt(squares[s, j])) for s in sides}
        s = max(sides, key=lambda side: lengths[side][0] * lengths[side][1])
        length_u, length_v = lengths[s]
        size = np.sqrt(value * length_u * length_v)
        U[:, j], sign[j] = size * (parts[s] / (length_u or 1.0)), s
        scale[j] = size / (length_v or 1.0)
    mean = sum(scale[j] * sums[int(sign[j]), j] for j in range(len(values))) / (n * k)
    return U, each(_codes_of_left, left, shared=(sign, scale)), float(mean)


def _largest(F: np.ndarray) -> tuple[Any]:
    return (np.abs(F).max(initial=0),)


def _without_rounding(F: np.ndarray, largest: float, count: int) -> np.ndarray:
    """``F`` with zeros where sums of ``count`` numbers leave them but for rounding: they are to be filled."""
    return np.where(np.abs(F) > count**0.5 * np.finfo(F.dtype).eps * largest, F, 0.0)


def _sides(left: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Sums of squares and of sizes of the columns: of all entries, of positive and of negative ones."""
    parts = np.abs(left), np.maximum(left, 0), np.maximum(-left, 0)
    squares = np.stack([np.linalg.norm(F, axis=0) ** 2 for F in parts])
    return squares.astype(np.float64), np.stack([F.sum(axis=0, dtype=np.float64) for F in parts])


def _codes_of_left(left: np.ndarray, sign: np.ndarray, scale: np.ndarray) -> np.ndarray:
    """The codes from left singular vectors: of each the side ``sign``, times ``scale``; zeros beyond them."""
    V = np.zeros((len(left), len(scale)))
    count = left.shape[1]
    sides = np.where(sign[:count] == 0, np.abs(left), np.maximum(sign[:count] * left, 0))
    V[:, :count] = scale[:count] * sides
    return V


Triplets = tuple[Rows, np.ndarray, np.ndarray]
"""Left singular vectors (n, k), singular values, right ones (k, p)."""


def _leading_svd(data: Data, k: int, rng: np.random.RandomState) -> Triplets:
    """The k leading singular triplets, largest first; none for X = 0."""
    n, p = data.shape
    largest = data.facts.largest
    if largest == 0:
        return data.map_rows(_nothing)[0][0], np.zeros(0), np.zeros((0, p))
    if not isinstance(data, InMemory):
        first = rng.uniform(size=min(n, p)).astype(data.pattern.dtype)
        return _svd_of_blocks(data, k, first, largest)
    if on_gpu(data.X):
        return krylov_svd(data, k, rng, largest)
    data = InMemory(on_cpu(data.X))
    first = rng.uniform(size=min(n, p)).astype(data.X.dtype)
    try:
        if 2 * k >= min(n, p):  # too many for the iterative method; X is then small in one direction
            left, values, right = _dense_svd(data.X)
        else:
            left, values, right = _iterative_svd(data, k, first, largest)
    except ArpackError:
        left, values, right = _dense_svd(data.X)
    return left[:, :k], values[:k], right[:k]


def _nothing(block: InMemory) -> tuple[tuple[np.ndarray], tuple[()]]:
    return (np.zeros((block.shape[0], 0)),), ()


SPARE, KRYLOV_STEPS = 10, 8
"""Vectors beyond k, and products with XᵀX, that span the space in which `krylov_svd` looks for triplets."""


def krylov_svd(data: InMemory, k: int, rng: np.random.RandomState, largest: float) -> Triplets:
    """The k leading triplets of a tensor, nearly, by a few products with blocks of vectors on its device.

    They are the best in the space of ``(XᵀX)ⁱ Ω``, i = 0, 1, …, for random Ω (Musco and Musco 2015).
    """
    n, p = data.shape
    there, back = (data.times, data.t_times) if n >= p else (data.t_times, data.times)
    size, xp = min(n, p), namespace(data.pattern)
    if size <= (KRYLOV_STEPS + 1) * (k + SPARE):
        space = like(np.eye(size), data.pattern)
    else:
        block = like(rng.standard_normal((size, k + SPARE)), data.pattern)
        blocks = [block]
        for _ in range(KRYLOV_STEPS):
            # Divided by the largest entry twice, since squares may vanish or overflow.
            block = back(there(xp.linalg.qr(block)[0][:, None, :]) / largest)[:, 0, :] / largest
            blocks.append(block)
        space = xp.linalg.qr(xp.concat(blocks, axis=1))[0]
    image = double(there(space[:, None, :])[:, 0, :] / largest)
    space = double(space)
    for count in (space.shape[1], k):  # the second time in the eigenvectors: small values keep their digits
        turn = xp.flip(xp.linalg.eigh(image.T @ image)[1], axis=1)[:, :count]
        image, space = image @ turn, space @ turn
    values = to_numpy(xp.linalg.vector_norm(image, axis=0))
    left = to_numpy(image) / np.where(values > 0, values, 1.0)
    right = to_numpy(space)
    values = values * largest
    return (left, values, right.T) if n >= p else (right, values, left.T)


def _iterative_svd(data: InMemory, k: int, first: np.ndarray, largest: float) -> Triplets:
    """The leading triplets from the eigenvectors of XᵀX, or of XXᵀ if that is smaller.

    SciPy's `svds` takes no seed for restarts.
    """
    n, p = data.shape
    there, back = (data.times, data.t_times) if n >= p else (data.t_times, data.times)

    def gram(v: np.ndarray) -> np.ndarray:
        # Divided by the largest entry twice, since squares may vanish or overflow.
        return back(there(v.reshape(-1, 1, 1)) / largest).reshape(-1) / largest

    size = min(n, p)
    space = eigsh(LinearOperator((size, size), gram, dtype=first.dtype), k, v0=first, **ARPACK)[1]
    left, values, turned = scipy.linalg.svd(there(space[:, None, :])[:, 0, :], full_matrices=False)
    right = turned @ space.T
    return (left, values, right) if n >= p else (right.T, values, left.T)


def _svd_of_blocks(data: Any, k: int, first: np.ndarray, largest: float) -> Triplets:
    """The leading triplets, from XᵀX, which is made in one pass if it is no larger than a block.

    Else every step of the Lanczos iterations is a pass.
    """
    blocks: InBlocks = data
    p, dtype = data.shape[1], data.pattern.dtype
    size = largest if largest < np.finfo(dtype).tiny ** 0.25 else 1.0  # squares may vanish

    def gram(v: np.ndarray) -> np.ndarray:
        return blocks.gram_times(v / largest) / largest

    try:
        if 2 * k >= p:
            space = scipy.linalg.eigh(blocks.gram(size), subset_by_index=(p - k, p - 1))[1]
        else:
            fits = p**2 <= max(data.facts.entries, SMALL_GRAM)
            square = blocks.gram(size) if fits else LinearOperator((p, p), gram, dtype=dtype)
            space = eigsh(square, k, v0=np.resize(first, p), **ARPACK)[1]
    except ArpackError:
        space = scipy.linalg.qr(blocks.gram_times(np.eye(p, k, dtype=dtype) + first.mean()), mode="economic")[
            0
        ]
    image = data.times(space.astype(dtype)[:, None, :])
    space = space.astype(np.float64)
    for _ in range(2):  # the second time in the eigenvectors: small values keep their digits
        (G,) = reduced(_gram_of_image, image, shared=(largest,))
        turn = np.flip(np.linalg.eigh(G)[1], axis=1)
        image, space = each(_turned, image, shared=(turn,)), space @ turn
    (squares,) = reduced(_column_squares, image, shared=(largest,))
    values = np.sqrt(squares)
    # What is beyond the rank of X is the root of what rounding leaves.
    values = np.where(values < 1e-7 * values.max(), 0.0, values) * largest
    return each(_columns_over, image, shared=(np.where(values > 0, values, np.inf),)), values, space.T


SMALL_GRAM = 1 << 20
"""Entries of XᵀX that are always few enough to form it."""


def _gram_of_image(F: Array, largest: float) -> tuple[np.ndarray]:
    F = to_numpy(F).reshape(F.shape[0], -1).astype(np.float64) / largest
    return (F.T @ F,)


def _column_squares(F: Array, largest: float) -> tuple[np.ndarray]:
    return (np.sum((F / largest) ** 2, axis=0),)


def _turned(F: Array, turn: np.ndarray) -> np.ndarray:
    return to_numpy(F).reshape(F.shape[0], -1).astype(np.float64) @ to_numpy(turn)


def _columns_over(F: np.ndarray, values: np.ndarray) -> np.ndarray:
    return F / values


def _dense_svd(X: Matrix) -> Triplets:
    return scipy.linalg.svd(X.toarray() if sp.issparse(X) else X, full_matrices=False)
