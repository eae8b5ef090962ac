"""Second opinions on a fit, from `oracle`'s formulas: value, projected gradient, and SciPy's L-BFGS-B.

Samples are rows, as in the package. Nothing here is shared with it.
"""

from dataclasses import dataclass

import numpy as np
from scipy.optimize import minimize

import oracle


@dataclass(frozen=True)
class Opinion:
    """The objective of ``X`` (n, p) with the dense graph ``W`` (n, n) and the weights of a model."""

    X: np.ndarray
    W: np.ndarray
    alpha: float = 0.0
    beta: float = 0.0
    lam: float = 0.0
    gamma: float | None = None
    penalty: str = "log"
    row_norm: str = "l2log"
    unit: bool = False  # whether the columns of U have unit norm

    @classmethod
    def of(cls, model, X):
        """The objective that a fitted model minimises."""
        params = model.get_params()
        graph = getattr(model, "graph_", None)
        W = np.zeros((len(X), len(X))) if graph is None else graph.toarray()
        names = ("alpha", "beta", "lam", "gamma", "penalty", "row_norm")
        given = {name: params[name] for name in names if name in params}
        return cls(X, W, unit=params.get("unit_components", False), **given)

    def value(self, U, V):
        """The paper's formula, in numpy's longest floating-point type."""
        X, U, V, W = (M.astype(np.longdouble) for M in (self.X, U, V, self.W))
        weights = {"alpha": self.alpha, "beta": self.beta, "lam": self.lam, "gamma": self.gamma}
        return oracle.objective(X.T, U, V, W, **weights, penalty=self.penalty, row_norm=self.row_norm)

    def gradient(self, U, V):
        """Value and derivatives by U and V; those of the best S are zero, since it is the best."""
        R = self.X - V @ U.T
        value, kept = self._fit(np.linalg.norm(R, axis=1))
        # L V and Tr(VᵀLV) by differences: where V is huge and constant along the graph, all else cancels.
        apart = V[:, None, :] - V[None, :, :]
        smooth = np.einsum("ij,ijk->ik", self.W, apart)
        value += self.lam * np.einsum("ij,ijk->", self.W, apart**2) / 2
        value += self.alpha * oracle.size(U, self.penalty) + self.beta * oracle.size(V, self.penalty)
        R = kept[:, None] * R
        by_U = -2 * R.T @ V + self.alpha * oracle.slope(U, self.penalty)
        by_V = -2 * R @ U + 2 * self.lam * smooth + self.beta * oracle.slope(V, self.penalty)
        return value, by_U, by_V

    def _fit(self, r):
        """The data term of residuals of norms ``r``, and the share of each that stays in the fit."""
        if self.gamma is None:
            return np.sum(r**2), np.ones_like(r)
        tau, s = self.gamma / 2, np.zeros_like(r)
        if self.row_norm == "l21":
            s = np.maximum(r - tau, 0)
        else:
            inside = (1 + r) ** 2 / 4 - tau
            s = np.maximum((r - 1) / 2 + np.sqrt(np.maximum(inside, 0)), 0)
            s[(inside <= 0) | ((s - r) ** 2 / 2 + tau * np.log1p(s) > r**2 / 2)] = 0
        price = s if self.row_norm == "l21" else np.log1p(s)
        return np.sum((r - s) ** 2 + self.gamma * price), 1 - s / np.where(r > 0, r, 1)

    def step_gains(self, U, V):
        """What a step of coordinate descent could gain by U and by V, from the projected gradient.

        Along one coordinate x the data term and the graph are ``c t² + g t``, penalties lie below their
        tangents, and x + t ≥ 0: the minimum gains ``g²/4c``, or less if 0 is nearer. On the sphere the
        function of one column is ``−2 b·u`` at most, and gains ``2 (‖b₊‖ − b·u)``.
        """
        _, by_U, by_V = self.gradient(U, V)
        kept = self._fit(np.linalg.norm(self.X - V @ U.T, axis=1))[1]
        curve_U = np.sum(kept[:, None] * V**2, axis=0) + 0 * U
        curve_V = kept[:, None] * np.sum(U**2, axis=0) + self.lam * self.W.sum(axis=1)[:, None]
        gain_V = _coordinate_gains(V, by_V, curve_V).sum()
        if not self.unit:
            return _coordinate_gains(U, by_U, curve_U).sum(), gain_V
        b = curve_U * U - by_U / 2
        up = np.linalg.norm(np.maximum(b, 0), axis=0)
        up = np.where(up > 0, up, b.max(axis=0))
        used = (U > 0).any(axis=0) & (V > 0).any(axis=0)
        return np.sum(np.maximum(2 * (up - np.sum(b * U, axis=0)), 0) * used), gain_V

    def update_gain(self, U, V):
        """What a multiplicative update could gain: ``Σ x g²/(4 pos)``, along the sphere where U is on it."""
        _, by_U, by_V = self.gradient(U, V)
        kept = self._fit(np.linalg.norm(self.X - V @ U.T, axis=1))[1]
        neg_U = (kept[:, None] * self.X + (1 - kept[:, None]) * (V @ U.T)).T @ V
        neg_V = (kept[:, None] * self.X + (1 - kept[:, None]) * (V @ U.T)) @ U + self.lam * self.W @ V
        pos_U, pos_V = by_U / 2 + neg_U, by_V / 2 + neg_V
        if self.unit:
            along = np.sum(by_U * U, axis=0)
            by_U = by_U - along * U
            pos_U = np.maximum(pos_U - along / 2 * U, neg_U)
        tiny = np.finfo(float).tiny
        return sum(np.sum(F * g**2 / (4 * pos + tiny)) for F, g, pos in ((U, by_U, pos_U), (V, by_V, pos_V)))

    def descend(self, U, V, max_iter=5000):
        """U, V and value where L-BFGS-B ends from here; with unit components it moves u/‖u‖."""
        shape = U.shape

        def unpacked(z):
            U, V = z[: U0.size].reshape(shape), z[U0.size :].reshape(-1, shape[1])
            norms = np.linalg.norm(U, axis=0) if self.unit else np.ones(shape[1])
            return U / np.where(norms > 0, norms, 1), V, norms

        def function(z):
            U, V, norms = unpacked(z)
            value, by_U, by_V = self.gradient(U, V)
            if self.unit:
                by_U = np.where(norms > 0, (by_U - np.sum(by_U * U, axis=0) * U), 0)
                by_U = by_U / np.where(norms > 0, norms, 1)
            return value, np.concatenate([by_U.ravel(), by_V.ravel()])

        U0 = U
        found = minimize(
            function,
            np.concatenate([U.ravel(), V.ravel()]),
            jac=True,
            method="L-BFGS-B",
            bounds=[(0, None)] * (U.size + V.size),
            options={"maxiter": max_iter, "maxfun": 2 * max_iter, "ftol": 1e-13, "gtol": 1e-9, "maxcor": 20},
        )
        U, V, _ = unpacked(found.x)
        return U, V, found.fun


def _coordinate_gains(F, g, curvature):
    """Elementwise decrease of ``c t² + g t`` over t ≥ −F."""
    c = np.where(curvature > 0, curvature, 1)
    t = np.maximum(-g / (2 * c), -F)
    gain = -(c * t**2 + g * t)
    return np.where(curvature > 0, gain, g * F)
