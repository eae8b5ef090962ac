"""What the core may ask of the data X (n, p): products, norms, and one pass over its blocks of rows.

Terms and rules never touch X itself. Between ``X @ U`` and ``Xᵀ V`` an iteration treats every sample on its
own, so one pass over blocks of rows serves both products. Data in memory are a single block.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol

import numpy as np
import scipy.sparse as sp

from lognmf.core import sparse_products
from lognmf.core.arrays import Array, Matrix, namespace, on_gpu, product, product_t
from lognmf.core.matrices import (
    factor_pattern,
    is_csr_tensor,
    is_sparse,
    rows_of,
    sparse_squared_row_norms,
    squared_row_norms,
)


class Data(Protocol):
    """Samples in rows, wherever they are."""

    @property
    def shape(self) -> tuple[int, int]:
        """Number of samples and of features."""

    @property
    def pattern(self) -> Array:
        """An array in whose library, dtype and device the factors live."""

    def blocks(self) -> Iterator[tuple[slice, InMemory]]:
        """Blocks of rows, each with its place among all rows; every row once, in order."""

    @property
    def weights(self) -> bool:
        """Whether the entries have weights."""

    @property
    def stand_in(self) -> Matrix:
        """A matrix with as many entries as the largest block."""

    @property
    def unit(self) -> float:
        """The data are ``X / unit``."""

    @property
    def squared_norms(self) -> Array:
        """``‖x_i‖²`` of every sample, (n,)."""

    def times(self, U: Array) -> Array:
        """``X @ U_b`` for every setting: (p, B, k) → (n, B, k)."""

    def t_times(self, F: Array) -> Array:
        """``Xᵀ @ F_b`` for every setting: (n, B, k) → (p, B, k)."""

    def dense_rows(self, some: slice) -> Array:
        """A few rows as a dense array."""


@dataclass(frozen=True, eq=False)
class InMemory:
    """A dense array, CSR matrix or torch tensor ``X`` (n, p), the only block of its data.

    ``M`` (n, p) holds weights of the entries, or is None where all are 1. Entries of weight 0 are 0 in X. The
    data are ``X / unit``, which is never formed: products are divided instead.
    """

    X: Matrix
    M: Matrix | None = None
    unit: float = 1.0

    @property
    def shape(self) -> tuple[int, int]:
        """Number of samples and of features."""
        return self.X.shape

    @cached_property
    def pattern(self) -> Array:
        """An array in whose library, dtype and device the factors live."""
        return factor_pattern(self.X)

    def blocks(self) -> Iterator[tuple[slice, InMemory]]:
        """All rows at once."""
        yield slice(None), self

    @property
    def weights(self) -> bool:
        """Whether the entries have weights."""
        return self.M is not None

    @property
    def stand_in(self) -> Matrix:
        """X itself."""
        return self.X

    def times(self, U: Array) -> Array:
        """``X @ U_b`` for every setting: (p, B, k) → (n, B, k)."""
        return self._divided(product(self.X, U))

    def t_times(self, F: Array) -> Array:
        """``Xᵀ @ F_b`` for every setting: (n, B, k) → (p, B, k)."""
        if sp.issparse(self.X):
            wide = F.reshape(F.shape[0], -1)
            if sparse_products.is_large(self.X, wide) and self._transposed is not None:
                return self._divided(self._transposed.times(wide).reshape(self.shape[1], *F.shape[1:]))
        if is_csr_tensor(self.X):
            return self._divided(product(self._transposed, F))
        return self._divided(product_t(self.X, F))

    @cached_property
    def _transposed(self) -> Any:
        """A copy of sparse Xᵀ for large products; None where it takes too much memory."""
        if is_csr_tensor(self.X):
            from lognmf.core.torch.sparse import transposed

            return transposed(self.X)
        return sparse_products.transposed(self.X)

    @cached_property
    def squared_norms(self) -> Array:
        """``‖x_i‖²`` of every sample, (n,)."""
        if self.unit == 1:
            return squared_row_norms(self.X)
        if is_sparse(self.X):
            return sparse_squared_row_norms(self.X, self.unit)
        blocks = [squared_row_norms(self.rows(some)) for some in few_rows(self.X)]
        return namespace(blocks[0]).concat(blocks)

    @cached_property
    def weighted(self) -> InMemory:
        """``M ∘ X`` as data; X itself where all weights are 0 or 1."""
        M = self.M
        if M is None:
            return self
        if sp.issparse(M):
            return InMemory(sp.csr_array(M.multiply(self.X)), unit=self.unit)
        binary = bool(namespace(M).all((M == 0) | (M == 1)))
        return InMemory(self.X if binary else M * self.X, unit=self.unit)

    def rows(self, some: slice) -> Matrix:
        """A few rows."""
        block = self.X[some, :]
        if self.unit == 1:
            return block
        # SciPy would make float64 of float32.
        return stored_like(block, block.data / self.unit) if sp.issparse(block) else block / self.unit

    def dense_rows(self, some: slice) -> Array:
        """A few rows as a dense array."""
        if is_csr_tensor(self.X):
            from lognmf.core.torch.sparse import dense_rows

            device = self.X.device
            rows = namespace(self.pattern).arange(*some.indices(self.shape[0]), device=device)
            return dense_rows(self.X, rows) / self.unit
        block = self.rows(some)
        return block.toarray() if sp.issparse(block) else block

    def _divided(self, F: Array) -> Array:
        """A product with X as one with the data."""
        if self.unit != 1:
            F /= self.unit
        return F

    def take_rows(self, index: np.ndarray) -> InMemory:
        """The samples ``index``."""
        M = None if self.M is None else rows_of(self.M, index)
        return InMemory(rows_of(self.X, index), M, self.unit)


def in_memory(data: Data) -> InMemory:
    """The only block of data that a solver needs as a whole."""
    (_, block), *more = data.blocks()
    if more:
        msg = "This solver needs all of X in memory."
        raise ValueError(msg)
    return block


BLOCK_NUMBERS, GPU_BLOCK_NUMBERS = 1 << 17, 1 << 27
"""How many entries of the reconstruction ``V Uᵀ`` are formed together."""

GATHERED = 1 << 13
"""How many stored entries of a sparse matrix are taken together: their rows of U and V stay in the cache."""


def row_blocks(M: Matrix) -> Iterator[slice]:
    """Rows of ``M`` (n, p) a few at a time; all at once if it is sparse."""
    n, p = M.shape
    step = n if sp.issparse(M) else max(1, (GPU_BLOCK_NUMBERS if on_gpu(M) else BLOCK_NUMBERS) // p)
    return (slice(start, min(start + step, n)) for start in range(0, n, step))


def few_rows(X: Matrix) -> Iterator[slice]:
    """Rows of ``X`` (n, p) a few at a time, also if it is sparse, where a copy of all is too much."""
    n, p = X.shape
    numbers = GPU_BLOCK_NUMBERS if on_gpu(X) else BLOCK_NUMBERS // 8
    step = max(1, numbers * n // max(1, X.nnz if sp.issparse(X) else n * p))
    return (slice(start, min(start + step, n)) for start in range(0, n, step))


def at_entries(M: sp.csr_array, U: np.ndarray, V: np.ndarray) -> np.ndarray:
    """``V Uᵀ`` where ``M`` has entries, in the order in which they are stored."""
    rows, out = entry_rows(M), np.empty(M.nnz, dtype=V.dtype)
    for start in range(0, M.nnz, GATHERED):
        some = slice(start, start + GATHERED)
        np.einsum("ij,ij->i", V[rows[some]], U[M.indices[some]], out=out[some])
    return out


def entry_rows(M: sp.csr_array) -> np.ndarray:
    """The row of every stored entry."""
    return np.repeat(np.arange(M.shape[0], dtype=M.indices.dtype), np.diff(M.indptr))


def divided(X: Matrix, number: float) -> Matrix:
    """``X / number``; SciPy multiplies sparse matrices by its inverse, which overflows for tiny numbers."""
    if not sp.issparse(X):
        return X / number
    rows = sp.csr_array(X)
    return stored_like(rows, rows.data / number)


def stored_like(M: sp.csr_array, values: np.ndarray) -> sp.csr_array:
    """A matrix with ``values`` in the places of ``M``'s entries."""
    return sp.csr_array((values, M.indices, M.indptr), shape=M.shape)
