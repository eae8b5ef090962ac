"""Starts from a k-means clustering of the samples, as the papers of the baselines have them.

H (n, k) is the indicator of the clusters; 0.2 is added so that nothing starts at zero
(Ding, Li and Jordan 2010).
"""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from lognmf.clustering import cluster
from lognmf.core.arrays import Matrix, to_numpy

LIFT = 0.2
"""What is added to an indicator."""


def indicator(X: Matrix, k: int, rng: np.random.RandomState) -> np.ndarray:
    """Indicator (n, k) of a k-means clustering of the rows of ``X``; surplus columns are zero."""
    X = X if sp.issparse(X) else to_numpy(X)
    labels = cluster(X, min(k, X.shape[0]), random_state=rng, n_init=1)
    return np.eye(k)[labels]


def orthogonal(X: Matrix, k: int, rng: np.random.RandomState) -> tuple[np.ndarray, np.ndarray]:
    """V = H + 0.2; U = the mean sample of each cluster."""
    H = indicator(X, k, rng)
    X = X if sp.issparse(X) else to_numpy(X)
    U = np.asarray(X.T @ (H / np.maximum(H.sum(axis=0), 1)).astype(X.dtype))
    # A multiplicative update cannot leave zero.
    return U + 1e-3 * (U.mean() or 1.0), H + LIFT


def convex(X: Matrix, k: int, rng: np.random.RandomState) -> tuple[np.ndarray, np.ndarray]:
    """B = (H + 0.2) D⁻¹ with D the sizes of the clusters; V = H + 0.2."""
    H = indicator(X, k, rng)
    return (H + LIFT) / np.maximum(H.sum(axis=0), 1), H + LIFT


def semi(X: Matrix, k: int, rng: np.random.RandomState) -> tuple[np.ndarray, np.ndarray]:
    """V = H + 0.2; U is solved for, so it starts as nothing."""
    return np.zeros((X.shape[1], k)), indicator(X, k, rng) + LIFT


def robust_manifold(X: Matrix, k: int, rng: np.random.RandomState) -> tuple[np.ndarray, np.ndarray]:
    """V = H + 0.2 of the samples; U = H + 0.2 of the *features*."""
    H = indicator(X, k, rng)
    return indicator(to_numpy(X).T, k, rng) + LIFT, H + LIFT
