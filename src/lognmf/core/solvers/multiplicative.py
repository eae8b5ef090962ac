"""The paper's multiplicative updates, for any sum of terms and either factor."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from lognmf.core.arrays import Array, by_rows, kernels, namespace, product, total, without_subnormals
from lognmf.core.problem import Problem
from lognmf.core.rule import State
from lognmf.core.solvers.unit_norm import multiply_on_sphere, unit_columns
from lognmf.core.terms.protocol import Halves, Penalty


def multiply(F: Array, fit: Halves, penalties: Iterable[Penalty]) -> Array:
    """``F ← F · Σneg / Σpos`` (``eq_update_u``, ``eq_update_v`` and their robust forms).

    Nothing is ever 0/0: the smallest normal number is added to the denominator, which
    changes no digit of an ordinary one. Results below it become exact zeros, since
    arithmetic on subnormal numbers is several times slower. On a GPU all of it is one kernel.
    """
    xp = namespace(F)
    tiny = float(xp.finfo(F.dtype).smallest_normal)
    terms = [fit, *(penalty.halves(F) for penalty in penalties)]
    compiled = kernels(F)
    at_once = None if compiled is None else compiled.multiplied(F, terms)
    if at_once is not None:
        return at_once

    def multiplied(rows: slice) -> Array:
        negs, poss = zip(*(term(rows) for term in terms), strict=True)
        neg, *more = (part for part in negs if part is not None)
        for part in more:
            neg = neg + part
        pos = poss[0]
        for part in poss[1:]:
            pos += part
        pos += tiny
        out = F[rows, ...] * neg
        out /= pos
        return without_subnormals(out, tiny)

    return by_rows(multiplied, F)


@dataclass(frozen=True)
class Multiplicative:
    """One iteration in the paper's order: S, then U, then V. Carries ``X @ U``.

    The ``X @ U`` of the V update serves the next S step and the objective, so an
    iteration needs two products with ``X``. With ``unit_components=True`` the columns of U have unit norm.
    """

    problem: Problem
    unit_components: bool = False

    def start(self, U: Array, V: Array) -> State:
        """The state from which to step."""
        if self.unit_components:
            U, V = unit_columns(U, V)
        return State(U, V, (product(self.problem.fit.X, U),))

    def step(self, state: State) -> State:
        return self.move(state, self.separate(state))

    def separate(self, state: State) -> Array:
        """The S step: the share of each sample that stays in the fit, None for all of it."""
        return self.problem.fit.separate(state.U, state.V, *state.aux)

    def move(self, state: State, kept: Array) -> State:
        """The steps of U and V against the same S."""
        problem, fit = self.problem, self.problem.fit
        U_old, V, (XU,) = state.U, state.V, state.aux
        update = multiply_on_sphere if self.unit_components else multiply
        U = update(U_old, fit.halves_U(U_old, V, kept), problem.on_U)
        XU = product(fit.X, U)
        V = multiply(V, fit.halves_V(U, V, XU, kept, U_old), problem.on_V)
        return State(U, V, (XU,))

    def value(self, state: State) -> Array:
        return self.problem.value(state.U, state.V, *state.aux)

    def factors(self, state: State) -> tuple[Array, Array, Array]:
        """U, V and ``X @ U`` of a state."""
        return state.U, state.V, state.aux[0]

    def squared_error(self, state: State) -> Array:
        """``‖X − V Uᵀ‖²_F`` of every setting, shape (B,), float64."""
        return total(self.problem.fit.squared_residuals(state.U, state.V, *state.aux), axis=0)

    def take(self, index: np.ndarray) -> Multiplicative:
        return Multiplicative(self.problem.take(index), self.unit_components)
