"""WNMF: nonnegative matrix factorisation with missing or weighted entries (Kim and Choi 2009)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass, replace

import scipy.sparse as sp

from lognmf.core.arrays import Array
from lognmf.core.data import Data
from lognmf.core.problem import Problem
from lognmf.core.terms import LOSSES
from lognmf.models.base import SOLVER_CHOICES, Auto, Init, Seed, Solver, TermsModel


@dataclass(eq=False, repr=False)
class WeightedNMF(TermsModel):
    """WNMF: nonnegative matrix factorisation with missing or weighted entries.

    Minimises ``Σ m_ij (x_ij − (V Uᵀ)_ij)²`` over nonnegative U (p×k) and V (n×k). Entries that are NaN, or
    of weight 0 in the ``weights`` given to `fit`, are missing; any other weight multiplies that entry's
    squared error: ``1 / sigma**2`` for entries with error bars ``sigma``. `impute` fills the
    missing entries. With nothing missing it is `PlainNMF`.

    Parameters
    ----------
    n_components : int, default=10
        Number of components k.
    init : {"random", "scaled", "nndsvda", "nndsvdar", "spectral"}, default="random"
        Start: uniform on [0, 1); the same with U scaled to fit the data; NNDSVD with its zeros filled; or
        spectral clustering of the graph of 5 neighbours.
    n_init : int, default=1
        Number of starts, run together as one batch; the best objective wins.
    solver : {"auto", "cd", "mu"}, default="auto"
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
    scale_ : float
        The unit of X that was used.
    n_features_in_, feature_names_in_ : int and ndarray of shape (p,)
        Number of features p; their names, if X is a data frame with string names.

    See Also
    --------
    LogSparseNMF : Takes missing entries too, with a graph and sparsity.

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
    >>> round(float(model.impute(X)[1, 2]), 2)
    4.0
    """

    spec = replace(TermsModel.spec, choices={"solver": SOLVER_CHOICES}, missing=True)

    n_components: int = 10
    _: KW_ONLY
    init: Init = "random"
    n_init: int = 1
    solver: Solver = "auto"
    scale: float | Auto = "auto"
    max_iter: int = 500
    tol: float = 1e-5
    eval_every: int = 10
    warm_start: bool = False
    random_state: Seed = None
    verbose: int = 0

    def _problem(self, data: Data, W: sp.csr_array | None, weights: Mapping[str, Array]) -> Problem:
        return Problem(data, LOSSES["frobenius"](data))
