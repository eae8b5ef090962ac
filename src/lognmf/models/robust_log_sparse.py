"""RLS-NMF: the robust model, with an outlier part S (``eq_obj_log_robust``)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.utils.validation import check_is_fitted

from lognmf.core.arrays import Array, Matrix, factor_pattern, like, product, to_numpy
from lognmf.core.rule import State
from lognmf.core.solvers import SOLVERS
from lognmf.core.terms import PENALTIES, ROW_NORMS, Robust
from lognmf.models.basis_and_codes import BasisAndCodesModel
from lognmf.models.documentation import shared_docs
from lognmf.models.log_sparse import regularised
from lognmf.models.validation import Samples, build_graph, check_graph_parameters, check_samples
from lognmf.parameters import check_choice, check_flag


@shared_docs
class RobustLogSparseNMF(BasisAndCodesModel):
    """RLS-NMF: robust, sparse, graph-regularised nonnegative matrix factorisation.

    Minimises over nonnegative U (p×k) and V (n×k) and any S (n×p)

        ‖X − S − V Uᵀ‖²_F + gamma · ‖S‖_{2,log}
            + lam · Tr(VᵀLV) + alpha · ‖U‖_log + beta · ‖V‖_log

    where S takes what does not fit out of single samples, ‖S‖_{2,log} = Σ_i log(1 + ‖s_i‖)
    (Peng et al., eq_obj_log_robust). S is never stored: each sample has one share in
    [0, 1] of its residual that S takes.

    Parameters
    ----------
    n_components : int, default=10
        Number of components k.
    alpha : float, default=0.01
        Weight of the sparsity of the parts U.
    beta : float, default=0.001
        Weight of the sparsity of the codes V.
    gamma : float, default=1.0
        Weight of the outlier part. For samples of unit norm nothing is taken out of a
        residual of norm up to gamma/2, and nothing at all once gamma >= 2.
    lam : float, default=0.1
        Weight of the graph.
    penalty : {"log", "l1"}, default="log"
        Sparsity penalty.
    row_norm : {"l2log", "l21"}, default="l2log"
        Norm of the outlier part; "l21" is eq_obj_log_robust2.
    [[graph]]
    init : {"random", "scaled", "nndsvda", "nndsvdar", "spectral"}, default="spectral"
        Start: uniform on [0, 1) as in the paper; the same with U scaled to fit the data;
        NNDSVD with its zeros filled; or spectral clustering of the samples' graph of 5
        neighbours, whatever ``graph`` is. From "random" an outlier part absorbs the misfit of
        the start, and hundreds of iterations hardly move (the paper's behaviour).
    [[n_init]]
    [[solver]]
    [[unit_components]]
    [[short_iterations]]
    [[loop]]

    Attributes
    ----------
    [[parts_]]
    outlier_share_ : array of shape (n,)
        Share of each training sample's residual that S takes, in [0, 1].
    residual_norm_ : array of shape (n,)
        ``‖x_i − U v_i‖``: each sample's distance from its reconstruction.
    outlier_norm_ : array of shape (n,)
        ``‖s_i‖`` of each training sample: its outlier score.
    objective_ : float
        Value of the objective at the best S.
    [[history_]]
    reconstruction_err_ : float
        ``‖X − V Uᵀ‖_F``.
    [[graph_]]
    [[features_]]

    See Also
    --------
    LogSparseNMF : The model without an outlier part; its notes hold here too.

    References
    ----------
    C. Peng, Y. Zhang, Y. Chen, Z. Kang, C. Chen, Q. Cheng: Log-based sparse nonnegative
    matrix factorization for data representation. Knowledge-Based Systems.

    Examples
    --------
    >>> import numpy as np
    >>> from lognmf import RobustLogSparseNMF
    >>> rng = np.random.default_rng(0)
    >>> X = rng.random((50, 3)) @ rng.random((3, 20))
    >>> X[7] = 20 * rng.random(20)
    >>> model = RobustLogSparseNMF(3, lam=0, gamma=5, random_state=0).fit(X)
    >>> int(np.argmax(model.outlier_norm_))
    7
    """

    _iterations_follow_start = True
    _weights = ("alpha", "beta", "gamma", "lam")

    def __init__(
        self,
        n_components: int = 10,
        *,
        alpha: float = 0.01,
        beta: float = 0.001,
        gamma: float = 1.0,
        lam: float = 0.1,
        penalty: str = "log",
        row_norm: str = "l2log",
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
        self.gamma = gamma
        self.lam = lam
        self.penalty = penalty
        self.row_norm = row_norm
        self.graph = graph
        self.n_neighbors = n_neighbors

    def outliers(self, X: Any) -> Array:
        """The outlier part S of samples: what the model would take out of each.

        For the data of the fit S belongs to the fit's own codes, so that its row norms
        are ``outlier_norm_``; X is the data of the fit if ``embedding_`` leaves the same
        residual of every sample. Other samples, also some of those of the fit, are coded by
        `transform` first, which knows nothing of the graph.

        Parameters
        ----------
        X : array-like, sparse matrix, data frame or torch tensor of shape (m, p)
            Nonnegative samples in rows.

        Returns
        -------
        S : array of shape (m, p)
            Dense. ``X − S`` is nonnegative; the norms of the rows of S are outlier scores.
        """
        check_is_fitted(self)
        data = check_samples(self, X, reset=False)
        X = data.X
        fit = Robust.of(X, ROW_NORMS[self.row_norm](), like([float(self.gamma)], factor_pattern(X)))
        U = like(to_numpy(self.components_).T, factor_pattern(X))[:, None, :]
        XU = product(X, U)
        V = self._codes_of_fit(fit, U, XU)
        if V is None:
            V = self._encode(data)[:, None, :]
        share, _ = fit.taken(U, V, XU)
        residual = (X.toarray() if sp.issparse(X) else X) - V[:, 0, :] @ U[:, 0, :].T
        residual *= share
        return residual

    def _codes_of_fit(self, fit: Robust, U: Array, XU: Array) -> Array | None:
        """``embedding_`` as a batch of one, if it belongs to the data of ``fit``; else None."""
        if self.embedding_.shape[0] != fit.X.shape[0]:
            return None
        V = like(self.embedding_, U)[:, None, :]
        norms = to_numpy(fit.squared_residuals(U, V, XU)[:, 0]) ** 0.5
        rounding = float(np.finfo(norms.dtype).eps) ** 0.5 * to_numpy(fit.plain.squared_norms) ** 0.5
        return V if (abs(norms - to_numpy(self.residual_norm_)) <= rounding).all() else None

    def _check_more_parameters(self) -> None:
        check_choice("solver", self.solver, SOLVERS)
        check_flag("unit_components", self.unit_components)
        check_choice("penalty", self.penalty, PENALTIES)
        check_choice("row_norm", self.row_norm, ROW_NORMS)
        check_graph_parameters(self.graph, self.n_neighbors)

    def _graph(self, X: Matrix) -> sp.csr_array | None:
        return build_graph(X, self.graph, self.n_neighbors, needed=self.lam > 0)

    def _rule(self, data: Samples, W: sp.csr_array | None, weights: Mapping[str, Array]) -> Any:
        weights = dict(weights)
        fit = Robust.of(data.X, ROW_NORMS[self.row_norm](), weights.pop("gamma"))
        problem = regularised(fit, W=W, penalty=self.penalty, **weights)
        return SOLVERS[self.solver](problem, unit_components=self.unit_components)

    def _more_attributes(self, rule: Any, state: State) -> dict[str, Any]:
        share, norm = rule.problem.fit.taken(*rule.factors(state))
        residuals = rule.problem.fit.squared_residuals(*rule.factors(state))[:, 0] ** 0.5
        return {
            "outlier_share_": share[:, 0],
            "outlier_norm_": norm[:, 0],
            "residual_norm_": residuals,
        }

    def _code_options(self) -> dict[str, Any]:
        return {
            "penalty": PENALTIES[self.penalty],
            "beta": self.beta,
            "row_norm": ROW_NORMS[self.row_norm](),
            "gamma": self.gamma,
        }
