"""Each sample's distance from its reconstruction, without forming the reconstruction."""

from __future__ import annotations

from lognmf.core.arrays import Array, Matrix, by_rows, dense_rows, gram, mix, namespace, positive, row_dot

BLOCK_NUMBERS = 1 << 15
"""How many numbers of ``X`` are looked at together when a residual is taken explicitly."""


def squared_residuals(
    X: Matrix, squared_norms: Array, U: Array, V: Array, XU: Array, matter_above: Array | None = None
) -> Array:
    """``r_i² = ‖x_i − U v_i‖²`` of every sample and setting, shape (n, B).

    The short form ``‖x‖² − 2 (XU)·v + vᵀ(UᵀU)v`` needs no product with ``X``, but loses
    digits where the fit is close. Samples where it may have lost more than half of
    them are taken explicitly, in small blocks of rows; ``matter_above`` (B,) says below
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

    short = by_rows(short_form, V)
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
    rows_a_block = max(1, BLOCK_NUMBERS // p)
    blocks = []
    for start in range(0, n, rows_a_block):
        rows = slice(start, min(start + rows_a_block, n))
        block = short[rows, :]
        if bool(xp.any(doubtful[rows, :])):
            block = xp.where(doubtful[rows, :], _explicit(dense_rows(X, rows), U, V[rows, ...]), block)
        blocks.append(block)
    return xp.concat(blocks, axis=0)


def _explicit(X: Array, U: Array, V: Array) -> Array:
    """``‖x_i − U v_i‖²`` by its definition: (m, p), (p, B, k), (m, B, k) → (m, B)."""
    xp = namespace(U)
    columns = []
    for b in range(U.shape[1]):
        difference = X - V[:, b, :] @ U[:, b, :].T
        columns.append(xp.vecdot(difference, difference, axis=-1))
    return xp.stack(columns, axis=1)
