"""Norms of the outlier part, by the norms of its rows: ℓ2,log and ℓ2,1."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from lognmf.core.arrays import Array, namespace


@dataclass(frozen=True)
class L2Log:
    """``Σ_i log(1 + ‖s_i‖)``: large outliers cost little more than medium ones."""

    fused: ClassVar[str] = "l2log"

    def value(self, s: Array) -> Array:
        return namespace(s).log1p(s)

    def slope(self, s: Array) -> Array:
        return 1 / (1 + s)

    def shrink(self, r: Array, tau: Array) -> Array:
        """The ℓ2,log shrinkage ξ of a residual of norm ``r`` (``eq_sol_soft_thres``).

        ξ = (r − 1)/2 + √((1 + r)²/4 − τ) where that is real, positive and no worse than
        0; else 0. For r < 1 it is written as (r − τ) over the other root's distance, so
        that small results keep their digits.
        """
        xp = namespace(r)
        middle, edge = (1 + r) / 2, xp.sqrt(tau)
        inside = middle - edge  # (1 + r)²/4 − τ is its product with (middle + edge)
        root = xp.sqrt(xp.where(inside > 0, inside, xp.zeros_like(inside))) * xp.sqrt(middle + edge)
        half = (r - 1) / 2
        below_one = r < 1
        xi = xp.where(below_one, (r - tau) / xp.where(below_one, root - half, xp.ones_like(r)), half + root)
        candidate = (inside > 0) & (xi > 0)
        xi = xp.where(candidate, xi, xp.zeros_like(xi))
        # f(ξ) ≤ f(0) with f(x) = (x − r)²/2 + τ log(1 + x), multiplied out so that r² cancels.
        no_worse = xi / 2 - r + tau * xp.log1p(xi) / xp.where(candidate, xi, xp.ones_like(xi)) <= 0
        return xp.where(candidate & no_worse, xi, xp.zeros_like(xi))

    def dead_zone(self, tau: Array) -> Array:
        """``min(τ, √τ)``: below τ = 1 shrinkage begins at r = τ, above it not before r = 2√τ − 1 ≥ √τ."""
        return namespace(tau).minimum(tau, tau**0.5)


@dataclass(frozen=True)
class L21:
    """``Σ_i ‖s_i‖``."""

    fused: ClassVar[str] = "l21"

    def value(self, s: Array) -> Array:
        return s

    def slope(self, s: Array) -> Array:
        return namespace(s).ones_like(s)

    def shrink(self, r: Array, tau: Array) -> Array:
        """Soft threshold: ``max(r − τ, 0)``."""
        xp = namespace(r)
        return xp.where(r > tau, r - tau, xp.zeros_like(r))

    def dead_zone(self, tau: Array) -> Array:
        return tau
