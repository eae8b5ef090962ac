"""``lognmf fit --tune``: what is left to choose, and choosing it before the user's eyes."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from lognmf.cli.progress import grid_progress
from lognmf.grid.tune import Tuned, default_grid, tune

if TYPE_CHECKING:
    from rich.console import Console

__all__ = ["choose", "open_grid"]

_SEEDS = 3


def open_grid(estimator: Any, name: str, given: Mapping[str, Any]) -> dict[str, Sequence[float]]:
    """What is left to choose; refused if that is nothing.

    Parameters
    ----------
    estimator : estimator
        The model; it gets the spectral start if it has one and the user names none.
    name : str
        What the user calls it.
    given : mapping
        Parameters that the user gave: they stay.

    Returns
    -------
    dict of sequences
    """
    if "init" not in given and "spectral" in estimator._starts:
        estimator.set_params(init="spectral")
    grid = default_grid(estimator, fixed=given)
    if not grid:
        msg = f"--tune has nothing to choose for {name} with these options: leave out some, or --tune."
        raise ValueError(msg)
    return dict(grid)


def choose(
    estimator: Any,
    grid: Mapping[str, Sequence[Any]],
    X: Any,
    given: Mapping[str, Any],
    n_clusters: int,
    console: Console,
) -> Tuned:
    """Tune a model on X, with a bar.

    Parameters
    ----------
    estimator : estimator
        The model, with what stays.
    grid : mapping of sequences
        As from `open_grid`.
    X : array or sparse matrix of shape (n, p)
        Samples.
    given : mapping
        Parameters that the user gave: ``random_state`` is the first seed, ``n_init`` their number.
    n_clusters : int
        Number of clusters.
    console : rich.console.Console
        Where the bar is shown.

    Returns
    -------
    Tuned
    """
    seeds = [(given["random_state"] + i) % 2**32 for i in range(given.get("n_init", _SEEDS))]
    total = math.prod(len(values) for values in grid.values()) * len(seeds)
    with grid_progress(total, console) as on_batch:
        return tune(
            X,
            estimator.n_components,
            model=estimator,
            grid=grid,
            n_clusters=n_clusters,
            seeds=seeds,
            init=estimator.init,
            on_batch=on_batch,
        )
