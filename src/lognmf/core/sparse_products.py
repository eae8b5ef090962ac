"""Products of a sparse matrix with a wide factor, on all cores, and to the last bit those of SciPy.

Every row of a product is the work of one thread, and adds its entries up in the order in which they are
stored. So the numbers do not depend on how many threads there are.
"""

from __future__ import annotations

import functools
import os
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp

from lognmf.core.threads import ELEMENTWISE, split

LARGE = 1 << 18
"""Stored entries from which it pays to load our loops."""

SLOWER = 8
"""What a stored entry costs for every column, in operations of a dense product."""

BLOCK_ROWS = 1 << 12
"""Rows of X in a block of Xᵀ: their rows of V stay in a core's cache."""

ENTRIES_A_ROW = 4
"""A row of such a block has as many entries on average, or its bounds would take the time and memory."""

LEAST_BYTES, SHARE_OF_MEMORY = 1 << 23, 1 / 8
"""Xᵀ is kept beside X where X has so many bytes, and at most this share of the machine's memory."""


def times(M: sp.csr_array, F: np.ndarray) -> np.ndarray:
    """``M @ F``: (m, n) × (n, columns) → (m, columns)."""
    return Blocks([Block(slice(None), M)], M.indptr).times(F) if is_large(M, F) else M @ F


def is_large(M: sp.csr_array, F: np.ndarray) -> bool:
    """Whether our loops multiply these two, or their transposes, faster than SciPy."""
    floats = M.dtype == F.dtype and M.dtype in (np.float32, np.float64)
    return floats and M.format == "csr" and M.nnz >= LARGE


class Block(NamedTuple):
    """A matrix that is multiplied with these ``rows`` of a factor."""

    rows: slice
    M: sp.csr_array


class Blocks(NamedTuple):
    """A matrix as a sum over blocks of its columns; ``ends`` counts the entries before each of its rows."""

    parts: list[Block]
    ends: np.ndarray

    def times(self, F: np.ndarray) -> np.ndarray:
        """The sum of every block's ``M @ F[rows]``; its rows are shared out by their entries."""
        from lognmf.core.compiling import add_product  # numba takes a while to import

        count, F = len(self.ends) - 1, np.ascontiguousarray(F)
        out = np.zeros((count, F.shape[1]), dtype=F.dtype)

        def fill(part: slice) -> None:
            for rows, M in self.parts:
                add_product(M.data, M.indices, M.indptr, F[rows], out, part.start, part.stop)

        split(fill, count, SLOWER * float(self.ends[-1]) * F.shape[1], ends=self.ends)
        return out


def transposed(X: sp.csr_array) -> Blocks | None:
    """A copy of Xᵀ; None where it is not worth its memory."""
    if not LEAST_BYTES <= X.data.nbytes + X.indices.nbytes <= SHARE_OF_MEMORY * _memory():
        return None
    n, p = X.shape
    count = max(1, min(n // BLOCK_ROWS, X.nnz // (ENTRIES_A_ROW * p)))
    edges = np.linspace(0, n, count + 1).astype(int).tolist()
    parts = list(map(slice, edges, edges[1:]))
    blocks = [Block(slice(0), X)] * count

    def turn(part: slice) -> None:
        for place in range(part.start, part.stop):
            blocks[place] = Block(parts[place], sp.csr_array(_rows(X, parts[place]).T))

    split(turn, count, ELEMENTWISE * X.nnz)
    ends = sum((block.M.indptr.astype(np.int64) for block in blocks), np.zeros(p + 1, dtype=np.int64))
    return Blocks(blocks, ends)


def _rows(X: sp.csr_array, some: slice) -> sp.csr_array:
    """A few rows without a copy of their entries, which slicing makes."""
    ends = X.indptr[some.start : some.stop + 1]
    own = slice(int(ends[0]), int(ends[-1]))
    shape = (some.stop - some.start, X.shape[1])
    return sp.csr_array((X.data[own], X.indices[own], ends - ends[0]), shape=shape)


@functools.cache
def _memory() -> float:
    """Bytes of the machine's memory."""
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, OSError, ValueError):  # not on this system
        return np.inf
