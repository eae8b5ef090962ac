"""The base of all models: the scikit-learn contract around the engine, and what a model of one's own needs.

A model extends `TermsModel` if its objective is a sum of terms, or `BasisAndCodesModel` or `FactorModel` if
it has a rule of its own. Its `Spec` says what it can do.
"""

from __future__ import annotations

import copy
import hashlib
import math
import os
from abc import abstractmethod
from collections import ChainMap
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal, Self, TypeAlias

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted

from lognmf.blocks.checkpoint import Checkpoint
from lognmf.blocks.graph import graphs_of
from lognmf.core import starts
from lognmf.core.arrays import Array, contiguous, copied, like, to_numpy
from lognmf.core.data import Data, InMemory
from lognmf.core.problem import Problem
from lognmf.core.rule import State
from lognmf.core.solvers import SOLVERS, encode
from lognmf.core.terms import LOSSES
from lognmf.core.threads import threads_for
from lognmf.environment import package_version
from lognmf.graph import Graphs
from lognmf.models.blocks import CALLBACKS, check_data, given_codes, refuses_blocks
from lognmf.models.engine import Fit, draw
from lognmf.models.identity import hash_of, plain
from lognmf.models.large_samples import Limited
from lognmf.models.missing import imputed
from lognmf.models.sampled_weights import sampled_weights
from lognmf.models.scale import check_scale, unit_of
from lognmf.models.starts import SPECTRAL
from lognmf.models.validation import (
    check_codes,
    check_factor,
    check_graph_parameters,
    check_same_shape,
    unknown_features,
)
from lognmf.models.weights import AUTO, Chooser, check_weight, fit_batch
from lognmf.parameters import check_choice, check_flag, check_integer, check_nonnegative, check_random_state
from lognmf.progress import printed, stage, warn

try:
    from sklearn.callback import CallbackSupportMixin, with_callbacks
except ImportError:  # scikit-learn < 1.9

    class CallbackSupportMixin:  # type: ignore[no-redef]
        """Stands in where scikit-learn has no callbacks."""

    def with_callbacks(method: Any) -> Any:
        """Return ``method`` as it is: there are no callbacks to tear down."""
        return method


_FEATURES = ("n_features_in_", "feature_names_in_", "feature_labels_")

Init = Literal["random", "scaled", "nndsvda", "nndsvdar", "spectral"]
KMeansInit = Literal["kmeans", "random"]
Graph: TypeAlias = Literal["knn", "exact", "approximate"] | sp.sparray | sp.spmatrix | None
Seed = int | np.random.RandomState | None
Auto = Literal["auto"]
Solver = Literal["auto", "mu", "cd"]
Loss = Literal["frobenius", "kullback-leibler"]
PenaltyName = Literal["log", "l1"]
RowNormName = Literal["l2log", "l21"]

PREFERRED = ("cd", "mu")
"""The solvers in the order in which ``solver="auto"`` tries them."""

SOLVER_CHOICES: Mapping[str, Any] = ChainMap({AUTO: None}, SOLVERS)
"""What the parameter ``solver`` may be."""

STARTS: Mapping[str, starts.Start] = ChainMap(starts.STARTS, {"spectral": SPECTRAL})
"""What ``init`` may be, unless a model has starts of its own."""


@dataclass(frozen=True)
class Spec:
    """What a model can do. Checks of parameters and data, tags and the command line are made from it."""

    weights: tuple[str, ...] = ()
    """Parameters that weigh a term: numbers >= 0, of which a grid fits many side by side."""

    graph_weight: str = ""
    """The one of the weights that belongs to the graph of the samples; empty for models without a graph."""

    auto: Mapping[str, Chooser] = field(default_factory=dict)
    """How weights that may be "auto" are chosen, in the order of their choice."""

    starts: Mapping[str, starts.Start] = field(default_factory=lambda: STARTS)
    """What ``init`` may be."""

    choices: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """Parameters that name an entry of a dictionary."""

    flags: tuple[str, ...] = ()
    """Parameters that are True or False."""

    signed: bool = False
    """Whether X, and the basis, may be negative."""

    sparse: bool = True
    """Whether X may be sparse."""

    missing: bool | tuple[str, ...] = False
    """Whether entries of X may be missing; or the values of ``loss`` for which they may."""

    blocks: bool = False
    """Whether X may be in blocks of rows, on disk or on workers."""

    basis_has_unit: bool = False
    """Whether U grows with X, and not V."""

    converges: bool = False
    """Whether fits are meant to converge, so that a warning says when one did not."""

    def takes_missing(self, model: Any) -> bool:
        """Whether ``model`` takes missing entries with its present parameters."""
        return self.missing if isinstance(self.missing, bool) else model.loss in self.missing


