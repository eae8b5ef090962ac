"""All models side by side on one data set: k-means on V, scored with labels and without."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from lognmf import metrics
from lognmf.clustering import cluster
from lognmf.core.arrays import is_torch, to_numpy
from lognmf.graph import Graphs
from lognmf.models import MODELS
from lognmf.models.starts import NEIGHBOURS
from lognmf.models.validation import Samples, check_finite, read_samples
from lognmf.parameters import check_integer


class Column(NamedTuple):
    """A column of a table of rows: field of `Row`, number format, and which numbers are better."""

    field: str
    form: str
    better: int
    """1 if higher is better, -1 if lower is better, 0 if neither."""


_COLUMNS = {
    "accuracy": Column("accuracy", ".3f", 1),
    "NMI": Column("nmi", ".3f", 1),
    "purity": Column("purity", ".3f", 1),
    "cut": Column("normalized_cut", ".3f", -1),
    "sparse U": Column("sparseness_U", ".3f", 0),
    "sparse V": Column("sparseness_V", ".3f", 0),
    "error": Column("reconstruction_err", "#.4g", -1),
    "iter": Column("n_iter", "d", 0),
    "seconds": Column("seconds", ".2f", -1),
}
"""Columns of a comparison, by their titles."""

_TROUBLES = (ValueError, TypeError, ArithmeticError, MemoryError, RuntimeError)
"""What data can do to a model, torch's RuntimeErrors included; anything else is a bug and is raised."""


@dataclass(frozen=True)
class Row:
    """Scores of one model; None where a number is not available."""

    model: str  # the paper's name
    class_name: str
    accuracy: float | None = None  # agreement of the clusters with the true labels, as the next two
    nmi: float | None = None
    purity: float | None = None
    normalized_cut: float | None = None  # of the neighbour graph by the clusters; lower is better
    clusters: int | None = None  # fewer than requested where V has fewer distinct rows
    sparseness_U: float | None = None  # Hoyer's
    sparseness_V: float | None = None
    reconstruction_err: float | None = None  # ‖X − V Uᵀ‖_F
    objective: float | None = None  # the model's own; not comparable between models
    n_iter: int | None = None
    stop_reason: str | None = None
    seconds: float | None = None  # of the fit, without building the graph, which all models share
    error: str | None = None  # why the model has no results


def compare(
    X: Any,
    n_components: int,
    *,
    y: Any = None,
    n_clusters: int | None = None,
    models: Sequence[str] | None = None,
    n_neighbors: int = 5,
    random_state: Any = 0,
    on_start: Callable[[str, Any], object] | None = None,
    on_done: Callable[[Row, Any], object] | None = None,
    **options: Any,
) -> list[Row]:
    """Fit models to the same data, cluster by k-means on V and score the clusters.

    If a model cannot take the data, its row holds the error message and the next model runs.
    Settings that no model accepts are refused before the first fit.

    Parameters
    ----------
    X : array-like, sparse matrix or torch tensor of shape (n, p)
        Samples in rows. NaN marks a missing entry; the row of a model that cannot handle missing
        entries holds an error message.
    n_components : int
        Number of components k.
    y : array-like of shape (n,), optional
        True labels.
    n_clusters : int, optional
        Number of clusters; default ``n_components``.
    models : sequence of str, optional
        Names from ``MODELS`` in any case; default all, in the paper's order.
    n_neighbors : int, default=5
        Neighbours per sample in the graph of the normalised cut, which is also the graph of the
        models that have one; at most n − 1 are used.
    random_state : int or None, default=0
        Seed for the initialisation of the models and of k-means.
    on_start : callable, optional
        Called as ``on_start(name, estimator)`` before each fit.
    on_done : callable, optional
        Called as ``on_done(row, estimator)`` after each model, failed ones included.
    **options
        Parameters of the estimators, passed to those that have them.

    Returns
    -------
    list of Row
        Best first: by accuracy if ``y`` is given, else by the normalised cut, where models with
        fewer clusters than requested come after the others. Failed models are last.

    Raises
    ------
    ValueError, TypeError
        If a name is no model, no model has an option, or X suits none of them.

    See Also
    --------
    lognmf.tune : Chooses the weights of one model.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.repeat(np.eye(3), 4, axis=0)
    >>> rows = compare(X, 3, y=X.argmax(axis=1), models=["NMF", "ONMF"], max_iter=50)
    >>> sorted(row.model for row in rows)
    ['NMF', 'ONMF']
    """
    names = model_names(models)
    options |= {"n_components": n_components, "n_neighbors": n_neighbors, "random_state": random_state}
    estimators = _estimators(names, options)
    samples = read_samples(X)
    takes_missing = any(estimator._missing for estimator in estimators.values())
    check_finite("none of these models takes", samples, missing=takes_missing)
    n_clusters = n_components if n_clusters is None else n_clusters
    _check_sizes(samples.shape[0], n_clusters, y)
    graphs = Graphs(samples.data.X)
    graphs.knn(n_neighbors)  # shared by all, so in nobody's time
    rows = []
    for name, estimator in estimators.items():
        if on_start is not None:
            on_start(name, estimator)
        if getattr(estimator, "init", "") == "spectral":
            graphs.knn(NEIGHBOURS)
        row = _run(name, estimator, samples, graphs, y, n_clusters, n_neighbors)
        rows.append(row)
        if on_done is not None:
            on_done(row, estimator)
    return sorted(rows, key=_rank)


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


