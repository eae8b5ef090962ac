"""What speaks for a number of clusters: eigengaps of the neighbour graph, and clusterings of it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy.linalg
import scipy.sparse as sp
from scipy.sparse.linalg import ArpackNoConvergence, eigsh
from sklearn.metrics import pairwise_distances, silhouette_score
from sklearn.preprocessing import normalize

from lognmf.clustering.kmeans import cluster
from lognmf.clustering.spectral import LARGE, filtered_vectors
from lognmf.core.arrays import Matrix
from lognmf.core.data import divided
from lognmf.core.matrices import on_cpu, rows_of
from lognmf.core.starts import ARPACK_SEED
from lognmf.core.threads import one_blas_thread
from lognmf.metrics import modularity

DENSE = 2000
"""Number of samples up to which all eigenvalues are found at once, which never fails."""

STARTS = 3
"""Starts of k-means for each number of clusters."""

MEASURED = 1000
"""Maximum number of samples whose silhouettes are averaged."""


def graph_evidence(
    W: sp.csr_array, ks: Sequence[int], *, random_state: Any, X: Matrix | None = None
) -> dict[str, list[float]]:
    """Column ``eigengap``, ``λ_k − λ_{k+1}`` of the random walk on ``W`` (n, n), and with ``X`` two more.

    These are ``modularity`` and ``silhouette`` of the samples' spectral clustering into k clusters. Gaps
    beyond the last eigenvalue are NaN.
    """
    values, vectors = _leading(W, min(max(ks) + 1, W.shape[0]))
    gaps = np.full(max(ks), np.nan)
    gaps[: max(len(values) - 1, 0)] = -np.diff(values)
    columns = {"eigengap": [float(gaps[k - 1]) for k in ks]}
    if X is not None:
        # NaN without k eigenvectors.
        found = [_clustering(vectors, k, random_state) if k <= vectors.shape[1] else None for k in ks]
        columns["modularity"] = [np.nan if labels is None else modularity(W, labels) for labels in found]
        columns["silhouette"] = _silhouettes(X, found)
    return columns


def _clustering(vectors: np.ndarray, k: int, random_state: Any) -> np.ndarray:
    """Spectral clustering into k clusters."""
    return cluster(normalize(vectors[:, :k]), k, random_state=random_state, n_init=STARTS)


def _silhouettes(X: Matrix, clusterings: Sequence[np.ndarray | None]) -> list[float]:
    """Mean silhouette of some samples under each clustering; NaN where it is not defined."""
    n = X.shape[0]
    some = np.sort(np.random.default_rng(0).permutation(n)[:MEASURED])
    rows = on_cpu(rows_of(X, some))
    with one_blas_thread():
        distances = pairwise_distances(divided(rows, abs(rows).max() or 1.0))
    np.fill_diagonal(distances, 0)
    shown = [None if labels is None else labels[some] for labels in clusterings]
    return [
        float(silhouette_score(distances, labels, metric="precomputed"))
        if labels is not None and 1 < len(np.unique(labels)) < len(some)
        else np.nan
        for labels in shown
    ]


def _leading(W: sp.csr_array, count: int) -> tuple[np.ndarray, np.ndarray]:
    """The ``count`` largest eigenvalues of the random walk, largest first, and eigenvectors (n, count)."""
    n = W.shape[0]
    degree = np.asarray(W.sum(axis=1)).reshape(-1)
    scale = 1 / np.sqrt(np.where(degree > 0, degree, 1.0))
    walk = sp.csr_array(W.multiply(scale[:, None]).multiply(scale))
    if n <= DENSE:
        with (
            one_blas_thread()
        ):  # where other programs use the cores, a second thread costs many times what it saves
            values, vectors = scipy.linalg.eigh(walk.toarray(), subset_by_index=[n - count, n - 1])
    elif n > LARGE:
        # Lanczos iterations miss eigenvalues that are equal, as those of a graph in pieces are.
        vectors = filtered_vectors(walk, count, degree, np.random.RandomState(ARPACK_SEED))
        values = np.einsum("ij,ij->j", vectors, walk @ vectors)
    else:
        try:
            values, vectors = eigsh(walk, count, which="LA", v0=scale, rng=ARPACK_SEED)
        except ArpackNoConvergence as error:
            values, vectors = error.eigenvalues, error.eigenvectors  # some of them are better than none
    order = np.argsort(-values, kind="stable")
    return values[order], vectors[:, order] * scale[:, None]
