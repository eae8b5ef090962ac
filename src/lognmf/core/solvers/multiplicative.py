"""The paper's multiplicative updates, for any sum of terms and either factor."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from lognmf.core.arrays import Array, kernels, like, namespace, without_subnormals
from lognmf.core.data import InMemory
from lognmf.core.problem import Problem
from lognmf.core.rows import Rows, halves
from lognmf.core.rule import State
from lognmf.core.terms.protocol import DataFit, Halves, Penalty, degree_of, summed
from lognmf.core.threads import by_rows, by_settings

NEWTON_STEPS = 60
"""Maximum number of steps to the multiplier; a handful is usual."""


def unit_columns(U: Array, F: Rows, *, inverse: bool = False) -> tuple[Array, Rows]:
    """U (p, B, k) with columns of unit norm, and ``F`` times (or over) their former norms."""
    xp = namespace(U)
    one = like(1.0, U)
    largest = xp.max(U, axis=0)
    largest = xp.where(largest > 0, largest, one)
    U = U / largest  # whose squares neither vanish nor overflow
    norms = xp.linalg.vector_norm(U, axis=0)
    norms = xp.where(norms > 0, norms, one)
    scale = norms * largest
    return U / norms, F / scale if inverse else F * scale


def multiply_on_sphere(F: Array, terms: Sequence[Halves], *, linear: bool = False) -> Array:
    """``F ← F · Σneg / (Σpos + μ F)``, with μ for every column such that its norm stays 1.

    Why nothing rises: the multiplicative update minimises, entry by entry, a bound
    ``Σ d x² − 2 e x`` of the objective that touches it at F, with d = pos/F and e = neg. Over columns
    of unit norm the minimum of that same bound is ``x = e / (d + μ)`` for the one μ with norm 1
    and all d + μ > 0: on the unit sphere adding μ‖x‖² changes nothing, so μ may be added to the diagonal. So
    the bound falls, and the objective with it. Terms with the bound ``pos·x − neg·F log x`` (``linear``) have
    ``Σ d x²/2 − e log x`` above it, with e = neg·F, whose minimum is ``x = √(e / (d + μ))``.
    """
    neg, pos = summed(terms, slice(None))
    return by_settings(lambda own: _on_sphere(F[:, own, :], neg[:, own, :], pos[:, own, :], linear=linear), F)


def _on_sphere(F: Array, neg: Array, pos: Array, *, linear: bool) -> Array:
    """`multiply_on_sphere` for some settings, from the sums of the terms' halves."""
    xp = namespace(F)
    tiny = float(xp.finfo(F.dtype).smallest_normal)
    # The sum of p inverses of the least pull must not overflow.
    least, zero, one, none = (like(number, F) for number in (4 * F.shape[0] * tiny, 0.0, 1.0, -float("inf")))
    neg = neg * F if linear else neg
    power = 0.5 if linear else 1.0
    neg = xp.where(neg > least, neg, least)  # an entry without pull takes what is left
    alive = F > 0
    with np.errstate(over="ignore", invalid="ignore"):
        own = pos / xp.where(alive, F, one)
        score = xp.where(alive, neg - own, none)
        # At μ = max(e − d) one entry is 1: the norm is not below 1, and μ is not below that. Newton's
        # method on 1/norm, which is concave in μ, lands left of the solution from wherever it
        # begins, then climbs and never passes it. It begins where F would stay as it is. All is
        # measured from the highest entry, since d and μ may be large and almost cancel.
        highest = score == xp.max(score, axis=0)
        base = xp.max(xp.where(highest, own, none), axis=0)
        lowest = xp.max(xp.where(highest & (own == base), neg, none), axis=0)
        beyond = own - base
        stay = xp.sum(neg if linear else F * neg, axis=0) - xp.sum(F * F * beyond, axis=0)
        shift = xp.where((stay > lowest) & (stay < float("inf")), stay, lowest)
        for _ in range(NEWTON_STEPS):
            gap = beyond + shift
            usable = alive & (gap > 0)
            gap = xp.where(usable, gap, one)
            x = xp.where(usable, (neg / gap) ** power, zero)
            square = xp.sum(x * x, axis=0)
            excess = square ** (0.5 / power) - 1
            # A column without entries has norm 0 for every μ, and stays.
            off = (xp.abs(excess) > 8 * float(xp.finfo(F.dtype).eps)) & (square > 0)
            if not bool(xp.any(off)):
                break
            slope = xp.sum(x * x / gap, axis=0)
            moved = shift + excess * square / slope
            shift = xp.where(off, xp.where(moved > lowest, moved, lowest), shift)
    unit, _ = unit_columns(x, x[:0, ...])
    return without_subnormals(unit, tiny)


