"""The paper's multiplicative updates, for any sum of terms and either factor."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import array_api_compat
import numpy as np

from lognmf.core.arrays import Array, kernels, like, namespace, without_subnormals
from lognmf.core.data import InMemory
from lognmf.core.problem import Problem
from lognmf.core.rule import State
from lognmf.core.terms.protocol import DataFit, Halves, Penalty, degree_of, of_rows, summed
from lognmf.core.threads import by_rows, by_settings

NEWTON_STEPS = 60
"""Maximum number of steps to the multiplier; a handful is usual."""


def unit_columns(U: Array, F: Array, *, inverse: bool = False) -> tuple[Array, Array]:
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


def _room(F: Array, n: int) -> Array:
    """An array like ``F`` with ``n`` rows, to be filled."""
    return namespace(F).empty((n, *F.shape[1:]), dtype=F.dtype, device=array_api_compat.device(F))


@dataclass(frozen=True)
class Multiplicative:
    """One iteration in the paper's order: S, then U, then V.

    A state carries ``X @ U``, the inlier weights of the samples and the sums that the next update of U needs,
    so that an iteration reads X once: each block of rows is multiplied with the new U, gets its new codes and
    outlier part, and adds to the sums. With ``unit_components`` the columns of U have unit norm.
    """

    problem: Problem
    unit_components: bool = False

    by_sample: ClassVar[int] = 2

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

    def start(self, U: Array, V: Array) -> State:
        """The state from which to step."""
        if self.unit_components:
            U, V = unit_columns(U, V)
        return self._pass(U, V)

    def step(self, state: State) -> State:
        _, kept, *sums = state.aux
        return self._pass(self.next_U(state.U, tuple(sums)), state.V, kept, state.U)

    def next_U(self, U: Array, sums: tuple[Array, ...]) -> Array:
        """The basis after its update, from the sums over all blocks."""
        fit = self.problem.fit
        halves = [fit.halves_U(U, sums), *(penalty.halves(U) for penalty in self.problem.on_U)]
        if self.unit_components:
            return multiply_on_sphere(U, halves, linear=not fit.quadratic)
        return multiply(U, halves)

    def _pass(self, U: Array, V: Array, kept: Array | None = None, U_old: Array | None = None) -> State:
        """One pass over the data: the state of U and V, V updated if ``kept`` and ``U_old`` are given."""
        on_V = [] if kept is None else [penalty.halves(V) for penalty in self.problem.on_V]
        by_sample: list[Array] = []
        sums: list[Array] = []
        for rows, block in self.problem.data.blocks():
            own = None if kept is None else kept[rows, :]
            part = self.pass_block(block, U, V[rows, ...], own, U_old, [of_rows(h, rows) for h in on_V])
            if rows == slice(None):
                return State(U, part[0], part[1:])
            if not by_sample:
                by_sample = [F[:0, ...] if F.shape[0] == 0 else _room(F, V.shape[0]) for F in part[:3]]
            for whole, F in zip(by_sample, part[:3], strict=True):
                if F.shape[0]:
                    whole[rows, ...] = F
            sums = [a + b for a, b in zip(sums, part[3:], strict=True)] if sums else list(part[3:])
        return State(U, by_sample[0], (*by_sample[1:], *sums))

    def pass_block(
        self,
        block: InMemory,
        U: Array,
        V: Array,
        kept: Array | None,
        U_old: Array | None,
        on_V: Sequence[Halves],
    ) -> tuple[Array, ...]:
        """A block's part of a pass: its codes, ``X @ U``, inlier weights, and what it adds to the sums.

        ``on_V`` are the halves of the penalties for the rows of the block.
        """
        fit, XU = self.problem.fit, self.problem.fit.project(block, U)
        if kept is not None and U_old is not None:
            V = self._updated(V, fit.halves_V(block, U, V, XU, kept, U_old), on_V)
        weights = fit.separate(block, U, V, XU)
        return V, XU, weights, *fit.sums(block, U, V, weights)

    def _updated(self, V: Array, own: Halves, on_V: Sequence[Halves]) -> Array:
        """The codes of a block after their update."""
        if self.problem.fit.quadratic:
            return multiply(V, [own, *on_V])
        penalties = list(zip(self.problem.on_V, on_V, strict=True))
        quadratic = [halves for penalty, halves in penalties if penalty.quadratic]
        linear = [own, *(halves for penalty, halves in penalties if not penalty.quadratic)]
        return multiply_mixed(V, linear, quadratic) if quadratic else multiply(V, linear)

    def value(self, state: State) -> Array:
        return self.problem.value(*self.factors(state))

    def factors(self, state: State) -> tuple[Array, Array, Array]:
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
