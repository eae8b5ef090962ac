"""The border: what users give, checked once and before any work.

Behind it X is a NumPy array, a CSR matrix or a torch tensor, of float32 or float64,
finite, and nonnegative unless the model takes signed data.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.utils.validation import check_array, validate_data

from lognmf.blocks import RowBlocks, WorkerBlocks
from lognmf.blocks.rows import library
from lognmf.core.arrays import Array, Matrix, is_torch, like, namespace, to_numpy
from lognmf.core.data import InMemory
from lognmf.core.matrices import is_csr_tensor, is_sparse, stored_values
from lognmf.graph import SEARCHES
from lognmf.parameters import check_integer, check_layout, check_sparse, unmasked


@dataclass(frozen=True, eq=False)
class Samples:
    """Data that were read once, with what a model must know to accept or refuse them."""

    data: InMemory
    smallest: float
    largest: float
    weighted: bool
    source: Any

    @property
    def shape(self) -> tuple[int, int]:
        """Number of samples and of features."""
        return self.data.shape


def check_samples(estimator: Any, X: Any, *, reset: bool, weights: Any = None) -> InMemory:
    """Samples (n, p) for ``fit`` (``reset``) or for a fitted estimator; `Samples` are not read again."""
    samples = X if isinstance(X, Samples) else read_samples(X, weights, estimator=estimator)
    check_accepted(estimator, samples, reset=reset)
    if is_torch(samples.source) or isinstance(samples.source, RowBlocks):
        check_features(estimator, samples.source, reset=reset)
    else:
        validate_data(estimator, samples.source, reset=reset, skip_check_array=True)
    if reset:
        _note_labels(estimator, samples.source)
    return samples.data


def _note_labels(estimator: Any, X: Any) -> None:
    """Note the labels of a data frame's columns that are numbers, which scikit-learn takes for no names."""
    vars(estimator).pop("feature_labels_", None)
    if hasattr(X, "iloc") and "feature_names_in_" not in vars(estimator):
        estimator.feature_labels_ = np.array([str(label) for label in X.columns], dtype=object)


def read_samples(X: Any, weights: Any = None, *, estimator: Any = None) -> Samples:
    """Convert and scan ``X``, whatever a model may say to it.

    No temporary of the size of X is made, except the converted copy where X is not
    float32 or float64, and the filled one where entries are missing.
    """
    source = X
    if isinstance(X, RowBlocks | WorkerBlocks):
        msg = (
            "This needs all of X in memory, and X is in blocks of rows: give a NumPy array or a SciPy matrix."
        )
        raise TypeError(msg)
    if is_anndata(X):
        X, source = _of_anndata(X)
    data = converted(X, weights, estimator)
    X = data.X
    values = stored_values(X)
    empty = is_sparse(X) and 0 in values.shape
    smallest, largest = (0.0, 0.0) if empty else (float(values.min()), float(values.max()))
    return Samples(data, smallest, largest, weights is not None, source)


def is_anndata(X: Any) -> bool:
    """Whether ``X`` is an AnnData object; the library is not imported to find out."""
    return library(X) == "anndata" and hasattr(X, "var_names")


def _of_anndata(cells: Any) -> tuple[Any, Any]:
    """The matrix of an AnnData object, and an empty table with the names of its variables."""
    import pandas  # anndata needs it

    if cells.isbacked:
        msg = (
            f"X is an AnnData object on disk: give lognmf.in_blocks({str(cells.filename)!r}), which reads it "
            "block by block, or X.to_memory()."
        )
        raise TypeError(msg)
    if cells.X is None:
        msg = "X is an AnnData object without a matrix X: give one of its layers, X.layers[name]."
        raise ValueError(msg)
    return cells.X, pandas.DataFrame(columns=cells.var_names.astype(str))


