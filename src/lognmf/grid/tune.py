"""A model with its weights chosen from the data, without labels."""

from __future__ import annotations

import math
import os
import warnings
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.exceptions import ConvergenceWarning

from lognmf.clustering.kmeans import kmeans, numbered_by_parts
from lognmf.core.arrays import to_numpy
from lognmf.grid.grid import Grid
from lognmf.grid.plan import Pair, check_model
from lognmf.grid.select import CRITERIA, Choice, best_row, select, standings
from lognmf.models.identity import key_of
from lognmf.models.outlying import usual_gamma
from lognmf.models.weights import OUTLIERS
from lognmf.parameters import check_choice
from lognmf.progress import printed, stage

WEIGHTS = {
    "alpha": (0.001, 0.01, 0.1),
    "beta": (0.001, 0.01, 0.1),
    "lam": (0.01, 0.1, 1.0, 10.0, 100.0),
}
"""Values tried for each weight, for samples of unit norm. Clusters say nothing about gamma."""

ITERATIONS = (0, 10, 30, 100, 300)
"""Numbers of iterations tried from the spectral start. 0 keeps the start itself: for some data, such as faces
in changing light, every update makes the clustering worse."""

FEW_ITERATIONS, SHARE = 30, 1 / 3
"""After so many iterations only this share of the default grid's weights, the best, goes on to more."""

FOR_CLUSTERS: dict[str, Any] = {"alpha": 0.01, "beta": 0.001, "gamma": OUTLIERS.without, "solver": "mu"}
"""What takes the place of "auto" where a grid leaves it: a few updates from the start keep its clusters.
There are no outliers in the fits of a grid; gamma follows from the residuals of the chosen one."""

GRAPH_WEIGHT = 0.1
"""lam of a model that is given by its name, where a grid leaves it."""


