"""The plain data fit ``‖X − V Uᵀ‖²_F`` (``eq_nmf``), and residuals without forming ``V Uᵀ``."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from lognmf.core.arrays import (
    Array,
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
from lognmf.core.data import InMemory
from lognmf.core.terms.protocol import FitHalves, Halves
from lognmf.core.threads import by_rows


@dataclass(frozen=True)
class Frobenius:
    """``‖X − V Uᵀ‖²_F``: plain least squares, no outlier part."""

    quadratic: ClassVar[bool] = True
    by_residual: ClassVar[bool] = True

    def project(self, block: InMemory, U: Array) -> Array:
        return block.times(U)

    def separate(self, block: InMemory, U: Array, V: Array, XU: Array) -> Array:
        return V[:0, :, 0]

    def sums(self, block: InMemory, U: Array, V: Array, kept: Array) -> tuple[Array, ...]:
        return block.t_times(V), folded(gram(V, V))

    def halves_U(self, U: Array, sums: tuple[Array, ...]) -> Halves:
        XtV, VV = sums
        return FitHalves(U, XtV, unfolded(VV))

    def halves_V(self, block: InMemory, U: Array, V: Array, XU: Array, kept: Array, U_old: Array) -> Halves:
        return FitHalves(V, XU, gram(U, U))

    def squared_residuals(
        self, block: InMemory, U: Array, V: Array, XU: Array, matter_above: Array | None = None
    ) -> Array:
        return squared_residuals(block, U, V, XU, matter_above)

    def row_values(self, block: InMemory, U: Array, V: Array, XU: Array) -> Array:
        return squared_residuals(block, U, V, XU)

    def take(self, index: np.ndarray) -> Frobenius:
        return self


def folded(G: Array) -> Array:
    """Gram matrices (B, k, k) as an array (1, B, k·k), as a state holds them."""
    return namespace(G).reshape(G, (1, G.shape[0], -1))


def unfolded(G: Array) -> Array:
    """Gram matrices (B, k, k) from an array (1, B, k·k)."""
    k = math.isqrt(G.shape[2])
    return namespace(G).reshape(G, (G.shape[1], k, k))


BLOCK_NUMBERS, GPU_BLOCK_NUMBERS = 1 << 15, 1 << 27
"""How many residuals are formed together when they are taken explicitly: a cache, a card full."""


def squared_residuals(
    block: InMemory, U: Array, V: Array, XU: Array, matter_above: Array | None = None
) -> Array:
    """``r_i² = ‖x_i − U v_i‖²`` of every sample and setting, shape (n, B).

    The short form ``‖x‖² − 2 (XU)·v + vᵀ(UᵀU)v`` needs no product with ``X``, but loses
    digits where the fit is close. Samples where it may be off by more than 1e-9 of itself (in float32,
    by more than half of the digits) are taken explicitly, in small blocks; ``matter_above`` (B,) says
    below which value nobody looks, so that no work is spent there.
    """
    xp = namespace(U)
    size = block.squared_norms[:, None]
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
        short = compiled.squared_residuals(block.squared_norms, V, XU, mix(V, UU))
    digits = max(1e-5, float(xp.finfo(U.dtype).eps) ** 0.5)

    def doubtful(size: Array) -> Array:
        few = (short < digits * size) | ~xp.isfinite(short)  # squares overflow before residuals do
        return few if matter_above is None else few & (short > matter_above)

    unsure = doubtful(size)
    # Both answers at once, since a GPU is made to wait for each.
    signed, any_unsure = to_numpy(xp.stack([xp.any(UU < 0), xp.any(unsure)])).tolist()
    if signed:
        # Parts of any sign cancel in vᵀ(UᵀU)v, whose terms add up to this much at most.
        unsure = doubtful(size + V.shape[2] * row_dot(V**2, xp.linalg.diagonal(UU)[None, :, :]))
    return _explicit_where(unsure, short, block, U, V) if signed or any_unsure else short


def _explicit_where(doubtful: Array, short: Array, data: InMemory, U: Array, V: Array) -> Array:
    """``short`` with its doubtful entries replaced by explicitly computed ones."""
    xp = namespace(U)
    n, p = data.shape
    numbers = GPU_BLOCK_NUMBERS if on_gpu(U) else BLOCK_NUMBERS
    height = min(n, max(1, numbers // p))
    width = max(1, numbers // (height * p))
    pieces, done = [], 0
    for start in height * np.unique(np.flatnonzero(to_numpy(xp.any(doubtful, axis=1))) // height):
        rows = slice(int(start), min(int(start) + height, n))
        block, unsure = short[rows, :], doubtful[rows, :]
        settings = np.flatnonzero(to_numpy(xp.any(unsure, axis=0)))
        for first in range(0, settings.size, width):
            some = settings[first : first + width]
            explicit = _explicit(data.dense_rows(rows), take(U, some), take(V[rows, ...], some))
            block = put(block, some, xp.where(take(unsure, some), explicit, take(block, some)))
        pieces += [short[done : rows.start, :], block]
        done = rows.stop
    return xp.concat([*pieces, short[done:, :]], axis=0)


def _explicit(X: Array, U: Array, V: Array) -> Array:
    """``‖x_i − U v_i‖²`` by its definition: (m, p), (p, B, k), (m, B, k) → (m, B)."""
    xp = namespace(U)
    difference = X - xp.matmul(xp.permute_dims(V, (1, 0, 2)), xp.permute_dims(U, (1, 2, 0)))
    return xp.permute_dims(row_dot(difference, difference), (1, 0))
