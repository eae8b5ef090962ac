"""A start that knows the graph: spectral clustering of the samples' neighbour graph."""

from __future__ import annotations

import warnings

import numpy as np
import scipy.sparse as sp
from sklearn.manifold import spectral_embedding
from sklearn.preprocessing import normalize

from lognmf.clustering import cluster
from lognmf.core.arrays import Matrix, to_numpy
from lognmf.graph import knn_graph
from lognmf.models.kmeans_starts import LIFT

NEIGHBOURS = 5
"""Neighbours in the graph that is clustered."""


def spectral(X: Matrix, k: int, rng: np.random.RandomState) -> tuple[np.ndarray, np.ndarray]:
    """V = indicator of a spectral clustering + 0.2; U by least squares, clipped to be positive."""
    X = X if sp.issparse(X) else to_numpy(X)
    V = np.eye(k)[_clusters(X, k, rng)] + LIFT
    U = np.asarray(X.T @ (V @ np.linalg.pinv(V.T @ V)).astype(X.dtype), dtype=np.float64)
    # A multiplicative update cannot leave zero: a hundredth of the mean part takes its place.
    floor = max(np.abs(U).mean() / 100, np.finfo(X.dtype).tiny)
    return np.maximum(U, floor), V


def _clusters(X: Matrix, k: int, rng: np.random.RandomState) -> np.ndarray:
    """k-means on the *directions* of the spectral embedding (Ng, Jordan and Weiss 2002).

    A sample's length in the embedding tells how central it is in the graph, its direction where
    it belongs. scikit-learn's SpectralClustering keeps the lengths, so that k-means spends
    clusters on what lies far out and merges what lies near the origin.
    """
    n = X.shape[0]
    if k >= n or n < 3:
        return np.arange(n) % k
    W = knn_graph(X, min(NEIGHBOURS, n - 1))
    W.indices, W.indptr = W.indices.astype(np.int32), W.indptr.astype(np.int32)
    with warnings.catch_warnings():
        # A graph in several pieces is no trouble here: each piece is a cluster or a union of some.
        warnings.filterwarnings("ignore", message="Graph is not fully connected")
        embedding = spectral_embedding(W, n_components=k, random_state=rng, drop_first=False)
    return cluster(normalize(embedding), k, random_state=rng)
