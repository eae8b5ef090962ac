"""Fits of every k with entries held out: one path from many parts to few, all folds as one batch."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator
from dataclasses import dataclass, replace

import numpy as np
import scipy.sparse as sp
from scipy.optimize import linear_sum_assignment

from lognmf.core.arrays import Matrix
from lognmf.core.data import InMemory
from lognmf.core.loop import iterate
from lognmf.core.rule import State
from lognmf.core.solvers.left_out import Gaps, LeftOut, outlying, without_one
from lognmf.core.threads import threads_for

SHARE = 0.05
"""Share of the entries that a fold holds out."""

MOST_HELD_OUT = 200_000
"""Maximum number of entries that a fold holds out: more make no error more certain."""

RIDGE = 0.2
"""The ridge as a share of the largest singular value of noise as large as the residuals."""

SPARE = 0.15
"""The path begins with so many more parts than asked for: what is left after weak parts are taken away is
a better fit than any from a random start."""

FIRST_ROUNDS = 6
"""Rounds of the first fit, each with the ridge for the residuals of the one before; later fits have one."""

STEPS, STEPS_BETWEEN = 20, 5
"""Maximum number of steps of a round: for a k that was asked for, and for one on the way."""

TOL = 1e-6
"""Relative decrease of the objective per step at which a round ends."""

MOSTLY_ZERO = 0.5
"""With more zeros than this share, large entries are what the data consist of: none is an outlier."""


@dataclass(frozen=True, eq=False)
class Fitted:
    """The fits of one k, one for each of the B folds."""

    k: int
    held_out: np.ndarray  # mean squared error of the held-out entries, (B,)
    known: np.ndarray  # mean squared error of the known entries, (B,)
    U: np.ndarray  # (p, B, k)

    @property
    def stability(self) -> float:
        """Mean cosine of the parts of two folds, matched one to one so that it is largest."""
        norms = np.linalg.norm(self.U, axis=0)
        unit = self.U / np.where(norms > 0, norms, 1.0)
        folds = range(unit.shape[1])
        cosines = [unit[:, a, :].T @ unit[:, b, :] for a in folds for b in folds if a < b]
        return float(np.mean([C[linear_sum_assignment(C, maximize=True)].mean() for C in cosines]))


def held_out_path(
    X: Matrix, held_out: np.ndarray, unknown: np.ndarray, ks: Collection[int], rng: np.random.Generator
) -> Iterator[Fitted]:
    """Fits of every k in ``ks``, largest first, each from the one before less a part.

    ``held_out`` (B, m) are the entries of each fold, ``unknown`` those that no fold knows or is judged by.
    """
    n, p = X.shape
    B, known = len(held_out), n * p - len(unknown) - held_out.shape[1]
    gaps = Gaps.of([_entries(X, np.concatenate([own, unknown])) for own in held_out])
    judges = Gaps.of([_entries(X, own) for own in held_out])
    first = min(math.ceil((1 + SPARE) * max(ks)) + 1, n, p)
    state = State(*first_factors(X, first, B, rng))
    rule = LeftOut(InMemory(X), gaps, np.zeros(B))
    for k in range(first, min(ks) - 1, -1):
        if k < first:
            state = State(*without_one(state.U, state.V))
        steps = STEPS if k in ks or k == first else STEPS_BETWEEN
        with threads_for(X, B * k):
            for _ in range(FIRST_ROUNDS if k == first else 1):
                deviation = np.sqrt(rule.known_error(state) / known)
                rule = replace(rule, ridge=RIDGE * deviation * (np.sqrt(n) + np.sqrt(p)))
                state = iterate(rule, state, max_iter=steps, tol=TOL).state
        if k in ks:
            squares = judges.residuals(state.U, state.V).data ** 2
            errors = np.bincount(judges.setting, squares) / held_out.shape[1]
            yield Fitted(k, errors, rule.known_error(state) / known, state.U)


def draw_entries(
    shape: tuple[int, int], unknown: np.ndarray, n_folds: int, rng: np.random.Generator
) -> np.ndarray:
    """Disjoint random sets of entries (n_folds, m), by their place in X read by rows; none ``unknown``."""
    numbers = shape[0] * shape[1]
    size = min(MOST_HELD_OUT, max(1, int(SHARE * (numbers - len(unknown)))))
    pool = np.setdiff1d(np.arange(numbers), unknown) if unknown.size else numbers
    return rng.choice(pool, (n_folds, size), replace=False)


def _entries(X: Matrix, entries: np.ndarray) -> sp.csr_array:
    """A matrix that stores ``X`` at the ``entries``, zeros too."""
    rows, columns = np.divmod(entries, X.shape[1])
    values = np.asarray(X[rows, columns], dtype=np.float64).reshape(-1)
    return sp.csr_array((values, (rows, columns)), shape=X.shape)


def outliers(X: Matrix, missing: np.ndarray | None, k: int, rng: np.random.Generator) -> np.ndarray:
    """Entries, by their place in X read by rows, that k parts do not explain; none if most of X is zero."""
    if sp.issparse(X) or np.mean(X == 0) > MOSTLY_ZERO:
        return np.zeros(0, dtype=int)
    U, V = first_factors(X, k, 1, rng)
    with threads_for(X, k):
        found = outlying(X, None if missing is None else ~missing, U[:, 0, :], V[:, 0, :], RIDGE)
    return np.flatnonzero(found)


def first_factors(X: Matrix, k: int, batch: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Uniform random factors whose product has the mean of X."""
    scale = 2 * np.sqrt(X.mean() / k)
    return tuple(scale * rng.random((size, batch, k)) for size in X.shape[::-1])
