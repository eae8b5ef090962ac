"""Coordinate descent entry by entry: weighted or missing entries, and the Kullback-Leibler divergence.

Plain least squares needs X only through ``X @ U``. With a weight for every entry each sample has its own
Gram matrix, and the divergence has none. So a sweep here goes through the entries of one row of X at a time:
the row's fit ``y = U v`` stays in the cache, and one coordinate of v costs one pass over the row's entries.
Factor U is swept by the same loops on Xᵀ. No coordinate step raises the objective, and zeros are exact.
"""

# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations

import functools
from dataclasses import dataclass
from math import log
from typing import Any

import numpy as np
import scipy.sparse as sp

from lognmf.core.compiling import compiled_fast, inlined
from lognmf.core.data import InMemory, entry_rows
from lognmf.core.solvers.coordinate.coloured_graph import ColouredGraph
from lognmf.core.terms.protocol import SeparablePenalty
from lognmf.core.threads import ELEMENTWISE, split

SWEEPS = 1  # sweeps of a factor in a step
DENSE = 0.5  # matrices in which at least this share of the entries matters are not stored as sparse ones
EMPTY_FIT = 1e-140  # added to fits y before x / y and x / y² are taken: changes no digit of an ordinary one


@dataclass(frozen=True, eq=False)
class Entries:
    """The entries of X, or of Xᵀ, that matter to a data term, row by row.

    Dense, with an empty ``indptr``, or CSR. ``x`` and the weights ``m`` are flat; an empty ``m`` stands for
    ones. Unstored entries are unknown, or zeros of weight 1 where ``m`` is empty.
    """

    shape: tuple[int, int]
    indptr: np.ndarray
    indices: np.ndarray
    x: np.ndarray
    m: np.ndarray

    @classmethod
    def of(cls, data: InMemory) -> tuple[Entries, Entries]:
        """The entries of the samples, and those of the features."""
        X, M = data.X, data.M
        matters = M if M is not None else X
        if not sp.issparse(X) and np.count_nonzero(matters) >= DENSE * X.size:
            x = X if data.unit == 1 else X / data.unit
            both = (F for F in (x, x.T)), (F for F in ((M, M.T) if M is not None else (x[:0], x[:0])))
            none = np.zeros(0, np.int64), np.zeros(0, np.int32)
            return tuple(  # type: ignore[return-value]
                cls(F.shape, *none, np.ascontiguousarray(F).reshape(-1), np.ascontiguousarray(m).reshape(-1))
                for F, m in zip(*both, strict=True)
            )
        pattern = sp.csr_array(matters)
        if M is None:
            x, m = pattern.data, pattern.data[:0]
        else:
            x, m = np.asarray(X[entry_rows(pattern), pattern.indices]).reshape(-1), pattern.data
        x = x if data.unit == 1 else x / data.unit
        places = sp.csr_array((np.arange(len(x)), pattern.indices, pattern.indptr), shape=X.shape)
        turned = sp.csr_array(places.T)
        return (
            cls._sparse(X.shape, pattern, x, m),
            cls._sparse(X.shape[::-1], turned, x[turned.data], m[turned.data] if len(m) else m),
        )

    @classmethod
    def _sparse(cls, shape: tuple[int, int], M: sp.csr_array, x: np.ndarray, m: np.ndarray) -> Entries:
        return cls(shape, M.indptr.astype(np.int64), M.indices.astype(np.int32), x, m)

    @functools.cached_property
    def longest(self) -> int:
        """The largest number of entries in a row."""
        return int(np.diff(self.indptr).max(initial=0)) if len(self.indptr) else self.shape[1]

    def sweep(
        self,
        loops: Any,
        F: np.ndarray,
        G: np.ndarray,
        rows: ColouredGraph,
        lam: np.ndarray,
        weight: np.ndarray,
        ridge: np.ndarray,
        slow: np.ndarray,
        times: int,
    ) -> tuple[np.ndarray, np.ndarray]:
        """F (rows, B, k) after ``times`` sweeps, and the data term of each row, (rows, B).

        The function is the data term of ``F Gᵀ`` plus ``lam Tr(FᵀLF) + weight Σ φ(F) + Σ_r ridge_r ‖f_r‖²``,
        with weights (B,) and ``ridge`` (B, k). Curvatures are multiplied by 1 + ``slow`` (B,).
        """
        n, B, _ = F.shape
        out, values = np.array(F, order="C"), np.zeros((n, B))
        order, bounds, *graph = rows
        a_row = ELEMENTWISE * times * G.shape[2] * max(1.0, len(self.x) / max(1, n))  # operations
        for b in range(B):
            other = np.ascontiguousarray(G[:, b, :], dtype=np.float64)
            sums = other.sum(axis=0)
            other = other if len(self.indptr) else np.ascontiguousarray(other.T)
            numbers = (float(lam[b]), float(weight[b]), ridge[b], 1.0 + float(slow[b]), times)
            entries = (self.shape[1], self.longest, self.indptr, self.indices, self.x, self.m, other, sums)
            for c in range(len(bounds) - 1):
                of_colour = order[bounds[c] : bounds[c + 1]]

                def part(own, of_colour=of_colour, entries=entries, numbers=numbers, b=b):
                    loops(out, b, of_colour[own], *entries, *graph, *numbers, values)

                split(part, len(of_colour), len(of_colour) * a_row)
        return out, values


