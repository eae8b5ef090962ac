"""What becomes of a quantity while a model is fitted."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import clone

from lognmf import metrics

__all__ = ["sparseness_history"]


def sparseness_history(model: Any, X: Any, *, n_iter: int = 500, every: int = 10) -> dict[str, np.ndarray]:
    """Hoyer's sparseness of U and V over the iterations of a fit.

    The fit is made in pieces, each from where the last one ended. For models whose state is U
    and V alone, such as LS-NMF, these are the iterations of a single fit.

    Parameters
    ----------
    model : estimator
        A model of this package; it is not changed. It is fitted with ``tol=0``.
    X : array of shape (n, p)
        Samples.
    n_iter : int, default=500
        Iterations in all.
    every : int, default=10
        Iterations from one value to the next.

    Returns
    -------
    dict of ndarray
        ``iteration``, from ``every`` on, ``sparseness_U`` and ``sparseness_V``.
    """
    start: dict[str, Any] = {}
    graph: dict[str, Any] = {}
    history: dict[str, list[float]] = {"iteration": [], "sparseness_U": [], "sparseness_V": []}
    for done in range(0, n_iter, every):
        steps = min(every, n_iter - done)
        piece = clone(model).set_params(max_iter=steps, tol=0, eval_every=steps, **graph).fit(X, **start)
        graph = {} if getattr(piece, "graph_", None) is None else {"graph": piece.graph_}  # built once
        start = {"U0": piece.components_.T, "V0": piece.embedding_}
        history["iteration"].append(done + steps)
        history["sparseness_U"].append(metrics.hoyer_sparseness(piece.components_))
        history["sparseness_V"].append(metrics.hoyer_sparseness(piece.embedding_))
    return {name: np.array(values) for name, values in history.items()}
