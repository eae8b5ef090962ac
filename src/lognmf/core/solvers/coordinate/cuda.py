"""The sweeps of ``tensors.py`` as kernels for CUDA tensors, in Triton, for the penalties of `SWEPT`.

Imported only on a GPU, with Triton.
"""

from __future__ import annotations

import itertools
from typing import Any

import torch
import triton
import triton.language as tl

_ENTRIES = 2048  # entries of a factor that a program holds


@triton.jit
def _minimum(curvature, slope, weight, at, PENALTY: tl.constexpr):
    if PENALTY == "l1":
        best = (slope - weight / 2) / curvature
    else:
        # As `Log.minimise`: the larger stationary point, where the way down from ``at`` leads there.
        a = slope / curvature
        edge = tl.sqrt(2 * weight) / tl.sqrt(curvature)
        inside = a + 1 - edge
        within, beyond = tl.where(inside > 0, inside, 0.0), a + 1 + edge
        root = tl.sqrt(within) * tl.sqrt(tl.where(beyond > 0, beyond, 0.0))
        far = (tl.abs(a - 1) + root) / 2
        far = tl.where((inside > 0) & (far > 0), far, 1.0)
        half = tl.where(inside > 0, edge, 0.0) / 2
        near = a / far - half * (half / far)
        upper = tl.where(a > 1, far, near)
        lower = tl.where(a > 1, -near, -far)
        best = tl.where((inside > 0) & (upper > 0) & (at >= lower), upper, 0.0)
    return best


@triton.jit
def _sweep(
    F, A, G, kept, lam, weight, order, starts, neighbours, edges, degree, count, B, k, TIMES: tl.constexpr,
    PENALTY: tl.constexpr, KEPT: tl.constexpr, GRAPH: tl.constexpr, TINY: tl.constexpr,
    ROWS: tl.constexpr, K: tl.constexpr,
):  # fmt: skip
    b = tl.program_id(1)
    place = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)
    there, component = place < count, tl.arange(0, K)
    row = tl.load(order + place, mask=there, other=0) if GRAPH else place
    real = (component < k)[None, :]
    at = (row * B + b)[:, None] * k + component[None, :]
    v = tl.load(F + at, mask=there[:, None] & real, other=0.0)
    a = tl.load(A + at, mask=there[:, None] & real, other=0.0)
    share = tl.full((ROWS,), 1.0, v.dtype)
    pull = tl.zeros((ROWS,), v.dtype)
    if KEPT:
        share = tl.load(kept + row * B + b, mask=there, other=1.0)
        a = share[:, None] * a
    if GRAPH:
        strength = tl.load(lam + b)
        edge = tl.load(starts + row, mask=there, other=0)
        end = tl.load(starts + row + 1, mask=there, other=0)
        for _ in range(tl.max(end - edge)):
            has = edge < end
            other = (tl.load(neighbours + edge, mask=has, other=0) * B + b)[:, None] * k + component[None, :]
            pulled = strength * tl.load(edges + edge, mask=has, other=0.0)
            a += pulled[:, None] * tl.load(F + other, mask=has[:, None] & real, other=0.0)
            edge += 1
        pull = strength * tl.load(degree + row, mask=there, other=0.0)
    penalty = tl.load(weight + b)
    for _ in range(TIMES):
        for r in range(k):
            own = component == r
            g = tl.load(G + (b * k + r) * k + component, mask=component < k, other=0.0)
            around = share * tl.sum(v * tl.where(own, 0.0, g)[None, :], 1)
            old = tl.sum(tl.where(own[None, :], v, 0.0), 1)
            slope = tl.sum(tl.where(own[None, :], a, 0.0), 1) - around
            curvature = share * tl.sum(tl.where(own, g, 0.0), 0) + pull
            alive = curvature > TINY
            best = _minimum(tl.where(alive, curvature, 1.0), slope, penalty, old, PENALTY)
            best = tl.where(best >= TINY, best, 0.0)
            best = tl.where(alive, best, tl.where(penalty > 0, 0.0, old))
            v = tl.where(own[None, :], best[:, None], v)
    tl.store(F + at, v, mask=there[:, None] & real)


