"""The reconstruction ``V Uᵀ`` where it is needed: in blocks of rows, or at the entries of a sparse matrix."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import scipy.sparse as sp

from lognmf.core.arrays import Matrix

BLOCK_NUMBERS = 1 << 17
"""How many entries of the reconstruction are formed together."""


def row_blocks(M: Matrix) -> Iterator[slice]:
    """Rows of ``M`` (n, p) a few at a time, so that what is formed for them stays in the cache."""
    n, p = M.shape
    entries_per_row = max(1, M.nnz // n) if sp.issparse(M) else p
    step = max(1, BLOCK_NUMBERS // entries_per_row)
    return (slice(start, min(start + step, n)) for start in range(0, n, step))


def at_entries(M: sp.csr_array, U: np.ndarray, V: np.ndarray) -> np.ndarray:
    """``V Uᵀ`` where ``M`` has entries, in the order in which they are stored."""
    rows = np.repeat(np.arange(M.shape[0]), np.diff(M.indptr))
    return np.einsum("ij,ij->i", V[rows], U[M.indices])


def stored_like(M: sp.csr_array, values: np.ndarray) -> sp.csr_array:
    """A matrix with ``values`` in the places of ``M``'s entries."""
    return sp.csr_array((values, M.indices, M.indptr), shape=M.shape)
