"""What a grid will do, checked and laid out before any work."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Mapping
from numbers import Real
from typing import Any, TypeAlias

import numpy as np
from sklearn.base import clone
from sklearn.model_selection import ParameterGrid

from lognmf.core.arrays import Matrix, is_torch, to_numpy
from lognmf.core.matrices import check_dtype, to_device
from lognmf.graph import Graphs
from lognmf.models import MODELS
from lognmf.models.base import FactorModel
from lognmf.models.identity import key_of, plain
from lognmf.models.validation import Samples, check_samples
from lognmf.models.weights import AUTO
from lognmf.parameters import check_integer, check_seed

Pair: TypeAlias = tuple[dict[str, Any], int]
"""A setting and a seed: the key of a row."""

_NUMBERS_PER_START = 16
"""Numbers that a start of a setting needs at most while it is fitted, in units of (n + p)·k."""

_DEFAULT_MEMORY = 1 << 30
"""Bytes for a batch on a CPU: larger batches are no faster there."""


_NOT_IN_A_GRID = {
    "random_state": "use seeds instead",
    "verbose": "use verbose of fit_grid instead",
    "warm_start": "every fit of a grid has its own start",
}
"""Parameters that a grid cannot vary, and why."""


def check_model(model: Any, max_iter: int | None, tol: float | None) -> Any:
    """The estimator of a grid, with the given limits."""
    if isinstance(model, str):
        if model not in MODELS:
            msg = f"model must be an estimator or one of {list(MODELS)}; got {model!r}."
            raise ValueError(msg)
        model = MODELS[model]()
    if not isinstance(model, FactorModel):
        msg = f"model must be an estimator of this package or one of {list(MODELS)}; got {model!r}."
        raise TypeError(msg)
    given = {"max_iter": max_iter, "tol": tol}
    return clone(model).set_params(**{name: v for name, v in given.items() if v is not None})


def check_settings(estimator: Any, grid: Any) -> tuple[list[dict[str, Any]], tuple[str, ...]]:
    """The settings of a grid, each with every weight of the model, and the names in them."""
    settings = [dict(setting) for setting in ParameterGrid(grid)]
    if not settings:
        msg = "grid is empty: give a dict of lists, such as {'lam': [0.1, 1.0]}."
        raise ValueError(msg)
    known = estimator.get_params()
    for name in {name for setting in settings for name in setting}:
        if name in _NOT_IN_A_GRID:
            msg = f"grid cannot hold {name}: {_NOT_IN_A_GRID[name]}."
            raise ValueError(msg)
        if name not in known:
            msg = f"{type(estimator).__name__} has no parameter {name!r}; it has {sorted(known)}."
            raise ValueError(msg)
    weights = [name for name in estimator.spec.weights if name in known]
    names = [*weights, *sorted({n for s in settings for n in s} - set(weights))]
    return [{name: s.get(name, known[name]) for name in names} for s in settings], tuple(names)


def check_every(estimator: Any, settings: list[dict[str, Any]], samples: Samples, graphs: Graphs) -> None:
    """Refuse bad settings, and data that a setting cannot take, before any work."""
    trial = clone(estimator)
    seen = set()
    for setting in settings:
        vars(trial).update(setting)  # every setting has the same names; set_params takes a millisecond
        trial.check_parameters()
        others = tuple(id(value) for name, value in setting.items() if name not in estimator.spec.weights)
        if others not in seen:  # data are refused whatever the weights are
            seen.add(others)
            trial.check_data(check_samples(trial, samples, reset=True), graphs)


def check_seeds(seeds: Iterable[int]) -> list[int]:
    """Seeds as a list of different integers."""
    seeds = list(seeds)
    for seed in seeds:
        check_seed("each of seeds", seed)
    if not seeds or len(set(seeds)) < len(seeds):
        msg = f"seeds must be different integers, at least one; got {seeds}."
        raise ValueError(msg)
    return [int(seed) for seed in seeds]


def check_classes(y: Any, n: int) -> np.ndarray:
    """Classes 0, 1, … of the samples from ``y``."""
    y = to_numpy(y)
    if y.shape != (n,):
        msg = f"y must hold one class for each of the {n} samples; got shape {y.shape}."
        raise ValueError(msg)
    try:
        names, classes = np.unique(y, return_inverse=True)
        sound = bool(np.all(names == names))  # NaN alone differs from itself
    except TypeError:  # they cannot be compared
        sound = False
    if not sound:
        msg = "y must hold a number or a word for each sample, without NaN and None: leave out other samples."
        raise ValueError(msg)
    return classes


def check_clusters(n_clusters: int | None, classes: np.ndarray | None, n: int) -> int | None:
    """Number of clusters, by default that of the classes; None where nobody asks."""
    if n_clusters is None:
        return None if classes is None else int(classes.max()) + 1
    check_integer("n_clusters", n_clusters, 1)
    if n_clusters > n:
        msg = f"n_clusters must be at most the number of samples, {n}; got {n_clusters}."
        raise ValueError(msg)
    return n_clusters


def place(X: Matrix, device: Any, dtype: str | None) -> Matrix:
    """``X`` where, and in the type in which, the grid is to be fitted."""
    check_dtype(dtype)
    if device is None and not is_torch(X):
        return X if dtype is None else X.astype(dtype, copy=False)
    return to_device(X, str(X.device if device is None else device), dtype)


def batches(
    estimator: Any,
    pairs: list[Pair],
    places: Iterable[int],
    X: Matrix,
    memory: int | None,
    most: int | None = None,
) -> Iterator[list[int]]:
    """Places of pairs that are fitted together, within the memory, and no more than ``most`` fits.

    All but weights and seed are alike, and ``max_iter`` where it only says how far one fit goes.
    """
    (n, p), item = X.shape, X.dtype.itemsize
    memory = _free_memory(X) if memory is None else memory
    groups: dict[str, dict[str, list[int]]] = {}
    for i in places:
        setting = pairs[i][0]
        shape = {n: v for n, v in setting.items() if n not in estimator.spec.weights or v == AUTO}
        if _is_on_the_way(estimator, setting):
            del shape["max_iter"]
        fits = groups.setdefault(key_of(shape), {})
        fits.setdefault(fit_key(pairs[i]) if "max_iter" not in shape else key_of(i), []).append(i)
    sizes = {}
    for group, fits in groups.items():
        setting = pairs[next(iter(fits.values()))[0]][0]
        k, n_init = ((vars(estimator) | setting)[name] for name in ("n_components", "n_init"))
        numbers = _NUMBERS_PER_START * (n + p) * k * n_init
        sizes[group] = memory // (numbers * item)
        if sizes[group] < 1:
            msg = f"memory must be at least {numbers * item} bytes, what one setting needs; got {memory}."
            raise ValueError(msg)
    for group, fits in groups.items():
        members = list(fits.values())
        size = min(sizes[group], most or len(members))
        for start in range(0, len(members), size):
            yield [i for places in members[start : start + size] for i in places]


def _is_on_the_way(estimator: Any, setting: dict[str, Any]) -> bool:
    """Whether a longer fit, where it is evaluated after as many iterations, is this one so far.

    A choice of weights begins after the last iteration.
    """
    every = estimator.get_params() | setting
    chosen = any(every.get(name) == AUTO for name in estimator.spec.auto)
    return "max_iter" in setting and not chosen and every["max_iter"] % every["eval_every"] == 0


def _free_memory(X: Matrix) -> int:
    if is_torch(X) and X.is_cuda:
        return sys.modules["torch"].cuda.mem_get_info(X.device)[0] // 2
    return _DEFAULT_MEMORY


def row_key(setting: Mapping[str, Any], seed: int) -> str:
    """The name of a row: equal weights have equal names, also 1 and 1.0."""
    return key_of([{name: _number(plain(value)) for name, value in setting.items()}, seed])


def fit_key(pair: Pair) -> str:
    """A name for the fit of a pair, however far it goes."""
    setting, seed = pair
    return row_key({name: value for name, value in setting.items() if name != "max_iter"}, seed)


def _number(value: Any) -> Any:
    """1 and 1.0 are the same weight."""
    return float(value) if isinstance(value, Real) and not isinstance(value, bool) else value
