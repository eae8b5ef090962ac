"""Fits of every k with entries held out: one path from many parts to few, all folds as one batch."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass, replace

import numpy as np
import scipy.sparse as sp
from scipy.optimize import linear_sum_assignment

from lognmf.core.arrays import Matrix
from lognmf.core.data import InMemory
from lognmf.core.loop import iterate
from lognmf.core.parallel import threads_for
from lognmf.core.rule import State
from lognmf.core.solvers.left_out import LeftOut, outlying, without_one

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
"""With more zeros than this share, large entries are what the data consist of: none is taken for an outlier."""


@dataclass(frozen=True, eq=False)
class Fold:
    """Entries that a fold does not know, as X at them (n, p), and which of them it is judged by."""

    gaps: sp.csr_array
    judged: np.ndarray


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
    X: Matrix, folds: list[Fold], ks: Collection[int], rng: np.random.Generator
) -> Iterator[Fitted]:
    """Fits of every k in ``ks``, largest first, each from the one before less a part."""
    n, p = X.shape
    data, B = InMemory(X), len(folds)
    first = min(int(np.ceil((1 + SPARE) * max(ks))) + 1, n, p)
    state = State(*first_factors(X, first, B, rng))
    rule = LeftOut(data, tuple(fold.gaps for fold in folds), np.zeros(B))
    known = np.array([n * p - fold.gaps.nnz for fold in folds])
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
                residuals = rule.residuals(state)
                errors = [np.mean(r[fold.judged] ** 2) for r, fold in zip(residuals, folds, strict=True)]
                yield Fitted(k, np.array(errors), rule.known_error(state) / known, state.U)


def make_folds(X: Matrix, unknown: np.ndarray, n_folds: int, rng: np.random.Generator) -> list[Fold]:
    """Disjoint random sets of entries; those in ``unknown``, by their place in X read by rows, in none."""
    numbers = X.shape[0] * X.shape[1]
    size = min(MOST_HELD_OUT, max(1, round(SHARE * (numbers - len(unknown)))))
    if unknown.size:
        entries = rng.choice(np.setdiff1d(np.arange(numbers), unknown), n_folds * size, replace=False)
    else:
        entries = rng.choice(numbers, n_folds * size, replace=False)
    return [_fold(X, held_out, unknown) for held_out in np.split(entries, n_folds)]


def _fold(X: Matrix, held_out: np.ndarray, unknown: np.ndarray) -> Fold:
    """The fold that does not know the entries ``held_out`` and ``unknown``."""
    n, p = X.shape
    entries = np.union1d(held_out, unknown)
    rows, columns = np.divmod(entries, p)
    indptr = np.concatenate([[0], np.cumsum(np.bincount(rows, minlength=n))])
    values = np.asarray(X[rows, columns], dtype=np.float64).reshape(-1)
    return Fold(sp.csr_array((values, columns, indptr), shape=(n, p)), np.isin(entries, held_out))


def outliers(X: Matrix, missing: np.ndarray | None, k: int, rng: np.random.Generator) -> np.ndarray:
    """Entries, by their place in X read by rows, that k parts do not explain; none where most of X is zero."""
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
