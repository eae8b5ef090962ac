"""GNMF: graph-regularised nonnegative matrix factorisation (Cai et al. 2011)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import scipy.sparse as sp

from lognmf.core.arrays import Array
from lognmf.core.data import InMemory
from lognmf.core.problem import Problem
from lognmf.core.rule import State
from lognmf.core.solvers import SOLVERS
from lognmf.core.solvers.multiplicative import unit_columns
from lognmf.core.terms import Frobenius, graph_penalty
from lognmf.models.documentation import shared_docs
from lognmf.models.terms_model import TermsModel
from lognmf.parameters import check_choice, check_flag


@shared_docs
class GraphNMF(TermsModel):
    """GNMF: nonnegative matrix factorisation with codes that are smooth along a graph.

    Minimises ``‖X − V Uᵀ‖²_F + lam · Tr(VᵀLV)`` over nonnegative U (p×k) and V (n×k), L the
    Laplacian of the neighbour graph of the samples.

    Parameters
    ----------
    n_components : int, default=10
        Number of components k.
    lam : float, default=100.0
        Weight of the graph; 100 is the original program's.
    [[graph]]
    normalize : bool, default=False
        Scale the columns of U to unit norm, and V inversely, at the start and at the end,
        as the original program does. The last scaling changes the graph term;
        ``objective_`` is that of the scaled factors.
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
        ``‖X − V Uᵀ‖_F``.
    [[graph_]]
    [[features_]]

    References
    ----------
    D. Cai, X. He, J. Han, T. S. Huang: Graph regularized nonnegative matrix factorization
    for data representation. IEEE TPAMI 33 (2011).

    Examples
    --------
    >>> import numpy as np
    >>> from lognmf import GraphNMF
    >>> X = np.repeat(np.eye(3), 4, axis=0)
    >>> GraphNMF(3, random_state=0).fit(X).embedding_.shape
    (12, 3)
    """

    _weights = ("lam",)

    def __init__(
        self,
        n_components: int = 10,
        *,
        lam: float = 100.0,
        graph: Any = "knn",
        n_neighbors: int = 5,
        normalize: bool = False,
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
        self.lam = lam
        self.graph = graph
        self.n_neighbors = n_neighbors
        self.normalize = normalize

    def _check_more_parameters(self) -> None:
        check_choice("solver", self.solver, SOLVERS)
        check_flag("normalize", self.normalize)

    def _problem(self, data: InMemory, W: sp.csr_array | None, weights: Mapping[str, Array]) -> Problem:
        return Problem(data, Frobenius(), on_V=graph_penalty(W, weights["lam"]))

    def _prepare(self, U: Array, V: Array) -> tuple[Array, Array]:
        return unit_columns(U, V) if self.normalize else (U, V)

    def _finish(self, state: State) -> State:
        if not self.normalize:
            return state
        U, V = unit_columns(state.U, state.V)
        return State(U, V, (unit_columns(state.U, state.aux[0], inverse=True)[1],))