class FactorModel(CallbackSupportMixin, ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """A factorisation ``X ≈ V Uᵀ``: validation, fitted attributes, codes of new samples.

    A subclass has the parameters below, as fields of a dataclass or set by its ``__init__``. It says what it
    can do (`spec`) and brings the rule that makes one iteration (`_rule`); the hooks below have defaults
    that suit plain models.
    """

    spec: ClassVar[Spec] = Spec()

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
    feature_labels_: np.ndarray  # labels of columns that are numbers

    # Parameters that some models have; for the others, the values that ask for nothing.
    graph: Graph = None
    n_neighbors: int = 5
    scale: float | Auto = 1.0
    loss: Any = "frobenius"
    unit_components: bool = False

    # Attributes that some models set.
    graph_: sp.csr_array | None
    scale_: float
    alpha_: float
    beta_: float
    gamma_: float
    outlier_share_: Array
    residual_norm_: Array
    outlier_norm_: Array
    is_outlier_: Array
    offset_: float
    reference_samples_: Any
    feature_spread_: np.ndarray | None
    score_units_: np.ndarray | None
    labels_: Array
    constraint_error_: tuple[float, float]
    combination_: Array

    @abstractmethod
    def fit(self, X: Any, y: Any = None) -> Self:
        """Factorise ``X``; a model may take more, by name: weights, first factors."""

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

    def top_features(
        self,
        n: int = 10,
        names: Sequence[str] | None = None,
        *,
        by: Literal["weight", "specific"] = "weight",
    ) -> list[list[str]]:
        """Name the features of the largest weight in every part.

        Parameters
        ----------
        n : int, default=10
            Maximum number of features per part; features of weight 0 are left out.
        names : sequence of str, optional
            Names of the p features, such as ``vectorizer.get_feature_names_out()``. Default: those of the
            data frame or AnnData object that the model was fitted to.
        by : {"weight", "specific"}, default="weight"
            "specific" ranks features by their weight times the logarithm of its ratio to the mean weight in
            all parts of equal sum: what is large in one part and not in the others. A feature that is no
            larger than on average is left out.

        Returns
        -------
        list of lists of str
            One list per part, largest first. Without names of features, their numbers.

        Raises
        ------
        ValueError
            If there are more or fewer names than features.
        """
        check_is_fitted(self)
        check_integer("n", n, 1)
        check_choice("by", by, ("weight", "specific"))
        parts = to_numpy(self.components_)
        if by == "specific":
            parts = specific(parts)
        if names is None:
            names = vars(self).get("feature_names_in_", vars(self).get("feature_labels_"))
        elif len(names) != parts.shape[1]:
            msg = f"names must hold a name for each of the {parts.shape[1]} features; got {len(names)}."
            raise ValueError(msg)
        return largest_features(parts, names, n)

    def impute(self, X: Any) -> Any:
        """Fill the missing entries of samples with the values of the model; known entries stay as they are.

        A sample gets the codes of least squares of its known entries, where these tell enough of a part, and
        else the median code of the fit. The codes of `transform` suit the known entries alone: where a part
        has hardly any weight there, they may be huge, and fill in absurd values.

        Parameters
        ----------
        X : array-like, data frame or torch tensor of shape (m, p)
            Samples in rows, those of the fit or new ones; NaN marks a missing entry.

        Returns
        -------
        array, data frame of pandas or tensor of shape (m, p)
            A copy of X without NaN.

        Raises
        ------
        TypeError, ValueError
            If the model takes no missing entries, X is sparse, or a sample has no known entry.

        Examples
        --------
        >>> import numpy as np
        >>> from lognmf import WeightedNMF
        >>> X = np.outer([1.0, 2.0, 3.0, 4.0], [1.0, 1.0, 2.0])
        >>> X[1, 2] = np.nan
        >>> WeightedNMF(1, random_state=0).fit(X).impute(X)[1].round(2)
        array([2., 2., 4.])
        """
        check_is_fitted(self)
        return imputed(self, X)

    @property
    def _n_features_out(self) -> int:
        return self.components_.shape[0]

    # What a model brings -------------------------------------------------------------

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

    def factor_shapes(self, n: int, p: int) -> dict[str, tuple[int, int]]:
        """Names and shapes of the factors that a fit starts from; the second is always V."""
        return {"U0": (p, self.n_components), "V0": (n, self.n_components)}

    def _last(self) -> tuple[Array, Array]:
        """The factors of the last fit, in the order of `factor_shapes`."""
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
    def fit_samples(
        self,
        X: Any,
        given: Mapping[str, Any] | None = None,
        weights: Any = None,
        *,
        graphs: Graphs | None = None,
        checkpoint: Any = None,
    ) -> Self:
        """Check, start, iterate, keep the best.

        This is `fit` for callers in this package: ``Samples`` have been read before, and come with their
        ``graphs``; ``given`` are first factors by their names.
        """
        self.check_parameters()
        features = {name: value for name, value in vars(self).items() if name in _FEATURES}
        try:
            data = check_data(self, X, reset=True, weights=weights)
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
        self.check_data(data, graphs)
        for remark in filter(None, (*self._idle(data), self._remark(data), unknown_features(data))):
            warn(remark)
        scaled = data.in_unit(unit := self.unit_of(data))
        first = self._given_factors(data, given, unit)
        saved = None if folder is None else Checkpoint(folder, call_of(self, data, given))
        begun = saved and saved.read(data)
        with Watcher(self, getattr(data, "X", data), self.max_iter) as watcher:
            if begun:
                first = [begun.U, begun.V]
                weights = {name: [value] for name, value in begun.weights.items()}
            else:
                weights = self._last_weights(given) or sampled_weights(self, scaled, unit)
            fit = fit_batch(
                self,
                scaled,
                graphs,
                draw(self, scaled, graphs, self.random_state, first),
                unit=unit,
                max_iter=self.max_iter,
                weights=weights,
                on_eval=watcher,
                saved=saved,
                before=begun.iteration if begun else 0,
            )
            self._keep(fit.light(), data)

    def _idle(self, data: Data) -> list[str | None]:
        """What these settings ask for in vain."""
        k, (n, p) = self.n_components, data.shape
        remarks: list[str | None] = []
        name = self.spec.graph_weight
        if name and self.graph is None and (weight := vars(self)[name]) > 0:
            remarks.append(
                f"{name}={weight:g} has no effect, since graph=None: give a graph, or set {name}=0."
            )
        if k > max(n, p):
            remarks.append(f"n_components={k} exceeds the {n} samples and the {p} features of X: use fewer.")
        return remarks

    def _goes_on(self, given: Mapping[str, Any]) -> bool:
        """Whether a fit begins where the last one ended."""
        return self.warm_start and "components_" in vars(self) and all(F is None for F in given.values())

    def _question(self) -> list[Any]:
        """Parameters that decide which weights a fit chooses."""
        params = self.get_params(deep=False)
        return [params[name] for name in (*sorted(self.spec.auto), "extra_error") if name in params]

    def _last_weights(self, given: Mapping[str, Any]) -> dict[str, list[float]]:
        """Weights that were chosen from the data, where a fit goes on with those of the last one."""
        if not self._goes_on(given) or vars(self).get("_asked", self._question()) != self._question():
            return {}
        return {name: [self._weight(name)] for name in self.auto_weights()}

    def _given_factors(self, data: Any, given: Mapping[str, Any], unit: float) -> list[Any]:
        """First factors that need not be drawn, as a batch of one: given ones, or those of the last fit."""
        shapes = self.factor_shapes(*data.shape)
        first: list[Any] = [given.get(name) for name in shapes]
        if self._goes_on(given):
            check_same_shape(self, *data.shape)
            first = list(self._last())
        for place, (name, shape) in enumerate(shapes.items()):
            if first[place] is None:
                continue
            scale = unit if (name == "U0") == self.spec.basis_has_unit else 1.0
            if data.distributed and name == "V0":
                first[place] = given_codes(data, first[place], shape[1], scale)
                continue
            signed = self.spec.signed and name == "U0"
            F = check_factor(name, first[place], shape, data.pattern, signed=signed)[:, None, :]
            F /= scale
            first[place] = F
        return first

    def check_parameters(self) -> None:
        """Refuse bad values of parameters."""
        check_integer("n_components", self.n_components, 1)
        params = vars(self)
        for name in self.spec.weights:
            check_weight(name, params[name], auto=name in self.spec.auto)
        check_scale(self.scale)
        for name, choices in self.spec.choices.items():
            check_choice(name, params[name], choices)
        for name in (*self.spec.flags, "warm_start"):
            check_flag(name, params[name])
        self._check_more_parameters()
        check_graph_parameters(self.graph, self.n_neighbors)
        check_choice("init", self.init, self.spec.starts)
        check_integer("n_init", self.n_init, 1)
        check_integer("max_iter", self.max_iter, 0)
        check_integer("eval_every", self.eval_every, 1)
        check_nonnegative("tol", self.tol)
        check_nonnegative("verbose", int(self.verbose) if isinstance(self.verbose, bool) else self.verbose)
        check_random_state(self.random_state)

    def auto_weights(self) -> list[str]:
        """Weights that are "auto": to be chosen from the data."""
        return [name for name in self.spec.weights if name in self.spec.auto and vars(self)[name] == AUTO]

    def check_data(self, data: Data, graphs: Graphs) -> None:
        """Refuse data and graph that these settings cannot take, before any work."""
        sentence = self._refuses(data) or refuses_blocks(self, data)
        if sentence is not None:
            raise ValueError(sentence)
        if self.graph is not None and not isinstance(self.graph, str):
            graphs.given(self.graph)

    def unit_of(self, data: Data) -> float:
        """What the fit takes for 1 in the units of X."""
        if not isinstance(self.scale, str):
            return float(self.scale)
        limit = self._limited(data)
        return unit_of(data) if limit is None else unit_of(data, limit.share)

    def _graph(self, graphs: Graphs, weights: Mapping[str, Array]) -> sp.csr_array | None:
        """The graph of the samples: none, given, or built if any setting has a weight for it."""
        weight = weights.get(self.spec.graph_weight)
        used = weight is not None and bool(np.any(to_numpy(weight) > 0))
        if self.graph is None or (isinstance(self.graph, str) and not used):
            return None
        return graphs.knn(self.n_neighbors, self.graph)

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
            "_asked": self._question(),
        }
        weights, params = self.spec.weights, self._get_param_names()
        fitted |= {f"{name}_": float(fit.weights[name][0]) for name in weights if name in self.spec.auto}
        if "scale" in params:
            fitted["scale_"] = fit.unit
        if "graph" in params:
            fitted["graph_"] = getattr(fit.graph, "given", fit.graph)  # of a graph on workers, a given one
        fitted |= self._more_attributes(fit, data)
        self.__dict__.update(fitted)

    def _encode(self, data: Any) -> Array:
        """Codes (m, k) of checked samples."""
        unit = 1.0 if self.spec.basis_has_unit else vars(self).get("scale_", 1.0)
        with threads_for(data.stand_in, self.n_components):
            shared = (self._without_samples(), unit)
            codes = data.in_unit(unit).map_rows(_codes_of_block, shared=shared)[0][0]
        return contiguous(codes[:, :])

    def _without_samples(self) -> Self:
        """The same model without what it keeps of the samples of its fit, to be sent elsewhere."""
        names = ("embedding_", "_data", "graph_", "outlier_share_", "outlier_norm_", "residual_norm_")
        light = copy.copy(self)
        for name in (CALLBACKS, *names):
            light.__dict__.pop(name, None)
        return light

    def _weight(self, name: str) -> float:
        """A weight as the last fit used it."""
        return float(vars(self)[f"{name}_" if name in self.spec.auto else name])

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.positive_only = not self.spec.signed
        tags.input_tags.sparse = self.spec.sparse
        tags.input_tags.allow_nan = self.spec.takes_missing(self)
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags


