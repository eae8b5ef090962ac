"""Rules that minimise a `Problem`. A new one is one file here and one line below."""

from lognmf.core.solvers.codes import Codes
from lognmf.core.solvers.multiplicative import Multiplicative
from lognmf.core.solvers.watched import Watched

SOLVERS = {"mu": Multiplicative}
"""Solvers by the estimators' ``solver``."""

__all__ = ["SOLVERS", "Codes", "Multiplicative", "Watched"]
