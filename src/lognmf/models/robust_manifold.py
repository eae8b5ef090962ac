"""RMNMF: robust manifold nonnegative matrix factorisation (Huang, Nie, Huang and Ding 2014)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp

from lognmf.core.arrays import Array, gram, like, mix, namespace, positive, product, to_numpy, total
from lognmf.core.data import InMemory
from lognmf.core.rule import State
from lognmf.core.starts import STARTS, Start
from lognmf.core.terms import Laplacian
from lognmf.models import starts
from lognmf.models.base import Auto, BasisAndCodesModel, Graph, KMeansInit, Seed, Spec
from lognmf.models.engine import Fit
from lognmf.parameters import check_at_least, check_positive


@dataclass(frozen=True)
class RobustManifoldRule:
    """One step of the augmented Lagrangian method.

    Minimises ``‖E‖_{2,1} + λ Tr(VᵀLH)`` subject to E = X − VUᵀ, V = H, H ≥ 0, VᵀV = I. Carries
    E (n, B, p), H (n, B, k), the multipliers Γ and Σ of their shapes, and μ (1, B, 1).
    """

    X: Array  # (n, p), dense as E is
    graph: Laplacian | None  # with weight λ (B,)
    mu: float  # first penalty of the constraints
    rho: float  # its growth
    sign: float  # of (λ/μ) L H in the step of V: the Lagrangian gives −1, the published program has +1

    degree: ClassVar[int] = 1

    def start(self, U: Array, V: Array) -> State:
        """The state from which to step: no outliers, no multipliers."""
        xp = namespace(V)
        n, B, _ = V.shape
        residual = xp.zeros_like(like(np.zeros((n, B, self.X.shape[1])), V))
        mu = like(np.full((1, B, 1), self.mu), V)
        aux = (residual, positive(V), xp.zeros_like(residual), xp.zeros_like(V), mu)
        return State(U, V, aux)

    def step(self, state: State) -> State:
        U, V, (_, H, gamma, sigma, mu) = state.U, state.V, state.aux
        X = self.X[:, None, :]
        E = shrink_rows(X - self._reconstruction(U, V) + gamma / mu, 1 / mu)
        target = X - E + gamma / mu
        xp = namespace(V)
        U = mix(xp.permute_dims(gram(target, V), (1, 0, 2)), xp.linalg.pinv(gram(V, V)))
        H = positive(V + sigma / mu - self._pull(V) / mu)
        projected = mix(target, xp.permute_dims(U, (1, 0, 2)))
        V = nearest_orthonormal(H - sigma / mu + self.sign * self._pull(H) / mu + projected)
        gamma = gamma + mu * (X - self._reconstruction(U, V) - E)
        sigma = sigma + mu * (V - H)
        return State(U, V, (E, H, gamma, sigma, self._grown(mu)))

    def _grown(self, mu: Array) -> Array:
        """The next penalty; bounded, since it grows without end and would overflow."""
        xp = namespace(mu)
        most = xp.full_like(mu, float(xp.finfo(mu.dtype).max) ** 0.5)
        return xp.minimum(self.rho * mu, most)

    def _pull(self, F: Array) -> Array:
        """``λ L F``: half the gradient of the graph term."""
        if self.graph is None:
            return namespace(F).zeros_like(F)
        neg, pos = self.graph.halves(F)(slice(None))
        return pos - neg

    @staticmethod
    def _reconstruction(U: Array, V: Array) -> Array:
        """``V_b U_bᵀ`` of every setting: (n, B, p)."""
        xp = namespace(U)
        wide = xp.matmul(xp.permute_dims(V, (1, 0, 2)), xp.permute_dims(U, (1, 2, 0)))
        return xp.permute_dims(wide, (1, 0, 2))

    def _residual_norms(self, state: State) -> Array:
        residual = self.X[:, None, :] - self._reconstruction(state.U, state.V)
        return namespace(residual).linalg.vector_norm(residual, axis=2)

    def value(self, state: State) -> Array:
        value = total(self._residual_norms(state), axis=0)
        return value if self.graph is None else value + self.graph.value(state.V)

    def factors(self, state: State) -> tuple[Array, Array, Array]:
        """U, V and ``X @ U`` of a state."""
        return state.U, state.V, product(self.X, state.U)

    def squared_error(self, state: State) -> Array:
        """``‖X − V Uᵀ‖²_F`` of every setting, shape (B,), float64."""
        return total(self._residual_norms(state) ** 2, axis=0)

    def constraint_errors(self, state: State) -> tuple[Array, Array]:
        """``‖X − V Uᵀ − E‖_F`` and ``‖V − H‖_F`` of every setting, shape (B,)."""
        E, H = state.aux[:2]
        gap = self.X[:, None, :] - self._reconstruction(state.U, state.V) - E
        return total(gap**2, axis=(0, 2)) ** 0.5, total((state.V - H) ** 2, axis=(0, 2)) ** 0.5

    def settled(self, state: State, tol: float) -> Array:
        """Whether both constraints hold to ``tol``, relative to X (if it is not zero) and to V."""
        residual, split = self.constraint_errors(state)
        size = float(total(self.X**2, axis=(0, 1))) ** 0.5 or 1.0
        return (residual <= tol * size) & (split <= tol * state.V.shape[2] ** 0.5)

    def take(self, index: np.ndarray) -> RobustManifoldRule:
        graph = None if self.graph is None else self.graph.take(index)
        return RobustManifoldRule(self.X, graph, self.mu, self.rho, self.sign)


def shrink_rows(Q: Array, threshold: Array) -> Array:
    """Rows (n, B, p) shortened by ``threshold`` (1, B, 1), to zero at most: the ℓ2,1 shrinkage."""
    xp = namespace(Q)
    norms = xp.linalg.vector_norm(Q, axis=2, keepdims=True)
    known = norms > 0
    share = positive(norms - threshold) / xp.where(known, norms, xp.ones_like(norms))
    return share * Q


def nearest_orthonormal(N: Array) -> Array:
    """``P Qᵀ`` of the thin SVD ``N_b = P S Qᵀ``: the nearest V with VᵀV = I, (n, B, k)."""
    xp = namespace(N)
    P, _, Qt = xp.linalg.svd(xp.permute_dims(N, (1, 0, 2)), full_matrices=False)
    return xp.asarray(xp.permute_dims(xp.matmul(P, Qt), (1, 0, 2)), copy=True)


@dataclass(eq=False, repr=False)
class RobustManifoldNMF(BasisAndCodesModel):
    """RMNMF: robust factorisation with orthonormal codes that are smooth along a graph.

    Minimises ``‖X − V Uᵀ‖_{2,1} + lam · Tr(VᵀLV)`` subject to V ≥ 0 and ``VᵀV = I`` by an augmented
    Lagrangian method, so the objective may rise on the way, and V ≥ 0 holds in the limit. Data and U may have
    any sign. X must be dense, because the method keeps a dense residual. With fewer samples than components,
    ``VVᵀ = I`` takes the place of ``VᵀV = I``.

    Parameters
    ----------
    n_components : int, default=10
        Number of components k.
    lam : float, default=0.01
        Weight of the graph.
    mu : float, default=1e-3
        First penalty of the constraints.
    rho : float, default=1.05
        Growth of the penalty per iteration.
    published_sign : bool, default=False
        Use the published program's sign (+) in the step of V instead of the Lagrangian's (−).
    graph : {"knn", "exact", "approximate"}, None or sparse matrix of shape (n, n), default="knn"
        Neighbour graph of the samples: built from X, none, or given (symmetric, nonnegative). "knn" is
        "approximate" for large dense X, else "exact", as in `knn_graph`; ``verbose=1`` says which.
    n_neighbors : int, default=5
        Neighbours per sample in the graph; at most n − 1 are used.
    init : {"kmeans", "random"}, default="kmeans"
        Start: k-means, indicators + 0.2 of the samples (V) and of the features (U); or uniform on [0, 1).
    n_init : int, default=1
        Number of starts, run together as one batch; the best objective wins.
    scale : float or "auto", default="auto"
        Unit of X in which weights and starts are meant. "auto": the root mean square of the samples' norms,
        missing entries left out, so that ``fit(c * X)`` is the same fit for any c > 0. 1.0: the plain
        objective. Both are the same for samples of unit norm.
    max_iter : int, default=500
        Maximum number of iterations.
    tol : float, default=1e-5
        Stop when both constraints hold to this precision, relative to X and to V; 0 runs all ``max_iter``.
        The default is seldom reached before ``max_iter``; ``constraint_error_`` says how close they are.
    eval_every : int, default=10
        Number of iterations between evaluations of the objective.
    warm_start : bool, default=False
        Continue from the factors of the last fit; the multipliers start from zero.
    random_state : int, RandomState or None, default=None
        Seed or generator for the starts.
    verbose : int, default=0
        1 prints one line per second, 2 one line per evaluation.

    Attributes
    ----------
    components_, embedding_ : arrays of shape (k, p) and (n, k)
        The basis Uᵀ, of any sign, and the codes V of the training samples.
    labels_ : array of shape (n,)
        The method's own clustering: the position of the largest entry in each row of V.
    constraint_error_ : tuple of float
        ``‖X − V Uᵀ − E‖_F`` and ``‖V − H‖_F``: how far the constraints are from holding.
    objective_, reconstruction_err_ : float
        Value of the objective, and ``‖X − V Uᵀ‖_F``.
    history_ : dict of ndarrays
        ``iteration``, ``seconds`` and ``objective`` of every evaluation.
    n_iter_, stop_reason_ : int and {"converged", "max_iter", "callback"}
        Number of iterations made, and why the fit ended.
    graph_ : csr_array of shape (n, n) or None
        The graph W.
    scale_ : float
        The unit of X that was used.
    n_features_in_, feature_names_in_ : int and ndarray of shape (p,)
        Number of features p; their names, if X is a data frame with string names.

    See Also
    --------
    RobustLogSparseNMF : Robust too, for sparse X, and reports an outlier score for every sample.

    References
    ----------
    J. Huang, F. Nie, H. Huang, C. Ding: Robust manifold nonnegative matrix factorization. ACM TKDD 8 (2014).

    Examples
    --------
    >>> import numpy as np
    >>> from lognmf import RobustManifoldNMF
    >>> X = np.repeat(np.eye(3), 4, axis=0)
    >>> V = RobustManifoldNMF(3, n_neighbors=2, random_state=0).fit_transform(X)
    >>> bool(np.allclose(V.T @ V, np.eye(3)))
    True
    """

    spec = Spec(
        weights=("lam",),
        graph_weight="lam",
        starts={"kmeans": Start(starts.robust_manifold, in_memory=True), "random": STARTS["random"]},
        flags=("published_sign",),
        signed=True,
        sparse=False,
        basis_has_unit=True,
    )

    n_components: int = 10
    _: KW_ONLY
    lam: float = 0.01
    mu: float = 1e-3
    rho: float = 1.05
    published_sign: bool = False
    graph: Graph = "knn"
    n_neighbors: int = 5
    init: KMeansInit = "kmeans"
    n_init: int = 1
    scale: float | Auto = "auto"
    max_iter: int = 500
    tol: float = 1e-5
    eval_every: int = 10
    warm_start: bool = False
    random_state: Seed = None
    verbose: int = 0

    def _check_more_parameters(self) -> None:
        check_positive("mu", self.mu)
        check_at_least("rho", self.rho, 1.0)

    def _last(self) -> tuple[Array, Array]:
        # V is nonnegative but for the constraint's error; the multipliers begin anew.
        return to_numpy(self.components_).T, np.maximum(to_numpy(self.embedding_), 0)

    def _rule(self, data: InMemory, W: sp.csr_array | None, weights: Mapping[str, Array]) -> Any:
        graph = None if W is None else Laplacian.of(W, weights["lam"])
        sign = 1.0 if self.published_sign else -1.0
        return RobustManifoldRule(data.rows(slice(None)), graph, float(self.mu), float(self.rho), sign)

    def _more_attributes(self, fit: Fit, data: InMemory) -> dict[str, Any]:
        residual, split = fit.rule.constraint_errors(fit.state)
        V = fit.state.V
        labels = namespace(V).argmax(V[:, 0, :], axis=1)
        return {"labels_": labels, "constraint_error_": (fit.unit * float(residual[0]), float(split[0]))}
