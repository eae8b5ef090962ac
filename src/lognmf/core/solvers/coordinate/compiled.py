"""The work of coordinate descent in compiled loops; `sweeps`, its twin in NumPy, says what each does and why.

Rows are taken `LANES` at a time and turned, so that the innermost loop runs over rows: the
coordinates of one row depend on each other, those of different rows do not.
"""

# ruff: noqa: D103 (documented in the twin)
# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations

from collections.abc import Callable
from math import log, log1p, sqrt
from typing import Any

import numba
import numpy as np

from lognmf.core.arrays import SHARED_PRODUCTS, shared_out
from lognmf.core.solvers.coordinate.coloured_graph import Visit

LANES = 32

SHARED_WORK = 1 << 22
"""Products of numbers in a sweep from which it is shared out among threads."""


def _compiled(function: Callable[..., Any]) -> Callable[..., Any]:
    """``function`` compiled at its first call, and kept on disk where there is a place for it."""
    options: dict[str, Any] = {
        "nogil": True,
        "fastmath": {"contract", "reassoc", "nsz"},
        "error_model": "numpy",
    }
    try:
        return numba.njit(cache=True, **options)(function)
    except RuntimeError:  # no folder that could be written
        return numba.njit(**options)(function)


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
    out, A = np.array(F, order="C"), np.ascontiguousarray(A)
    order, bounds, *graph = rows
    tiny = np.finfo(F.dtype).tiny

    def part(order: np.ndarray, bounds: np.ndarray, settings: slice) -> None:
        _sweep(
            *(out, A, G, kept, order, bounds, *graph, lam, weight, concave, times, tiny),
            *(settings.start, settings.stop),
        )

    n, B, k = F.shape
    # Where BLAS has threads of its own, ours would be in its way.
    if not SHARED_PRODUCTS.get() or n * B * k * k * times < SHARED_WORK:
        part(order, bounds, slice(0, B))
    elif B > 1:  # settings have nothing to do with one another
        shared_out(lambda own: part(order, bounds, own), B)
    else:  # nor have rows of one colour
        for of_colour in np.split(order, bounds[1:-1]):

            def some(own: slice, of_colour: np.ndarray = of_colour) -> None:
                part(of_colour[own], np.array([0, own.stop - own.start]), slice(0, 1))

            shared_out(some, len(of_colour))
    return out


@_compiled
def _sweep(
    F, A, G, kept, order, bounds, indptr, indices, edges, degree, lam, weight, concave, times, tiny, low, high
):
    k = F.shape[2]
    robust = kept.shape[0] > 0
    wide = (k + 3) // 4 * 4  # four terms of a sum at a time; those beyond k are zeros
    v, a = np.zeros((wide, LANES)), np.empty((k, LANES))
    share, pull, around = np.ones(LANES), np.zeros(LANES), np.zeros(LANES)
    row = np.zeros(LANES, dtype=np.int64)
    others, target = np.zeros((k, wide)), np.empty(k)
    for b in range(low, high):
        for r in range(k):
            for q in range(k):
                others[r, q] = 0.0 if q == r else G[b, r, q]
        penalty = float(weight[b])
        graph = float(lam[b])
        for c in range(bounds.shape[0] - 1):
            for first in range(bounds[c], bounds[c + 1], LANES):
                count = min(LANES, bounds[c + 1] - first)
                for t in range(LANES):
                    i = order[first + min(t, count - 1)]  # a short block repeats its last row
                    row[t] = i
                    if robust:
                        share[t] = kept[i, b]
                    pull[t] = graph * degree[i]
                    for r in range(k):
                        target[r] = share[t] * A[i, b, r]
                    if graph > 0:
                        for e in range(indptr[i], indptr[i + 1]):
                            strength = graph * edges[e]
                            # A row of its own, with an index that cannot count from the end: half the time.
                            neighbour = F[np.uint64(indices[e]), np.uint64(b)]
                            for r in range(k):
                                target[r] += strength * neighbour[r]
                    for r in range(k):
                        v[r, t] = F[i, b, r]
                        a[r, t] = target[r]
                for _ in range(times):
                    for r in range(k):
                        for t in range(LANES):
                            around[t] = 0.0
                        for q in range(0, wide, 4):
                            g0, g1, g2, g3 = (
                                others[r, q],
                                others[r, q + 1],
                                others[r, q + 2],
                                others[r, q + 3],
                            )
                            for t in range(LANES):
                                around[t] += (g0 * v[q, t] + g1 * v[q + 1, t]) + (
                                    g2 * v[q + 2, t] + g3 * v[q + 3, t]
                                )
                        own = G[b, r, r]
                        for t in range(LANES):
                            curvature = share[t] * own + pull[t]
                            slope = a[r, t] - share[t] * around[t]
                            alive = curvature > tiny
                            inverse = 1.0 / (curvature if alive else 1.0)
                            at = v[r, t]
                            if concave:
                                middle = slope * inverse
                                inside = (middle + 1.0) * (middle + 1.0) - 2.0 * penalty * inverse
                                root = sqrt(max(inside, 0.0))
                                root = root if inside < 1e300 else middle + 1.0
                                best = 0.5 * (middle - 1.0 + root)
                                lower = 0.5 * (middle - 1.0 - root)
                                reached = (inside > 0.0) & (middle > -1.0) & (at >= lower)
                                best = best if reached else 0.0
                            else:
                                best = (slope - 0.5 * penalty) * inverse
                            best = best if best >= tiny else 0.0
                            v[r, t] = best if alive else (0.0 if penalty > 0 else at)
                for t in range(count):
                    i = row[t]
                    for r in range(k):
                        F[i, b, r] = v[r, t]


