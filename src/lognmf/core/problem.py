"""The objective: a data fit plus penalties on either factor."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from lognmf.core.arrays import Array
from lognmf.core.terms.protocol import DataFit, Penalty


@dataclass(frozen=True)
class Problem:
    """Sum of a data fit and penalties; every model of the paper is one of these.

    Parameters
    ----------
    fit : DataFit
        How far ``V Uᵀ`` is from the data.
    on_U, on_V : tuples of Penalty
        What is asked of each factor; the graph is a penalty on ``V``.
    """

    fit: DataFit
    on_U: tuple[Penalty, ...] = ()
    on_V: tuple[Penalty, ...] = ()

    def value(self, U: Array, V: Array, XU: Array) -> Array:
        """Objective of every setting, shape (B,), in float64; ``XU`` is ``X @ U``."""
        value = self.fit.value(U, V, XU)
        for penalties, F in ((self.on_U, U), (self.on_V, V)):
            for penalty in penalties:
                value = value + penalty.value(F)
        return value

    def take(self, index: np.ndarray) -> Problem:
        """The problem of the settings ``index`` of the batch."""
        return Problem(
            self.fit.take(index),
            tuple(penalty.take(index) for penalty in self.on_U),
            tuple(penalty.take(index) for penalty in self.on_V),
        )