def sweeper(penalty: SeparablePenalty, *, squares: bool) -> Any:
    """The compiled loop for a penalty, on squared errors or on the divergence."""
    functions = (penalty.slope, penalty.minimum)
    return _sweeper(*functions, squares, inlined(*functions))


@functools.cache
def _sweeper(slope, minimum, squares, version):
    row = _squares_row(minimum, version) if squares else _divergence_row(slope, version)

    @compiled_fast
    def sweep(
        F, b, rows, p, longest, indptr, indices, x, m, other, sums,
        starts, neighbours, edges, degree, lam, weight, ridge, slow, times, values,
    ):  # fmt: skip
        _ = version
        k, dense, weighted = F.shape[2], indptr.shape[0] == 0, m.shape[0] > 0
        gathered = np.empty((k, 0 if dense else longest))
        G = other if dense else gathered
        X, M, work = np.empty(longest), np.ones(longest), np.empty((3, longest))
        v, target, curvature = np.empty(k), np.empty(k), np.empty(k)
        tiny = np.finfo(F.dtype).tiny
        for i in rows:
            first = i * p if dense else indptr[i]
            count = p if dense else indptr[i + 1] - first
            for j in range(count):
                X[j] = x[first + j]
            if weighted:
                for j in range(count):
                    M[j] = m[first + j]
            if not dense:
                for j in range(count):
                    column = other[np.uint64(indices[first + j])]
                    for r in range(k):
                        gathered[r, j] = column[r]
            pull = 0.0
            for r in range(k):
                v[r], target[r] = F[i, b, r], 0.0
            if lam > 0:
                pull = lam * degree[i]
                for e in range(starts[i], starts[i + 1]):
                    neighbour = F[np.uint64(neighbours[e]), np.uint64(b)]
                    for r in range(k):
                        target[r] += lam * edges[e] * neighbour[r]
            values[i, b] = row(
                G,
                X,
                M,
                count,
                weighted,
                sums,
                v,
                target,
                pull,
                ridge,
                weight,
                slow,
                times,
                tiny,
                work,
                curvature,
            )
            for r in range(k):
                F[i, b, r] = v[r]

    return sweep


