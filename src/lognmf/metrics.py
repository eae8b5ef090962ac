"""How good a clustering is, with labels and without, and how sparse a matrix is.

All clusterings are label vectors of any type; numbers of clusters and classes may
differ.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.optimize import linear_sum_assignment
from sklearn.metrics import normalized_mutual_info_score
from sklearn.metrics.cluster import contingency_matrix
from sklearn.utils import check_consistent_length, column_or_1d

from lognmf.clustering import scores
from lognmf.core.arrays import is_torch, to_numpy

__all__ = [
    "clustering_accuracy",
    "hoyer_sparseness",
    "modularity",
    "normalized_cut",
    "normalized_mutual_info",
    "purity",
]

_AVERAGES = ("max", "geometric")


def clustering_accuracy(y: Any, labels: Any) -> float:
    """Share of samples labelled right under the best one-to-one map of clusters to classes.

    Clusters without a class (or classes without a cluster) count as wrong (``eq_acc``).

    Parameters
    ----------
    y, labels : array-like of shape (n,)
        True classes and clusters.

    Returns
    -------
    float
        In (0, 1].

    Examples
    --------
    >>> clustering_accuracy(["a", "a", "b", "b"], [1, 1, 0, 2])
    0.75
    """
    table = _contingency(y, labels)
    classes, clusters = linear_sum_assignment(table, maximize=True)
    return float(table[classes, clusters].sum() / table.sum())


def normalized_mutual_info(y: Any, labels: Any, average: str = "max") -> float:
    """Mutual information over a mean of the two entropies.

    Parameters
    ----------
    y, labels : array-like of shape (n,)
        True classes and clusters.
    average : {"max", "geometric"}, default="max"
        "max" is what the paper's tables hold; "geometric" is the formula it prints
        (``eq_nmi``).

    Returns
    -------
    float
        In [0, 1]; 1 if both sides are one single group, 0 if only one is.
    """
    if average not in _AVERAGES:
        msg = f"average must be one of {list(_AVERAGES)}; got {average!r}."
        raise ValueError(msg)
    # As codes: scikit-learn warns of labels that are fractions.
    y, labels = (np.unique(side, return_inverse=True)[1] for side in _pair(y, labels))
    return float(normalized_mutual_info_score(y, labels, average_method=average))


def purity(y: Any, labels: Any) -> float:
    """Share of samples that belong to the largest class of their cluster (``eq_purity``).

    Parameters
    ----------
    y, labels : array-like of shape (n,)
        True classes and clusters.

    Returns
    -------
    float
        In (0, 1]; never below the accuracy.
    """
    table = _contingency(y, labels)
    return float(table.max(axis=0).sum() / table.sum())


def hoyer_sparseness(M: Any) -> float:
    """Hoyer's sparseness ``(√N − ‖M‖₁/‖M‖₂) / (√N − 1)`` of all N entries.

    Parameters
    ----------
    M : array-like, sparse matrix or torch tensor

    Returns
    -------
    float
        0 if all entries are equal in size, 1 if a single one is not zero. A matrix of
        zeros, and one of a single entry, count as 1.
    """
    if sp.issparse(M):
        size, entries = M.shape[0] * M.shape[1], _stored(M)
    else:
        entries = to_numpy(M) if is_torch(M) else np.asarray(M)
        size = entries.size
    entries = np.abs(entries.astype(np.float64, copy=False)).reshape(-1)
    largest = entries.max(initial=0.0)
    if size == 0 or not np.isfinite(largest):
        msg = f"M must be finite and not empty; got {size} entries, the largest {largest}."
        raise ValueError(msg)
    if largest == 0 or size == 1:
        return 1.0
    entries = entries / largest  # neither sum can overflow or vanish
    ratio = entries.sum() / np.sqrt(entries @ entries)
    return float(np.clip((np.sqrt(size) - ratio) / (np.sqrt(size) - 1), 0, 1))


def _stored(M: Any) -> np.ndarray:
    """Entries of a sparse matrix of any format, each once."""
    M = sp.coo_array(M, copy=True)
    M.sum_duplicates()
    return M.data


def normalized_cut(W: Any, labels: Any) -> float:
    """Normalised cut of a clustering on a graph: ``Σ_c cut(c) / volume(c)``. Lower is better.

    Needs no true labels. A cluster without edges costs nothing.

    Parameters
    ----------
    W : sparse matrix or array of shape (n, n)
        Symmetric nonnegative weights, as from `knn_graph`.
    labels : array-like of shape (n,)
        Clusters.

    Returns
    -------
    float
        Between 0 and the number of clusters.
    """
    return _graph_scores(W, labels)["normalized_cut"]


def modularity(W: Any, labels: Any) -> float:
    """Modularity of a clustering on a graph: ``Σ_c inside(c)/w − (volume(c)/w)²``. Higher is better.

    The share of the edges that stay inside clusters, less the share that would if edges of the
    same volumes were drawn at random (Newman and Girvan 2004). Needs no true labels.

    Parameters
    ----------
    W : sparse matrix or array of shape (n, n)
        Symmetric nonnegative weights, as from `knn_graph`.
    labels : array-like of shape (n,)
        Clusters.

    Returns
    -------
    float
        At most 1; 0 for a single cluster and for a graph without edges.

    Examples
    --------
    >>> W = [[0, 1, 0, 0], [1, 0, 0, 0], [0, 0, 0, 1], [0, 0, 1, 0]]
    >>> modularity(W, [0, 0, 1, 1]), modularity(W, [0, 0, 0, 0]), modularity(W, [0, 1, 0, 1])
    (0.5, 0.0, -0.5)
    """
    return _graph_scores(W, labels)["modularity"]


def _graph_scores(W: Any, labels: Any) -> dict[str, float]:
    labels = column_or_1d(to_numpy(labels) if is_torch(labels) else labels)
    if len(labels) == 0:
        msg = "labels are empty: there is nothing to score."
        raise ValueError(msg)
    W = sp.coo_array(W)
    if W.shape != (len(labels), len(labels)):
        msg = (
            f"W must be {len(labels)}×{len(labels)} for {len(labels)} labels; got {W.shape[0]}×{W.shape[1]}."
        )
        raise ValueError(msg)
    _, clusters = np.unique(labels, return_inverse=True)
    return {name: float(found[0]) for name, found in scores.graph_scores(W, clusters[:, None]).items()}


def _pair(y: Any, labels: Any) -> tuple[np.ndarray, np.ndarray]:
    y = column_or_1d(to_numpy(y) if is_torch(y) else y)
    labels = column_or_1d(to_numpy(labels) if is_torch(labels) else labels)
    check_consistent_length(y, labels)
    if len(y) == 0:
        msg = "y and labels are empty: there is nothing to compare."
        raise ValueError(msg)
    return y, labels


def _contingency(y: Any, labels: Any) -> np.ndarray:
    """Counts, classes in rows and clusters in columns."""
    return contingency_matrix(*_pair(y, labels))
