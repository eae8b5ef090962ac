"""LS-NMF: log-norm regularised sparse NMF (``eq_obj_log``)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass
from typing import ClassVar

import scipy.sparse as sp

from lognmf.core.arrays import Array
from lognmf.core.data import Data, InMemory
from lognmf.core.problem import Problem
from lognmf.core.solvers import SOLVERS
from lognmf.core.terms import LOSSES, PENALTIES, DataFit, graph_penalty, unless_zero
from lognmf.models.base import Graph, Init, Seed, WithGraph
from lognmf.models.terms_model import Loss, PenaltyName, Solver, TermsModel


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
class LogSparseNMF(WithGraph, TermsModel):
    """LS-NMF: sparse, graph-regularised nonnegative matrix factorisation.

    Minimises over nonnegative U (p×k) and V (n×k)

        ‖X − V Uᵀ‖²_F + lam · Tr(VᵀLV) + alpha · ‖U‖_log + beta · ‖V‖_log

    where ‖M‖_log = Σ log(1 + m) and L is the Laplacian of the neighbour graph of the samples (Peng et al.,
    eq_obj_log). By default `fit` does not run to convergence: it makes 30 updates from a spectral clustering
    of the samples, because longer fits often cluster worse. ``solver="cd"`` converges.

    Special cases: ``penalty="l1"`` is the ℓ1 model, ``lam=0`` the model without a graph, ``alpha=beta=0``
    GNMF, all three 0 plain NMF. Entries that are NaN, or 0 in the ``mask`` given to `fit`, are missing: the
    data term sums over the known entries, and the graph is built with zeros in place of the missing ones.

    Parameters
    ----------
    n_components : int, default=10
        Number of components k.
    alpha : float, default=0.01
        Weight of the sparsity of the parts U.
    beta : float, default=0.001
        Weight of the sparsity of the codes V.
    lam : float, default=0.1
        Weight of the graph.
    penalty : {"log", "l1"}, default="log"
        Sparsity penalty.
    loss : {"frobenius", "kullback-leibler"}, default="frobenius"
        Data term: the squared error, or for counts and text the divergence ``Σ x log(x/y) − x + y`` with
        ``y = V Uᵀ``, which needs ``solver="mu"``.
    graph : {"knn"}, None or sparse matrix of shape (n, n), default="knn"
        Neighbour graph of the samples: built from X, none, or given (symmetric, nonnegative).
    n_neighbors : int, default=5
        Neighbours per sample in the graph; at most n − 1 are used.
    init : {"random", "scaled", "nndsvda", "nndsvdar", "spectral"}, default="spectral"
        Start: uniform on [0, 1); the same with U scaled to fit the data; NNDSVD with its zeros filled; or
        spectral clustering of the graph of 5 neighbours, whatever ``graph`` is.
    n_init : int, default=1
        Number of starts, run together as one batch; the best objective wins.
    solver : {"mu", "cd"}, default="mu"
        "mu": multiplicative updates. "cd": coordinate descent, which converges in tens of iterations with
        exact zeros; needs numba, and NumPy or SciPy data without missing entries (docs/solvers.md).
    unit_components : bool, default=True
        Whether the components have unit norm (or are zero). False is the paper's way: scaling V down and U up
        then makes the graph penalty negligible in a long fit.
    max_iter : int or None, default=None
        Maximum number of iterations. None: 30 for ``solver="mu"`` from the spectral start, because further
        updates improve the reconstruction and blur the clusters (docs/defaults.md); otherwise, and from given
        factors, 500.
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
    objective_, reconstruction_err_ : float
        Value of the objective, and ``‖X − V Uᵀ‖_F``, weighted by the mask if there is one.
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
    lognmf.tune : Chooses the weights without labels.

    Notes
    -----
    The weights have the paper's scale. scikit-learn's NMF halves the data term and multiplies its penalties
    by the numbers of features and samples. With ``penalty="l1"``, ``lam=0`` and ``unit_components=False``,
    half of this objective is scikit-learn's with ``l1_ratio=1``, ``alpha_H = alpha / (2 * n_samples)`` and
    ``alpha_W = beta / (2 * n_features)``: alpha acts on U, which is Hᵀ there.

    The defaults suit samples of unit ℓ2 norm (`sklearn.preprocessing.normalize`), as in the paper;
    docs/defaults.md says how they were chosen.

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
    >>> model = LogSparseNMF(5, max_iter=50, random_state=0).fit(X)
    >>> model.components_.shape, model.embedding_.shape
    ((5, 64), (100, 5))
    """

    _iterations_follow_start = True
    _weights = ("alpha", "beta", "lam")
    _missing = True
    _choices: ClassVar = {"loss": LOSSES, "penalty": PENALTIES, "solver": SOLVERS}
    _flags = ("unit_components",)

    n_components: int = 10
    _: KW_ONLY
    alpha: float = 0.01
    beta: float = 0.001
    lam: float = 0.1
    penalty: PenaltyName = "log"
    loss: Loss = "frobenius"
    graph: Graph = "knn"
    n_neighbors: int = 5
    init: Init = "spectral"
    n_init: int = 1
    solver: Solver = "mu"
    unit_components: bool = True
    max_iter: int | None = None
    tol: float = 1e-5
    eval_every: int = 10
    warm_start: bool = False
    random_state: Seed = None
    verbose: int = 0

    def _problem(self, data: InMemory, W: sp.csr_array | None, weights: Mapping[str, Array]) -> Problem:
        return regularised(data, LOSSES[self.loss](data), W=W, penalty=self.penalty, **weights)
