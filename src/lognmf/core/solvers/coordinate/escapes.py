"""Ways out of a local minimum: components are moved to where they reduce the residual.

Each gives a new point that is worse at first. The solver continues from there and still reports the
best point so far.
"""

from __future__ import annotations

import numpy as np

from lognmf.core.arrays import Array, double, gram, mix, namespace, positive, to_numpy, total
from lognmf.core.data import Data

POWER_STEPS = 3  # steps of the power method on the residual; the sweeps that follow do the rest


def refilled(
    data: Data, U: Array, V: Array, squared: Array, empty: np.ndarray, due: np.ndarray
) -> tuple[Array, Array]:
    """U and V with their ``empty`` components (B, k) filled, in the settings that are ``due`` (B,).

    Penalties may empty a component for good that could be used elsewhere. Each one gets a sample with a
    large ``squared`` residual (n, B).
    """
    xp, squared = namespace(U), to_numpy(squared)
    U, V = xp.asarray(U, copy=True), xp.asarray(V, copy=True)
    for b in np.flatnonzero(due).tolist():
        components = np.flatnonzero(empty[b]).tolist()
        worse_half = np.argsort(-squared[:, b], kind="stable")[: max(1, len(squared) // 2)]
        spread = worse_half[:: max(1, len(worse_half) // len(components))].tolist()
        for j, i in zip(components, spread, strict=False):
            sample = data.dense_rows(slice(i, i + 1))[0]
            missing = positive(sample - U[:, b, :] @ V[i, b, :])
            size = float(xp.linalg.vector_norm(missing)) or 1.0
            U[:, b, j], V[:, b, j] = missing / size, 0
            V[i, b, j] = size
    return U, V


def exchanged(data: Data, U: Array, V: Array, squared: Array, rank: np.ndarray) -> tuple[Array, Array]:
    """U and V with one component of every setting replaced by the leading part of the residual.

    The component of this ``rank`` (B,) in the order of `needs` goes; 0 is the least needed one. The
    nonnegative power method finds the new one, from the sample with the largest residual.
    """
    xp = namespace(U)
    tiny = float(xp.finfo(U.dtype).smallest_normal)
    farthest = to_numpy(xp.argmax(squared, axis=0)).tolist()
    residuals = [
        data.dense_rows(slice(i, i + 1))[0, :] - U[:, b, :] @ V[i, b, :] for b, i in enumerate(farthest)
    ]
    u = xp.stack(residuals, axis=1)[:, :, None]
    for _ in range(POWER_STEPS):
        u = positive(u)
        size = xp.linalg.vector_norm(u, axis=0)
        u = u / xp.where(size > tiny, size, xp.full_like(size, tiny))
        v = positive(data.times(u) - mix(V, gram(U, u)))
        last, u = u, data.t_times(v) - mix(U, gram(V, v))
    U, V = xp.asarray(U, copy=True), xp.asarray(V, copy=True)
    for b, place in enumerate(rank):
        j = int(np.argsort(needs(U[:, b, :], V[:, b, :]), kind="stable")[int(place) % U.shape[2]])
        U[:, b, j], V[:, b, j] = last[:, b, 0], v[:, b, 0]
    return U, V


def needs(U: Array, V: Array) -> np.ndarray:
    """How much the data term would rise without each component, the others making up for it, (k,).

    If V's other columns are free to follow (also below zero), leaving out component j costs
    ``‖v_j‖² / (UᵀU)⁻¹_jj``; likewise for U's. The larger of the two bounds is taken.
    """
    costs = []
    for F, other in ((U, V), (V, U)):
        F = double(F)  # in single precision the inverse of almost parallel parts is noise
        G = to_numpy(F.T @ F)
        ridge = np.trace(G) * 1e-9 / len(G) + np.finfo(G.dtype).tiny
        inverse = np.linalg.inv(G + ridge * np.eye(len(G)))
        squares = to_numpy(total(other**2, axis=0))
        costs.append(squares / np.maximum(np.diag(inverse), np.finfo(G.dtype).tiny))
    return np.maximum(*costs)
