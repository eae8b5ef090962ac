"""Rules that minimise a `Problem`. A new one is one file here and one line below."""

from collections.abc import Callable
from typing import Any

from lognmf.core.solvers.codes import Codes
from lognmf.core.solvers.fast import Fast
from lognmf.core.solvers.gauge import GAUGES
from lognmf.core.solvers.multiplicative import Multiplicative
from lognmf.core.solvers.watched import Watched

SOLVERS: dict[str, Callable[..., Any]] = {"mu": Multiplicative, "fast": Fast.of}
"""Solvers by the estimators' ``solver``: ``(problem, gauge="free") -> rule``."""

__all__ = ["GAUGES", "SOLVERS", "Codes", "Fast", "Multiplicative", "Watched"]
