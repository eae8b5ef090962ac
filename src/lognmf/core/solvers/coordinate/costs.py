"""What a factorisation costs, term by term, as coordinate descent asks for it in every step.

The sums are those of `Problem.value`, taken without its temporaries.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass, replace
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np

from lognmf.core.arrays import Array, gram, is_torch, namespace, to_numpy, total
from lognmf.core.data import Data, in_memory
from lognmf.core.problem import Problem
from lognmf.core.solvers.coordinate.coloured_graph import ColouredGraph, coloured, without_edges
from lognmf.core.terms.l1 import L1
from lognmf.core.terms.laplacian import Laplacian
from lognmf.core.terms.robust import kept_share, robust_value

if TYPE_CHECKING:
    from lognmf.core.solvers.coordinate.rowwise import Entries

ENOUGH_DIGITS = 1e-3  # share of ‖X‖² down to which the data term may be taken as a difference of sums


class Loops(NamedTuple):
    """The loops for one penalty, described in ``compiled.py``; those for tensors are in ``core/torch``."""

    sweep: Callable[..., Any]
    sphere_sweep: Callable[..., Any]
    penalty_sum: Callable[..., Any]
    scale_derivatives: Callable[..., Any]


@dataclass(frozen=True)
class Costs:
    """The terms of ``problem``, the rows of V with their graph, and the loops that do the ``work``."""

    problem: Problem
    rows_of_V: ColouredGraph
    work: ModuleType
    entries: tuple[Entries, Entries] | None = None  # of X and Xᵀ, where the data term needs them one by one

    @classmethod
    def of(cls, problem: Problem) -> Costs:
        """The costs of a problem that coordinate descent does not refuse."""
        # Either takes a while to import: torch, numba.
        name = "torch.coordinate" if is_torch(problem.data.pattern) else "solvers.coordinate.compiled"
        work: Any = import_module(f"lognmf.core.{name}")
        graphs = [term for term in problem.on_V if isinstance(term, Laplacian)]
        rows = coloured(graphs[0].graph) if graphs else without_edges(problem.data.shape[0])
        rows = work.placed(rows, problem.data.pattern)
        if getattr(problem.fit, "by_residual", False):
            return cls(problem, rows, work)
        from lognmf.core.solvers.coordinate.rowwise import Entries

        entries = Entries.of(in_memory(problem.data))
        return cls(problem, rows, work, (entries, entries.turned()))

    # The penalties ---------------------------------------------------------------------

    @functools.cached_property
    def _terms(self) -> tuple[Any, Any, Any]:
        """The penalties on U and V and the graph; ℓ1 of weight zero where there is none."""
        on_V, none = self.problem.on_V, (L1(np.zeros(1)),)
        separable = [term for term in on_V if not isinstance(term, Laplacian)]
        graphs = [term for term in on_V if isinstance(term, Laplacian)]
        return (*self.problem.on_U, *none)[0], (*separable, *none)[0], (*graphs, *none)[0]

    @functools.cached_property
    def on_U(self) -> Any:
        """The loops for the penalty on U."""
        return self.work.loops(self._terms[0])

    @functools.cached_property
    def on_V(self) -> Any:
        """The loops for the penalty on V."""
        return self.work.loops(self._terms[1])

    def weights(self, B: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Weights of the penalties on U and V and of the graph, each (B,) in float64."""
        alpha, beta, lam = (np.zeros(B) + to_numpy(term.weight) for term in self._terms)
        return alpha, beta, lam

    def penalties(self, U: Array, V: Array, rough: np.ndarray) -> np.ndarray:
        """All but the data term, (B,); ``rough`` is V's roughness."""
        return self.weights(V.shape[1])[2] * rough.sum(axis=1) + self.sparsity(U, V)

    def sparsity(self, U: Array, V: Array) -> np.ndarray:
        """The separable penalties on both factors, (B,)."""
        alpha, beta, _ = self.weights(V.shape[1])
        value = np.zeros(V.shape[1])
        for weight, F, kernels in ((alpha, U, self.on_U), (beta, V, self.on_V)):
            if weight.any():
                value = value + weight * kernels.penalty_sum(F)
        return value

    def roughness(self, V: Array) -> np.ndarray:
        """``v_jᵀ L v_j`` of every component, (B, k); zeros if the graph has no weight."""
        if not self.weights(V.shape[1])[2].any():
            return np.zeros(V.shape[1:])
        return self.work.roughness(V, *self.rows_of_V[2:5])

    @property
    def data(self) -> Data:
        """The samples."""
        return self.problem.data

    def squared_residuals(self, U: Array, V: Array, XU: Array) -> Array:
        """``‖x_i − U v_i‖²`` of every sample and setting, (n, B)."""
        return self.problem.squared_residuals(U, V, XU)

    def sweep_entries(
        self,
        side: str,
        F: Array,
        G: Array,
        lam: np.ndarray,
        weight: np.ndarray,
        ridge: np.ndarray,
        slow: np.ndarray,
    ) -> tuple[Array, np.ndarray]:
        """A factor, "U" or "V", after sweeps through the entries of X, and the data term of its rows."""
        from lognmf.core.solvers.coordinate.rowwise import SWEEPS, sweeper

        place = ("V", "U").index(side)
        penalty, entries = self._terms[1 - place], (self.entries or ())[place]
        rows = without_edges(len(F)) if side == "U" else self.rows_of_V
        loops = sweeper(penalty, squares=self.problem.fit.quadratic)
        return entries.sweep(loops, F, G, rows, lam, weight, ridge, slow, SWEEPS)

    # The data term ---------------------------------------------------------------------

    def fit_value(self, U: Array, V: Array, XU: Array, UU: Array) -> tuple[np.ndarray, Array]:
        """The data term (B,) and the row weights; infinite where something has overflowed."""
        xp = namespace(V)
        if self.entries is not None:
            return to_numpy(self.problem.total(self.problem.fit.row_values, U, V, XU)), V[:0, :, 0]
        if self._row_norm is None and V.dtype == xp.float64:
            linear, square = xp.einsum("nbk,nbk->b", XU, V), xp.einsum("bkl,bkl->b", UU, gram(V, V))
            short = self._size - 2 * to_numpy(linear) + to_numpy(square)
            if (short > ENOUGH_DIGITS * self._size).all():
                return short, V[:0, :, 0]
        value, kept = self._residual_cost(self.squared_residuals(U, V, XU))
        sound = xp.isfinite(xp.sum(UU, axis=(1, 2))) & xp.isfinite(xp.sum(XU, axis=(0, 2)))
        return np.where(to_numpy(sound), value, np.inf), kept

    @functools.cached_property
    def most(self) -> float:
        """The size of a poor data term, where that of U = V = 0 is infinite: the sum of X."""
        if self.entries is None or self.problem.fit.quadratic:
            return np.inf
        x, m = self.entries[0].x, self.entries[0].m
        return float(np.sum((m if len(m) else 1.0) * x, dtype=np.float64))

    def project(self, U: Array) -> Array:
        """``X @ U``, or no rows where the entries of X are needed one by one."""
        return self.data.times(U) if self.entries is None else U[:0]

    def overlap(self, U: Array, V: Array, XU: Array) -> tuple[np.ndarray, np.ndarray]:
        """Two sums (B,): their ratio is the multiple of ``V Uᵀ`` that fits the data best."""
        if self.entries is None:
            return to_numpy(total(XU * V, axis=(0, 2))), to_numpy(total(gram(U, U) * gram(V, V), axis=(1, 2)))
        fit = self.problem.fit
        halves = fit.halves_U(U, fit.sums(in_memory(self.data), U, V, V[:0, :, 0]))(slice(None))
        fitting, size = (to_numpy(total(U * half, axis=(0, 2))) for half in halves)
        return fitting, size

    def zero_value(self, B: int) -> np.ndarray:
        """The objective of U = V = 0, (B,)."""
        if self.entries is not None:
            x, m = self.entries[0].x, self.entries[0].m
            if not self.problem.fit.quadratic:
                return np.full(B, np.inf if x.any() else 0.0)
            return np.full(B, float(np.sum((m if len(m) else 1.0) * x.astype(np.float64) ** 2)))
        squared = self.data.squared_norms[:, None]
        return self._residual_cost(namespace(squared).repeat(squared, B, axis=1))[0]

    def take(self, index: np.ndarray) -> Costs:
        """The costs of the settings ``index``."""
        return replace(self, problem=self.problem.take(index))

    def _residual_cost(self, squared: Array) -> tuple[np.ndarray, Array]:
        """What residuals of these squared norms (n, B) cost, (B,), and their row weights."""
        if self._row_norm is None:
            return to_numpy(total(squared, axis=0)), squared[:0, :]
        fit: Any = self.problem.fit
        r = squared**0.5
        value = to_numpy(total(robust_value(self._row_norm, r, fit.weight), axis=0))
        return value, kept_share(self._row_norm, r, fit.weight / 2)

    @functools.cached_property
    def _row_norm(self) -> Any:
        """The norm of the robust fit; None for the plain one."""
        return getattr(self.problem.fit, "row_norm", None)

    @functools.cached_property
    def _size(self) -> float:
        """``‖X‖²_F``."""
        return float(total(self.data.squared_norms, axis=0))


