"""Ways out of a local minimum: components are moved to where they reduce the residual.

Each gives a new point that is worse at first. The solver continues from there and still reports the
best point so far.
"""

from __future__ import annotations

import numpy as np

from lognmf.core.arrays import Array, double, gram, gram_of_rows, mix, namespace, positive, to_numpy, total
from lognmf.core.data import Data
from lognmf.core.rows import Rows, at, each, here, reduced

POWER_STEPS = 3  # steps of the power method on the residual; the sweeps that follow do the rest


def refilled(
    data: Data, U: Array, V: Rows, squared: Rows, empty: np.ndarray, due: np.ndarray
) -> tuple[Array, Rows]:
    """U and V with their ``empty`` components (B, k) filled, in the settings that are ``due`` (B,).

    Penalties may empty a component for good that could be used elsewhere. Each one gets a sample with a
    large ``squared`` residual (n, B).
    """
    xp, squared = namespace(U), to_numpy(squared)
    U = xp.asarray(U, copy=True)
    entries: list[tuple[int, int, int, float]] = []
    for b in np.flatnonzero(due).tolist():
        components = np.flatnonzero(empty[b]).tolist()
        worse_half = np.argsort(-squared[:, b], kind="stable")[: max(1, len(squared) // 2)]
        spread = worse_half[:: max(1, len(worse_half) // len(components))].tolist()
        filled: list[int] = []
        for j, i in zip(components, spread, strict=False):
            codes = xp.asarray(at(V, np.array([i]))[0, b, :], copy=True)
            codes[filled] = 0  # those of other samples
            missing = positive(_sample(data, i) - U[:, b, :] @ codes)
            size = float(xp.linalg.vector_norm(missing)) or 1.0
            U[:, b, j] = missing / size
            entries.append((i, b, j, size))
            filled.append(j)
    return U, each(_with_entries, V, np.arange(data.shape[0]), shared=(entries,))


def _sample(data: Data, i: int) -> Array:
    """One sample, dense."""
    return data.take_rows(np.array([i])).dense_rows(slice(None))[0, :]


def _with_entries(V: Array, number: np.ndarray, entries: list[tuple[int, int, int, float]]) -> Array:
    """A copy of V, rows ``number`` of all, whose columns have one entry each: at sample i, ``size``."""
    V = namespace(V).asarray(V, copy=True)
    for i, b, j, size in entries:
        V[:, b, j] = 0
        if number[0] <= i <= number[-1]:
            V[i - int(number[0]), b, j] = size
    return V


def exchanged(data: Data, U: Array, V: Rows, squared: Rows, rank: np.ndarray) -> tuple[Array, Rows]:
    """U and V with one component of every setting replaced by the leading part of the residual.

    The component of this ``rank`` (B,) in the order of `needs` goes; 0 is the least needed one. The
    nonnegative power method finds the new one, from the sample with the largest residual.
    """
    xp = namespace(U)
    tiny = float(xp.finfo(U.dtype).smallest_normal)
    squared = here(squared)
    farthest = to_numpy(namespace(squared).argmax(squared, axis=0)).tolist()
    residuals = [
        _sample(data, i) - U[:, b, :] @ at(V, np.array([i]))[0, b, :] for b, i in enumerate(farthest)
    ]
    u = xp.stack(residuals, axis=1)[:, :, None]
    for _ in range(POWER_STEPS):
        u = positive(u)
        size = xp.linalg.vector_norm(u, axis=0)
        u = u / xp.where(size > tiny, size, xp.full_like(size, tiny))
        v = each(_pull, data.times(u), V, shared=(gram(U, u),))
        last, u = u, data.t_times(v) - mix(U, gram_of_rows(V, v))
    U = xp.asarray(U, copy=True)
    order = np.argsort(needs(U, V), axis=1, kind="stable")
    leaving = [int(order[b, int(place) % U.shape[2]]) for b, place in enumerate(rank)]
    for b, j in enumerate(leaving):
        U[:, b, j] = last[:, b, 0]
    return U, each(_with_columns, V, v, shared=(leaving,))


def _pull(Xu: Array, V: Array, Uu: Array) -> Array:
    """What the residual adds to codes for a new part u."""
    return positive(Xu - mix(V, Uu))


def _with_columns(V: Array, v: Array, columns: list[int]) -> Array:
    """A copy of V (n, B, k) with one column of every setting replaced by that of v (n, B, 1)."""
    V = namespace(V).asarray(V, copy=True)
    for b, j in enumerate(columns):
        V[:, b, j] = v[:, b, 0]
    return V


def needs(U: Array, V: Rows) -> np.ndarray:
    """How much the data term would rise without each component, the others making up for it, (B, k).

    If V's other columns are free to follow (also below zero), leaving out component j costs
    ``‖v_j‖² / (UᵀU)⁻¹_jj``; likewise for U's. The larger of the two bounds is taken.
    """
    (grams_U, squares_U), (grams_V, squares_V) = (reduced(_sizes, F) for F in (U, V))
    bounds = []
    for G, squares in ((to_numpy(grams_U), squares_V), (to_numpy(grams_V), squares_U)):
        ridge = np.trace(G, axis1=1, axis2=2)[:, None, None] * 1e-9 / G.shape[1] + np.finfo(G.dtype).tiny
        inverse = np.linalg.inv(G + ridge * np.eye(G.shape[1]))
        diagonal = np.diagonal(inverse, axis1=1, axis2=2)
        bounds.append(to_numpy(squares) / np.maximum(diagonal, np.finfo(G.dtype).tiny))
    return np.maximum(*bounds)


def _sizes(F: Array) -> tuple[Array, Array]:
    """Gram matrices (B, k, k) and squared norms (B, k) of the columns."""
    F = double(F)  # in single precision the inverse of almost parallel parts is noise
    return gram(F, F), total(F**2, axis=0)