class BasisAndCodesModel(FactorModel):
    """A model whose fit starts from U and V: all but those that compute their basis from the codes."""

    def fit(
        self,
        X: Any,
        y: Any = None,
        *,
        weights: Any = None,
        U0: Any = None,
        V0: Any = None,
        checkpoint: str | os.PathLike[str] | None = None,
    ) -> Self:
        """Factorise ``X``.

        Parameters
        ----------
        X : array-like, sparse matrix, data frame, AnnData or torch tensor of shape (n, p)
            Samples in rows. float32 is computed in float32, anything else in float64. NaN, or the mask
            of a ``numpy.ma`` array, marks a missing entry for `WeightedNMF`, `LogSparseNMF` and
            ``loss="kullback-leibler"``; the others refuse it.
            NMF, GNMF, LS-NMF, RLS-NMF and WNMF also take Dask, zarr and HDF5 arrays, and what
            `lognmf.in_blocks` and `lognmf.on_workers` make of files and arrays larger than memory.
        y : ignored
            Present for scikit-learn.
        weights : array-like or sparse matrix of shape (n, p), optional
            Weight of every entry in the data term, ≥ 0: ``1 / sigma**2`` for entries with error bars
            ``sigma``, 0 or False for missing ones. For sparse X a sparse matrix; entries that it does not
            store are missing. Models that refuse NaN refuse weights.
        U0, V0 : array-like of shape (p, k) and (n, k), optional
            First factors; the default comes from ``init``. In multiplicative updates zeros stay zero.
        checkpoint : path, optional
            Directory for intermediate results: factors, weights and the number of iterations, written now and
            then during the last fit. The same call, also in another process, starts from there; other data or
            parameters are refused. Remove the directory when it is no longer needed.

        Returns
        -------
        self : object
            The fitted model.

        Raises
        ------
        ValueError, TypeError
            If X, a parameter or a first factor cannot be used; the message says what to do.
        """
        return self.fit_samples(X, {"U0": U0, "V0": V0}, weights, checkpoint=checkpoint)