def sphere_sweep(
    U: np.ndarray, A: np.ndarray, G: np.ndarray, weight: np.ndarray, concave: bool, times: int
) -> np.ndarray:
    out = np.array(U, order="C")
    _sphere_sweep(out, np.ascontiguousarray(A), G, weight, concave, times, np.finfo(U.dtype).tiny)
    return out


@_compiled
def _sphere_sweep(U, A, G, weight, concave, times, tiny):
    p, B, k = U.shape
    columns, pull = np.empty((k, p)), np.empty(p)
    for b in range(B):
        for i in range(p):
            for r in range(k):
                columns[r, i] = U[i, b, r]
        half = 0.5 * float(weight[b])
        for _ in range(times):
            for r in range(k):
                if G[b, r, r] <= tiny:
                    continue
                for i in range(p):
                    pull[i] = A[i, b, r]
                for q in range(k):
                    if q != r:
                        share = float(G[b, q, r])
                        for i in range(p):
                            pull[i] -= share * columns[q, i]
                for i in range(p):
                    pull[i] -= half / (1.0 + columns[r, i]) if concave else half
                highest = 0
                for i in range(p):
                    if pull[i] > pull[highest]:
                        highest = i
                if pull[highest] > tiny:
                    top, squares = pull[highest], 0.0
                    for i in range(p):
                        x = max(pull[i], 0.0) / top
                        squares += x * x
                    scale = 1.0 / (top * sqrt(squares))
                    for i in range(p):
                        x = max(pull[i], 0.0) * scale
                        columns[r, i] = x if x >= tiny else 0.0
                else:
                    for i in range(p):
                        columns[r, i] = 1.0 if i == highest else 0.0
        for i in range(p):
            for r in range(k):
                U[i, b, r] = columns[r, i]


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
    factors = np.ones(roughness.shape)
    _newton_scale(factors, U, V, roughness, alpha, beta, lam, concave, times)
    return factors


@_compiled
def _newton_scale(factors, U, V, roughness, alpha, beta, lam, concave, times):
    B, k = factors.shape
    first, second, scale, total, bend = np.empty(k), np.empty(k), np.empty(k), np.empty(k), np.empty(k)
    for b in range(B):
        on_U, on_V, graph = float(alpha[b]), float(beta[b]), float(lam[b])
        for _ in range(times):
            for r in range(k):
                first[r] = second[r] = 0.0
            for side in range(2):
                F = U if side == 0 else V
                cost, sign = (on_U, 1.0) if side == 0 else (on_V, -1.0)
                if cost == 0.0:
                    continue
                for r in range(k):
                    scale[r] = factors[b, r] if side == 0 else 1.0 / factors[b, r]
                    total[r] = bend[r] = 0.0
                for i in range(F.shape[0]):
                    for r in range(k):
                        x = F[i, b, r] * scale[r]
                        y = 1.0 / (1.0 + x) if concave else 1.0
                        total[r] += x * y
                        bend[r] += x * y * y
                for r in range(k):
                    first[r] += sign * cost * total[r]
                    second[r] += cost * bend[r]
            longest = 0.0
            for r in range(k):
                smooth = 2.0 * graph * roughness[b, r] / (factors[b, r] * factors[b, r])
                slope, curvature = first[r] - smooth, second[r] + 2.0 * smooth
                step = -slope / curvature if curvature > 0 else 0.0
                step = min(max(step, -0.8), 0.8)
                factors[b, r] *= np.exp(step)
                longest = max(longest, abs(step))
            if longest < 1e-3:
                break


