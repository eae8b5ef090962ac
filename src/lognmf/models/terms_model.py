"""Models whose objective is a sum of terms: one of the solvers minimises it."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from typing import Any, Literal

import scipy.sparse as sp

from lognmf.core.arrays import Array, like
from lognmf.core.data import InMemory
from lognmf.core.problem import Problem
from lognmf.core.solvers import SOLVERS
from lognmf.models.basis_and_codes import BasisAndCodesModel

Solver = Literal["mu", "cd"]
Loss = Literal["frobenius", "kullback-leibler"]
PenaltyName = Literal["log", "l1"]
RowNormName = Literal["l2log", "l21"]

SHORT = 30
"""Maximum number of iterations of a gradual solver from the spectral start (docs/defaults.md)."""


class TermsModel(BasisAndCodesModel):
    """A model whose objective is a sum of terms (`_problem`), minimised by any of the solvers."""

    solver: str

    @abstractmethod
    def _problem(self, data: InMemory, W: sp.csr_array | None, weights: Mapping[str, Array]) -> Problem:
        """The objective for a batch of weights (B,)."""

    def _rule(self, data: InMemory, W: sp.csr_array | None, weights: Mapping[str, Array]) -> Any:
        options = {"unit_components": self.unit_components} if hasattr(self, "unit_components") else {}
        return SOLVERS[self.solver].of(self._problem(data, W, weights), **options)

    def _code_problem(self, data: InMemory, weights: Mapping[str, Array]) -> Problem:
        return self._problem(data, None, weights)

    def _refuses(self, data: InMemory) -> str | None:
        weights = {name: like([1.0], data.pattern) for name in self._weights}
        return SOLVERS[self.solver].refuses(self._problem(data, None, weights))

    def _iteration_limit(self, *, drawn: bool = True) -> int:
        # The spectral start separates the clusters; every gradual step improves the fit and blurs them.
        gradual = drawn and self.init == "spectral" and SOLVERS[self.solver].gradual
        return SHORT if self.max_iter is None and gradual else super()._iteration_limit(drawn=drawn)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        solver = SOLVERS.get(self.solver) if isinstance(self.solver, str) else None
        tags.input_tags.allow_nan = self._missing and getattr(solver, "takes_missing", False)
        return tags
