"""Alpha and beta chosen from the data: the sparsest factors within the error that is allowed.

From a fit without the weights, a few steps at a time lead along a path of growing weights: each is multiplied
by what the rise of the error so far suggests. A fit to convergence then checks what was promised.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from lognmf.core.arrays import Array, like, namespace, to_numpy, total
from lognmf.core.rows import Rows, each, penalty_value, reduced
from lognmf.core.rule import State
from lognmf.core.terms import PENALTIES
from lognmf.core.terms.protocol import degree_of
from lognmf.models.engine import Fit, Setup, fit
from lognmf.progress import stage, warn

STEPS, LENGTH = 9, 20
"""Weights on the path, and the share of the iterations of the fit without weights that each of them gets."""

SHORTEST = 5
"""Minimum number of iterations with each weight."""

FIRST = 4.0
"""The first weight, in units of that whose penalty of the first factors equals the error allowed. The error
cannot rise by more than the penalty, and rises by much less."""

POWER, FACTORS = 0.7, (0.5, 3.0)
"""The error rises with the weight to the power of 1 / 0.7; a weight is the last one times a factor between
these."""

NEARLY = 0.97
"""The share of the error allowed that a weight aims at."""

TOO_MUCH = 1.1
"""A converged fit may use this share of the error that is allowed."""

TRIALS, LESS, AFTER_FALL = 4, 0.8, 0.4
"""Converged fits until one keeps its promises, after which the weight is 0; the largest factor of the weight
where the error is too large, over the number of trials; and the factor where a part has been given up."""

LEAST, MARGIN = 0.1, 1.5
"""Every part explains at least this share of what it explains without the weights; and on the path more by
this factor, as some of it is lost on the way to a minimum."""

FEWEST = 8
"""Every part has so many features, or a quarter of those that it has without the weights."""

LARGE = 0.1
"""A part has the features with more than this share of its largest entry."""

PAYS = 0.5
"""Penalties are at most this share of what the parts explain: beyond it, no parts at all are soon better."""

ZERO = 1e-3
"""Entries below this share of the largest of their part are zeros."""

GAIN = 0.02
"""A weight that brings a smaller share of new zeros is not worth its error."""

DENSE, SHARPNESS, NEGLIGIBLE = 0.07, 4.0, 0.01
"""The parts get half of the penalty where this share of the entries of both factors is zero without it; how
fast their share changes there; and the share of the penalty that is rounded to none."""


def share_of_zeros(F: Rows) -> np.ndarray:
    """The share (B,) of zeros among the entries of a factor (rows, B, k)."""
    (largest,) = reduced(_largest, F, combine=np.maximum)
    zeros, count = reduced(_zeros, F, shared=(largest,))
    return to_numpy(zeros) / count


def _largest(F: Array) -> tuple[Array]:
    return (namespace(F).max(F, axis=0),)


def _zeros(F: Array, largest: Array) -> tuple[Array, int]:
    """The number (B,) of zeros, and of entries of a setting."""
    xp = namespace(F)
    zeros = ZERO * largest >= F
    return xp.sum(xp.astype(zeros, xp.float64), axis=(0, 2)), F.shape[0] * F.shape[2]


def sides_of(U: Array, V: Rows) -> dict[str, np.ndarray]:
    """How the penalty is divided between parts (alpha) and codes (beta), (B,) each, which add up to 1.

    Parts of pictures, texts and counts have zeros without any penalty, and so have their codes. Spectra and
    their mixtures have none. There sparse codes, few substances in each sample, make the parts pure.
    """
    zeros = (share_of_zeros(U) + share_of_zeros(V)) / 2
    parts = zeros**SHARPNESS / (zeros**SHARPNESS + DENSE**SHARPNESS)
    parts = np.clip((parts - NEGLIGIBLE) / (1 - 2 * NEGLIGIBLE), 0, 1)
    return {"alpha": parts, "beta": 1.0 - parts}


def choose_sparsity(setup: Setup, found: Fit, names: Sequence[str]) -> Fit:
    """Alpha and beta, as far as they are among ``names``: as sparse as the allowed error permits."""
    model, problem = setup.model, found.rule.problem
    plain = State(found.state.U, found.state.V)
    # With missing entries both are penalised: a sparse part may hardly touch what is known of a sample,
    # and its code, free of charge, would grow without bound.
    either = len(names) == 2 and not problem.data.weights
    sides = sides_of(plain.U, plain.V) if either else dict.fromkeys(names, np.ones(plain.batch))
    costs = {name: _cost(model.penalty, F, plain.U) for name, F in (("alpha", plain.U), ("beta", plain.V))}
    if either:  # each factor's penalty is its share of the whole
        sides = {name: side / np.where(costs[name] > 0, costs[name], np.inf) for name, side in sides.items()}
    else:
        cost = np.sum([costs[name] for name in names], axis=0)
        sides = {name: side / np.where(cost > 0, cost, np.inf) for name, side in sides.items()}
    data_term = found.data_term
    # Where the parts explain little, as in texts, a small share of the error is all that they explain.
    explained = np.maximum(_without_parts(problem, plain.U, plain.V) - data_term, 0)
    share = (1 + model.extra_error) ** degree_of(problem.fit) - 1
    spare = share * np.minimum(data_term, explained)
    with stage(f"choosing {' and '.join(names)}", STEPS + TRIALS, "fits", at_most=True) as shown:
        search = _Search(setup, found.weights, sides, plain, data_term, spare, explained)
        state, weight = search.sparsest(np.maximum(SHORTEST, found.n_iter // LENGTH), shown.move)
    return found.moved(state, search.weights_of(weight))


@dataclass(frozen=True, eq=False)
class _Search:
    """The largest weight of a batch of settings that keeps every promise.

    ``sides`` are alpha and beta (B,) of a weight of 1. ``data_term`` (B,) is that of the ``plain`` fit
    without them, ``spare`` (B,) what it may rise by, and ``explained`` (B,) what the plain parts explain.
    """

    setup: Setup
    given: Mapping[str, np.ndarray]
    sides: Mapping[str, np.ndarray]
    plain: State
    data_term: np.ndarray
    spare: np.ndarray
    explained: np.ndarray

    def weights_of(self, weight: np.ndarray) -> dict[str, np.ndarray]:
        """All weights by name, (B,) each."""
        return {**self.given, **{name: side * weight for name, side in self.sides.items()}}

    def take(self, index: np.ndarray) -> _Search:
        """The search for the settings ``index`` of the batch."""
        given, sides = ({n: v[index] for n, v in d.items()} for d in (self.given, self.sides))
        arrays = self.data_term[index], self.spare[index], self.explained[index]
        return _Search(self.setup, given, sides, self.plain.take(index), *arrays)

    def sparsest(self, steps: np.ndarray, tell: Any) -> tuple[State, np.ndarray]:
        """Factors near the last fit, and its weight (B,): 0 where none keeps its promises or gains zeros.

        Each weight of a path gets a number of ``steps`` (B,).
        """
        possible = np.any([side > 0 for side in self.sides.values()], axis=0)
        weight, state = np.where(possible, FIRST * self.spare, 0.0), self.plain
        for length in np.unique(steps[weight > 0]):
            some = np.flatnonzero((weight > 0) & (steps == length))
            near, weight[some] = self.take(some)._path(weight[some], int(length), tell)
            near, weight[some] = self.take(some)._checked(near, weight[some], tell)
            state = state.replaced(some, near)
        weight = np.where(self._gains(state), weight, 0.0)
        without = np.flatnonzero(weight == 0)
        return state.replaced(without, self.plain.take(without)) if without.size else state, weight

    def _path(self, weight: np.ndarray, steps: int, tell: Any) -> tuple[State, np.ndarray]:
        """The weight that the error allows, by a few ``steps`` with each from ``weight`` on, and factors."""
        few = replace(self.setup, max_iter=min(steps, self.setup.max_iter))
        state, last, highest = self.plain, np.zeros_like(weight), np.full_like(weight, np.inf)
        for step in range(STEPS):
            found = fit(few, state, self.weights_of(weight), 0.0)
            tell(step + 1)
            if self.setup.watch.stopped:
                break
            rise, alive = self._rise(found), self._alive(found, MARGIN)
            good = alive & (rise <= self.spare)
            # Entries that a weight has set to zero stay zero with a smaller one, so a bad step is taken back.
            better = np.flatnonzero(good)
            state = state.replaced(better, State(found.state.U, found.state.V).take(better))
            last, highest = np.where(good, weight, last), np.where(good, highest, weight)
            onward = weight * self._factor(rise, *FACTORS)
            between = np.where(
                last > 0, np.sqrt(last) * np.sqrt(highest), highest * np.where(alive, FACTORS[0], AFTER_FALL)
            )
            weight = np.where(good & (onward < highest), onward, between)
        return state, last

    def _checked(self, state: State, weight: np.ndarray, tell: Any) -> tuple[State, np.ndarray]:
        """A converged fit from ``state`` that keeps its promises, with this ``weight`` or a smaller one."""
        weight, left = weight.copy(), np.flatnonzero(weight > 0)
        for trial in range(TRIALS):
            if not left.size or self.setup.watch.stopped:
                return state, weight
            own = self.take(left)
            found = fit(self.setup, state.take(left), own.weights_of(weight[left]), self.setup.model.tol)
            tell(STEPS + trial + 1)
            rise, alive = own._rise(found), own._alive(found)
            good = alive & (rise <= TOO_MUCH * own.spare)
            state = state.replaced(left[good], State(found.state.U, found.state.V).take(np.flatnonzero(good)))
            state = state.replaced(left[~good], own.plain.take(np.flatnonzero(~good)))
            less = np.where(alive, own._factor(rise, LEAST, LESS / (trial + 1)), AFTER_FALL)
            weight[left] *= np.where(good, 1.0, less)
            left = left[~good]
        if left.size:
            warn(
                "No sparse factors were found within the error that extra_error allows: alpha = beta = 0. "
                "To have sparse factors, give numbers."
            )
            weight[left] = 0.0
        return state, weight

    def _factor(self, rise: np.ndarray, least: float, most: float) -> np.ndarray:
        """By what a weight is to be multiplied, whose fit has this ``rise`` (B,), to use what is allowed."""
        return np.clip((NEARLY * self.spare / np.maximum(rise, 1e-9 * self.spare)) ** POWER, least, most)

    def _rise(self, found: Fit) -> np.ndarray:
        """By how much the data term is larger than in the plain fit, (B,)."""
        return found.data_term - self.data_term

    def _alive(self, found: Fit, margin: float = 1.0) -> np.ndarray:
        """Whether every part still explains enough, and whether all of them are worth their penalty, (B,)."""
        data_term = found.data_term
        explained = self.explained - (data_term - self.data_term)
        pays = found.solution.objective - data_term <= PAYS * explained
        pays = pays & np.all(_energy(found.state) >= margin * LEAST * _energy(self.plain), axis=1)
        return pays & np.all(_features(found.state) >= np.minimum(FEWEST, _features(self.plain) / 4), axis=1)

    def _gains(self, state: State) -> np.ndarray:
        """Whether a factor that is to be sparse has more zeros than in the plain fit, (B,)."""
        gains = np.zeros(len(self.spare), dtype=bool)
        for name, before, after in (("alpha", self.plain.U, state.U), ("beta", self.plain.V, state.V)):
            side = self.sides.get(name, np.zeros(len(gains))) > 0
            if side.any():
                gains |= side & (share_of_zeros(after) >= share_of_zeros(before) + GAIN)
        return gains


def _energy(state: State) -> np.ndarray:
    """What every part explains, ``‖u_j‖² ‖v_j‖²``, (B, k)."""
    squares_U, squares_V = (to_numpy(reduced(_squares, F)[0]) for F in (state.U, state.V))
    return squares_U * squares_V


def _squares(F: Array) -> tuple[Array]:
    return (total(F**2, axis=0),)


def _features(state: State) -> np.ndarray:
    """The number of features of every part, (B, k)."""
    xp = namespace(state.U)
    large = LARGE * xp.max(state.U, axis=0, keepdims=True) < state.U
    return to_numpy(xp.sum(xp.astype(large, xp.float64), axis=0))


def _without_parts(problem: Any, U: Array, V: Rows) -> np.ndarray:
    """The data term (B,) of no parts at all or, where that is infinite, of one: sums of rows and columns."""
    if problem.fit.quadratic:
        U, V = 0 * U, V * 0
    else:
        ones = namespace(U).ones_like(U[:, :, :1])
        U, V = problem.data.t_times(each(_ones, V)), problem.data.times(ones)
        (size,) = reduced(_sum_of_rows, V)
        V = V / float(size[0])
    return to_numpy(problem.total(_projected_values, U, V, V))


def _ones(V: Array) -> Array:
    return namespace(V).ones_like(V[:, :, :1])


def _sum_of_rows(V: Array) -> tuple[Array]:
    return (total(V[:, :, 0], axis=0),)


def _projected_values(data_fit: Any, block: Any, U: Array, V: Array, _: Array) -> Array:
    return data_fit.row_values(block, U, V, data_fit.project(block, U))


def _cost(penalty: str, F: Rows, pattern: Array) -> np.ndarray:
    """The penalty of a factor of every setting, with weight 1."""
    return to_numpy(penalty_value(PENALTIES[penalty](like(np.ones(pattern.shape[1]), pattern)), F))
