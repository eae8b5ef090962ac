"""The loops of coordinate descent for torch tensors, each with the meaning of its namesake in ``compiled``.

All rows of a colour and all settings are one step of tensor operations. On a GPU the sweeps are kernels
(``kernels.py``) for the penalties that these know. What is small, (B,) or (B, k), is on the CPU.
"""

from __future__ import annotations

import functools
import itertools
from dataclasses import replace
from typing import Any

import numpy as np
import torch

from lognmf.core.arrays import Array, double, kernels, like, positive, to_numpy, without_subnormals
from lognmf.core.solvers.coordinate.coloured_graph import ColouredGraph
from lognmf.core.solvers.coordinate.costs import Loops
from lognmf.core.terms.protocol import SeparablePenalty, fused


def loops(penalty: SeparablePenalty) -> Loops:
    """The loops for ``penalty``."""
    every = (_sweep, _sphere_sweep, _penalty_sum, _scale_derivatives)
    return Loops(*(functools.partial(loop, penalty) for loop in every))


def placed(rows: ColouredGraph, pattern: Array) -> ColouredGraph:
    """The rows with their graph on the device of ``pattern``; the bounds of the colours stay here."""

    def there(values: np.ndarray) -> Array:
        return torch.as_tensor(values, device=pattern.device)

    weights, degree = (like(values, pattern) for values in (rows.weights, rows.degree))
    return ColouredGraph(
        there(rows.order), rows.bounds, there(rows.indptr), there(rows.indices), weights, degree
    )


def _sweep(
    penalty: Any,
    F: Array,
    A: Array,
    G: Array,
    kept: Array,
    rows: ColouredGraph,
    lam: np.ndarray,
    weight: np.ndarray,
    times: int,
    *,
    in_place: bool = False,
) -> Array:
    out = F if in_place else F.clone(memory_format=torch.contiguous_format)
    coupled = len(rows.weights) > 0 and bool(lam.any())
    weights = (like(lam, F), like(weight, F))
    compiled = _fused(penalty, F)
    if compiled is not None:
        compiled.sweep(fused(penalty), out, A, G, kept, rows if coupled else None, *weights, times)
        return out
    target = kept[:, :, None] * A if len(kept) else A
    if not coupled:
        _sweep_rows(penalty, out, target, G, kept, torch.zeros_like(F[:, :, 0]), weights[1], times)
        return out
    for own in (rows.order[first:last] for first, last in itertools.pairwise(rows.bounds)):
        part, pull = out[own], weights[0] * rows.degree[own][:, None]
        pulled = target[own] + weights[0][:, None] * _neighbours(out, rows, own)
        _sweep_rows(penalty, part, pulled, G, kept[own] if len(kept) else kept, pull, weights[1], times)
        out[own] = part
    return out


def _fused(penalty: Any, F: Array) -> Any:
    """The kernels, where they run and know the penalty; else None."""
    compiled = kernels(F)
    return compiled if compiled is not None and fused(penalty) in compiled.SWEPT else None


def _neighbours(F: Array, rows: ColouredGraph, own: Array) -> Array:
    """Sums of the neighbours' rows of F by their weights, for the rows ``own``."""
    count = rows.indptr[own + 1] - rows.indptr[own]
    row = torch.repeat_interleave(torch.arange(len(own), device=F.device), count)
    offset = torch.cumsum(count, 0) - count
    edge = rows.indptr[own][row] + torch.arange(len(row), device=F.device) - offset[row]
    out = torch.zeros_like(F[own])
    return out.index_add_(0, row, rows.weights[edge][:, None, None] * F[rows.indices[edge]])


