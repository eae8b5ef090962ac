"""A start that knows the graph: spectral clustering of the samples' neighbour graph."""

from __future__ import annotations

import warnings

import numpy as np
import scipy.sparse as sp
import scipy.sparse.linalg
from scipy.sparse.csgraph import connected_components
from sklearn.manifold import spectral_embedding
from sklearn.preprocessing import normalize

from lognmf.clustering import cluster
from lognmf.core.arrays import Matrix, to_numpy
from lognmf.graph import knn_graph
from lognmf.models.kmeans_starts import LIFT

NEIGHBOURS = 5
"""Neighbours in the graph that is clustered."""

LARGE = 20_000
"""Samples above which a graph is not factorised even if it is in pieces."""

RESTARTS = 300
"""Of Lanczos iterations, before the graph is factorised after all; tens are usual."""


def spectral(
    X: Matrix, k: int, rng: np.random.RandomState, W: sp.sparray | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """V = indicator of a spectral clustering + 0.2; U by least squares, clipped to be positive.

    ``W`` is the graph of `NEIGHBOURS` neighbours, where somebody has built it already.
    """
    X = X if sp.issparse(X) else to_numpy(X)
    V = np.full((X.shape[0], k), LIFT)
    V[np.arange(len(V)), _clusters(X, k, rng, W)] += 1
    U = np.asarray(X.T @ (V @ np.linalg.pinv(V.T @ V)).astype(X.dtype), dtype=np.float64)
    # A multiplicative update cannot leave zero: a hundredth of the mean part takes its place.
    floor = max(np.abs(U).mean() / 100, np.finfo(X.dtype).tiny)
    return np.maximum(U, floor), V


def _clusters(X: Matrix, k: int, rng: np.random.RandomState, W: sp.sparray | None) -> np.ndarray:
    """k-means on the *directions* of the spectral embedding (Ng, Jordan and Weiss 2002).

    A sample's length in the embedding tells how central it is in the graph, its direction where
    it belongs. scikit-learn's SpectralClustering keeps the lengths, so that k-means spends
    clusters on what lies far out and merges what lies near the origin.
    """
    n = X.shape[0]
    if k >= n or n < 3:
        return np.arange(n) % k
    W = knn_graph(X, min(NEIGHBOURS, n - 1)) if W is None else W
    return cluster(normalize(_embedding(W, k, rng)), k, random_state=rng)


def _embedding(W: sp.sparray, k: int, rng: np.random.RandomState) -> np.ndarray:
    """The k leading eigenvectors of the random walk on the graph ``W`` (n, n), as rows (n, k).

    A graph in pieces has its largest eigenvalue several times, which Lanczos iterations find only
    by luck; scikit-learn factorises the matrix, which costs little where a graph falls apart. On a
    connected graph it costs memory like n², and Lanczos does as well without.
    """
    W = sp.csr_array((W.data, W.indices.astype(np.int32), W.indptr.astype(np.int32)), shape=W.shape)
    if W.shape[0] <= LARGE and connected_components(W, directed=False, return_labels=False) > 1:
        return _factorised(W, k, rng)
    degree = np.asarray(W.sum(axis=1)).reshape(-1)
    scale = 1 / np.sqrt(np.where(degree > 0, degree, 1.0))
    walk = sp.csr_array(W.multiply(scale[:, None]).multiply(scale))
    try:
        _, vectors = scipy.sparse.linalg.eigsh(
            walk, k, which="LA", v0=rng.uniform(-1, 1, W.shape[0]), maxiter=RESTARTS
        )
    except scipy.sparse.linalg.ArpackError:  # a long chain: neighbouring eigenvalues are almost equal
        return _factorised(W, k, rng)
    return vectors * scale[:, None]


def _factorised(W: sp.csr_array, k: int, rng: np.random.RandomState) -> np.ndarray:
    with warnings.catch_warnings():
        # A graph in several pieces is no trouble here: each piece is a cluster or a union of some.
        warnings.filterwarnings("ignore", message="Graph is not fully connected")
        return spectral_embedding(W, n_components=k, random_state=rng, drop_first=False)