def multiply(F: Array, terms: Sequence[Halves]) -> Array:
    """``F ← F · Σneg / Σpos`` (``eq_update_u``, ``eq_update_v`` and their robust forms).

    Nothing is ever 0/0: the smallest normal number is added to the denominator, which
    changes no digit of an ordinary one. Results below it become exact zeros, since
    arithmetic on subnormal numbers is several times slower. On a GPU all of it is one kernel.
    """
    tiny = float(namespace(F).finfo(F.dtype).smallest_normal)
    compiled = kernels(F)
    at_once = None if compiled is None else compiled.multiplied(F, terms)
    if at_once is not None:
        return at_once

    def multiplied(rows: slice) -> Array:
        neg, pos = summed(terms, rows)
        pos += tiny
        out = F[rows, ...] * neg
        out /= pos
        return without_subnormals(out, tiny)

    return by_rows(multiplied, F)


def multiply_mixed(F: Array, linear: Sequence[Halves], quadratic: Sequence[Halves]) -> Array:
    """The update where some terms are bounded by ``pos·x − neg·log x`` and others are quadratic.

    With t = new/old, the bound of the sum has its minimum where ``pos₂ t² + (pos₁ − neg₂) t − neg₁ = 0``,
    the index 1 for linear terms and 2 for quadratic ones. Without the latter t = neg₁/pos₁, without the
    former neg₂/pos₂.
    """
    xp = namespace(F)
    tiny = float(xp.finfo(F.dtype).smallest_normal)

    def multiplied(rows: slice) -> Array:
        neg1, pos1 = summed(linear, rows)
        neg2, pos2 = summed(quadratic, rows)
        back = pos1 - neg2
        root = xp.hypot(back, 2 * xp.sqrt(pos2) * xp.sqrt(neg1))
        # The positive solution, written so that nothing cancels. What is 0 stays 0.
        top = xp.where(back > 0, 2 * neg1, root - back)
        bottom = xp.where(back > 0, root + back, 2 * pos2) + tiny
        # Multiplied first: of an entry next to zero, top / bottom alone may overflow.
        return without_subnormals(F[rows, ...] * top / bottom, tiny)

    return by_rows(multiplied, F)


def first_pass(
    block: InMemory, V: Array, fit: DataFit, U: Array
) -> tuple[tuple[Array, ...], tuple[Array, ...]]:
    """``X @ U`` and inlier weights of a block for given codes, and what it adds to the sums for U."""
    return _separated(block, V, fit, U, fit.project(block, U))


def _separated(
    block: InMemory, V: Array, fit: DataFit, U: Array, XU: Array
) -> tuple[tuple[Array, ...], tuple[Array, ...]]:
    kept = fit.separate(block, U, V, XU)
    return (XU, kept), fit.sums(block, U, V, kept)


def one_pass(
    block: InMemory, V: Array, kept: Array, *more: Any
) -> tuple[tuple[Array, ...], tuple[Array, ...]]:
    """A block's part of an iteration: its new codes, and all that `first_pass` gives for these.

    ``more`` are the half gradients of the penalties on the codes, which of these are quadratic, the data fit,
    and U after and before its update.
    """
    *on_V, quadratic, fit, U, U_old = more
    XU = fit.project(block, U)
    V = _updated(V, fit.halves_V(block, U, V, XU, kept, U_old), on_V, quadratic, fit)
    rows, sums = _separated(block, V, fit, U, XU)
    return (V, *rows), sums


def _updated(
    V: Array, of_fit: Halves, on_V: Sequence[Halves], quadratic: Sequence[bool], fit: DataFit
) -> Array:
    """The codes of a block after their update."""
    if fit.quadratic:
        return multiply(V, [of_fit, *on_V])
    bounded = [of for of, quadratic_too in zip(on_V, quadratic, strict=True) if quadratic_too]
    linear = [of_fit, *(of for of, quadratic_too in zip(on_V, quadratic, strict=True) if not quadratic_too)]
    return multiply_mixed(V, linear, bounded) if bounded else multiply(V, linear)