def converted(X: Any, weights: Any = None, estimator: Any = None) -> InMemory:
    """``X`` as data in memory, missing entries as weights of 0; not scanned otherwise."""
    if getattr(getattr(X, "dtype", None), "kind", None) in ("m", "M"):
        msg = f"X must hold numbers; got {X.dtype}. Turn dates and times into numbers first."
        raise TypeError(msg)
    X = unmasked(X)
    if is_torch(X):
        X = _check_torch(type(estimator).__name__ if estimator is not None else "the model", X)
    else:
        check_sparse("X", X)
        X = check_array(
            X,
            accept_sparse="csr",
            dtype=[np.float64, np.float32],
            ensure_all_finite=False,  # `check_accepted` does it, and says what to do
            estimator=estimator,
            input_name="X",
        )
    return with_weights(X, weights)


def with_weights(X: Matrix, weights: Any) -> InMemory:
    """An array or CSR matrix as data, with the weights of its entries if not all are 1."""
    if sp.issparse(X) and not X.has_canonical_format:
        X = X.copy()
        X.sum_duplicates()
    M = _entry_weights(X, weights)
    if M is not None:
        X = _known(X, M)
    return InMemory(X, M)


def check_finite(who: str, samples: Samples, *, missing: bool, also: str = "") -> None:
    """Refuse infinity, and NaN unless it marks a ``missing`` entry; ``also`` ends the message."""
    if np.isinf(samples.smallest) or np.isinf(samples.largest):
        msg = "Input X contains infinity: replace such entries, or drop these rows."
        raise ValueError(msg)
    if np.isnan(samples.smallest) or (samples.data.M is not None and not missing):
        msg = (
            f"Input X contains NaN, which {who}: drop or fill such entries, or use WeightedNMF or "
            f"LogSparseNMF with dense X, where NaN marks a missing entry{also}."
        )
        raise ValueError(msg)


def check_accepted(estimator: Any, samples: Samples, *, reset: bool, rows: int | None = None) -> None:
    """Refuse what the estimator's formulas cannot take; ``rows`` are all of them, if these are a block."""
    name, X, M = type(estimator).__name__, samples.data.X, samples.data.M
    missing = estimator.spec.takes_missing(estimator)
    also = ', or loss="kullback-leibler"' if estimator.spec.missing and not missing else ""
    if samples.weighted and not missing:
        msg = (
            f"{name} takes no weights of entries: its formulas need every entry of X. Use "
            f"WeightedNMF or LogSparseNMF, which take them{also}."
        )
        raise TypeError(msg)
    if is_sparse(X) and not estimator.spec.sparse:
        msg = (
            f"{name} keeps a dense residual of the size of X and takes no sparse data: "
            "use a dense copy of X if that fits into memory, or RobustLogSparseNMF."
        )
        raise TypeError(msg)
    if is_csr_tensor(X) and vars(estimator).get("loss", "frobenius") != "frobenius":
        msg = (
            f"loss={estimator.loss!r} needs a dense tensor or a SciPy sparse matrix; X is a sparse tensor: "
            "use X.to_dense(), or give the SciPy matrix."
        )
        raise ValueError(msg)
    check_finite(f"{name} does not take", samples, missing=missing, also=also)
    if M is not None and reset and not _any_known(M):
        msg = "X has no known entry: all of them are missing (NaN, or of weight 0)."
        raise ValueError(msg)
    if samples.smallest < 0 and not estimator.spec.signed:
        how = "" if reset else ", as MinMaxScaler(clip=True) does"
        msg = (
            f"Negative values in data passed to {name}: the smallest entry of X is {samples.smallest:.6g}. "
            f"It is defined for nonnegative data: shift or clip X first{how}, or use SemiNMF."
        )
        raise ValueError(msg)
    dtype = to_numpy(stored_values(X)[:1]).dtype
    room = 16.0 * (rows or X.shape[0]) * X.shape[1]
    size = max(samples.largest, -samples.smallest)
    if size > float(np.sqrt(np.finfo(dtype).max / room)):
        msg = (
            f"X is too large for {dtype}: squares of its largest entry {size:.3g}, summed over "
            "all entries, overflow. Divide X by a constant (unit-norm samples are usual)"
            + (" or use float64." if dtype == np.float32 else ".")
        )
        raise ValueError(msg)