def roughness(V: np.ndarray, rows: Visit) -> np.ndarray:
    out = np.zeros(V.shape[1:])
    _roughness(out, V, rows.indptr, rows.indices, rows.weights)
    return out


@_compiled
def _roughness(out, V, indptr, indices, edges):
    n, B, k = V.shape
    for i in range(n):
        for e in range(indptr[i], indptr[i + 1]):
            j = indices[e]
            if j > i:
                for b in range(B):
                    for r in range(k):
                        difference = float(V[i, b, r]) - float(V[j, b, r])
                        out[b, r] += edges[e] * difference * difference


def penalty_sum(F: np.ndarray, concave: bool) -> np.ndarray:
    if not concave:
        return F.sum(axis=(0, 2), dtype=np.float64)
    out = np.zeros(F.shape[1])
    _log_sum(out, F, float(F.max(initial=0.0)))
    return out


@_compiled
def _log_sum(out, F, largest):
    n, B, k = F.shape
    together = 8 if largest < 1e30 else 1  # so many factors cannot overflow: one logarithm serves them
    product = np.empty(k)
    for b in range(B):
        for first in range(0, n, together):
            for r in range(k):
                product[r] = 1.0
            if together == 1:
                for r in range(k):
                    out[b] += log1p(float(F[first, b, r]))
                continue
            for i in range(first, min(first + together, n)):
                for r in range(k):
                    product[r] *= 1.0 + F[i, b, r]
            for r in range(k):
                out[b] += log(product[r])


def beyond(F: np.ndarray, last: np.ndarray, momentum: np.ndarray) -> np.ndarray:
    if not momentum.any():
        return F
    out = np.empty(F.shape, dtype=F.dtype)
    _beyond(out, F, last, momentum, np.finfo(F.dtype).tiny)
    return out


@_compiled
def _beyond(out, F, last, momentum, tiny):
    n, B, k = F.shape
    for i in range(n):
        for b in range(B):
            for r in range(k):
                x = F[i, b, r] + momentum[b] * (F[i, b, r] - last[i, b, r])
                out[i, b, r] = x if x >= tiny else 0.0


def scaled(F: np.ndarray, factors: np.ndarray) -> np.ndarray:
    out = np.empty(F.shape, dtype=F.dtype)
    if factors.shape != F.shape[1:]:
        factors = np.repeat(factors, F.shape[2], axis=1)
    _scaled(out, F, factors, np.finfo(F.dtype).tiny)
    return out


@_compiled
def _scaled(out, F, factors, tiny):
    n, B, k = F.shape
    for i in range(n):
        for b in range(B):
            for r in range(k):
                x = F[i, b, r] * factors[b, r]
                out[i, b, r] = x if x >= tiny else 0.0


def greedy_colours(order: np.ndarray, indptr: np.ndarray, indices: np.ndarray) -> np.ndarray:
    colour = np.full(len(order), -1, dtype=np.int64)
    _greedy_colours(colour, order, indptr, indices)
    return colour


@_compiled
def _greedy_colours(colour, order, indptr, indices):
    taken_by = np.full(colour.shape[0] + 1, -1, dtype=np.int64)  # the last row next to each colour
    for i in order:
        for e in range(indptr[i], indptr[i + 1]):
            taken_by[colour[indices[e]]] = i  # place −1, the last, is for rows without a colour
        first = 0
        while taken_by[first] == i:
            first += 1
        colour[i] = first
