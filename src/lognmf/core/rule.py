"""The contract of a rule, what it works on, and what the loop returns."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import Any, Protocol, Self

import numpy as np

from lognmf.core.arrays import Array, join, namespace, take, to_numpy, total
from lognmf.core.data import InMemory
from lognmf.core.rows import Rows, distributed
from lognmf.core.terms.frobenius import squared_residuals


@dataclass(frozen=True, slots=True)
class State:
    """A batch of factorisations in progress."""

    U: Array  # (p, B, k)
    V: Rows  # (n, B, k)
    aux: tuple[Rows, ...] = ()  # what a rule carries from step to step, each with the batch in axis 1

    @property
    def batch(self) -> int:
        """Number of settings B."""
        return self.U.shape[1]

    def take(self, index: np.ndarray) -> State:
        """The settings ``index`` of the batch; no copy where these are all of them."""
        if len(index) == self.batch and (index == np.arange(self.batch)).all():
            return self
        aux = tuple(take(a, index) for a in self.aux)
        return State(take(self.U, index), take(self.V, index), aux)

    def replaced(self, index: np.ndarray, new: State) -> State:
        """The batch with its settings ``index`` replaced by those of ``new``."""
        kept = np.ones(self.batch, dtype=bool)
        kept[index] = False
        others = np.flatnonzero(kept)
        if not others.size:  # no copy
            return new.take(np.argsort(index))
        return State.join([self.take(others), new]).take(np.argsort(np.concatenate([others, index])))

    def equals(self, other: State) -> np.ndarray:
        """Whether a setting is the same in both, to the last bit, (B,)."""
        equal = np.ones(self.batch, dtype=bool)
        for mine, theirs in zip((self.U, self.V, *self.aux), (other.U, other.V, *other.aux), strict=True):
            if distributed(mine) is not None:
                continue  # sums over these rows are among the others
            axes = tuple(axis for axis in range(mine.ndim) if axis != 1)
            equal &= to_numpy(namespace(mine).all(mine == theirs, axis=axes))
        return equal

    @staticmethod
    def join(states: list[State]) -> State:
        """Put batches side by side."""
        aux = tuple(join(list(parts)) for parts in zip(*(s.aux for s in states), strict=True))
        return State(join([s.U for s in states]), join([s.V for s in states]), aux)


class Steps(Protocol):
    """What the loop needs of a rule: one iteration of a method, for a whole batch of settings at once.

    A rule is a frozen value: it holds the problem and no progress. One whose objective is not of second
    degree in X, apart from weights, says so with ``degree``. One whose objective may rise on its way,
    or that has a better test of convergence than its decrease, has also ``settled(state, tol)`` (B,).
    """

    def step(self, state: State) -> State:
        """Make one iteration; the given state stays as it is."""

    def value(self, state: State) -> Array:
        """Objective of every setting, shape (B,), float64."""

    def take(self, index: np.ndarray) -> Self:
        """The rule for the settings ``index`` of the batch."""


class Rule(Steps, Protocol):
    """What a model needs of a rule: also to start it, and to read its state."""

    def start(self, U: Array, V: Array) -> State:
        """The state from which to step, given first factors; they stay as they are."""

    def factors(self, state: State) -> tuple[Array, Array, Array]:
        """U (p, B, k), V (n, B, k) and ``X @ U`` (n, B, k) of a state."""

    def squared_error(self, state: State) -> Array:
        """``‖X − V Uᵀ‖²_F`` of every setting, shape (B,), float64; weighted if the entries of X are."""


@dataclass(frozen=True, slots=True)
class Solution:
    """Where the loop ended, for every setting b of the batch."""

    state: State  # the last factors
    objective: np.ndarray  # of ``state``, (B,)
    # iteration (T,), seconds (T,) and objective (T, B), NaN where a setting had already ended
    history: dict[str, np.ndarray] = field(repr=False)
    n_iter: np.ndarray  # steps made, (B,)
    reason: list[str]  # why each setting ended: "converged", "max_iter" or "callback"

    def take(self, index: np.ndarray) -> Solution:
        """The settings ``index`` of the batch."""
        history = self.history | {"objective": self.history["objective"][:, index]}
        reason = [self.reason[b] for b in index]
        return Solution(self.state.take(index), self.objective[index], history, self.n_iter[index], reason)

    def history_of(self, b: int) -> dict[str, np.ndarray]:
        """The history of setting ``b`` alone, up to its own end."""
        lived = ~np.isnan(self.history["objective"][:, b])
        rows: dict[str, Any] = {name: column[lived] for name, column in self.history.items()}
        return rows | {"objective": rows["objective"][:, b]}


@dataclass(frozen=True)
class LeastSquaresRule(ABC):
    """A rule without weights whose objective is the plain data fit."""

    data: InMemory

    @abstractmethod
    def start(self, U: Array, V: Array) -> State:
        """The state from which to step."""

    @abstractmethod
    def step(self, state: State) -> State:
        """Make one iteration; the given state stays as it is."""

    @abstractmethod
    def factors(self, state: State) -> tuple[Array, Array, Array]:
        """U, V and ``X @ U`` of a state."""

    def value(self, state: State) -> Array:
        """``‖X − V Uᵀ‖²_F`` of every setting, shape (B,), float64."""
        return total(squared_residuals(self.data, *self.factors(state)), axis=0)

    def squared_error(self, state: State) -> Array:
        """The same: here the objective is the error."""
        return self.value(state)

    def take(self, index: np.ndarray) -> Self:
        """The rule itself: no setting has anything of its own."""
        return self
