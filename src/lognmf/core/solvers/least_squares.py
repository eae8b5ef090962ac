"""What rules of their own share when they minimise ``‖X − V Uᵀ‖²_F``."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar, Self

import numpy as np

from lognmf.core.arrays import Array, total
from lognmf.core.data import InMemory
from lognmf.core.rule import State
from lognmf.core.terms.frobenius import squared_residuals


@dataclass(frozen=True)
class LeastSquaresRule(ABC):
    """A rule without weights whose objective is the plain data fit."""

    data: InMemory

    by_sample: ClassVar[int] = 1

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
