"""What a factorisation costs, term by term, as coordinate descent asks for it in every step.

The sums are those of `Problem.value`, taken without its temporaries.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass, replace
from types import ModuleType

import numpy as np

from lognmf.core.arrays import gram, total
from lognmf.core.problem import Problem
from lognmf.core.solvers.coordinate.coloured_graph import Visit, independent
from lognmf.core.terms.frobenius import Frobenius
from lognmf.core.terms.laplacian import Laplacian
from lognmf.core.terms.log import Log
from lognmf.core.terms.robust import Robust, kept_share, robust_value

ENOUGH_DIGITS = 1e-3
"""Share of ‖X‖² down to which the data term may be taken as a difference of sums."""


@dataclass(frozen=True)
class Costs:
    """The terms of ``problem``, with the rows of V in the order of their graph."""

    problem: Problem
    rows_of_V: Visit
    kernels: ModuleType

    def penalties(self, U: np.ndarray, V: np.ndarray, rough: np.ndarray) -> np.ndarray:
        """All but the data term, (B,); ``rough`` is V's roughness."""
        alpha, beta, lam = self.weights(V.shape[1])
        value = lam * rough.sum(axis=1)
        for weight, F in ((alpha, U), (beta, V)):
            if weight.any():
                value = value + weight * self.penalty(F)
        return value

    def roughness(self, V: np.ndarray, lam: np.ndarray) -> np.ndarray:
        """``v_jᵀ L v_j`` of every component, (B, k); zeros where no setting asks."""
        return self.kernels.roughness(V, self.rows_of_V) if lam.any() else np.zeros(V.shape[1:])

    def fit_value(
        self, U: np.ndarray, V: np.ndarray, XU: np.ndarray, UU: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """The data term (B,) and the row weights; infinite where something has overflowed."""
        fit = self.problem.fit
        if isinstance(fit, Frobenius) and V.dtype == np.float64:
            short = self.size - 2 * np.einsum("nbk,nbk->b", XU, V) + np.einsum("bkl,bkl->b", UU, gram(V, V))
            if (short > ENOUGH_DIGITS * self.size).all():
                return short, np.zeros((0, V.shape[1]))
        value, kept = self.cost(fit.squared_residuals(self.problem.data, U, V, XU))
        sound = np.isfinite(UU.sum(axis=(1, 2))) & np.isfinite(XU.sum(axis=(0, 2)))
        return np.where(sound, value, np.inf), kept

    def cost(self, squared: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """What residuals of these squared norms (n, B) cost, (B,), and their row weights."""
        fit = self.problem.fit
        if not isinstance(fit, Robust):
            return total(squared, axis=0), np.zeros((0, squared.shape[1]))
        r = squared**0.5
        return (
            total(robust_value(fit.row_norm, r, fit.weight), axis=0),
            kept_share(fit.row_norm, r, fit.weight / 2),
        )

    @functools.cached_property
    def squared_norms(self) -> np.ndarray:
        """``‖x_i‖²``, (n,)."""
        return self.problem.data.squared_norms

    @functools.cached_property
    def size(self) -> float:
        """``‖X‖²_F``."""
        return float(self.squared_norms.sum(dtype=np.float64))

    @functools.cached_property
    def rows_of_U(self) -> Visit:
        """U's rows, which no graph joins."""
        return independent(self.problem.data.shape[1])

    @functools.cached_property
    def concave(self) -> bool:
        """Whether the sparsity penalty is the log penalty; else ℓ1, or none."""
        return any(isinstance(term, Log) for term in (*self.problem.on_U, *self.problem.on_V))

    def penalty(self, F: np.ndarray) -> np.ndarray:
        """The sparsity penalty of a factor without its weight, (B,)."""
        return self.kernels.penalty_sum(F, self.concave)

    def weights(self, B: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Weights of the penalties on U and V and of the graph, each (B,) in float64."""
        alpha, beta, lam = (np.zeros(B) if weight is None else weight for weight in self._known)
        return alpha, beta, lam

    def take(self, index: np.ndarray) -> Costs:
        """The costs of the settings ``index``."""
        return replace(self, problem=self.problem.take(index))

    @functools.cached_property
    def _known(self) -> list[np.ndarray | None]:
        on_V = [term for term in self.problem.on_V if not isinstance(term, Laplacian)]
        graph = [term for term in self.problem.on_V if isinstance(term, Laplacian)]
        found = (self.problem.on_U, on_V, graph)
        return [np.array(terms[0].weight, dtype=np.float64) if terms else None for terms in found]
