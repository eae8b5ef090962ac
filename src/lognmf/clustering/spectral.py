"""scikit-learn's spectral clustering, with which ours is compared."""

from __future__ import annotations

import warnings

import numpy as np
import scipy.sparse as sp


def spectral_clustering(W: sp.sparray, n_clusters: int, seed: int) -> np.ndarray:
    """Clusters (n,) of the nodes of the graph ``W`` (n, n)."""
    from sklearn.cluster import SpectralClustering

    model = SpectralClustering(n_clusters, affinity="precomputed", random_state=seed, n_init=10)
    with warnings.catch_warnings():
        # A disconnected graph is fine: each component is a cluster or a union of some.
        warnings.filterwarnings("ignore", message="Graph is not fully connected")
        warnings.filterwarnings("ignore", message="Number of distinct clusters")
        return model.fit_predict(W)