def filled_columns(rows: Sequence[Row]) -> dict[str, Column]:
    """The columns, by their titles, in which at least one row has a value."""
    return {
        title: column
        for title, column in _COLUMNS.items()
        if any(getattr(row, column.field) is not None for row in rows)
    }


def label_scores(y: Any, labels: Any) -> dict[str, float]:
    """Accuracy, NMI and purity of clusters ``labels`` against true classes ``y`` of any type."""
    codes = np.unique(to_numpy(y) if is_torch(y) else y, return_inverse=True)[1]
    return {
        "accuracy": metrics.clustering_accuracy(codes, labels),
        "nmi": metrics.normalized_mutual_info(codes, labels),
        "purity": metrics.purity(codes, labels),
    }


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
        estimators[name]._check_parameters()
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


def _run(
    name: str, model: Any, samples: Samples, graphs: Graphs, y: Any, n_clusters: int, n_neighbors: int
) -> Row:
    began = time.perf_counter()
    try:
        model._fit(samples, graphs=graphs)
        seconds = time.perf_counter() - began
        labels = cluster(model.embedding_, n_clusters, random_state=model.random_state)
        scores: dict[str, Any] = {} if y is None else label_scores(y, labels)
        return Row(
            name,
            type(model).__name__,
            **scores,
            normalized_cut=metrics.normalized_cut(graphs.knn(n_neighbors), labels),
            clusters=int(labels.max()) + 1,
            sparseness_U=metrics.hoyer_sparseness(model.components_),
            sparseness_V=metrics.hoyer_sparseness(model.embedding_),
            reconstruction_err=model.reconstruction_err_,
            objective=model.objective_,
            n_iter=model.n_iter_,
            stop_reason=model.stop_reason_,
            seconds=seconds,
        )
    except _TROUBLES as error:
        kind = "" if isinstance(error, ValueError | TypeError) else f"{type(error).__name__}: "
        return Row(name, type(model).__name__, error=(kind + " ".join(str(error).split())).rstrip(": "))


def _rank(row: Row) -> tuple[float, ...]:
    """Sorts the better row first; equal ones keep the paper's order."""
    if row.error is not None:
        return (1,)
    if row.accuracy is not None:
        return (0, -row.accuracy)
    # Fewer clusters cut less: one alone cuts nothing.
    return (0, -(row.clusters or 0), row.normalized_cut or 0.0)
