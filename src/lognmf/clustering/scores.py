"""Scores of many labelings at once, from their tables of counts.

The same scores as in ``lognmf.metrics``, there for one labeling of any kind, here for B
labelings by integers. The samples are passed once, to count; all else works on the counts.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import array_api_compat
import numpy as np
import scipy.sparse as sp
from scipy.optimize import linear_sum_assignment

from lognmf.core.arrays import Array, Matrix, is_torch, namespace, on_gpu, operator_like, to_numpy

__all__ = [
    "accuracy",
    "contingency",
    "graph_scores",
    "normalized_cut",
    "normalized_mutual_info",
    "purity",
]

_AVERAGES: dict[str, Callable[[np.ndarray, np.ndarray], np.ndarray]] = {
    "max": np.maximum,
    "geometric": lambda left, right: np.sqrt(left * right),
}

_MEMORY = 2**26
"""Bytes for what `graph_scores` computes on the edges of a graph at a time."""


def contingency(y: Any, labels: Array) -> Array:
    """Count the samples of every class in every cluster.

    Parameters
    ----------
    y : array of shape (n,)
        Classes 0, 1, …
    labels : array of shape (n, B)
        Clusters 0, 1, … of B labelings, of any array library.

    Returns
    -------
    counts : array of shape (B, classes, clusters), int64
        In the library and on the device of ``labels``. Numbers that do not occur have
        empty rows and columns.

    Examples
    --------
    >>> contingency([0, 0, 1], np.array([[0, 1], [0, 1], [1, 0]])).tolist()
    [[[2, 0], [0, 1]], [[0, 2], [1, 0]]]
    """
    y = to_numpy(y) if is_torch(y) else np.asarray(y)
    xp, device = namespace(labels), array_api_compat.device(labels)
    if labels.ndim != 2 or y.shape != labels.shape[:1] or 0 in labels.shape:
        msg = (
            "y must have shape (n,) and labels (n, B), with at least one of each; "
            f"got {y.shape} and {tuple(labels.shape)}."
        )
        raise ValueError(msg)
    B, classes, clusters = labels.shape[1], _groups(y, "y"), _groups(labels, "labels")
    table = xp.arange(B, device=device) * classes + xp.asarray(y, dtype=xp.int64, device=device)[:, None]
    counts = _bincount(
        xp.reshape(table * clusters + xp.astype(labels, xp.int64), (-1,)), B * classes * clusters
    )
    return xp.reshape(counts, (B, classes, clusters))


def _groups(codes: Array, name: str) -> int:
    """Number of groups of integer codes."""
    xp = namespace(codes)
    if not xp.isdtype(codes.dtype, "integral") or int(xp.min(codes)) < 0:
        msg = (
            f"{name} must be integers from 0 on; "
            f"np.unique({name}, return_inverse=True)[1] makes them of any labels."
        )
        raise ValueError(msg)
    return int(xp.max(codes)) + 1


def _bincount(places: Array, size: int) -> Array:
    """How often each of 0, …, size − 1 occurs."""
    xp = namespace(places)
    if hasattr(xp, "bincount"):
        return xp.bincount(places, minlength=size)
    counts = np.bincount(to_numpy(places), minlength=size)
    return xp.asarray(counts, device=array_api_compat.device(places))


def accuracy(counts: Array) -> np.ndarray:
    """Share of samples labelled right under the best one-to-one map of clusters to classes.

    Parameters
    ----------
    counts : array of shape (B, classes, clusters)
        As from `contingency`.

    Returns
    -------
    ndarray of shape (B,)
    """
    counts = to_numpy(counts)
    right = [table[linear_sum_assignment(table, maximize=True)].sum() for table in counts]
    return np.array(right) / counts.sum(axis=(1, 2))


def purity(counts: Array) -> np.ndarray:
    """Share of samples that belong to the largest class of their cluster.

    Parameters
    ----------
    counts : array of shape (B, classes, clusters)
        As from `contingency`.

    Returns
    -------
    ndarray of shape (B,)
    """
    counts = to_numpy(counts)
    return counts.max(axis=1).sum(axis=1) / counts.sum(axis=(1, 2))


def normalized_mutual_info(counts: Array, average: str = "max") -> np.ndarray:
    """Mutual information over a mean of the two entropies.

    Parameters
    ----------
    counts : array of shape (B, classes, clusters)
        As from `contingency`.
    average : {"max", "geometric"}, default="max"
        The mean, as in `lognmf.metrics.normalized_mutual_info`.

    Returns
    -------
    ndarray of shape (B,)
        1 if both sides are one single group, 0 if only one is.
    """
    if average not in _AVERAGES:
        msg = f"average must be one of {list(_AVERAGES)}; got {average!r}."
        raise ValueError(msg)
    counts = to_numpy(counts)
    total = counts.sum(axis=(1, 2))[:, None]
    classes, clusters = counts.sum(axis=2) / total, counts.sum(axis=1) / total
    joint = counts / total[:, :, None]
    expected = classes[:, :, None] * clusters[:, None, :]
    # Independent groups leave rounding, which a small entropy would blow up.
    terms = joint * (_log(joint) - _log(expected))
    terms[np.abs(terms) < np.finfo(float).eps] = 0
    information = np.maximum(terms.sum(axis=(1, 2)), 0)
    entropies = _entropy(classes), _entropy(clusters)
    mean = _AVERAGES[average](*entropies)
    scores = np.divide(information, mean, out=np.zeros_like(mean), where=mean > 0)
    return np.where(np.maximum(*entropies) > 0, scores, 1.0)


def _entropy(shares: np.ndarray) -> np.ndarray:
    """Entropies of distributions (B, groups)."""
    return -(shares * _log(shares)).sum(axis=1)


def _log(x: np.ndarray) -> np.ndarray:
    """Logarithm, 0 where ``x`` is 0: it then stands beside a factor 0."""
    return np.log(x, out=np.zeros_like(x), where=x > 0)


def normalized_cut(W: Matrix, labels: Array) -> np.ndarray:
    """Normalised cuts of labelings on a graph; parameters as for `graph_scores`."""
    return graph_scores(W, labels)["normalized_cut"]


def graph_scores(W: Matrix, labels: Array) -> dict[str, np.ndarray]:
    """How well labelings keep the edges of a graph inside their clusters.

    Parameters
    ----------
    W : sparse matrix of shape (n, n)
        Symmetric nonnegative weights.
    labels : array of shape (n, B)
        Clusters 0, 1, … of B labelings, of any array library; counted where it is.

    Returns
    -------
    dict of ndarray of shape (B,)
        ``normalized_cut``: ``Σ_c cut(c) / volume(c)``. ``modularity``: the share of the edges
        inside clusters, less the share that clusters of these volumes would keep by chance.
    """
    W = sp.coo_array(W)
    n, B = labels.shape
    if W.shape != (n, n):
        msg = f"W must be {n}×{n} for labels of shape {labels.shape}; got {W.shape[0]}×{W.shape[1]}."
        raise ValueError(msg)
    clusters = _groups(labels, "labels")
    if on_gpu(labels):
        volume, cut = _volume_and_cut_by_products(W, labels, clusters)
    else:
        labels = to_numpy(labels)
        step = max(1, _MEMORY // (32 * max(W.nnz, 1)))
        parts = [_volume_and_cut(W, labels[:, start : start + step], clusters) for start in range(0, B, step)]
        volume, cut = (np.concatenate(part) for part in zip(*parts, strict=True))
    edges = float(W.data.sum()) or 1.0
    return {
        "normalized_cut": np.divide(cut, volume, out=np.zeros(cut.shape), where=volume > 0).sum(axis=1),
        "modularity": ((volume - cut) / edges - (volume / edges) ** 2).sum(axis=1),
    }


def _volume_and_cut(W: sp.coo_array, labels: np.ndarray, clusters: int) -> tuple[np.ndarray, np.ndarray]:
    """Weights of the edges at every cluster and of those that leave it, (B, clusters) each."""
    B, (i, j) = labels.shape[1], W.coords
    group = labels + clusters * np.arange(B)
    start, end, weight = group[i], group[j], np.broadcast_to(W.data[:, None], (W.nnz, B))

    def per_cluster(weights: np.ndarray) -> np.ndarray:
        found = np.bincount(start.reshape(-1), weights=weights.reshape(-1), minlength=B * clusters)
        return found.reshape(B, clusters)

    return per_cluster(weight), per_cluster(np.where(start != end, weight, 0))


def _volume_and_cut_by_products(
    W: sp.coo_array, labels: Array, clusters: int
) -> tuple[np.ndarray, np.ndarray]:
    """The same by a product with W a cluster: no scattered sums, which a GPU is slow at."""
    xp = namespace(labels)
    graph = operator_like(W, xp.zeros_like(labels[:1, 0], dtype=xp.float64))
    volumes, cuts = [], []
    for cluster in range(clusters):
        members = xp.astype(labels == cluster, xp.float64)
        reached = graph @ members
        # W is symmetric: what the members reach is their volume.
        volumes.append(xp.sum(reached, axis=0))
        cuts.append(volumes[-1] - xp.sum(reached * members, axis=0))
    return to_numpy(xp.stack(volumes, axis=1)), to_numpy(xp.stack(cuts, axis=1))