class TermsModel(BasisAndCodesModel):
    """A model whose objective is a sum of terms (`_problem`), minimised by any of the solvers."""

    solver: str
    spec = Spec(blocks=True)

    @abstractmethod
    def _problem(self, data: Data, W: sp.csr_array | None, weights: Mapping[str, Array]) -> Problem:
        """The objective for a batch of weights (B,)."""

    def _rule(self, data: Data, W: Any, weights: Mapping[str, Array]) -> Any:
        problem = self._problem(data, W, weights)
        return self._chosen_solver(problem).of(problem, unit_components=self.unit_components)

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
        weights = {name: like([1.0], data.pattern) for name in self.spec.weights}
        return SOLVERS[self.solver].refuses(self._problem(data, None, weights))


def specific(parts: np.ndarray) -> np.ndarray:
    """Scores (k, p) of features that are large in one part and not in the others."""
    size = abs(parts.astype(np.float64))
    sums = size.sum(axis=1, keepdims=True)
    share = size / np.where(sums > 0, sums, 1.0)
    usual = share.mean(axis=0)
    ratio = np.divide(share, usual, out=np.ones_like(share), where=usual > 0)
    return share * np.log(np.maximum(ratio, 1.0))


def largest_features(parts: np.ndarray, names: Sequence[Any] | None, n: int) -> list[list[str]]:
    """Names, or numbers, of the at most n features of the largest weight in each part (k, p)."""
    words = [str(j) for j in range(parts.shape[1])] if names is None else [str(name) for name in names]
    order = np.argsort(-abs(parts), axis=1, kind="stable")[:, :n]
    return [[words[j] for j in top if part[j]] for part, top in zip(parts, order, strict=True)]


