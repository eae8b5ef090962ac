"""Codes of one sample after another, compiled by numba: sweeps, and exact steps on the positive entries."""

# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations

import functools
from collections.abc import Callable
from math import sqrt
from typing import Any

import numpy as np

from lognmf.core.compiling import compiled_fast, inlined


@functools.cache
def solver(cost, slope, minimum) -> Callable[..., Any]:
    """The loop for a penalty with these scalar functions."""
    return _solver(cost, slope, minimum, inlined(cost, slope, minimum))


def _solver(cost, slope, minimum, version):
    @compiled_fast
    def solve(G, A, squares, kept, weight, bounded, eps, tiny, tol, max_iter, out, low, high):
        """Codes where two steps gain at most 2 ``tol``, from ``out`` (n, k), for samples low to high.

        The function of a code v ≥ 0 is ``kept (squares − 2 a·v + vᵀGv) + weight · Σ φ(v)``; ``G`` has one
        matrix for all samples, (1, k, k), or one for each. A step is a sweep, which finds out which entries
        are positive; with strongly correlated parts it is slow from there on, so exact steps on these follow.
        The result is False if a value is not finite.
        """
        _ = version
        k = A.shape[1]
        H, a, v, moved = np.empty((k, k)), np.empty(k), np.empty(k), np.empty(k)
        pull, half, step, room = np.empty(k), np.empty(k), np.empty(k), np.empty((k, k))
        for i in range(low, high):
            share = kept[i]
            H[:] = share * G[i if G.shape[0] > 1 else 0]
            a[:], v[:] = share * A[i], out[i]
            price, size = float(weight[i]), share * squares[i]
            last = _fit(H, a, v, size, pull)
            for r in range(k):
                last += price * cost(v[r])
            for done in range(1, max_iter + 1):
                for r in range(k):  # a sweep: minimise over one coordinate after another
                    own, at = H[r, r], v[r]
                    best = minimum(own + tiny, at * own - _pull(H, a, v, r), price, at)
                    if bounded:
                        best = min(best, a[r] / (own + tiny))
                    v[r] = best if best > 0.0 else 0.0
                value = _fit(H, a, v, size, pull)
                for r in range(k):
                    value += price * cost(v[r])
                settled = False
                for _ in range(k):  # exact steps on the positive entries, until none becomes 0 on the way
                    for r in range(k):
                        half[r] = pull[r] + 0.5 * price * slope(v[r])
                    if not newton(H, v, half, 8 * k * eps, room, step):
                        break
                    settled = go(v, step, moved)
                    new = _fit(H, a, moved, size, pull)
                    for r in range(k):
                        new += price * cost(moved[r])
                    if not new <= value + 4 * eps * size:  # spoilt by rounding: parts are nearly the same
                        settled = False
                        break
                    value, v[:] = new, moved
                    if settled:
                        break
                if settled and price == 0.0 and _is_least(v, pull):
                    break
                if done % 2 == 0:
                    if last - value <= 2 * tol * abs(last):
                        break
                    last = value
            if not np.isfinite(value):
                return False
            out[i] = v
        return True

    return solve


@compiled_fast
def _pull(H, a, v, r):
    """Entry r of ``Hv − a``, half the slope of the fit."""
    total = -a[r]
    for q in range(v.shape[0]):
        total += H[r, q] * v[q]
    return total


@compiled_fast
def _fit(H, a, v, size, pull):
    """``size − 2 a·v + vᵀHv``, not below 0; ``pull`` becomes ``Hv − a``."""
    for r in range(v.shape[0]):
        pull[r] = _pull(H, a, v, r)
        size += v[r] * (pull[r] - a[r])
    return max(size, 0.0)


@compiled_fast
def newton(H, v, half, little, L, step):
    """``−H⁻¹ half`` on the positive entries of v, 0 on the others, by Cholesky; False if there is none.

    H is scaled to a unit diagonal, and ``little`` is added there: parts may be the same.
    """
    k, m = v.shape[0], 0
    free, scale, y = np.empty(k, np.int64), np.empty(k), np.empty(k)
    for r in range(k):
        step[r] = 0.0
        if v[r] > 0.0 and H[r, r] > 0.0:
            free[m], scale[m], m = r, 1.0 / sqrt(H[r, r]), m + 1
    for r in range(m):
        for q in range(r + 1):
            entry = H[free[r], free[q]] * scale[r] * scale[q] + (little if q == r else 0.0)
            for s in range(q):
                entry -= L[r, s] * L[q, s]
            if q < r:
                L[r, q] = entry / L[q, q]
            elif entry > 0.0:
                L[r, r] = sqrt(entry)
            else:
                return False
        y[r] = scale[r] * half[free[r]]
        for s in range(r):
            y[r] -= L[r, s] * y[s]
        y[r] /= L[r, r]
    for r in range(m - 1, -1, -1):
        for s in range(r + 1, m):
            y[r] -= L[s, r] * y[s]
        y[r] /= L[r, r]
        step[free[r]] = -scale[r] * y[r]
    return m > 0


@compiled_fast
def go(v, step, moved):
    """``v + t · step`` with the largest t ≤ 1 that keeps it nonnegative; whether t = 1.

    The entry that stops it becomes 0.
    """
    t, k = 1.0, v.shape[0]
    for r in range(k):
        if -step[r] > v[r]:
            t = min(t, v[r] / -step[r])
    for r in range(k):
        stops = -step[r] > v[r] and v[r] / -step[r] <= t
        moved[r] = 0.0 if stops else max(v[r] + t * step[r], 0.0)
    return t == 1.0


@compiled_fast
def _is_least(v, pull):
    """Whether plain codes, solved on the positive entries, would not gain from any other."""
    return not ((v == 0.0) & (pull < 0.0)).any()
