"""Clusterings of one data set by several methods, and what its neighbour graph says about each."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.sparse.csgraph import connected_components
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.preprocessing import normalize
from sklearn.utils.extmath import randomized_svd

from lognmf.clustering import cluster, scores
from lognmf.clustering.spectral import TINY_PIECE, spectral_clusters
from lognmf.core.arrays import Matrix, is_torch
from lognmf.core.matrices import stored_values
from lognmf.core.starts import krylov_svd
from lognmf.core.threads import one_blas_thread
from lognmf.graph import Graphs
from lognmf.graph.neighbours import distinct_rows
from lognmf.models.starts import NEIGHBOURS, near_clusters
from lognmf.models.validation import Samples
from lognmf.models.weights import usual_gamma
from lognmf.progress import say, stage

STARTS = 4
"""Starts of k-means where a clustering is one of several; that of the neighbour graph has ten."""

_ROUNDING = 1e-9
"""Equal scores may differ by this."""


@dataclass(frozen=True, eq=False)
class Clustering:
    """A clustering with its scores on the neighbour graph; an empty cluster counts as fully cut."""

    candidate: str
    seed: int
    labels: np.ndarray = field(repr=False)
    modularity: float
    balance: float
    normalized_cut: float
    clusters: int
    seconds: float

    def row(self) -> dict[str, Any]:
        """All but the labels."""
        return {name: value for name, value in vars(self).items() if name != "labels"}

    def refines(self, other: Clustering) -> bool:
        """Whether this has the larger modularity, and is no worse in cut and balance.

        Each score alone can be fooled: codes smoothed along the graph merge clusters, which improves cut and
        modularity; splitting a large class and merging small ones improves modularity and balance.
        """
        return (
            self.modularity > other.modularity
            and self.balance >= other.balance - _ROUNDING
            and self.normalized_cut <= other.normalized_cut + _ROUNDING
        )


def _linear(X: Matrix, k: int, rng: np.random.RandomState, graphs: Graphs, n_neighbors: int) -> np.ndarray:
    """k-means on the directions of the samples in the space of the leading singular vectors.

    Quicker than k-means on the samples, and for texts more reliable: few words are in two documents.
    """
    if is_torch(X):
        U, S, _ = krylov_svd(X, min(k, *X.shape), rng, float(stored_values(X).max()))
        return cluster(normalize(U * S), k, random_state=rng, n_init=STARTS)
    with one_blas_thread():  # its many thin products take twice as long on two threads
        U, S, _ = randomized_svd(X, min(k, *X.shape), n_iter=4, random_state=rng)
    return cluster(normalize(U * S), k, random_state=rng, n_init=STARTS)


def _spectral(X: Matrix, k: int, rng: np.random.RandomState, graphs: Graphs, n_neighbors: int) -> np.ndarray:
    """Spectral clustering of the neighbour graph."""
    return spectral_clusters(X, k, rng, graphs.knn(n_neighbors))


def _weighted(X: Matrix, k: int, rng: np.random.RandomState, graphs: Graphs, n_neighbors: int) -> np.ndarray:
    """The same with each edge weighted by the neighbours that its ends share."""
    edges = graphs.knn(n_neighbors) > 0
    return spectral_clusters(X, k, rng, sp.csr_array(graphs.shared(n_neighbors).multiply(edges)), STARTS)


def _shared(X: Matrix, k: int, rng: np.random.RandomState, graphs: Graphs, n_neighbors: int) -> np.ndarray:
    """Spectral clustering of the graph in which all samples are joined that share neighbours."""
    return spectral_clusters(X, k, rng, graphs.shared(n_neighbors), STARTS)


FAMILIES: dict[str, Callable[..., np.ndarray]] = {
    "spectral": _spectral,
    "spectral, edges weighted by shared neighbours": _weighted,
    "spectral, shared neighbours": _shared,
    "k-means, singular vectors": _linear,
}
"""Clusterings by name: ``(X, clusters, generator, graphs, neighbours) -> labels``."""


@dataclass(eq=False)
class Candidates:
    """Clusterings of ``X`` (n, p), judged as they come in."""

    X: Matrix
    n_clusters: int
    graphs: Graphs
    n_neighbors: int
    time_limit: float | None = None
    began: float = field(default_factory=time.perf_counter)
    found: list[Clustering] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._last = self.began
        self._first, self._group = distinct_rows(self.X)

    @property
    def time_is_up(self) -> bool:
        """Whether the time limit, if any, has passed."""
        return self.time_limit is not None and time.perf_counter() - self.began > self.time_limit

    @property
    def best(self) -> Clustering:
        """The one of largest modularity; of a graph in just so many pieces, one that cuts none of them.

        Modularity alone would split a large piece and merge small ones.
        """
        whole = [one for one in self.found if one.normalized_cut <= _ROUNDING]
        pieces = whole if whole and self._pieces() == self.n_clusters else self.found
        return max(pieces, key=lambda one: one.modularity)

    def _pieces(self) -> int:
        """Connected pieces of the graph, without tiny ones."""
        _, piece = connected_components(self.graphs.knn(self.n_neighbors), directed=False)
        least = TINY_PIECE * len(piece) / self.n_clusters
        return int((np.bincount(piece) >= least).sum())

    def add_families(self, seed: int) -> None:
        """Add a clustering of every family, as long as there is time; at least one."""
        for name, family in FAMILIES.items():
            if not (self.found and self.time_is_up):
                rng = np.random.RandomState(seed)
                with stage(f"clustering: {name}"):
                    self.add(name, seed, family(self.X, self.n_clusters, rng, self.graphs, self.n_neighbors))

    def add(self, candidate: str, seed: int, labels: np.ndarray) -> Clustering:
        """Judge and keep a clustering; equal samples get the label of the first of them."""
        labels = np.unique(labels[self._first][self._group], return_inverse=True)[1]
        by_graph = scores.graph_scores(self.graphs.knn(self.n_neighbors), labels[:, None])
        clusters, balance = scores.cluster_sizes(labels[:, None], self.n_clusters)
        now = time.perf_counter()
        one = Clustering(
            candidate,
            seed,
            labels,
            float(by_graph["modularity"][0]),
            float(balance[0]),
            float(by_graph["normalized_cut"][0] + self.n_clusters - clusters[0]),
            int(clusters[0]),
            now - self._last,
        )
        self._last = now
        self.found.append(one)
        say(f"{now - self.began:.1f} s, modularity {one.modularity:.4f}: {candidate}")
        return one


def with_different_starts(seeds: list[int], init: str, candidates: Candidates) -> list[int]:
    """The first seed of every spectral start: fits from the same clusters are the same."""
    if init != "spectral" or candidates.n_neighbors != NEIGHBOURS:
        return seeds
    known = {one.seed: one.labels for one in candidates.found if one.candidate == "spectral"}
    first: dict[Any, int] = {}
    for seed in seeds:
        start = _in_order_of_appearance(known[seed]).tobytes() if seed in known else seed
        first.setdefault(start, seed)
    return list(first.values())


def _in_order_of_appearance(labels: np.ndarray) -> np.ndarray:
    """The same clusters, numbered as they come: 0 is that of the first sample."""
    _, first, group = np.unique(labels, return_index=True, return_inverse=True)
    return np.argsort(np.argsort(first))[group]


def fit_from(
    estimator: Any, samples: Samples, graphs: Graphs, found: Clustering, *, choose_gamma: bool = False
) -> Any:
    """The model, fitted from a clustering: few updates keep the codes near it.

    With ``choose_gamma`` a second fit has the gamma that follows from the residuals of the first.
    """
    model = clone(estimator).set_params(random_state=found.seed)
    U, V = near_clusters(graphs.X, found.labels, model.n_components)
    given = {"V0": V}
    if "U0" in model.factor_shapes(*samples.shape) and not model.spec.signed:
        given["U0"] = U
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # it is not meant to converge
        model.fit_samples(samples, dict(given), graphs=graphs)
        if choose_gamma:
            model.set_params(gamma=usual_gamma(model, samples.data))._fit(samples, given, graphs=graphs)
        return model
