"""The ℓ2,1 norm of the outlier part, φ(s) = s (``eq_obj_log_robust2``)."""

from __future__ import annotations

from dataclasses import dataclass

from lognmf.core.arrays import Array, namespace


@dataclass(frozen=True)
class L21:
    """``Σ_i ‖s_i‖``."""

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
