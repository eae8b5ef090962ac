"""A model with its weights chosen from the data, without labels."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from lognmf.clustering.kmeans import kmeans
from lognmf.core.arrays import to_numpy
from lognmf.grid.fit import fit_grid
from lognmf.grid.plan import check_model
from lognmf.grid.select import CRITERIA, Choice, best_row, select
from lognmf.parameters import check_choice

__all__ = ["Tuned", "default_grid", "tune"]

WEIGHTS = {
    "alpha": (0.001, 0.01, 0.1),
    "beta": (0.001, 0.01, 0.1),
    "gamma": (0.3, 1.0),
    "lam": (0.01, 0.1, 1.0, 10.0, 100.0),
}
"""Weights that are tried, for samples of unit norm."""

ITERATIONS = (0, 10, 30, 100, 300)
"""Iterations that are tried from the spectral start: how far the data may lead away from the graph.
Among them is none, as there are data, faces in changing light for one, where each step does harm."""


@dataclass(frozen=True, eq=False)
class Tuned:
    """What was chosen, and from what.

    Parameters
    ----------
    model : fitted estimator
        The chosen setting, from that of its seeds whose clustering is best on the neighbour
        graph. With ``n_iter_ = 0`` it is the start itself: no fit was found to be better.
    setting : dict
        Its weights and the other parameters of the grid.
    score : float
        The setting's mean score over the seeds; lower is better.
    choice : Choice
        The scores of all settings.
    rows : list of dict
        All rows of the grid, as of `fit_grid`.
    labels : ndarray of shape (n,)
        Clusters 0, 1, … of the samples by k-means on the model's codes: those that were judged.
    by : str
        The criterion.
    grid : dict of lists, or list of dicts
        What was tried.
    """

    model: Any
    setting: dict[str, Any]
    score: float
    choice: Choice = field(repr=False)
    rows: list[dict[str, Any]] = field(repr=False)
    labels: np.ndarray = field(repr=False)
    by: str
    grid: Any = field(repr=False)


def tune(
    X: Any,
    n_components: int,
    *,
    model: Any = "LS-NMF",
    grid: Mapping[str, Sequence[Any]] | Sequence[Mapping[str, Any]] | None = None,
    n_clusters: int | None = None,
    seeds: Iterable[int] = (0, 1, 2),
    by: str = "balanced_modularity",
    init: str = "spectral",
    max_iter: int | None = None,
    device: str | None = None,
    dtype: str | None = None,
    store: str | os.PathLike[str] | None = None,
    on_batch: Callable[[int, int, float], None] | None = None,
    verbose: int = 0,
) -> Tuned:
    """Fit a model with weights that are chosen without labels.

    Every setting of a grid is fitted from every seed, the samples are clustered by k-means on
    the codes, and the clusterings are judged by the neighbour graph of the samples.

    Parameters
    ----------
    X : array-like, sparse matrix or torch tensor of shape (n, p)
        Samples in rows, as for ``fit``. The default grid suits samples of unit ℓ2 norm.
    n_components : int
        Number of components k.
    model : estimator, or a name in `MODELS`, default="LS-NMF"
        An estimator's parameters hold where neither the grid nor an argument says otherwise.
    grid : dict of lists, or list of dicts, optional
        What to try, as for `fit_grid`. Default: see `default_grid`.
    n_clusters : int, optional
        Clusters for k-means; default ``n_components``.
    seeds : iterable of int, default=(0, 1, 2)
        Each is the ``random_state`` of a start and of its k-means.
    by : {"balanced_modularity", "balanced_cut", "normalized_cut"}, default="balanced_modularity"
        Criterion, as for `select`.
    init : str, default="spectral"
        Start, one of those the model has.
    max_iter : int, optional
        Most iterations of every fit. Default: several are tried from the spectral start, else
        the model's own.
    device, dtype, store, on_batch, verbose
        As for `fit_grid`. The model that is returned is fitted to X as given, so with another
        device or dtype rounding may tell its clusters from those that were judged.

    Returns
    -------
    Tuned

    Examples
    --------
    >>> import numpy as np
    >>> from lognmf import tune
    >>> rng = np.random.default_rng(0)
    >>> X = np.repeat(np.eye(3, 12), 10, axis=0) + 0.2 * rng.random((30, 12))
    >>> tuned = tune(X, 3, grid={"lam": [0.1, 1.0]}, seeds=[0, 1], max_iter=20)
    >>> np.bincount(tuned.labels)
    array([10, 10, 10])
    >>> tuned.setting["lam"], len(tuned.rows)
    (0.1, 4)
    """
    check_choice("by", by, CRITERIA)
    estimator = check_model(model, max_iter, None).set_params(n_components=n_components, init=init)
    grid = default_grid(estimator, fixed=() if max_iter is None else ("max_iter",)) if grid is None else grid
    _check_iterations(grid, max_iter)
    n_clusters = n_components if n_clusters is None else n_clusters
    result = fit_grid(
        estimator,
        X,
        grid,
        seeds=seeds,
        n_clusters=n_clusters,
        device=device,
        dtype=dtype,
        store=store,
        on_batch=on_batch,
        verbose=verbose,
    )
    choice = select(result.rows, by)
    best = best_row(result.rows, choice.setting, by)
    fitted = result.model(best)
    clusters = to_numpy(kmeans(fitted.embedding_[:, None, :], n_clusters, seed=result.rows[best]["seed"]))
    labels = np.unique(clusters[:, 0], return_inverse=True)[1]
    return Tuned(fitted, choice.setting, choice.score, choice, result.rows, labels, by, grid)


def default_grid(model: Any, *, fixed: Collection[str] = ()) -> dict[str, tuple[float, ...]]:
    """What `tune` tries where nothing is given.

    Parameters
    ----------
    model : estimator
        A model of this package.
    fixed : collection of str, default=()
        Parameters that stay as the model has them.

    Returns
    -------
    dict of tuples
        Values of the weights that the model has and, from the spectral start, of ``max_iter``.

    Examples
    --------
    >>> from lognmf import GraphNMF
    >>> default_grid(GraphNMF(init="spectral"))
    {'lam': (0.01, 0.1, 1.0, 10.0, 100.0), 'max_iter': (0, 10, 30, 100, 300)}
    """
    tried: dict[str, tuple[float, ...]] = {name: WEIGHTS[name] for name in model._weights}
    if model.init == "spectral":
        tried["max_iter"] = ITERATIONS
    return {name: values for name, values in tried.items() if name not in fixed}


def _check_iterations(grid: Any, max_iter: int | None) -> None:
    """Refuse two answers to one question."""
    parts = [grid] if isinstance(grid, Mapping) else grid
    if max_iter is not None and any("max_iter" in part for part in parts):
        msg = f"max_iter is given, {max_iter}, and in the grid too: leave it out of one of them."
        raise ValueError(msg)
