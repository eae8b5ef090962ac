"""The data fit with a weight for every entry, ``Σ m_ij (x_ij − (V Uᵀ)_ij)²``; 0 for a missing one.

Kim and Choi (2009). The reconstruction is needed entry by entry: it is formed in blocks of
rows, or, where the weights are sparse, only at their entries.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
import scipy.sparse as sp

from lognmf.core.arrays import Array, Matrix, namespace, product_t, total
from lognmf.core.terms.protocol import Halves

BLOCK_NUMBERS = 1 << 17
"""How many entries of the reconstruction are formed together."""


@dataclass(frozen=True)
class Weighted:
    """``Σ m_ij (x_ij − (V Uᵀ)_ij)²``. ``X`` is ``M ∘ data``, what the updates multiply with."""

    X: Matrix
    data: Matrix = field(repr=False)
    M: Matrix = field(repr=False)

    @classmethod
    def of(cls, data: Matrix, M: Matrix) -> Weighted:
        """The term for ``data`` (n, p), zero where nothing is known, and weights ``M`` (n, p)."""
        if sp.issparse(M):
            return cls(sp.csr_array(M.multiply(data)), data, M)
        binary = bool(namespace(M).all((M == 0) | (M == 1)))
        return cls(data if binary else M * data, data, M)

    def separate(self, U: Array, V: Array, XU: Array) -> Array:
        return None

    def halves_U(self, U: Array, V: Array, kept: Array) -> Halves:
        """``(M ∘ X)ᵀV`` and ``(M ∘ V Uᵀ)ᵀV``."""
        xp = namespace(U)
        columns = []
        for b in range(U.shape[1]):
            one = xp.zeros_like(U[:, b, :])
            for rows, R in self._reconstructed(U[:, b, :], V[:, b, :]):
                one = one + R.T @ V[rows, b, :]
            columns.append(one)
        XV, pos = product_t(self.X, V), xp.stack(columns, axis=1)
        return lambda rows: (XV[rows, ...], pos[rows, ...])

    def halves_V(self, U: Array, V: Array, XU: Array, kept: Array, U_old: Array) -> Halves:
        """``(M ∘ X)U`` and ``(M ∘ V Uᵀ)U``."""
        xp = namespace(U)
        columns = []
        for b in range(U.shape[1]):
            blocks = self._reconstructed(U[:, b, :], V[:, b, :])
            columns.append(xp.concat([R @ U[:, b, :] for _, R in blocks], axis=0))
        pos = xp.stack(columns, axis=1)
        return lambda rows: (XU[rows, ...], pos[rows, ...])

    def squared_residuals(self, U: Array, V: Array, XU: Array) -> Array:
        """``Σ_j m_ij (x_ij − (V Uᵀ)_ij)²`` of every sample and setting, by differences, (n, B)."""
        xp = namespace(U)
        columns = [
            xp.concat([error for _, error in self._errors(U[:, b, :], V[:, b, :])], axis=0)
            for b in range(U.shape[1])
        ]
        return xp.stack(columns, axis=1)

    def value(self, U: Array, V: Array, XU: Array) -> Array:
        return total(self.squared_residuals(U, V, XU), axis=0)

    def take(self, index: np.ndarray) -> Weighted:
        return self

    def _reconstructed(self, U: Array, V: Array) -> Iterator[tuple[slice, Matrix]]:
        """Blocks ``(rows, M ∘ V Uᵀ)`` for one setting, U (p, k) and V (n, k)."""
        for rows in self._row_blocks():
            if sp.issparse(self.M):
                yield rows, _at_entries(self.M[rows], U, V[rows, :], weighted=True)
            else:
                yield rows, self.M[rows, :] * (V[rows, :] @ U.T)

    def _errors(self, U: Array, V: Array) -> Iterator[tuple[slice, Array]]:
        """Blocks ``(rows, weighted squared error of each row)`` for one setting."""
        for rows in self._row_blocks():
            if sp.issparse(self.M):
                M = self.M[rows]
                difference = _at_entries(M, U, V[rows, :], weighted=False)
                difference.data -= _entries_like(self.data[rows], M)
                yield rows, np.asarray(M.multiply(difference.power(2)).sum(axis=1)).reshape(-1)
            else:
                difference = self.data[rows, :] - V[rows, :] @ U.T
                yield rows, namespace(U).sum(self.M[rows, :] * difference**2, axis=1)

    def _row_blocks(self) -> Iterator[slice]:
        n, p = self.M.shape
        entries_a_row = max(1, self.M.nnz // n) if sp.issparse(self.M) else p
        step = max(1, BLOCK_NUMBERS // entries_a_row)
        return (slice(start, min(start + step, n)) for start in range(0, n, step))


def _at_entries(M: sp.csr_array, U: np.ndarray, V: np.ndarray, *, weighted: bool) -> sp.csr_array:
    """``V Uᵀ`` where ``M`` has entries, times them if ``weighted``."""
    rows = np.repeat(np.arange(M.shape[0]), np.diff(M.indptr))
    values = np.einsum("ij,ij->i", V[rows], U[M.indices])
    return sp.csr_array((values * M.data if weighted else values, M.indices, M.indptr), shape=M.shape)


def _entries_like(data: sp.csr_array, M: sp.csr_array) -> np.ndarray:
    """Entries of ``data`` at the places of ``M``, in the order of ``M``'s storage."""
    rows = np.repeat(np.arange(M.shape[0]), np.diff(M.indptr))
    return np.asarray(data[rows, M.indices]).reshape(-1)