def _sweep_rows(
    penalty: Any,
    V: Array,
    A: Array,
    G: Array,
    kept: Array,
    pull: Array,
    weight: Array,
    times: int,
) -> None:
    """Sweep independent rows in place; A has the row weights, ``pull`` (n, B) is the graph's curvature."""
    tiny = torch.finfo(V.dtype).smallest_normal
    share = kept if len(kept) else 1.0
    diagonal = torch.diagonal(G, dim1=1, dim2=2)
    others = G - torch.diag_embed(diagonal)
    penalised = (weight > 0) & torch.ones_like(V[:, :, 0], dtype=torch.bool)
    for _ in range(times):
        for r in range(V.shape[2]):
            around = torch.einsum("nbq,bq->nb", V, others[:, r])
            curvature = share * diagonal[:, r] + pull
            slope = A[:, :, r] - share * around
            alive = curvature > tiny
            at = V[:, :, r]
            best = penalty.minimise(torch.where(alive, curvature, 1.0), slope, weight, at)
            best = torch.where(best >= tiny, best, 0.0)
            V[:, :, r] = torch.where(alive, best, torch.where(penalised, 0.0, at))


def _sphere_sweep(penalty: Any, U: Array, A: Array, G: Array, weight: np.ndarray, times: int) -> Array:
    tiny = torch.finfo(U.dtype).smallest_normal
    U = U.clone(memory_format=torch.contiguous_format)
    there, compiled = like(weight, U), _fused(penalty, U)
    if compiled is not None and len(U) <= compiled.LONGEST:
        compiled.sphere_sweep(fused(penalty), U, A, G, there, times)
        return U
    sloped = replace(penalty, weight=there)
    diagonal = torch.diagonal(G, dim1=1, dim2=2)
    others = G - torch.diag_embed(diagonal)
    for _ in range(times):
        for r in range(U.shape[2]):
            column = U[:, :, r : r + 1]
            pull = A[:, :, r] - torch.einsum("pbq,bq->pb", U, others[:, r])
            neg, pos = sloped.halves(column)(slice(None))
            pull = pull - (pos if neg is None else pos - neg)[:, :, 0]
            top, highest = pull.max(dim=0)
            inside = positive(pull) / torch.where(top > tiny, top, 1.0)
            new = inside / torch.clamp(torch.linalg.vector_norm(inside, dim=0), min=tiny)
            new = torch.where(new >= tiny, new, 0.0)
            axis = torch.zeros_like(new).scatter_(0, highest[None, :], 1.0)
            new = torch.where(top > tiny, new, axis)
            # Where the codes are zero, the data say nothing about the column.
            U[:, :, r] = torch.where(diagonal[:, r] > tiny, new, column[:, :, 0])
    return U


def _penalty_sum(penalty: Any, F: Array) -> np.ndarray:
    return to_numpy(replace(penalty, weight=like(np.ones(F.shape[1]), F)).value(F))


def _scale_derivatives(penalty: Any, F: Array, scale: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    x = double(F) * torch.as_tensor(scale, device=F.device)
    neg, pos = replace(penalty, weight=2 * like(np.ones(F.shape[1]), x)).halves(x)(slice(None))
    first = to_numpy((x * (pos if neg is None else pos - neg)).sum(dim=0))
    bend = getattr(penalty, "bend", None)
    return first, first if bend is None else to_numpy(bend(x).sum(dim=0))


def roughness(V: Array, indptr: Array, indices: Array, edges: Array) -> np.ndarray:
    """``v_jᵀ L v_j`` of every column, (B, k), as a sum over edges: nothing cancels."""
    row = torch.repeat_interleave(torch.arange(len(V), device=V.device), torch.diff(indptr))
    once = torch.nonzero(indices > row)[:, 0]
    out = torch.zeros(V.shape[1:], dtype=torch.float64, device=V.device)
    for some in once.split(max(1, EDGES // (V.shape[1] * V.shape[2]))):
        difference = double(V[row[some]]) - double(V[indices[some]])
        out += (double(edges[some])[:, None, None] * difference**2).sum(dim=0)
    return to_numpy(out)


EDGES = 1 << 26
"""Numbers that `roughness` forms together."""


def extrapolated(F: Array, last: Array, momentum: np.ndarray) -> Array:
    """``F + momentum · (F − last)`` with ``momentum`` (B,), not below zero, without subnormal numbers."""
    return _clipped(F + like(momentum, F)[:, None] * (F - last))


def scaled(F: Array, factors: np.ndarray) -> Array:
    """Columns of F times ``factors`` (B, k), without subnormal numbers."""
    return _clipped(F * like(factors, F))


def _clipped(F: Array) -> Array:
    return without_subnormals(F, torch.finfo(F.dtype).smallest_normal)
