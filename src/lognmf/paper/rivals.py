"""What a user would pick instead of a factorisation: k-means, and spectral clustering of the same graph."""

from __future__ import annotations

import warnings
from collections.abc import Callable

import numpy as np
from sklearn.cluster import SpectralClustering

from lognmf.clustering import cluster
from lognmf.paper.samples import Samples

__all__ = ["RIVALS"]


def _kmeans(samples: Samples, seed: int) -> np.ndarray:
    return cluster(samples.X, samples.classes, random_state=seed)


def _spectral(samples: Samples, seed: int) -> np.ndarray:
    W = samples.W.copy()
    # scikit-learn's clustering takes 32-bit indices only.
    W.indices, W.indptr = W.indices.astype(np.int32), W.indptr.astype(np.int32)
    model = SpectralClustering(samples.classes, affinity="precomputed", random_state=seed, n_init=10)
    with warnings.catch_warnings():
        # A graph in several pieces is no trouble: each is a cluster or a union of some.
        warnings.filterwarnings("ignore", message="Graph is not fully connected")
        warnings.filterwarnings("ignore", message="Number of distinct clusters")
        return model.fit_predict(W)


RIVALS: dict[str, Callable[[Samples, int], np.ndarray]] = {
    "k-means": _kmeans,
    "spectral clustering": _spectral,
}
"""Clusterings by name: ``(samples, seed) -> labels``."""
