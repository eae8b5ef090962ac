"""Which array library, and the few products everything is made of.

A factor ``F`` has shape (rows, B, k): B settings side by side. Folding it to
(rows, B·k) is free, so a product with the data is *one wide product* for the whole
batch. The array decides the library: torch in, torch out. This module and ``matrices.py``
alone know how libraries differ.
"""

from __future__ import annotations

import functools
import sys
from typing import Any, TypeAlias

import array_api_compat
import numpy as np
import scipy.sparse as sp

from lognmf.core import sparse_products
from lognmf.core.rows import Rows, each, here, reduced
from lognmf.core.threads import is_split, split
from lognmf.parameters import unmasked

Array: TypeAlias = Any
"""A dense array of any array-API library (NumPy, torch, …)."""

NARROW = 160
"""Columns up to which a product with Xᵀ is taken the other way round; measured."""

LEAST = 64
"""Rows, or columns, of a part of a product that is split: narrower ones take BLAS twice as long."""

Matrix: TypeAlias = Any
"""A dense array or a sparse matrix: whatever can stand left of a product."""


def namespace(*arrays: Array) -> Any:
    """Array-API namespace of the dense ``arrays``."""
    return array_api_compat.array_namespace(*arrays)


def is_torch(x: object) -> bool:
    """Whether ``x`` is a torch tensor (torch is not imported to find out)."""
    return array_api_compat.is_torch_array(x)


def on_gpu(x: Array) -> bool:
    """Whether ``x`` is a tensor on a GPU."""
    return is_torch(x) and x.is_cuda


def to_numpy(x: Array) -> np.ndarray:
    """``x``, rows, an array of any library or what NumPy makes one of, as a NumPy array on the CPU."""
    x = here(x)
    if is_torch(x):
        return x.detach().cpu().numpy()
    other = not isinstance(x, np.ndarray) and array_api_compat.is_array_api_obj(x)
    return np.from_dlpack(x) if other and hasattr(x, "__dlpack__") else np.asarray(unmasked(x))


def like(values: Any, pattern: Array) -> Array:
    """Dense ``values`` in the library, dtype and device of ``pattern``."""
    xp, device = namespace(pattern), array_api_compat.device(pattern)
    if is_torch(values) and not is_torch(pattern):
        values = to_numpy(values)
    return xp.asarray(values, dtype=pattern.dtype, device=device)


def product(M: Matrix, F: Array) -> Array:
    """``M @ F_b`` for every setting b as one wide product: (m, n) × (n, B, k) → (m, B, k)."""
    xp = namespace(F)
    n, B, k = F.shape
    wide = xp.reshape(F, (n, B * k))
    if sp.issparse(M):
        return sparse_products.times(M, wide).reshape(M.shape[0], B, k)
    if isinstance(M, np.ndarray) and isinstance(F, np.ndarray):
        return _split_product(M, wide).reshape(M.shape[0], B, k)
    return xp.reshape(M @ wide, (M.shape[0], B, k))


def _split_product(M: np.ndarray, N: np.ndarray) -> np.ndarray:
    """``M @ N`` of matrices or stacks of them; a large one is split along the first axis."""
    cost = 2.0 * M.size * N.shape[-1]
    if not is_split(cost):
        return np.matmul(M, N)
    out = np.empty((*M.shape[:-1], N.shape[-1]), dtype=np.result_type(M, N))

    def fill(part: slice) -> None:
        np.matmul(M[part], N if N.ndim == 2 else N[part], out=out[part])

    split(fill, M.shape[0], cost, least=1 if M.ndim == 3 else LEAST)
    return out


def product_t(X: Matrix, F: Array) -> Array:
    """``Xᵀ @ F_b`` for every setting b: (n, p) × (n, B, k) → (p, B, k)."""
    n, B, k = F.shape
    if isinstance(X, np.ndarray) and X.dtype == np.float64 and X.flags.c_contiguous and B * k <= NARROW:
        return _narrow_product_t(X, F.reshape(n, B * k)).reshape(X.shape[1], B, k)
    return product(X.T, F)


