"""A solver that converges: coordinate sweeps, exact rescaling, extrapolation (docs/solvers.md).

One step:

1. extrapolate V; sweep U's coordinates; extrapolate U; sweep V's. With the row weights of
   the robust fit in place of S: φ is concave in r², so ``kept · r²`` lies above it and touches it.
2. rescale each component, ``(u_j t, v_j / t)``, to the best t. With unit components there is
   nothing to rescale: U's columns are swept on the sphere.
3. keep the result if the objective fell; else go back, and take the next step without
   extrapolation. Such a step is made of parts none of which raises the objective.

Large penalties would lock coordinates at zero before the data have spoken. So the first
steps follow a path of their own, with small penalties that grow to their full size (the
ramp). The loop gets the best point on the path by the *full* objective, so what is reported
never rises.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
import scipy.sparse as sp

from lognmf.core.arrays import Matrix, gram, product, product_t, scale_rows
from lognmf.core.problem import Problem
from lognmf.core.rule import State
from lognmf.core.solvers.coordinate.coloured_graph import independent, visit
from lognmf.core.solvers.coordinate.costs import Costs
from lognmf.core.solvers.coordinate.escapes import exchanged, refilled
from lognmf.core.solvers.coordinate.kernels import kernels
from lognmf.core.solvers.coordinate.path import (
    AGE,
    BEST,
    EXCHANGED,
    RECENT,
    REVIVED,
    WINDOW,
    ZERO,
    Path,
    chosen,
    first_numbers,
    merge,
    on_a_ramp,
)
from lognmf.core.solvers.unit_norm import unit_columns
from lognmf.core.terms.laplacian import Laplacian

SWEEPS = 2
"""Sweeps of a factor in a step; more are greedy and end in worse minima."""

FIRST_COST, SMALLEST_SHARE, LARGEST_SHARE, LARGE_ENTRY = 0.01, 1e-8, 1e-2, 30.0
"""The ramp begins where the penalties cost a hundredth of the data term at zero, with a share of
them between these two; a tenth less where entries are so large that a logarithm only counts them."""

STALLED, REVIVAL_SHARE, IMPROVED = 1e-4, 0.03, 1e-4
"""Empty components are revived where a step gains at most so much of the objective; the penalties
then begin with this share of themselves; and again, if the last time gained so much."""

EXCHANGES, EXCHANGE_STALLED, OUTLOOK, EXACT = 2, 1e-5, 30, 1e-12
"""Components are exchanged, at most so often in vain, where a step gains at most so much of the objective; an
exchange is in vain if so many steps at its pace would not do. An exact fit is left alone."""

PATIENCE = 100
"""Steps at the present pace that must not be enough to beat the zero factorisation."""


def check_supported(X: Matrix, M: Matrix | None = None) -> None:
    """Refuse data that are not NumPy's or SciPy's, and entries with weights ``M``."""
    if not isinstance(X, np.ndarray) and not sp.issparse(X):
        msg = (
            f'solver="cd" works on NumPy arrays and SciPy sparse matrices; got a {type(X).__name__}. '
            'Use solver="mu", or bring X to NumPy first (a torch tensor by X.cpu().numpy()).'
        )
        raise ValueError(msg)
    if M is not None:
        msg = (
            'solver="cd" takes no missing or weighted entries (NaN, or a mask): use solver="mu", or fill '
            "them first."
        )
        raise ValueError(msg)


@dataclass(frozen=True)
class CoordinateDescent:
    """Coordinate sweeps with rescaling and extrapolation, for NumPy and SciPy arrays.

    Parameters
    ----------
    costs : Costs
        What is minimised.
    unit_components : bool
        Whether the columns of U have unit norm.
    """

    costs: Costs
    unit_components: bool = False

    by_sample: ClassVar[int] = 0
    takes_missing: ClassVar[bool] = False
    gradual: ClassVar[bool] = False

    @staticmethod
    def refuses(problem: Problem) -> str | None:
        """Why this solver cannot minimise ``problem``."""
        try:
            check_supported(problem.data.X, problem.data.M)
        except ValueError as error:
            return str(error)
        return None

    @classmethod
    def of(cls, problem: Problem, unit_components: bool = False) -> CoordinateDescent:
        """The rule for ``problem``; refuses what it cannot do."""
        check_supported(problem.data.X, problem.data.M)
        graphs = [term for term in problem.on_V if isinstance(term, Laplacian)]
        work = kernels()
        rows = visit(graphs[0].exact_W, work) if graphs else independent(problem.data.shape[0])
        return cls(Costs(problem, rows, work), unit_components)

    @property
    def problem(self) -> Problem:
        """What is minimised, as terms."""
        return self.costs.problem

    # The contract of a rule ------------------------------------------------------------

    @np.errstate(over="ignore", invalid="ignore")
    def start(self, U: np.ndarray, V: np.ndarray) -> State:
        """The state from which to step: the start at its best scale.

        A start without zeros gets the ramp. One that has zeros (the end of another fit) has
        already chosen, and goes on from the better of itself and its rescaled self.
        """
        if self.unit_components:
            U, V = unit_columns(U, V)
        given = self._path_at(U, V)
        scaled = self._path_at(*self._at_best_scale(given))
        alpha, beta, _ = self.costs.weights(given.batch)
        full = alpha * self.costs.penalty(scaled.U) + beta * self.costs.penalty(scaled.V)
        ramp = (U > 0).all(axis=(0, 2)) & (V > 0).all(axis=(0, 2)) & (full > 0) & np.isfinite(scaled.value)
        small = FIRST_COST * given.numbers[ZERO] / np.where(full > 0, full, 1.0)
        saturated = np.maximum(scaled.U.max(axis=(0, 2)), scaled.V.max(axis=(0, 2))) > LARGE_ENTRY
        largest = np.where(saturated, LARGEST_SHARE / 10, LARGEST_SHARE)
        share = np.where(ramp, np.clip(small, SMALLEST_SHARE, largest), 1.0)
        better = scaled.value < given.value
        best = merge(better, scaled, given)
        path = merge(ramp | better, scaled, given)
        numbers = on_a_ramp(path.numbers, share)
        numbers[BEST] = best.value
        return State(best.U, best.V, (best.XU, *replace(path, numbers=numbers).arrays))

    @np.errstate(over="ignore", invalid="ignore")  # what overflows is not accepted
    def step(self, state: State) -> State:
        old = Path(*state.aux[1:])
        path = self._zero_if_better(old.followed_by(self._propose(old)))
        better = path.value <= old.numbers[BEST]
        path.numbers[BEST] = np.where(better, path.value, old.numbers[BEST])
        U, V, XU = chosen(better, (path.U, path.V, path.XU), (state.U, state.V, state.aux[0]))
        path = self._revive_if_stalled(path, U, V, XU)
        return State(U, V, (XU, *self._exchange_if_stalled(path, U, V, XU).arrays))

    def value(self, state: State) -> np.ndarray:
        # A step has computed it; factors that come from elsewhere bring nothing but ``X @ U``.
        return state.aux[-1][BEST] if len(state.aux) > 1 else self.problem.value(*self.factors(state))

    def settled(self, state: State, tol: float) -> np.ndarray:
        """Whether the last few steps gained at most ``tol`` of the objective each, (B,)."""
        path = Path(*state.aux[1:])
        return path.pace <= tol * np.abs(path.value)

    def factors(self, state: State) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """U, V and ``X @ U`` of a state."""
        return state.U, state.V, state.aux[0]

    def squared_error(self, state: State) -> np.ndarray:
        """``‖X − V Uᵀ‖²_F`` of every setting, shape (B,), float64."""
        return self.problem.squared_error(*self.factors(state))

    def take(self, index: np.ndarray) -> CoordinateDescent:
        return replace(self, costs=self.costs.take(index))

    # The parts of a step ---------------------------------------------------------------

    def _propose(self, old: Path) -> Path:
        """One step from ``old``, whatever it does to the objective."""
        X, costs, work = self.problem.data.X, self.costs, self.costs.kernels
        momentum, ease = old.momentum, old.ease
        alpha, beta, lam = costs.weights(old.batch)
        alpha, beta = alpha * ease, beta * ease
        V = work.beyond(old.V, old.last_V, momentum)
        weighted = scale_rows(V, old.kept) if len(old.kept) else V
        swept_U = self._sweep_U(old.U, product_t(X, weighted), gram(V, weighted), alpha)
        U = work.beyond(swept_U, old.last_U, momentum)
        if self.unit_components:
            U, _ = unit_columns(U, U[:0])
        XU = product(X, U)
        UU = gram(U, U)
        kept = costs.fit_value(U, V, XU, UU)[1] if len(old.kept) else old.kept
        V = work.sweep(V, XU, UU, kept, costs.rows_of_V, lam, beta, costs.concave, SWEEPS)
        fit_value, kept = costs.fit_value(U, V, XU, UU)
        rough = costs.roughness(V, lam)
        scale, inverse = self._best_scale(U, V, rough, alpha, beta, lam, times=2)
        if (scale != 1).any() or (inverse != 1).any():
            U, swept_U, XU = (work.scaled(F, scale) for F in (U, swept_U, XU))
            V, last_V = (work.scaled(F, inverse) for F in (V, old.V))
        else:
            last_V = old.V
        numbers = old.numbers.copy()
        numbers[RECENT] = fit_value + costs.penalties(U, V, rough * inverse**2)
        return Path(U, V, XU, swept_U, last_V, kept, numbers)

    def _sweep_U(self, U: np.ndarray, XV: np.ndarray, VV: np.ndarray, alpha: np.ndarray) -> np.ndarray:
        if self.unit_components:
            return self.costs.kernels.sphere_sweep(U, XV, VV, alpha, self.costs.concave, SWEEPS)
        nothing = np.zeros((1, U.shape[1]))
        rows = self.costs.rows_of_U
        return self.costs.kernels.sweep(
            U, XV, VV, nothing[:0], rows, nothing[0], alpha, self.costs.concave, SWEEPS
        )

    def _best_scale(
        self,
        U: np.ndarray,
        V: np.ndarray,
        rough: np.ndarray,
        alpha: np.ndarray,
        beta: np.ndarray,
        lam: np.ndarray,
        times: int,
    ) -> tuple[np.ndarray, np.ndarray]:
        """Factors (B, k) for the columns of U and of V; a component with an empty side gets zeros.

        Where only one of the sides costs something the best scale is infinite: it is left alone.
        """
        side_V = (beta > 0) | (lam > 0)
        both = (alpha > 0) & side_V
        if not (alpha.any() or side_V.any()):
            return np.ones(rough.shape), np.ones(rough.shape)
        empty = np.logical_not((U > 0).any(axis=0) & (V > 0).any(axis=0))
        if self.unit_components or not both.any():
            scale = np.ones(empty.shape)
        else:
            scale = self.costs.kernels.newton_scale(U, V, rough, alpha, beta, lam, self.costs.concave, times)
            scale[~both[:, None] | empty] = 1.0
        return (
            np.where(empty & (alpha > 0)[:, None], 0.0, scale),
            np.where(empty & side_V[:, None], 0.0, 1 / scale),
        )

    def _at_best_scale(self, given: Path) -> tuple[np.ndarray, np.ndarray]:
        """The multiple of ``V Uᵀ`` that fits the data best, in the best balance of U and V."""
        U, V = given.U, given.V
        fitting = np.sum(given.XU * V, axis=(0, 2), dtype=np.float64)
        size = np.sum(gram(U, U) * gram(V, V), axis=(1, 2), dtype=np.float64)
        t = fitting / np.where(size > 0, size, 1.0)
        scaled = self.costs.kernels.scaled
        if self.unit_components:
            return U, scaled(V, t[:, None])
        U, V = scaled(U, t[:, None] ** 0.5), scaled(V, t[:, None] ** 0.5)
        alpha, beta, lam = self.costs.weights(given.batch)
        scale, inverse = self._best_scale(U, V, self.costs.roughness(V, lam), alpha, beta, lam, times=40)
        return scaled(U, scale), scaled(V, inverse)

    def _zero_if_better(self, path: Path) -> Path:
        """The zero factorisation where the path will not get below it: too large penalties."""
        zero = path.numbers[ZERO]
        hopeless = zero < path.value - PATIENCE * path.pace
        if not hopeless.any():
            return path
        numbers = path.numbers.copy()
        numbers[RECENT] = np.where(
            hopeless, np.append(numbers[RECENT][:-1], zero[None], axis=0), numbers[RECENT]
        )
        names = ("U", "V", "XU", "last_U", "last_V")
        nothing = replace(path, **{name: np.zeros_like(getattr(path, name)) for name in names})
        return replace(merge(hopeless, nothing, path), numbers=numbers)

    def _revive_if_stalled(self, path: Path, U: np.ndarray, V: np.ndarray, XU: np.ndarray) -> Path:
        """From the best point U, V, its empty components refilled, along a new ramp; or the path as it is."""
        numbers, (alpha, beta, _) = path.numbers, self.costs.weights(path.batch)
        stalled = (path.pace <= STALLED * numbers[BEST]) & (alpha + beta > 0)
        due = stalled & (numbers[BEST] < (1 - IMPROVED) * numbers[REVIVED])
        if not due.any():
            return path
        empty = np.logical_not((U > 0).any(axis=0) & (V > 0).any(axis=0))
        due &= empty.any(axis=1)
        if not due.any():
            return path
        squared = self.problem.fit.squared_residuals(self.problem.data, U, V, XU)
        U, V = refilled(self.problem.data.X, U, V, squared, empty, due)
        new = self._path_at(U, V)
        fresh = on_a_ramp(numbers, np.full(path.batch, REVIVAL_SHARE))
        fresh[REVIVED] = numbers[BEST]
        return merge(due, replace(new, numbers=fresh), path)

    def _exchange_if_stalled(self, path: Path, U: np.ndarray, V: np.ndarray, XU: np.ndarray) -> Path:
        """From the best point U, V, a component exchanged; or back to it, or the path as it is.

        Without penalties nothing dies, but a component may be of little use where it is. After
        `EXCHANGES` in vain the path ends at the best point.
        """
        numbers, (alpha, beta, _) = path.numbers, self.costs.weights(path.batch)
        tried, best = numbers[EXCHANGED], numbers[BEST]
        vain = (numbers[AGE] >= 2 * WINDOW) & (path.value - OUTLOOK * path.pace > best)
        ended = (path.pace <= EXCHANGE_STALLED * best) | ((tried > 0) & vain)
        ended &= (alpha + beta == 0) & (tried <= EXCHANGES) & (best > EXACT * numbers[ZERO])
        if U.shape[2] == 1 or not ended.any():
            return path
        tried = np.where(best < (1 - IMPROVED) * numbers[REVIVED], 0, tried)
        again = ended & (tried < EXCHANGES)
        if again.any():
            squared = self.problem.fit.squared_residuals(self.problem.data, U, V, XU)
            new = exchanged(self.problem.data.X, U, V, squared, tried)
            U, V = chosen(again, new, (U, V))
        fresh = on_a_ramp(numbers, np.ones(path.batch))
        fresh[REVIVED], fresh[EXCHANGED] = best, tried + 1
        new_path = self._path_at(U, V)
        fresh[RECENT] = new_path.numbers[RECENT]
        return merge(ended, replace(new_path, numbers=fresh), path)

    def _path_at(self, U: np.ndarray, V: np.ndarray) -> Path:
        XU = product(self.problem.data.X, U)
        value, kept = self.costs.fit_value(U, V, XU, gram(U, U))
        value = value + self.costs.penalties(U, V, self.costs.roughness(V, self.costs.weights(V.shape[1])[2]))
        zero, _ = self.costs.cost(self.costs.squared_norms[:, None] + np.zeros(V.shape[1]))
        return Path(U, V, XU, U, V, kept, first_numbers(value, zero))
