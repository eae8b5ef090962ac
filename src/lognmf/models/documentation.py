"""What the docstrings of all models say alike, written once.

A class decorated with `shared_docs` writes ``[[name]]`` on a line of its own where a passage
below is to stand.
"""

from __future__ import annotations

from typing import TypeVar

Class = TypeVar("Class", bound=type)

PASSAGES = {
    "n_init": """
    n_init : int, default=1
        Starts, run together as one batch; the best objective wins.
""",
    "iterations": """
    max_iter : int, default=500
        Most iterations.
""",
    "short_iterations": """
    max_iter : int or None, default=None
        Most iterations. None: 30 from a spectral start with the solver "mu", since more of
        them trade its clusters for a closer fit (docs/defaults.md); else, and from given
        factors, 500.
""",
    "loop": """
    tol : float, default=1e-5
        Stop when the objective falls by at most ``tol`` of itself per iteration;
        0 makes exactly ``max_iter`` iterations.
    eval_every : int, default=10
        Iterations between evaluations of the objective.
    warm_start : bool, default=False
        Continue from the factors of the last fit.
    random_state : int, RandomState or None, default=None
        For the starts.
    verbose : int, default=0
        1 prints a line a second, 2 every evaluation.
""",
    "solver": """
    solver : {"mu", "cd"}, default="mu"
        "mu": multiplicative updates, S, then U, then V, as in the papers. "cd": coordinate
        sweeps with rescaling and extrapolation, which converge in tens of iterations and give exact
        zeros; NumPy and SciPy data without missing entries; needs numba.
        docs/solvers.md says what to use when.
""",
    "unit_components": """
    unit_components : bool, default=True
        Whether the components have unit norm (or are zero). False is the paper's way: scaling V down
        and U up then makes the graph penalty negligible in a long fit.
""",
    "graph": """
    graph : {"knn"}, None or sparse matrix of shape (n, n), default="knn"
        Neighbour graph: built from X, none, or given (symmetric, nonnegative).
    n_neighbors : int, default=5
        Neighbours per sample in the graph; at most n − 1 are used.
""",
    "parts_": """
    components_ : array of shape (k, p)
        The parts, Uᵀ.
    embedding_ : array of shape (n, k)
        The codes V of the training samples.
""",
    "history_": """
    history_ : dict of ndarrays
        ``iteration``, ``seconds`` and ``objective`` of every evaluation.
    n_iter_ : int
        Iterations made.
    stop_reason_ : {"converged", "max_iter", "callback"}
        Why the fit ended.
""",
    "graph_": """
    graph_ : csr_array of shape (n, n) or None
        The graph W.
""",
    "features_": """
    n_features_in_ : int
        Number of features p.
    feature_names_in_ : ndarray of shape (p,)
        Names of the features, when X is a data frame with string names.
""",
}
"""Passages by name; an underscore at the end means fitted attributes."""


def shared_docs(cls: Class) -> Class:
    """Put the shared passages into the docstring of ``cls``."""
    text = cls.__doc__ or ""
    for name, passage in PASSAGES.items():
        text = text.replace(f"    [[{name}]]", passage.strip("\n"))
    cls.__doc__ = text
    return cls
