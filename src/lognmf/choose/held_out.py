"""Fits of every k with entries held out: paths from many parts to few, all folds as one batch."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.optimize import linear_sum_assignment
from sklearn.base import clone

from lognmf.choose.left_out import Gaps, LeftOut, outlying, without_one
from lognmf.core.arrays import Matrix
from lognmf.core.data import InMemory
from lognmf.core.loop import iterate
from lognmf.core.rule import State
from lognmf.core.threads import threads_for

SHARE = 0.05
"""Share of the entries that a fold holds out."""

MOST_HELD_OUT = 50_000
"""Maximum number of entries that a fold holds out: more make no error more certain."""

RIDGE = 0.2
"""The ridge as a share of the largest singular value of noise as large as the residuals."""

SPARE = 0.15
"""A path begins with at least so many more parts than asked for: what is left after weak parts are taken
away is a better fit than any from a random start."""

RUNGS = (4, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256)
"""Numbers of parts with which paths begin, so that the fit of a k does not depend on what else is asked."""

OUTLIER_PARTS = 16
"""Parts of the fit in which outlying entries are looked for."""

FIRST_ROUNDS, MOST_ROUNDS = 6, 30
"""Rounds of the first fit of a path, each with the ridge for the residuals of the one before, and the most
rounds of the fit for a k that was asked for."""

SETTLED = 0.01
"""Relative change of the residuals at which the rounds of a k end."""

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


def held_out_fits(
    X: Matrix, held_out: np.ndarray, unknown: np.ndarray, ks: Collection[int], seed: int
) -> Iterator[Fitted]:
    """Fits of every k in ``ks``, largest first.

    They run along paths from many parts to few. The same k has the same fit whatever the others are.
    ``held_out`` (B, m) are the entries of each fold, ``unknown`` those that no fold knows or is judged by.
    """
    gaps = Gaps.of([_entries(X, np.concatenate([entries, unknown])) for entries in held_out])
    judges = Gaps.of([_entries(X, entries) for entries in held_out])
    known = X.shape[0] * X.shape[1] - len(unknown) - held_out.shape[1]
    paths: dict[int, list[int]] = {}
    for k in ks:
        paths.setdefault(_rung(k, min(X.shape)), []).append(k)
    for first, members in sorted(paths.items(), reverse=True):
        rng = np.random.default_rng([seed, first])
        state = State(*first_factors(X, first, len(held_out), rng))
        rule = LeftOut(InMemory(X), gaps, np.zeros(len(held_out)))
        for k in range(first, min(members) - 1, -1):
            with threads_for(X, len(held_out) * k):
                if k == first:
                    state = _settled(rule, state, known, FIRST_ROUNDS, STEPS)
                else:
                    state = State(*without_one(state.U, state.V))
                    state = _settled(rule, state, known, 1, STEPS_BETWEEN)
                if k not in members:
                    continue
                # The path goes on from where it is, whatever was asked for on the way.
                fit = _settled(rule, state, known, MOST_ROUNDS, STEPS)
            squares = judges.residuals(fit.U, fit.V).data ** 2
            errors = np.bincount(judges.setting, squares) / held_out.shape[1]
            yield Fitted(k, errors, rule.known_error(fit) / known, fit.U)


def _rung(k: int, most: int) -> int:
    """With how many parts the path to a fit of k parts begins."""
    wanted = math.ceil((1 + SPARE) * k) + 1
    return min(next((rung for rung in RUNGS if rung >= wanted), wanted), most)


def _settled(rule: LeftOut, state: State, known: int, rounds: int, steps: int) -> State:
    """A fit in rounds, with the ridge for the residuals of the round before, until these hardly change."""
    size = np.sqrt(rule.data.shape[0]) + np.sqrt(rule.data.shape[1])
    deviation = np.sqrt(rule.known_error(state) / known)
    for _ in range(rounds):
        rule = replace(rule, ridge=RIDGE * deviation * size)
        state = iterate(rule, state, max_iter=steps, tol=TOL).state
        before, deviation = deviation, np.sqrt(rule.known_error(state) / known)
        if np.all(np.abs(deviation - before) <= SETTLED * before):
            break
    return state


def fits_of_model(
    model: Any, X: Matrix, held_out: np.ndarray, unknown: np.ndarray, ks: Collection[int], seed: int
) -> Iterator[Fitted]:
    """Fits of every k of an estimator that takes missing entries, largest first."""
    dense = X.toarray() if sp.issparse(X) else X
    for k in sorted(ks, reverse=True):
        errors, known, parts = [], [], []
        for fold, entries in enumerate(held_out):
            Y = dense.copy()
            Y.reshape(-1)[np.concatenate([entries, unknown])] = np.nan
            fitted = clone(model).set_params(n_components=k, random_state=seed + fold).fit(Y)
            squares = (dense - fitted.inverse_transform(fitted.embedding_)) ** 2
            errors.append(squares.reshape(-1)[entries].mean())
            known.append(squares[~np.isnan(Y)].mean())
            parts.append(fitted.components_.T)
        yield Fitted(k, np.array(errors), np.array(known), np.stack(parts, axis=1))


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


def outliers(X: Matrix, missing: np.ndarray | None, rng: np.random.Generator) -> np.ndarray:
    """Entries, by their place in X read by rows, that no few parts explain; none if most of X is zero."""
    if sp.issparse(X) or np.mean(X == 0) > MOSTLY_ZERO:
        return np.zeros(0, dtype=int)
    k = min(OUTLIER_PARTS, *X.shape)
    U, V = first_factors(X, k, 1, rng)
    with threads_for(X, k):
        found = outlying(X, None if missing is None else ~missing, U[:, 0, :], V[:, 0, :], RIDGE)
    return np.flatnonzero(found)


def first_factors(X: Matrix, k: int, batch: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Uniform random factors whose product has the mean of X."""
    scale = 2 * np.sqrt(X.mean() / k)
    return tuple(scale * rng.random((size, batch, k)) for size in X.shape[::-1])
