"""The objective: a data fit plus penalties on either factor."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from lognmf.core.arrays import Array, total
from lognmf.core.data import Data, InMemory
from lognmf.core.rows import Rows, penalty_value
from lognmf.core.terms.protocol import DataFit, Penalty


@dataclass(frozen=True)
class Problem:
    """Data, and a sum of terms: every model of the paper that has no rule of its own."""

    data: Data
    fit: DataFit  # how far ``V Uᵀ`` is from the data
    on_U: tuple[Penalty, ...] = ()
    on_V: tuple[Penalty, ...] = ()  # the graph is one of these

    def value(self, U: Array, V: Rows, XU: Rows) -> Array:
        """Objective of every setting, shape (B,), in float64; ``XU`` is ``X @ U``."""
        value = self.total(row_values, U, V, XU)
        for penalty in self.on_U:
            value = value + penalty.value(U)
        for penalty in self.on_V:
            value = value + penalty_value(penalty, V)
        return value

    def squared_error(self, U: Array, V: Rows, XU: Rows) -> Array:
        """``‖X − V Uᵀ‖²_F`` of every setting, shape (B,), in float64; weighted if the entries of X are."""
        return self.total(squared_residuals, U, V, XU)

    def squared_residuals(self, U: Array, V: Rows, XU: Rows) -> Rows:
        """``‖x_i − U v_i‖²`` of every sample and setting, (n, B)."""
        return self.data.map_rows(_of_rows, V, XU, shared=(self.fit, squared_residuals, U))[0][0]

    def total(self, of_rows: OfFit, U: Array, V: Rows, XU: Rows) -> Array:
        """Sum over all samples of a function of the data fit and some rows, (B,)."""
        return self.data.map_rows(_total, V, XU, shared=(self.fit, of_rows, U))[1][0]

    def take(self, index: np.ndarray) -> Problem:
        """The problem of the settings ``index`` of the batch."""
        return replace(
            self,
            fit=self.fit.take(index),
            on_U=tuple(penalty.take(index) for penalty in self.on_U),
            on_V=tuple(penalty.take(index) for penalty in self.on_V),
        )


OfFit = Callable[[DataFit, InMemory, Array, Array, Array], Array]
"""``(fit, block, U, V, XU) -> (rows, B)``."""


def row_values(fit: DataFit, block: InMemory, U: Array, V: Array, XU: Array) -> Array:
    """The data term of every sample."""
    return fit.row_values(block, U, V, XU)


def squared_residuals(fit: DataFit, block: InMemory, U: Array, V: Array, XU: Array) -> Array:
    """``‖x_i − U v_i‖²`` of every sample."""
    return fit.squared_residuals(block, U, V, XU)


def _of_rows(
    block: InMemory, V: Array, XU: Array, fit: DataFit, of_rows: OfFit, U: Array
) -> tuple[tuple[Array], tuple[()]]:
    return (of_rows(fit, block, U, V, XU),), ()


def _total(
    block: InMemory, V: Array, XU: Array, fit: DataFit, of_rows: OfFit, U: Array
) -> tuple[tuple[()], tuple[Array]]:
    return (), (total(of_rows(fit, block, U, V, XU), axis=0),)