LONGEST = 0.8  # longest Newton step, in log t, for which descent is proved
SETTLED = 1e-3  # a setting is done after a Newton step shorter than this

Weights: TypeAlias = tuple[np.ndarray, np.ndarray, np.ndarray]


def newton_scale(
    costs: Costs, U: Array, V: Array, rough: np.ndarray, weights: Weights, times: int
) -> np.ndarray:
    """Factors (B, k) by which to multiply U's columns, and divide V's, by ``times`` Newton steps at most.

    With the factor written as e^s, the objective depends on s by
    ``h(s) = alpha Σ φ(e^s u) + beta Σ φ(e^−s v) + lam q e^−2s``, q the ``rough``ness. Each term, or the
    bound that replaces it, is convex in s and has ``|h'''| ≤ 2 h''``, hence a Newton step δ gives
    ``h(s + δ) − h(s) ≤ h''·((e^2|δ| − 1 − 2|δ|)/4 − δ²)``, which is negative for 0 < |δ| ≤ 0.8; and a
    shorter step in the same direction falls too, since h is convex. No line search is needed.
    """
    alpha, beta, lam = weights
    factors, moving = np.ones(rough.shape), np.ones(len(rough), dtype=bool)
    for _ in range(times):
        smooth = 2 * lam[:, None] * rough / factors**2
        slope, curvature = -smooth, 2 * smooth
        sides = (alpha, U, factors, costs.on_U, 1), (beta, V, 1 / factors, costs.on_V, -1)
        for weight, F, scale, kernels, sign in sides:
            if weight.any():
                first, second = kernels.scale_derivatives(F, scale)
                slope = slope + sign * weight[:, None] * first
                curvature = curvature + weight[:, None] * second
        step = np.where(curvature > 0, -slope / np.where(curvature > 0, curvature, 1.0), 0.0)
        step = np.clip(step, -LONGEST, LONGEST)
        factors = np.where(moving[:, None], factors * np.exp(step), factors)
        moving = moving & (np.abs(step).max(axis=1) >= SETTLED)
        if not moving.any():
            break
    return factors