@dataclass(frozen=True, eq=False)
class Tuned:
    """The chosen model, and what it was chosen from.

    Parameters
    ----------
    model : fitted estimator
        The chosen setting, fitted from the seed whose clustering is best on the neighbour
        graph. With ``n_iter_ = 0`` it is the start itself: no fit was better.
    setting : dict
        Its weights and the other parameters of the grid.
    score : float
        The setting's mean score over the seeds; lower is better.
    choice : Choice
        The scores of all settings.
    rows : list of dict
        The rows of what was fitted, as of `fit_grid`.
    labels : ndarray of shape (n,)
        Clusters 0, 1, … of the samples by k-means on the model's codes. They are
        numbered like the parts: cluster j is that in which part j is largest, as far as that can be.
    by : str
        The criterion.
    grid : dict of lists, or list of dicts
        The settings that were tried.
    """

    model: Any
    setting: dict[str, Any]
    score: float
    choice: Choice = field(repr=False)
    rows: list[dict[str, Any]] = field(repr=False)
    labels: np.ndarray = field(repr=False)
    by: str
    grid: Any = field(repr=False)

    def standings(self, by: str | None = None) -> list[dict[str, Any]]:
        """The settings, best first by the criterion or another one, with score and means over the seeds."""
        return standings(self.rows, self.by if by is None else by)


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
    device: Any = None,
    dtype: str | None = None,
    graph: sp.csr_array | None = None,
    store: str | os.PathLike[str] | None = None,
    verbose: int = 0,
) -> Tuned:
    """Fit a model with weights chosen without labels.

    Every setting of a grid is fitted from every seed. The samples are clustered by k-means on
    the codes, and the clusterings are judged on the neighbour graph of the samples. Of the default grid from
    the spectral start, only the best third of the weights after 30 iterations goes on to more. Weights are
    chosen for clusters: for sparse parts use `LogSparseNMF` with its defaults. ``gamma="auto"`` has no effect
    on the choice; it follows from the residuals of the chosen fit.

    Parameters
    ----------
    X : array-like, sparse matrix or torch tensor of shape (n, p)
        Samples in rows, as for ``fit``. The default grid suits samples of unit ℓ2 norm.
    n_components : int
        Number of components k.
    model : estimator, or a name in `MODELS`, default="LS-NMF"
        An estimator's parameters are used unless the grid or an argument sets them.
    grid : dict of lists, or list of dicts, optional
        Settings to try, as for `fit_grid`. Default: see `lognmf.grid.tune.default_grid`.
    n_clusters : int, optional
        Number of clusters for k-means; default ``n_components``.
    seeds : iterable of int, default=(0, 1, 2)
        Each is the ``random_state`` of a start and of its k-means.
    by : {"balanced_modularity", "balanced_cut", "normalized_cut"}, default="balanced_modularity"
        Criterion, as for `select`.
    init : str, default="spectral"
        Initialisation, one that the model supports.
    max_iter : int, optional
        Maximum number of iterations of every fit. Default: several numbers are tried from the
        spectral start; otherwise the model's own.
    device, dtype, graph, store, verbose
        As for `fit_grid`. The returned model is fitted there too.

    Returns
    -------
    Tuned
        The fitted model with its labels, its setting and all rows.

    Raises
    ------
    ValueError, TypeError
        If X, the grid or an argument cannot be used.

    See Also
    --------
    fit_grid : Fits every setting of a grid.
    lognmf.compare : Compares the models at their defaults.

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
    robust = "gamma" in estimator.auto_weights() and "gamma" not in _names(grid)
    estimator.set_params(**_for_clusters(estimator, named=isinstance(model, str)))
    few_first = grid is None
    grid = default_grid(estimator, fixed=() if max_iter is None else ("max_iter",)) if grid is None else grid
    _check_iterations(grid, max_iter)
    n_clusters = n_components if n_clusters is None else n_clusters
    where: Any = {"device": device, "dtype": dtype, "graph": graph, "store": store}
    with printed(verbose):
        work = Grid(estimator, X, grid, seeds, n_clusters=n_clusters, **where)
        with stage("fitting the grid", len(work.pairs), "fits") as progress:
            work.fit(_few_iterations(work.pairs) if few_first else range(len(work.pairs)), progress)
            if few_first:
                work.fit(_best_third(work.pairs, work.result().rows, by), progress)
                progress.move(len(work.pairs))
        result = work.result()
        # The grid has no outliers: gamma follows from the residuals of the chosen fit.
        rows = [{n: v for n, v in row.items() if not (robust and n == "gamma")} for row in result.rows]
        choice = select(rows, by)
        best = best_row(rows, choice.setting, by)
        with warnings.catch_warnings():
            # Its number of iterations is part of the setting.
            warnings.simplefilter("ignore", ConvergenceWarning)
            fitted = result.model(best)
            if robust:
                fitted = result._fitted(best, gamma=usual_gamma(fitted, result._samples.data))
    clusters = to_numpy(kmeans(fitted.embedding_[:, None, :], n_clusters, seed=rows[best]["seed"]))
    labels = numbered_by_parts(clusters[:, 0], fitted.embedding_)
    setting = choice.setting | ({"gamma": fitted.gamma} if robust else {})
    return Tuned(fitted, setting, choice.score, choice, rows, labels, by, grid)


def default_grid(model: Any, *, fixed: Collection[str] = ()) -> dict[str, tuple[float, ...]]:
    """The grid that `tune` tries by default.

    Parameters
    ----------
    model : estimator
        A model of this package, or of your own class that extends one.
    fixed : collection of str, default=()
        Parameters to leave at the model's values.

    Returns
    -------
    dict of tuples
        Values for the weights of the model and, from the spectral start, for ``max_iter``. A weight
        of your own class that has no values here is left at the model's value.

    Examples
    --------
    >>> from lognmf import GraphNMF
    >>> default_grid(GraphNMF(init="spectral"))
    {'lam': (0.01, 0.1, 1.0, 10.0, 100.0), 'max_iter': (0, 10, 30, 100, 300)}
    """
    grid: dict[str, tuple[float, ...]] = {
        name: WEIGHTS[name] for name in model.spec.weights if name in WEIGHTS
    }
    if model.init == "spectral":
        grid["max_iter"] = ITERATIONS
    return {name: values for name, values in grid.items() if name not in fixed}


def _few_iterations(pairs: list[Pair]) -> list[int]:
    """Places of all weights with few iterations."""
    return [i for i, (setting, _) in enumerate(pairs) if setting.get("max_iter", 0) <= FEW_ITERATIONS]


def _best_third(pairs: list[Pair], rows: list[dict[str, Any]], by: str) -> list[int]:
    """Places with more iterations of the weights whose best row so far is in the best third by ``by``."""

    def weights_of(setting: Mapping[str, Any]) -> str:
        return key_of({name: value for name, value in setting.items() if name != "max_iter"})

    best: dict[str, float] = {}
    for setting, score in select(rows, by).scores:
        if setting.get("max_iter") != 0:  # the start is the same for all
            best.setdefault(weights_of(setting), score)
    third = list(best)[: math.ceil(SHARE * len(best))]
    few = set(_few_iterations(pairs))
    return [i for i, (setting, _) in enumerate(pairs) if i not in few and weights_of(setting) in third]


def _for_clusters(estimator: Any, *, named: bool) -> dict[str, Any]:
    """Numbers and a solver in place of "auto", which is for parts; a model given by name has a graph too."""
    given = estimator.get_params()
    chosen = {name: value for name, value in FOR_CLUSTERS.items() if given.get(name) == "auto"}
    return chosen | ({"lam": GRAPH_WEIGHT} if named and given.get("lam") == 0 else {})


def _names(grid: Any) -> set[str]:
    """The parameters in a grid."""
    return set().union(*([grid] if isinstance(grid, Mapping) else grid or [()]))


def _check_iterations(grid: Any, max_iter: int | None) -> None:
    """Refuse a max_iter that is given twice."""
    if max_iter is not None and "max_iter" in _names(grid):
        msg = f"max_iter is given, {max_iter}, and in the grid too: leave one of them out."
        raise ValueError(msg)
