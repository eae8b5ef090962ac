"""The loops of coordinate descent, compiled by numba. The tests hold a twin of each in NumPy (`sweeps`).

Loops that depend on a penalty are closures over its scalar functions, one set per penalty. Factors
have shape (rows, B, k) and weights (B,).
"""

# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations

import functools
from math import sqrt

import numpy as np

from lognmf.core.compiling import compiled_fast, inlined
from lognmf.core.solvers.coordinate.coloured_graph import ColouredGraph
from lognmf.core.solvers.coordinate.costs import Loops
from lognmf.core.terms.protocol import SeparablePenalty
from lognmf.core.threads import ELEMENTWISE, is_split, split

LANES = 32  # rows that a sweep takes together; they are independent, so the innermost loop runs over them
JOINED = 8  # entries that `penalty_sum` joins to one, if the penalty can: one logarithm for all of them
JOINED_BELOW = 1e30  # entries up to which so many can be joined without overflow


def loops(penalty: SeparablePenalty) -> Loops:
    """The loops for ``penalty``."""
    optional = (getattr(penalty, name, None) for name in ("bend", "joined"))
    return _loops_of(penalty.cost, penalty.slope, penalty.minimum, *optional)


@functools.cache
def _loops_of(cost, slope, minimum, bend, joined) -> Loops:
    """The loops for a penalty with these scalar functions, the last two of which may be None."""
    version = inlined(cost, slope, minimum, *(f for f in (bend, joined) if f is not None))
    return Loops(
        functools.partial(_sweep, _sweep_kernel(minimum, version)),
        _sphere_kernel(slope, version),
        functools.partial(_penalty_sum, _sum_kernel(cost, joined or max, version), joined is not None),
        _scale_kernel(slope, bend or slope, bend is not None, version),
    )


def _sweep(kernel, F, A, G, kept, rows, lam, weight, times, *, in_place=False):
    """Minimise over one coordinate of each row after another, ``times`` times per row.

    The function is ``Σ_i kept_i (f_iᵀ G f_i − 2 a_i·f_i) + lam Tr(FᵀLF) + weight · Σ φ(F)``, over
    F ≥ 0; ``kept`` (n, B) are row weights, and shape (0, B) stands for ones. Rows of one colour go
    together. Every coordinate goes down to a minimum along itself, so the function never rises;
    zeros are exact. F, if contiguous, may be changed ``in_place``: for many samples that is much memory.
    """
    out = F if in_place else np.array(F, order="C")
    order, bounds, *graph = rows

    def sweep(order, bounds, settings):
        kernel(out, A, G, kept, order, bounds, *graph, lam, weight, times, settings.start, settings.stop)

    n, B, k = F.shape
    a_row = 2.0 * k * k * times
    if B > 1 or not is_split(n * a_row):  # settings are independent
        split(lambda settings: sweep(order, bounds, settings), B, B * n * a_row)
    else:  # so are rows of one colour
        for of_colour in np.split(order, bounds[1:-1]):

            def some(part, of_colour=of_colour):
                sweep(of_colour[part], np.array([0, part.stop - part.start]), slice(0, 1))

            split(some, len(of_colour), len(of_colour) * a_row, least=LANES)
    return out


@compiled_fast
def _gather(F, A, kept, b, graph, indptr, indices, edges, degree, rows, v, a, share, pull, target):
    """Copy rows into lanes: entries v, row weights, linear terms a; ``pull`` is the graph's curvature."""
    k = F.shape[2]
    robust = kept.shape[0] > 0
    for t in range(LANES):
        i = rows[min(t, rows.shape[0] - 1)]  # a short block repeats its last row
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


def _sweep_kernel(minimum, version):
    @compiled_fast
    def sweep(F, A, G, kept, order, bounds, indptr, indices, edges, degree, lam, weight, times, low, high):
        _ = version
        tiny, k = np.finfo(F.dtype).tiny, F.shape[2]
        wide = (k + 3) // 4 * 4  # four terms of a sum at a time; those after the k-th are zeros
        v, a = np.zeros((wide, LANES)), np.empty((k, LANES))
        share, pull, around = np.ones(LANES), np.zeros(LANES), np.zeros(LANES)
        others, target = np.zeros((k, wide)), np.empty(k)
        for b in range(low, high):
            others[:, :k] = G[b]
            for r in range(k):
                others[r, r] = 0.0
            penalty, graph = float(weight[b]), (float(lam[b]), indptr, indices, edges, degree)
            for c in range(bounds.shape[0] - 1):
                for first in range(bounds[c], bounds[c + 1], LANES):
                    rows = order[first : min(first + LANES, bounds[c + 1])]
                    _gather(F, A, kept, b, *graph, rows, v, a, share, pull, target)
                    for _ in range(times):
                        for r in range(k):
                            for t in range(LANES):
                                around[t] = 0.0
                            for q in range(0, wide, 4):
                                g0, g1 = others[r, q], others[r, q + 1]
                                g2, g3 = others[r, q + 2], others[r, q + 3]
                                for t in range(LANES):
                                    two = g0 * v[q, t] + g1 * v[q + 1, t]
                                    around[t] += two + (g2 * v[q + 2, t] + g3 * v[q + 3, t])
                            own = G[b, r, r]
                            for t in range(LANES):
                                curvature = share[t] * own + pull[t]
                                slope = a[r, t] - share[t] * around[t]
                                alive = curvature > tiny
                                at = v[r, t]
                                best = minimum(curvature if alive else 1.0, slope, penalty, at)
                                best = best if best >= tiny else 0.0
                                v[r, t] = best if alive else (0.0 if penalty > 0 else at)
                    for t in range(rows.shape[0]):
                        for r in range(k):
                            F[rows[t], b, r] = v[r, t]

    return sweep


