"""WNMF: nonnegative matrix factorisation with missing or weighted entries (Kim and Choi 2009)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import scipy.sparse as sp

from lognmf.core.arrays import Array
from lognmf.core.data import InMemory
from lognmf.core.problem import Problem
from lognmf.core.solvers import SOLVERS
from lognmf.core.terms import LOSSES
from lognmf.models.documentation import shared_docs
from lognmf.models.terms_model import TermsModel
from lognmf.parameters import check_choice


@shared_docs
class WeightedNMF(TermsModel):
    """WNMF: nonnegative matrix factorisation of what is known of a matrix.

    Minimises ``Σ m_ij (x_ij − (V Uᵀ)_ij)²`` over nonnegative U (p×k) and V (n×k). Entries
    that are NaN, or 0 in the ``mask`` given to `fit`, are missing; other weights weigh.
    ``inverse_transform(embedding_)`` fills them. With nothing missing it is `PlainNMF`.

    Parameters
    ----------
    n_components : int, default=10
        Number of components k.
    init : {"random", "scaled", "nndsvda", "nndsvdar", "spectral"}, default="random"
        Start: uniform on [0, 1); the same with U scaled to fit the data; NNDSVD with its
        zeros filled; or spectral clustering of the graph of 5 neighbours.
    [[n_init]]
    [[solver]]
    [[iterations]]
    [[loop]]

    Attributes
    ----------
    [[parts_]]
    objective_ : float
        Value of the objective.
    [[history_]]
    reconstruction_err_ : float
        Square root of the objective: the error on the known entries.
    [[features_]]

    References
    ----------
    Y.-D. Kim, S. Choi: Weighted nonnegative matrix factorization. ICASSP 2009.

    Examples
    --------
    >>> import numpy as np
    >>> from lognmf import WeightedNMF
    >>> X = np.outer([1.0, 2.0, 3.0, 4.0], [1.0, 1.0, 2.0])
    >>> X[1, 2] = np.nan
    >>> model = WeightedNMF(1, random_state=0).fit(X)
    >>> round(float(model.inverse_transform(model.embedding_)[1, 2]), 3)
    4.0
    """

    _missing = True

    def __init__(
        self,
        n_components: int = 10,
        *,
        init: str = "random",
        n_init: int = 1,
        solver: str = "mu",
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
        self.solver = solver

    def _check_more_parameters(self) -> None:
        check_choice("solver", self.solver, SOLVERS)

    def _problem(self, data: InMemory, W: sp.csr_array | None, weights: Mapping[str, Array]) -> Problem:
        return Problem(data, LOSSES["frobenius"](data))
