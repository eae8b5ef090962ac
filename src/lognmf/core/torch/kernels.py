"""Fused kernels for CUDA tensors, in Triton: one pass over memory where plain formulas take ten.

The plain twin of each says what it computes: `multiply` in ``solvers/multiplicative.py``,
`squared_residuals` in ``terms/frobenius.py``, `kept_share` in ``terms/robust.py`` with the row norms,
`scale_rows` in ``arrays.py``, `sweep` and `sphere_sweep` in ``coordinate.py`` and `assign` in
``clustering/lloyd.py``. Gram matrices and products with them
are left to cuBLAS: kernels that held these too were slower. Imported only on a GPU, with Triton.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import torch
import triton
import triton.language as tl

from lognmf.core.terms.l1 import L1Halves
from lognmf.core.terms.laplacian import GraphHalves
from lognmf.core.terms.log import LogHalves
from lognmf.core.terms.protocol import FitHalves, Halves

_COLUMNS = 512  # columns of a program: so few that what a graph gathers from other rows stays in the L2 cache
_ENTRIES = 2048  # entries of a factor that a program of a sweep, `squared_residuals` or `nearest` holds
_NUMBERS = 1024  # numbers that a program of `kept_share` or `scale_rows` holds
SLOPES = {LogHalves: "log", L1Halves: "l1"}
"""The penalties that `multiplied` knows, besides the data fit and the graph."""

ROW_NORMS, SWEPT = ("l2log", "l21"), ("log", "l1")
"""The row norms that `kept_share` knows, and the penalties that sweeps know: ``fused`` of the terms."""


@triton.jit
def _update(
    F, A, mixed, kept, half, weight, degree, starts, neighbours, edges, out,
    rows, columns, B, k,
    TINY: tl.constexpr, TAKEN: tl.constexpr, KEPT: tl.constexpr, SLOPE: tl.constexpr, GRAPH: tl.constexpr,
    ROWS: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    row = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)
    column = (tl.program_id(1) * BLOCK + tl.arange(0, BLOCK))[None, :]
    there = row < rows
    inside = there[:, None] & (column < columns)
    b = column // k
    at = row[:, None] * columns + column
    f = tl.load(F + at, mask=inside, other=0.0)
    neg = tl.load(A + at, mask=inside, other=0.0)
    if TAKEN:
        # F P and F taken stand side by side: (rows, B, 2 k).
        at_mixed = at + row[:, None] * columns + b * k
        pos = tl.load(mixed + at_mixed, mask=inside, other=0.0)
        back = tl.load(mixed + at_mixed + k, mask=inside, other=0.0)
        if KEPT:
            share = tl.load(kept + row[:, None] * B + b, mask=inside, other=0.0)
            neg = share * neg + (1 - share) * back
        else:
            neg += back
    else:
        pos = tl.load(mixed + at, mask=inside, other=0.0)
    if SLOPE == "log":
        pos += tl.load(half + b, mask=column < columns, other=0.0) / (1 + f)
    if SLOPE == "l1":
        pos += tl.load(half + b, mask=column < columns, other=0.0)
    if GRAPH:
        pull = tl.zeros_like(f)
        edge = tl.load(starts + row, mask=there, other=0)
        end = tl.load(starts + row + 1, mask=there, other=0)
        for _ in range(tl.max(end - edge, 0)):
            has = edge < end
            other = tl.load(neighbours + edge, mask=has, other=0).to(tl.int64)[:, None] * columns + column
            strength = tl.load(edges + edge, mask=has, other=0.0)[:, None]
            pull += strength * tl.load(F + other, mask=has[:, None] & inside, other=0.0)
            edge += 1
        lam = tl.load(weight + b, mask=column < columns, other=0.0)
        neg += lam * pull
        pos += lam * tl.load(degree + row, mask=there, other=0.0)[:, None] * f
    new = f * neg / (pos + TINY)
    # Written so that NaN stays NaN.
    tl.store(out + at, tl.where(new < TINY, 0.0, new), mask=inside)


def multiplied(F: Any, terms: Sequence[Halves]) -> Any:
    """``F · Σneg / Σpos`` in one pass; None if the kernel does not know the terms or their combination."""
    fits = [term for term in terms if isinstance(term, FitHalves)]
    slopes: list[Any] = [term for term in terms if type(term) in SLOPES]
    graphs = [term for term in terms if isinstance(term, GraphHalves)]
    known = len(fits) + len(slopes) + len(graphs) == len(terms)
    if not known or len(fits) != 1 or len(slopes) > 1 or len(graphs) > 1:
        return None
    rows, B, k = F.shape
    out = torch.empty_like(F, memory_format=torch.contiguous_format)
    fit, half, graph, weight, degree = fits[0], out, (out, out, out), out, out
    for slope in slopes:
        half = slope.half.contiguous()
    for term in graphs:
        graph = (term.W.crow_indices(), term.W.col_indices(), term.W.values())
        weight, degree = term.weight, term.degree
    sides = fit.P if fit.taken is None else torch.cat([fit.P, fit.taken], dim=2)
    mixed = F.new_empty((rows, B, sides.shape[2]))
    torch.bmm(F.permute(1, 0, 2), sides, out=mixed.permute(1, 0, 2))
    kept = out if fit.kept is None else fit.kept.contiguous()
    block = min(_COLUMNS, triton.next_power_of_2(B * k))
    together = max(1, _COLUMNS // block)
    with torch.cuda.device_of(F):
        _update[(triton.cdiv(rows, together), triton.cdiv(B * k, block))](
            *(F.contiguous(), fit.A.contiguous(), mixed, kept, half, weight, degree, *graph, out),
            *(rows, B * k, B, k),
            TINY=float(torch.finfo(F.dtype).smallest_normal),
            TAKEN=fit.taken is not None,
            KEPT=fit.kept is not None,
            SLOPE=SLOPES[type(slopes[0])] if slopes else None,
            GRAPH=bool(graphs),
            ROWS=together,
            BLOCK=block,
        )
    return out


@triton.jit
def _squared_residuals(V, XU, pull, size, out, count, B, k, CODES: tl.constexpr, K: tl.constexpr):
    code = tl.program_id(0).to(tl.int64) * CODES + tl.arange(0, CODES)  # of a sample and a setting
    component = tl.arange(0, K)
    there = code < count
    inside = there[:, None] & (component < k)[None, :]
    at = code[:, None] * k + component[None, :]
    v = tl.load(V + at, mask=inside, other=0.0)
    x = tl.load(XU + at, mask=inside, other=0.0)
    p = tl.load(pull + at, mask=inside, other=0.0)
    squared = tl.load(size + code // B, mask=there, other=0.0) + tl.sum((p - 2 * x) * v, 1)
    tl.store(out + code, tl.where(squared < 0, 0.0, squared), mask=there)


def squared_residuals(size: Any, V: Any, XU: Any, pull: Any) -> Any:
    """``‖x‖² + (pull − 2 XU) · v``, at least 0, for every row and setting, (n, B); pull is ``V UᵀU``."""
    n, B, k = V.shape
    out = V.new_empty((n, B))
    K = triton.next_power_of_2(k)
    codes = max(1, _ENTRIES // K)
    with torch.cuda.device_of(V):
        _squared_residuals[(triton.cdiv(n * B, codes),)](
            *(x.contiguous() for x in (V, XU, pull, size)), out, n * B, B, k, CODES=codes, K=K
        )
    return out


@triton.jit
def _kept_share(norms, tau, out, count, B, NORM: tl.constexpr, BLOCK: tl.constexpr):
    at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    inside = at < count
    r = tl.load(norms + at, mask=inside, other=0.0)
    t = tl.load(tau + at % B, mask=inside, other=1.0)
    if NORM == "l21":
        xi = tl.where(r > t, r - t, 0.0)
        slope = t
    else:
        middle, edge, half = (1 + r) / 2, tl.sqrt(t), (r - 1) / 2
        within = middle - edge
        root = tl.sqrt(tl.where(within > 0, within, 0.0)) * tl.sqrt(middle + edge)
        xi = tl.where(r < 1, (r - t) / tl.where(r < 1, root - half, 1.0), half + root)
        candidate = (within > 0) & (xi > 0)
        xi = tl.where(candidate, xi, 0.0)
        # log(1 + ξ) / ξ, exact also for small ξ: the rounding of 1 + ξ cancels.
        one = 1 + xi
        mean = tl.where(one > 1, tl.log(one) / tl.where(one > 1, one - 1, 1.0), 1.0)
        xi = tl.where(candidate & (xi / 2 - r + t * mean <= 0), xi, 0.0)
        slope = t / (1 + xi)
    active = xi > 0
    share = slope / tl.where(active, r, 1.0)
    tl.store(out + at, tl.where(active & (share < 1), share, 1.0), mask=inside)


def kept_share(norm: str, r: Any, tau: Any) -> Any:
    """Share of residuals of norms ``r`` (n, B) that a norm of `ROW_NORMS` leaves in the fit, tau (B,)."""
    out, B = torch.empty_like(r, memory_format=torch.contiguous_format), r.shape[1]
    with torch.cuda.device_of(r):
        _kept_share[(triton.cdiv(r.numel(), _NUMBERS),)](
            r.contiguous(), tau.contiguous(), out, r.numel(), B, NORM=norm, BLOCK=_NUMBERS
        )
    return out


@triton.jit
def _scale_rows(F, share, out, count, k, BLOCK: tl.constexpr):
    at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    inside = at < count
    scale = tl.load(share + at // k, mask=inside, other=0.0)
    tl.store(out + at, scale * tl.load(F + at, mask=inside, other=0.0), mask=inside)


def scale_rows(F: Any, share: Any) -> Any:
    """Rows of F (rows, B, k) times ``share`` (rows, B)."""
    out = torch.empty_like(F, memory_format=torch.contiguous_format)
    with torch.cuda.device_of(F):
        _scale_rows[(triton.cdiv(F.numel(), _NUMBERS),)](
            F.contiguous(), share.contiguous(), out, F.numel(), F.shape[2], BLOCK=_NUMBERS
        )
    return out


@triton.jit
def _nearest(products, square, labels, members, distance, R, K, n,
             SLACK: tl.constexpr, CENTRES: tl.constexpr, BLOCK: tl.constexpr):  # fmt: skip
    problem = tl.program_id(0).to(tl.int64)
    sample = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    centre = tl.arange(0, CENTRES)
    there = sample < n
    inside = (centre < K)[:, None] & there[None, :]
    at = (problem * K + centre)[:, None] * n + sample[None, :]
    found = tl.load(products + at, mask=inside, other=float("inf"))
    least = tl.min(found, 0)
    size = tl.load(square + problem // R * n + sample, mask=there, other=0.0)
    far = least + size
    bound = least + SLACK * (size + tl.abs(far))
    first = tl.min(tl.where(found <= bound[None, :], centre[:, None], CENTRES), 0)
    tl.store(labels + problem * n + sample, first, mask=there)
    tl.store(distance + problem * n + sample, far, mask=there)
    tl.store(members + at, (centre[:, None] == first[None, :]).to(members.dtype.element_ty), mask=inside)


def nearest(products: Any, square: Any, slack: float) -> tuple[Any, Any, Any]:
    """Labels (b, R, n), members (b, R, K, n) as 0.0 and 1.0, and squared distances (b, R, n).

    From the ``products`` ``‖c‖² − 2 v·c`` (b, R, K, n) and the squared norms of the samples
    (b, 1, n). The first of the centres that are nearest to within ``slack`` is taken.
    """
    b, R, K, n = products.shape
    products = products.contiguous()
    labels = torch.empty((b, R, n), dtype=torch.int32, device=products.device)
    distance, members = products.new_empty((b, R, n)), torch.empty_like(products)
    centres = triton.next_power_of_2(K)
    block = max(16, _ENTRIES // centres)
    with torch.cuda.device_of(products):
        _nearest[(b * R, triton.cdiv(n, block))](
            *(products, square.contiguous(), labels, members, distance, R, K, n),
            SLACK=slack,
            CENTRES=centres,
            BLOCK=block,
        )
    return labels, members, distance


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
                PENALTY=penalty,
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
            PENALTY=penalty,
            TINY=float(torch.finfo(U.dtype).smallest_normal),
            ROWS=rows,
            K=K,
            num_warps=16,
        )


def try_out() -> None:
    """Run a kernel once; raises an error where Triton cannot be used."""
    one = torch.ones((1, 1, 1), device="cuda")
    squared_residuals(one[0, 0], one, one, one)
    torch.cuda.synchronize()
