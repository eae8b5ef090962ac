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
from lognmf.core.solvers.compiled_codes import go, newton
from lognmf.core.solvers.coordinate.coloured_graph import ColouredGraph
from lognmf.core.terms.protocol import SeparablePenalty
from lognmf.core.threads import ELEMENTWISE, split

SWEEPS = 1  # sweeps of a factor in a step
MOST_STEPS, TOLERANCE = 500, 1e-14  # steps of a code; the share of its objective that the last one gains
RIDGE = 1e-16  # added to the diagonal of Newton's systems, 8 k times: parts may be the same
DENSE = 0.5  # matrices in which at least this share of the entries matters are not stored as sparse ones
EMPTY_FIT = 1e-100  # this share of x is added to fits y before x / y and x / y² are taken: no digit changes
LEAST_FIT = 1e-300  # added where x is 0 too


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
    def of(cls, data: InMemory) -> Entries:
        """The entries of the samples."""
        X, M, none = data.X, data.M, np.zeros(0)
        matters = X if M is None else M
        if not sp.issparse(X) and np.count_nonzero(matters) >= DENSE * X.size:
            x, m = X.reshape(-1), none.astype(X.dtype) if M is None else M.reshape(-1)
            return cls(X.shape, none.astype(np.int64), none.astype(np.int32), _in_units(x, data.unit), m)
        places = sp.csr_array(matters)
        x, m = places.data, places.data[:0]
        if M is not None:
            x, m = np.asarray(X[entry_rows(places), places.indices]).reshape(-1), places.data
        return cls._stored(X.shape, places, _in_units(x, data.unit), m)

    def turned(self) -> Entries:
        """The entries of the features, those of Xᵀ."""
        shape = self.shape[::-1]
        if not len(self.indptr):
            x, m = (
                np.ascontiguousarray(F.reshape(self.shape).T).reshape(-1) if len(F) else F
                for F in (self.x, self.m)
            )
            return Entries(shape, self.indptr, self.indices, x, m)
        places = sp.csr_array((np.arange(len(self.x)), self.indices, self.indptr), shape=self.shape).T.tocsr()
        return self._stored(
            shape, places, self.x[places.data], self.m[places.data] if len(self.m) else self.m
        )

    @classmethod
    def _stored(cls, shape: tuple[int, int], places: sp.csr_array, x: np.ndarray, m: np.ndarray) -> Entries:
        return cls(shape, places.indptr.astype(np.int64), places.indices.astype(np.int32), x, m)

    @functools.cached_property
    def arrays(self) -> tuple[Any, ...]:
        """All of it, as the compiled loops take it; with the largest number of entries in a row."""
        longest = int(np.diff(self.indptr).max(initial=0)) if len(self.indptr) else self.shape[1]
        return self.shape[1], longest, self.indptr, self.indices, self.x, self.m

    def beside(self, G: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The other factor (columns, k) as the loops take it, turned if X is dense, and its sums (k,)."""
        other = np.ascontiguousarray(G, dtype=np.float64)
        return other if len(self.indptr) else np.ascontiguousarray(other.T), other.sum(axis=0)

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
            numbers = (float(lam[b]), float(weight[b]), ridge[b], 1.0 + float(slow[b]), times)
            entries = (*self.arrays, *self.beside(G[:, b, :]))
            for c in range(len(bounds) - 1):
                of_colour = order[bounds[c] : bounds[c + 1]]

                def part(own, of_colour=of_colour, entries=entries, numbers=numbers, b=b):
                    loops(out, b, of_colour[own], *entries, *graph, *numbers, values)

                split(part, len(of_colour), len(of_colour) * a_row)
        return out, values


def _in_units(x: np.ndarray, unit: float) -> np.ndarray:
    return x if unit == 1 else x / unit


def sweeper(penalty: SeparablePenalty, *, squares: bool) -> Any:
    """The compiled loop for a penalty, on squared errors or on the divergence."""
    functions = (penalty.slope, penalty.minimum)
    return _sweeper(*functions, squares, inlined(*functions))


def encoded(entries: Entries, U: np.ndarray, penalty: SeparablePenalty) -> np.ndarray:
    """Codes (n, k) of the divergence for the basis ``U`` (p, k), each solved to tolerance.

    The penalty has one weight per sample.
    """
    functions = (penalty.cost, penalty.slope)
    solve = _encoder(*functions, inlined(*functions))
    other, sums = entries.beside(U)
    out = np.zeros((entries.shape[0], U.shape[1]), U.dtype)
    weight = np.broadcast_to(penalty.weight, len(out)).astype(np.float64)

    def part(own: slice) -> None:
        solve(out, own.start, own.stop, *entries.arrays, other, sums, weight, MOST_STEPS, TOLERANCE)

    split(part, len(out), 100 * ELEMENTWISE * len(entries.x) * U.shape[1])
    return out


@functools.cache
def _sweeper(slope, minimum, squares, version):
    @compiled_fast
    def sweep(
        F, b, rows, p, longest, indptr, indices, x, m, other, sums,
        starts, neighbours, edges, degree, lam, weight, ridge, slow, times, values,
    ):  # fmt: skip
        _ = version
        k = F.shape[2]
        gathered = np.empty((k, longest if len(indptr) else 0))
        G = gathered if len(indptr) else other
        X, M, y = np.empty(longest), np.ones(longest), np.empty(longest)
        q, d = np.empty(longest), np.empty(longest)
        v, target, total = np.empty(k), np.empty(k), np.empty(k)
        tiny = np.finfo(F.dtype).tiny
        for i in rows:
            count = _load(i, p, indptr, indices, x, m, other, gathered, X, M)
            pull = 0.0
            for r in range(k):
                v[r], target[r] = F[i, b, r], 0.0
            if lam > 0:
                pull = lam * degree[i]
                for e in range(starts[i], starts[i + 1]):
                    neighbour = F[np.uint64(neighbours[e]), np.uint64(b)]
                    for r in range(k):
                        target[r] += lam * edges[e] * neighbour[r]
            _fit(G, count, v, y)
            if squares:
                for j in range(count):
                    y[j] = X[j] - y[j]
            else:
                _weigh(G, X, M, count, len(m) > 0, sums, total)
            last, change = 0, 0.0  # the part whose coordinate has changed, which y does not know yet
            for step in range(times * k):
                r = step % k
                at, pulled = v[r], pull + ridge[r]
                if squares:
                    g, total[r] = _squares_slopes(G, M, count, r, last, change, step < k, total[r], y)
                    h = slow * (total[r] + pull + max(ridge[r], 0.0))
                    new = minimum(max(h, tiny), h * at + g + target[r] - pulled * at, weight, at)
                    new = new if new >= tiny else 0.0
                    if h <= tiny:  # nothing depends on this coordinate
                        new = 0.0 if weight > 0 else at
                else:
                    g, h = _slopes(G, X, count, r, last, change, step == 0, y, q, d)
                    linear = total[r] + weight * slope(at) - 2.0 * target[r]
                    h = slow * (h + 2.0 * (pull + max(ridge[r], 0.0)))
                    plain = pulled == 0.0 and slow == 1.0
                    new = _moved(G, X, count, r, y, at, g, h, linear, 2.0 * pulled * at, plain, tiny)
                last, v[r], change = r, new, new - at
            change = -change if squares else change
            for j in range(count):
                y[j] += change * G[last, j]
            values[i, b] = _squares(M, count, y) if squares else _divergence(X, M, count, total, v, y, tiny)
            for r in range(k):
                F[i, b, r] = v[r]

    return sweep


@compiled_fast
def _load(i, p, indptr, indices, x, m, other, gathered, X, M):
    """Copy row i: its entries, weights and, if they are sparse, the other factor at them; their number."""
    first, count = i * p, p
    if len(indptr):
        first, count = indptr[i], indptr[i + 1] - indptr[i]
        for j in range(count):
            column = other[np.uint64(indices[first + j])]
            for r in range(len(column)):
                gathered[r, j] = column[r]
    for j in range(count):
        X[j] = x[first + j]
    if len(m):
        for j in range(count):
            M[j] = m[first + j]
    return count


@compiled_fast
def _weigh(G, x, m, count, weighted, sums, total):
    """Multiply entries by their weights; ``total`` becomes the slope of ``Σ m y`` along each coordinate."""
    for r in range(len(total)):
        total[r] = sums[r]
        if weighted:
            total[r] = 0.0
            for j in range(count):
                total[r] += m[j] * G[r, j]
    if weighted:
        for j in range(count):
            x[j] *= m[j]


@compiled_fast
def _fit(G, count, v, y):
    """``y = G v``, two parts at a time."""
    for j in range(count):
        y[j] = 0.0
    for r in range(0, len(v), 2):
        s = min(r + 1, len(v) - 1)
        one, other = v[r], v[s] if s > r else 0.0
        if one != 0.0 or other != 0.0:
            for j in range(count):
                y[j] += one * G[r, j] + other * G[s, j]


@compiled_fast
def _squares(m, count, e):
    """``Σ m e²``."""
    value = 0.0
    for j in range(count):
        value += m[j] * e[j] * e[j]
    return value


@compiled_fast
def _squares_slopes(G, m, count, r, last, change, first, h, e):
    """Half the slopes along coordinate r, from the residual e, after a ``change`` of coordinate ``last``.

    The second one is computed the ``first`` time only.
    """
    g = 0.0
    if first:
        h = 0.0
        for j in range(count):
            e[j] -= change * G[last, j]
            own = m[j] * G[r, j]
            g += own * e[j]
            h += own * G[r, j]
    elif change != 0.0:
        for j in range(count):
            e[j] -= change * G[last, j]
            g += m[j] * G[r, j] * e[j]
    else:
        for j in range(count):
            g += m[j] * G[r, j] * e[j]
    return g, h


@compiled_fast
def _divergence(x, m, count, total, v, y, tiny):
    """``Σ m (x log(x/y) − x + y)`` from entries x that have been multiplied by their weights m."""
    value = 0.0
    for j in range(count):
        if x[j] > 0.0:
            value += x[j] * (log(x[j] / m[j] / max(y[j], tiny)) - 1.0)
    for r in range(len(v)):
        value += total[r] * v[r]
    return value


@compiled_fast
def _slopes(G, x, count, r, last, change, first, y, q, d):
    """``Σ x u/y`` and ``Σ x u²/y²`` of coordinate r, after a ``change`` of coordinate ``last``."""
    g, h = 0.0, 0.0
    if first or change != 0.0:
        for j in range(count):
            y[j] += change * G[last, j]
            inverse = 1.0 / (max(y[j], 0.0) + EMPTY_FIT * x[j] + LEAST_FIT)
            q[j] = x[j] * inverse
            d[j] = q[j] * inverse
            g += q[j] * G[r, j]
            h += d[j] * G[r, j] * G[r, j]
    else:
        for j in range(count):
            g += q[j] * G[r, j]
            h += d[j] * G[r, j] * G[r, j]
    return g, h


@compiled_fast
def _moved(G, x, count, r, y, at, g, h, linear, pulled, plain, tiny):
    """A better value of coordinate r than ``at``, for the divergence.

    The derivative ``linear + pulled − g`` is concave along the coordinate, with the slope h. So Newton's
    step up does not reach the minimum, nor does the step down from ``f'' ≤ h / (1 + Δ/v)²``, nor, if it is
    ``plain``, the multiplicative update: the longer step is taken. Zero is the minimum if the derivative
    there is not negative. A concave penalty is replaced by its tangent.
    """
    gradient = linear + pulled - g
    new = at
    if gradient < 0.0:
        new = at - gradient / max(h, tiny)
        if plain and linear > 0.0:
            new = max(new, at * g / linear)
    elif at > 0.0 and gradient > 0.0:
        if gradient >= h * at:
            there = linear
            for j in range(count):
                rest = max(y[j] - at * G[r, j], 0.0) + EMPTY_FIT * x[j] + LEAST_FIT
                there -= x[j] * G[r, j] / rest
            if there >= 0.0:
                return 0.0
        new = at * (h * at / (h * at + gradient))
        if plain:
            new = min(new, at * g / linear)
    return new if new >= tiny else 0.0


@functools.cache
def _encoder(cost, slope, version):
    @compiled_fast
    def solve(out, low, high, p, longest, indptr, indices, x, m, other, sums, weights, most, tol):
        """Sweeps, each followed by Newton's step on the positive entries of the code where that is lower."""
        _ = version
        k, tiny = out.shape[1], np.finfo(out.dtype).tiny
        gathered = np.empty((k, longest if len(indptr) else 0))
        G = gathered if len(indptr) else other
        X, M, y = np.empty(longest), np.ones(longest), np.empty(longest)
        q, d = np.empty(longest), np.empty(longest)
        v, moved, total = np.empty(k), np.empty(k), np.empty(k)
        H, room, half, step = np.empty((k, k)), np.empty((k, k)), np.empty(k), np.empty(k)
        for i in range(low, high):
            count, weight = _load(i, p, indptr, indices, x, m, other, gathered, X, M), weights[i]
            _weigh(G, X, M, count, len(m) > 0, sums, total)
            size, every, last = X[:count].sum(), total.sum(), np.inf
            v[:] = size / every if every > tiny else 0.0
            for _ in range(most):
                _fit(G, count, v, y)
                before, change = 0, 0.0
                for r in range(k):
                    g, h = _slopes(G, X, count, r, before, change, r == 0, y, q, d)
                    linear = total[r] + weight * slope(v[r])
                    new = _moved(G, X, count, r, y, v[r], g, h, linear, 0.0, True, tiny)
                    before, change, v[r] = r, new - v[r], new
                value = _newton_system(G, X, M, count, total, v, y, q, d, before, change, half, H, tiny)
                for r in range(k):
                    value += weight * cost(v[r])
                    half[r] += weight * slope(v[r])
                if newton(H, v, half, 8 * k * RIDGE, room, step):
                    go(v, step, moved)
                    _fit(G, count, moved, y)
                    new = _divergence(X, M, count, total, moved, y, tiny)
                    for r in range(k):
                        new += weight * cost(moved[r])
                    if new <= value:
                        value, v[:] = new, moved
                if last - value <= tol * (size + abs(value)):
                    break
                last = value
            out[i] = v

    return solve


@compiled_fast
def _newton_system(G, x, m, count, total, v, y, q, d, last, change, slope, H, tiny):
    """The divergence after a last ``change``; its derivatives, the second ones for positive entries."""
    for r in range(len(v)):
        g, _ = _slopes(G, x, count, r, last, change if r == 0 else 0.0, False, y, q, d)
        slope[r] = total[r] - g
        for s in range(r + 1):
            H[r, s] = 0.0
            if v[r] > 0.0 and v[s] > 0.0:
                for j in range(count):
                    H[r, s] += d[j] * G[r, j] * G[s, j]
            H[s, r] = H[r, s]
    return _divergence(x, m, count, total, v, y, tiny)
