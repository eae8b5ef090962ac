"""ONMF: nonnegative matrix factorisation with orthogonal codes (Ding et al. 2006)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import scipy.sparse as sp

from lognmf.core.arrays import Array, gram, mix, ratio
from lognmf.core.data import InMemory
from lognmf.core.rule import State
from lognmf.core.solvers.least_squares import LeastSquaresRule
from lognmf.core.starts import random
from lognmf.models import starts
from lognmf.models.base import BasisAndCodesModel
from lognmf.models.documentation import shared_docs


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


@shared_docs
class OrthogonalNMF(BasisAndCodesModel):
    """ONMF: nonnegative matrix factorisation with nearly orthogonal codes.

    Seeks nonnegative U (p×k) and V (n×k) with ``VᵀV = I`` that minimise ``‖X − V Uᵀ‖²_F``. The
    updates pull V towards the constraint, which then holds approximately: a sample belongs
    mostly to one component, so V is nearly a clustering. For that the objective may rise
    a little late in a fit, which ends it as converged.

    Parameters
    ----------
    n_components : int, default=10
        Number of components k.
    init : {"kmeans", "random"}, default="kmeans"
        Start: k-means: V = H + 0.2, U the means of the clusters; or uniform on [0, 1).
    [[n_init]]
    [[iterations]]
    [[loop]]

    Attributes
    ----------
    [[parts_]]
    objective_ : float
        Value of the objective.
    [[history_]]
    reconstruction_err_ : float
        ``‖X − V Uᵀ‖_F``.
    [[features_]]

    References
    ----------
    C. Ding, T. Li, W. Peng, H. Park: Orthogonal nonnegative matrix tri-factorizations for
    clustering. KDD 2006.

    Examples
    --------
    >>> import numpy as np
    >>> from lognmf import OrthogonalNMF
    >>> X = np.repeat(np.eye(3), 4, axis=0)
    >>> OrthogonalNMF(3, random_state=0).fit(X).embedding_.argmax(axis=1)[::4].tolist() != [0, 0, 0]
    True
    """

    _starts: ClassVar = {"kmeans": starts.orthogonal, "random": random}

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

    def _rule(self, data: InMemory, W: sp.csr_array | None, weights: Mapping[str, Array]) -> Any:
        return OrthogonalRule(data)
