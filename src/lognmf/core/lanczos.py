"""Leading eigenvectors of a symmetric operator, the same ones in every run.

ARPACK does the same, but where its Krylov space ends early (constant data, few distinct eigenvalues, a graph
in pieces) it goes on from random numbers that no seed reaches before SciPy 1.17.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import scipy.linalg

WIDTH = 20
"""Smallest dimension of the Krylov space; it is at least twice the number of vectors."""

RESTARTS = 300
"""Maximum number of restarts; tens are usual."""


def leading_eigenvectors(
    apply: Callable[[np.ndarray], np.ndarray],
    first: np.ndarray,
    k: int,
    rng: np.random.RandomState,
    restarts: int = RESTARTS,
) -> np.ndarray:
    """Eigenvectors (n, ≤ k) of the k largest eigenvalues, the largest first; only those that converged.

    ``apply`` multiplies the symmetric operator with a vector. The iterations begin with ``first`` (n,), work
    in its dtype and draw from ``rng`` where they cannot go on. Thick restarts, as Wu and Simon (2000).
    """
    n = len(first)
    rounding = n**0.5 * np.finfo(first.dtype).eps  # of a product, as a share of the largest eigenvalue
    width = min(n, max(2 * k + 1, WIDTH))
    Q = np.zeros((width + 1, n), dtype=first.dtype)  # rows are orthonormal
    H = np.zeros((width, width), dtype=first.dtype)  # Q A Qᵀ
    Q[0] = first / np.linalg.norm(first)
    kept = 0
    for left in reversed(range(restarts)):
        for j in range(kept, width):
            H[: j + 1, j], rest = _orthogonal(apply(Q[j]), Q[: j + 1])
            H[j, : j + 1] = H[: j + 1, j]
            coupling = float(np.linalg.norm(rest))
            if j + 1 == n:
                coupling = 0.0  # all directions are there
            elif coupling <= rounding * np.abs(H).max():
                # A subspace of its own: whatever else there is, is found from a new direction.
                coupling, rest = 0.0, _orthogonal(rng.uniform(-1, 1, n).astype(first.dtype), Q[: j + 1])[1]
                Q[j + 1] = rest / np.linalg.norm(rest)
            else:
                Q[j + 1] = rest / coupling
        values, S = scipy.linalg.eigh(H)
        done = coupling * np.abs(S[-1]) <= rounding * np.abs(values).max()
        if done[-k:].all() or not left:
            break
        kept = k + min(done[-k:].sum(), (width - k) // 2)
        Q[:kept], Q[kept] = S[:, -kept:].T @ Q[:width], Q[width]
        H[:] = 0
        H[range(kept), range(kept)] = values[-kept:]
    best = np.flatnonzero(done)
    best = best[best >= width - k][::-1]
    return Q[:width].T @ S[:, best]


def _orthogonal(v: np.ndarray, Q: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Inner products of ``v`` with the rows of ``Q``, and what is left of it; twice is enough."""
    products = Q @ v
    v = v - products @ Q
    more = Q @ v
    return products + more, v - more @ Q
