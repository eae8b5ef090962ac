"""Ways out of a local minimum: components are moved to where they reduce the residual.

Each gives a new point that is worse at first. The solver continues from there and still reports the
best point so far.
"""

from __future__ import annotations

import numpy as np

from lognmf.core.arrays import gram
from lognmf.core.data import Data

POWER_STEPS = 3  # steps of the power method on the residual; the sweeps that follow do the rest


def refilled(
    data: Data, U: np.ndarray, V: np.ndarray, squared: np.ndarray, empty: np.ndarray, due: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """U and V with their ``empty`` components (B, k) filled, in the settings that are ``due`` (B,).

    Penalties may empty a component for good that could be used elsewhere. Each one gets a sample with a
    large ``squared`` residual (n, B).
    """
    U, V = U.copy(), V.copy()
    for b in np.flatnonzero(due):
        components = np.flatnonzero(empty[b])
        worse_half = np.argsort(-squared[:, b], kind="stable")[: max(1, len(squared) // 2)]
        spread = worse_half[:: max(1, len(worse_half) // len(components))]
        for j, i in zip(components, spread, strict=False):
            sample = data.dense_rows(slice(i, i + 1))[0]
            missing = np.maximum(sample - U[:, b, :] @ V[i, b, :], 0)
            size = float(np.linalg.norm(missing)) or 1.0
            U[:, b, j], V[:, b, j] = missing / size, 0
            V[i, b, j] = size
    return U, V


def exchanged(
    data: Data, U: np.ndarray, V: np.ndarray, squared: np.ndarray, rank: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """U and V with one component of every setting replaced by the leading part of the residual.

    The component of this ``rank`` (B,) in the order of `needs` goes; 0 is the least needed one. The
    nonnegative power method finds the new one, from the sample with the largest residual.
    """
    u = np.stack(
        [
            data.dense_rows(slice(i, i + 1))[0] - U[:, b, :] @ V[i, b, :]
            for b, i in enumerate(squared.argmax(0))
        ],
        axis=1,
    )[:, :, None]
    for _ in range(POWER_STEPS):
        u = np.maximum(u, 0)
        u = u / np.maximum(np.linalg.norm(u, axis=0), np.finfo(u.dtype).tiny)
        v = np.maximum(data.times(u) - np.einsum("nbk,bkl->nbl", V, gram(U, u)), 0)
        last, u = u, data.t_times(v) - np.einsum("pbk,bkl->pbl", U, gram(V, v))
    U, V = U.copy(), V.copy()
    for b, place in enumerate(rank):
        j = np.argsort(needs(U[:, b, :], V[:, b, :]), kind="stable")[int(place) % U.shape[2]]
        U[:, b, j], V[:, b, j] = last[:, b, 0], v[:, b, 0]
    return U, V


def needs(U: np.ndarray, V: np.ndarray) -> np.ndarray:
    """How much the data term would rise without each component, the others making up for it, (k,).

    If V's other columns are free to follow (also below zero), leaving out component j costs
    ``‖v_j‖² / (UᵀU)⁻¹_jj``; likewise for U's. The larger of the two bounds is taken.
    """
    costs = []
    for F, other in ((U, V), (V, U)):
        G = F.T.astype(np.float64) @ F  # in single precision the inverse of almost parallel parts is noise
        ridge = np.trace(G) * 1e-9 / len(G) + np.finfo(G.dtype).tiny
        inverse = np.linalg.inv(G + ridge * np.eye(len(G)))
        costs.append(np.sum(other**2, axis=0) / np.maximum(np.diag(inverse), np.finfo(G.dtype).tiny))
    return np.maximum(*costs)
