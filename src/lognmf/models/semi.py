"""Semi-NMF: codes nonnegative, basis of any sign (Ding, Li and Jordan 2010)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass
from typing import Any, Self

import scipy.sparse as sp

from lognmf.core.arrays import Array, gram, mix, namespace, positive, ratio
from lognmf.core.data import InMemory
from lognmf.core.rule import LeastSquaresRule, State
from lognmf.core.starts import STARTS, Start
from lognmf.models import starts
from lognmf.models.base import FactorModel, KMeansInit, Seed, Spec


@dataclass(frozen=True)
class SemiRule(LeastSquaresRule):
    """U = XᵀV(VᵀV)⁻¹, then V ← V∘√(((XU)⁺ + V(UᵀU)⁻) / ((XU)⁻ + V(UᵀU)⁺)). Carries ``X @ U``."""

    def start(self, U: Array, V: Array) -> State:
        """The state from which to step; the best basis for ``V`` takes the place of ``U``."""
        U = self._best_basis(V)
        return State(U, V, (self.data.times(U),))

    def step(self, state: State) -> State:
        U, V = self._best_basis(state.V), state.V
        XU, UU = self.data.times(U), gram(U, U)
        neg = positive(XU) + mix(V, positive(-UU))
        pos = positive(-XU) + mix(V, positive(UU))
        return State(U, V * ratio(neg, pos) ** 0.5, (XU,))

    def _best_basis(self, V: Array) -> Array:
        # The pseudo-inverse, since components may die; of unit columns, since they may differ in scale.
        xp = namespace(V)
        norms = xp.linalg.vector_norm(V, axis=0)
        norms = xp.where(norms > 0, norms, xp.ones_like(norms))
        unit = V / norms
        VV = gram(unit, unit)
        sizes = xp.linalg.eigvalsh(VV)
        if bool(xp.all(sizes[:, 0] > float(xp.finfo(V.dtype).eps) ** 0.25 * sizes[:, -1])):
            return mix(self.data.t_times(unit), xp.linalg.inv(VV)) / norms
        # Codes are almost dependent, and VᵀV has the square of their condition: V = QR, which takes longer.
        Q, R = xp.linalg.qr(xp.permute_dims(unit, (1, 0, 2)))
        XQ = self.data.t_times(xp.permute_dims(Q, (1, 0, 2)))
        return mix(XQ, xp.permute_dims(xp.linalg.pinv(R), (0, 2, 1))) / norms

    def factors(self, state: State) -> tuple[Array, Array, Array]:
        return state.U, state.V, state.aux[0]


@dataclass(eq=False, repr=False)
class SemiNMF(FactorModel):
    """Semi-NMF: nonnegative codes V (n×k) for data and basis U (p×k) of any sign.

    Minimises ``‖X − V Uᵀ‖²_F`` over V ≥ 0; a soft k-means.

    Parameters
    ----------
    n_components : int, default=10
        Number of components k.
    init : {"kmeans", "random"}, default="kmeans"
        Start: k-means with cluster indicators H, V = H + 0.2; or uniform on [0, 1).
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
        The basis Uᵀ, of any sign, and the codes V of the training samples.
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
    ConvexNMF : For nonnegative data, with a basis made of the samples.

    References
    ----------
    C. Ding, T. Li, M. I. Jordan: Convex and semi-nonnegative matrix factorizations. IEEE TPAMI 32 (2010).

    Examples
    --------
    >>> import numpy as np
    >>> from lognmf import SemiNMF
    >>> X = np.repeat([[1.0, -1.0], [-2.0, 0.5]], 3, axis=0)
    >>> bool(SemiNMF(2, random_state=0).fit(X).reconstruction_err_ < 0.1)
    True
    """

    spec = Spec(
        starts={"kmeans": Start(starts.semi, in_memory=True), "random": STARTS["random"]}, signed=True
    )

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

    def fit(self, X: Any, y: Any = None, *, V0: Any = None) -> Self:
        """Factorise ``X``.

        Parameters
        ----------
        X : array-like, sparse matrix, data frame or torch tensor of shape (n, p)
            Samples in rows, of any sign. float32 is computed in float32, anything else in float64.
        y : ignored
            Present for scikit-learn.
        V0 : array-like of shape (n, k), optional
            First codes, nonnegative; the default comes from ``init``. Zeros stay zero.

        Returns
        -------
        self : object
            The fitted model.

        Raises
        ------
        ValueError, TypeError
            If X, a parameter or a first factor cannot be used; the message says what to do.
        """
        return self.fit_samples(X, {"V0": V0})

    def _rule(self, data: InMemory, W: sp.csr_array | None, weights: Mapping[str, Array]) -> Any:
        return SemiRule(data)
