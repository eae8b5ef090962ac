"""Starts that cluster the samples first: by k-means, or by spectral clustering of their neighbour graph."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from lognmf.clustering import cluster
from lognmf.clustering.spectral import spectral_clusters, t_times
from lognmf.core import starts
from lognmf.core.arrays import Matrix, on_gpu, to_numpy
from lognmf.core.data import InMemory
from lognmf.core.matrices import factor_pattern, on_cpu
from lognmf.graph import Graphs

LIFT = 0.2
"""Added to an indicator, so that nothing starts at zero (Ding, Li and Jordan 2010)."""

NEIGHBOURS = 5
"""Neighbours in the graph that is clustered."""


def indicator(X: Matrix, k: int, rng: np.random.RandomState) -> np.ndarray:
    """Indicator (n, k) of a k-means clustering of the rows of ``X``; surplus columns are zero."""
    X = on_cpu(X)
    labels = cluster(X, min(k, X.shape[0]), random_state=rng, n_init=1)
    return np.eye(k)[labels]


def orthogonal(data: InMemory, k: int, rng: np.random.RandomState) -> tuple[np.ndarray, np.ndarray]:
    """V = H + 0.2; U = the mean sample of each cluster."""
    X = on_cpu(data.X)
    H = indicator(X, k, rng)
    U = np.asarray(X.T @ (H / np.maximum(H.sum(axis=0), 1)).astype(X.dtype))
    # A multiplicative update cannot leave zero.
    return U + 1e-3 * (U.mean() or 1.0), H + LIFT


def convex(data: InMemory, k: int, rng: np.random.RandomState) -> tuple[np.ndarray, np.ndarray]:
    """B = (H + 0.2) D⁻¹ with D the sizes of the clusters; V = H + 0.2."""
    H = indicator(data.X, k, rng)
    return (H + LIFT) / np.maximum(H.sum(axis=0), 1), H + LIFT


def semi(data: InMemory, k: int, rng: np.random.RandomState) -> tuple[np.ndarray, np.ndarray]:
    """V = H + 0.2; U is solved for, so it starts as nothing."""
    return np.zeros((data.shape[1], k)), indicator(data.X, k, rng) + LIFT


def robust_manifold(data: InMemory, k: int, rng: np.random.RandomState) -> tuple[np.ndarray, np.ndarray]:
    """V = H + 0.2 of the samples; U = H + 0.2 of the *features*."""
    H = indicator(data.X, k, rng)
    return indicator(to_numpy(data.X).T, k, rng) + LIFT, H + LIFT


def spectral(
    data: InMemory, k: int, rng: np.random.RandomState, W: sp.sparray | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """V = indicator of a spectral clustering + 0.2; U by least squares, clipped to be positive.

    ``W`` is the graph of `NEIGHBOURS` neighbours; without it, it is built.
    """
    X = data.X if on_gpu(data.X) else on_cpu(data.X)
    W = Graphs(X).knn(NEIGHBOURS) if W is None else W
    return near_clusters(X, spectral_clusters(X, k, rng, W), k)


def near_clusters(X: Matrix, labels: np.ndarray, k: int) -> tuple[np.ndarray, np.ndarray]:
    """V = indicator of the clusters ``labels`` (n,) + 0.2; U by least squares, clipped to be positive."""
    V = np.full((X.shape[0], k), LIFT)
    V[np.arange(len(V)), labels] += 1
    U = t_times(X, V @ np.linalg.pinv(V.T @ V))
    # A multiplicative update cannot leave zero: a hundredth of the mean part takes its place.
    floor = max(np.abs(U).mean() / 100, float(np.finfo(to_numpy(factor_pattern(X)[:0]).dtype).tiny))
    return np.maximum(U, floor), V


SPECTRAL = starts.Start(spectral, (1.0, 0.0), in_memory=True, of_graph=True)
"""The start by spectral clustering."""
