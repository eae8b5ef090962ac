"""The robust data fit ``min_S ‖X − S − V Uᵀ‖²_F + γ Σ_i φ(‖s_i‖)`` (``eq_obj_log_robust``).

The best S scales each sample's residual, ``S = diag(1 − kept)(X − V Uᵀ)``, so it is known
by one number a sample and never formed. Then

    X − S = diag(kept) X + diag(1 − kept) V Uᵀ,

a mix of two nonnegative matrices, which is why it is nonnegative (``thm_nonnegative_xs``).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from lognmf.core.arrays import Array, gram, kernels, namespace, on_gpu, positive, scale_rows, take
from lognmf.core.data import InMemory
from lognmf.core.terms.frobenius import folded, squared_residuals, unfolded
from lognmf.core.terms.protocol import FitHalves, Halves, RowNorm, fused
from lognmf.core.threads import by_rows


def kept_share(row_norm: RowNorm, r: Array, tau: Array) -> Array:
    """Share of a residual of norm ``r`` that the shrinkage leaves in the fit, in [0, 1].

    ``(r − ξ)/r`` with ξ the shrunk norm. Where ξ > 0 it is stationary, ``r − ξ = τ φ'(ξ)``,
    and that form keeps its digits when almost everything is taken out (ξ ≈ r).
    """
    compiled = kernels(r)
    if compiled is not None and r.ndim == 2 and (name := fused(row_norm)) in compiled.ROW_NORMS:
        return compiled.kept_share(name, r, tau)
    xp = namespace(r)
    xi = row_norm.shrink(r, tau)
    active = xi > 0
    one = xp.ones_like(r)
    share = tau * row_norm.slope(xi) / xp.where(active, r, one)
    return xp.where(active & (share < 1), share, one)


def robust_value(row_norm: RowNorm, r: Array, weight: Array) -> Array:
    """``min_s (r − s)² + weight · φ(s)``: what a residual of norm ``r`` costs, elementwise."""
    in_fit = kept_share(row_norm, r, weight / 2) * r
    return in_fit**2 + weight * row_norm.value(r - in_fit)


@dataclass(frozen=True)
class Robust:
    """Samples that fit badly are partly left to an outlier part S; ``weight`` γ (B,) is its price."""

    row_norm: RowNorm
    weight: Array

    quadratic: ClassVar[bool] = True
    by_residual: ClassVar[bool] = True

    def project(self, block: InMemory, U: Array) -> Array:
        return block.times(U)

    def separate(self, block: InMemory, U: Array, V: Array, XU: Array) -> Array:
        """The S step (``eq_update_s``): S = shrink(X − V Uᵀ, γ/2), as the inlier weight (n, B)."""
        tau = self.weight / 2
        # Digits of a residual inside the dead zone do not matter; half of it leaves room for rounding.
        matter_above = self.row_norm.dead_zone(tau) ** 2 / 4
        squared = squared_residuals(block, U, V, XU, matter_above)
        return kept_share(self.row_norm, squared**0.5, tau)

    def sums(self, block: InMemory, U: Array, V: Array, kept: Array) -> tuple[Array, ...]:
        """``Xᵀ diag(kept) V``, ``VᵀV`` and ``Vᵀ diag(1 − kept) V``."""
        VV = gram(V, V)
        if not _possible(kept < 1):
            return block.t_times(V), folded(VV), folded(namespace(VV).zeros_like(VV))
        kept_V = by_rows(lambda rows: scale_rows(V[rows, ...], kept[rows, :]), V)
        XtV = block.t_times(kept_V)
        # Nonnegative but for rounding.
        return XtV, folded(VV), folded(positive(VV - gram(V, kept_V)))

    def halves_U(self, U: Array, sums: tuple[Array, ...]) -> Halves:
        """``(X − S)ᵀV`` and ``U VᵀV`` (``eq_update_u_robust``)."""
        XtV, VV, taken = sums
        return FitHalves(U, XtV, unfolded(VV), unfolded(taken) if _possible(taken > 0) else None)

    def halves_V(self, block: InMemory, U: Array, V: Array, XU: Array, kept: Array, U_old: Array) -> Halves:
        """``(X − S)U`` and ``V UᵀU`` (``eq_update_v_robust``).

        S was made before U moved, hence the cross Gram matrix ``U_oldᵀ U``.
        """
        if not _possible(kept < 1):
            return FitHalves(V, XU, gram(U, U))
        return FitHalves(V, XU, gram(U, U), gram(U_old, U), kept)

    def squared_residuals(self, block: InMemory, U: Array, V: Array, XU: Array) -> Array:
        return squared_residuals(block, U, V, XU)

    def row_values(self, block: InMemory, U: Array, V: Array, XU: Array) -> Array:
        return robust_value(self.row_norm, squared_residuals(block, U, V, XU) ** 0.5, self.weight)

    def outlier_part(self, squared: Array) -> tuple[Array, Array]:
        """Share and norm of what S takes out of residuals of these squared norms, each (n, B)."""
        r = squared**0.5
        share = 1 - kept_share(self.row_norm, r, self.weight / 2)
        return share, share * r

    def take(self, index: np.ndarray) -> Robust:
        return replace(self, weight=take(self.weight, index, axis=0))


def _possible(outlier: Array) -> bool:
    """False if no sample has an outlier part, so that the iteration is that of the plain fit.

    On a GPU the answer would make it wait, and costs more than the general formulas: there it is True.
    """
    return on_gpu(outlier) or bool(namespace(outlier).any(outlier))
