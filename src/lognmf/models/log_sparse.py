"""LS-NMF: log-norm regularised sparse NMF (``eq_obj_log``)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import scipy.sparse as sp

from lognmf.core.arrays import Array
from lognmf.core.data import Data, InMemory
from lognmf.core.problem import Problem
from lognmf.core.solvers import SOLVERS
from lognmf.core.terms import LOSSES, PENALTIES, DataFit, graph_penalty, unless_zero
from lognmf.models.documentation import shared_docs
from lognmf.models.terms_model import TermsModel
from lognmf.parameters import check_choice, check_flag


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


@shared_docs
class LogSparseNMF(TermsModel):
    """LS-NMF: sparse, graph-regularised nonnegative matrix factorisation.

    Minimises over nonnegative U (p×k) and V (n×k)

        ‖X − V Uᵀ‖²_F + lam · Tr(VᵀLV) + alpha · ‖U‖_log + beta · ‖V‖_log

    where ‖M‖_log = Σ log(1 + m) and L is the Laplacian of the neighbour graph of the
    samples (Peng et al., eq_obj_log). Special cases: ``penalty="l1"`` is the ℓ1 model,
    ``lam=0`` the model without a graph, ``alpha=beta=0`` GNMF, all three 0 plain NMF.
    Entries that are NaN, or 0 in the ``mask`` given to `fit`, are missing: the data term
    then sums over the known ones, and the graph is built with zeros in their place.

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
    [[graph]]
    init : {"random", "scaled", "nndsvda", "nndsvdar", "spectral"}, default="spectral"
        Start: uniform on [0, 1) as in the paper; the same with U scaled to fit the data;
        NNDSVD with its zeros filled; or spectral clustering of the samples' graph of 5
        neighbours, whatever ``graph`` is.
    [[n_init]]
    [[solver]]
    [[unit_components]]
    [[short_iterations]]
    [[loop]]

    Attributes
    ----------
    [[parts_]]
    objective_ : float
        Value of the objective.
    [[history_]]
    reconstruction_err_ : float
        ``‖X − V Uᵀ‖_F``; with missing or weighted entries, the square root of the data term.
    [[graph_]]
    [[features_]]

    Notes
    -----
    The weights have the paper's plain scale. scikit-learn's NMF halves the data term and
    multiplies its penalties by the numbers of samples or features; so ``alpha=a`` here
    is ``alpha_W = a / (2 p)``-like there, and not the same number.

    The weights suit samples of unit ℓ2 norm (`sklearn.preprocessing.normalize`), as in the
    paper; docs/defaults.md says how the defaults were chosen.

    References
    ----------
    C. Peng, Y. Zhang, Y. Chen, Z. Kang, C. Chen, Q. Cheng: Log-based sparse nonnegative
    matrix factorization for data representation. Knowledge-Based Systems.

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

    def __init__(
        self,
        n_components: int = 10,
        *,
        alpha: float = 0.01,
        beta: float = 0.001,
        lam: float = 0.1,
        penalty: str = "log",
        graph: Any = "knn",
        n_neighbors: int = 5,
        init: str = "spectral",
        n_init: int = 1,
        solver: str = "mu",
        unit_components: bool = True,
        max_iter: int | None = None,
        tol: float = 1e-5,
        eval_every: int = 10,
        warm_start: bool = False,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        super().__init__(
            n_components,
            init=init,
            n_init=n_init,
            max_iter=max_iter,
            tol=tol,
            eval_every=eval_every,
            warm_start=warm_start,
            random_state=random_state,
            verbose=verbose,
        )
        self.solver = solver
        self.unit_components = unit_components
        self.alpha = alpha
        self.beta = beta
        self.lam = lam
        self.penalty = penalty
        self.graph = graph
        self.n_neighbors = n_neighbors

    def _check_more_parameters(self) -> None:
        check_choice("solver", self.solver, SOLVERS)
        check_flag("unit_components", self.unit_components)
        check_choice("penalty", self.penalty, PENALTIES)

    def _problem(self, data: InMemory, W: sp.csr_array | None, weights: Mapping[str, Array]) -> Problem:
        return regularised(data, LOSSES["frobenius"](data), W=W, penalty=self.penalty, **weights)
