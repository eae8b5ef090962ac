"""A solver that converges: coordinate sweeps, exact rescaling, extrapolation (docs/solvers.md).

One step:

1. extrapolate V; sweep U's coordinates; extrapolate U; sweep V's. Row weights replace S in
   the robust fit: φ is concave in r², so ``kept · r²`` lies above it and touches it.
2. rescale each component, ``(u_j t, v_j / t)``, to the best t. With unit components there is
   nothing to rescale: U's columns are swept on the sphere.
3. accept the result if the objective fell; else go back, and take the next step without
   extrapolation. No part of such a step raises the objective.

Large penalties would lock coordinates at zero before the data have an effect. So the first
steps use small penalties that grow to their full size (the ramp). The loop gets the best point
so far by the *full* objective, so the reported objective never rises. Where a ramp or an escape ends at a
worse point, the run goes back to the best one and finishes it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from lognmf.core.arrays import (
    Array,
    chosen,
    gram,
    largest,
    scale_rows,
    smallest,
    zeros_like,
)
from lognmf.core.problem import Problem
from lognmf.core.rows import Rows, each
from lognmf.core.rule import State
from lognmf.core.solvers.coordinate.coloured_graph import without_edges
from lognmf.core.solvers.coordinate.costs import Costs, best_scale
from lognmf.core.solvers.coordinate.escapes import exchanged, refilled
from lognmf.core.solvers.coordinate.limits import refuses
from lognmf.core.solvers.coordinate.working_point import Progress, WorkingPoint, merge
from lognmf.core.solvers.multiplicative import unit_columns
from lognmf.core.terms.protocol import degree_of

SWEEPS = 2  # sweeps of a factor in a step; more are greedy and end in worse minima
RESCALINGS = 2  # Newton steps towards the best scale in a step
FIRST_RESCALINGS = 40  # Newton steps towards the best scale of the start
FIRST_COST = 0.01  # the ramp begins where the penalties cost this share of the data term at U = V = 0
SMALLEST_SHARE = 1e-8  # the ramp begins with at least this share of the penalties
LARGEST_SHARE = 1e-2  # the ramp begins with at most this share of the penalties
LARGE_ENTRY = 30.0  # a log penalty only counts entries above this: a tenth of LARGEST_SHARE is the limit then
STALLED = 1e-4  # empty components are refilled where a step gains at most this share of the objective
REVIVAL_SHARE = 0.03  # the ramp after such a refill begins with this share of the penalties
IMPROVED = 1e-4  # an escape has helped if it lowered the best objective by this share; else it is the last
EXCHANGES = 2  # exchanges of a component after which, if none has helped, there are no more
EXCHANGE_STALLED = 1e-5  # components are exchanged where a step gains at most this share of the objective
EXACT = 1e-12  # a fit whose objective is at most this share of that of U = V = 0 is exact: no exchanges
NEARLY_EXACT = 1e-7  # a fit below this share of that objective has converged sooner: its error is 0.03 %
PATIENCE = 100  # fall back to U = V = 0 if this many steps at the current pace would still not beat it


@dataclass(frozen=True)
class CoordinateDescent:
    """Coordinate sweeps with rescaling and extrapolation; U's columns have unit norm if asked for."""

    costs: Costs
    unit_components: bool = False

    @classmethod
    def of(cls, problem: Problem, unit_components: bool = False) -> CoordinateDescent:
        """The rule for ``problem``; a ValueError says why there is none."""
        sentence = cls.refuses(problem)
        if sentence is not None:
            raise ValueError(sentence)
        return cls(Costs.of(problem), unit_components)

    @staticmethod
    def refuses(problem: Problem) -> str | None:
        """Why this solver cannot minimise ``problem``, in one sentence; None if it can."""
        return refuses(problem)

    @property
    def problem(self) -> Problem:
        """What is minimised, as terms."""
        return self.costs.problem

    @property
    def degree(self) -> int:
        """Degree of the objective in X."""
        return degree_of(self.problem.fit)

    # The contract of a rule ------------------------------------------------------------

    @np.errstate(over="ignore", invalid="ignore")
    def start(self, U: Array, V: Rows) -> State:
        """The state from which to step: the start at its best scale.

        A start without zeros gets the ramp. One with zeros (the end of another fit) goes on from
        the better of itself and its rescaled self.
        """
        if self.unit_components:
            U, V = unit_columns(U, V)
        given, XU = self._point_at(U, V)
        scaled, scaled_XU = self._point_at(*self._at_best_scale(given, XU))
        full = self.costs.sparsity(scaled.U, scaled.V)
        positive = (smallest(U) > 0).all(axis=1) & (smallest(V) > 0).all(axis=1)
        ramp = positive & (full > 0) & np.isfinite(scaled.value)
        small = FIRST_COST * np.minimum(given.progress.zero, self.costs.most) / np.where(full > 0, full, 1.0)
        saturated = np.maximum(largest(scaled.U).max(axis=1), largest(scaled.V).max(axis=1)) > LARGE_ENTRY
        most = np.where(saturated, LARGEST_SHARE / 10, LARGEST_SHARE)
        share = np.where(ramp, np.clip(small, SMALLEST_SHARE, most), 1.0)
        better = scaled.value < given.value
        best = merge(better, scaled, given)
        point = merge(ramp | better, scaled, given)
        progress = replace(point.progress.on_ramp(share), best=best.value)
        XU = chosen(better, scaled_XU, XU)
        return State(best.U, best.V, (XU, *replace(point, progress=progress).packed()))

    @np.errstate(over="ignore", invalid="ignore")  # what overflows is not accepted
    def step(self, state: State) -> State:
        old = WorkingPoint.unpacked(state.aux[1:])
        new, XU = self._propose(old)
        point, moved = old.followed_by(new)
        if (hopeless := self._hopeless(point)).any():
            point = merge(hopeless, self._empty(point), point)
            XU = chosen(hopeless, zeros_like(XU), XU)
        best = old.progress.best
        better = (point.value <= best) & (moved | hopeless)
        point = replace(point, progress=replace(point.progress, best=np.where(better, point.value, best)))
        ours, theirs = (point.U, point.V, XU), (state.U, state.V, state.aux[0])
        U, V, XU = (chosen(better, *both) for both in zip(ours, theirs, strict=True))
        point = self._revive_if_stalled(point, U, V, XU)
        point = self._exchange_if_stalled(point, U, V, XU)
        return State(U, V, (XU, *self._back_if_lost(point, U, V).packed()))

    def value(self, state: State) -> np.ndarray:
        # A step has computed it; factors from elsewhere bring nothing but ``X @ U``.
        if len(state.aux) == 1:
            return self.problem.value(*self.factors(state))
        return WorkingPoint.unpacked(state.aux[1:]).progress.best

    def settled(self, state: State, tol: float) -> np.ndarray:
        """Whether the last steps led to the best point and gained at most ``tol`` of its objective each.

        Where the fit is nearly exact the objective falls towards 0 by the same share for ever: there the gain
        is compared with `NEARLY_EXACT` of the objective of U = V = 0.
        """
        progress = WorkingPoint.unpacked(state.aux[1:]).progress
        least = NEARLY_EXACT * np.minimum(progress.zero, self.costs.most)
        slow = progress.pace <= tol * np.maximum(np.abs(progress.value), least)
        return slow & (progress.value <= progress.best)

    def factors(self, state: State) -> tuple[Array, Array, Array]:
        """U, V and ``X @ U`` of a state."""
        return state.U, state.V, state.aux[0]

    def squared_error(self, state: State) -> Array:
        """``‖X − V Uᵀ‖²_F`` of every setting, shape (B,), float64."""
        return self.problem.squared_error(*self.factors(state))

    def take(self, index: np.ndarray) -> CoordinateDescent:
        return replace(self, costs=self.costs.take(index))

    # The parts of a step ---------------------------------------------------------------

    def _propose(self, old: WorkingPoint) -> tuple[WorkingPoint, Array]:
        """One step from ``old``, whatever it does to the objective, and ``X @ U`` there."""
        if self.costs.entries is not None:
            return self._propose_by_entries(old)
        data, costs, work = self.costs.data, self.costs, self.costs.work
        momentum, ease = old.progress.next_momentum, old.progress.ease
        alpha, beta, _ = costs.weights(old.batch)
        kept = (old.kept,) if costs.robust else ()
        (V,), (XV, VV) = data.map_rows(_ahead, old.V, old.last_V, *kept, shared=(work, momentum))
        swept_U = self._sweep_U(old.U, XV, VV, alpha * ease)
        U = work.extrapolated(swept_U, old.last_U, momentum)
        if self.unit_components:
            U, _ = unit_columns(U, U[:0])
        XU, UU = data.times(U), gram(U, U)
        kept = costs.fit_value(U, V, XU, UU)[1] if costs.robust else old.kept
        V = costs.sweep_V(V, XU, UU, kept, beta * ease, SWEEPS, in_place=True)
        fit_value, kept = costs.fit_value(U, V, XU, UU)
        rough = costs.roughness(U, V)
        scale, inverse = best_scale(costs, U, V, rough, ease, 0 if self.unit_components else RESCALINGS)
        last_V = old.V
        if (scale != 1).any() or (inverse != 1).any():
            U, swept_U, XU = (each(work.scaled, F, shared=(scale,)) for F in (U, swept_U, XU))
            V, last_V = (each(work.scaled, F, shared=(inverse,)) for F in (V, old.V))
        value = fit_value + costs.penalties(U, V, rough * inverse**2)
        return WorkingPoint(U, V, swept_U, last_V, kept, old.progress.at(value)), XU

    def _propose_by_entries(self, old: WorkingPoint) -> tuple[WorkingPoint, Array]:
        """The same for a data term that needs the entries of X one by one.

        Components of unit norm are swept without the constraint and then normalised, the codes inversely, so
        that the data term stays. What this does to the penalties is taken into account by a multiple of
        ``‖u_r‖²`` with the same slope. It lies above all of them but the penalty on U. Where that lets a step
        rise, the next ones are shorter.
        """
        costs, work, progress = self.costs, self.costs.work, old.progress
        momentum, ease = progress.next_momentum, progress.ease
        alpha, beta, lam = costs.weights(old.batch)
        V = work.extrapolated(old.V, old.last_V, momentum)
        none = np.zeros(old.batch)
        ridge = (
            self._of_norms(old.U, V, alpha * ease, beta * ease)
            if self.unit_components
            else np.zeros(old.V.shape[1:])
        )
        swept_U, _ = costs.sweep_entries("U", old.U, V, none, alpha * ease, ridge, progress.slow)
        U = work.extrapolated(swept_U, old.last_U, momentum)
        if self.unit_components:
            U, V = _normalised(U, V, old.U)
        V, values = costs.sweep_entries("V", V, U, lam, beta * ease, np.zeros(ridge.shape), none)
        rough = costs.roughness(U, V)
        scale, inverse = best_scale(costs, U, V, rough, ease, 0 if self.unit_components else RESCALINGS)
        last_V = old.V
        if (scale != 1).any() or (inverse != 1).any():
            U, swept_U = (work.scaled(F, scale) for F in (U, swept_U))
            V, last_V = (work.scaled(F, inverse) for F in (V, old.V))
        value = values.sum(axis=0) + costs.penalties(U, V, rough * inverse**2)
        return WorkingPoint(U, V, swept_U, last_V, old.kept, progress.at(value)), U[:0]

    def _of_norms(self, U: Array, V: Array, alpha: np.ndarray, beta: np.ndarray) -> np.ndarray:
        """Multiples of ``‖u_r‖²`` (B, k) with the slope of the penalties as u_r is normalised."""
        lam, ones = self.costs.weights(len(alpha))[2], np.ones((len(alpha), U.shape[2]))
        ridge = lam[:, None] * self.costs.roughness(U, V)
        on_U, on_V, _ = self.costs.terms
        for weight, F, term in ((-alpha, U, on_U), (beta, V, on_V)):
            if weight.any():
                ridge = ridge + weight[:, None] * self.costs.scale_derivatives(F, term, ones)[0] / 2
        return ridge

    def _sweep_U(self, U: Array, XV: Array, VV: Array, alpha: np.ndarray) -> Array:
        if self.unit_components:
            return self.costs.on_U.sphere_sweep(U, XV, VV, alpha, SWEEPS)
        p, B, _ = U.shape
        return self.costs.on_U.sweep(U, XV, VV, U[:0, :, 0], without_edges(p), np.zeros(B), alpha, SWEEPS)

    def _at_best_scale(self, given: WorkingPoint, XU: Rows) -> tuple[Array, Array]:
        """The multiple of ``V Uᵀ`` that fits the data best, in the best balance of U and V."""
        U, V, loop = given.U, given.V, self.costs.work.scaled
        fitting, size = self.costs.overlap(U, V, XU)
        t = np.repeat((fitting / np.where(size > 0, size, 1.0))[:, None], U.shape[2], axis=1)
        if self.unit_components:
            return U, each(loop, V, shared=(t,))
        U, V = (each(loop, F, shared=(t**0.5,)) for F in (U, V))
        rough, share = self.costs.roughness(U, V), np.ones(given.batch)
        scale, inverse = best_scale(self.costs, U, V, rough, share, FIRST_RESCALINGS)
        return each(loop, U, shared=(scale,)), each(loop, V, shared=(inverse,))

    @staticmethod
    def _hopeless(point: WorkingPoint) -> np.ndarray:
        """Whether the run will not get below the objective of U = V = 0: the penalties are too large."""
        progress = point.progress
        return progress.zero < progress.value - PATIENCE * progress.pace

    @staticmethod
    def _empty(point: WorkingPoint) -> WorkingPoint:
        """The point U = V = 0."""
        factors = {name: zeros_like(getattr(point, name)) for name in ("U", "V", "last_U", "last_V")}
        return replace(point, **factors, progress=point.progress.at(point.progress.zero))

    def _revive_if_stalled(self, point: WorkingPoint, U: Array, V: Rows, XU: Rows) -> WorkingPoint:
        """The best point U, V with its empty components refilled, on a new ramp; or ``point`` as it is."""
        progress, (alpha, beta, _) = point.progress, self.costs.weights(point.batch)
        stalled = (progress.pace <= STALLED * progress.best) & (alpha + beta > 0)
        due = stalled & (progress.best < (1 - IMPROVED) * progress.escaped)
        if not due.any():
            return point
        empty = (largest(U) <= 0) | (largest(V) <= 0)
        due &= empty.any(axis=1)
        if not due.any():
            return point
        squared = self.costs.squared_residuals(U, V, XU)
        U, V = refilled(self.costs.data, U, V, squared, empty, due)
        fresh = progress.on_ramp(np.full(point.batch, REVIVAL_SHARE))
        new, _ = self._point_at(U, V)
        return merge(due, replace(new, progress=replace(fresh, escaped=progress.best)), point)

    def _exchange_if_stalled(self, point: WorkingPoint, U: Array, V: Rows, XU: Rows) -> WorkingPoint:
        """The best point U, V with a component exchanged; or ``point`` as it is.

        Without penalties no component dies, but one may be of little use where it is. After
        `EXCHANGES` that did not help there are no more.
        """
        progress, (alpha, beta, _) = point.progress, self.costs.weights(point.batch)
        tried, best = progress.exchanges, progress.best
        ended = (progress.pace <= EXCHANGE_STALLED * best) | progress.lost
        ended &= (alpha + beta == 0) & (tried <= EXCHANGES) & (best > EXACT * progress.zero)
        if U.shape[2] == 1 or self.costs.entries is not None or not ended.any():
            return point
        tried = np.where(ended & (best < (1 - IMPROVED) * progress.escaped), 0, tried)
        again = ended & (tried < EXCHANGES)
        point = replace(point, progress=replace(progress, exchanges=tried + ended))
        if not again.any():
            return point
        squared = self.costs.squared_residuals(U, V, XU)
        new, _ = self._point_at(*exchanged(self.costs.data, U, V, squared, tried))
        fresh = replace(new.progress, best=best, escaped=best, exchanges=tried + 1.0)
        return merge(again, replace(new, progress=fresh), point)

    def _back_if_lost(self, point: WorkingPoint, U: Array, V: Rows) -> WorkingPoint:
        """The best point U, V where a ramp or an escape has led to a worse one; else ``point`` as it is.

        The best point was left before it had converged: the run finishes it.
        """
        lost = point.progress.lost
        if not lost.any():
            return point
        return merge(lost, replace(self._point_at(U, V)[0], progress=point.progress.at_best()), point)

    def _point_at(self, U: Array, V: Rows) -> tuple[WorkingPoint, Array]:
        """A new run's working point, and ``X @ U`` there."""
        XU = self.costs.project(U)
        value, kept = self.costs.fit_value(U, V, XU, gram(U, U))
        value = value + self.costs.penalties(U, V, self.costs.roughness(U, V))
        progress = Progress.first(value, self.costs.zero_value(U))
        return WorkingPoint(U, V, U, V, kept, progress), XU


def _normalised(U: np.ndarray, V: np.ndarray, before: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """U with columns of unit norm, and V times their norms; a zero column is the one ``before``, unused."""
    alive = (U > 0).any(axis=0)
    unit, V = unit_columns(U, V)
    return np.where(alive, unit, before), np.where(alive, V, np.zeros_like(V))


def _ahead(block: Any, V: Array, last_V: Array, *more: Any) -> tuple[tuple[Array], tuple[Array, Array]]:
    """V extrapolated, and the sums that the sweeps of U need; ``more`` begins with row weights, if any."""
    *kept, work, momentum = more
    V = work.extrapolated(V, last_V, momentum)
    weighted = scale_rows(V, *kept) if kept else V
    return (V,), (block.t_times(weighted), gram(V, weighted))