@dataclass(frozen=True)
class Multiplicative:
    """One iteration in the paper's order: S, then U, then V.

    A state carries ``X @ U``, the inlier weights of the samples and the sums that the next update of U needs,
    so that an iteration reads X once: each block of rows is multiplied with the new U, gets its new codes and
    outlier part, and adds to the sums. With ``unit_components`` the columns of U have unit norm.
    """

    problem: Problem
    unit_components: bool = False

    @property
    def degree(self) -> int:
        """Degree of the objective in X."""
        return degree_of(self.problem.fit)

    @staticmethod
    def refuses(problem: Problem) -> str | None:  # noqa: ARG004
        """Why this solver cannot minimise ``problem``; it takes every one."""
        return None

    @classmethod
    def of(cls, problem: Problem, unit_components: bool = False) -> Multiplicative:
        """The rule for ``problem``."""
        return cls(problem, unit_components)

    def start(self, U: Array, V: Rows) -> State:
        """The state from which to step."""
        if self.unit_components:
            U, V = unit_columns(U, V)
        rows, sums = self.problem.data.map_rows(first_pass, V, shared=(self.problem.fit, U))
        return State(U, V, (*rows, *sums))

    def step(self, state: State) -> State:
        """One iteration, which reads X once."""
        _, kept, *sums = state.aux
        U, problem = self.next_U(state.U, tuple(sums)), self.problem
        on_V = [halves(penalty, state.V) for penalty in problem.on_V]
        quadratic = () if problem.fit.quadratic else tuple(penalty.quadratic for penalty in problem.on_V)
        (V, *rows), new_sums = problem.data.map_rows(
            one_pass, state.V, kept, *on_V, shared=(quadratic, problem.fit, U, state.U)
        )
        return State(U, V, (*rows, *new_sums))

    def next_U(self, U: Array, sums: tuple[Array, ...]) -> Array:
        """The basis after its update, from the sums over all blocks."""
        fit = self.problem.fit
        terms = [fit.halves_U(U, sums), *(penalty.halves(U) for penalty in self.problem.on_U)]
        if self.unit_components:
            return multiply_on_sphere(U, terms, linear=not fit.quadratic)
        return multiply(U, terms)

    def value(self, state: State) -> Array:
        return self.problem.value(*self.factors(state))

    def factors(self, state: State) -> tuple[Array, Rows, Rows]:
        """U, V and ``X @ U`` of a state."""
        return state.U, state.V, state.aux[0]

    def squared_error(self, state: State) -> Array:
        """``‖X − V Uᵀ‖²_F`` of every setting, shape (B,), float64."""
        return self.problem.squared_error(*self.factors(state))

    def take(self, index: np.ndarray) -> Multiplicative:
        return replace(self, problem=self.problem.take(index))


@dataclass(frozen=True)
class MultiplicativeCodes:
    """Codes V of samples for a fixed basis U (p, 1, k), for any data fit.

    The samples are the batch: each is updated until it has converged, and then leaves.
    """

    data: InMemory
    fit: DataFit
    U: Array
    penalties: tuple[Penalty, ...] = ()

    def start(self) -> State:
        """For each sample the multiple of the all-ones code that has the sample's sum."""
        xp = namespace(self.U)
        n, k = self.data.shape[0], self.U.shape[2]
        ones = like(np.ones((self.data.shape[1], 1, 1)), self.U)
        size = float(xp.sum(self.U)) or 1.0
        scale = self.data.times(ones) / size
        V = xp.reshape(scale, (1, n, 1)) * like(np.ones((1, 1, k)), self.U)
        return State(V[:0, ...], V)

    def step(self, state: State) -> State:
        codes, XU = self._by_rows(state.V), self._projected
        kept = self.fit.separate(self.data, self.U, codes, XU)
        neg, pos = self.fit.halves_V(self.data, self.U, codes, XU, kept, self.U)(slice(None))
        xp = namespace(codes)
        terms = [lambda _: (xp.permute_dims(neg, (1, 0, 2)), xp.permute_dims(pos, (1, 0, 2)))]
        terms += [penalty.halves(state.V) for penalty in self.penalties]
        return replace(state, V=multiply(state.V, terms))

    def value(self, state: State) -> Array:
        codes = self._by_rows(state.V)
        value = self.fit.row_values(self.data, self.U, codes, self._projected)[:, 0]
        for penalty in self.penalties:
            value = value + penalty.value(state.V)
        return value

    def take(self, index: np.ndarray) -> MultiplicativeCodes:
        penalties = tuple(penalty.take(index) for penalty in self.penalties)
        fit, data = self.fit.take(index), self.data.take_rows(index)
        return replace(self, data=data, fit=fit, penalties=penalties)

    @staticmethod
    def _by_rows(V: Array) -> Array:
        """Codes (n, 1, k) from a state's (1, n, k)."""
        return namespace(V).permute_dims(V, (1, 0, 2))

    @functools.cached_property
    def _projected(self) -> Array:
        """``X @ U``, as far as the fit needs it."""
        return self.fit.project(self.data, self.U)
