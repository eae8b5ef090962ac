"""What all models share: the scikit-learn contract around the engine."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar, Literal, Self, TypeAlias

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from lognmf.core import starts
from lognmf.core.arrays import Array, contiguous, copied, like, namespace, to_numpy
from lognmf.core.data import Data, InMemory
from lognmf.core.problem import Problem
from lognmf.core.rule import State
from lognmf.core.solvers import encode
from lognmf.core.terms import LOSSES
from lognmf.core.threads import threads_for
from lognmf.graph import Graphs
from lognmf.models.blocks import check_data, graphs_of, refuses_blocks
from lognmf.models.callbacks import CallbackSupportMixin, Watcher, with_callbacks
from lognmf.models.checkpoint import Checkpoint
from lognmf.models.engine import Fit, draw
from lognmf.models.first_factors import given_factors, last_weights, question
from lognmf.models.large_samples import Limited
from lognmf.models.missing import Fills, unknown_features
from lognmf.models.on_workers import Remote
from lognmf.models.readable import Readable
from lognmf.models.remote_samples import encoded
from lognmf.models.sampled_weights import sampled_weights
from lognmf.models.scale import check_scale, in_units, unit_of
from lognmf.models.starts import spectral
from lognmf.models.validation import check_codes, check_graph_parameters
from lognmf.models.weights import Chooser, check_weight, fit_batch
from lognmf.parameters import check_choice, check_flag, check_integer, check_nonnegative, check_random_state
from lognmf.progress import warn

_FEATURES = ("n_features_in_", "feature_names_in_")

Init = Literal["random", "scaled", "nndsvda", "nndsvdar", "spectral"]
KMeansInit = Literal["kmeans", "random"]
Graph: TypeAlias = Literal["knn", "exact", "approximate"] | sp.sparray | sp.spmatrix | None
Seed = int | np.random.RandomState | None
Auto = Literal["auto"]


class FactorModel(
    Readable, Fills, CallbackSupportMixin, ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator
):
    """A factorisation ``X ≈ V Uᵀ``: validation, fitted attributes, codes of new samples.

    A subclass has the parameters below, as fields of a dataclass or set by its ``__init__``. It names its
    weights and starts and brings the rule that makes one iteration (`_rule`); the hooks below have defaults
    that suit plain models.
    """

    n_components: int
    init: str
    n_init: int
    max_iter: int
    tol: float
    eval_every: int
    warm_start: bool
    random_state: Seed
    verbose: int

    components_: Array
    embedding_: Array
    objective_: float
    history_: dict[str, np.ndarray]
    n_iter_: int
    stop_reason_: str
    reconstruction_err_: float
    n_features_in_: int
    feature_names_in_: np.ndarray
    scale_: float
    _weights: ClassVar[tuple[str, ...]] = ()
    _auto: ClassVar[Mapping[str, Chooser]] = {}  # weights that may be "auto", in the order of their choice
    _starts: ClassVar[Mapping[str, starts.Start]] = {**starts.STARTS, "spectral": spectral}
    _choices: ClassVar[Mapping[str, Mapping[str, Any]]] = {}  # parameters that name an entry of a dictionary
    _flags: ClassVar[tuple[str, ...]] = ()  # parameters that are True or False
    _signed = False  # whether data and basis may be negative
    _sparse = True  # whether X may be sparse
    _blocks = False  # whether X may be in blocks of rows
    _basis_has_unit = False  # whether U is multiplied with X, not V
    _converges = False  # whether a warning says that it did not

    @abstractmethod
    def fit(self, X: Any, y: Any = None) -> Self:
        """Factorise ``X``; a model may take more, by name: a mask, first factors."""

    def fit_transform(self, X: Any, y: Any = None, **options: Any) -> Array:
        """Factorise ``X`` and return its codes.

        Parameters
        ----------
        X, y, **options
            As in `fit`.

        Returns
        -------
        V : array of shape (n, k)
            The codes of the training samples, a copy of ``embedding_``.
        """
        return copied(self.fit(X, y, **options).embedding_)

    def transform(self, X: Any) -> Array:
        """Compute the codes of samples for the fitted basis, each to tolerance.

        New samples are not part of the training graph or of constraints on all of V, so the codes of the
        training samples may differ from ``embedding_``.

        Parameters
        ----------
        X : array-like, sparse matrix, data frame or torch tensor of shape (m, p)
            Samples in rows.

        Returns
        -------
        V : array of shape (m, k)
            One row of codes per sample.
        """
        check_is_fitted(self)
        return self._encode(check_data(self, X, reset=False))

    def inverse_transform(self, V: Any) -> Array:
        """Reconstruct samples from their codes: ``V Uᵀ``.

        Parameters
        ----------
        V : array-like or torch tensor of shape (m, k)
            Codes, one row per sample.

        Returns
        -------
        X : array of shape (m, p)
            The reconstructed samples.
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

    @property
    def _missing(self) -> bool:
        """Whether NaN marks a missing entry."""
        return False

    @abstractmethod
    def _rule(self, data: Any, W: sp.csr_array | None, weights: Mapping[str, Array]) -> Any:
        """The rule of this model for a batch of weights (B,)."""

    def _check_more_parameters(self) -> None:
        """Refuse bad values of parameters that are no weight, choice or flag."""

    def _refuses(self, data: Data) -> str | None:
        """Why these settings cannot be fitted to ``data``, in one sentence; None if they can."""
        return None

    def _limited(self, data: Data) -> Limited | None:
        """The data from which a fit begins, where samples much larger than all others are scaled down."""

    def _remark(self, data: Data) -> str | None:
        """What a user should know about fitting ``data``, in one sentence."""
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

    def _more_attributes(self, fit: Fit, data: InMemory) -> dict[str, Any]:
        """Fitted attributes of this model alone, from a batch of one."""
        return {}

    def _code_problem(self, data: InMemory, weights: Mapping[str, Array]) -> Problem:
        """What the codes of new samples minimise, one weight per sample; default: squared errors."""
        return Problem(data, LOSSES["frobenius"](data))

    # The steps of a fit --------------------------------------------------------------

    @with_callbacks
    def _fit(
        self,
        X: Any,
        given: Mapping[str, Any] | None = None,
        mask: Any = None,
        *,
        graphs: Graphs | None = None,
        checkpoint: Any = None,
    ) -> Self:
        """Check, start, iterate, keep the best; `Samples` come with ``graphs`` and are not read again."""
        self._check_parameters()
        features = {name: getattr(self, name) for name in _FEATURES if hasattr(self, name)}
        try:
            data = check_data(self, X, reset=True, mask=mask)
            with threads_for(data.stand_in, self.n_components * self.n_init):
                graphs = graphs_of(data) if graphs is None else graphs
                self._fit_checked(data, graphs, given or {}, checkpoint)
        except BaseException:
            # A failed fit keeps n_features_in_ of the previous one.
            for name in _FEATURES:
                self.__dict__.pop(name, None)
            self.__dict__.update(features)
            raise
        return self

    def _fit_checked(self, data: Any, graphs: Graphs, given: Mapping[str, Any], folder: Any) -> None:
        self._check_data(data, graphs)
        for remark in filter(None, (self._remark(data), unknown_features(data))):
            warn(remark)
        scaled = in_units(data, unit := self._unit(data))
        first = given_factors(self, data, given, unit)
        kept = None if folder is None else Checkpoint.of(folder, self, data, given)
        with Watcher(self, getattr(data, "X", data), self.max_iter) as watcher:
            weights = last_weights(self, given) or sampled_weights(self, scaled, unit, kept)
            begun = kept and kept.begun(data.pattern)
            fit = fit_batch(
                self,
                scaled,
                graphs,
                begun or draw(self, scaled, graphs, self.random_state, first),
                unit=unit,
                max_iter=self.max_iter,
                weights=weights,
                on_eval=watcher,
                kept=kept,
            )
            self._keep(fit.light(), data)

    def _check_parameters(self) -> None:
        check_integer("n_components", self.n_components, 1)
        for name in self._weights:
            check_weight(name, getattr(self, name), auto=name in self._auto)
        if hasattr(self, "scale"):
            check_scale(self.scale)
        for name, choices in self._choices.items():
            check_choice(name, getattr(self, name), choices)
        for name in (*self._flags, "warm_start"):
            check_flag(name, getattr(self, name))
        self._check_more_parameters()
        if hasattr(self, "graph"):
            check_graph_parameters(self.graph, self.n_neighbors)
        check_choice("init", self.init, self._starts)
        check_integer("n_init", self.n_init, 1)
        check_integer("max_iter", self.max_iter, 0)
        check_integer("eval_every", self.eval_every, 1)
        check_nonnegative("tol", self.tol)
        check_nonnegative("verbose", int(self.verbose) if isinstance(self.verbose, bool) else self.verbose)
        check_random_state(self.random_state)

    def _check_data(self, data: Data, graphs: Graphs) -> None:
        """Refuse data and graph that these settings cannot take, before any work."""
        sentence = self._refuses(data) or refuses_blocks(self, data)
        if sentence is not None:
            raise ValueError(sentence)
        graph = getattr(self, "graph", None)
        if graph is not None and not isinstance(graph, str):
            graphs.given(graph)

    def _graph(self, graphs: Graphs, weights: Mapping[str, Array]) -> sp.csr_array | None:
        """The graph of the samples: none, given, or built if any setting has a weight for it."""
        graph = getattr(self, "graph", None)
        if graph is None or (isinstance(graph, str) and not np.any(to_numpy(weights["lam"]) > 0)):
            return None
        return graphs.knn(self.n_neighbors, graph)

    def _unit(self, data: Data) -> float:
        """What the fit takes for 1 in the units of X."""
        scale = getattr(self, "scale", 1.0)
        return unit_of(data) if isinstance(scale, str) else float(scale)

    def _keep(self, fit: Fit, data: Any) -> None:
        """Set the fitted attributes; nothing is set before all is computed."""
        U, V = fit.factors
        fitted = {
            "components_": contiguous(U[:, 0, :].T),
            "embedding_": contiguous(V[:, 0, :]),
            "n_iter_": int(fit.n_iter[0]),
            "objective_": float(fit.objective[0]),
            "history_": fit.history(0),
            "stop_reason_": fit.stop_reason[0],
            "reconstruction_err_": float(fit.reconstruction_err[0]),
            "_asked": question(self),
        }
        fitted |= {f"{name}_": float(fit.weights[name][0]) for name in self._weights if name in self._auto}
        if hasattr(self, "scale"):
            fitted["scale_"] = fit.unit
        if hasattr(self, "graph"):
            fitted["graph_"] = fit.graph if not isinstance(data, Remote) else fit.graph and fit.graph.given
        fitted |= self._more_attributes(fit, data)
        self.__dict__.update(fitted)

    def _encode(self, data: Any) -> Array:
        """Codes (m, k) of checked samples."""
        if isinstance(data, Remote):
            return encoded(self, data)
        unit = 1.0 if self._basis_has_unit else getattr(self, "scale_", 1.0)
        U = like(to_numpy(self.components_).T, data.pattern)
        blocks = []
        with threads_for(data.stand_in, self.n_components):
            for _, block in in_units(data, unit).blocks():
                weights = {w: like(np.full(block.shape[0], self._weight(w)), U) for w in self._weights}
                blocks.append(encode(self._code_problem(block, weights), U))
        return contiguous(unit * (blocks[0] if len(blocks) == 1 else namespace(U).concat(blocks)))

    def _weight(self, name: str) -> float:
        """A weight as the last fit used it."""
        return float(getattr(self, f"{name}_" if name in self._auto else name))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.positive_only = not self._signed
        tags.input_tags.sparse = self._sparse
        tags.input_tags.allow_nan = self._missing
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags


class WithGraph:
    """Parameters and fitted attribute of a model with a graph of the samples."""

    graph: Graph
    n_neighbors: int
    graph_: sp.csr_array | None
