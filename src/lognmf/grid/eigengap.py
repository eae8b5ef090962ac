"""Gaps between the eigenvalues of the random walk on a neighbour graph: a hint at the number of clusters."""

from __future__ import annotations

import numpy as np
import scipy.linalg
import scipy.sparse as sp
from scipy.sparse.linalg import ArpackNoConvergence, eigsh

from lognmf.core.starts import ARPACK_SEED

DENSE = 2000
"""Number of samples up to which all eigenvalues are found at once, which never fails."""


def eigengaps(W: sp.csr_array, most: int) -> np.ndarray:
    """``λ_k − λ_{k+1}`` for k = 1, …, ``most``; NaN where the graph ``W`` (n, n) has no such eigenvalues."""
    n = W.shape[0]
    degree = np.asarray(W.sum(axis=1)).reshape(-1)
    scale = 1 / np.sqrt(np.where(degree > 0, degree, 1.0))
    walk = sp.csr_array(W.multiply(scale[:, None]).multiply(scale))
    count = min(most + 1, n)
    if n <= DENSE:
        values = scipy.linalg.eigvalsh(walk.toarray(), subset_by_index=[n - count, n - 1])
    else:
        try:
            values = eigsh(walk, count, which="LA", return_eigenvectors=False, v0=np.ones(n), rng=ARPACK_SEED)
        except ArpackNoConvergence as error:
            values = error.eigenvalues
    gaps = np.full(most, np.nan)
    found = -np.diff(np.sort(values)[::-1])[:most]
    gaps[: len(found)] = found
    return gaps