def _squares_row(minimum, version):
    @compiled_fast
    def row(
        G, x, m, count, weighted, sums, v, target, pull, ridge, weight, slow, times, tiny, work, curvature
    ):
        """Sweep one code v for squared errors; the weighted sum of squares at the end."""
        _ = version
        k, e = v.shape[0], work[0]
        for j in range(count):
            e[j] = x[j]
        for r in range(k):
            at = v[r]
            if at != 0.0:
                for j in range(count):
                    e[j] -= at * G[r, j]
        last, change = 0, 0.0  # the part whose coordinate has changed, which e does not know yet
        for sweep in range(times):
            for r in range(k):
                g, h = 0.0, 0.0
                if sweep == 0:
                    for j in range(count):
                        e[j] -= change * G[last, j]
                        own = m[j] * G[r, j]
                        g += own * e[j]
                        h += own * G[r, j]
                    curvature[r] = h
                elif change != 0.0:
                    for j in range(count):
                        e[j] -= change * G[last, j]
                        g += m[j] * G[r, j] * e[j]
                else:
                    for j in range(count):
                        g += m[j] * G[r, j] * e[j]
                last, change, at = r, 0.0, v[r]
                h = curvature[r] + pull + max(ridge[r], 0.0)
                if h <= tiny:  # nothing depends on this coordinate
                    v[r] = 0.0 if weight > 0 else at
                    continue
                h *= slow
                best = minimum(h, h * at + g + target[r] - (pull + ridge[r]) * at, weight, at)
                best = best if best >= tiny else 0.0
                v[r], change = best, best - at
        value = 0.0
        for j in range(count):
            e[j] -= change * G[last, j]
            value += m[j] * e[j] * e[j]
        return value

    return row


def _divergence_row(slope, version):
    @compiled_fast
    def row(
        G, x, m, count, weighted, sums, v, target, pull, ridge, weight, slow, times, tiny, work, curvature
    ):
        """Sweep one code v for ``Σ m (x log(x/y) − x + y)``; its value at the end.

        The derivative along a coordinate is concave. So Newton's step up does not reach the minimum, nor does
        the step down that follows from ``f'' ≤ h / (1 + Δ/v)²``, nor the multiplicative update on either
        side: the longer step is taken. Zero is the minimum if the derivative there is not negative. A concave
        penalty is replaced by its tangent.
        """
        _ = version
        k, y, q, d = v.shape[0], work[0], work[1], work[2]
        total = curvature  # of each part over all entries
        for r in range(k):
            total[r] = sums[r]
        if weighted:
            for r in range(k):
                total[r] = 0.0
                for j in range(count):
                    total[r] += m[j] * G[r, j]
            for j in range(count):
                x[j] *= m[j]
        for j in range(count):
            y[j] = 0.0
        for r in range(k):
            at = v[r]
            if at != 0.0:
                for j in range(count):
                    y[j] += at * G[r, j]
        last, change = 0, 0.0
        for sweep in range(times):
            for r in range(k):
                g, h = 0.0, 0.0
                if change != 0.0 or (sweep == 0 and r == 0):
                    for j in range(count):
                        y[j] += change * G[last, j]
                        inverse = 1.0 / (max(y[j], 0.0) + EMPTY_FIT)
                        q[j] = x[j] * inverse
                        d[j] = q[j] * inverse
                        g += q[j] * G[r, j]
                        h += d[j] * G[r, j] * G[r, j]
                else:
                    for j in range(count):
                        g += q[j] * G[r, j]
                        h += d[j] * G[r, j] * G[r, j]
                last, change, at = r, 0.0, v[r]
                linear = total[r] + weight * slope(at) - 2.0 * target[r]
                gradient = linear - g + 2.0 * (pull + ridge[r]) * at
                plain = pull == 0.0 and ridge[r] == 0.0
                h = slow * (h + 2.0 * (pull + max(ridge[r], 0.0)))
                new = at
                if gradient < 0.0:
                    new = at - gradient / max(h, tiny)
                    if plain and linear > 0.0 and slow == 1.0:
                        new = max(new, at * g / linear)
                elif at > 0.0 and gradient > 0.0:
                    if gradient >= h * at:
                        there = linear
                        for j in range(count):
                            there -= x[j] * G[r, j] / (max(y[j] - at * G[r, j], 0.0) + EMPTY_FIT)
                        if there >= 0.0:
                            new = 0.0
                    if new > 0.0:
                        new = at * (h * at / (h * at + gradient))
                        if plain and slow == 1.0:
                            new = min(new, at * g / linear)
                new = new if new >= tiny else 0.0
                v[r], change = new, new - at
        value = 0.0
        for j in range(count):
            y[j] += change * G[last, j]
        for j in range(count):
            if x[j] > 0.0:
                value += x[j] * (log(x[j] / m[j] / max(y[j], tiny)) - 1.0)
        for r in range(k):
            value += total[r] * v[r]
        return value

    return row
