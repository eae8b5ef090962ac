"""The number of clusters: what the neighbour graph, the distances and resampling say about every number."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import scipy.linalg
import scipy.sparse as sp
from scipy.cluster.hierarchy import fcluster, linkage
from scipy.spatial.distance import squareform
from sklearn.metrics import adjusted_rand_score, pairwise_distances
from sklearn.preprocessing import normalize

from lognmf.clustering.kmeans import cluster
from lognmf.clustering.scores import graph_scores
from lognmf.core.arrays import Matrix
from lognmf.core.data import divided
from lognmf.core.matrices import on_cpu, rows_of
from lognmf.core.threads import one_blas_thread
from lognmf.graph import Graphs

SAMPLES = 1000
"""Maximum number of samples that are looked at: all eigenvalues of so few are found, equal ones too."""

NEIGHBOURS = 5
"""Neighbours in the graph of the modularity."""

MOST_CLUSTERS = 50
"""The largest number that is tried."""

STARTS, QUICK_STARTS = 3, 1
"""Starts of k-means for each number; fewer for the clouds and the parts with which the data are compared."""

THINNED = (2, 3, 4, 5, 6, 8, 10, 13, 17, 22, 30, 40, 50)
"""Numbers that are tried for clouds without clusters."""

NULLS = 3
"""Clouds of each kind, Gaussian and uniform."""

RESAMPLED = 0.8
"""Share of the samples in each of the two random parts that are clustered to see what is stable."""

SILENT = 0.055
"""Silhouettes below it say nothing about clusters; then a further cluster must pay `PRICE`."""

PRICE = 0.14
"""What a doubled number of clusters must add to modularity times stability where distances say nothing."""

AS_GOOD = 0.01
"""The smallest number is recommended whose agreement is at most this far below the largest; less where
clusters are compact, and their number is plain."""

ALMOST = 0.05
"""Other numbers whose agreement is at most this far below are named too."""

CLEARER = {"modularity": 0.15, "silhouette": 0.04, "compact": 0.05}
"""How much larger than in clouds a number must be to be called clustered; "compact" is the silhouette beyond
that of Gaussian clouds alone, where it is at least `COMPACT`."""

COMPACT = 0.5
"""Silhouette from which clusters count as compact and far apart (Kaufman and Rousseeuw 1990)."""


@dataclass(frozen=True, eq=False)
class NumberOfClusters:
    """The recommended number of clusters, and what speaks for it.

    Parameters
    ----------
    best : int
        The recommended number; 1 if the samples are no more clustered than a cloud.
    reason : str
        Why, in words.
    rows : list of dict
        For every ``k`` the ``modularity`` of the best clustering on the neighbour graph, its ``silhouette``,
        the ``stability`` under resampling (adjusted Rand index), and the ``agreement`` of these judges, at
        most 1.
    others : list of int
        Other numbers that are almost as good, best first.
    """

    best: int
    reason: str
    rows: list[dict[str, Any]] = field(repr=False)
    others: list[int]


def number_of_clusters(X: Matrix, ks: Sequence[int], rng: np.random.RandomState) -> NumberOfClusters:
    """The number of clusters among ``ks`` of samples X (n, p), judged on at most `SAMPLES` of them."""
    X = _some(X, rng)
    n = X.shape[0]
    ks = [k for k in ks if 2 <= k < n]
    if not ks:
        return NumberOfClusters(1, "There are too few samples for several clusters.", [], [])
    judged = _Judged.of(X, ks, rng, STARTS)
    Q, s = judged.modularity, judged.silhouette
    compact = max(float(s.max()), 0.0)
    thinned = [k for k in ks if k in THINNED] or ks[:1]
    clouds = [_Judged.of(_cloud(X, rng, uniform=False), thinned, rng, QUICK_STARTS) for _ in range(NULLS)]
    usual = np.interp(ks, thinned, np.mean([cloud.modularity for cloud in clouds], axis=0))
    modular = max(0.0, float((Q - usual).max()))
    # Silhouettes near 0, as those of texts, say nothing: there coarse and stable clusterings count.
    silent = float(np.exp(-((compact / SILENT) ** 4)))
    stability, coarse = _stability(X, ks, rng)
    by_graph = (1 - silent) * Q + silent * (coarse * stability - PRICE * np.log2(ks))
    on_graph = modular / (modular + compact) if modular + compact > 0 else 1.0
    agreement = on_graph * by_graph / max(by_graph.max(), 1e-12) + (1 - on_graph) * s / max(compact, 1e-12)
    place = int(np.flatnonzero(agreement >= agreement.max() - AS_GOOD * (1 - compact))[0])
    best = ks[place]
    columns = {"modularity": Q, "silhouette": s, "stability": stability, "agreement": agreement}
    rows = [{"k": k} | {name: float(column[i]) for name, column in columns.items()} for i, k in enumerate(ks)]
    gauss = max(float(np.interp(best, thinned, cloud.silhouette)) for cloud in clouds)
    flat = [_Judged.of(_cloud(X, rng, uniform=True), [best], rng, QUICK_STARTS) for _ in range(NULLS)]
    margin = float(s[place]) - max(gauss, *(float(cloud.silhouette[0]) for cloud in flat))
    if not (
        modular > CLEARER["modularity"]
        or margin > CLEARER["silhouette"]
        or (s[place] >= COMPACT and s[place] - gauss > CLEARER["compact"])
    ):
        return NumberOfClusters(
            1, f"No clusters: {best} of them are no clearer than in a cloud of the same spread.", rows, [best]
        )
    order = np.argsort(-agreement, kind="stable")
    others = [ks[i] for i in order if ks[i] != best and agreement[i] >= agreement.max() - ALMOST][:3]
    said = f"{best} clusters: modularity {Q[place]:.2f}, silhouette {s[place]:.2f}, "
    said += f"stability {stability[place]:.2f} agree best"
    said += f"; almost as good: {' or '.join(map(str, others))}." if others else "."
    return NumberOfClusters(best, said, rows, others)


@dataclass(frozen=True, eq=False)
class _Judged:
    """Modularity and silhouette (len(ks),) of the best clustering of some samples into each number."""

    modularity: np.ndarray
    silhouette: np.ndarray

    @classmethod
    def of(cls, X: Matrix, ks: Sequence[int], rng: np.random.RandomState, n_init: int) -> _Judged:
        W = _graph(X, NEIGHBOURS)
        D = distances(X)
        tree = linkage(squareform(D, checks=False), "average")
        rows = []
        for k, spectral in zip(ks, _spectral(W, ks, rng, n_init), strict=True):
            found = [spectral, fcluster(tree, k, "maxclust") - 1]
            judged = [(modularity(W, labels), silhouette(D, labels)) for labels in found]
            weight = silhouette_weight([s for _, s in judged])
            rows.append(max(judged, key=lambda one: one[0] + weight * one[1]))
        Q, s = np.array(rows).T
        return cls(Q, s)


def distances(X: Matrix) -> np.ndarray:
    """Euclidean distances (n, n) of samples, in units of the largest entry."""
    X = on_cpu(X)
    with one_blas_thread():
        D = pairwise_distances(divided(X, abs(X).max() or 1.0))
    np.fill_diagonal(D, 0)
    return D


def silhouette(D: np.ndarray, labels: np.ndarray) -> float:
    """The mean silhouette of samples at distances ``D`` (n, n), or that of clusters if it is less; or −1.

    The mean over clusters is small where a single sample is called a cluster.
    """
    labels = np.unique(labels, return_inverse=True)[1]
    if not 1 < labels.max() + 1 < len(labels):
        return -1.0
    counts = np.bincount(labels)
    sums = D @ np.eye(len(counts))[labels]
    place = np.arange(len(labels)), labels
    within = sums[place] / np.maximum(counts[labels] - 1, 1)
    sums[place] = np.inf
    between = (sums / counts).min(axis=1)
    largest = np.maximum(within, between)
    each = np.divide(between - within, largest, out=np.zeros(len(labels)), where=largest > 0)
    each[counts[labels] == 1] = 0
    return float(min(each.mean(), (np.bincount(labels, each) / counts).mean()))


def silhouette_weight(silhouettes: Sequence[float]) -> float:
    """What a silhouette counts next to a modularity: much where one of them is large."""
    return 2 * max(0.0, *silhouettes) ** 2


def modularity(W: sp.csr_array, labels: np.ndarray) -> float:
    """Modularity of one clustering."""
    labels = np.unique(labels, return_inverse=True)[1]
    return float(graph_scores(W, labels[:, None])["modularity"][0])


def _some(X: Matrix, rng: np.random.RandomState) -> Matrix:
    """At most `SAMPLES` samples in NumPy."""
    n = X.shape[0]
    return on_cpu(X if n <= SAMPLES else rows_of(X, np.sort(rng.permutation(n)[:SAMPLES])))


def _spectral(
    W: sp.csr_array, ks: Sequence[int], rng: np.random.RandomState, n_init: int
) -> list[np.ndarray]:
    """Spectral clusterings of a graph into each number of clusters, from all its eigenvectors at once."""
    n, most = W.shape[0], max(ks)
    degree = np.asarray(W.sum(axis=1)).reshape(-1)
    scale = 1 / np.sqrt(np.where(degree > 0, degree, 1.0))
    walk = sp.csr_array(W.multiply(scale[:, None]).multiply(scale)).toarray()
    with one_blas_thread():
        vectors = scipy.linalg.eigh(walk, subset_by_index=[n - most, n - 1])[1][:, ::-1]
    vectors = vectors * scale[:, None]
    return [cluster(normalize(vectors[:, :k]), k, random_state=rng, n_init=n_init) for k in ks]


def _stability(X: Matrix, ks: Sequence[int], rng: np.random.RandomState) -> tuple[np.ndarray, np.ndarray]:
    """How far two random parts of the samples agree on every number, and modularities of all on that graph.

    The graph has √n neighbours: a coarse look, next to the fine one of few neighbours.
    """
    n = X.shape[0]
    size = max(max(ks) + 1, int(RESAMPLED * n))
    some = [np.sort(rng.permutation(n)[:size]) for _ in range(2)]
    both = np.intersect1d(some[0], some[1])
    one, other = (
        [
            labels[np.searchsorted(index, both)]
            for labels in _spectral(_coarse(X[index]), ks, rng, QUICK_STARTS)
        ]
        for index in some
    )
    agree = [adjusted_rand_score(a, b) for a, b in zip(one, other, strict=True)]
    W = _coarse(X)
    return np.array(agree), np.array([modularity(W, labels) for labels in _spectral(W, ks, rng, STARTS)])


def _coarse(X: Matrix) -> sp.csr_array:
    return _graph(X, int(np.sqrt(X.shape[0])))


def _graph(X: Matrix, n_neighbors: int) -> sp.csr_array:
    """The neighbour graph; where all were neighbours of all, it would say nothing."""
    return Graphs(X).knn(max(1, min(n_neighbors, (X.shape[0] - 1) // 2)))


def _cloud(X: Matrix, rng: np.random.RandomState, *, uniform: bool) -> np.ndarray:
    """As many samples without clusters, with the covariance of ``X``, along its principal axes."""
    n, p = X.shape
    X = divided(X, abs(X).max() or 1.0)
    X = sp.csr_array(X, dtype=np.float64) if sp.issparse(X) else np.asarray(X, dtype=np.float64)
    # Wide samples, such as texts, are never made dense: products of samples have the same eigenvalues.
    products, mean = (X.T @ X, np.asarray(X.mean(axis=0)).reshape(-1)) if p <= n else (X @ X.T, None)
    K = products.toarray() if sp.issparse(products) else products
    if mean is not None:
        K = K - n * np.outer(mean, mean)
    else:
        K = K - K.mean(axis=0) - K.mean(axis=1)[:, None] + K.mean()
    squares = np.linalg.eigvalsh(K) / n
    spread = np.sqrt(np.maximum(squares[squares > 1e-10 * max(squares.max(), 1e-300)], 0))
    if not len(spread):
        return np.zeros((n, 1))
    size = (n, len(spread))
    return (rng.uniform(-np.sqrt(3), np.sqrt(3), size) if uniform else rng.standard_normal(size)) * spread
