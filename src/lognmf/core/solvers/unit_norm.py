"""Components of unit norm: ``(u_j t, v_j / t)`` is the same fit for every t, so the norm may be fixed.

Free, the penalties and the graph choose t; at the optimum they shrink V until the graph term is
small, whatever its weight. With ``‖u_j‖ = 1`` the scale is in V, and the weights mean what they say.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from lognmf.core.arrays import Array, like, namespace, without_subnormals
from lognmf.core.terms.protocol import Halves, summed

NEWTON_STEPS = 60
"""Most steps to the multiplier; a handful is usual."""


def unit_columns(U: Array, F: Array, *, inverse: bool = False) -> tuple[Array, Array]:
    """U (p, B, k) with columns of unit norm, and ``F`` times (or over) their former norms."""
    xp = namespace(U)
    one = like(1.0, U)
    largest = xp.max(U, axis=0)
    largest = xp.where(largest > 0, largest, one)
    U = U / largest  # whose squares neither vanish nor overflow
    norms = xp.linalg.vector_norm(U, axis=0)
    norms = xp.where(norms > 0, norms, one)
    scale = norms * largest
    return U / norms, F / scale if inverse else F * scale


def multiply_on_sphere(F: Array, terms: Sequence[Halves], *, linear: bool = False) -> Array:
    """``F ← F · Σneg / (Σpos + μ F)``, with μ for every column such that its norm stays 1.

    Why nothing rises: the multiplicative update minimises, entry by entry, a bound
    ``Σ d x² − 2 e x`` of the objective that touches it at F, with d = pos/F and e = neg. Over columns
    of unit norm the minimum of that same bound is ``x = e / (d + μ)`` for the one μ with norm 1
    and all d + μ > 0: on the unit sphere adding μ‖x‖² changes nothing, so μ may be added to the diagonal. So
    the bound falls, and the objective with it. Terms with the bound ``pos·x − neg·F log x`` (``linear``) have
    ``Σ d x²/2 − e log x`` above it, with e = neg·F, whose minimum is ``x = √(e / (d + μ))``.
    """
    xp = namespace(F)
    tiny = float(xp.finfo(F.dtype).smallest_normal)
    least, zero, one, none = (like(number, F) for number in (tiny, 0.0, 1.0, -float("inf")))
    neg, pos = summed(terms, slice(None))
    neg = neg * F if linear else neg
    power = 0.5 if linear else 1.0
    neg = xp.where(neg > tiny, neg, least)  # an entry without pull takes what is left
    alive = F > 0
    with np.errstate(over="ignore", invalid="ignore"):
        own = pos / xp.where(alive, F, one)
        score = xp.where(alive, neg - own, none)
        # At μ = max(e − d) one entry is 1: the norm is not below 1, and μ is not below that. Newton's
        # method on 1/norm, which is concave in μ, lands left of the solution from wherever it
        # begins, then climbs and never passes it. It begins where F would stay as it is. All is
        # measured from the highest entry, since d and μ may be large and almost cancel.
        highest = score == xp.max(score, axis=0)
        base = xp.max(xp.where(highest, own, none), axis=0)
        lowest = xp.max(xp.where(highest & (own == base), neg, none), axis=0)
        beyond = own - base
        stay = xp.sum(neg if linear else F * neg, axis=0) - xp.sum(F * F * beyond, axis=0)
        shift = xp.where((stay > lowest) & (stay < float("inf")), stay, lowest)
        for _ in range(NEWTON_STEPS):
            gap = beyond + shift
            usable = alive & (gap > 0)
            gap = xp.where(usable, gap, one)
            x = xp.where(usable, (neg / gap) ** power, zero)
            square = xp.sum(x * x, axis=0)
            excess = square ** (0.5 / power) - 1
            # A column without entries has norm 0 for every μ, and stays.
            off = (xp.abs(excess) > 8 * float(xp.finfo(F.dtype).eps)) & (square > 0)
            if not bool(xp.any(off)):
                break
            slope = xp.sum(x * x / gap, axis=0)
            moved = shift + excess * square / slope
            shift = xp.where(off, xp.where(moved > lowest, moved, lowest), shift)
    unit, _ = unit_columns(x, x[:0, ...])
    return without_subnormals(unit, tiny)
