"""The objective: a data fit plus penalties on either factor."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from lognmf.core.arrays import Array, namespace, total
from lognmf.core.data import Data
from lognmf.core.terms.protocol import DataFit, Penalty


@dataclass(frozen=True)
class Problem:
    """Data, and a sum of terms: every model of the paper that has no rule of its own."""

    data: Data
    fit: DataFit  # how far ``V Uᵀ`` is from the data
    on_U: tuple[Penalty, ...] = ()
    on_V: tuple[Penalty, ...] = ()  # the graph is one of these

    def value(self, U: Array, V: Array, XU: Array) -> Array:
        """Objective of every setting, shape (B,), in float64; ``XU`` is ``X @ U``."""
        value = self.total(self.fit.row_values, U, V, XU)
        for penalties, F in ((self.on_U, U), (self.on_V, V)):
            for penalty in penalties:
                value = value + penalty.value(F)
        return value

    def squared_error(self, U: Array, V: Array, XU: Array) -> Array:
        """``‖X − V Uᵀ‖²_F`` of every setting, shape (B,), in float64; weighted if the entries of X are."""
        return self.total(self.fit.squared_residuals, U, V, XU)

    def squared_residuals(self, U: Array, V: Array, XU: Array) -> Array:
        """``‖x_i − U v_i‖²`` of every sample and setting, (n, B)."""
        blocks = [
            self.fit.squared_residuals(block, U, V[rows, ...], XU[rows, ...])
            for rows, block in self.data.blocks()
        ]
        return blocks[0] if len(blocks) == 1 else namespace(U).concat(blocks, axis=0)

    def total(self, of_rows: Callable[..., Array], U: Array, V: Array, XU: Array) -> Array:
        """Sum over all samples of a function of blocks, (B,)."""
        parts = [
            total(of_rows(block, U, V[rows, ...], XU[rows, ...]), axis=0)
            for rows, block in self.data.blocks()
        ]
        return sum(parts[1:], parts[0])

    def take(self, index: np.ndarray) -> Problem:
        """The problem of the settings ``index`` of the batch."""
        return replace(
            self,
            fit=self.fit.take(index),
            on_U=tuple(penalty.take(index) for penalty in self.on_U),
            on_V=tuple(penalty.take(index) for penalty in self.on_V),
        )
