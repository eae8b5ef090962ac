"""The plain data fit ``‖X − V Uᵀ‖²_F`` (``eq_nmf``)."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from lognmf.core.arrays import Array, Matrix, gram, product_t, squared_row_norms, total
from lognmf.core.terms.halves import FitHalves
from lognmf.core.terms.protocol import Halves
from lognmf.core.terms.residual import squared_residuals


@dataclass(frozen=True)
class Frobenius:
    """``‖X − V Uᵀ‖²_F``: every sample speaks in full, S = 0."""

    X: Matrix
    squared_norms: Array = field(repr=False)

    @classmethod
    def of(cls, X: Matrix) -> Frobenius:
        """The term for the data ``X`` (n, p)."""
        return cls(X, squared_row_norms(X))

    def separate(self, U: Array, V: Array, XU: Array) -> Array:
        return None

    def halves_U(self, U: Array, V: Array, kept: Array) -> Halves:
        return FitHalves(U, product_t(self.X, V), gram(V, V))

    def halves_V(self, U: Array, V: Array, XU: Array, kept: Array, U_old: Array) -> Halves:
        return FitHalves(V, XU, gram(U, U))

    def squared_residuals(self, U: Array, V: Array, XU: Array, matter_above: Array | None = None) -> Array:
        return squared_residuals(self.X, self.squared_norms, U, V, XU, matter_above)

    def value(self, U: Array, V: Array, XU: Array) -> Array:
        return total(self.squared_residuals(U, V, XU), axis=0)

    def take(self, index: np.ndarray) -> Frobenius:
        return self
