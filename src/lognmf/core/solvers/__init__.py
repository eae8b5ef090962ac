"""Rules that minimise a `Problem`. A new one is one file here and one line below."""

from typing import Any

from lognmf.core.solvers.coordinate.rule import CoordinateDescent
from lognmf.core.solvers.encode import encode
from lognmf.core.solvers.multiplicative import Multiplicative

SOLVERS: dict[str, Any] = {"mu": Multiplicative, "cd": CoordinateDescent}
"""Solvers by the estimators' ``solver``: rules with ``of(problem, unit_components=False)`` and
``refuses(problem)``, the reason why one cannot minimise a problem, or None."""

__all__ = ["SOLVERS", "CoordinateDescent", "Multiplicative", "encode"]
