"""RLS-NMF: the robust model, with an outlier part S (``eq_obj_log_robust``)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.utils.validation import check_is_fitted

from lognmf.core.arrays import Array, like, to_numpy
from lognmf.core.data import Data, InMemory
from lognmf.core.problem import Problem
from lognmf.core.rows import Rows, here
from lognmf.core.terms import PENALTIES, ROW_NORMS, Robust
from lognmf.models.base import (
    SOLVER_CHOICES,
    Auto,
    Graph,
    Init,
    PenaltyName,
    RowNormName,
    Seed,
    Solver,
    TermsModel,
)
from lognmf.models.blocks import check_data
from lognmf.models.engine import Fit
from lognmf.models.large_samples import Limited, limited
from lognmf.models.log_sparse import regularised
from lognmf.models.outlying import FEWEST, Neighbours, Score, outlier_limit, usual_residual
from lognmf.models.scale import uneven_norms
from lognmf.models.validation import check_factor
from lognmf.models.weights import OUTLIERS, SPARSITY, check_sparsity


@dataclass(eq=False, repr=False)
class RobustLogSparseNMF(TermsModel):
    """RLS-NMF: robust, sparse, graph-regularised nonnegative matrix factorisation.

    Minimises over nonnegative U (p×k) and V (n×k) and any S (n×p)

        ‖X − S − V Uᵀ‖²_F + gamma · ‖S‖_{2,log}
            + lam · Tr(VᵀLV) + alpha · ‖U‖_log + beta · ‖V‖_log

    where S takes what does not fit out of single samples, ‖S‖_{2,log} = Σ_i log(1 + ‖s_i‖) (Peng et al.,
    eq_obj_log_robust). S is never stored: for each sample it is a share in [0, 1] of its residual.

    By default there is no graph, and the fit runs to convergence with the sparsest parts that 5 % more error
    allows. To find clusters, use `NMFClustering`.

    Parameters
    ----------
    n_components : int, default=10
        Number of components k.
    alpha : float or "auto", default="auto"
        Weight of the sparsity of the parts U. "auto": as sparse as ``extra_error`` allows.
    beta : float or "auto", default="auto"
        Weight of the sparsity of the codes V. "auto": as for alpha. If both are "auto", the zeros of a fit
        without weights say which of the two gets the penalty, mostly all of it: the parts, or the codes
        where neither factor has zeros, as with spectra.
    gamma : float or "auto", default="auto"
        Weight of the outlier part. "auto": such that S leaves alone what is usual: residuals up to the 95 %
        quantile of good samples, and in any case up to a tenth of the typical norm. Good samples are the 80 %
        that are nearest to others and fitted best.
    lam : float, default=0.0
        Weight of the graph.
    extra_error : float, default=0.05
        With "auto", how much larger the error may be than without sparsity: 0.05 is 5 %. Where the parts
        explain less than half of X, at most this share of what they explain is given up.
    penalty : {"log", "l1"}, default="log"
        Sparsity penalty.
    row_norm : {"l2log", "l21"}, default="l2log"
        Norm of the outlier part; "l21" is eq_obj_log_robust2.
    graph : {"knn", "exact", "approximate"}, None or sparse matrix of shape (n, n), default="knn"
        Neighbour graph of the samples: built from X, none, or given (symmetric, nonnegative). "knn" is
        "approximate" for large dense X, else "exact", as in `knn_graph`; ``verbose=1`` says which.
    n_neighbors : int, default=5
        Neighbours per sample in the graph; at most n − 1 are used.
    init : {"random", "scaled", "nndsvda", "nndsvdar", "spectral"}, default="nndsvda"
        Start: uniform on [0, 1); the same with U scaled to fit the data; NNDSVD with its zeros filled; or
        spectral clustering of a given graph, or of that of 5 neighbours. From "random" S absorbs the
        misfit of the start, and hundreds of multiplicative updates hardly move (the paper's behaviour).
    n_init : int, default=1
        Number of starts, run together as one batch; the best objective wins.
    solver : {"auto", "cd", "mu"}, default="auto"
        "cd": coordinate descent, which converges in tens to hundreds of iterations with exact zeros. "mu":
        multiplicative updates. "auto": "cd" where it can be used, else "mu" (docs/solvers.md).
    unit_components : bool, default=True
        Whether the components have unit norm (or are zero). False is the paper's way: scaling V down and U up
        then makes the graph penalty negligible in a long fit.
    scale : float or "auto", default="auto"
        Unit of X in which weights and starts are meant. "auto": the root mean square of the samples' norms,
        missing entries left out, so that ``fit(c * X)`` is the same fit for any c > 0. 1.0: the plain
        objective. Both are the same for samples of unit norm.
    max_iter : int, default=1000
        Maximum number of iterations; a `ConvergenceWarning` says when they did not suffice.
    tol : float, default=1e-5
        Stop when the objective falls by at most this fraction per iteration; 0 runs all ``max_iter``.
    eval_every : int, default=10
        Number of iterations between evaluations of the objective.
    warm_start : bool, default=False
        Continue from the factors of the last fit.
    random_state : int, RandomState or None, default=None
        Seed or generator for the starts.
    verbose : int, default=0
        1 prints one line per second, 2 one line per evaluation.

    Attributes
    ----------
    components_, embedding_ : arrays of shape (k, p) and (n, k)
        The parts Uᵀ, and the codes V of the training samples.
    scale_ : float
        The unit of X that was used.
    alpha_, beta_, gamma_ : float
        The weights that were used. With "auto", a fit without the weight and some with trial
        values come first; ``history_`` and ``n_iter_`` are those of the last one. A warm start keeps them.
    is_outlier_ : array of shape (n,)
        Which training samples are outliers: where gamma is "auto", those far from their neighbours and badly
        fitted (see Notes); else those whose ``outlier_share_`` is not 0.
    outlier_share_ : array of shape (n,)
        Share of each training sample's residual that S takes, in [0, 1].
    residual_norm_ : array of shape (n,)
        ``‖x_i − U v_i‖``: each sample's distance from its reconstruction.
    outlier_norm_ : array of shape (n,)
        ``‖s_i‖`` of each training sample.
    offset_ : float
        Samples with a smaller ``score_samples(X)`` are outliers.
    reference_samples_, feature_spread_, score_units_ : arrays of shape (m, p), (p,) and (3,), or None
        What new samples are judged by: at most 1,000 samples of the fit with features divided by
        ``feature_spread_``, and the units of distances and residuals, and the least residual of an outlier.
    objective_, reconstruction_err_ : float
        Value of the objective at the best S, and ``‖X − V Uᵀ‖_F``.
    history_ : dict of ndarrays
        ``iteration``, ``seconds`` and ``objective`` of every evaluation.
    n_iter_, stop_reason_ : int and {"converged", "max_iter", "callback"}
        Number of iterations made, and why the fit ended.
    graph_ : csr_array of shape (n, n) or None
        The graph W.
    n_features_in_, feature_names_in_ : int and ndarray of shape (p,)
        Number of features p; their names, if X is a data frame with string names.

    See Also
    --------
    LogSparseNMF : The model without an outlier part; its notes hold here too.
    WeightedNMF : For bad entries at known places.

    Notes
    -----
    The score of a sample is minus the logarithm of its distance to the mean of the three nearest samples of
    the fit, and minus half that of its residual. A sample is an outlier if its score is half again as far
    below the median as the 15 % quantile is, and its residual more than a tenth of the typical norm. So at
    most 15 % are outliers: a larger group of samples that are alike is a cluster. Of clean samples usually 0
    to 6 % are called outliers. If gamma is a number, samples are judged by their residuals alone.

    A sample much larger than all others would get a part of its own and be no outlier. So samples whose norm
    is more than three times the median, and more than three spreads above it on a logarithmic scale, are
    scaled down to a tenth of the median norm for the start, the choice of weights and ``scale="auto"``; the
    last fit is of X itself.

    References
    ----------
    C. Peng, Y. Zhang, Y. Chen, Z. Kang, C. Chen, Q. Cheng: Log-based sparse nonnegative matrix factorization
    for data representation. Knowledge-Based Systems.

    Examples
    --------
    >>> import numpy as np
    >>> from lognmf import RobustLogSparseNMF
    >>> rng = np.random.default_rng(0)
    >>> X = rng.random((50, 3)) @ rng.random((3, 20))
    >>> X[7] = rng.permutation(X[7])
    >>> model = RobustLogSparseNMF(3, random_state=0).fit(X)
    >>> np.flatnonzero(model.is_outlier_)
    array([7])
    """

    spec = replace(
        TermsModel.spec,
        weights=("alpha", "beta", "gamma", "lam"),
        graph_weight="lam",
        auto={"gamma": OUTLIERS, "alpha": SPARSITY, "beta": SPARSITY},
        choices={"penalty": PENALTIES, "row_norm": ROW_NORMS, "solver": SOLVER_CHOICES},
        flags=("unit_components",),
        converges=True,
    )

    n_components: int = 10
    _: KW_ONLY
    alpha: float | Auto = "auto"
    beta: float | Auto = "auto"
    gamma: float | Auto = "auto"
    lam: float = 0.0
    extra_error: float = 0.05
    penalty: PenaltyName = "log"
    row_norm: RowNormName = "l2log"
    graph: Graph = "knn"
    n_neighbors: int = 5
    init: Init = "nndsvda"
    n_init: int = 1
    solver: Solver = "auto"
    unit_components: bool = True
    scale: float | Auto = "auto"
    max_iter: int = 1000
    tol: float = 1e-5
    eval_every: int = 10
    warm_start: bool = False
    random_state: Seed = None
    verbose: int = 0

    def outliers(self, X: Any = None, V: Any = None) -> Array:
        """Compute the outlier part S: what the model takes out of each sample.

        Parameters
        ----------
        X : array-like, sparse matrix, data frame or torch tensor of shape (m, p), optional
            Nonnegative samples in rows. Default: the samples of the fit with their codes ``embedding_``, so
            that the norms of the rows of S are ``outlier_norm_``. The model keeps
            a reference to X: do not change it in place.
        V : array-like of shape (m, k), optional
            Codes of ``X``. Default: those of `transform`, which does not use the graph.

        Returns
        -------
        S : array of shape (m, p)
            Dense. ``X − S`` is nonnegative; the norms of the rows of S are outlier scores.

        Raises
        ------
        ValueError
            If X is left out and the model was loaded from a file or unpickled: data are not saved with it.
        """
        check_is_fitted(self)
        data, V = self._samples_and_codes(X, V)
        if not isinstance(data, InMemory):
            msg = (
                "The outlier part is a dense matrix as large as X, which is read in blocks of rows: ask "
                "for a few rows at a time, outliers(X[a:b], V[a:b]) with V = embedding_ or transform(X)."
            )
            raise ValueError(msg)
        V = like(V, data.pattern)
        residual = data.dense_rows(slice(None)) - V @ like(to_numpy(self.components_), data.pattern)
        residual *= self._share(data, V)
        return residual

    def score_samples(self, X: Any, V: Any = None) -> Array:
        """Score samples: the larger, the more usual.

        Parameters
        ----------
        X : array-like, sparse matrix, data frame, torch tensor or blocks of shape (m, p)
            Nonnegative samples in rows.
        V : array-like of shape (m, k), optional
            Codes of ``X``. Default: those of `transform`, which does not use the graph.

        Returns
        -------
        scores : array of shape (m,)
            Minus the logarithm of the distance to the samples of the fit that are next, and of the residual,
            which counts half. Where gamma was given: minus the norm of the residual.
        """
        check_is_fitted(self)
        data, V = self._samples_and_codes(X, V)
        U = like(to_numpy(self.components_).T, data.pattern)[:, None, :]
        neighbours, score = None, Score(1.0, 1.0, 1.0)
        if self.score_units_ is not None and self.feature_spread_ is not None:
            neighbours = Neighbours(self.reference_samples_, self.feature_spread_)
            distance, residual, never = self.score_units_.tolist()
            score = Score(distance, residual, never, -self.offset_)
        shared = (self._data_term(data), U, self.scale_, neighbours, score)
        return -data.in_unit(self.scale_).map_rows(_scores, V, shared=shared)[0][0]

    def decision_function(self, X: Any, V: Any = None) -> Array:
        """Score samples relative to the limit: outliers are below 0.

        Parameters
        ----------
        X, V
            As in `score_samples`.

        Returns
        -------
        scores : array of shape (m,)
            ``score_samples(X) - offset_``.
        """
        return self.score_samples(X, V) - self.offset_

    def is_outlier(self, X: Any, V: Any = None) -> Array:
        """Tell which samples are outliers of the fitted model.

        Parameters
        ----------
        X, V
            As in `score_samples`. For the samples of the fit the model has ``is_outlier_``.

        Returns
        -------
        called : array of bool of shape (m,)
            True where `decision_function` is negative.
        """
        if X is None:
            msg = "is_outlier needs samples, got None: those of the fit have is_outlier_."
            raise ValueError(msg)
        return self.decision_function(X, V) < 0

    def _data_term(self, data: Data) -> Robust:
        return Robust(ROW_NORMS[self.row_norm](), like([self._weight("gamma")], data.pattern))

    def _share(self, data: Data, V: Rows) -> Rows:
        """The share (n, 1) of each residual that is outlier part, for codes V (n, k)."""
        U = like(to_numpy(self.components_).T, data.pattern)[:, None, :]
        shared = (self._data_term(data), U, self.scale_)
        return data.in_unit(self.scale_).map_rows(_shares, V, shared=shared)[0][0]

    def _samples_and_codes(self, X: Any, V: Any) -> tuple[InMemory, Array]:
        """Samples and their codes: those of the fit, given ones, or given samples with solved codes."""
        if X is None:
            if V is not None:
                msg = "V holds the codes of X: give the samples too, outliers(X, V)."
                raise ValueError(msg)
            if "_data" not in vars(self):
                msg = (
                    "This model does not hold the samples of its fit: it was loaded, unpickled or copied. "
                    "Give them with their codes: outliers(X, model.embedding_)."
                )
                raise ValueError(msg)
            return vars(self)["_data"], self.embedding_
        data = check_data(self, X, reset=False)
        if V is None:
            return data, self._encode(data)
        return data, check_factor("V", V, (data.shape[0], self.components_.shape[0]), data.pattern)

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in super().__getstate__().items() if name != "_data"}

    def _check_more_parameters(self) -> None:
        check_sparsity(self)

    def _limited(self, data: Data) -> Limited | None:
        return limited(data)

    def _remark(self, data: Data) -> str | None:
        if not isinstance(self.scale, str):
            return None
        limit = limited(data)
        return uneven_norms(data) if limit is None else uneven_norms(data, limit.consequence)

    def _problem(self, data: Data, W: sp.csr_array | None, weights: Mapping[str, Array]) -> Problem:
        weights = dict(weights)
        fit = Robust(ROW_NORMS[self.row_norm](), weights.pop("gamma"))
        return regularised(data, fit, W=W, penalty=self.penalty, **weights)

    def _more_attributes(self, fit: Fit, data: InMemory) -> dict[str, Any]:
        names = ("outlier_share_", "outlier_norm_", "residual_norm_")
        parts = {name: part[:, 0] for name, part in zip(names, fit.outlier_part() or (), strict=True)}
        return parts | self._judged(fit, data, parts) | {"_data": data}

    def _judged(self, fit: Fit, data: Data, parts: Mapping[str, Rows]) -> dict[str, Any]:
        """Which samples are outliers, and what new ones are judged by."""
        none = dict.fromkeys(("reference_samples_", "feature_spread_", "score_units_"))
        if self.gamma != "auto":
            limit = outlier_limit(ROW_NORMS[self.row_norm](), float(fit.weights["gamma"][0]))
            return none | {"offset_": -fit.unit * limit, "is_outlier_": parts["outlier_share_"] > 0}
        scaled = data.in_unit(fit.unit)
        large = limited(scaled)
        even: Any = scaled if large is None else large.data
        norm = float(np.sqrt(np.mean(to_numpy(even.squared_norms))))
        residuals = to_numpy(here(fit.squared_residuals))[:, 0] ** 0.5
        if data.shape[0] < FEWEST:
            limit = fit.unit * usual_residual(residuals, norm)
            return none | {"offset_": -limit, "is_outlier_": parts["residual_norm_"] > limit}
        neighbours, distances = Neighbours.of(even, scaled)
        distances = to_numpy(here(distances))
        score = Score.of(distances, residuals, (neighbours.norm, norm))
        scores = score(distances, residuals)
        if data.distributed:
            rows: Any = scaled
            called = rows.rows_of(scores[:, None])[:, 0] > score.limit
        else:
            called = like(scores, fit.state.U) > score.limit
        return {
            "reference_samples_": neighbours.samples,
            "feature_spread_": neighbours.spread,
            "score_units_": np.array([score.distance, score.residual, score.never]),
            "offset_": -score.limit,
            "is_outlier_": called,
        }


def _shares(block: InMemory, V: Array, fit: Robust, U: Array, unit: float) -> tuple[tuple[Array], tuple[()]]:
    """The outlier share of samples with codes V (n, k) in the units of X."""
    V = like(V, U)[:, None, :] / unit
    return (fit.outlier_part(fit.squared_residuals(block, U, V, block.times(U)))[0],), ()


def _scores(
    block: InMemory, V: Array, fit: Robust, U: Array, unit: float, neighbours: Neighbours | None, score: Score
) -> tuple[tuple[Array], tuple[()]]:
    """How unusual samples with codes V (n, k) in the units of X are, (n,)."""
    V = like(V, U)[:, None, :] / unit
    residuals = fit.squared_residuals(block, U, V, block.times(U))[:, 0] ** 0.5
    if neighbours is None:
        return (unit * residuals,), ()
    return (like(score(neighbours.distances(block), to_numpy(residuals)), U),), ()
