"""RMNMF: robust manifold nonnegative matrix factorisation (Huang, Nie, Huang and Ding 2014)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp

from lognmf.core.arrays import Array, gram, like, mix, namespace, positive, product, to_numpy, total
from lognmf.core.data import InMemory
from lognmf.core.rule import State
from lognmf.core.starts import random
from lognmf.core.terms import Laplacian
from lognmf.models import starts
from lognmf.models.base import BasisAndCodesModel
from lognmf.models.documentation import shared_docs
from lognmf.models.engine import Fits
from lognmf.parameters import check_at_least, check_flag, check_positive


@dataclass(frozen=True)
class RobustManifoldRule:
    """One step of the augmented Lagrangian method.

    Minimises ``‖E‖_{2,1} + λ Tr(VᵀLH)`` subject to E = X − VUᵀ, V = H, H ≥ 0, VᵀV = I. Carries
    E (n, B, p), H (n, B, k), the multipliers Γ and Σ of their shapes, and μ (1, B, 1).

    Parameters
    ----------
    X : array of shape (n, p)
        The data, dense: E is.
    graph : Laplacian or None
        With weight λ (B,).
    mu, rho : floats
        First penalty of the constraints, and its growth.
    sign : -1.0 or 1.0
        Of ``(λ/μ) L H`` in the step of V. The Lagrangian gives −1; the published program has +1.
    """

    X: Array
    graph: Laplacian | None
    mu: float
    rho: float
    sign: float

    by_sample: ClassVar[int] = 4

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
        U = mix(gram_wide(target, V), namespace(V).linalg.pinv(gram(V, V)))
        H = positive(V + sigma / mu - self._pull(V) / mu)
        V = nearest_orthonormal(H - sigma / mu + self.sign * self._pull(H) / mu + multiply_wide(target, U))
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
        """Whether both constraints hold to ``tol``, relative to X and to V."""
        residual, split = self.constraint_errors(state)
        size = float(total(self.X**2, axis=(0, 1))) ** 0.5
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


def gram_wide(T: Array, V: Array) -> Array:
    """``T_bᵀ V_b``: (n, B, p) × (n, B, k) → (p, B, k)."""
    return namespace(T).permute_dims(gram(T, V), (1, 0, 2))


def multiply_wide(T: Array, U: Array) -> Array:
    """``T_b U_b``: (n, B, p) × (p, B, k) → (n, B, k)."""
    return mix(T, namespace(U).permute_dims(U, (1, 0, 2)))


def nearest_orthonormal(N: Array) -> Array:
    """``P Qᵀ`` of the thin SVD ``N_b = P S Qᵀ``: the nearest V with VᵀV = I, (n, B, k)."""
    xp = namespace(N)
    P, _, Qt = xp.linalg.svd(xp.permute_dims(N, (1, 0, 2)), full_matrices=False)
    return xp.asarray(xp.permute_dims(xp.matmul(P, Qt), (1, 0, 2)), copy=True)


@shared_docs
class RobustManifoldNMF(BasisAndCodesModel):
    """RMNMF: robust factorisation with orthonormal codes that are smooth along a graph.

    Minimises ``‖X − V Uᵀ‖_{2,1} + lam · Tr(VᵀLV)`` subject to V ≥ 0 and ``VᵀV = I`` by an augmented
    Lagrangian method, so the objective may rise on the way, and V ≥ 0 holds in the limit.
    Data and U may have any sign. The method keeps a dense residual: X must be dense. With
    fewer samples than components ``VᵀV = I`` cannot be; then ``VVᵀ = I``.

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
        Use the sign of the published program in the step of V (+) instead of that of the
        Lagrangian (−).
    [[graph]]
    init : {"kmeans", "random"}, default="kmeans"
        Start: k-means: indicators + 0.2 of the samples (V) and of the features (U); or uniform on [0, 1).
    [[n_init]]
    max_iter : int, default=500
        Most iterations.
    tol : float, default=1e-5
        Stop when both constraints hold to ``tol``, relative to X and to V; 0 makes exactly
        ``max_iter`` iterations. The default is seldom reached before ``max_iter``:
        ``constraint_error_`` says how near the constraints are.
    eval_every : int, default=10
        Iterations between evaluations of the objective.
    warm_start : bool, default=False
        Start from the factors of the last fit; the multipliers begin anew.
    random_state : int, RandomState or None, default=None
        For the starts.
    verbose : int, default=0
        1 prints a line a second, 2 every evaluation.

    Attributes
    ----------
    components_ : array of shape (k, p)
        The basis, Uᵀ, of any sign.
    embedding_ : array of shape (n, k)
        The codes V of the training samples.
    labels_ : array of shape (n,)
        The largest entry of each row of V: the method's own clustering.
    constraint_error_ : tuple of float
        ``‖X − V Uᵀ − E‖_F`` and ``‖V − H‖_F``: how far the constraints are from holding.
    objective_ : float
        Value of the objective.
    [[history_]]
    reconstruction_err_ : float
        ``‖X − V Uᵀ‖_F``.
    [[graph_]]
    [[features_]]

    References
    ----------
    J. Huang, F. Nie, H. Huang, C. Ding: Robust manifold nonnegative matrix factorization. ACM
    TKDD 8 (2014).

    Examples
    --------
    >>> import numpy as np
    >>> from lognmf import RobustManifoldNMF
    >>> X = np.repeat(np.eye(3), 4, axis=0)
    >>> V = RobustManifoldNMF(3, n_neighbors=2, random_state=0).fit_transform(X)
    >>> bool(np.allclose(V.T @ V, np.eye(3)))
    True
    """

    _weights = ("lam",)
    _starts: ClassVar = {"kmeans": starts.robust_manifold, "random": random}
    _signed = True
    _sparse = False

    def __init__(
        self,
        n_components: int = 10,
        *,
        lam: float = 0.01,
        mu: float = 1e-3,
        rho: float = 1.05,
        published_sign: bool = False,
        graph: Any = "knn",
        n_neighbors: int = 5,
        init: str = "kmeans",
        n_init: int = 1,
        max_iter: int = 500,
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
        self.lam = lam
        self.mu = mu
        self.rho = rho
        self.published_sign = published_sign
        self.graph = graph
        self.n_neighbors = n_neighbors

    def _check_more_parameters(self) -> None:
        check_positive("mu", self.mu)
        check_flag("published_sign", self.published_sign)
        check_at_least("rho", self.rho, 1.0)

    def _last(self) -> tuple[Array, Array]:
        # V is nonnegative but for the constraint's error; the multipliers begin anew.
        return to_numpy(self.components_).T, np.maximum(to_numpy(self.embedding_), 0)

    def _rule(self, data: InMemory, W: sp.csr_array | None, weights: Mapping[str, Array]) -> Any:
        graph = None if W is None else Laplacian.of(W, weights["lam"])
        sign = 1.0 if self.published_sign else -1.0
        return RobustManifoldRule(data.X, graph, float(self.mu), float(self.rho), sign)

    def _more_attributes(self, fits: Fits) -> dict[str, Any]:
        residual, split = fits.rule.constraint_errors(fits.state)
        V = fits.state.V
        labels = namespace(V).argmax(V[:, 0, :], axis=1)
        return {"labels_": labels, "constraint_error_": (float(residual[0]), float(split[0]))}
