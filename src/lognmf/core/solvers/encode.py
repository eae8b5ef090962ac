"""Codes ``V`` of samples for a fixed basis ``U``: what `transform` solves.

Plain codes have one minimum. A concave penalty or a robust fit has several: then two more starts and
exchanges of entries look for the best of them.
"""

from __future__ import annotations

import contextlib
from dataclasses import replace
from typing import Any

import numpy as np
from scipy.optimize import nnls

from lognmf.core.arrays import Array, double, like, namespace, to_numpy
from lognmf.core.data import InMemory
from lognmf.core.loop import iterate
from lognmf.core.problem import Problem
from lognmf.core.rule import State
from lognmf.core.solvers.codes import Codes
from lognmf.core.solvers.coordinate.limits import refuses
from lognmf.core.solvers.multiplicative import MultiplicativeCodes
from lognmf.core.terms.l1 import L1

FIRST_STEPS = 2  # steps towards least squares before the penalty counts
MOST_EXCHANGES = 10  # exchanges of a solved code; two or three are usual
MOST_STEPS, TOLERANCE = 500, 1e-14  # steps of a code; the share of its objective that the last one gains
IMPROVED = 1e-6  # codes that lower the objective by less than this share are not better


@np.errstate(
    over="ignore", invalid="ignore"
)  # squares of parts, in float32; the loop refuses what is not finite
def encode(problem: Problem, U: Array) -> Array:
    """Codes (n, k) of the samples of ``problem`` for the basis ``U`` (p, k), each solved to tolerance.

    The terms have one weight per sample. Quadratic fits with at most one penalty, whose coordinates can be
    solved alone, are solved exactly; the divergence by coordinate descent and Newton steps where the data
    allow it; others by multiplicative updates.
    """
    data: Any = problem.data  # a block
    on_V = problem.on_V
    if problem.fit.quadratic and len(on_V) <= 1 and all(hasattr(penalty, "minimise") for penalty in on_V):
        rule, start = Codes.of(problem, U)
        return _told_apart(rule, data, U, best_codes(rule, start).V[0, ...])
    if hasattr(problem.fit, "row_norm"):
        msg = "transform of a robust fit takes at most one penalty on V, and one with a method minimise."
        raise ValueError(msg)
    if not problem.fit.quadratic and refuses(problem) is None:
        from lognmf.core.solvers.coordinate.rowwise import Entries, encoded  # numba takes a while to import

        penalty: Any = on_V[0] if on_V else L1(np.zeros(1))
        return encoded(Entries.of(data), U, penalty)
    gradual = MultiplicativeCodes(data, problem.fit, U[:, None, :], on_V)
    return iterate(gradual, gradual.start(), max_iter=5000, tol=1e-10, eval_every=10).state.V[0, ...]


def _told_apart(rule: Codes, data: InMemory, U: Array, V: Array) -> Array:
    """Codes ``V`` (n, k) of plain least squares, where parts ``U`` (p, k) of any sign are all but dependent.

    Their differences then count, and UᵀU, with the square of U's condition, has lost them. SciPy's active
    sets work with U itself. Nonnegative parts cannot cancel, and need none of it.
    """
    if rule.bounded or rule.penalty is not None or rule.row_norm is not None or rule.gram.ndim > 2:
        return V
    parts = to_numpy(double(U))
    scale = np.linalg.norm(parts, axis=0)
    alive = np.flatnonzero(scale > 0)
    Q, R = np.linalg.qr(parts[:, alive] / scale[alive])
    sizes = np.linalg.svd(R, compute_uv=False)
    if (
        len(sizes) == len(alive)
        and (sizes > float(namespace(U).finfo(U.dtype).eps) ** (1 / 3) * sizes[:1]).all()
    ):
        return V
    samples = to_numpy(double(data.times(like(Q[:, None, :], U))))[:, 0, :]
    codes = to_numpy(double(V))[:, alive] * scale[alive]
    # Where the slope of the error is zero, or pushes a code of zero down, nothing is better.
    slope = (samples - codes @ R.T) @ R
    rounding = 1e-13 * np.linalg.norm(samples, axis=1)[:, None]
    doubtful = ((slope > rounding) | ((codes > 0) & (slope < -rounding))).any(axis=1)
    for i in np.flatnonzero(doubtful):
        with contextlib.suppress(RuntimeError):  # too many steps: what is there is kept
            better, distance = nnls(R, samples[i])
            if distance < np.linalg.norm(samples[i] - R @ codes[i]):
                codes[i] = better
    best = to_numpy(double(V)).copy()
    with np.errstate(over="ignore"):
        codes = codes / scale[alive]
    best[:, alive] = np.where(np.isfinite(codes), codes, best[:, alive])
    return like(best, V)


def best_codes(rule: Codes, state: State) -> State:
    """The codes from this start; where others may be better, the best ones that are found.

    From zeros and from the codes of least squares, sweeps and an exchange lead to two more codes. Better
    ones are solved to tolerance, and the best is exchanged as long as that helps.
    """
    state = _solved(rule, state)
    doubtful = np.flatnonzero(~rule.surely_best(state))
    if not doubtful.size:
        return state
    own, old = rule.take(doubtful), state.take(doubtful)
    least_squares = replace(own, penalty=None, row_norm=None, weight=None)
    dense = iterate(least_squares, old, max_iter=FIRST_STEPS, tol=1e-14, eval_every=FIRST_STEPS).state
    for start in (dense, replace(old, V=0 * old.V)):
        state, _ = _improved(rule, state, doubtful, own.explored(start))
    for _ in range(MOST_EXCHANGES):
        new = rule.take(doubtful).exchanged(state.take(doubtful))
        state, doubtful = _improved(rule, state, doubtful, new)
        if not doubtful.size:
            break
    return state


def _improved(rule: Codes, state: State, index: np.ndarray, new: State) -> tuple[State, np.ndarray]:
    """``state`` with those of the codes ``new`` of its samples ``index`` that are better, solved; which."""
    own = rule.take(index)
    better = np.flatnonzero(to_numpy(own.value(new) < (1 - IMPROVED) * own.value(state.take(index))))
    if not better.size:
        return state, better
    index = index[better]
    return state.replaced(index, _solved(rule.take(index), new.take(better))), index


def _solved(rule: Codes, state: State) -> State:
    """The local minimum that descent from ``state`` leads to.

    A robust fit is the plain one as long as the residual is in its dead zone: a minimum there is one of both.
    """
    plain = replace(rule, row_norm=None, weight=None)
    found = plain.solved(state, MOST_STEPS, TOLERANCE)
    if found is None:
        return _iterated(rule, state)
    outside = np.flatnonzero(to_numpy(rule.kept(found.V, *found.aux) < 1))
    if not outside.size:
        return found
    return found.replaced(outside, _iterated(rule.take(outside), state.take(outside)))


def _iterated(rule: Codes, state: State) -> State:
    return iterate(rule, state, max_iter=MOST_STEPS, tol=TOLERANCE, eval_every=2).state
