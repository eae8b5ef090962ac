"""First factors. Every start is strictly positive where it can be: zeros never leave."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import scipy.linalg
import scipy.sparse as sp
from scipy.sparse.linalg import ArpackError, LinearOperator, eigsh

from lognmf.core.arrays import Matrix, double, is_torch, like, namespace, on_gpu, product, to_numpy
from lognmf.core.blocks import AsMatrix
from lognmf.core.data import InMemory
from lognmf.core.matrices import factor_pattern, on_cpu, stored_values

ARPACK_SEED = 0
"""Where ARPACK's Krylov space ends early it goes on from random numbers; without a seed no fit repeats."""

Start = Callable[[Matrix, int, np.random.RandomState], tuple[np.ndarray, np.ndarray]]
"""``(X, k, rng) -> U (p, k), V (n, k)`` in NumPy float64, drawing only from ``rng``."""


def random(X: Matrix, k: int, rng: np.random.RandomState) -> tuple[np.ndarray, np.ndarray]:
    """Uniform on [0, 1): the paper's start."""
    n, p = X.shape
    return rng.uniform(size=(p, k)), rng.uniform(size=(n, k))


def scaled(X: Matrix, k: int, rng: np.random.RandomState) -> tuple[np.ndarray, np.ndarray]:
    """The random start with U at the scale of the data: the best multiple of ``V Uᵀ`` for X.

    For unit-norm samples the plain random start is some hundred times too large. The first
    update of U repairs that, unless an outlier part may absorb the whole misfit: then hardly
    anything moves for hundreds of iterations.
    """
    U, V = random(X, k, rng)
    if isinstance(X, AsMatrix):
        XU = X @ U.astype(X.dtype)
    else:
        XU = to_numpy(product(X, like(U[:, None, :], factor_pattern(X))))[:, 0, :]
    return U * (np.sum(XU * V) / np.sum((U.T @ U) * (V.T @ V))), V


def nndsvda(X: Matrix, k: int, rng: np.random.RandomState) -> tuple[np.ndarray, np.ndarray]:
    """NNDSVD, the zeros of each factor filled with the factor's mean.

    Boutsidis and Gallopoulos (2008): the dominant nonnegative part of each singular
    pair. A multiplicative update cannot leave zero, so plain NNDSVD is not offered.
    They, and scikit-learn, fill with the mean of X, which is right for no scale but 1.
    """
    U, V = _nndsvd(X, k, rng)
    return np.where(U > 0, U, U.mean()), np.where(V > 0, V, V.mean())


def nndsvdar(X: Matrix, k: int, rng: np.random.RandomState) -> tuple[np.ndarray, np.ndarray]:
    """NNDSVD, zeros filled with random numbers up to a hundredth of the factor's mean."""

    def filled(F: np.ndarray) -> np.ndarray:
        # 1 − [0, 1) is in (0, 1]: no zero can be drawn.
        return np.where(F > 0, F, F.mean() / 100 * (1 - rng.uniform(size=F.shape)))

    U, V = _nndsvd(X, k, rng)
    return filled(U), filled(V)


STARTS: dict[str, Start] = {
    "random": random,
    "scaled": scaled,
    "nndsvda": nndsvda,
    "nndsvdar": nndsvdar,
}
"""Starts by the estimators' ``init``."""


def batch(
    start: Start, X: Matrix, k: int, n_init: int, rng: np.random.RandomState
) -> tuple[np.ndarray, np.ndarray]:
    """``n_init`` starts drawn one after another, as a batch: U (p, B, k), V (n, B, k)."""
    draws = [start(X, k, rng) for _ in range(n_init)]
    return np.stack([U for U, _ in draws], axis=1), np.stack([V for _, V in draws], axis=1)


def _nndsvd(X: Matrix, k: int, rng: np.random.RandomState) -> tuple[np.ndarray, np.ndarray]:
    """Factors with exact zeros; components beyond the rank of X are zero."""
    n, p = X.shape
    triplets = _leading_svd(X, min(k, n, p), rng)
    left, values, right = (_without_rounding(F, max(n, p)) for F in triplets)
    U, V = np.zeros((p, k)), np.zeros((n, k))
    for j, value in enumerate(values):
        v, u = left[:, j], right[j]
        if j == 0:
            # X ≥ 0, so its first singular pair has one sign (Perron–Frobenius).
            v, u = np.abs(v), np.abs(u)
        v, u, share = max(
            (_pair(np.maximum(s * v, 0), np.maximum(s * u, 0)) for s in (1, -1)),
            key=lambda pair: pair[2],
        )
        scale = np.sqrt(value * share)
        V[:, j], U[:, j] = scale * v, scale * u
    return U, V


