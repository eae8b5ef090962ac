"""Settings of a grid that are provably the same problem, so that one fit answers them all."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from numbers import Real
from typing import Any

import numpy as np

from lognmf.core.arrays import Array, like, namespace, to_numpy
from lognmf.core.rule import State
from lognmf.core.solvers import SOLVERS, Multiplicative
from lognmf.core.terms.robust import Robust, kept_share
from lognmf.grid.plan import Pair, key_of, plain, row_key

_OUTLIERS = "gamma"
"""The weight of the outlier part, in the models that have one."""


def same_problems(estimator: Any, pairs: list[Pair]) -> dict[int, list[int]]:
    """Places of the first pair of every problem, each with the places of its repetitions."""
    first: dict[str, int] = {}
    same: dict[int, list[int]] = {}
    parameters = estimator.get_params()
    for i, (setting, seed) in enumerate(pairs):
        leader = first.setdefault(_problem(parameters | setting, setting, seed), i)
        same.setdefault(leader, [])
        if leader != i:
            same[leader].append(i)
    return same


def followers(
    estimator: Any,
    pairs: list[Pair],
    places: Iterable[int],
    start: Callable[[dict[str, Any], int], tuple[Robust, float]],
) -> dict[int, list[int]]:
    """Places whose fit may turn out to be that of another, by the place of that other.

    Settings that differ in γ alone start together. If no sample is an outlier at γ₀ during the whole fit,
    every γ > γ₀ makes the same steps. So the least γ without an outlier at the start is fitted first; the
    larger ones wait for it, and are fitted only if a sample became an outlier after all. ``start`` gives
    the data fit of a setting and seed, and the largest residual at the start.
    """
    if _OUTLIERS not in estimator._weights:
        return {}
    groups: dict[str, list[int]] = {}
    parameters = estimator.get_params()
    for i in places:
        setting, seed = pairs[i]
        if SOLVERS[(parameters | setting)["solver"]] is not Multiplicative:
            continue  # other steps may depend on γ also where no sample is an outlier
        part = {name: v for name, v in setting.items() if name != _OUTLIERS}
        groups.setdefault(_problem(parameters | setting, part, seed), []).append(i)
    starts: dict[str, tuple[Robust, float]] = {}
    waiting = {}
    for members in groups.values():
        members = sorted(members, key=lambda i: pairs[i][0][_OUTLIERS])
        if len(members) < 2:
            continue
        setting, seed = pairs[members[0]]
        key = row_key({n: v for n, v in setting.items() if n not in estimator._weights}, seed)
        if key not in starts:
            starts[key] = start(setting, seed)
        fit, largest = starts[key]
        weights = like([float(pairs[i][0][_OUTLIERS]) for i in members], fit.weight)
        quiet = to_numpy(kept_share(fit.row_norm, like([largest], fit.weight), weights / 2) == 1)
        leader, *others = [i for i, nothing in zip(members, quiet, strict=True) if nothing] or [-1]
        if others:
            waiting[leader] = others
    return waiting


def copied(row: dict[str, Any], pair: Pair) -> dict[str, Any]:
    """The row of a pair whose fit was made for another."""
    setting, seed = pair
    return {**row, **{name: plain(v) for name, v in setting.items()}, "seed": seed, "seconds": 0.0}


def _problem(parameters: dict[str, Any], setting: dict[str, Any], seed: int) -> str:
    """A name for what a setting and seed ask for; ``setting`` may be part of all ``parameters``."""
    idle: set[str] = set()
    if parameters.get("graph", "") is None:
        idle |= {"lam", "n_neighbors"}
    elif parameters.get("lam") == 0:
        idle |= {"graph", "n_neighbors"}
    elif not isinstance(parameters.get("graph", ""), str):
        idle |= {"n_neighbors"}
    if parameters.get("alpha") == 0 and parameters.get("beta") == 0:
        idle |= {"penalty"}
    return key_of([{name: _number(plain(v)) for name, v in setting.items() if name not in idle}, seed])


def _number(value: Any) -> Any:
    """1 and 1.0 are the same weight."""
    return float(value) if isinstance(value, Real) and not isinstance(value, bool) else value


@dataclass(frozen=True)
class Watched:
    """``rule``, carrying also which settings ever had an outlier, (1, B), as the last array of the state.

    While there was none, the iterates are those of the plain fit, and of every larger weight of the
    outlier part.
    """

    rule: Multiplicative

    def start(self, U: Array, V: Array) -> State:
        """The state from which to step."""
        state = self.rule.start(U, V)
        return State(state.U, state.V, (*state.aux, self._outliers(state)))

    def step(self, state: State) -> State:
        *aux, ever = state.aux
        after = self.rule.step(State(state.U, state.V, tuple(aux)))
        return State(after.U, after.V, (*after.aux, ever | self._outliers(after)))

    @staticmethod
    def _outliers(state: State) -> Array:
        """Which settings have an outlier now, (1, B)."""
        kept = state.aux[1]
        return namespace(kept).any(kept < 1, axis=0)[None, :]

    def value(self, state: State) -> Array:
        return self.rule.value(state)

    def take(self, index: np.ndarray) -> Watched:
        return Watched(self.rule.take(index))
