"""All models side by side on one data set, and clusterings without a model, over several seeds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from lognmf.comparison.contest import REFERENCES, Contest, Method, label_scores
from lognmf.comparison.rows import SPREAD, Column, Row, filled_columns, rank
from lognmf.grid.plan import check_seeds
from lognmf.models import MODELS
from lognmf.models.validation import check_finite, read_samples
from lognmf.parameters import check_integer
from lognmf.progress import stage

__all__ = [
    "REFERENCES",
    "SPREAD",
    "Column",
    "Row",
    "compare",
    "filled_columns",
    "label_scores",
    "model_names",
]


def compare(
    X: Any,
    n_components: int,
    *,
    y: Any = None,
    n_clusters: int | None = None,
    models: Sequence[str] | None = None,
    references: bool = True,
    init: str | None = "random",
    seeds: Sequence[int] = (0, 1, 2),
    n_neighbors: int = 5,
    **options: Any,
) -> list[Row]:
    """Fit models to the same data from the same kind of start, and score k-means on V.

    Rows for k-means, spectral clustering, the spectral start and `NMFClustering` tell what the models are
    worth. If a method cannot take the data, its row holds the error message and the next one runs. Settings
    that no model accepts are refused before the first fit.

    Parameters
    ----------
    X : array-like, sparse matrix or torch tensor of shape (n, p)
        Samples in rows. NaN marks a missing entry; the row of a method that cannot handle missing
        entries holds an error message.
    n_components : int
        Number of components k.
    y : array-like of shape (n,), optional
        True labels.
    n_clusters : int, optional
        Number of clusters; default ``n_components``.
    models : sequence of str, optional
        Names from ``MODELS`` in any case; default all, in the paper's order.
    references : bool, default=True
        Add clusterings without a model: k-means of the samples, scikit-learn's spectral clustering of the
        neighbour graph, the clusters from which ``init="spectral"`` starts, and `NMFClustering`.
    init : str or None, default="random"
        Start of every model. None: each model starts as it does by default, some from k-means.
    seeds : sequence of int, default=(0, 1, 2)
        Each method runs once per seed. Scores are means.
    n_neighbors : int, default=5
        Neighbours per sample in the graph of the normalised cut, which is also the graph of the
        methods that have one; at most n − 1 are used.
    **options
        Parameters of the estimators, passed to those that have them.

    Returns
    -------
    list of Row
        Best first: by accuracy if ``y`` is given, else by the normalised cut, where methods with
        fewer clusters than requested come after the others. Failed ones are last.

    Raises
    ------
    ValueError, TypeError
        If a name is no model, no model has an option, or X suits none of them.

    See Also
    --------
    lognmf.NMFClustering : Clusters without labels.
    lognmf.tune : Chooses the weights of one model.

    Notes
    -----
    Every fit is a move of the stage "all methods" (see `lognmf.progress`), whose ``note`` is the name of the
    method and whose ``result`` is the estimator, None for a clustering without one.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.repeat(np.eye(3), 4, axis=0)
    >>> rows = compare(X, 3, y=X.argmax(axis=1), models=["NMF", "ONMF"], references=False, max_iter=50)
    >>> sorted(row.model for row in rows)
    ['NMF', 'ONMF']
    """
    names = model_names(models)
    seeds = check_seeds(seeds)
    if init is not None:
        options["init"] = init
    estimators = _estimators(names, options | {"n_components": n_components, "n_neighbors": n_neighbors})
    samples = read_samples(X)
    takes_missing = any(estimator.spec.takes_missing(estimator) for estimator in estimators.values())
    check_finite("none of these models takes", samples, missing=takes_missing)
    n_clusters = n_components if n_clusters is None else n_clusters
    _check_sizes(samples.shape[0], n_clusters, y)
    contest = Contest(samples, y, n_clusters, n_neighbors)
    methods = [Method(name, contest.fit, estimator) for name, estimator in estimators.items()]
    if references:
        methods += contest.references()
    rows = []
    with stage("all methods", len(methods) * len(seeds), "fits") as fits:
        for method in methods:
            rows.append(contest.row(method, seeds, fits))
            fits.done = len(rows) * len(seeds)  # a method that fails is not tried again
    return sorted(rows, key=rank)


def model_names(models: Sequence[str] | None = None) -> list[str]:
    """The paper's names of ``models``, given in any case, each once and in their order; by default all.

    >>> model_names(["rls-nmf", "NMF"])
    ['RLS-NMF', 'NMF']
    """
    if models is None:
        return list(MODELS)
    allowed = {name.lower(): name for name in MODELS}
    unknown = [name for name in models if name.lower() not in allowed]
    if unknown or not models:
        got = ", ".join(map(repr, unknown)) or "none"
        msg = f"models must be among {', '.join(allowed)}; got {got}."
        raise ValueError(msg)
    return list(dict.fromkeys(allowed[name.lower()] for name in models))


def _estimators(names: Sequence[str], options: Mapping[str, Any]) -> dict[str, Any]:
    """The models with those of the options that they have, checked."""
    known = {name: MODELS[name]().get_params() for name in names}
    for option in options.keys() - {"n_neighbors"}:  # the graph of the normalised cut has it always
        if not any(option in parameters for parameters in known.values()):
            msg = f"{option} is a parameter of none of {', '.join(names)}: leave it out."
            raise ValueError(msg)
    check_integer("n_neighbors", options["n_neighbors"], 1)
    estimators = {}
    for name, parameters in known.items():
        given = {option: value for option, value in options.items() if option in parameters}
        estimators[name] = MODELS[name](**given)
        estimators[name].check_parameters()
    return estimators


def _check_sizes(n: int, n_clusters: int, y: Any) -> None:
    check_integer("n_clusters", n_clusters, 1)
    if n_clusters > n:
        msg = (
            f"n_clusters must be at most the number of samples, {n}; got {n_clusters} "
            "(by default the number of components)."
        )
        raise ValueError(msg)
    if y is not None and np.shape(y) != (n,):
        msg = f"y must hold one label for each of the {n} samples; got shape {np.shape(y)}."
        raise ValueError(msg)