def _without_rounding(F: np.ndarray, count: int) -> np.ndarray:
    """``F`` with zeros where sums of ``count`` numbers leave them but for rounding: they are to be filled."""
    return np.where(np.abs(F) > count**0.5 * np.finfo(F.dtype).eps * np.abs(F).max(initial=0), F, 0.0)


def _pair(v: np.ndarray, u: np.ndarray) -> tuple[np.ndarray, np.ndarray, float]:
    """Unit vectors along ``v`` and ``u``, and the product of their lengths."""
    length_v, length_u = np.linalg.norm(v), np.linalg.norm(u)
    return v / (length_v or 1.0), u / (length_u or 1.0), float(length_v * length_u)


def _leading_svd(X: Matrix, k: int, rng: np.random.RandomState) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The k leading singular triplets, largest first; none for X = 0."""
    n, p = X.shape
    if not isinstance(X, AsMatrix) and not on_gpu(X):
        X = on_cpu(X)
    values = stored_values(X)
    largest = 0.0 if 0 in values.shape else float(values.max())
    if largest == 0:
        return np.zeros((n, 0)), np.zeros(0), np.zeros((0, p))
    if is_torch(X):
        return krylov_svd(X, k, rng, largest)
    first = rng.uniform(size=min(n, p)).astype(X.dtype)
    if isinstance(X, AsMatrix):
        left, values, right = _svd_of_blocks(X, k, first, largest)
        return left[:, :k], values[:k], right[:k]
    try:
        if 2 * k >= min(n, p):  # too many for the iterative method; X is then small in one direction
            left, values, right = _dense_svd(X)
        else:
            left, values, right = _iterative_svd(X, k, first, largest)
    except ArpackError:
        left, values, right = _dense_svd(X)
    return left[:, :k], values[:k], right[:k]


SPARE, KRYLOV_STEPS = 10, 8
"""Vectors beyond k, and products with XᵀX, that span the space in which `krylov_svd` looks for triplets."""


def krylov_svd(
    X: Matrix, k: int, rng: np.random.RandomState, largest: float
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The k leading triplets of a tensor, nearly, by a few products with blocks of vectors on its device.

    They are the best in the space of ``(XᵀX)ⁱ Ω``, i = 0, 1, …, for random Ω (Musco and Musco 2015).
    """
    data, (n, p) = InMemory(X), X.shape
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


def _iterative_svd(X: Matrix, k: int, first: np.ndarray, largest: float) -> tuple[np.ndarray, ...]:
    """The leading triplets from the eigenvectors of XᵀX, or of XXᵀ if that is smaller.

    SciPy's `svds` takes no seed for restarts.
    """
    data, (n, p) = InMemory(X), X.shape
    there, back = (data.times, data.t_times) if n >= p else (data.t_times, data.times)

    def gram(v: np.ndarray) -> np.ndarray:
        # Divided by the largest entry twice, since squares may vanish or overflow.
        return back(there(v.reshape(-1, 1, 1)) / largest).reshape(-1) / largest

    size = min(n, p)
    space = eigsh(LinearOperator((size, size), gram, dtype=X.dtype), k, v0=first, rng=ARPACK_SEED)[1]
    left, values, turned = scipy.linalg.svd(there(space[:, None, :])[:, 0, :], full_matrices=False)
    right = turned @ space.T
    return (left, values, right) if n >= p else (right.T, values, left.T)


def _svd_of_blocks(X: AsMatrix, k: int, first: np.ndarray, largest: float) -> tuple[np.ndarray, ...]:
    """The leading triplets, from XᵀX, which is made in one pass if it is no larger than a block.

    Else every step of the Lanczos iterations is a pass.
    """
    p = X.shape[1]

    def gram(v: np.ndarray) -> np.ndarray:
        return X.gram_times(v / largest) / largest

    try:
        if 2 * k >= p:
            space = scipy.linalg.eigh(X.gram(largest), subset_by_index=(p - k, p - 1))[1]
        else:
            square = X.gram(largest) if X.gram_fits() else LinearOperator((p, p), gram, dtype=X.dtype)
            space = eigsh(square, k, v0=np.resize(first, p), rng=ARPACK_SEED)[1]
    except ArpackError:
        space = scipy.linalg.qr(X.gram_times(np.eye(p, k, dtype=X.dtype) + first.mean()), mode="economic")[0]
    left, values, turned = scipy.linalg.svd(X @ space, full_matrices=False)
    return left, values, turned @ space.T


def _dense_svd(X: Matrix) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    return scipy.linalg.svd(X.toarray() if sp.issparse(X) else X, full_matrices=False)
