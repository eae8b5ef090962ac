"""LS-NMF: log-norm regularised sparse NMF (``eq_obj_log``)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass, replace

import scipy.sparse as sp

from lognmf.core.arrays import Array
from lognmf.core.data import Data, InMemory
from lognmf.core.problem import Problem
from lognmf.core.terms import LOSSES, PENALTIES, DataFit, graph_penalty, unless_zero
from lognmf.models.base import SOLVER_CHOICES, Auto, Graph, Init, Loss, PenaltyName, Seed, Solver, TermsModel
from lognmf.models.scale import uneven_norms, uneven_sums
from lognmf.models.weights import SPARSITY, check_sparsity


def regularised(
    data: Data,
    fit: DataFit,
    *,
    W: sp.csr_array | None,
    alpha: Array,
    beta: Array,
    lam: Array,
    penalty: str,
) -> Problem:
    """``fit + λ Tr(VᵀLV) + α‖U‖ + β‖V‖`` for a batch of weights (B,); zero terms left out."""
    sparsity = PENALTIES[penalty]
    graph = graph_penalty(W, lam)
    return Problem(data, fit, unless_zero(alpha, sparsity), graph + unless_zero(beta, sparsity))


@dataclass(eq=False, repr=False)
class LogSparseNMF(TermsModel):
    """LS-NMF: sparse, graph-regularised nonnegative matrix factorisation.

    Minimises over nonnegative U (p×k) and V (n×k)

        ‖X − V Uᵀ‖²_F + lam · Tr(VᵀLV) + alpha · ‖U‖_log + beta · ‖V‖_log

    where ‖M‖_log = Σ log(1 + m) and L is the Laplacian of the neighbour graph of the samples (Peng et al.,
    eq_obj_log). By default there is no graph, and the fit runs to convergence, as sparse as 5 % more error
    allows. To find clusters, use `NMFClustering`. The paper's settings are
    ``LogSparseNMF(k, alpha=0.01, beta=0.001, lam=0.1, solver="mu", unit_components=False, scale=1.0,
    init="random", max_iter=500, tol=0)``.

    Special cases: ``penalty="l1"`` is the ℓ1 model, ``lam=0`` the model without a graph, ``alpha=beta=0``
    GNMF, all three 0 plain NMF. Entries that are NaN, or of weight 0 in the ``weights`` given to `fit`, are
    missing: the data term sums over the known entries, and the graph is built with zeros in place of the
    missing ones.

    Parameters
    ----------
    n_components : int, default=10
        Number of components k.
    alpha : float or "auto", default="auto"
        Weight of the sparsity of the parts U. "auto": as sparse as ``extra_error`` allows.
    beta : float or "auto", default="auto"
        Weight of the sparsity of the codes V. "auto": as for alpha. If both are "auto", the zeros of a fit
        without weights say which of the two gets the penalty, mostly all of it: the parts, or the codes
        where neither factor has zeros, as with spectra. Where entries are missing, both get the same weight.
    lam : float, default=0.0
        Weight of the graph.
    extra_error : float, default=0.05
        With "auto", how much larger the error may be than without sparsity: 0.05 is 5 %. Where the parts
        explain less than half of X, at most this share of what they explain is given up.
    penalty : {"log", "l1"}, default="log"
        Sparsity penalty.
    loss : {"frobenius", "kullback-leibler"}, default="frobenius"
        Data term: the squared error, or for counts and text the divergence ``Σ x log(x/y) − x + y`` with
        ``y = V Uᵀ``.
    graph : {"knn", "exact", "approximate"}, None or sparse matrix of shape (n, n), default="knn"
        Neighbour graph of the samples: built from X, none, or given (symmetric, nonnegative). "knn" is
        "approximate" for large dense X, else "exact", as in `knn_graph`; ``verbose=1`` says which.
    n_neighbors : int, default=5
        Neighbours per sample in the graph; at most n − 1 are used.
    init : {"random", "scaled", "nndsvda", "nndsvdar", "spectral"}, default="nndsvda"
        Start: uniform on [0, 1); the same with U scaled to fit the data; NNDSVD with its zeros filled; or
        spectral clustering of a given graph, or of that of 5 neighbours.
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
    alpha_, beta_ : float
        The weights that were used. With "auto", a fit without the weight and some with trial
        values come first; ``history_`` and ``n_iter_`` are those of the last one. A warm start keeps them.
    objective_, reconstruction_err_ : float
        Value of the objective, and ``‖X − V Uᵀ‖_F``, weighted by ``weights`` if they are given.
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
    RobustLogSparseNMF : Adds an outlier part for samples that do not fit.
    NMFClustering : Finds clusters, without labels.

    Notes
    -----
    The weights have the paper's scale. scikit-learn's NMF halves the data term and multiplies its penalties
    by the numbers of features and samples. With ``penalty="l1"``, ``lam=0`` and ``unit_components=False``,
    half of this objective is scikit-learn's with ``l1_ratio=1``, ``alpha_H = alpha / (2 * n_samples)`` and
    ``alpha_W = beta / (2 * n_features)``: alpha acts on U, which is Hᵀ there.

    Where the norms of the samples differ by much, a few samples decide the fit, and a warning says so:
    `lognmf.normalize` gives all the same norm. docs/defaults.md says how the defaults were chosen.

    References
    ----------
    C. Peng, Y. Zhang, Y. Chen, Z. Kang, C. Chen, Q. Cheng: Log-based sparse nonnegative matrix factorization
    for data representation. Knowledge-Based Systems.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from sklearn.preprocessing import normalize
    >>> from lognmf import LogSparseNMF
    >>> X = normalize(load_digits().data[:100])
    >>> model = LogSparseNMF(5, random_state=0).fit(X)
    >>> model.components_.shape, model.embedding_.shape
    ((5, 64), (100, 5))
    """

    spec = replace(
        TermsModel.spec,
        weights=("alpha", "beta", "lam"),
        graph_weight="lam",
        auto={"alpha": SPARSITY, "beta": SPARSITY},
        choices={"loss": LOSSES, "penalty": PENALTIES, "solver": SOLVER_CHOICES},
        flags=("unit_components",),
        missing=True,
        converges=True,
    )

    n_components: int = 10
    _: KW_ONLY
    alpha: float | Auto = "auto"
    beta: float | Auto = "auto"
    lam: float = 0.0
    extra_error: float = 0.05
    penalty: PenaltyName = "log"
    loss: Loss = "frobenius"
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

    def _check_more_parameters(self) -> None:
        check_sparsity(self)

    def _remark(self, data: Data) -> str | None:
        if not isinstance(self.scale, str):
            return None
        if self.loss != "kullback-leibler":
            return uneven_norms(data)
        return uneven_sums(data) if isinstance(data, InMemory) else None

    def _problem(self, data: Data, W: sp.csr_array | None, weights: Mapping[str, Array]) -> Problem:
        return regularised(data, LOSSES[self.loss](data), W=W, penalty=self.penalty, **weights)
