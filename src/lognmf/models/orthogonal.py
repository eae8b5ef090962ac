"""ONMF: nonnegative matrix factorisation with orthogonal codes (Ding et al. 2006)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass
from typing import Any

import scipy.sparse as sp

from lognmf.core.arrays import Array, gram, mix, ratio
from lognmf.core.data import InMemory
from lognmf.core.rule import LeastSquaresRule, State
from lognmf.core.starts import STARTS, Start
from lognmf.models import starts
from lognmf.models.base import BasisAndCodesModel, KMeansInit, Seed, Spec


@dataclass(frozen=True)
class OrthogonalRule(LeastSquaresRule):
    """V ← V∘√(XU / V VᵀXU), then U ← U∘XᵀV / U VᵀV. Carries ``X @ U``.

    The root belongs there: without it the scale of V flips at every iteration.
    """

    def start(self, U: Array, V: Array) -> State:
        return State(U, V, (self.data.times(U),))

    def step(self, state: State) -> State:
        U, V, (XU,) = state.U, state.V, state.aux
        V = V * ratio(XU, mix(V, gram(V, XU))) ** 0.5
        U = U * ratio(self.data.t_times(V), mix(U, gram(V, V)))
        return State(U, V, (self.data.times(U),))

    def factors(self, state: State) -> tuple[Array, Array, Array]:
        return state.U, state.V, state.aux[0]


@dataclass(eq=False, repr=False)
class OrthogonalNMF(BasisAndCodesModel):
    """ONMF: nonnegative matrix factorisation with nearly orthogonal codes.

    Seeks nonnegative U (p×k) and V (n×k) with ``VᵀV = I`` that minimise ``‖X − V Uᵀ‖²_F``. The updates pull V
    towards the constraint, which then holds approximately: each sample belongs mostly to one component, so V
    is nearly a clustering. The objective may rise a little late in a fit, which then ends as converged.

    Parameters
    ----------
    n_components : int, default=10
        Number of components k.
    init : {"kmeans", "random"}, default="kmeans"
        Start: k-means with cluster indicators H, V = H + 0.2, U the cluster means; or uniform on [0, 1).
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
        The parts Uᵀ, and the codes V of the training samples.
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
    RobustManifoldNMF : Orthonormal codes with a graph, less sensitive to bad samples.

    References
    ----------
    C. Ding, T. Li, W. Peng, H. Park: Orthogonal nonnegative matrix tri-factorizations for clustering. KDD
    2006.

    Examples
    --------
    >>> import numpy as np
    >>> from lognmf import OrthogonalNMF
    >>> X = np.repeat(np.eye(3), 4, axis=0)
    >>> OrthogonalNMF(3, random_state=0).fit(X).embedding_.argmax(axis=1)[::4].tolist() != [0, 0, 0]
    True
    """

    spec = Spec(starts={"kmeans": Start(starts.orthogonal, in_memory=True), "random": STARTS["random"]})

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

    def _rule(self, data: InMemory, W: sp.csr_array | None, weights: Mapping[str, Array]) -> Any:
        return OrthogonalRule(data)
