"""The data fit with a weight for every entry, ``Σ m_ij (x_ij − (V Uᵀ)_ij)²``; 0 for a missing one.

Kim and Choi (2009). The reconstruction is needed entry by entry: it is formed in blocks of
rows, or, where the weights are sparse, only at their entries.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import scipy.sparse as sp

from lognmf.core.arrays import Array, Matrix, namespace
from lognmf.core.data import InMemory, at_entries, entry_rows, row_blocks, stored_like
from lognmf.core.terms.protocol import Halves


@dataclass(frozen=True)
class Weighted:
    """``Σ m_ij (x_ij − (V Uᵀ)_ij)²`` with the weights ``M`` of the data."""

    by_entry: ClassVar[bool] = True
    quadratic: ClassVar[bool] = True

    def project(self, block: InMemory, U: Array) -> Array:
        return block.weighted.times(U)

    def separate(self, block: InMemory, U: Array, V: Array, XU: Array) -> Array:
        return V[:0, :, 0]

    def sums(self, block: InMemory, U: Array, V: Array, kept: Array) -> tuple[Array, ...]:
        """``(M ∘ X)ᵀV`` and ``(M ∘ V Uᵀ)ᵀV``."""
        columns = [
            sum((R.T @ V[rows, b, :] for rows, R in _weighted_products(block.M, U[:, b, :], V[:, b, :])))
            for b in range(U.shape[1])
        ]
        return block.weighted.t_times(V), namespace(U).stack(columns, axis=1)

    def halves_U(self, U: Array, sums: tuple[Array, ...]) -> Halves:
        neg, pos = sums
        return lambda rows: (neg[rows, ...], 1 * pos[rows, ...])  # fresh: the sums belong to a state

    def halves_V(self, block: InMemory, U: Array, V: Array, XU: Array, kept: Array, U_old: Array) -> Halves:
        """``(M ∘ X)U`` and ``(M ∘ V Uᵀ)U``."""
        xp = namespace(U)
        columns = []
        for b in range(U.shape[1]):
            blocks = _weighted_products(block.M, U[:, b, :], V[:, b, :])
            columns.append(xp.concat([R @ U[:, b, :] for _, R in blocks], axis=0))
        pos = xp.stack(columns, axis=1)
        return lambda rows: (XU[rows, ...], pos[rows, ...])

    def squared_residuals(self, block: InMemory, U: Array, V: Array, XU: Array) -> Array:
        """``Σ_j m_ij (x_ij − (V Uᵀ)_ij)²`` of every sample and setting, by differences, (n, B)."""
        xp = namespace(U)
        columns = [
            xp.concat(list(_weighted_errors(block, U[:, b, :], V[:, b, :])), axis=0)
            for b in range(U.shape[1])
        ]
        return xp.stack(columns, axis=1)

    def row_values(self, block: InMemory, U: Array, V: Array, XU: Array) -> Array:
        return self.squared_residuals(block, U, V, XU)

    def take(self, index: np.ndarray) -> Weighted:
        return self


def _weighted_products(M: Matrix, U: Array, V: Array) -> Iterator[tuple[slice, Matrix]]:
    """Blocks ``(rows, M ∘ V Uᵀ)`` for one setting, U (p, k) and V (n, k)."""
    for rows in row_blocks(M):
        if sp.issparse(M):
            part = M[rows]
            yield rows, stored_like(part, at_entries(part, U, V[rows, :]) * part.data)
        else:
            yield rows, M[rows, :] * (V[rows, :] @ U.T)


def _weighted_errors(block: InMemory, U: Array, V: Array) -> Iterator[Array]:
    """The weighted squared error of each row, block by block, for one setting."""
    M: Matrix = block.M
    for rows in row_blocks(M):
        if sp.issparse(M):
            part = M[rows]
            known = np.asarray(block.rows(rows)[entry_rows(part), part.indices]).reshape(-1)
            difference = at_entries(part, U, V[rows, :]) - known
            yield np.asarray(stored_like(part, part.data * difference**2).sum(axis=1)).reshape(-1)
        else:
            difference = block.rows(rows) - V[rows, :] @ U.T
            yield namespace(U).sum(M[rows, :] * difference**2, axis=1)
