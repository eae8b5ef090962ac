"""What the neighbour graph says about the number of clusters: eigengaps, and modularity of clusterings."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy.linalg
import scipy.sparse as sp
from scipy.sparse.linalg import ArpackNoConvergence, eigsh
from sklearn.preprocessing import normalize

from lognmf.clustering.kmeans import cluster
from lognmf.core.parallel import limited
from lognmf.core.starts import ARPACK_SEED
from lognmf.metrics import modularity
from lognmf.models.starts import LARGE, filtered_vectors

DENSE = 2000
"""Number of samples up to which all eigenvalues are found at once, which never fails."""

STARTS = 3
"""Starts of k-means for each number of clusters."""


def graph_evidence(
    W: sp.csr_array, ks: Sequence[int], *, with_modularity: bool, random_state: Any
) -> dict[str, list[float]]:
    """Columns ``eigengap``, ``λ_k − λ_{k+1}`` of the random walk on ``W`` (n, n), and ``modularity``.

    The latter, if asked for, is that of the spectral clustering into k clusters. Gaps beyond the last
    eigenvalue are NaN.
    """
    values, vectors = _leading(W, min(max(ks) + 1, W.shape[0]))
    gaps = np.full(max(ks), np.nan)
    gaps[: max(len(values) - 1, 0)] = -np.diff(values)
    columns = {"eigengap": [float(gaps[k - 1]) for k in ks]}
    if with_modularity:
        columns["modularity"] = [_modularity(W, vectors, k, random_state) for k in ks]
    return columns


def _modularity(W: sp.csr_array, vectors: np.ndarray, k: int, random_state: Any) -> float:
    """Modularity of a spectral clustering into k clusters; NaN without k eigenvectors."""
    if vectors.shape[1] < k:
        return np.nan
    return modularity(W, cluster(normalize(vectors[:, :k]), k, random_state=random_state, n_init=STARTS))


def _leading(W: sp.csr_array, count: int) -> tuple[np.ndarray, np.ndarray]:
    """The ``count`` largest eigenvalues of the random walk, largest first, and eigenvectors (n, count)."""
    n = W.shape[0]
    degree = np.asarray(W.sum(axis=1)).reshape(-1)
    scale = 1 / np.sqrt(np.where(degree > 0, degree, 1.0))
    walk = sp.csr_array(W.multiply(scale[:, None]).multiply(scale))
    if n <= DENSE:
        with limited():  # where other programs use the cores, a second thread costs many times what it saves
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
