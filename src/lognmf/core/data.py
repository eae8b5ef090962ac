"""The data X (n, p): samples in rows, wherever they are.

Everything done with X is a function of some rows of X and of the same rows of V. `Data.map_rows` calls it:
once for data in memory, block by block for data on disk, and on the workers of a cluster where the blocks
are there. Terms and solvers never ask where X is.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar, Protocol, Self

import numpy as np
import scipy.sparse as sp

from lognmf.core import sparse_products
from lognmf.core.arrays import (
    Array,
    Matrix,
    double,
    like,
    namespace,
    on_gpu,
    product,
    product_t,
    to_numpy,
    total,
)
from lognmf.core.matrices import (
    factor_pattern,
    is_csr_tensor,
    is_sparse,
    rows_of,
    sparse_squared_row_norms,
    squared_row_norms,
    stored_values,
)
from lognmf.core.rows import Rows

OfRows = Callable[..., tuple[tuple[Array, ...], tuple[Array, ...]]]
"""``(block, *rows_of_block, *shared) -> (arrays with a row per sample, sums over the samples)``."""


@dataclass(frozen=True, eq=False)
class Facts:
    """What one look at all entries of X has found; it does not depend on the unit of the data."""

    largest: float
    squares: np.ndarray  # squared norms (n,) of the samples of ``X / size``, weighted as the entries are
    size: float  # the largest size of an entry: squares of the entries themselves may overflow or vanish
    known: float  # mean weight of an entry
    entries: int  # stored entries of the largest block


class Data(Protocol):
    """Samples in rows, wherever they are."""

    distributed: ClassVar[bool]
    """Whether rows are `DistributedRows`."""

    @property
    def shape(self) -> tuple[int, int]:
        """Number of samples and of features."""

    @property
    def pattern(self) -> Array:
        """An array in whose library, dtype and device the factors live."""

    @property
    def weights(self) -> bool:
        """Whether the entries have weights."""

    @property
    def device(self) -> str | None:
        """Where torch computes with blocks that are elsewhere; None where they are arrays of this library."""

    @property
    def stand_in(self) -> Matrix:
        """A matrix with as many entries as the largest block that is read here."""

    @property
    def unit(self) -> float:
        """The data are ``X / unit``."""

    @property
    def facts(self) -> Facts:
        """What is known of all entries of X."""

    @property
    def squared_norms(self) -> Array:
        """``‖x_i‖²`` of every sample, (n,)."""

    def map_rows(
        self, function: OfRows, *rows: Rows, shared: Sequence[Any] = ()
    ) -> tuple[tuple[Rows, ...], tuple[Array, ...]]:
        """``function(block, *rows_of_block, *shared)`` for every block of rows.

        Its arrays with a row per sample come back as rows of all samples, its sums added up. A block is read
        at most once, and only if the function uses its entries. ``rows`` may also be half gradients of
        penalties, as `lognmf.core.rows.halves` gives them.
        """

    def times(self, U: Array) -> Rows:
        """``X @ U_b`` for every setting: (p, B, k) → (n, B, k)."""

    def t_times(self, F: Rows) -> Array:
        """``Xᵀ @ F_b`` for every setting: (n, B, k) → (p, B, k)."""

    def take_rows(self, index: np.ndarray) -> InMemory:
        """The samples ``index``, which are in order, in memory."""

    def in_unit(self, unit: float) -> Self:
        """The data as ``X / unit``."""

    def scaled_rows(self, share: np.ndarray) -> Self:
        """The data with every sample multiplied by its ``share`` (n,), at most 1."""

    def uniform(self, k: int, rng: np.random.RandomState) -> Rows:
        """Random numbers (n, k) from [0, 1) in float64."""


@dataclass(frozen=True, eq=False)
class InMemory:
    """A dense array, CSR matrix or torch tensor ``X`` (n, p), the only block of its data.

    ``M`` (n, p) holds weights of the entries, or is None where all are 1. Entries of weight 0 are 0 in X. The
    data are ``X / unit``, which is never formed: products are divided instead.
    """

    X: Matrix
    M: Matrix | None = None
    unit: float = 1.0

    distributed: ClassVar[bool] = False
    device: ClassVar[None] = None

    @property
    def shape(self) -> tuple[int, int]:
        """Number of samples and of features."""
        return self.X.shape

    @cached_property
    def pattern(self) -> Array:
        """An array in whose library, dtype and device the factors live."""
        return factor_pattern(self.X)

    def map_rows(
        self, function: OfRows, *rows: Array, shared: Sequence[Any] = ()
    ) -> tuple[tuple[Array, ...], tuple[Array, ...]]:
        """``function(self, *rows, *shared)``: all rows at once."""
        return function(self, *rows, *shared)

    def in_unit(self, unit: float) -> InMemory:
        """The data as ``X / unit``: always a new object, which alone holds what its products need."""
        other = replace(self, unit=unit)
        if "facts" in vars(self):
            vars(other)["facts"] = self.facts
        return other

    def scaled_rows(self, share: np.ndarray) -> InMemory:
        """A copy with every sample multiplied by its ``share`` (n,)."""
        X = self.X
        if sp.issparse(X):
            scaled: Matrix = stored_like(X, X.data * share.astype(X.dtype)[entry_rows(X)])
        elif is_csr_tensor(X):
            from lognmf.core.torch.sparse import csr_tensor
            from lognmf.core.torch.sparse import entry_rows as rows_of_entries

            values = X.values() * like(share, X.values())[rows_of_entries(X)]
            scaled = csr_tensor(X.crow_indices(), X.col_indices(), values, X.shape)
        else:
            scaled = X * like(share, X)[:, None]
        return replace(self, X=scaled)

    def uniform(self, k: int, rng: np.random.RandomState) -> np.ndarray:
        """Random numbers (n, k) from [0, 1)."""
        return rng.uniform(size=(self.shape[0], k))

    @cached_property
    def facts(self) -> Facts:
        """What one look at all entries has found."""
        X, M = self.X, self.M
        values = stored_values(X)
        empty = 0 in values.shape
        largest = 0.0 if empty else float(values.max())
        size = 0.0 if empty else max(largest, -float(values.min()))
        entries = X.nnz if sp.issparse(X) else math.prod(values.shape)
        known = 1.0
        if M is not None:
            known = (float(M.sum()) if sp.issparse(M) else float(total(M, axis=(0, 1)))) / math.prod(X.shape)
        if size == 0:
            return Facts(largest, np.zeros(X.shape[0]), 1.0, known, entries)
        if M is None and (is_csr_tensor(X) or (sp.issparse(X) and X.dtype == np.float64)):
            squares = to_numpy(double(sparse_squared_row_norms(X, size)))
        else:
            parts = [
                to_numpy(_row_sums(divided(X[rows, :], size), None if M is None else M[rows, :]))
                for rows in few_rows(X)
            ]
            squares = np.concatenate(parts)
        return Facts(largest, squares, size, known, entries)

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


def _row_sums(X: Matrix, M: Matrix | None) -> Array:
    """``Σ_j m_ij x_ij²`` of every row, in float64."""
    if sp.issparse(X):
        squares = X.multiply(X) if M is None else M.multiply(X.multiply(X))
        return np.asarray(squares.sum(axis=1), dtype=np.float64).reshape(-1)
    return total(X**2 if M is None else M * X**2, axis=1)


class InBlocks(ABC):
    """Data in several blocks of rows; a subclass brings ``map_rows`` and what it knows of the blocks."""

    @abstractmethod
    def map_rows(
        self, function: OfRows, *rows: Rows, shared: Sequence[Any] = ()
    ) -> tuple[tuple[Rows, ...], tuple[Array, ...]]:
        """`Data.map_rows`."""

    def times(self, U: Array) -> Rows:
        """``X @ U_b`` for every setting, in one pass: (p, B, k) → (n, B, k)."""
        return self.map_rows(_times, shared=(U,))[0][0]

    def t_times(self, F: Rows) -> Array:
        """``Xᵀ @ F_b`` for every setting, in one pass: (n, B, k) → (p, B, k)."""
        return self.map_rows(_t_times, F)[1][0]

    def gram(self, size: float) -> np.ndarray:
        """``Xᵀ X / size²`` (p, p) in one pass."""
        return self.map_rows(_gram, shared=(size,))[1][0]

    def gram_times(self, F: np.ndarray) -> np.ndarray:
        """``Xᵀ X F`` (p, k) in one pass."""
        return self.map_rows(_gram_times, shared=(F.reshape(F.shape[0], 1, -1),))[1][0].reshape(F.shape)


def _times(block: InMemory, U: Array) -> tuple[tuple[Array], tuple[()]]:
    return (block.times(U),), ()


def _t_times(block: InMemory, F: Array) -> tuple[tuple[()], tuple[Array]]:
    return (), (block.t_times(F),)


def _gram(block: InMemory, size: float) -> tuple[tuple[()], tuple[np.ndarray]]:
    # Divided before they are squared only where squares could vanish: a copy of the block.
    X = block.X if size == 1 else divided(block.X, size)
    G = X.T @ X
    return (), ((G.toarray() if sp.issparse(G) else to_numpy(G)) / block.unit**2,)


def _gram_times(block: InMemory, F: Array) -> tuple[tuple[()], tuple[Array]]:
    return (), (block.t_times(block.times(F)),)


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