def _entry_weights(X: Matrix, weights: Any) -> Matrix | None:
    """Weights of the entries of ``X`` from ``weights`` and NaN; None if all are 1."""
    if sp.issparse(X):
        return None if weights is None else _sparse_weights(X, weights)
    if is_csr_tensor(X):
        if weights is not None:
            msg = "weights need dense data or a SciPy sparse matrix; X is a sparse tensor: use X.to_dense()."
            raise TypeError(msg)
        return None
    xp = namespace(X)
    # The smallest entry is NaN if any is: no temporary is made where none is missing.
    missing = xp.isnan(X) if bool(xp.isnan(xp.min(X))) else None
    if weights is None and missing is None:
        return None
    if weights is not None:
        weights = _real(weights)
        weights = weights.toarray() if sp.issparse(weights) else weights
    M = xp.ones_like(X) if weights is None else _check_weights(like(weights, X), X.shape)
    if missing is not None:
        M = xp.where(missing, xp.zeros_like(M), M)
    return None if bool(xp.all(M == 1)) else M


def _sparse_weights(X: Matrix, weights: Any) -> sp.csr_array:
    M = sp.csr_array(_real(weights), dtype=X.dtype, copy=True)
    _check_weights(M, X.shape)
    M.eliminate_zeros()
    return M


def _real(weights: Any) -> Any:
    """``weights`` itself, unless it holds something that is no weight."""
    given = weights if sp.issparse(weights) or is_torch(weights) else np.asarray(weights)
    if "complex" in str(given.dtype) or not (is_torch(given) or given.dtype.kind in "buif"):
        msg = f"weights must hold numbers or truth values, one for every entry of X; got {given.dtype}."
        raise TypeError(msg)
    check_sparse("weights", given)
    check_layout("weights", given)
    return given


def _any_known(M: Matrix) -> bool:
    return M.nnz > 0 if sp.issparse(M) else bool(namespace(M).any(M > 0))


def _check_weights(M: Matrix, shape: tuple[int, int]) -> Matrix:
    if tuple(M.shape) != tuple(shape):
        msg = f"weights must have the shape of X, {tuple(shape)}; got {tuple(M.shape)}."
        raise ValueError(msg)
    values = M.data if sp.issparse(M) else M
    smallest, largest = (float(values.min()), float(values.max())) if 0 not in values.shape else (0.0, 0.0)
    if not (np.isfinite(smallest) and np.isfinite(largest) and smallest >= 0):
        msg = "weights must be finite and >= 0, 0 for a missing entry; some are negative, infinite or NaN."
        raise ValueError(msg)
    return M


def _known(X: Matrix, M: Matrix) -> Matrix:
    """``X`` with zeros where nothing is known."""
    if sp.issparse(X):
        return sp.csr_array(X.multiply(M > 0))
    xp = namespace(X)
    return xp.where(M > 0, X, xp.zeros_like(X))


def _check_torch(name: str, X: Any) -> Array:
    """A real tensor of float32 or float64, dense or in canonical CSR format."""
    import torch

    xp = namespace(X)
    if X.ndim != 2:
        msg = f"{name} expects a tensor of shape (samples, features); got shape {tuple(X.shape)}."
        raise ValueError(msg)
    if X.layout not in (torch.strided, torch.sparse_csr):
        msg = (
            f"{name} takes dense tensors and sparse ones in CSR format; got layout {X.layout}. "
            "Use X.to_sparse_csr() or X.to_dense()."
        )
        raise TypeError(msg)
    if xp.isdtype(X.dtype, "complex floating"):
        msg = f"Complex data not supported by {name}; got {X.dtype}."
        raise ValueError(msg)
    if 0 in X.shape:
        msg = f"{name} needs at least one sample and one feature; got shape {tuple(X.shape)}."
        raise ValueError(msg)
    if X.dtype not in (xp.float32, xp.float64):
        X = X.to(xp.float32 if xp.isdtype(X.dtype, "real floating") else xp.float64)
    X = X.detach()
    if not is_csr_tensor(X):
        return X
    from lognmf.core.torch.sparse import canonical

    return canonical(X)


