"""Data matrices of any kind: NumPy arrays, SciPy matrices, torch tensors, dense or in CSR format."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from lognmf.core.arrays import Array, Matrix, is_torch, like, namespace, take, to_numpy
from lognmf.core.threads import BLOCK_NUMBERS


def is_csr_tensor(x: Any) -> bool:
    """Whether ``x`` is a sparse torch tensor in CSR format."""
    return is_torch(x) and str(x.layout) == "torch.sparse_csr"


def is_sparse(X: Matrix) -> bool:
    """Whether ``X`` is a SciPy matrix or a sparse tensor."""
    return sp.issparse(X) or is_csr_tensor(X)


def stored_values(X: Matrix) -> Array:
    """The stored entries of sparse ``X``; dense ``X`` itself."""
    if is_csr_tensor(X):
        return X.values()
    return X.data if sp.issparse(X) else X


def on_cpu(X: Matrix) -> Matrix:
    """Dense or sparse ``X`` as a NumPy array or a SciPy matrix."""
    if is_csr_tensor(X):
        from lognmf.core.torch.sparse import to_scipy

        return to_scipy(X)
    return X if sp.issparse(X) else to_numpy(X)


def to_device(X: Matrix, device: Any = "cuda", dtype: str | None = None) -> Matrix:
    """Bring data to a GPU, as the torch tensor that models, `knn_graph` and `fit_grid` take.

    Parameters
    ----------
    X : array-like, sparse matrix, data frame or torch tensor of shape (n, p)
        Samples in rows.
    device : str or torch.device, default="cuda"
        A device of torch: "cuda", "cuda:1", "cpu".
    dtype : {"float32", "float64"}, optional
        Type of the numbers. Default: "float32" on a GPU, where it is twice as fast, else that of X.

    Returns
    -------
    torch.Tensor of shape (n, p)
        Dense, or in CSR format if X is sparse.

    Raises
    ------
    ImportError
        If torch is not installed.
    ValueError, TypeError
        If there is no such device or type, or X holds something other than numbers.

    See Also
    --------
    fit_grid : Brings its data to a ``device`` itself.

    Examples
    --------
    >>> from lognmf import LogSparseNMF, to_device
    >>> X = to_device([[1.0, 0.0], [0.0, 2.0]], "cpu")
    >>> LogSparseNMF(2).fit(X).components_.shape
    torch.Size([2, 2])
    """
    check_dtype(dtype)
    try:
        import torch
    except ImportError as error:
        msg = f'device={device!r} needs torch: run pip install "lognmf[torch]".'
        raise ImportError(msg) from error
    try:
        place = torch.device(device)
    except (RuntimeError, TypeError) as error:
        msg = f'device must be a name of torch such as "cuda" or "cpu"; got {device!r}.'
        raise (TypeError if isinstance(error, TypeError) else ValueError)(msg) from error
    if place.type == "cuda" and not torch.cuda.is_available():
        name = str(place)
        msg = f"device={name!r}: torch {torch.__version__} sees no GPU here. Fit X as it is to use the CPU."
        raise ValueError(msg)
    if dtype is None and place.type == "cuda":
        dtype = "float32"
    kind = None if dtype is None else getattr(torch, dtype)
    if is_torch(X):
        return X.to(device=place, dtype=kind)
    if not sp.issparse(X):
        X = to_numpy(X)
        if X.dtype.kind not in "buif":
            msg = f"X must hold numbers; got {X.dtype}."
            raise TypeError(msg)
        return torch.as_tensor(X).to(device=place, dtype=kind)
    from lognmf.core.torch.sparse import of_scipy

    return of_scipy(sp.csr_array(X), kind, place)


def check_dtype(dtype: str | None) -> None:
    """Refuse what is no type of numbers that fits are made in."""
    if dtype not in (None, "float32", "float64"):
        msg = f'dtype must be "float32" or "float64"; got {dtype!r}.'
        raise ValueError(msg)


def factor_pattern(X: Matrix) -> Array:
    """An array in whose library, dtype and device the factors of ``X`` live."""
    if is_csr_tensor(X):
        return X.values()[:0]
    return np.empty(0, dtype=X.dtype) if sp.issparse(X) else X


def operator_like(W: sp.sparray, pattern: Array) -> Matrix:
    """Sparse ``W`` as what can be multiplied with ``pattern``: its dtype, library, device."""
    if isinstance(pattern, np.ndarray):
        return sp.csr_array(W, dtype=pattern.dtype)
    if not is_torch(pattern):
        return like(W.toarray(), pattern)
    from lognmf.core.torch.sparse import of_scipy

    return of_scipy(sp.csr_array(W), pattern.dtype, pattern.device)


def rows_of(X: Matrix, index: np.ndarray) -> Matrix:
    """The rows ``index`` of ``X``, in their order."""
    if is_csr_tensor(X):
        from lognmf.core.torch.sparse import rows

        return rows(X, index)
    return X[index] if sp.issparse(X) else take(X, index, axis=0)


def squared_row_norms(X: Matrix) -> Array:
    """``‖x_i‖²`` of every row, without a temporary of the size of ``X``."""
    if sp.issparse(X):
        return sparse_squared_row_norms(X.tocsr())
    if is_csr_tensor(X):
        return sparse_squared_row_norms(X)
    if isinstance(X, np.ndarray):
        return np.einsum("ij,ij->i", X, X)
    return namespace(X).linalg.vector_norm(X, axis=1) ** 2


def sparse_squared_row_norms(X: Matrix, unit: float = 1.0) -> Array:
    """``‖x_i / unit‖²`` of every row."""
    if is_csr_tensor(X):
        from lognmf.core.torch.sparse import squared_norms

        return squared_norms(X, unit)
    n = X.shape[0]
    squares = np.zeros(n, dtype=X.dtype)
    step = max(1, BLOCK_NUMBERS * n // (4 * max(1, X.nnz)))
    for start in range(0, n, step):
        ends = X.indptr[start : start + step + 1]
        filled = np.flatnonzero(np.diff(ends))
        block = (X.data[ends[0] : ends[-1]] / unit) ** 2
        squares[start + filled] = np.add.reduceat(block, ends[filled] - ends[0]) if filled.size else 0
    return squares


def with_small_indices(W: sp.csr_array) -> sp.csr_array:
    """``W`` with 32-bit indices, which some libraries insist on, where they are large enough."""
    if W.indptr.dtype == np.int32 or max(W.nnz, *W.shape) > np.iinfo(np.int32).max:
        return W
    return sp.csr_array((W.data, W.indices.astype(np.int32), W.indptr.astype(np.int32)), shape=W.shape)
