"""The work of coordinate descent, in NumPy; `compiled` has the same functions in compiled loops.

Factors have shape (rows, B, k). ``concave`` says which sparsity penalty is meant: the log
penalty, else ℓ1; it stands for a string because compiled code wants numbers. Weights are
arrays (B,). ``kept`` (n, B) are row weights; shape (0, B) stands for ones.
"""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from lognmf.core.solvers.coordinate.coloured_graph import Visit
from lognmf.core.terms.l1 import L1
from lognmf.core.terms.log import Log

LONGEST = 0.8
"""Longest step of `newton_scale`, for which its descent is proved."""


def sweep(
    F: np.ndarray,
    A: np.ndarray,
    G: np.ndarray,
    kept: np.ndarray,
    rows: Visit,
    lam: np.ndarray,
    weight: np.ndarray,
    concave: bool,
    times: int,
) -> np.ndarray:
    """Minimise over one coordinate of each row after another, ``times`` times per row.

    The function is ``Σ_i kept_i (f_iᵀ G f_i − 2 a_i·f_i) + lam Tr(FᵀLF) + weight · penalty(F)``, over
    F ≥ 0. Rows of one colour go together. Every coordinate goes down to a minimum along
    itself, so the function never rises; zeros are exact.
    """
    tiny = np.finfo(F.dtype).tiny
    out = np.array(F, dtype=np.float64)
    for b in range(F.shape[1]):
        penalty, W = float(weight[b]), _graph(rows)
        minimise = (Log if concave else L1)(np.zeros(1)).minimise
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
                        best = minimise(np.where(alive, curvature, 1.0), slope, penalty, codes[:, r])
                    best = np.where(best >= tiny, best, 0.0)
                    codes[:, r] = np.where(alive, best, 0.0 if penalty > 0 else codes[:, r])
            out[at, b, :] = codes
    return out.astype(F.dtype)


def sphere_sweep(
    U: np.ndarray, A: np.ndarray, G: np.ndarray, weight: np.ndarray, concave: bool, times: int
) -> np.ndarray:
    """Minimise over one column after another, each of unit norm and nonnegative.

    On the sphere the data term of a column is linear, ``−2 pull·u``, and a concave penalty lies
    below its tangent. What bounds the sum is linear, and its minimum over the nonnegative part
    of the sphere is the normalised positive part of ``pull − weight/2 · φ'(u)``, or, where
    nothing is positive, the axis of the largest entry. So the function never rises.
    """
    tiny = np.finfo(U.dtype).tiny
    out = np.array(U, dtype=np.float64)
    for b in range(U.shape[1]):
        columns = out[:, b, :]
        for _ in range(times):
            for r in range(U.shape[2]):
                if G[b, r, r] <= tiny:  # the codes are zero: the data say nothing about the column
                    continue
                others = np.where(np.arange(U.shape[2]) == r, 0.0, G[b, :, r])
                slope = 1 / (1 + columns[:, r]) if concave else 1.0
                pull = A[:, b, r] - columns @ others - float(weight[b]) / 2 * slope
                highest = int(np.argmax(pull))
                if pull[highest] > tiny:
                    unit = np.maximum(pull, 0) / pull[highest]
                    unit /= np.sqrt(np.sum(unit**2))
                    columns[:, r] = np.where(unit >= tiny, unit, 0.0)
                else:
                    columns[:, r] = np.arange(len(pull)) == highest
    return out.astype(U.dtype)


def newton_scale(
    U: np.ndarray,
    V: np.ndarray,
    roughness: np.ndarray,
    alpha: np.ndarray,
    beta: np.ndarray,
    lam: np.ndarray,
    concave: bool,
    times: int,
) -> np.ndarray:
    """Factors (B, k) by which to multiply U's columns, and divide V's, by Newton steps.

    With the factor written as e^s, the objective depends on s by
    ``h(s) = alpha Σ φ(e^s u) + beta Σ φ(e^−s v) + lam q e^−2s``, q the ``roughness``. Each term is convex
    in s and has ``|h'''| ≤ 2 h''``, hence a Newton step δ gives
    ``h(s + δ) − h(s) ≤ h''·((e^2|δ| − 1 − 2|δ|)/4 − δ²)``, which is negative for 0 < |δ| ≤ 0.8; and a
    shorter step in the same direction falls too, since h is convex. No line search is needed.
    """
    factors = np.ones(roughness.shape)
    for b in range(len(factors)):
        for _ in range(times):
            up, down = U[:, b, :] * factors[b], V[:, b, :] / factors[b]
            curved = (1 / (1 + up), 1 / (1 + down)) if concave else (1.0, 1.0)
            on_U, on_V = alpha[b] * up * curved[0], beta[b] * down * curved[1]
            smooth = 2 * lam[b] * roughness[b] / factors[b] ** 2
            slope = on_U.sum(axis=0) - on_V.sum(axis=0) - smooth
            curvature = (on_U * curved[0]).sum(axis=0) + (on_V * curved[1]).sum(axis=0) + 2 * smooth
            step = np.where(curvature > 0, -slope / np.where(curvature > 0, curvature, 1.0), 0.0)
            step = np.clip(step, -LONGEST, LONGEST)
            factors[b] *= np.exp(step)
            if np.abs(step).max() < 1e-3:
                break
    return factors


def roughness(V: np.ndarray, rows: Visit) -> np.ndarray:
    """``v_jᵀ L v_j`` of every column, (B, k), as a sum over edges: nothing cancels."""
    i = np.repeat(np.arange(len(rows.degree)), np.diff(rows.indptr))
    once = i < rows.indices
    difference = V[i[once]].astype(np.float64) - V[rows.indices[once]]
    return np.einsum("e,ebk,ebk->bk", rows.weights[once], difference, difference)


def penalty_sum(F: np.ndarray, concave: bool) -> np.ndarray:
    """``Σ log(1 + F)`` or ``Σ F`` of every setting, (B,), in float64."""
    return (np.log1p(F) if concave else F).sum(axis=(0, 2), dtype=np.float64)


def beyond(F: np.ndarray, last: np.ndarray, momentum: np.ndarray) -> np.ndarray:
    """``F + momentum · (F − last)`` with ``momentum`` (B,), not below zero; F itself where all are 0."""
    if not momentum.any():
        return F
    out = F + momentum.astype(F.dtype)[:, None] * (F - last)
    return np.where(out >= np.finfo(F.dtype).tiny, out, 0)


def scaled(F: np.ndarray, factors: np.ndarray) -> np.ndarray:
    """Columns of F times ``factors`` (B, k) or (B, 1), without subnormal numbers."""
    out = F * factors.astype(F.dtype)
    return np.where(out >= np.finfo(F.dtype).tiny, out, 0)


def greedy_colours(order: np.ndarray, indptr: np.ndarray, indices: np.ndarray) -> np.ndarray:
    """Each row (n,), in this ``order``, the first colour that none of its neighbours has."""
    colour = np.full(len(order), -1, dtype=np.int64)
    for i in order:
        taken = set(colour[indices[indptr[i] : indptr[i + 1]]].tolist())
        colour[i] = next(c for c in range(len(order)) if c not in taken)
    return colour


def _graph(rows: Visit) -> sp.csr_array:
    n = len(rows.degree)
    return sp.csr_array((rows.weights, rows.indices, rows.indptr), shape=(n, n))
