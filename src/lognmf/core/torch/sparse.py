"""Sparse torch tensors in CSR format as data: what torch itself does not offer for them.

Imported only where there is such a tensor, so torch is there too.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import scipy.sparse as sp
import torch

Tensor = Any


def csr_tensor(ends: Tensor, columns: Tensor, values: Tensor, shape: tuple[int, int]) -> Tensor:
    """The tensor with these bounds of its rows, columns and values."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Sparse CSR tensor support is in beta")
        warnings.filterwarnings("ignore", message="Sparse invariant checks are implicitly disabled")
        return torch.sparse_csr_tensor(ends, columns, values, size=shape, check_invariants=False)


def of_scipy(X: sp.csr_array, dtype: Any, device: Any) -> Tensor:
    """``X`` on ``device``, with values of ``dtype``; 32-bit indices where they are large enough."""
    small = max(X.nnz, *X.shape) <= np.iinfo(np.int32).max
    index = torch.int32 if small else torch.int64
    ends, columns = (torch.as_tensor(part).to(device=device, dtype=index) for part in (X.indptr, X.indices))
    return csr_tensor(ends, columns, torch.as_tensor(X.data).to(device=device, dtype=dtype), X.shape)


def to_scipy(X: Tensor) -> sp.csr_array:
    """``X`` as a SciPy matrix."""
    parts = (part.detach().cpu().numpy() for part in (X.values(), X.col_indices(), X.crow_indices()))
    return sp.csr_array(tuple(parts), shape=tuple(X.shape))


def canonical(X: Tensor) -> Tensor:
    """``X`` with the columns of each row in order, each once."""
    row, column = entry_rows(X), X.col_indices().long()
    place = row * X.shape[1] + column
    if bool((place[1:] > place[:-1]).all()):
        return X
    place, group = torch.unique(place, return_inverse=True)
    values = torch.zeros(len(place), dtype=X.dtype, device=X.device).index_add_(0, group, X.values())
    index = X.col_indices().dtype
    ends = _ends(place // X.shape[1], X.shape[0], index)
    return csr_tensor(ends, (place % X.shape[1]).to(index), values, X.shape)


def transposed(X: Tensor) -> Tensor:
    """``Xᵀ`` in CSR format, a copy."""
    column, index = X.col_indices(), X.col_indices().dtype
    order = torch.argsort(column, stable=True)
    rows = entry_rows(X)[order].to(index)
    return csr_tensor(_ends(column, X.shape[1], index), rows, X.values()[order], (X.shape[1], X.shape[0]))


def _ends(rows: Tensor, count: int, index: Any) -> Tensor:
    """Bounds of rows from the row of every entry."""
    counts = torch.bincount(rows, minlength=count)
    return torch.cat([torch.zeros_like(counts[:1]), torch.cumsum(counts, 0)]).to(index)


def entry_rows(X: Tensor) -> Tensor:
    """The row of every stored entry."""
    each = torch.arange(X.shape[0], device=X.device)
    return torch.repeat_interleave(each, torch.diff(X.crow_indices()).long())


def squared_norms(X: Tensor, unit: float = 1.0) -> Tensor:
    """``‖x_i / unit‖²`` of every row."""
    squares = (X.values() / unit) ** 2
    return torch.zeros(X.shape[0], dtype=X.dtype, device=X.device).index_add_(0, entry_rows(X), squares)


def normalised(X: Tensor) -> Tensor:
    """The rows over their norms; over their largest entries first, since squares may overflow or vanish."""
    row, values = entry_rows(X), X.values()
    largest = torch.zeros(X.shape[0], dtype=X.dtype, device=X.device)
    largest = largest.scatter_reduce_(0, row, values.abs(), "amax")
    values = values / torch.where(largest > 0, largest, 1.0)[row]
    scaled = csr_tensor(X.crow_indices(), X.col_indices(), values, X.shape)
    norms = squared_norms(scaled) ** 0.5
    values = values / torch.where(norms > 0, norms, 1.0)[row]
    return csr_tensor(X.crow_indices(), X.col_indices(), values, X.shape)


def _entries_of(X: Tensor, rows: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """For the stored entries of some rows: their places, and which of ``rows`` they are in; row lengths."""
    ends = X.crow_indices().long()
    counts = ends[rows + 1] - ends[rows]
    row = torch.repeat_interleave(torch.arange(len(rows), device=X.device), counts)
    before = torch.cumsum(counts, 0) - counts
    return ends[rows][row] + torch.arange(len(row), device=X.device) - before[row], row, counts


def rows(X: Tensor, index: np.ndarray) -> Tensor:
    """The rows with these indices (m,) as a tensor of its own."""
    entry, _, counts = _entries_of(X, torch.as_tensor(index, device=X.device))
    columns = X.col_indices()[entry]
    ends = torch.cat([torch.zeros_like(counts[:1]), torch.cumsum(counts, 0)]).to(columns.dtype)
    return csr_tensor(ends, columns, X.values()[entry], (len(index), X.shape[1]))


def dense_rows(X: Tensor, rows: Tensor) -> Tensor:
    """The rows with these indices (m,) as a dense tensor (m, p)."""
    entry, row, _ = _entries_of(X, rows)
    out = torch.zeros((len(rows), X.shape[1]), dtype=X.dtype, device=X.device)
    out[row, X.col_indices()[entry].long()] = X.values()[entry]
    return out
