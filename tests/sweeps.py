"""Coordinate descent's compiled loops once more, in NumPy: the oracle of `coordinate.compiled`.

``penalty`` is a term of `PENALTIES`; its array formulas serve where the compiled loops use the scalar ones.
"""

from dataclasses import replace
from functools import partial
from types import SimpleNamespace

import numpy as np
import scipy.sparse as sp


def loops(penalty):
    """The loops for ``penalty``, as `compiled.loops` gives them."""
    loops = (sweep, sphere_sweep, penalty_sum, scale_derivatives)
    return SimpleNamespace(**{loop.__name__: partial(loop, penalty) for loop in loops})


def sweep(penalty, F, A, G, kept, rows, lam, weight, times, *, in_place=False):
    """Minimise over one coordinate of each row after another, ``times`` times per row."""
    tiny = np.finfo(F.dtype).tiny
    out = np.array(F, dtype=np.float64)
    for b in range(F.shape[1]):
        cost, W = float(weight[b]), _graph(rows)
        for c in range(len(rows.bounds) - 1):
            at = rows.order[rows.bounds[c] : rows.bounds[c + 1]]
            share = np.ones(len(at)) if not len(kept) else kept[at, b].astype(np.float64)
            target = share[:, None] * A[at, b, :] + lam[b] * (W[at] @ out[:, b, :])
            pull, codes = lam[b] * rows.degree[at], out[at, b, :]
            for _ in range(times):
                for r in range(F.shape[2]):
                    own = float(G[b, r, r])
                    curvature = share * own + pull
                    around = codes @ np.where(np.arange(F.shape[2]) == r, 0.0, G[b, r])
                    slope = target[:, r] - share * around
                    alive = curvature > tiny
                    with np.errstate(over="ignore", invalid="ignore"):
                        best = penalty.minimise(np.where(alive, curvature, 1.0), slope, cost, codes[:, r])
                    best = np.where(best >= tiny, best, 0.0)
                    codes[:, r] = np.where(alive, best, 0.0 if cost > 0 else codes[:, r])
            out[at, b, :] = codes
    return out.astype(F.dtype)


def sphere_sweep(penalty, U, A, G, weight, times):
    """Minimise over one column after another, each of unit norm and nonnegative."""
    tiny = np.finfo(U.dtype).tiny
    out = np.array(U, dtype=np.float64)
    for b in range(U.shape[1]):
        columns = out[:, b, :]
        for _ in range(times):
            for r in range(U.shape[2]):
                if G[b, r, r] <= tiny:  # the codes are zero: the data say nothing about the column
                    continue
                others = np.where(np.arange(U.shape[2]) == r, 0.0, G[b, :, r])
                slope = _slope(penalty, columns[:, [r]])[:, 0]
                pull = A[:, b, r] - columns @ others - float(weight[b]) / 2 * slope
                highest = int(np.argmax(pull))
                if pull[highest] > tiny:
                    unit = np.maximum(pull, 0) / pull[highest]
                    unit /= np.sqrt(np.sum(unit**2))
                    columns[:, r] = np.where(unit >= tiny, unit, 0.0)
                else:
                    columns[:, r] = np.arange(len(pull)) == highest
    return out.astype(U.dtype)


def scale_derivatives(penalty, F, scale):
    """First and second derivative of ``Σ φ(e^s f_j)`` in s for every column, (B, k)."""
    x = np.asarray(F, dtype=np.float64) * scale
    return (x * _slope(penalty, x)).sum(axis=0), np.vectorize(penalty.bend)(x).sum(axis=0)


def roughness(V, indptr, indices, edges):
    """``v_jᵀ L v_j`` of every column, (B, k), as a sum over edges: nothing cancels."""
    i = np.repeat(np.arange(len(V)), np.diff(indptr))
    once = i < indices
    difference = V[i[once]].astype(np.float64) - V[indices[once]]
    return np.einsum("e,ebk,ebk->bk", edges[once], difference, difference)


def penalty_sum(penalty, F):
    """``Σ φ(F)`` of every setting, (B,), in float64."""
    return replace(penalty, weight=np.ones(1)).value(F)


def extrapolated(F, last, momentum):
    """``F + momentum · (F − last)`` with ``momentum`` (B,), not below zero, without subnormal numbers."""
    out = F + momentum.astype(F.dtype)[:, None] * (F - last)
    return np.where(out >= np.finfo(F.dtype).tiny, out, 0)


def scaled(F, factors):
    """Columns of F times ``factors`` (B, k), without subnormal numbers."""
    out = F * factors.astype(F.dtype)
    return np.where(out >= np.finfo(F.dtype).tiny, out, 0)


def greedy_colours(order, indptr, indices):
    """Each row (n,), in this ``order``, the first colour that none of its neighbours has."""
    colour = np.full(len(order), -1, dtype=np.int64)
    for i in order:
        taken = set(colour[indices[indptr[i] : indptr[i + 1]]].tolist())
        colour[i] = next(c for c in range(len(order)) if c not in taken)
    return colour


def _slope(penalty, x):
    """φ'(x) from the half gradient, for x of two or three axes."""
    unit = replace(penalty, weight=np.ones(1))
    neg, pos = unit.halves(np.reshape(x, (len(x), 1, -1)))(slice(None))
    return np.reshape(2 * (pos if neg is None else pos - neg), x.shape)


def _graph(rows):
    n = len(rows.degree)
    return sp.csr_array((rows.weights, rows.indices, rows.indptr), shape=(n, n))
