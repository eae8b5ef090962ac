"""Rules that minimise a `Problem`. A new one is one file here and one line below."""

from collections.abc import Callable
from typing import Any

from lognmf.core.solvers.coordinate.rule import CoordinateDescent
from lognmf.core.solvers.encode import Codes
from lognmf.core.solvers.multiplicative import Multiplicative
from lognmf.core.solvers.watched import Watched

SOLVERS: dict[str, Callable[..., Any]] = {"mu": Multiplicative, "cd": CoordinateDescent.of}
"""Solvers by the estimators' ``solver``: ``(problem, unit_components=False) -> rule``."""

__all__ = ["SOLVERS", "Codes", "CoordinateDescent", "Multiplicative", "Watched"]
