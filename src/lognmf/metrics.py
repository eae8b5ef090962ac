"""How good a clustering is, with labels and without, and how sparse a matrix is.

Clusterings are label vectors of any type, and the numbers of clusters and classes may differ. The formulas
are those of `lognmf.clustering.scores`, here for one clustering, with its arguments checked.
"""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
import scipy.sparse as sp
from sklearn.utils import check_consistent_length, column_or_1d

from lognmf.clustering import scores
from lognmf.core.arrays import is_torch, to_numpy
from lognmf.parameters import check_choice, check_sparse

__all__ = [
    "clustering_accuracy",
    "hoyer_sparseness",
    "modularity",
    "normalized_cut",
    "normalized_mutual_info",
    "purity",
]


def clustering_accuracy(y: Any, labels: Any) -> float:
    """Share of samples labelled correctly under the best one-to-one map of clusters to classes.

    Clusters without a class (or classes without a cluster) count as wrong (``eq_acc``).

    Parameters
    ----------
    y, labels : array-like of shape (n,)
        True classes and clusters.

    Returns
    -------
    float
        In (0, 1].

    See Also
    --------
    purity : Clusters may share a class.

    Examples
    --------
    >>> clustering_accuracy(["a", "a", "b", "b"], [1, 1, 0, 2])
    0.75
    """
    return scores.accuracy(_counts(y, labels)).item()


def normalized_mutual_info(y: Any, labels: Any, average: Literal["max", "geometric"] = "max") -> float:
    """Mutual information over a mean of the two entropies.

    Parameters
    ----------
    y, labels : array-like of shape (n,)
        True classes and clusters.
    average : {"max", "geometric"}, default="max"
        "max" is what the paper's tables hold; "geometric" is the formula it prints (``eq_nmi``).

    Returns
    -------
    float
        In [0, 1]; 1 if both sides are one single group, 0 if only one is.

    Raises
    ------
    ValueError
        If ``average`` is another word, or the two lengths differ.

    See Also
    --------
    clustering_accuracy : The share of correct samples.

    Examples
    --------
    >>> round(normalized_mutual_info([0, 0, 1, 1], [0, 0, 1, 2]), 3)
    0.667
    """
    check_choice("average", average, scores.AVERAGES)
    return scores.normalized_mutual_info(_counts(y, labels), average).item()


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

    See Also
    --------
    clustering_accuracy : Every class belongs to one cluster.

    Examples
    --------
    >>> purity([0, 0, 1, 1], [0, 0, 1, 2])
    1.0
    """
    return scores.purity(_counts(y, labels)).item()


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

    Raises
    ------
    ValueError
        If M is empty, or holds NaN or infinity.

    See Also
    --------
    lognmf.log_norm : The penalty that makes factors sparse.

    Examples
    --------
    >>> hoyer_sparseness([[1.0, 0.0], [0.0, 0.0]]), hoyer_sparseness([[1.0, 1.0], [1.0, 1.0]])
    (1.0, 0.0)
    """
    check_sparse("M", M)
    if sp.issparse(M):
        stored = sp.coo_array(M)  # whose arrays are replaced, not changed, when duplicates are summed
        stored.sum_duplicates()
        size, stored = M.shape[0] * M.shape[1], np.append(stored.data, 0)
    else:
        stored = to_numpy(M)
        size = stored.size
    entries = stored.astype(np.float64, copy=False).reshape(-1, 1, 1)
    if size == 0 or not np.isfinite(entries).all():
        got = "NaN or infinity" if size else "no entries"
        msg = f"M must be finite and not empty; got {got}."
        raise ValueError(msg)
    return scores.hoyer_sparseness(entries, size).item()


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

    See Also
    --------
    modularity : Compares with random edges.

    Examples
    --------
    >>> W = [[0, 1, 0, 0], [1, 0, 0, 0], [0, 0, 0, 1], [0, 0, 1, 0]]
    >>> normalized_cut(W, [0, 0, 1, 1]), normalized_cut(W, [0, 1, 0, 1])
    (0.0, 2.0)
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

    See Also
    --------
    normalized_cut : Counts the edges between clusters.

    Examples
    --------
    >>> W = [[0, 1, 0, 0], [1, 0, 0, 0], [0, 0, 0, 1], [0, 0, 1, 0]]
    >>> modularity(W, [0, 0, 1, 1]), modularity(W, [0, 0, 0, 0]), modularity(W, [0, 1, 0, 1])
    (0.5, 0.0, -0.5)
    """
    return _graph_scores(W, labels)["modularity"]


def _graph_scores(W: Any, labels: Any) -> dict[str, float]:
    """All scores of one clustering on a graph."""
    clusters = _codes(labels)
    n = len(clusters)
    if n == 0:
        msg = "labels are empty: there is nothing to score."
        raise ValueError(msg)
    check_sparse("W", W)
    W = sp.coo_array(W)
    if W.shape != (n, n):
        msg = f"W must be {n}×{n} for {n} labels; got {W.shape[0]}×{W.shape[1]}."
        raise ValueError(msg)
    return {name: values.item() for name, values in scores.graph_scores(W, clusters[:, None]).items()}


def _counts(y: Any, labels: Any) -> np.ndarray:
    """Number of samples of every class in every cluster, (1, classes, clusters)."""
    classes, clusters = _codes(y), _codes(labels)
    check_consistent_length(classes, clusters)
    if len(classes) == 0:
        msg = "y and labels are empty: there is nothing to compare."
        raise ValueError(msg)
    return scores.contingency(classes, clusters[:, None])


def _codes(labels: Any) -> np.ndarray:
    """Labels of any type as integers from 0 on."""
    labels = column_or_1d(to_numpy(labels) if is_torch(labels) else labels)
    return np.unique(labels, return_inverse=True)[1]
