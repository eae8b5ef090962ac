"""The robust data fit ``min_S ‖X − S − V Uᵀ‖²_F + γ Σ_i φ(‖s_i‖)`` (``eq_obj_log_robust``).

The best S scales each sample's residual, ``S = diag(1 − kept)(X − V Uᵀ)``, so it is known
by one number a sample and never formed. Then

    X − S = diag(kept) X + diag(1 − kept) V Uᵀ,

a mix of two nonnegative matrices, which is why it is nonnegative (``thm_nonnegative_xs``).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from lognmf.core.arrays import (
    Array,
    Matrix,
    by_rows,
    gram,
    kernels,
    namespace,
    positive,
    product_t,
    scale_rows,
    take,
    total,
)
from lognmf.core.terms.frobenius import Frobenius
from lognmf.core.terms.halves import FitHalves
from lognmf.core.terms.protocol import Halves, RowNorm


def kept_share(row_norm: RowNorm, r: Array, tau: Array) -> Array:
    """Share of a residual of norm ``r`` that the shrinkage leaves in the fit, in [0, 1].

    ``(r − ξ)/r`` with ξ the shrunk norm. Where ξ > 0 it is stationary, ``r − ξ = τ φ'(ξ)``,
    and that form keeps its digits when almost everything is taken out (ξ ≈ r).
    """
    compiled = kernels(r)
    if compiled is not None and type(row_norm).__name__ in compiled.ROW_NORMS and r.ndim == 2:
        return compiled.kept_share(compiled.ROW_NORMS[type(row_norm).__name__], r, tau)
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
    """Samples that fit badly are partly set aside; ``weight`` γ (B,) says how dearly."""

    plain: Frobenius
    row_norm: RowNorm
    weight: Array

    @classmethod
    def of(cls, X: Matrix, row_norm: RowNorm, weight: Array) -> Robust:
        """The term for the data ``X`` (n, p)."""
        return cls(Frobenius.of(X), row_norm, weight)

    @property
    def X(self) -> Matrix:
        return self.plain.X

    def separate(self, U: Array, V: Array, XU: Array) -> Array:
        """The S step (``eq_update_s``): S = shrink(X − V Uᵀ, γ/2), as the kept share (n, B).

        None where S = 0 in every setting: the iteration is then that of the plain fit.
        """
        tau = self.weight / 2
        # Digits of a residual inside the dead zone do not matter; half of it leaves room for rounding.
        matter_above = self.row_norm.dead_zone(tau) ** 2 / 4
        squared = self.plain.squared_residuals(U, V, XU, matter_above)
        kept = kept_share(self.row_norm, squared**0.5, tau)
        return kept if bool(namespace(kept).any(kept < 1)) else None

    def halves_U(self, U: Array, V: Array, kept: Array) -> Halves:
        """``(X − S)ᵀV`` and ``U VᵀV`` (``eq_update_u_robust``)."""
        if kept is None:
            return self.plain.halves_U(U, V, kept)
        kept_V = by_rows(lambda rows: scale_rows(V[rows, ...], kept[rows, :]), V)
        XV, VV = product_t(self.X, kept_V), gram(V, V)
        taken = positive(VV - gram(V, kept_V))  # Vᵀ diag(1 − kept) V, nonnegative but for rounding
        return FitHalves(U, XV, VV, taken)

    def halves_V(self, U: Array, V: Array, XU: Array, kept: Array, U_old: Array) -> Halves:
        """``(X − S)U`` and ``V UᵀU`` (``eq_update_v_robust``).

        S was made before U moved, hence the cross Gram matrix ``U_oldᵀ U``.
        """
        if kept is None:
            return self.plain.halves_V(U, V, XU, kept, U_old)
        return FitHalves(V, XU, gram(U, U), gram(U_old, U), kept)

    def squared_residuals(self, U: Array, V: Array, XU: Array) -> Array:
        return self.plain.squared_residuals(U, V, XU)

    def value(self, U: Array, V: Array, XU: Array) -> Array:
        return total(
            robust_value(self.row_norm, self.squared_residuals(U, V, XU) ** 0.5, self.weight), axis=0
        )

    def taken(self, U: Array, V: Array, XU: Array) -> tuple[Array, Array]:
        """Share and norm of what the best S takes out of each sample, (n, B) and (n, B)."""
        r = self.squared_residuals(U, V, XU) ** 0.5
        share = 1 - kept_share(self.row_norm, r, self.weight / 2)
        return share, share * r

    def take(self, index: np.ndarray) -> Robust:
        return replace(self, weight=take(self.weight, index, axis=0))
