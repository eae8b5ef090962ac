"""Methods run on one data set, one seed after another, and scored alike."""

from __future__ import annotations

import functools
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import clone

from lognmf import metrics
from lognmf.clusterer import NMFClustering
from lognmf.clustering import cluster, spectral_clustering, spectral_clusters
from lognmf.comparison.rows import SPREAD, Row
from lognmf.core.arrays import is_torch, to_numpy
from lognmf.core.matrices import on_cpu
from lognmf.graph import Graphs
from lognmf.models.validation import Samples, check_finite
from lognmf.progress import Stage

_TROUBLES = (ValueError, TypeError, ArithmeticError, MemoryError, RuntimeError)
"""What data can do to a model, torch's RuntimeErrors included; anything else is a bug and is raised."""


class _Run(NamedTuple):
    """What one method gives for one seed."""

    labels: np.ndarray
    used_graph: bool
    numbers: Mapping[str, Any] = MappingProxyType({})


class Method(NamedTuple):
    """A row in the making: ``run(estimator, seed)``, with a copy of its estimator, if it has one."""

    name: str
    run: Callable[[Any, int], _Run]
    estimator: Any = None


class Contest:
    """The data, and their neighbour graph with its cost."""

    def __init__(self, samples: Samples, y: Any, n_clusters: int, n_neighbors: int) -> None:
        self.samples, self.y, self.n_clusters, self.n_neighbors = samples, y, n_clusters, n_neighbors
        X = samples.data.X
        self.X = on_cpu(X) if is_torch(X) else X
        self.graphs = Graphs(self.X)
        began = time.perf_counter()
        self.W = self.graphs.knn(n_neighbors)
        self.graph_seconds = time.perf_counter() - began

    def fit(self, model: Any, seed: int) -> _Run:
        """k-means on the codes of a model."""
        model.fit_samples(self.samples, graphs=self.graphs)
        return _Run(
            cluster(model.embedding_, self.n_clusters, random_state=seed),
            vars(model).get("graph_") is not None or model.init == "spectral",
            {
                "sparseness_U": metrics.hoyer_sparseness(model.components_),
                "sparseness_V": metrics.hoyer_sparseness(model.embedding_),
                "reconstruction_err": model.reconstruction_err_,
                "objective": model.objective_,
                "n_iter": model.n_iter_,
                "stop_reason": model.stop_reason_,
            },
        )

    def references(self) -> Iterator[Method]:
        """Clusterings without a model."""
        for name, labels in REFERENCES.items():
            yield Method(name, functools.partial(self._refer, name, labels))

    def _refer(self, name: str, labels: Callable[[Contest, int], np.ndarray], _: None, seed: int) -> _Run:
        check_finite(f"{name} does not take", self.samples, missing=False)
        return _Run(labels(self, seed), labels is not _kmeans)

    def scores(self, method: Method, estimator: Any, seed: int) -> dict[str, Any]:
        """All numbers of a method for one seed."""
        began = time.perf_counter()
        labels, used_graph, numbers = method.run(estimator, seed)
        # The graph is searched once for all, but whoever runs this method alone waits for it.
        seconds = time.perf_counter() - began + self.graph_seconds * used_graph
        return {
            **({} if self.y is None else label_scores(self.y, labels)),
            "normalized_cut": metrics.normalized_cut(self.W, labels),
            "clusters": int(labels.max()) + 1,
            "seconds": seconds,
            **numbers,
        }

    def row(self, method: Method, seeds: Sequence[int], fits: Stage) -> Row:
        """Means of a method over the seeds; every fit is a move of the stage ``fits``, with its estimator."""
        made, runs = method.estimator, []
        about: dict[str, Any] = {"model": method.name}
        if made is not None:
            about["class_name"] = type(made).__name__
        for seed in seeds:
            estimator = None if made is None else clone(made).set_params(random_state=seed)
            try:
                runs.append(self.scores(method, estimator, seed))
            except _TROUBLES as error:
                kind = "" if isinstance(error, ValueError | TypeError) else f"{type(error).__name__}: "
                about["error"] = (kind + " ".join(str(error).split())).rstrip(": ")
            fits.move(fits.done + 1, method.name, result=estimator)
            if "error" in about:
                return Row(**about)
        if made is not None:
            about |= {"start": made.init, "max_iter": made.max_iter}
        return Row(**about, **_means(runs), seeds=len(seeds))


def _kmeans(contest: Contest, seed: int) -> np.ndarray:
    """k-means of the samples."""
    return cluster(contest.X, contest.n_clusters, random_state=seed)


def _spectral_clustering(contest: Contest, seed: int) -> np.ndarray:
    """scikit-learn's spectral clustering of the neighbour graph."""
    return spectral_clustering(contest.W, contest.n_clusters, seed)


def _spectral_start(contest: Contest, seed: int) -> np.ndarray:
    """The clusters from which ``init="spectral"`` starts."""
    return spectral_clusters(contest.X, contest.n_clusters, np.random.RandomState(seed), contest.W)


def _nmf_clustering(contest: Contest, seed: int) -> np.ndarray:
    """Our clusterer."""
    clusterer = NMFClustering(contest.n_clusters, n_neighbors=contest.n_neighbors, random_state=seed)
    return clusterer.fit_samples(contest.samples, contest.graphs).labels_


REFERENCES: dict[str, Callable[[Contest, int], np.ndarray]] = {
    "k-means": _kmeans,
    "spectral clustering": _spectral_clustering,
    "spectral start": _spectral_start,
    "NMFClustering": _nmf_clustering,
}
"""What a user would run instead of a model: ``(contest, seed) -> labels``."""


def _means(runs: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Means over the runs, and standard deviations of the scores."""
    values = {name: [run[name] for run in runs] for name in runs[0]}
    row: dict[str, Any] = {"clusters": min(values.pop("clusters"))}
    if "stop_reason" in values:
        row["stop_reason"] = " or ".join(dict.fromkeys(values.pop("stop_reason")))
    row |= {name: float(np.mean(numbers)) for name, numbers in values.items()}
    if len(runs) > 1:
        row |= {f"{name}_std": float(np.std(values[name], ddof=1)) for name in SPREAD if name in values}
    return row


def label_scores(y: Any, labels: Any) -> dict[str, float]:
    """Accuracy, NMI and purity of clusters ``labels`` against true classes ``y`` of any type."""
    codes = np.unique(to_numpy(y) if is_torch(y) else y, return_inverse=True)[1]
    return {
        "accuracy": metrics.clustering_accuracy(codes, labels),
        "nmi": metrics.normalized_mutual_info(codes, labels),
        "purity": metrics.purity(codes, labels),
    }