def _sphere_kernel(slope, version):
    @compiled_fast
    def sphere_sweep(U, A, G, weight, times):
        """Minimise over one column after another, each of unit norm and nonnegative.

        On the sphere the data term of a column is linear, ``−2 pull·u``, and a concave penalty lies
        below its tangent. So a linear function bounds the sum, and its minimum over the nonnegative
        part of the sphere is the normalised positive part of ``pull − weight/2 · φ'(u)``, or, where
        nothing is positive, the axis of the largest entry. The function never rises.
        """
        _ = version
        tiny, (p, B, k) = np.finfo(U.dtype).tiny, U.shape
        out, columns, pull = np.empty((p, B, k), U.dtype), np.empty((k, p)), np.empty(p)
        for b in range(B):
            columns[:] = U[:, b, :].T
            half = 0.5 * float(weight[b])
            for _ in range(times):
                for r in range(k):
                    if G[b, r, r] <= tiny:  # the codes are zero: the data say nothing about the column
                        continue
                    for i in range(p):
                        pull[i] = A[i, b, r]
                    for q in range(k):
                        if q != r:
                            share = float(G[b, q, r])
                            for i in range(p):
                                pull[i] -= share * columns[q, i]
                    for i in range(p):
                        pull[i] -= half * slope(columns[r, i])
                    highest = np.argmax(pull)
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
                        columns[r] = 0.0
                        columns[r, highest] = 1.0
            out[:, b, :] = columns.T
        return out

    return sphere_sweep


def _penalty_sum(kernel, can_join, F):
    """``Σ φ(F)`` of every setting, (B,), in float64."""
    return kernel(F, JOINED if can_join and F.max() < JOINED_BELOW else 1)


def _sum_kernel(cost, joined, version):
    @compiled_fast
    def penalty_sum(F, together):
        _ = version
        n, B, k = F.shape
        out, entry = np.zeros(B), np.empty(k)
        for b in range(B):
            for first in range(0, n, together):
                for r in range(k):
                    entry[r] = F[first, b, r]
                for i in range(first + 1, min(first + together, n)):
                    for r in range(k):
                        entry[r] = joined(entry[r], float(F[i, b, r]))
                for r in range(k):
                    out[b] += cost(entry[r])
        return out

    return penalty_sum


def _scale_kernel(slope, bend, has_bend, version):
    @compiled_fast
    def scale_derivatives(F, scale):
        """First and second derivative in s of ``Σ φ(eˢ f_j)`` for every column, at ``eˢ = scale`` (B, k).

        Without a `bend` the second one is that of a bound: a concave φ lies below its tangent.
        """
        _ = version
        n, B, k = F.shape
        first, second = np.zeros((B, k)), np.zeros((B, k))
        for b in range(B):
            own_first, own_second, own_scale = first[b], second[b], scale[b]
            for i in range(n):
                for r in range(k):
                    x = F[i, b, r] * own_scale[r]
                    own_first[r] += x * slope(x)
                    own_second[r] += bend(x)
        return first, second if has_bend else first

    return scale_derivatives


def placed(rows: ColouredGraph, pattern: np.ndarray) -> ColouredGraph:
    """The rows where the loops need them: as they are."""
    return rows


@compiled_fast
def roughness(V, indptr, indices, edges):
    """``v_jᵀ L v_j`` of every column, (B, k), as a sum over edges: nothing cancels."""
    n, B, k = V.shape
    out = np.zeros((B, k))
    for i in range(n):
        for e in range(indptr[i], indptr[i + 1]):
            j = indices[e]
            if j > i:
                for b in range(B):
                    for r in range(k):
                        difference = float(V[i, b, r]) - float(V[j, b, r])
                        out[b, r] += edges[e] * difference * difference
    return out


def extrapolated(F, last, momentum):
    """``F + momentum · (F − last)`` with ``momentum`` (B,), not below zero, without subnormal numbers."""
    out = np.empty(F.shape, F.dtype)
    cost = ELEMENTWISE * F.size
    split(lambda rows: _extrapolate(F[rows], last[rows], momentum, out[rows]), len(F), cost)
    return out


@compiled_fast
def _extrapolate(F, last, momentum, out):
    tiny, (n, B, k) = np.finfo(F.dtype).tiny, F.shape
    for i in range(n):
        for b in range(B):
            for r in range(k):
                x = F[i, b, r] + momentum[b] * (F[i, b, r] - last[i, b, r])
                out[i, b, r] = x if x >= tiny else 0.0


def scaled(F, factors):
    """Columns of F times ``factors`` (B, k), without subnormal numbers."""
    out = np.empty(F.shape, F.dtype)
    split(lambda rows: _scale(F[rows], factors, out[rows]), len(F), ELEMENTWISE * F.size)
    return out


@compiled_fast
def _scale(F, factors, out):
    tiny, (n, B, k) = np.finfo(F.dtype).tiny, F.shape
    for i in range(n):
        for b in range(B):
            for r in range(k):
                x = F[i, b, r] * factors[b, r]
                out[i, b, r] = x if x >= tiny else 0.0


@compiled_fast
def greedy_colours(order, indptr, indices):
    """For each row (n,), visited in this ``order``, the first colour that none of its neighbours has."""
    colour = np.full(len(order), -1, dtype=np.int64)
    taken_by = np.full(len(order) + 1, -1, dtype=np.int64)  # the last row next to each colour
    for i in order:
        for e in range(indptr[i], indptr[i + 1]):
            taken_by[colour[indices[e]]] = i  # place −1, the last, is for rows without a colour
        first = 0
        while taken_by[first] == i:
            first += 1
        colour[i] = first
    return colour
