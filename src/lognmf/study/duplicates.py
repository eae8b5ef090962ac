"""Settings of a grid that are provably the same problem, so that one fit answers them all."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import Any

from lognmf.core.arrays import Array, like, namespace, to_numpy
from lognmf.core.state import State
from lognmf.core.terms.robust import Robust, kept_share
from lognmf.study.plan import Pair, row_key

_OUTLIERS = "gamma"
"""The weight of the outlier part, in the models that have one."""


def same_problems(estimator: Any, pairs: list[Pair]) -> dict[int, list[int]]:
    """Places of the first pair of every problem, each with the places of its repetitions."""
    first: dict[str, int] = {}
    same: dict[int, list[int]] = {}
    for i, (setting, seed) in enumerate(pairs):
        leader = first.setdefault(_problem(estimator, setting, seed), i)
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
    for i in places:
        setting, seed = pairs[i]
        groups.setdefault(_problem(estimator, setting, seed, without=(_OUTLIERS,)), []).append(i)
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


def _problem(estimator: Any, setting: dict[str, Any], seed: int, without: tuple[str, ...] = ()) -> str:
    """A name for what a setting and seed ask for: that of others that ask for the same."""
    known = {**estimator.get_params(), **setting}
    nothing = set(without)
    if known.get("graph", "") is None:
        nothing |= {"lam", "n_neighbors"}
    elif known.get("lam") == 0:
        nothing |= {"graph", "n_neighbors"}
    elif not isinstance(known.get("graph"), str):
        nothing |= {"n_neighbors"}
    if known.get("alpha") == 0 and known.get("beta") == 0:
        nothing |= {"penalty"}
    asked = {name: v for name, v in setting.items() if name not in nothing}
    return row_key({n: float(v) if n in estimator._weights else v for n, v in asked.items()}, seed)
