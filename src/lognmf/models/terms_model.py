"""Models whose objective is a sum of terms: one of the solvers minimises it."""

from __future__ import annotations

from abc import abstractmethod
from collections import ChainMap
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Literal

import scipy.sparse as sp

from lognmf.core.arrays import Array, like, to_numpy
from lognmf.core.data import Data, InMemory
from lognmf.core.problem import Problem
from lognmf.core.solvers import SOLVERS
from lognmf.models.basis_and_codes import BasisAndCodesModel
from lognmf.models.on_workers import Remote, RemoteMultiplicative
from lognmf.models.weights import AUTO

Solver = Literal["auto", "mu", "cd"]
Loss = Literal["frobenius", "kullback-leibler"]
PenaltyName = Literal["log", "l1"]
RowNormName = Literal["l2log", "l21"]


PREFERRED = ("cd", "mu")
"""The solvers in the order in which ``solver="auto"`` tries them."""

SOLVER_CHOICES: Mapping[str, Any] = ChainMap({AUTO: None}, SOLVERS)
"""What the parameter ``solver`` may be."""


class TermsModel(BasisAndCodesModel):
    """A model whose objective is a sum of terms (`_problem`), minimised by any of the solvers."""

    solver: str
    _blocks = True

    @abstractmethod
    def _problem(self, data: Data, W: sp.csr_array | None, weights: Mapping[str, Array]) -> Problem:
        """The objective for a batch of weights (B,)."""

    def _rule(self, data: Data, W: Any, weights: Mapping[str, Array]) -> Any:
        options = {"unit_components": self.unit_components} if hasattr(self, "unit_components") else {}
        if isinstance(data, Remote):
            problem = self._problem(data, None, weights)
            rule = self._chosen_solver(problem).of(problem, **options)
            return RemoteMultiplicative.of(rule, W and replace(W, weight=to_numpy(weights["lam"])))
        problem = self._problem(data, W, weights)
        return self._chosen_solver(problem).of(problem, **options)

    def _chosen_solver(self, problem: Problem) -> Any:
        """The solver that is asked for; "auto" is the first of `PREFERRED` that can minimise the problem."""
        if self.solver != AUTO:
            return SOLVERS[self.solver]
        return next(solver for name in PREFERRED if (solver := SOLVERS[name]).refuses(problem) is None)

    def _code_problem(self, data: InMemory, weights: Mapping[str, Array]) -> Problem:
        return self._problem(data, None, weights)

    def _refuses(self, data: Data) -> str | None:
        if self.solver == AUTO:
            return None
        weights = {name: like([1.0], data.pattern) for name in self._weights}
        return SOLVERS[self.solver].refuses(self._problem(data, None, weights))