def _narrow_product_t(X: np.ndarray, F: np.ndarray) -> np.ndarray:
    """``(Fᵀ X)ᵀ``: OpenBLAS is a sixth faster this way round for few columns in double precision."""
    out = np.empty((X.shape[1], F.shape[1]), dtype=X.dtype)

    def fill(part: slice) -> None:
        out[part] = (F.T @ X[:, part]).T

    split(fill, X.shape[1], 2.0 * X.size * F.shape[1], least=LEAST)
    return out


def gram(F: Array, G: Array) -> Array:
    """``F_bᵀ G_b`` for every setting b: (n, B, k) × (n, B, l) → (B, k, l)."""
    xp = namespace(F)
    left, right = xp.permute_dims(F, (1, 2, 0)), xp.permute_dims(G, (1, 0, 2))
    return _split_product(left, right) if isinstance(F, np.ndarray) else xp.matmul(left, right)


def mix(F: Array, M: Array) -> Array:
    """``F_b M_b`` for every setting b: (n, B, k) × (B, k, l) → (n, B, l)."""
    xp = namespace(F)
    if not (isinstance(F, np.ndarray) or is_torch(F)):
        return xp.permute_dims(xp.matmul(xp.permute_dims(F, (1, 0, 2)), M), (1, 0, 2))
    # Written straight into the (n, B, l) layout, so that the fold stays free.
    out = xp.empty((*F.shape[:2], M.shape[2]), dtype=F.dtype, device=array_api_compat.device(F))
    multiply = np.matmul if isinstance(F, np.ndarray) else sys.modules["torch"].bmm
    multiply(xp.permute_dims(F, (1, 0, 2)), M, out=xp.permute_dims(out, (1, 0, 2)))
    return out


def kernels(F: Array) -> Any:
    """The module of fused kernels, if ``F`` is where they run; None elsewhere, and without Triton."""
    return _kernels() if on_gpu(F) else None


@functools.cache
def _kernels() -> Any:
    try:
        from lognmf.core.torch import kernels

        kernels.try_out()
    except Exception:
        # No Triton, no C compiler, an old card, …: whatever it is, the plain formulas serve.
        return None
    return kernels


def repeated(shares: Array, k: int) -> Array:
    """Numbers of each setting (…, B) for each of its k components: (…, B, k), in memory of its own.

    Arithmetic with it runs along whole rows of a batch, which broadcasting a last axis of
    length 1 does not.
    """
    xp = namespace(shares)
    return xp.reshape(xp.repeat(shares, k, axis=-1), (*shares.shape, k))


def scale_rows(F: Array, share: Array) -> Array:
    """Rows of F (rows, B, k) times ``share`` (rows, B)."""
    compiled = kernels(F)
    if compiled is not None:
        return compiled.scale_rows(F, share)
    return F * (share[:, :, None] if is_torch(F) else repeated(share, F.shape[2]))


def blend(F: Array, G: Array, share: Array) -> Array:
    """``share · G + (1 − share) · F`` row by row, nonnegative for nonnegative F and G.

    F and G have shape (rows, B, k), ``share`` (rows, B) lies in [0, 1]; F may be overwritten.
    """
    if is_torch(F):
        return sys.modules["torch"].lerp(F, G, share[:, :, None])
    wide = repeated(share, F.shape[2])
    F *= 1 - wide
    wide *= G
    F += wide
    return F


def row_dot(F: Array, G: Array) -> Array:
    """Inner products of rows: (n, B, k) × (n, B, k) → (n, B)."""
    # torch's own vecdot makes a matrix product of every row, several times slower on a GPU.
    return (F * G).sum(-1) if is_torch(F) else namespace(F).vecdot(F, G, axis=-1)


def without_subnormals(F: Array, tiny: float) -> Array:
    """``F`` with zeros where it is below ``tiny``; F may be overwritten."""
    if is_torch(F):
        return sys.modules["torch"].nn.functional.threshold_(F, tiny, 0.0)
    F[tiny > F] = 0.0
    return F


def ratio(neg: Array, pos: Array) -> Array:
    """``neg / pos`` elementwise, 0 where ``pos`` is 0."""
    xp = namespace(pos)
    known = pos > 0
    return xp.where(known, neg / xp.where(known, pos, xp.ones_like(pos)), xp.zeros_like(pos))


