"""From codes to clusters: k-means on V, as in the paper."""

from __future__ import annotations

import warnings
from numbers import Integral
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.cluster import KMeans
from sklearn.exceptions import ConvergenceWarning

from lognmf.core.arrays import is_torch, to_numpy
from lognmf.core.parallel import threads_for

__all__ = ["cluster"]


def cluster(V: Any, n_clusters: int, *, random_state: Any = None, n_init: int = 10) -> np.ndarray:
    """Group samples by k-means on their codes.

    Parameters
    ----------
    V : array-like, sparse matrix or torch tensor of shape (n, k)
        Codes, one sample a row.
    n_clusters : int
        Number of clusters, at most n.
    random_state : int, RandomState or None, default=None
        For the starts of k-means.
    n_init : int, default=10
        Starts; the tightest clustering wins.

    Returns
    -------
    labels : ndarray of shape (n,)
        Clusters 0, 1, …, without gaps; fewer than ``n_clusters`` where V has fewer
        distinct rows.

    Examples
    --------
    >>> labels = cluster([[0, 1], [0, 1.1], [5, 0]], 2, random_state=0)
    >>> bool(labels[0] == labels[1] != labels[2])
    True
    """
    if sp.issparse(V):
        V = sp.csr_array(V)
        # scikit-learn's k-means takes 32-bit indices only.
        V = sp.csr_array((V.data, V.indices.astype(np.int32), V.indptr.astype(np.int32)), shape=V.shape)
    else:
        V = to_numpy(V) if is_torch(V) else np.asarray(V)
    if V.ndim != 2:
        msg = f"V must have shape (samples, components); got {V.shape}."
        raise ValueError(msg)
    whole = isinstance(n_clusters, Integral) and not isinstance(n_clusters, bool)
    if not (whole and 1 <= n_clusters <= V.shape[0]):
        n = V.shape[0]
        msg = f"n_clusters must be an integer from 1 to {n}, the number of samples; got {n_clusters!r}."
        raise ValueError(msg)
    kmeans = KMeans(n_clusters, n_init=n_init, random_state=random_state)
    with warnings.catch_warnings(), threads_for(V, n_clusters, share=False):
        # Equal codes belong together; that this leaves fewer clusters is no trouble.
        warnings.filterwarnings("ignore", "Number of distinct clusters", ConvergenceWarning)
        labels = kmeans.fit_predict(V)
    return np.unique(labels, return_inverse=True)[1]
