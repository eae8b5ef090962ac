"""Scores of B labelings at once; `lognmf.metrics` wraps them for a single one.

Labelings are integers 0, 1, … of shape (n, B), of any array library. The samples are passed once, to
count them; accuracy, purity and mutual information are computed from these counts (B, classes, clusters).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import array_api_compat
import numpy as np
import scipy.sparse as sp
from scipy.optimize import linear_sum_assignment

from lognmf.core.arrays import Array, Matrix, namespace, on_gpu, to_numpy, total
from lognmf.core.matrices import operator_like

AVERAGES: dict[str, Callable[[np.ndarray, np.ndarray], np.ndarray]] = {
    "max": np.maximum,
    "geometric": lambda left, right: np.sqrt(left * right),
}
"""Means of two entropies by name."""

_MEMORY = 2**26
"""Bytes for the temporaries of `graph_scores`."""


def contingency(y: Any, labels: Array) -> Array:
    """Number of samples of every class ``y`` (n,) in every cluster, (B, classes, clusters), where labels are.

    Examples
    --------
    >>> contingency([0, 0, 1], np.array([[0, 1], [0, 1], [1, 0]])).tolist()
    [[[2, 0], [0, 1]], [[0, 2], [1, 0]]]
    """
    y = to_numpy(y)
    xp, device = namespace(labels), array_api_compat.device(labels)
    B, classes, clusters = labels.shape[1], int(y.max()) + 1, int(xp.max(labels)) + 1
    table = xp.arange(B, device=device) * classes + xp.asarray(y, dtype=xp.int64, device=device)[:, None]
    places = xp.reshape(table * clusters + xp.astype(labels, xp.int64), (-1,))
    return xp.reshape(_bincount(places, B * classes * clusters), (B, classes, clusters))


def _bincount(places: Array, size: int) -> Array:
    """How often each of 0, …, size − 1 occurs."""
    xp = namespace(places)
    if hasattr(xp, "bincount"):
        return xp.bincount(places, minlength=size)
    counts = np.bincount(to_numpy(places), minlength=size)
    return xp.asarray(counts, device=array_api_compat.device(places))


def accuracy(counts: Array) -> np.ndarray:
    """Share of samples labelled correctly under the best one-to-one map of clusters to classes, (B,)."""
    counts = to_numpy(counts)
    correct = [table[linear_sum_assignment(table, maximize=True)].sum() for table in counts]
    return np.array(correct) / counts.sum(axis=(1, 2))


def purity(counts: Array) -> np.ndarray:
    """Share of samples that belong to the largest class of their cluster, (B,)."""
    counts = to_numpy(counts)
    return counts.max(axis=1).sum(axis=1) / counts.sum(axis=(1, 2))


def normalized_mutual_info(counts: Array, average: str = "max") -> np.ndarray:
    """Mutual information over a mean of the two entropies, (B,).

    1 if both sides are one single group, 0 if only one is.
    """
    counts = to_numpy(counts)
    n = counts.sum(axis=(1, 2))[:, None]
    classes, clusters = counts.sum(axis=2) / n, counts.sum(axis=1) / n
    joint = counts / n[:, :, None]
    expected = classes[:, :, None] * clusters[:, None, :]
    # Independent groups leave rounding errors, which a division by a small entropy would magnify.
    terms = joint * (_log(joint) - _log(expected))
    terms[np.abs(terms) < np.finfo(float).eps] = 0
    information = np.maximum(terms.sum(axis=(1, 2)), 0)
    entropies = _entropy(classes), _entropy(clusters)
    mean = AVERAGES[average](*entropies)
    scores = np.divide(information, mean, out=np.zeros_like(mean), where=mean > 0)
    return np.where(np.maximum(*entropies) > 0, np.minimum(scores, 1.0), 1.0)


def _entropy(shares: np.ndarray) -> np.ndarray:
    """Entropies of distributions (B, groups)."""
    return -(shares * _log(shares)).sum(axis=1)


def _log(x: np.ndarray) -> np.ndarray:
    """Logarithm, and 0 where ``x`` is 0: it is then multiplied by 0."""
    return np.log(x, out=np.zeros_like(x), where=x > 0)


def hoyer_sparseness(F: Array, size: int | None = None) -> np.ndarray:
    """Hoyer's sparseness of B factors (n, B, k), (B,); 1 for zeros and for a single entry.

    ``size`` is the number of entries of each, where F leaves out some that are zero.
    """
    xp = namespace(F)
    size = F.shape[0] * F.shape[2] if size is None else size
    if size == 1:
        return np.ones(F.shape[1])
    largest = xp.max(xp.abs(F), axis=(0, 2), keepdims=True)
    F = F / xp.where(largest > 0, largest, xp.ones_like(largest))  # neither sum can overflow or vanish
    sums, squares = to_numpy(total(xp.abs(F), axis=(0, 2))), to_numpy(total(F**2, axis=(0, 2)))
    ratio = np.divide(sums, np.sqrt(squares), out=np.ones_like(sums), where=squares > 0)
    return np.clip((np.sqrt(size) - ratio) / (np.sqrt(size) - 1), 0, 1)


def cluster_sizes(labels: Array, n_clusters: int) -> tuple[np.ndarray, np.ndarray]:
    """Clusters that have samples, and the entropy of their sizes over its largest value, (B,), (B,)."""
    xp = namespace(labels)
    members = (xp.astype(labels == cluster, xp.float64) for cluster in range(n_clusters))
    sizes = np.stack([to_numpy(xp.sum(one, axis=0)) for one in members])
    share = sizes / labels.shape[0]
    largest = np.log(n_clusters) if n_clusters > 1 else 1.0
    return (share > 0).sum(axis=0), -(share * _log(share)).sum(axis=0) / largest


def graph_scores(W: Matrix, labels: Array) -> dict[str, np.ndarray]:
    """How well labelings keep the edges of a symmetric graph W (n, n) inside their clusters, (B,) each.

    ``normalized_cut``: ``Σ_c cut(c) / volume(c)``. ``modularity``: the share of the edges inside
    clusters, less the share expected by chance for clusters of these volumes.
    """
    W = sp.coo_array(W)
    B = labels.shape[1]
    clusters = int(namespace(labels).max(labels)) + 1
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
        sums = np.bincount(start.reshape(-1), weights=weights.reshape(-1), minlength=B * clusters)
        return sums.reshape(B, clusters)

    return per_cluster(weight), per_cluster(np.where(start != end, weight, 0))


def _volume_and_cut_by_products(
    W: sp.coo_array, labels: Array, clusters: int
) -> tuple[np.ndarray, np.ndarray]:
    """The same by one product with W per cluster: scattered sums are slow on a GPU."""
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
