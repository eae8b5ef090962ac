"""Each sample's distance from its reconstruction, without forming the reconstruction."""

from __future__ import annotations

import numpy as np

from lognmf.core.arrays import (
    Array,
    Matrix,
    by_rows,
    dense_rows,
    gram,
    kernels,
    mix,
    namespace,
    on_gpu,
    positive,
    put,
    row_dot,
    take,
    to_numpy,
)

BLOCK_NUMBERS, GPU_BLOCK_NUMBERS = 1 << 15, 1 << 27
"""How many residuals are formed together when they are taken explicitly: a cache, a card full."""


def squared_residuals(
    X: Matrix, squared_norms: Array, U: Array, V: Array, XU: Array, matter_above: Array | None = None
) -> Array:
    """``r_i² = ‖x_i − U v_i‖²`` of every sample and setting, shape (n, B).

    The short form ``‖x‖² − 2 (XU)·v + vᵀ(UᵀU)v`` needs no product with ``X``, but loses
    digits where the fit is close. Samples where it may have lost more than half of
    them are taken explicitly, in small blocks; ``matter_above`` (B,) says below
    which value nobody looks, so that no work is spent there.
    """
    xp = namespace(U)
    size = squared_norms[:, None]
    UU = gram(U, U)

    def short_form(rows: slice) -> Array:
        codes = V[rows, ...]
        pull = mix(codes, UU)
        pull -= 2 * XU[rows, ...]
        return positive(size[rows, :] + row_dot(pull, codes))

    compiled = kernels(V)
    if compiled is None:
        short = by_rows(short_form, V)
    else:
        short = compiled.squared_residuals(squared_norms, V, XU, mix(V, UU))
    doubtful = short < float(xp.finfo(U.dtype).eps) ** 0.5 * size
    if matter_above is not None:
        doubtful = doubtful & (short > matter_above)
    if not bool(xp.any(doubtful)):
        return short
    return _explicit_where(doubtful, short, X, U, V)


def _explicit_where(doubtful: Array, short: Array, X: Matrix, U: Array, V: Array) -> Array:
    """``short`` with its doubtful entries replaced by explicitly computed ones."""
    xp = namespace(U)
    n, p = X.shape
    numbers = GPU_BLOCK_NUMBERS if on_gpu(U) else BLOCK_NUMBERS
    height = min(n, max(1, numbers // p))
    width = max(1, numbers // (height * p))
    blocks = []
    for start in range(0, n, height):
        rows = slice(start, min(start + height, n))
        block, unsure = short[rows, :], doubtful[rows, :]
        settings = np.flatnonzero(to_numpy(xp.any(unsure, axis=0)))
        for first in range(0, settings.size, width):
            some = settings[first : first + width]
            explicit = _explicit(dense_rows(X, rows), take(U, some), take(V[rows, ...], some))
            block = put(block, some, xp.where(take(unsure, some), explicit, take(block, some)))
        blocks.append(block)
    return xp.concat(blocks, axis=0)


def _explicit(X: Array, U: Array, V: Array) -> Array:
    """``‖x_i − U v_i‖²`` by its definition: (m, p), (p, B, k), (m, B, k) → (m, B)."""
    xp = namespace(U)
    difference = X - xp.matmul(xp.permute_dims(V, (1, 0, 2)), xp.permute_dims(U, (1, 2, 0)))
    return xp.permute_dims(row_dot(difference, difference), (1, 0))
