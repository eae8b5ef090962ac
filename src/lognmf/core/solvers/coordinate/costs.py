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

from lognmf.core.arrays import Array, gram, gram_of_rows, is_torch, largest, namespace, to_numpy, total
from lognmf.core.data import Data
from lognmf.core.problem import Problem, row_values
from lognmf.core.rows import Rows, each, reduced
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
    """The terms of ``problem``, the rows of V with their graph, and the loops that do the ``work``.

    ``rows_of_V`` is None where the samples are elsewhere: there they have no graph.
    """

    problem: Problem
    rows_of_V: ColouredGraph | None
    work: ModuleType
    entries: tuple[Entries, Entries] | None = None  # of X and Xᵀ, where the data term needs them one by one

    @classmethod
    def of(cls, problem: Problem) -> Costs:
        """The costs of a problem that coordinate descent does not refuse."""
        # Either takes a while to import: torch, numba.
        name = "torch.coordinate" if is_torch(problem.data.pattern) else "solvers.coordinate.compiled"
        work: Any = import_module(f"lognmf.core.{name}")
        if problem.data.distributed:
            return cls(problem, None, work)
        graphs = [term for term in problem.on_V if isinstance(term, Laplacian)]
        rows = coloured(graphs[0].graph) if graphs else without_edges(problem.data.shape[0])
        rows = work.placed(rows, problem.data.pattern)
        if getattr(problem.fit, "by_residual", False):
            return cls(problem, rows, work)
        from lognmf.core.solvers.coordinate.rowwise import Entries

        data: Any = problem.data  # all of it is in memory
        entries = Entries.of(data)
        return cls(problem, rows, work, (entries, entries.turned()))

    # The penalties ---------------------------------------------------------------------

    @functools.cached_property
    def terms(self) -> tuple[Any, Any, Any]:
        """The penalties on U and V and the graph; ℓ1 of weight zero where there is none."""
        on_V, none = self.problem.on_V, (L1(np.zeros(1)),)
        separable = [term for term in on_V if not isinstance(term, Laplacian)]
        graphs = [term for term in on_V if isinstance(term, Laplacian)]
        return (*self.problem.on_U, *none)[0], (*separable, *none)[0], (*graphs, *none)[0]

    @functools.cached_property
    def on_U(self) -> Any:
        """The loops for the penalty on U."""
        return self.work.loops(self.terms[0])

    def sweep_V(
        self, V: Rows, XU: Rows, UU: Array, kept: Rows, beta: np.ndarray, times: int, *, in_place: bool
    ) -> Rows:
        """V after sweeps; with ``in_place`` an array may be changed."""
        lam = self.weights(UU.shape[0])[2]
        shared = (self.work, self.terms[1], self.rows_of_V, UU, lam, beta, times, in_place)
        if self.robust:
            return each(_swept, V, XU, kept, shared=shared)
        return each(_swept_plain, V, XU, shared=shared)

    def weights(self, B: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Weights of the penalties on U and V and of the graph, each (B,) in float64."""
        alpha, beta, lam = (np.zeros(B) + to_numpy(term.weight) for term in self.terms)
        return alpha, beta, lam

    def penalties(self, U: Array, V: Rows, rough: np.ndarray) -> np.ndarray:
        """All but the data term, (B,); ``rough`` is V's roughness."""
        return self.weights(U.shape[1])[2] * rough.sum(axis=1) + self.sparsity(U, V)

    def sparsity(self, U: Array, V: Rows) -> np.ndarray:
        """The separable penalties on both factors, (B,)."""
        alpha, beta, _ = self.weights(U.shape[1])
        value = np.zeros(U.shape[1])
        for weight, F, term in ((alpha, U, self.terms[0]), (beta, V, self.terms[1])):
            if weight.any():
                value = value + weight * reduced(_penalty_sum, F, shared=(self.work, term))[0]
        return value

    def scale_derivatives(self, F: Rows, term: Any, scale: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """First and second derivatives (B, k) of a penalty by the logarithm of the columns' ``scale``."""
        first, second = reduced(_scale_derivatives, F, shared=(self.work, term, scale))
        return first, second

    def roughness(self, U: Array, V: Rows) -> np.ndarray:
        """``v_jᵀ L v_j`` of every component, (B, k); zeros if the graph has no weight."""
        if self.rows_of_V is None or not self.weights(U.shape[1])[2].any():
            return np.zeros(U.shape[1:])
        return self.work.roughness(V, *self.rows_of_V[2:5])

    @property
    def data(self) -> Data:
        """The samples."""
        return self.problem.data

    def squared_residuals(self, U: Array, V: Rows, XU: Rows) -> Rows:
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
        penalty, entries = self.terms[1 - place], (self.entries or ())[place]
        rows = without_edges(len(F)) if side == "U" or self.rows_of_V is None else self.rows_of_V
        loops = sweeper(penalty, squares=self.problem.fit.quadratic)
        return entries.sweep(loops, F, G, rows, lam, weight, ridge, slow, SWEEPS)

    # The data term ---------------------------------------------------------------------

    def fit_value(self, U: Array, V: Rows, XU: Rows, UU: Array) -> tuple[np.ndarray, Rows]:
        """The data term (B,) and the row weights; infinite where something has overflowed."""
        xp = namespace(U)
        if self.entries is not None:
            return to_numpy(self.problem.total(row_values, U, V, XU)), U[:0, :, 0]
        if not self.robust and U.dtype == xp.float64:
            linear, square = reduced(_short_form, V, XU, shared=(UU,))
            short = self._size - 2 * to_numpy(linear) + to_numpy(square)
            if (short > ENOUGH_DIGITS * self._size).all():
                return short, U[:0, :, 0]
        kept, (value, sums) = self.data.map_rows(_explicit, V, XU, shared=(self.problem.fit, U))
        sound = np.isfinite(to_numpy(xp.sum(UU, axis=(1, 2)))) & np.isfinite(to_numpy(sums))
        return np.where(sound, to_numpy(value), np.inf), kept[0] if self.robust else U[:0, :, 0]

    @functools.cached_property
    def most(self) -> float:
        """The size of a poor data term, where that of U = V = 0 is infinite: the sum of X."""
        if self.entries is None or self.problem.fit.quadratic:
            return np.inf
        x, m = self.entries[0].x, self.entries[0].m
        return float(np.sum((m if len(m) else 1.0) * x, dtype=np.float64))

    def project(self, U: Array) -> Rows:
        """``X @ U``, or no rows where the entries of X are needed one by one."""
        return self.data.times(U) if self.entries is None else U[:0]

    def overlap(self, U: Array, V: Rows, XU: Rows) -> tuple[np.ndarray, np.ndarray]:
        """Two sums (B,): their ratio is the multiple of ``V Uᵀ`` that fits the data best."""
        if self.entries is None:
            size = total(gram(U, U) * gram_of_rows(V, V), axis=(1, 2))
            return to_numpy(reduced(_inner_products, XU, V)[0]), to_numpy(size)
        fit = self.problem.fit
        whole: Any = self.data
        halves = fit.halves_U(U, fit.sums(whole, U, V, V[:0, :, 0]))(slice(None))
        fitting, size = (to_numpy(total(U * half, axis=(0, 2))) for half in halves)
        return fitting, size

    def zero_value(self, U: Array) -> np.ndarray:
        """The objective of U = V = 0, (B,)."""
        if self.entries is not None:
            x, m = self.entries[0].x, self.entries[0].m
            if not self.problem.fit.quadratic:
                return np.full(U.shape[1], np.inf if x.any() else 0.0)
            return np.full(U.shape[1], float(np.sum((m if len(m) else 1.0) * x.astype(np.float64) ** 2)))
        squared = self.data.squared_norms[:, None]
        squared = namespace(squared).repeat(squared, U.shape[1], axis=1)
        return to_numpy(of_residuals(self.problem.fit, squared)[1])

    def take(self, index: np.ndarray) -> Costs:
        """The costs of the settings ``index``."""
        return replace(self, problem=self.problem.take(index))

    @property
    def robust(self) -> bool:
        """Whether samples have weights (n, B), which the robust fit gives them."""
        return hasattr(self.problem.fit, "row_norm")

    @functools.cached_property
    def _size(self) -> float:
        """``‖X‖²_F``."""
        return float(total(self.data.squared_norms, axis=0))


def _swept(
    V: Array,
    XU: Array,
    kept: Array,
    work: Any,
    penalty: Any,
    rows: ColouredGraph | None,
    UU: Array,
    *more: Any,
) -> Array:
    """Sweeps of V; without ``rows`` none are connected, and V is not changed: a task may be repeated."""
    lam, beta, times, in_place = more
    if rows is None:
        rows, in_place = work.placed(without_edges(V.shape[0]), V), False
    return work.loops(penalty).sweep(V, XU, UU, kept, rows, lam, beta, times, in_place=in_place)


def _swept_plain(V: Array, XU: Array, *shared: Any) -> Array:
    return _swept(V, XU, V[:0, :, 0], *shared)


def _penalty_sum(F: Array, work: Any, penalty: Any) -> tuple[Any]:
    return (work.loops(penalty).penalty_sum(F),)


def _scale_derivatives(F: Array, work: Any, penalty: Any, scale: np.ndarray) -> tuple[Any, Any]:
    return work.loops(penalty).scale_derivatives(F, scale)


def _inner_products(XU: Array, V: Array) -> tuple[Array]:
    return (total(XU * V, axis=(0, 2)),)


def _short_form(V: Array, XU: Array, UU: Array) -> tuple[Array, Array]:
    """``Σ (XU)·v`` and ``Σ vᵀ(UᵀU)v``, each (B,)."""
    xp = namespace(V)
    return xp.einsum("nbk,nbk->b", XU, V), xp.einsum("bkl,bkl->b", UU, gram(V, V))


def _explicit(
    block: Any, V: Array, XU: Array, fit: Any, U: Array
) -> tuple[tuple[Array, ...], tuple[Array, Array]]:
    """Row weights of the robust fit, the data term, and a sum that is finite if ``X @ U`` is."""
    kept, value = of_residuals(fit, fit.squared_residuals(block, U, V, XU))
    return kept, (value, namespace(XU).sum(XU, axis=(0, 2)))


def of_residuals(fit: Any, squared: Array) -> tuple[tuple[Array, ...], Array]:
    """The row weights of the robust fit, and what residuals of these squared norms (n, B) cost, (B,)."""
    if not hasattr(fit, "row_norm"):
        return (), total(squared, axis=0)
    r = squared**0.5
    value = total(robust_value(fit.row_norm, r, fit.weight), axis=0)
    return (kept_share(fit.row_norm, r, fit.weight / 2),), value


LONGEST = 0.8  # longest Newton step, in log t, for which descent is proved
SETTLED = 1e-3  # a setting is done after a Newton step shorter than this

Weights: TypeAlias = tuple[np.ndarray, np.ndarray, np.ndarray]


def newton_scale(
    costs: Costs, U: Array, V: Rows, rough: np.ndarray, weights: Weights, times: int
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
        sides = (alpha, U, factors, costs.terms[0], 1), (beta, V, 1 / factors, costs.terms[1], -1)
        for weight, F, scale, term, sign in sides:
            if weight.any():
                first, second = costs.scale_derivatives(F, term, scale)
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
    costs: Costs, U: Array, V: Rows, rough: np.ndarray, share: np.ndarray, times: int
) -> tuple[np.ndarray, np.ndarray]:
    """Factors (B, k) for the columns of U and of V; a component with an empty side gets zeros.

    ``share`` (B,) of the sparsity penalties counts. Where only one of the sides costs something, the
    best scale is infinite and the component keeps its own.
    """
    alpha, beta, lam = costs.weights(U.shape[1])
    alpha, beta = alpha * share, beta * share
    side_V = (beta > 0) | (lam > 0)
    both = (alpha > 0) & side_V
    if not (alpha.any() or side_V.any()):
        return np.ones(rough.shape), np.ones(rough.shape)
    top_U, top_V = largest(U), largest(V)
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