class Watcher:
    """Called at every evaluation; tells how far the fit is and asks the callbacks.

    At the end of a fit it warns where ``max_iter`` came before convergence.
    """

    def __init__(self, estimator: Any, X: Any, goal: int) -> None:
        self.estimator, self.X, self.goal = estimator, X, goal
        self.context: Any = None
        self._opened = ExitStack()

    def __enter__(self) -> Self:
        estimator = self.estimator
        self._opened.enter_context(printed(int(estimator.verbose)))
        chooses = bool(estimator.auto_weights())
        at_most = estimator.tol > 0 or chooses
        fit = stage(type(estimator).__name__, self.goal, "iterations", at_most=at_most)
        self.stage = self._opened.enter_context(fit)
        if vars(estimator).get("_skl_callbacks") or "_parent_callback_ctx" in vars(estimator):
            subtasks = None if chooses else math.ceil(self.goal / self.estimator.eval_every)
            self.context = self.estimator._init_callback_context(max_subtasks=subtasks)
            self.context.call_on_fit_task_begin(estimator=self.estimator, X=self.X)
        return self

    def __call__(self, iteration: int, objective: np.ndarray) -> bool:
        """Report one evaluation; True if a callback wants to stop."""
        self.stage.move(iteration, f"objective {float(objective.min()):.6g}")
        if self.context is None:
            return False
        task = self.context.subcontext(task_name=f"iteration {iteration}")
        task.call_on_fit_task_begin(estimator=self.estimator, X=self.X)
        return bool(task.call_on_fit_task_end(estimator=self.estimator, X=self.X))

    def __exit__(self, kind: type | None, *error: Any) -> None:
        estimator = self.estimator
        if kind is None:
            self.stage.done, self.stage.note = estimator.n_iter_, f"objective {estimator.objective_:.6g}"
        self._opened.__exit__(kind, *error)
        if kind is not None:
            return
        asked = estimator.spec.converges and estimator.tol > 0 and self.goal > 0
        if asked and estimator.stop_reason_ == "max_iter":
            msg = (
                f"{type(estimator).__name__} ended after max_iter={self.goal} iterations without reaching "
                f"tol={estimator.tol:g}: increase max_iter or tol, or set tol=0 if that is what you want."
            )
            warn(msg, ConvergenceWarning)
        if self.context is not None:
            self.context.call_on_fit_task_end(estimator=estimator, X=self.X)


