"""One numbering of clusters and parts."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.optimize import linear_sum_assignment

from lognmf.core.arrays import to_numpy


def numbered_by_parts(labels: np.ndarray, V: Any) -> np.ndarray:
    """The same clusters, numbered in the order of their main parts: with k of both, cluster j has part j."""
    clusters, places = np.unique(labels, return_inverse=True)
    order = np.argsort(main_parts(places, len(clusters), V), kind="stable")
    return np.argsort(order)[places].astype(labels.dtype)


def main_parts(labels: np.ndarray, n_clusters: int, V: Any) -> np.ndarray:
    """A part for each cluster, with large codes in it; no part twice while there are others."""
    codes = to_numpy(V)
    top = abs(codes).max(axis=0)
    heights = codes / np.where(top > 0, top, 1)
    members = np.bincount(labels, minlength=n_clusters)
    sums = np.stack([np.bincount(labels, column, n_clusters) for column in heights.T], axis=1)
    means = sums / np.maximum(members, 1)[:, None]
    parts = means.argmax(axis=1)
    matched, own = linear_sum_assignment(-means)
    parts[matched] = own
    return parts