def best_scale(
    costs: Costs, U: Array, V: Array, rough: np.ndarray, share: np.ndarray, times: int
) -> tuple[np.ndarray, np.ndarray]:
    """Factors (B, k) for the columns of U and of V; a component with an empty side gets zeros.

    ``share`` (B,) of the sparsity penalties counts. Where only one of the sides costs something, the
    best scale is infinite and the component keeps its own.
    """
    alpha, beta, lam = costs.weights(V.shape[1])
    alpha, beta = alpha * share, beta * share
    side_V = (beta > 0) | (lam > 0)
    both = (alpha > 0) & side_V
    if not (alpha.any() or side_V.any()):
        return np.ones(rough.shape), np.ones(rough.shape)
    top_U, top_V = (to_numpy(namespace(F).max(F, axis=0)) for F in (U, V))
    empty = np.logical_not((top_U > 0) & (top_V > 0))
    scale = np.ones(empty.shape)
    if times and both.any():
        scale = newton_scale(costs, U, V, rough, (alpha, beta, lam), times)
        most = float(namespace(U).finfo(U.dtype).max) ** 0.4  # whose square, many times, does not overflow
        scale = np.clip(scale, top_V / most, most / np.where(empty, 1.0, top_U))
        scale[~both[:, None] | empty] = 1.0
    return (
        np.where(empty & (alpha > 0)[:, None], 0.0, scale),
        np.where(empty & side_V[:, None], 0.0, 1 / scale),
    )
