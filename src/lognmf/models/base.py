"""What all models share: the scikit-learn contract around the core's loop."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, Self

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils import check_array, check_random_state
from sklearn.utils.validation import check_is_fitted

from lognmf.core import starts
from lognmf.core.arrays import Array, Matrix, factor_pattern, is_torch, like, namespace, product, to_numpy
from lognmf.core.loop import iterate
from lognmf.core.problem import Problem
from lognmf.core.solvers import SOLVERS
from lognmf.core.state import Solution
from lognmf.models.callbacks import CallbackSupportMixin, Watcher, with_callbacks
from lognmf.models.validation import check_factor, check_samples
from lognmf.parameters import check_choice, check_integer, check_nonnegative


class FactorModel(
    CallbackSupportMixin, ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator, ABC
):
    """A factorisation ``X ≈ V Uᵀ`` by a sum of terms.

    A subclass names its weights, writes its recipe (`_problem`) and says how a new
    sample is coded (`_codes`).
    """

    _weights: tuple[str, ...]

    def __init__(
        self,
        n_components: int,
        *,
        init: str,
        n_init: int,
        solver: str,
        max_iter: int,
        tol: float,
        eval_every: int,
        warm_start: bool,
        random_state: Any,
        verbose: int,
    ) -> None:
        self.n_components = n_components
        self.init = init
        self.n_init = n_init
        self.solver = solver
        self.max_iter = max_iter
        self.tol = tol
        self.eval_every = eval_every
        self.warm_start = warm_start
        self.random_state = random_state
        self.verbose = verbose

    def fit(self, X: Any, y: Any = None, *, U0: Any = None, V0: Any = None) -> Self:
        """Factorise ``X``.

        Parameters
        ----------
        X : array-like, sparse matrix, data frame or torch tensor of shape (n, p)
            Nonnegative samples in rows. float32 is computed in float32, anything else
            in float64.
        y : ignored
            Present for scikit-learn.
        U0, V0 : array-like of shape (p, k) and (n, k), optional
            First factors. One that is missing comes from ``init``. Entries that start
            at zero stay zero.

        Returns
        -------
        self
        """
        self.fit_transform(X, y, U0=U0, V0=V0)
        return self

    @with_callbacks
    def fit_transform(self, X: Any, y: Any = None, *, U0: Any = None, V0: Any = None) -> Array:
        """Factorise ``X`` and return its codes.

        Parameters
        ----------
        X : array-like, sparse matrix, data frame or torch tensor of shape (n, p)
            Nonnegative samples in rows.
        y : ignored
            Present for scikit-learn.
        U0, V0 : array-like of shape (p, k) and (n, k), optional
            First factors, as in `fit`.

        Returns
        -------
        V : array of shape (n, k)
            The codes of the training samples, also kept as ``embedding_``.
        """
        self._check_parameters()
        X = check_samples(self, X, reset=True)
        W = self._graph(X)
        U, V = self._start(X, U0, V0)
        weights = {name: like(np.full(V.shape[1], float(getattr(self, name))), U) for name in self._weights}
        rule = SOLVERS[self.solver](self._problem(X, W, weights))
        with Watcher(self, X) as watcher:
            solution = iterate(
                rule,
                rule.start(U, V),
                max_iter=self.max_iter,
                tol=self.tol,
                eval_every=self.eval_every,
                on_eval=watcher,
            )
            best = int(np.argmin(solution.objective))
            self._keep(X, W, rule.problem, solution, best)
        return self.embedding_

    def transform(self, X: Any) -> Array:
        """Codes of samples for the fitted basis, each solved to tolerance.

        New samples have no place in the training graph, so with ``lam > 0`` the codes
        of the training samples differ from ``embedding_``.

        Parameters
        ----------
        X : array-like, sparse matrix, data frame or torch tensor of shape (m, p)
            Nonnegative samples in rows.

        Returns
        -------
        V : array of shape (m, k)
        """
        check_is_fitted(self)
        X = check_samples(self, X, reset=False)
        return self._encode(X)

    def inverse_transform(self, V: Any) -> Array:
        """Samples from codes: ``V Uᵀ``.

        Parameters
        ----------
        V : array-like or torch tensor of shape (m, k)

        Returns
        -------
        X : array of shape (m, p)
        """
        check_is_fitted(self)
        if not is_torch(V):
            V = check_array(V, dtype=[np.float64, np.float32], input_name="V")
        if V.ndim != 2 or V.shape[1] != self.components_.shape[0]:
            msg = f"V must have shape (samples, {self.components_.shape[0]}); got {tuple(V.shape)}."
            raise ValueError(msg)
        return V @ like(self.components_, V)

    @property
    def _n_features_out(self) -> int:
        return self.components_.shape[0]

    # What a model brings -------------------------------------------------------------

    def _check_more_parameters(self) -> None:
        """Refuse bad values of this model's own parameters."""

    def _graph(self, X: Matrix) -> sp.csr_array | None:
        """The neighbour graph of the samples, for models that have one."""
        return None

    @abstractmethod
    def _problem(self, X: Matrix, W: sp.csr_array | None, weights: Mapping[str, Array]) -> Problem:
        """The recipe: the objective for a batch of weights."""

    def _more_attributes(self, problem: Problem, U: Array, V: Array, XU: Array) -> dict[str, Any]:
        """Fitted attributes of this model alone, from the winning factors."""
        return {}

    @abstractmethod
    def _codes(self, X: Matrix, U: Array) -> tuple[Any, Any]:
        """Rule and start that code the samples ``X`` for the fixed basis ``U`` (p, k)."""

    # The steps of a fit --------------------------------------------------------------

    def _check_parameters(self) -> None:
        check_integer("n_components", self.n_components, 1)
        for name in self._weights:
            check_nonnegative(name, getattr(self, name))
        self._check_more_parameters()
        check_choice("init", self.init, starts.STARTS)
        check_choice("solver", self.solver, SOLVERS)
        check_integer("n_init", self.n_init, 1)
        check_integer("max_iter", self.max_iter, 0)
        check_integer("eval_every", self.eval_every, 1)
        check_nonnegative("tol", self.tol)
        check_random_state(self.random_state)

    def _start(self, X: Matrix, U0: Any, V0: Any) -> tuple[Array, Array]:
        """First factors as a batch: given ones, those of the last fit, or drawn."""
        (n, p), k = X.shape, self.n_components
        if self.warm_start and hasattr(self, "components_") and U0 is None and V0 is None:
            if self.components_.shape != (k, p) or self.embedding_.shape != (n, k):
                msg = (
                    "warm_start continues a fit of the same shape: the last one had "
                    f"{self.embedding_.shape[0]} samples, {self.components_.shape[1]} features and "
                    f"{self.components_.shape[0]} components; now there are {n}, {p} and {k}. "
                    "Set warm_start=False, or use a new estimator."
                )
                raise ValueError(msg)
            U0, V0 = to_numpy(self.components_).T, self.embedding_
        U0 = None if U0 is None else check_factor("U0", U0, (p, k), X)[:, None, :]
        V0 = None if V0 is None else check_factor("V0", V0, (n, k), X)[:, None, :]
        if U0 is not None and V0 is not None:
            return U0, V0
        rng = check_random_state(self.random_state)
        U, V = starts.batch(starts.STARTS[self.init], X, k, self.n_init, rng)
        U, V = (like(F, factor_pattern(X)) for F in (U, V))
        xp = namespace(U)
        return (
            U if U0 is None else xp.asarray(xp.broadcast_to(U0, U.shape), copy=True),
            V if V0 is None else xp.asarray(xp.broadcast_to(V0, V.shape), copy=True),
        )

    def _keep(self, X: Matrix, W: sp.csr_array | None, problem: Problem, solution: Solution, b: int) -> None:
        """Set the fitted attributes from setting ``b``; nothing is set before all is computed."""
        U, V = solution.state.U[:, [b], :], solution.state.V[:, [b], :]
        XU = product(X, U)
        squared = problem.fit.squared_residuals(U, V, XU)
        fitted = {
            "components_": _copy(U[:, 0, :].T),
            "embedding_": _copy(V[:, 0, :]),
            "graph_": W,
            "n_iter_": int(solution.n_iter[b]),
            "objective_": float(solution.objective[b]),
            "history_": solution.history_of(b),
            "stop_reason_": solution.reason[b],
            "reconstruction_err_": math.sqrt(float(to_numpy(squared).sum(dtype=np.float64))),
        }
        fitted |= self._more_attributes(problem.take(np.array([b])), U, V, XU)
        for name, value in fitted.items():
            setattr(self, name, value)

    def _encode(self, X: Matrix) -> Array:
        """Codes (m, k) of checked samples, by coordinate sweeps."""
        U = like(to_numpy(self.components_).T, factor_pattern(X))
        rule, state = self._codes(X, U)
        solution = iterate(rule, state, max_iter=500, tol=1e-7, eval_every=5)
        return _copy(solution.state.V[0, ...])

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.positive_only = True
        tags.input_tags.sparse = True
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags


def _copy(F: Array) -> Array:
    """``F`` in memory of its own, rows contiguous."""
    if isinstance(F, np.ndarray):
        return np.array(F, order="C")
    return (
        namespace(F).asarray(F, copy=True).contiguous() if is_torch(F) else namespace(F).asarray(F, copy=True)
    )