@triton.jit
def _sphere_sweep(
    U, A, G, weight, pulls, p, B, k, TIMES: tl.constexpr, PENALTY: tl.constexpr, TINY: tl.constexpr,
    ROWS: tl.constexpr, K: tl.constexpr,
):  # fmt: skip
    b, component = tl.program_id(0), tl.arange(0, K)
    half, pull = tl.load(weight + b) / 2, pulls + b.to(tl.int64) * p
    for _ in range(TIMES):
        for r in range(k):
            own = component == r
            g = tl.load(G + (b * k + r) * k + component, mask=component < k, other=0.0)
            # Where the codes are zero, the data say nothing about the column.
            swept = tl.where(tl.sum(tl.where(own, g, 0.0), 0) > TINY, p, 0)
            others = tl.where(own, 0.0, g)
            top, highest = half * 0 - float("inf"), 0
            for start in range(0, p, ROWS):
                i = start + tl.arange(0, ROWS)
                at = (i.to(tl.int64) * B + b) * k
                inside = (i < p)[:, None] & (component < k)[None, :]
                u = tl.load(U + at[:, None] + component[None, :], mask=inside, other=0.0)
                x = tl.load(A + at + r, mask=i < p, other=0.0) - tl.sum(u * others[None, :], 1)
                slope = half / (1 + tl.sum(tl.where(own[None, :], u, 0.0), 1)) if PENALTY == "log" else half
                x = tl.where(i < p, x - slope, -float("inf"))
                tl.store(pull + i, x, mask=i < p)
                largest, place = tl.max(x, 0), tl.argmax(x, 0)
                highest = tl.where(largest > top, start + place, highest)
                top = tl.where(largest > top, largest, top)
            tl.debug_barrier()
            positive = top > TINY
            unit, squares = tl.where(positive, top, 1.0), half * 0
            for start in range(0, p, ROWS):
                i = start + tl.arange(0, ROWS)
                x = tl.load(pull + i, mask=i < p, other=0.0) / unit
                squares += tl.sum(tl.where(x > 0, x * x, 0.0), 0)
            scale = unit * tl.sqrt(tl.where(positive, squares, 1.0))
            for start in range(0, p, ROWS):
                i = start + tl.arange(0, ROWS)
                x = tl.load(pull + i, mask=i < p, other=0.0) / scale
                x = tl.where(positive, tl.where(x >= TINY, x, 0.0), tl.where(i == highest, 1.0, 0.0))
                tl.store(U + (i.to(tl.int64) * B + b) * k + r, x, mask=i < swept)
            tl.debug_barrier()


SWEPT = {"Log": "log", "L1": "l1"}
"""The penalties that `sweep` knows, by the names of their classes."""


def sweep(
    penalty: str, F: Any, A: Any, G: Any, kept: Any, rows: Any, lam: Any, weight: Any, times: int
) -> None:
    """Sweep the coordinates of F (rows, B, k) in place; ``rows`` is None where no graph joins them."""
    n, B, k = F.shape
    K = max(2, triton.next_power_of_2(k))
    height = max(1, min(_ENTRIES // K, 64))
    graph = (F,) * 4 if rows is None else (rows.indptr, rows.indices, rows.weights, rows.degree)
    bounds = [0, n] if rows is None else rows.bounds.tolist()
    A, G, kept = A.contiguous(), G.contiguous(), kept.contiguous()
    with torch.cuda.device_of(F):
        for first, last in itertools.pairwise(bounds):
            order = F if rows is None else rows.order[first:last]
            _sweep[(triton.cdiv(last - first, height), B)](
                *(F, A, G, kept, lam, weight, order, *graph, last - first, B, k),
                TIMES=times,
                PENALTY=SWEPT[penalty],
                KEPT=len(kept) > 0,
                GRAPH=rows is not None,
                TINY=float(torch.finfo(F.dtype).smallest_normal),
                ROWS=height,
                K=K,
            )


LONGEST = 1 << 14
"""Rows of U up to which `sphere_sweep` is worth it: a setting is the work of one processor."""


def sphere_sweep(penalty: str, U: Any, A: Any, G: Any, weight: Any, times: int) -> None:
    """Sweep the columns of U (p, B, k), each of unit norm, in place."""
    p, B, k = U.shape
    K = max(2, triton.next_power_of_2(k))
    rows = max(16, min(8 * _ENTRIES // K, triton.next_power_of_2(p)))
    with torch.cuda.device_of(U):
        _sphere_sweep[(B,)](
            *(U, A.contiguous(), G.contiguous(), weight, U.new_empty((B, p)), p, B, k),
            TIMES=times,
            PENALTY=SWEPT[penalty],
            TINY=float(torch.finfo(U.dtype).smallest_normal),
            ROWS=rows,
            K=K,
            num_warps=16,
        )
