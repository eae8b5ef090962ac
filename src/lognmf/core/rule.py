"""What a rule works on and what the loop returns: frozen values."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from lognmf.core.arrays import Array, join, namespace, take, to_numpy


@dataclass(frozen=True, slots=True)
class State:
    """A batch of factorisations in progress.

    Parameters
    ----------
    U, V : arrays of shape (p, B, k) and (n, B, k)
        The factors.
    aux : tuple of arrays
        What a rule carries from step to step (``X @ U``, a share, multipliers, …);
        each array has the batch in its axis 1.
    """

    U: Array
    V: Array
    aux: tuple[Array, ...] = ()

    @property
    def batch(self) -> int:
        """Number of settings B."""
        return self.V.shape[1]

    def take(self, index: np.ndarray) -> State:
        """The settings ``index`` of the batch."""
        aux = tuple(take(a, index) for a in self.aux)
        return State(take(self.U, index), take(self.V, index), aux)

    def equals(self, other: State) -> np.ndarray:
        """Whether a setting is the same in both, to the last bit, (B,)."""
        equal = np.ones(self.batch, dtype=bool)
        for mine, theirs in zip((self.U, self.V, *self.aux), (other.U, other.V, *other.aux), strict=True):
            axes = tuple(axis for axis in range(mine.ndim) if axis != 1)
            equal &= to_numpy(namespace(mine).all(mine == theirs, axis=axes))
        return equal

    @staticmethod
    def join(states: list[State]) -> State:
        """Put batches side by side."""
        aux = tuple(join(list(parts)) for parts in zip(*(s.aux for s in states), strict=True))
        return State(join([s.U for s in states]), join([s.V for s in states]), aux)


@dataclass(frozen=True, slots=True)
class Solution:
    """Where the loop ended, for every setting b of the batch.

    Parameters
    ----------
    state : State
        The last factors.
    objective : ndarray of shape (B,)
        Objective of ``state``.
    history : dict of ndarrays
        ``iteration`` (T,), ``seconds`` (T,) and ``objective`` (T, B), where NaN marks
        a setting that had already ended.
    n_iter : ndarray of shape (B,)
        Steps made.
    reason : list of str
        Why each setting ended: "converged", "max_iter" or "callback".
    """

    state: State
    objective: np.ndarray
    history: dict[str, np.ndarray] = field(repr=False)
    n_iter: np.ndarray
    reason: list[str]

    def history_of(self, b: int) -> dict[str, np.ndarray]:
        """The history of setting ``b`` alone, up to its own end."""
        lived = ~np.isnan(self.history["objective"][:, b])
        rows = {name: column[lived] for name, column in self.history.items()}
        return rows | {"objective": rows["objective"][:, b]}
