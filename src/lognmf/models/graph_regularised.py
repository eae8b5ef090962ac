"""GNMF: graph-regularised nonnegative matrix factorisation (Cai et al. 2011)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass, replace

import scipy.sparse as sp

from lognmf.core.arrays import Array
from lognmf.core.data import Data
from lognmf.core.problem import Problem
from lognmf.core.rule import State
from lognmf.core.solvers.multiplicative import unit_columns
from lognmf.core.terms import LOSSES, graph_penalty
from lognmf.models.base import SOLVER_CHOICES, Auto, Graph, Init, Loss, Seed, Solver, TermsModel


@dataclass(eq=False, repr=False)
class GraphNMF(TermsModel):
    """GNMF: nonnegative matrix factorisation with codes that are smooth along a graph.

    Minimises ``‖X − V Uᵀ‖²_F + lam · Tr(VᵀLV)`` over nonnegative U (p×k) and V (n×k), where L is the
    Laplacian of the neighbour graph of the samples.

    Parameters
    ----------
    n_components : int, default=10
        Number of components k.
    lam : float, default=100.0
        Weight of the graph; 100 is the original program's.
    loss : {"frobenius", "kullback-leibler"}, default="frobenius"
        Data term: the squared error, or for counts and text the divergence ``Σ x log(x/y) − x + y`` with
        ``y = V Uᵀ``, which also takes missing entries (NaN) and ``weights``.
    graph : {"knn", "exact", "approximate"}, None or sparse matrix of shape (n, n), default="knn"
        Neighbour graph of the samples: built from X, none, or given (symmetric, nonnegative). "knn" is
        "approximate" for large dense X, else "exact", as in `knn_graph`; ``verbose=1`` says which.
    n_neighbors : int, default=5
        Neighbours per sample in the graph; at most n − 1 are used.
    normalize : bool, default=False
        Scale the columns of U to unit norm, and V inversely, at the start and at the end, as the original
        program does. The last scaling changes the graph term; ``objective_`` is that of the scaled factors.
    init : {"random", "scaled", "nndsvda", "nndsvdar", "spectral"}, default="random"
        Start: uniform on [0, 1); the same with U scaled to fit the data; NNDSVD with its zeros filled; or
        spectral clustering of a given graph, or of that of 5 neighbours.
    n_init : int, default=1
        Number of starts, run together as one batch; the best objective wins.
    solver : {"auto", "cd", "mu"}, default="mu"
        "cd": coordinate descent, which converges in tens to hundreds of iterations with exact zeros. "mu":
        multiplicative updates. "auto": "cd" where it can be used, else "mu" (docs/solvers.md).
    scale : float or "auto", default="auto"
        Unit of X in which weights and starts are meant. "auto": the root mean square of the samples' norms,
        missing entries left out, so that ``fit(c * X)`` is the same fit for any c > 0. 1.0: the plain
        objective. Both are the same for samples of unit norm.
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
        Value of the objective, and ``‖X − V Uᵀ‖_F``, weighted by ``weights`` if they are given.
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
    LogSparseNMF : Adds sparsity, and components of unit norm.
    lognmf.knn_graph : Builds the graph.

    References
    ----------
    D. Cai, X. He, J. Han, T. S. Huang: Graph regularized nonnegative matrix factorization for data
    representation. IEEE TPAMI 33 (2011).

    Examples
    --------
    >>> import numpy as np
    >>> from lognmf import GraphNMF
    >>> X = np.repeat(np.eye(3), 4, axis=0)
    >>> GraphNMF(3, random_state=0).fit(X).embedding_.shape
    (12, 3)
    """

    spec = replace(
        TermsModel.spec,
        weights=("lam",),
        graph_weight="lam",
        choices={"loss": LOSSES, "solver": SOLVER_CHOICES},
        flags=("normalize",),
        missing=("kullback-leibler",),
    )

    n_components: int = 10
    _: KW_ONLY
    lam: float = 100.0
    loss: Loss = "frobenius"
    graph: Graph = "knn"
    n_neighbors: int = 5
    normalize: bool = False
    init: Init = "random"
    n_init: int = 1
    solver: Solver = "mu"
    scale: float | Auto = "auto"
    max_iter: int = 500
    tol: float = 1e-5
    eval_every: int = 10
    warm_start: bool = False
    random_state: Seed = None
    verbose: int = 0

    def _problem(self, data: Data, W: sp.csr_array | None, weights: Mapping[str, Array]) -> Problem:
        return Problem(data, LOSSES[self.loss](data), on_V=graph_penalty(W, weights["lam"]))

    def _prepare(self, U: Array, V: Array) -> tuple[Array, Array]:
        return unit_columns(U, V) if self.normalize else (U, V)

    def _finish(self, state: State) -> State:
        if not self.normalize:
            return state
        U, V = unit_columns(state.U, state.V)
        return State(U, V, (unit_columns(state.U, state.aux[0], inverse=True)[1],))
