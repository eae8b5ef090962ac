"""Codes ``V`` of samples for a fixed basis ``U``: what `transform` solves.

With U fixed and no graph the samples are independent, so *they* are the batch: each is
swept coordinate by coordinate until it has converged, and then leaves. The data enter
only through ``X @ U``.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from lognmf.core.arrays import Array, Matrix, gram, like, namespace, product, row_dot, squared_row_norms, take
from lognmf.core.state import State
from lognmf.core.terms.protocol import RowNorm, SeparablePenalty
from lognmf.core.terms.robust import kept_share, robust_value


@dataclass(frozen=True)
class Codes:
    """One sweep over the k coordinates of every sample's code; batch axis = samples.

    The robust fit is minimised through row weights: φ is concave in r², so
    ``kept · r²`` majorises it and a sweep never raises the objective.

    Parameters
    ----------
    gram : array of shape (k, k) or (n, k, k)
        ``UᵀU``, or one for each sample over its known entries.
    squared_norms : array of shape (n,)
        ``‖x_i‖²``.
    penalty : SeparablePenalty or None
        Separable penalty on the codes, its weight repeated for each sample.
    row_norm, weight : RowNorm or None, array of shape (n,) or None
        Of the robust fit; None for the plain one.
    bounded : bool
        Whether basis and data are nonnegative. Then no coordinate exceeds what it would be
        alone; with parts of very different size rounding could say otherwise.
    """

    gram: Array
    squared_norms: Array
    penalty: SeparablePenalty | None = None
    row_norm: RowNorm | None = None
    weight: Array | None = None
    bounded: bool = False

    @classmethod
    def of(
        cls,
        X: Matrix,
        U: Array,
        *,
        M: Array | None = None,
        penalty: Callable[[Array], SeparablePenalty] | None = None,
        beta: float = 0.0,
        row_norm: RowNorm | None = None,
        gamma: float = 0.0,
    ) -> tuple[Codes, State]:
        """The rule and its start for the samples ``X`` (n, p) and the basis ``U`` (p, k).

        ``M`` (n, p) of zeros and ones says which entries are known; the others are 0 in ``X``.
        """
        xp = namespace(U)
        n, (p, k) = X.shape[0], U.shape
        squared_norms = squared_row_norms(X)
        if M is None:
            UU = gram(U[:, None, :], U[:, None, :])[0, ...]
        else:
            UU = xp.reshape(M @ xp.reshape(U[:, :, None] * U[:, None, :], (p, k * k)), (n, k, k))
        U = U[:, None, :]
        XU = xp.permute_dims(product(X, U), (1, 0, 2))

        def repeated(weight: float) -> Array:
            return like(np.full(n, weight), U)

        rule = cls(
            UU,
            squared_norms,
            penalty(repeated(beta)) if penalty is not None and beta > 0 else None,
            row_norm,
            repeated(gamma) if row_norm is not None else None,
            bounded=bool(xp.min(UU) >= 0) and bool(xp.min(XU) >= 0),
        )
        # The best nonnegative multiple of the all-ones code.
        tiny = float(xp.finfo(U.dtype).smallest_normal)
        scale = xp.sum(XU, axis=2) / (xp.abs(xp.sum(UU, axis=(-2, -1))) + tiny)
        scale = xp.where(scale > 0, scale, xp.zeros_like(scale))
        return rule, State(XU[:0, ...], scale[:, :, None] * xp.ones_like(XU), (XU,))

    def residual_norms(self, V: Array, XU: Array) -> Array:
        """``‖x_i − U v_i‖``, shape (n,), from V and XU of shape (1, n, k)."""
        xp = namespace(V)
        VG = V @ self.gram if self.gram.ndim == 2 else (V[0, :, None, :] @ self.gram)[None, :, 0, :]
        squared = self.squared_norms - (row_dot(2 * XU, V) - row_dot(VG, V))[0, :]
        return xp.sqrt(xp.where(squared > 0, squared, xp.zeros_like(squared)))

    def kept(self, V: Array, XU: Array) -> Array:
        """Share of each sample's residual that stays in the fit, shape (n,)."""
        r = self.residual_norms(V, XU)
        if self.row_norm is None or self.weight is None:
            return namespace(V).ones_like(r)
        return kept_share(self.row_norm, r, self.weight / 2)

    def step(self, state: State) -> State:
        xp = namespace(state.V)
        tiny = float(xp.finfo(state.V.dtype).smallest_normal)
        (XU,) = state.aux
        kept = self.kept(state.V, XU)
        V = xp.asarray(state.V[0, ...], copy=True)
        for j in range(V.shape[1]):
            own = self.gram[..., j, j]
            column = self.gram[..., :, j]
            mixed = V @ column if column.ndim == 1 else xp.vecdot(V, column, axis=-1)
            slope = kept * (XU[0, :, j] - mixed + V[:, j] * own)
            curvature = kept * own + tiny
            best = self._minimise(curvature, slope, V[:, j])
            if self.bounded:
                most = XU[0, :, j] / (own + tiny)
                best = xp.where(best > most, most, best)
            V[:, j] = best
        return State(state.U, V[None, ...], state.aux)

    def _minimise(self, curvature: Array, slope: Array, at: Array) -> Array:
        if self.penalty is not None:
            return self.penalty.minimise(curvature, slope, self.penalty.weight, at)
        best = slope / curvature
        return namespace(best).where(best > 0, best, namespace(best).zeros_like(best))

    def value(self, state: State) -> Array:
        (XU,) = state.aux
        r = self.residual_norms(state.V, XU)
        if self.row_norm is None or self.weight is None:
            value = r**2
        else:
            value = robust_value(self.row_norm, r, self.weight)
        return value if self.penalty is None else value + self.penalty.value(state.V)

    def take(self, index: np.ndarray) -> Codes:
        return replace(
            self,
            gram=self.gram if self.gram.ndim == 2 else take(self.gram, index, axis=0),
            squared_norms=take(self.squared_norms, index, axis=0),
            penalty=None if self.penalty is None else self.penalty.take(index),
            weight=None if self.weight is None else take(self.weight, index, axis=0),
        )
