"""What coordinate descent cannot do, in sentences for users."""

from __future__ import annotations

from types import FunctionType

import numpy as np

from lognmf.core.arrays import is_torch
from lognmf.core.data import Data, InMemory
from lognmf.core.problem import Problem
from lognmf.core.terms.laplacian import Laplacian
from lognmf.core.terms.protocol import Penalty

SCALAR_FUNCTIONS = ("cost", "slope", "minimum")  # static methods of `SeparablePenalty`


def refuses(problem: Problem) -> str | None:
    """Why coordinate descent cannot minimise ``problem``; None if it can."""
    fit = problem.fit
    sentence = _refuses_data(problem.data) or _refuses_entries(problem)
    if sentence is not None:
        return sentence
    if not (getattr(fit, "by_residual", False) or getattr(fit, "by_entry", False)):
        return (
            'solver="cd" minimises squared errors and the Kullback-Leibler divergence only; got '
            f'{_name(fit)}: use solver="mu".'
        )
    if problem.data.distributed and any(hasattr(term, "terms") for term in problem.on_V):
        return 'solver="cd" takes no graph of samples that are on workers: use solver="mu", or lam=0.'
    graphs = [term for term in problem.on_V if isinstance(term, Laplacian)]
    on_V = [term for term in problem.on_V if not isinstance(term, Laplacian)]
    sides = [(term, "U") for term in problem.on_U] + [(term, "V") for term in on_V]
    for term, factor in sides:
        sentence = _refuses_penalty(term, factor)
        if sentence is not None:
            return sentence
    if max(len(problem.on_U), len(on_V), len(graphs)) > 1:
        names = ", ".join(_name(term) for term in (*problem.on_U, *problem.on_V))
        return (
            'solver="cd" takes at most one penalty on U, one on V and one graph; '
            f'got {names}: use solver="mu".'
        )
    return None


def _refuses_data(data: Data) -> str | None:
    """Why coordinate descent cannot take the data; None if it can."""
    if data.device is not None:
        return (
            'solver="cd" computes on workers with NumPy: leave device out of on_workers, or use solver="mu".'
        )
    if not isinstance(data.pattern, np.ndarray) and not is_torch(data.pattern):
        return (
            'solver="cd" works on NumPy arrays, SciPy sparse matrices and torch tensors; X is of type '
            f'{type(data.pattern).__name__}: use solver="mu".'
        )
    return None


def _refuses_entries(problem: Problem) -> str | None:
    """Why coordinate descent cannot go through the entries of X one by one, if it has to; None if it can."""
    data, by_residual = problem.data, getattr(problem.fit, "by_residual", False)
    if by_residual:
        return _NO_WEIGHTS if data.weights else None
    if not isinstance(data.pattern, np.ndarray) or not isinstance(data, InMemory):
        return (
            'solver="cd" takes weighted or missing entries and loss="kullback-leibler" only where X is a '
            'NumPy array or a SciPy sparse matrix in memory: use solver="mu".'
        )
    return None


_NO_WEIGHTS = (
    'solver="cd" takes no weighted or missing entries in a robust fit: use solver="mu", or fill them first.'
)


def _refuses_penalty(term: Penalty, factor: str) -> str | None:
    """Why coordinate descent cannot take ``term``; None if it can."""
    # A bound method would need the instance, which compiled code does not have.
    missing = [name for name in SCALAR_FUNCTIONS if not isinstance(getattr(term, name, None), FunctionType)]
    if not missing:
        return None
    return (
        f'solver="cd" needs the static methods {", ".join(SCALAR_FUNCTIONS)} of a penalty; {_name(term)}, '
        f'on {factor}, lacks {", ".join(missing)}: add them, or use solver="mu".'
    )


def _name(term: object) -> str:
    return type(term).__name__
