"""A solver that converges: coordinate sweeps, exact rescaling, extrapolation (docs/solvers.md).

One step:

1. extrapolate V; sweep U's coordinates; extrapolate U; sweep V's. With the row weights of
   the robust fit in place of S: φ is concave in r², so ``kept · r²`` lies above it and touches it.
2. rescale each component, ``(u_j t, v_j / t)``, to the best t. In the unit gauge there is nothing
   to rescale: U's columns are swept on the sphere.
3. keep the result if the objective fell; else go back, and take the next step without
   extrapolation. Such a step is made of parts none of which raises the objective.

Large penalties would lock coordinates at zero before the data have spoken. So the first
steps follow a path of their own, with small penalties that grow to their full size (the
ramp). The loop gets the best point on the path by the *full* objective, so what is reported
never rises.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from types import ModuleType

import numpy as np
import scipy.sparse as sp

from lognmf.core.arrays import Matrix, gram, product, product_t, scale_rows, total, without_subnormals
from lognmf.core.problem import Problem
from lognmf.core.solvers.colouring import Visit, independent, visit
from lognmf.core.solvers.gauge import unit_columns
from lognmf.core.solvers.kernels import kernels
from lognmf.core.solvers.path import BEST, RAMP, RECENT, SHARE, ZERO, Path, choose, first_numbers, merge
from lognmf.core.state import State
from lognmf.core.terms.frobenius import Frobenius
from lognmf.core.terms.laplacian import Laplacian
from lognmf.core.terms.log import Log
from lognmf.core.terms.robust import Robust, kept_share, robust_value

SWEEPS = 2
"""Sweeps of a factor in a step; more are greedy and end in worse minima."""

FIRST_COST, SMALLEST_SHARE, LARGEST_SHARE, RAMP_STEPS = 0.01, 1e-8, 1e-3, 4
"""The ramp begins where the penalties cost a hundredth of the data term at zero, with a share of
them between these two, and makes so many steps for each power of ten."""

PATIENCE = 100
"""Steps at the present pace that must not be enough to beat the zero factorisation."""


def check_supported(X: Matrix, M: Matrix | None = None) -> None:
    """Refuse data that are not NumPy's or SciPy's, and entries with weights ``M``."""
    if not isinstance(X, np.ndarray) and not sp.issparse(X):
        msg = (
            f'solver="fast" works on NumPy arrays and SciPy sparse matrices; got a {type(X).__name__}. '
            'Use solver="mu", or bring X to NumPy first (a torch tensor by X.cpu().numpy()).'
        )
        raise ValueError(msg)
    if M is not None:
        msg = 'solver="fast" takes no missing or weighted entries: use solver="mu", or fill them first.'
        raise ValueError(msg)


@dataclass(frozen=True)
class Fast:
    """Coordinate sweeps with rescaling and extrapolation, for NumPy and SciPy arrays.

    Parameters
    ----------
    problem : Problem
        A plain or robust fit; the graph and one kind of sparsity penalty.
    gauge : {"free", "unit"}
        Whether the columns of U have unit norm.
    rows_of_V : Visit
        The order in which V's rows are visited.
    kernels : module
        `compiled` or `sweeps`.
    """

    problem: Problem
    gauge: str
    rows_of_V: Visit
    kernels: ModuleType

    @classmethod
    def of(cls, problem: Problem, gauge: str = "free") -> Fast:
        """The rule for ``problem``; refuses what it cannot do."""
        fit = problem.fit
        check_supported(fit.X, getattr(fit, "M", None))
        graphs = [term for term in problem.on_V if isinstance(term, Laplacian)]
        rows = visit(graphs[0].exact_W) if graphs else independent(fit.X.shape[0])
        return cls(problem, gauge, rows, kernels())

    # The contract of a rule ------------------------------------------------------------

    def start(self, U: np.ndarray, V: np.ndarray) -> State:
        """The state from which to step: the start at its best scale.

        A start without zeros gets the ramp. One that has zeros (the end of another fit) has
        already chosen, and goes on from the better of itself and its rescaled self.
        """
        if self.gauge == "unit":
            U, V = unit_columns(U, V)
        given = self._path_at(U, V)
        scaled = self._path_at(*self._at_best_scale(given))
        alpha, beta, _ = self._weights(given.batch)
        costs = alpha * self._penalty(scaled.U) + beta * self._penalty(scaled.V)
        ramp = (U > 0).all(axis=(0, 2)) & (V > 0).all(axis=(0, 2)) & (costs > 0)
        small = FIRST_COST * given.numbers[ZERO] / np.where(costs > 0, costs, 1.0)
        share = np.where(ramp, np.clip(small, SMALLEST_SHARE, LARGEST_SHARE), 1.0)
        better = scaled.value < given.value
        best = merge(better, scaled, given)
        path = merge(ramp | better, scaled, given)
        numbers = path.numbers.copy()
        numbers[SHARE], numbers[RAMP] = share, np.ceil(-RAMP_STEPS * np.log10(share))
        numbers[BEST] = best.value
        return State(best.U, best.V, (best.XU, *replace(path, numbers=numbers).arrays))

    def step(self, state: State) -> State:
        old = Path(*state.aux[1:])
        path = self._zero_if_better(old.followed_by(self._propose(old)))
        better = path.value <= old.numbers[BEST]
        path.numbers[BEST] = np.where(better, path.value, old.numbers[BEST])
        U, V = choose(better, path.U, state.U), choose(better, path.V, state.V)
        return State(U, V, (choose(better, path.XU, state.aux[0]), *path.arrays))

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
        return total(self.problem.fit.squared_residuals(*self.factors(state)), axis=0)

    def take(self, index: np.ndarray) -> Fast:
        return replace(self, problem=self.problem.take(index))

    # The parts of a step ---------------------------------------------------------------

    def _propose(self, old: Path) -> Path:
        """One step from ``old``, whatever it does to the objective."""
        X = self.problem.fit.X
        alpha, beta, lam = self._weights(old.batch)
        alpha, beta = alpha * old.ease, beta * old.ease
        V = _beyond(old.V, old.last_V, old.momentum)
        weighted = scale_rows(V, old.kept) if len(old.kept) else V
        swept_U = self._sweep_U(old.U, product_t(X, weighted), gram(V, weighted), alpha)
        U = _beyond(swept_U, old.last_U, old.momentum)
        if self.gauge == "unit":
            U, _ = unit_columns(U, U)
        XU = product(X, U)
        _, kept = self._fit_value(U, V, XU)
        V = self.kernels.sweep(V, XU, gram(U, U), kept, self.rows_of_V, lam, beta, self._concave, SWEEPS)
        scale, inverse = self._best_scale(U, V, alpha, beta, lam, times=4)
        U, V, XU = _times(U, scale), _times(V, inverse), _times(XU, scale)
        value, kept = self._value(U, V, XU)
        numbers = old.numbers.copy()
        numbers[RECENT] = value
        return Path(U, V, XU, _times(swept_U, scale), _times(old.V, inverse), kept, numbers)

    def _sweep_U(self, U: np.ndarray, XV: np.ndarray, VV: np.ndarray, alpha: np.ndarray) -> np.ndarray:
        if self.gauge == "unit":
            return self.kernels.sphere_sweep(U, XV, VV, alpha, self._concave, SWEEPS)
        p, B, _ = U.shape
        rows, nothing = independent(p), np.zeros(B)
        return self.kernels.sweep(U, XV, VV, np.zeros((0, B)), rows, nothing, alpha, self._concave, SWEEPS)

    def _best_scale(
        self, U: np.ndarray, V: np.ndarray, alpha: np.ndarray, beta: np.ndarray, lam: np.ndarray, times: int
    ) -> tuple[np.ndarray, np.ndarray]:
        """Factors (B, k) for the columns of U and of V; a component with an empty side gets zeros.

        Where only one of the sides costs something the best scale is infinite: it is left alone.
        """
        side_V = (beta > 0) | (lam > 0)
        both = (alpha > 0) & side_V
        empty = ~((U > 0).any(axis=0) & (V > 0).any(axis=0))
        if self.gauge == "unit" or not both.any():
            scale = np.ones(empty.shape)
        else:
            rough = self.kernels.roughness(V, self.rows_of_V)
            scale = self.kernels.newton_scale(U, V, rough, alpha, beta, lam, self._concave, times)
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
        if self.gauge == "unit":
            return U, _times(V, t[:, None])
        U, V = _times(U, t[:, None] ** 0.5), _times(V, t[:, None] ** 0.5)
        scale, inverse = self._best_scale(U, V, *self._weights(given.batch), times=40)
        return _times(U, scale), _times(V, inverse)

    def _zero_if_better(self, path: Path) -> Path:
        """The zero factorisation where the path will not get below it: too large penalties."""
        zero = path.numbers[ZERO]
        with np.errstate(invalid="ignore"):
            hopeless = zero < path.value - PATIENCE * path.pace
        if not hopeless.any():
            return path
        numbers = path.numbers.copy()
        numbers[RECENT] = np.where(hopeless, np.append(numbers[RECENT][:-1], zero[None], axis=0), numbers[RECENT])
        factors = (choose(hopeless, np.zeros_like(F), F) for F in path.arrays[:5])
        return Path(*factors, path.kept, numbers)

    # The objective ---------------------------------------------------------------------

    def _path_at(self, U: np.ndarray, V: np.ndarray) -> Path:
        XU = product(self.problem.fit.X, U)
        value, kept = self._value(U, V, XU)
        zero, _ = self._cost(self._plain.squared_norms[:, None] + np.zeros(V.shape[1]))
        return Path(U, V, XU, U, V, kept, first_numbers(value, zero))

    def _value(self, U: np.ndarray, V: np.ndarray, XU: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Objective (B,), and the row weights that belong to these factors.

        The same sum as `Problem.value`, without its temporaries: it is taken in every step.
        """
        alpha, beta, lam = self._weights(V.shape[1])
        value, kept = self._fit_value(U, V, XU)
        if lam.any():
            value = value + lam * self.kernels.roughness(V, self.rows_of_V).sum(axis=1)
        if alpha.any():
            value = value + alpha * self._penalty(U)
        if beta.any():
            value = value + beta * self._penalty(V)
        return value, kept

    def _fit_value(self, U: np.ndarray, V: np.ndarray, XU: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return self._cost(self.problem.fit.squared_residuals(U, V, XU))

    def _cost(self, squared: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """What residuals of these squared norms (n, B) cost, (B,), and their row weights."""
        fit = self.problem.fit
        if not isinstance(fit, Robust):
            return total(squared, axis=0), np.zeros((0, squared.shape[1]))
        r = squared**0.5
        return (
            total(robust_value(fit.row_norm, r, fit.weight), axis=0),
            kept_share(fit.row_norm, r, fit.weight / 2),
        )

    @property
    def _plain(self) -> Frobenius:
        fit = self.problem.fit
        return fit.plain if isinstance(fit, Robust) else fit

    @property
    def _concave(self) -> bool:
        return any(isinstance(term, Log) for term in (*self.problem.on_U, *self.problem.on_V))

    def _penalty(self, F: np.ndarray) -> np.ndarray:
        return self.kernels.penalty_sum(F, self._concave)

    def _weights(self, B: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Weights of the penalties on U and V and of the graph, each (B,) in float64."""
        nothing = np.zeros(B)
        on_V = [term for term in self.problem.on_V if not isinstance(term, Laplacian)]
        graph = [term for term in self.problem.on_V if isinstance(term, Laplacian)]
        found = (terms[0].weight if terms else nothing for terms in (self.problem.on_U, on_V, graph))
        alpha, beta, lam = (np.array(weight, dtype=np.float64) for weight in found)
        return alpha, beta, lam


def _beyond(F: np.ndarray, last: np.ndarray, momentum: np.ndarray) -> np.ndarray:
    """``F + momentum · (F − last)``, not below zero."""
    if not momentum.any():
        return F
    out = F - last
    out *= momentum.astype(F.dtype)[:, None]
    out += F
    return without_subnormals(out, float(np.finfo(F.dtype).tiny))


def _times(F: np.ndarray, factors: np.ndarray) -> np.ndarray:
    """Columns of F (rows, B, k) times ``factors`` (B, k) or (B, 1)."""
    return without_subnormals(F * factors.astype(F.dtype), float(np.finfo(F.dtype).tiny))
