"""The largest weight of sparsity that an allowed error leaves room for, of a batch of settings."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import count

import numpy as np

from lognmf.core.arrays import Array, Elsewhere, namespace, to_numpy
from lognmf.core.rule import State
from lognmf.models.engine import Setup, fit

TRIALS = 10
"""Maximum number of weights tried."""

ENOUGH = 0.9
"""A weight is good enough if it uses this share of the error that is allowed."""

TOO_MUCH = 1.1
"""A weight is too large if its fit, once it has converged, needs more than this share of it."""

TIGHT = 0.1
"""That is seen from a fit which stops at this share of ``tol``: the last fit, from there, stays near it."""

PAYS = 0.5
"""Penalties are at most this share of what the parts explain. A few large outliers may be most of the error,
and a weight that 5 % of it allow would be more than all that parts can gain."""

STEPS = (1.2, 4.0)
"""Smallest and largest factor from one weight to the next."""

ZERO = 1e-3
"""Entries below this share of the largest of their part are zeros."""

GAIN = 0.02
"""A weight that brings a smaller share of new zeros is not worth its error."""


def share_of_zeros(F: Array) -> np.ndarray:
    """The share (B,) of zeros among the entries of a factor (rows, B, k)."""
    xp = namespace(F)
    zeros = ZERO * xp.max(F, axis=0, keepdims=True) >= F
    return to_numpy(xp.mean(xp.astype(zeros, xp.float64), axis=(0, 2)))


@dataclass(frozen=True, eq=False)
class Search:
    """Fits with growing weights, each from the last good one.

    ``sides`` says by 1 which of alpha and beta (B,) is sought. ``base`` (B,) is the data term of the fit
    without them, and ``spare`` (B,) what it may rise by. Parts must also pay: beyond a share of what they
    explain (B,), no parts at all are the best fit. ``tell`` gets the number of fits.
    """

    setup: Setup
    weights: Mapping[str, np.ndarray]
    sides: Mapping[str, np.ndarray]
    base: np.ndarray
    spare: np.ndarray
    explained: np.ndarray
    tell: Callable[[int], None] = lambda _: None
    count: Iterator[int] = field(default_factory=lambda: count(1))

    def sparsest(
        self, plain: State, sparsity: np.ndarray, loose: float, tol: float
    ) -> tuple[State, np.ndarray]:
        """The largest weight (B,) within the error allowed, 0 where none gains zeros, and factors near it.

        ``sparsity`` is the penalty of the ``plain`` fit with weight 1. Going down from that fit, the data
        term cannot rise by more than weight · sparsity: this gives the first value.
        """
        first = self.spare / np.where(sparsity > 0, sparsity, np.inf)
        state, weight = self._climb(plain, first, np.full_like(first, np.inf), loose)
        # A fit may stop short of a fall: with the same weight a part may be given up in the end.
        some = np.flatnonzero(weight > 0)
        tried = self.take(some)._tried(state.take(some), weight[some], TIGHT * tol) if some.size else None
        if tried is not None:
            near, cost, _ = tried
            state = state.replaced(some, near)
            fallen = some[cost > TOO_MUCH * self.spare[some]]
            if fallen.size:
                less = weight[fallen] / STEPS[0], weight[fallen]
                near, weight[fallen] = self.take(fallen)._climb(plain.take(fallen), *less, TIGHT * tol)
                state = state.replaced(fallen, near)
        weight = np.where(self._gains(plain, state), weight, 0.0)
        without = np.flatnonzero(weight == 0)
        return state.replaced(without, plain.take(without)) if without.size else state, weight

    def take(self, index: np.ndarray) -> Search:
        """The search for the settings ``index`` of the batch."""
        weights = {name: values[index] for name, values in self.weights.items()}
        sides = {name: values[index] for name, values in self.sides.items()}
        own = self.base[index], self.spare[index], self.explained[index]
        return replace(self, weights=weights, sides=sides, base=own[0], spare=own[1], explained=own[2])

    def _climb(
        self, state: State, weight: np.ndarray, high: np.ndarray, tol: float
    ) -> tuple[State, np.ndarray]:
        """The largest weight below ``high`` with a good fit, tried from ``weight`` on, and the factors."""
        low, high = np.zeros_like(weight), high.copy()
        low_cost, high_cost = np.zeros_like(weight), np.full_like(weight, np.inf)
        high_cost[np.isfinite(high)] = TOO_MUCH * self.spare[np.isfinite(high)]
        running = np.flatnonzero(weight > 0)
        for _ in range(TRIALS):
            tried = (
                self.take(running)._tried(state.take(running), weight[running], tol) if running.size else None
            )
            if tried is None:
                break
            near, cost, pays = tried
            good = (cost <= self.spare[running]) & pays
            better, worse = running[good], running[~good]
            state = state.replaced(better, near.take(np.flatnonzero(good)))
            low[better], low_cost[better] = weight[better], cost[good]
            high[worse], high_cost[worse] = weight[worse], np.maximum(cost[~good], self.spare[worse])
            del tried, near  # their memory is needed
            weight = _next_weight(self.spare, low, low_cost, high, high_cost)
            unfinished = (low_cost < ENOUGH * self.spare) & (high > STEPS[0] ** 0.25 * low)
            running = running[unfinished[running]]
        return state, low

    def _tried(
        self, state: State, weight: np.ndarray, tol: float
    ) -> tuple[State, np.ndarray, np.ndarray] | None:
        """Factors of a fit with this weight, the rise of the data term, and whether its parts pay, (B,) each.

        None if a callback has stopped it, as nothing is known of it then.
        """
        weights = {**self.weights, **{name: side * weight for name, side in self.sides.items()}}
        found = fit(self.setup, state, weights, tol)
        self.tell(next(self.count))
        if "callback" in found.stop_reason:
            return None
        data_term = found.data_term
        cost = data_term - self.base
        pays = found.solution.objective - data_term <= PAYS * (self.explained - cost)
        return State(found.state.U, found.state.V), cost, pays

    def _gains(self, plain: State, state: State) -> np.ndarray:
        """Whether a side that is to be sparse has more zeros than in the plain fit, (B,)."""
        gains = np.zeros(len(self.base), dtype=bool)
        for name, before, after in (("alpha", plain.U, state.U), ("beta", plain.V, state.V)):
            side = self.sides.get(name, np.zeros(len(self.base))) > 0
            if isinstance(after, Elsewhere):
                gains |= side
            elif side.any():
                gains |= side & (share_of_zeros(after) >= share_of_zeros(before) + GAIN)
        return gains


def _next_weight(
    spare: np.ndarray, low: np.ndarray, low_cost: np.ndarray, high: np.ndarray, high_cost: np.ndarray
) -> np.ndarray:
    """Between the bounds, as if the cost were a power of the weight; beyond the lower without an upper."""
    tiny = np.finfo(float).tiny
    lowest = np.maximum(low_cost, 1e-9 * spare) + tiny
    onward = low * np.clip((spare / lowest) ** 0.7, *STEPS)
    with np.errstate(divide="ignore", invalid="ignore"):
        share = np.log(0.95 * spare / lowest) / np.log(high_cost / lowest)
        between = low * (high / low) ** np.clip(share, 0.2, 0.8)
    between = np.where(low > 0, between, high / STEPS[1])
    return np.where(np.isinf(high), onward, between)
