"""CNMF: convex nonnegative matrix factorisation (Ding, Li and Jordan 2010)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass
from typing import Any, Self

import numpy as np
import scipy.sparse as sp

from lognmf.core.arrays import Array, gram, mix, ratio, to_numpy
from lognmf.core.data import InMemory
from lognmf.core.rule import LeastSquaresRule, State
from lognmf.core.starts import Start
from lognmf.models import starts
from lognmf.models.base import FactorModel, KMeansInit, Seed, Spec
from lognmf.models.engine import Fit


@dataclass(frozen=True)
class ConvexRule(LeastSquaresRule):
    """V ← V∘√(KB / V BᵀKB), then B ← B∘√(KV / KB VᵀV), with K = XXᵀ ≥ 0.

    K (n×n) is never formed: ``K B = X (XᵀB)``. The state holds B in the place of U, and
    carries ``K B`` and the basis ``XᵀB``.
    """

    def start(self, B: Array, V: Array) -> State:
        basis = self.data.t_times(B)
        return State(B, V, (self.data.times(basis), basis))

    def step(self, state: State) -> State:
        data, B, V, (KB, _) = self.data, state.U, state.V, state.aux
        V = V * ratio(KB, mix(V, gram(B, KB))) ** 0.5
        KV = data.times(data.t_times(V))
        B = B * ratio(KV, mix(KB, gram(V, V))) ** 0.5
        return self.start(B, V)

    def factors(self, state: State) -> tuple[Array, Array, Array]:
        KB, basis = state.aux
        return basis, state.V, KB


def random(data: InMemory, k: int, rng: np.random.RandomState) -> tuple[np.ndarray, np.ndarray]:
    """B uniform on [0, 1/n), V uniform on [0, 1)."""
    n = data.shape[0]
    return rng.uniform(size=(n, k)) / n, rng.uniform(size=(n, k))


@dataclass(eq=False, repr=False)
class ConvexNMF(FactorModel):
    """CNMF: nonnegative matrix factorisation whose basis is a combination of the samples.

    Minimises ``‖X − V BᵀX‖²_F`` over nonnegative B (n×k) and V (n×k) for nonnegative X; the basis is U = XᵀB.

    Parameters
    ----------
    n_components : int, default=10
        Number of components k.
    init : {"kmeans", "random"}, default="kmeans"
        Start: k-means with cluster indicators H and sizes D, V = H + 0.2, B = (H + 0.2) D⁻¹; or V uniform on
        [0, 1), B on [0, 1/n).
    n_init : int, default=1
        Number of starts, run together as one batch; the best objective wins.
    max_iter : int, default=500
        Maximum number of iterations.
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
        The basis (XᵀB)ᵀ, and the codes V of the training samples.
    combination_ : array of shape (n, k)
        B: how the samples make up the basis.
    objective_, reconstruction_err_ : float
        Value of the objective, and ``‖X − V Uᵀ‖_F``.
    history_ : dict of ndarrays
        ``iteration``, ``seconds`` and ``objective`` of every evaluation.
    n_iter_, stop_reason_ : int and {"converged", "max_iter", "callback"}
        Number of iterations made, and why the fit ended.
    n_features_in_, feature_names_in_ : int and ndarray of shape (p,)
        Number of features p; their names, if X is a data frame with string names.

    See Also
    --------
    SemiNMF : For data of any sign, with a free basis.

    References
    ----------
    C. Ding, T. Li, M. I. Jordan: Convex and semi-nonnegative matrix factorizations. IEEE TPAMI 32 (2010).

    Examples
    --------
    >>> import numpy as np
    >>> from lognmf import ConvexNMF
    >>> X = np.repeat(np.eye(3), 4, axis=0)
    >>> ConvexNMF(3, random_state=0).fit(X).combination_.shape
    (12, 3)
    """

    spec = Spec(starts={"kmeans": Start(starts.convex, in_memory=True), "random": Start(random)})

    n_components: int = 10
    _: KW_ONLY
    init: KMeansInit = "kmeans"
    n_init: int = 1
    max_iter: int = 500
    tol: float = 1e-5
    eval_every: int = 10
    warm_start: bool = False
    random_state: Seed = None
    verbose: int = 0

    def fit(self, X: Any, y: Any = None, *, B0: Any = None, V0: Any = None) -> Self:
        """Factorise ``X``.

        Parameters
        ----------
        X : array-like, sparse matrix, data frame or torch tensor of shape (n, p)
            Nonnegative samples in rows. float32 is computed in float32, anything else in float64.
        y : ignored
            Present for scikit-learn.
        B0, V0 : array-like of shape (n, k), optional
            First combination and codes; the default comes from ``init``. Zeros stay zero.

        Returns
        -------
        self : object
            The fitted model.

        Raises
        ------
        ValueError, TypeError
            If X, a parameter or a first factor cannot be used; the message says what to do.
        """
        return self.fit_samples(X, {"B0": B0, "V0": V0})

    def factor_shapes(self, n: int, p: int) -> dict[str, tuple[int, int]]:
        return {"B0": (n, self.n_components), "V0": (n, self.n_components)}

    def _last(self) -> tuple[Array, Array]:
        return to_numpy(self.combination_), self.embedding_

    def _rule(self, data: InMemory, W: sp.csr_array | None, weights: Mapping[str, Array]) -> Any:
        return ConvexRule(data)

    def _more_attributes(self, fit: Fit, data: InMemory) -> dict[str, Any]:
        return {"combination_": fit.state.U[:, 0, :]}
