"""The terms an objective is made of. A new one is one file here and one line below."""

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from lognmf.core.arrays import Array, to_numpy
from lognmf.core.data import Data
from lognmf.core.terms.frobenius import Frobenius
from lognmf.core.terms.kullback_leibler import KullbackLeibler
from lognmf.core.terms.l1 import L1
from lognmf.core.terms.laplacian import Laplacian
from lognmf.core.terms.log import Log
from lognmf.core.terms.protocol import DataFit, Penalty, RowNorm, SeparablePenalty
from lognmf.core.terms.robust import Robust
from lognmf.core.terms.row_norms import L21, L2Log
from lognmf.core.terms.weighted import Weighted

PENALTIES: dict[str, Callable[[Array], SeparablePenalty]] = {"log": Log, "l1": L1}
"""Sparsity penalties on a factor, by the estimators' ``penalty``."""

ROW_NORMS: dict[str, Callable[[], RowNorm]] = {"l2log": L2Log, "l21": L21}
"""Norms of the outlier part, by the estimators' ``row_norm``."""


LOSSES: dict[str, Callable[[Data], DataFit]] = {
    "frobenius": lambda data: Weighted() if data.weights else Frobenius(),
    "kullback-leibler": lambda _: KullbackLeibler(),
}
"""Data fits for data with or without weights of their entries, by the estimators' ``loss``."""


def unless_zero(weight: Array, make: Callable[[Array], Penalty]) -> tuple[Penalty, ...]:
    """The penalty for a batch of weights (B,), or none where all of them are zero."""
    return (make(weight),) if np.any(to_numpy(weight)) else ()


def graph_penalty(W: Any, weight: Array) -> tuple[Penalty, ...]:
    """The Laplacian of the graph ``W``, or none without a graph or a weight.

    A graph whose rows are on workers brings its own ``term``.
    """
    make = W.term if hasattr(W, "term") else functools.partial(Laplacian.of, W)
    return () if W is None else unless_zero(weight, make)


__all__ = [
    "L1",
    "L21",
    "LOSSES",
    "PENALTIES",
    "ROW_NORMS",
    "DataFit",
    "Frobenius",
    "KullbackLeibler",
    "L2Log",
    "Laplacian",
    "Log",
    "Penalty",
    "Robust",
    "RowNorm",
    "SeparablePenalty",
    "Weighted",
    "graph_penalty",
    "unless_zero",
]