def check_features(estimator: Any, X: Any, *, reset: bool) -> None:
    """Note the number of features, or compare it, where scikit-learn does not know the type of ``X``."""
    if reset:
        estimator.n_features_in_ = X.shape[1]
    elif X.shape[1] != estimator.n_features_in_:
        name, expected = type(estimator).__name__, estimator.n_features_in_
        msg = f"X has {X.shape[1]} features, but {name} is expecting {expected} features as input."
        raise ValueError(msg)


def check_codes(V: Any) -> Array:
    """Codes to be turned into samples: finite, of float32 or float64."""
    if not is_torch(V):
        return check_array(V, dtype=[np.float64, np.float32], input_name="V")
    check_layout("V", V)
    xp = namespace(V)
    if xp.isdtype(V.dtype, "complex floating"):
        msg = f"V must hold real numbers; got {V.dtype}."
        raise ValueError(msg)
    if V.dtype not in (xp.float32, xp.float64):
        V = xp.astype(V, xp.float32 if xp.isdtype(V.dtype, "real floating") else xp.float64)
    if not bool(xp.all(xp.isfinite(V))):
        msg = "V contains NaN or infinity: codes must be finite."
        raise ValueError(msg)
    return V


def check_factor(name: str, F: Any, shape: tuple[int, int], pattern: Array, *, signed: bool = False) -> Array:
    """A given first factor, as a fresh array like ``pattern``."""
    F = to_numpy(F)
    if F.shape != shape:
        msg = f"{name} must have shape {shape}; got {F.shape}."
        raise ValueError(msg)
    if not np.issubdtype(F.dtype, np.number) or np.issubdtype(F.dtype, np.complexfloating):
        msg = f"{name} must hold real numbers; got dtype {F.dtype}."
        raise TypeError(msg)
    if not np.isfinite(F).all() or ((F < 0).any() and not signed):
        msg = f"{name} must be finite and nonnegative: multiplicative updates keep the signs of their start."
        raise ValueError(msg)
    return like(np.array(F), pattern)


def check_same_shape(estimator: Any, n: int, p: int) -> None:
    """Refuse to continue the last fit with data of another shape."""
    (k, last_p), last_n = estimator.components_.shape, estimator.embedding_.shape[0]
    if (last_n, last_p, k) != (n, p, estimator.n_components):
        msg = (
            f"warm_start continues a fit of the same shape: the last one had {last_n} samples, "
            f"{last_p} features and {k} components; now there are {n}, {p} and {estimator.n_components}. "
            "Set warm_start=False, or use a new estimator."
        )
        raise ValueError(msg)


def check_graph_parameters(graph: Any, n_neighbors: Any) -> None:
    """Refuse what cannot name or be a graph."""
    check_integer("n_neighbors", n_neighbors, 1)
    named = graph is None or (isinstance(graph, str) and graph in SEARCHES)
    if not named and (isinstance(graph, str) or not (sp.issparse(graph) or hasattr(graph, "__array__"))):
        names = ", ".join(f'"{name}"' for name in SEARCHES)
        msg = f"graph must be {names}, None or a sparse n×n matrix of weights; got {graph!r}."
        raise ValueError(msg) if isinstance(graph, str) else TypeError(msg)


def unknown_features(data: Any) -> str | None:
    """What to know about features without a known entry, in one sentence; None if there are none."""
    M = getattr(data, "M", None)
    if M is None or is_torch(M) or sp.issparse(M):
        return None
    unknown = np.flatnonzero(~(M > 0).any(axis=0))
    if not unknown.size:
        return None
    return (
        f"X has features without a known entry ({unknown.size}, the first is column {unknown[0]}): drop "
        "them, since their weights in the parts mean nothing."
    )
