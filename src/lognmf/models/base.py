"""What all models share: the scikit-learn contract around the core's loop."""

from __future__ import annotations

import functools
import math
from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from lognmf.core import starts
from lognmf.core.arrays import Array, Matrix, factor_pattern, is_torch, like, namespace, to_numpy
from lognmf.core.loop import iterate
from lognmf.core.parallel import threads_for
from lognmf.core.rule import Solution, State
from lognmf.core.solvers import Codes
from lognmf.models.callbacks import CallbackSupportMixin, Watcher, with_callbacks
from lognmf.models.spectral_start import NEIGHBOURS, spectral
from lognmf.models.spectral_start import neighbours as neighbours_of_start
from lognmf.models.validation import Samples, check_codes, check_factor, check_samples, check_solver
from lognmf.parameters import check_choice, check_flag, check_integer, check_nonnegative

_FEATURES = ("n_features_in_", "feature_names_in_")

SHORT, LONG = 30, 500
"""Most iterations where ``max_iter`` is None: multiplicative updates from the spectral start trade its
clusters for fit, and the best trade is an early one (docs/defaults.md); else the paper's number."""


class FactorModel(
    CallbackSupportMixin, ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator, ABC
):
    """A factorisation ``X ≈ V Uᵀ``: validation, start, loop, fitted attributes, codes of new samples.

    A subclass names its weights and its starts and brings the rule that makes one
    iteration (`_rule`); the hooks below have defaults that suit plain models.
    """

    _weights: ClassVar[tuple[str, ...]] = ()
    _starts: ClassVar[Mapping[str, starts.Start]] = {**starts.STARTS, "spectral": spectral}
    _signed = False  # whether data and basis may be negative
    _sparse = True  # whether X may be sparse
    _missing = False  # whether NaN means a missing entry
    _neighbours_at_hand: sp.csr_array | None = None  # the graph of a spectral start, from whoever has it
    _iterations_follow_start = False  # whether max_iter may be None

    def __init__(
        self,
        n_components: int,
        *,
        init: str,
        n_init: int,
        max_iter: int | None,
        tol: float,
        eval_every: int,
        warm_start: bool,
        random_state: Any,
        verbose: int,
    ) -> None:
        self.n_components = n_components
        self.init = init
        self.n_init = n_init
        self.max_iter = max_iter
        self.tol = tol
        self.eval_every = eval_every
        self.warm_start = warm_start
        self.random_state = random_state
        self.verbose = verbose

    def transform(self, X: Any) -> Array:
        """Codes of samples for the fitted basis, each solved to tolerance.

        New samples have no place in the training graph and no part in constraints on the
        whole of V, so the codes of the training samples may differ from ``embedding_``.

        Parameters
        ----------
        X : array-like, sparse matrix, data frame or torch tensor of shape (m, p)
            Samples in rows.

        Returns
        -------
        V : array of shape (m, k)
        """
        check_is_fitted(self)
        return self._encode(check_samples(self, X, reset=False))

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
        V = check_codes(V)
        if V.ndim != 2 or V.shape[1] != self.components_.shape[0]:
            msg = f"V must have shape (samples, {self.components_.shape[0]}); got {tuple(V.shape)}."
            raise ValueError(msg)
        return V @ like(self.components_, V)

    @property
    def _n_features_out(self) -> int:
        return self.components_.shape[0]

    # What a model brings -------------------------------------------------------------

    @abstractmethod
    def _rule(self, data: Samples, W: sp.csr_array | None, weights: Mapping[str, Array]) -> Any:
        """The rule of this model for a batch of weights (B,)."""

    def _check_more_parameters(self) -> None:
        """Refuse bad values of this model's own parameters."""

    def _graph(self, X: Matrix) -> sp.csr_array | None:
        """The neighbour graph of the samples, for models that have one."""
        return None

    def _shapes(self, n: int, p: int) -> dict[str, tuple[int, int]]:
        """Names and shapes of the factors that a fit starts from; the second is always V."""
        return {"U0": (p, self.n_components), "V0": (n, self.n_components)}

    def _last(self) -> tuple[Array, Array]:
        """The factors of the last fit, in the order of `_shapes`."""
        return to_numpy(self.components_).T, self.embedding_

    def _prepare(self, U: Array, V: Array) -> tuple[Array, Array]:
        """The first factors as the loop gets them; most models take them as they are."""
        return U, V

    def _finish(self, state: State) -> State:
        """The state to keep; most models keep what the loop ended with."""
        return state

    def _basis(self, rule: Any, state: State) -> Array:
        """The basis U (p, B, k) of a state."""
        return state.U

    def _more_attributes(self, rule: Any, state: State) -> dict[str, Any]:
        """Fitted attributes of this model alone, from the winning state (a batch of one)."""
        return {}

    def _code_options(self) -> dict[str, Any]:
        """How a new sample is coded, as keywords of `Codes.of`; default: least squares."""
        return {}

    # The steps of a fit --------------------------------------------------------------

    @with_callbacks
    def _fit(self, X: Any, given: Mapping[str, Any], mask: Any = None) -> Array:
        """Check, start, iterate, keep the best; returns the codes of the training samples."""
        self._check_parameters()
        features = {name: getattr(self, name) for name in _FEATURES if hasattr(self, name)}
        try:
            data = check_samples(self, X, reset=True, mask=mask)
            with threads_for(data.X, self.n_components * self.n_init):
                return self._fit_checked(data, given)
        except BaseException:
            # What the last fit said of its features goes with what is left of that fit.
            for name in _FEATURES:
                self.__dict__.pop(name, None)
            self.__dict__.update(features)
            raise

    def _fit_checked(self, data: Samples, given: Mapping[str, Any]) -> Array:
        check_solver(getattr(self, "solver", "mu"), data)
        first = self._given_factors(data.X, given)
        most = self._most_iterations(drawn=all(F is None for F in first))
        W = self._graph(data.X)
        known = W if self._has_neighbours_of_start() else self._neighbours_at_hand
        U, V = self._prepare(*self._with_drawn(first, data.X, known))
        weights = {name: like(np.full(V.shape[1], float(getattr(self, name))), V) for name in self._weights}
        rule = self._rule(data, W, weights)
        with Watcher(self, data.X, most) as watcher:
            solution = iterate(
                rule,
                rule.start(U, V),
                max_iter=most,
                tol=self.tol,
                eval_every=self.eval_every,
                on_eval=watcher,
            )
            self._keep(W, rule, solution, int(np.argmin(solution.objective)))
        return _copy(self.embedding_)

    def _check_parameters(self) -> None:
        check_integer("n_components", self.n_components, 1)
        for name in self._weights:
            check_nonnegative(name, getattr(self, name))
        self._check_more_parameters()
        check_choice("init", self.init, self._starts)
        check_integer("n_init", self.n_init, 1)
        if not (self.max_iter is None and self._iterations_follow_start):
            check_integer("max_iter", self.max_iter, 0)
        check_integer("eval_every", self.eval_every, 1)
        check_nonnegative("tol", self.tol)
        check_flag("warm_start", self.warm_start)
        check_nonnegative("verbose", int(self.verbose) if isinstance(self.verbose, bool) else self.verbose)
        check_random_state(self.random_state)

    def _most_iterations(self, *, drawn: bool = True) -> int:
        """``max_iter``, or what takes the place of None; ``drawn`` says that no factor was given."""
        if self.max_iter is not None:
            return self.max_iter
        kept = drawn and self.init == "spectral" and getattr(self, "solver", "mu") == "mu"
        return SHORT if kept else LONG

    def _has_neighbours_of_start(self) -> bool:
        """Whether the model's graph is the one that the spectral start clusters."""
        graph = getattr(self, "graph", None)
        return isinstance(graph, str) and getattr(self, "n_neighbors", None) == NEIGHBOURS

    def _start(
        self, X: Matrix, given: Mapping[str, Any], neighbours: sp.csr_array | None = None
    ) -> tuple[Array, Array]:
        """First factors as a batch; ``neighbours`` is the graph of the spectral start, if known."""
        return self._with_drawn(self._given_factors(X, given), X, neighbours)

    def _given_factors(self, X: Matrix, given: Mapping[str, Any]) -> list[Array | None]:
        """First factors that need not be drawn, as a batch of one: given ones, or those of the last fit."""
        shapes = self._shapes(*X.shape)
        first: list[Any] = [given.get(name) for name in shapes]
        if self.warm_start and hasattr(self, "components_") and all(F is None for F in first):
            self._check_same_shape(*X.shape)
            first = list(self._last())
        for place, (name, shape) in enumerate(shapes.items()):
            if first[place] is not None:
                signed = self._signed and name == "U0"
                first[place] = check_factor(name, first[place], shape, X, signed=signed)[:, None, :]
        return first

    def _with_drawn(
        self, first: list[Array | None], X: Matrix, neighbours: sp.csr_array | None
    ) -> tuple[Array, Array]:
        """``first`` with what is missing drawn, as a batch of all restarts."""
        if any(F is None for F in first):
            rng = check_random_state(self.random_state)
            draw = self._starts[self.init]
            if draw is spectral:
                known = neighbours_of_start(X) if neighbours is None else neighbours
                draw = functools.partial(spectral, W=known)
            drawn = starts.batch(draw, X, self.n_components, self.n_init, rng)
            for place, F in enumerate(drawn):
                F = like(F, factor_pattern(X))
                if first[place] is None:
                    first[place] = F
                else:
                    xp = namespace(F)
                    first[place] = xp.asarray(xp.broadcast_to(first[place], F.shape), copy=True)
        return first[0], first[1]

    def _check_same_shape(self, n: int, p: int) -> None:
        (k, last_p), last_n = self.components_.shape, self.embedding_.shape[0]
        if (last_n, last_p, k) != (n, p, self.n_components):
            msg = (
                f"warm_start continues a fit of the same shape: the last one had {last_n} samples, "
                f"{last_p} features and {k} components; now there are {n}, {p} and {self.n_components}. "
                "Set warm_start=False, or use a new estimator."
            )
            raise ValueError(msg)

    def _keep(self, W: sp.csr_array | None, rule: Any, solution: Solution, b: int) -> None:
        """Set the fitted attributes from setting ``b``; nothing is set before all is computed."""
        rule = rule.take(np.array([b]))
        ended = solution.state.take(np.array([b]))
        state = self._finish(ended)
        objective = solution.objective if state is ended else to_numpy(rule.value(state))
        U = self._basis(rule, state)
        fitted = {
            "components_": _copy(U[:, 0, :].T),
            "embedding_": _copy(state.V[:, 0, :]),
            "n_iter_": int(solution.n_iter[b]),
            "objective_": float(objective[b if state is ended else 0]),
            "history_": solution.history_of(b),
            "stop_reason_": solution.reason[b],
            "reconstruction_err_": math.sqrt(float(to_numpy(rule.squared_error(state)[0]))),
        }
        if hasattr(self, "graph"):
            fitted["graph_"] = W
        fitted |= self._more_attributes(rule, state)
        for name, value in fitted.items():
            setattr(self, name, value)

    def _encode(self, data: Samples) -> Array:
        """Codes (m, k) of checked samples."""
        U = like(to_numpy(self.components_).T, factor_pattern(data.X))
        with threads_for(data.X, self.n_components):
            rule, state = Codes.of(data.X, U, M=data.M, **self._code_options())
            solution = iterate(rule, state, max_iter=500, tol=1e-14, eval_every=2)
        return _copy(solution.state.V[0, ...])

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.positive_only = not self._signed
        tags.input_tags.sparse = self._sparse
        tags.input_tags.allow_nan = self._missing and getattr(self, "solver", "mu") != "cd"
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags


def _copy(F: Array) -> Array:
    """``F`` in memory of its own, rows contiguous."""
    if isinstance(F, np.ndarray):
        return np.array(F, order="C")
    return (
        namespace(F).asarray(F, copy=True).contiguous() if is_torch(F) else namespace(F).asarray(F, copy=True)
    )
