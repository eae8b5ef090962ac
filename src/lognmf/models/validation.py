"""The border: what users give, checked once and before any work.

Behind it X is a NumPy array, a CSR matrix or a torch tensor, of float32 or float64,
finite and nonnegative.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.utils.validation import validate_data

from lognmf.core.arrays import Array, Matrix, factor_pattern, is_torch, like, namespace, to_numpy
from lognmf.graph import knn_graph
from lognmf.parameters import check_integer


def check_samples(estimator: Any, X: Any, *, reset: bool) -> Matrix:
    """Samples ``X`` (n, p) for ``fit`` (``reset``) or for a fitted estimator.

    No temporary of the size of X is made, except the converted copy where X is not
    float32 or float64.
    """
    if is_torch(X):
        X = _check_torch(estimator, X, reset=reset)
    else:
        X = validate_data(
            estimator,
            X,
            reset=reset,
            accept_sparse="csr",
            dtype=[np.float64, np.float32],
            ensure_min_samples=1,
            ensure_min_features=1,
        )
    _check_range(type(estimator).__name__, X)
    return X


def _check_torch(estimator: Any, X: Any, *, reset: bool) -> Array:
    name, xp = type(estimator).__name__, namespace(X)
    if X.ndim != 2:
        msg = f"{name} expects a tensor of shape (samples, features); got shape {tuple(X.shape)}."
        raise ValueError(msg)
    if str(X.layout) != "torch.strided":
        msg = f"{name} takes dense tensors; got layout {X.layout}. Use X.to_dense() or a SciPy sparse matrix."
        raise TypeError(msg)
    if xp.isdtype(X.dtype, "complex floating"):
        msg = f"Complex data not supported by {name}; got {X.dtype}."
        raise ValueError(msg)
    if 0 in X.shape:
        msg = f"{name} needs at least one sample and one feature; got shape {tuple(X.shape)}."
        raise ValueError(msg)
    if X.dtype not in (xp.float32, xp.float64):
        X = xp.astype(X, xp.float32 if xp.isdtype(X.dtype, "real floating") else xp.float64)
    X = X.detach()
    if reset:
        estimator.n_features_in_ = X.shape[1]
    elif X.shape[1] != estimator.n_features_in_:
        wanted = estimator.n_features_in_
        msg = f"X has {X.shape[1]} features, but {name} is expecting {wanted} features as input."
        raise ValueError(msg)
    return X


def _check_range(name: str, X: Matrix) -> None:
    values = X.data if sp.issparse(X) else X
    if sp.issparse(X) and X.nnz == 0:
        return
    smallest, largest = float(values.min()), float(values.max())
    if not (np.isfinite(smallest) and np.isfinite(largest)):
        msg = f"Input X contains NaN or infinity. {name} takes finite data: drop or fill such entries first."
        raise ValueError(msg)
    if smallest < 0:
        msg = (
            f"Negative values in data passed to {name}: the smallest entry of X is {smallest:.6g}. "
            "The factorisation is defined for nonnegative data; shift or clip X first."
        )
        raise ValueError(msg)
    dtype = to_numpy(values[:1]).dtype
    room = 16.0 * X.shape[0] * X.shape[1]
    if largest > float(np.sqrt(np.finfo(dtype).max / room)):
        msg = (
            f"X is too large for {dtype}: squares of its largest entry {largest:.3g}, summed over "
            "all entries, overflow. Divide X by a constant (unit-norm samples are usual)"
            + (" or use float64." if dtype == np.float32 else ".")
        )
        raise ValueError(msg)


def check_factor(name: str, F: Any, shape: tuple[int, int], X: Matrix) -> Array:
    """A given first factor, as a fresh array like ``X``."""
    F = to_numpy(F) if is_torch(F) else np.asarray(F)
    if F.shape != shape:
        msg = f"{name} must have shape {shape}; got {F.shape}."
        raise ValueError(msg)
    if not np.issubdtype(F.dtype, np.number) or np.issubdtype(F.dtype, np.complexfloating):
        msg = f"{name} must hold real numbers; got dtype {F.dtype}."
        raise TypeError(msg)
    if not np.isfinite(F).all() or (F < 0).any():
        msg = f"{name} must be finite and nonnegative: multiplicative updates keep the signs of their start."
        raise ValueError(msg)
    return like(np.array(F), factor_pattern(X))


def check_graph_parameters(graph: Any, n_neighbors: Any) -> None:
    """Refuse what cannot name or be a graph."""
    check_integer("n_neighbors", n_neighbors, 1)
    named = graph is None or (isinstance(graph, str) and graph == "knn")
    if not named and (isinstance(graph, str) or not (sp.issparse(graph) or hasattr(graph, "__array__"))):
        msg = f'graph must be "knn", None or a sparse n×n matrix of weights; got {graph!r}.'
        raise ValueError(msg) if isinstance(graph, str) else TypeError(msg)


def build_graph(X: Matrix, graph: Any, n_neighbors: int, *, needed: bool) -> sp.csr_array | None:
    """The graph a model asked for: from ``X`` (only if ``needed``), given, or none."""
    n = X.shape[0]
    if graph is None:
        return None
    if not isinstance(graph, str):
        return _check_graph(graph, n)
    if not needed:
        return None
    # In a tiny set everybody is everybody's neighbour; a single sample has none.
    return knn_graph(X, min(n_neighbors, n - 1)) if n > 1 else sp.csr_array((1, 1))


def _check_graph(W: Any, n: int) -> sp.csr_array:
    """A given graph: symmetric, nonnegative, finite, n×n."""
    if W.ndim != 2 or W.shape != (n, n):
        msg = f"graph must be {n}×{n} for {n} samples; got shape {tuple(W.shape)}."
        raise ValueError(msg)
    W = sp.csr_array(W, dtype=np.float64)
    if not np.isfinite(W.data).all() or (W.data < 0).any():
        msg = "graph must hold finite nonnegative weights; it holds NaN, infinity or negative ones."
        raise ValueError(msg)
    if W.nnz and abs(W - W.T).max() > 1e-10 * W.data.max():
        msg = "graph must be symmetric, but it differs from its transpose; W.maximum(W.T) makes it so."
        raise ValueError(msg)
    return W