def _codes_of_block(block: InMemory, model: FactorModel, unit: float) -> tuple[tuple[Array], tuple[()]]:
    """The codes (m, k) of some samples, which are those of the user over ``unit``."""
    U = like(to_numpy(model.components_).T, block.pattern)
    weights = {name: like(np.full(block.shape[0], model._weight(name)), U) for name in model.spec.weights}
    return (unit * encode(model._code_problem(block, weights), U),), ()


def call_of(model: FactorModel, data: Any, given: Mapping[str, Any]) -> dict[str, Any]:
    """What tells a call of `fit` from others, for its checkpoint; the data are read once."""
    parameters = {name: value for name, value in model.get_params().items() if name != "verbose"}
    digest = data.map_rows(_digest, np.arange(data.shape[0]))[1][0]
    about: dict[str, Any] = {"version": package_version(), "model": type(model).__name__}
    about |= {f"parameter {name}": plain(value) for name, value in parameters.items()}
    about |= {name: plain(value) for name, value in given.items()}
    return about | {"place": "workers" if data.distributed else "one process", "data": plain(digest)}


def _digest(block: InMemory, number: np.ndarray) -> tuple[tuple[()], tuple[np.ndarray]]:
    """A hash of a block and its place as numbers, which are added up."""
    parts = [str(number[:1]), *(hash_of(matrix) for matrix in (block.X, block.M) if matrix is not None)]
    return (), (np.frombuffer(hashlib.sha256(" ".join(parts).encode()).digest(), np.uint64),)
