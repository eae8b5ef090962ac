"""Settings of a grid that are provably the same problem, so that one fit answers them all."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from numbers import Real
from typing import Any

from lognmf.core.arrays import Array, like, namespace, to_numpy
from lognmf.core.rule import State
from lognmf.core.terms.robust import Robust, kept_share
from lognmf.grid.plan import Pair, row_key

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
    start: Callable[[dict[str, Any], int], tuple[Robust, State]],
) -> dict[int, list[int]]:
    """Places whose fit may turn out to be that of another, by the place of that other.

    Settings that differ in γ alone start together. A sample is set aside if that is worth γ, so
    while the least γ that sets none aside at the start goes on like that, all larger ones make
    the same steps: they wait for it, and are fitted only if it set a sample aside after all.
    ``start`` gives the data fit and the state from which a setting and seed start.
    """
    if _OUTLIERS not in estimator._weights:
        return {}
    groups: dict[str, list[int]] = {}
    parameters = estimator.get_params()
    for i in places:
        setting, seed = pairs[i]
        if (parameters | setting)["solver"] != "mu":
            continue  # steps of coordinate descent depend on γ also where no sample is set aside
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
            starts[key] = _largest_residual(*start(setting, seed))
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
    return {**row, **setting, "seed": seed, "seconds": 0.0}


def _largest_residual(fit: Robust, state: State) -> tuple[Robust, float]:
    squared: Array = fit.squared_residuals(state.U, state.V, *state.aux)
    return fit, math.sqrt(float(namespace(squared).max(squared)))


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
    return row_key({name: _plain(v) for name, v in setting.items() if name not in idle}, seed)


def _plain(value: Any) -> Any:
    """1 and 1.0 are the same weight."""
    return float(value) if isinstance(value, Real) and not isinstance(value, bool) else value
