"""The Kullback–Leibler divergence ``Σ x log(x/y) − x + y`` with ``y = V Uᵀ``, for counts and text.

Lee and Seung (2001). Only entries of X that are not zero need their ``y``; the sum of all the others is that
of products of column sums. So sparse data cost in proportion to their stored entries.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import scipy.sparse as sp

from lognmf.core.arrays import Array, Matrix, namespace, product, product_t
from lognmf.core.data import InMemory, at_entries, entry_rows, row_blocks, stored_like
from lognmf.core.terms.frobenius import Frobenius
from lognmf.core.terms.protocol import Halves
from lognmf.core.terms.weighted import Weighted


@dataclass(frozen=True)
class KullbackLeibler:
    """``Σ m (x log(x/y) − x + y)`` over all entries, with weights m where the data have some."""

    by_entry: ClassVar[bool] = True
    quadratic: ClassVar[bool] = False
    degree: ClassVar[int] = 1

    def project(self, block: InMemory, U: Array) -> Array:
        return U[:0, ...]

    def separate(self, block: InMemory, U: Array, V: Array, XU: Array) -> Array:
        return V[:0, :, 0]

    def sums(self, block: InMemory, U: Array, V: Array, kept: Array) -> tuple[Array, ...]:
        """``(X / V Uᵀ)ᵀV`` and ``Mᵀ V``, the latter one row if all weights are 1."""
        columns = [
            sum((R.T @ V[rows, b, :] for rows, R in _ratios(block.weighted, U[:, b, :], V[:, b, :])))
            for b in range(U.shape[1])
        ]
        xp = namespace(U)
        pos = xp.sum(V, axis=0, keepdims=True) if block.M is None else product_t(block.M, V)
        return xp.stack(columns, axis=1), pos

    def halves_U(self, U: Array, sums: tuple[Array, ...]) -> Halves:
        neg, pos = sums
        return _halves(neg, pos, U)

    def halves_V(self, block: InMemory, U: Array, V: Array, XU: Array, kept: Array, U_old: Array) -> Halves:
        """``(X / V Uᵀ) U`` and ``M U``, halved."""
        xp = namespace(U)
        columns = []
        for b in range(U.shape[1]):
            ratios = _ratios(block.weighted, U[:, b, :], V[:, b, :])
            columns.append(xp.concat([R @ U[:, b, :] for _, R in ratios], axis=0))
        pos = xp.sum(U, axis=0, keepdims=True) if block.M is None else product(block.M, U)
        return _halves(xp.stack(columns, axis=1), pos, V)

    def squared_residuals(self, block: InMemory, U: Array, V: Array, XU: Array) -> Array:
        fit = Frobenius() if block.M is None else Weighted()
        return fit.squared_residuals(block, U, V, fit.project(block, U))

    def row_values(self, block: InMemory, U: Array, V: Array, XU: Array) -> Array:
        xp = namespace(U)
        columns = [
            xp.concat(list(_divergences(block, U[:, b, :], V[:, b, :])), axis=0) for b in range(U.shape[1])
        ]
        return xp.stack(columns, axis=1)

    def take(self, index: np.ndarray) -> KullbackLeibler:
        return self


def _halves(neg: Array, pos: Array, F: Array) -> Halves:
    """Half of each; ``pos`` may be one row for all."""
    if pos.shape[0] == 1 < F.shape[0]:
        pos = namespace(pos).broadcast_to(pos, F.shape)
    return lambda rows: (neg[rows, ...] / 2, pos[rows, ...] / 2)


def _ratios(data: InMemory, U: Array, V: Array) -> Iterator[tuple[slice, Matrix]]:
    """Blocks ``(rows, X / V Uᵀ)`` for one setting, U (p, k) and V (n, k); 0 where X is 0.

    Where a part of the data cannot be reached, ``V Uᵀ = 0``, the ratio is huge but finite: times 0 it is 0.
    """
    tiny = float(namespace(U).finfo(U.dtype).smallest_normal)
    share = tiny**0.65  # of X, added to V Uᵀ: changes no digit of an ordinary one
    for rows in row_blocks(data.X):
        part = data.rows(rows)
        if sp.issparse(part):
            Y = at_entries(part, U, V[rows, :])
            yield rows, stored_like(part, part.data / (Y + (share * part.data + tiny)))
        else:
            Y = V[rows, :] @ U.T
            Y += share * part
            Y += tiny
            yield rows, part / Y


def _divergences(block: InMemory, U: Array, V: Array) -> Iterator[Array]:
    """The divergence of each row, block by block, for one setting."""
    xp = namespace(U)
    M = block.M
    tiny = float(xp.finfo(U.dtype).smallest_normal)
    all_of_U = xp.sum(U, axis=0)
    for rows in row_blocks(block.X):
        x, v = block.rows(rows), V[rows, :]
        if sp.issparse(x):
            y = at_entries(x, U, v)
            m = 1.0 if M is None else np.asarray(M[rows][entry_rows(x), x.indices]).reshape(-1)
            logs = np.log(np.where(x.data > 0, x.data, 1.0)) - np.log(y + tiny)
            stored = m * (x.data * logs - x.data)
            rest = v @ all_of_U if M is None else np.einsum("ij,ij->i", M[rows] @ U, v)
            yield np.asarray(stored_like(x, stored).sum(axis=1)).reshape(-1) + rest
        else:
            y = v @ U.T
            logs = xp.log(xp.where(x > 0, x, xp.ones_like(x))) - xp.log(y + tiny)
            each = x * logs - x + y
            yield xp.sum(each if M is None else M[rows, :] * each, axis=1)