def positive(M: Array) -> Array:
    """``(|M| + M) / 2``: the positive part."""
    xp = namespace(M)
    return xp.where(M > 0, M, xp.zeros_like(M))


def smallest(F: Rows) -> np.ndarray:
    """The smallest entry of every column, (B, k) on the CPU."""
    return to_numpy(reduced(_column_minima, F, combine=np.minimum)[0])


def largest(F: Rows) -> np.ndarray:
    """The largest entry of every column, (B, k) on the CPU."""
    return to_numpy(reduced(_column_maxima, F, combine=np.maximum)[0])


def _column_minima(F: Array) -> tuple[Array]:
    return (namespace(F).min(F, axis=0),)


def _column_maxima(F: Array) -> tuple[Array]:
    return (namespace(F).max(F, axis=0),)


def gram_of_rows(F: Rows, G: Rows) -> Array:
    """`gram` of arrays with a row per sample, wherever they are."""
    return reduced(_grams, F, G)[0]


def _grams(F: Array, G: Array) -> tuple[Array]:
    return (gram(F, G),)


def zeros_like(F: Rows) -> Rows:
    """Zeros in the place of ``F``."""
    return each(_zeros_like, F)


def _zeros_like(F: Array) -> Array:
    return namespace(F).zeros_like(F)


def total(x: Array, axis: int | tuple[int, ...]) -> Array:
    """Sum over ``axis``, accumulated in float64 whatever the dtype of ``x``."""
    xp = namespace(x)
    return xp.sum(x, axis=axis, dtype=xp.float64)


def double(F: Array) -> Array:
    """``F`` in float64; itself where it is."""
    xp = namespace(F)
    return F if F.dtype == xp.float64 else xp.astype(F, xp.float64)


def take(F: Rows, index: np.ndarray, axis: int = 1) -> Rows:
    """Settings ``index`` of a batch whose settings stand along ``axis``."""
    return each(_taken, F, shared=(index, axis))


def _taken(F: Array, index: np.ndarray, axis: int) -> Array:
    xp = namespace(F)
    where = xp.asarray(index, device=array_api_compat.device(F))
    return xp.take(F, where, axis=axis)


def put(F: Array, index: np.ndarray, part: Array) -> Array:
    """Batch ``F`` (n, B) with ``part`` in the place of its settings ``index``; F may be overwritten."""
    xp = namespace(F)
    if isinstance(F, np.ndarray) or is_torch(F):
        F[:, xp.asarray(index, device=array_api_compat.device(F))] = part
        return F
    place = {b: c for c, b in enumerate(index.tolist())}
    columns = [part[:, place[b]] if b in place else F[:, b] for b in range(F.shape[1])]
    return xp.stack(columns, axis=1)


def chosen(which: np.ndarray, one: Rows, other: Rows) -> Rows:
    """Settings of ``one`` where ``which`` (B,), of ``other`` elsewhere; no copy if all are alike."""
    if which.all() or not which.any():
        return one if which.all() else other
    return each(_chosen, one, other, shared=(which,))


def _chosen(one: Array, other: Array, which: np.ndarray) -> Array:
    xp = namespace(one)
    where = xp.asarray(which.reshape(1, -1, *[1] * (one.ndim - 2)), device=array_api_compat.device(one))
    return xp.where(where, one, other)


def join(parts: list[Rows]) -> Rows:
    """Batches (n, B_i, …) side by side."""
    return parts[0] if len(parts) == 1 else each(_joined, *parts)


def _joined(*parts: Array) -> Array:
    return namespace(*parts).concat(parts, axis=1)


def contiguous(F: Array) -> Array:
    """``F`` with contiguous rows; no copy if they are. Of other libraries, F itself."""
    if isinstance(F, np.ndarray):
        return np.ascontiguousarray(F)
    return F.contiguous() if is_torch(F) else F


def copied(F: Array) -> Array:
    """``F`` in memory of its own, rows contiguous; a Dask array is only a plan, and stays."""
    if isinstance(F, np.ndarray):
        return np.array(F, order="C")
    if is_torch(F):
        return F.clone().contiguous()
    return F if type(F).__module__.startswith("dask") else namespace(F).asarray(F, copy=True)
