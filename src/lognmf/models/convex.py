"""CNMF: convex nonnegative matrix factorisation (Ding, Li and Jordan 2010)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
import scipy.sparse as sp

from lognmf.core.arrays import Array, Matrix, gram, mix, ratio, to_numpy
from lognmf.core.data import InMemory
from lognmf.core.rule import State
from lognmf.core.solvers.least_squares import LeastSquaresRule
from lognmf.models import starts
from lognmf.models.base import FactorModel
from lognmf.models.documentation import shared_docs
from lognmf.models.engine import Fits


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


def random(X: Matrix, k: int, rng: np.random.RandomState) -> tuple[np.ndarray, np.ndarray]:
    """B uniform on [0, 1/n), V uniform on [0, 1)."""
    n = X.shape[0]
    return rng.uniform(size=(n, k)) / n, rng.uniform(size=(n, k))


@shared_docs
class ConvexNMF(FactorModel):
    """CNMF: nonnegative matrix factorisation whose basis is made of the samples themselves.

    Minimises ``‖X − V BᵀX‖²_F`` over nonnegative B (n×k) and V (n×k); the basis is U = XᵀB. For
    nonnegative data.

    Parameters
    ----------
    n_components : int, default=10
        Number of components k.
    init : {"kmeans", "random"}, default="kmeans"
        Start: k-means: V = H + 0.2, B = (H + 0.2) D⁻¹, D the cluster sizes;
        or V uniform on [0, 1), B on [0, 1/n).
    [[n_init]]
    [[iterations]]
    [[loop]]

    Attributes
    ----------
    components_ : array of shape (k, p)
        The basis, (XᵀB)ᵀ.
    embedding_ : array of shape (n, k)
        The codes V of the training samples.
    combination_ : array of shape (n, k)
        B: how the samples make up the basis.
    objective_ : float
        Value of the objective.
    [[history_]]
    reconstruction_err_ : float
        ``‖X − V Uᵀ‖_F``.
    [[features_]]

    References
    ----------
    C. Ding, T. Li, M. I. Jordan: Convex and semi-nonnegative matrix factorizations. IEEE
    TPAMI 32 (2010).

    Examples
    --------
    >>> import numpy as np
    >>> from lognmf import ConvexNMF
    >>> X = np.repeat(np.eye(3), 4, axis=0)
    >>> ConvexNMF(3, random_state=0).fit(X).combination_.shape
    (12, 3)
    """

    _starts: ClassVar = {"kmeans": starts.convex, "random": random}

    def __init__(
        self,
        n_components: int = 10,
        *,
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

    def fit(self, X: Any, y: Any = None, *, mask: None = None, B0: Any = None, V0: Any = None) -> Self:
        """Factorise ``X``.

        Parameters
        ----------
        X : array-like, sparse matrix, data frame or torch tensor of shape (n, p)
            Nonnegative samples in rows. float32 is computed in float32, anything else in
            float64.
        y : ignored
            Present for scikit-learn.
        mask : None
            Refused: entries cannot be left out here. `WeightedNMF` can.
        B0, V0 : array-like of shape (n, k), optional
            First combination and codes. One that is missing comes from ``init``. Entries
            that start at zero stay zero.

        Returns
        -------
        self
        """
        self._fit(X, {"B0": B0, "V0": V0}, mask)
        return self

    def fit_transform(
        self, X: Any, y: Any = None, *, mask: None = None, B0: Any = None, V0: Any = None
    ) -> Array:
        """Factorise ``X`` and return its codes.

        Parameters
        ----------
        X : array-like, sparse matrix, data frame or torch tensor of shape (n, p)
            Nonnegative samples in rows.
        y : ignored
            Present for scikit-learn.
        mask : None
            Refused: entries cannot be left out here. `WeightedNMF` can.
        B0, V0 : array-like of shape (n, k), optional
            First combination and codes, as in `fit`.

        Returns
        -------
        V : array of shape (n, k)
            The codes of the training samples, also kept as ``embedding_``.
        """
        return self._fit(X, {"B0": B0, "V0": V0}, mask)

    def _shapes(self, n: int, p: int) -> dict[str, tuple[int, int]]:
        return {"B0": (n, self.n_components), "V0": (n, self.n_components)}

    def _last(self) -> tuple[Array, Array]:
        return to_numpy(self.combination_), self.embedding_

    def _rule(self, data: InMemory, W: sp.csr_array | None, weights: Mapping[str, Array]) -> Any:
        return ConvexRule(data)

    def _more_attributes(self, fits: Fits) -> dict[str, Any]:
        return {"combination_": fits.state.U[:, 0, :]}
