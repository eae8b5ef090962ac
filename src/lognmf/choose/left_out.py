"""Least squares with entries left out, other ones in every setting of a batch.

A left-out entry is filled with its own reconstruction before every half step (EM), so the data of a setting
are ``X + R`` with R sparse. Products with X are one wide product for the whole batch, and X may be sparse.

Without a penalty a part may live on a few known entries next to a left-out one and predict anything there:
the errors of left-out entries explode. A small weight of the squared norms of U and V (``ridge``) prevents
that.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import scipy.sparse as sp

from lognmf.core.arrays import gram
from lognmf.core.data import InMemory, at_entries, entry_rows, stored_like
from lognmf.core.rule import State

CLIPPED = 1.5
"""Residuals are cut to this many standard deviations where outlying entries are looked for (Huber)."""

OUTLYING = 6.0
"""Entries whose residual is more than so many standard deviations are outlying."""

STEADY = 0.9
"""The standard deviation is taken from this quantile of the residuals: a tenth of them may be outlying."""

NORMAL_QUANTILE = 1.6449
"""What |z| of a standard normal z does not exceed with probability `STEADY`."""

OUTLIER_STEPS = 100
"""Iterations of the fit in which outlying entries are looked for."""


@dataclass(frozen=True)
class Gaps:
    """X at the entries that each of B settings does not know.

    ``values`` (n·B, p·B) has entry (i, j) of setting b in row i·B + b and column j·B + b, so that one sparse
    product serves the whole batch; ``setting`` is the b of every stored entry, in their order.
    """

    values: sp.csr_array
    setting: np.ndarray

    @classmethod
    def of(cls, settings: Sequence[sp.csr_array]) -> Gaps:
        """From a matrix (n, p) for every setting, which stores X at the entries that it does not know."""
        setting = np.repeat(np.arange(len(settings)), [own.nnz for own in settings])
        rows, columns, values = (
            np.concatenate([part(own) for own in settings])
            for part in (entry_rows, lambda own: own.indices, lambda own: own.data)
        )
        return cls._side_by_side(rows, columns, values, setting, len(settings), settings[0].shape)

    @classmethod
    def _side_by_side(
        cls,
        rows: np.ndarray,
        columns: np.ndarray,
        values: np.ndarray,
        setting: np.ndarray,
        B: int,
        shape: tuple[int, int],
    ) -> Gaps:
        """Entries of B settings, each at its place in the data of this ``shape``."""
        places = (rows.astype(np.int64) * B + setting, columns.astype(np.int64) * B + setting)
        joined = sp.csr_array((values, places), shape=(shape[0] * B, shape[1] * B))
        return cls(joined, joined.indices % max(B, 1))

    def take(self, index: np.ndarray, B: int) -> Gaps:
        """The settings ``index`` of the B."""
        place = np.full(B, -1)
        place[index] = np.arange(len(index))
        own = place[self.setting] >= 0
        rows, columns = entry_rows(self.values)[own] // B, self.values.indices[own] // B
        shape = self.values.shape[0] // B, self.values.shape[1] // B
        setting = place[self.setting[own]]
        return self._side_by_side(rows, columns, self.values.data[own], setting, len(index), shape)

    def residuals(self, U: np.ndarray, V: np.ndarray) -> sp.csr_array:
        """Reconstruction less X at these entries."""
        p, B, k = U.shape
        fitted = at_entries(self.values, U.reshape(p * B, k), V.reshape(-1, k))
        return stored_like(self.values, fitted - self.values.data)


@dataclass(frozen=True)
class LeftOut:
    """Minimises ``Σ (x_ij − (V Uᵀ)_ij)² + ridge (‖U‖² + ‖V‖²)`` over the entries that a setting knows."""

    data: InMemory
    gaps: Gaps
    ridge: np.ndarray  # (B,)

    def step(self, state: State) -> State:
        """One sweep over the columns of U, then of V; then both sides of a part get the same norm."""
        U, V = state.U, state.V
        filled = self.gaps.residuals(U, V).T @ V.reshape(-1, V.shape[2])
        U = sweep(U, self.data.t_times(V) + filled.reshape(U.shape), gram(V, V), self.ridge)
        filled = self.gaps.residuals(U, V) @ U.reshape(-1, U.shape[2])
        V = sweep(V, self.data.times(U) + filled.reshape(V.shape), gram(U, U), self.ridge)
        return State(*balanced(U, V))

    def value(self, state: State) -> np.ndarray:
        """Objective of every setting, (B,)."""
        norms = np.sum(state.U**2, axis=(0, 2)) + np.sum(state.V**2, axis=(0, 2))
        return self.known_error(state) + self.ridge * norms

    def take(self, index: np.ndarray) -> LeftOut:
        """The rule for the settings ``index``."""
        return replace(self, gaps=self.gaps.take(index, len(self.ridge)), ridge=self.ridge[index])

    def known_error(self, state: State) -> np.ndarray:
        """Sum of squared residuals of the known entries, (B,); not below what rounding leaves of it."""
        U, V = state.U, state.V
        cross = np.einsum("ibk,ibk->b", self.data.times(U), V)
        everywhere = self._square - 2 * cross + np.sum(gram(U, U) * gram(V, V), axis=(1, 2))
        squares = self.gaps.residuals(U, V).data ** 2
        left_out = np.bincount(self.gaps.setting, squares, minlength=len(self.ridge))
        return np.maximum(everywhere - left_out, 1e-14 * self._square)

    @functools.cached_property
    def _square(self) -> float:
        return float(np.sum(self.data.squared_norms))


def sweep(F: np.ndarray, A: np.ndarray, G: np.ndarray, ridge: np.ndarray) -> np.ndarray:
    """Each column of F (m, B, k) in turn at its best, where ``A`` is the data times the other factor.

    ``G`` (B, k, k) is the Gram matrix of the other factor.
    """
    out = np.empty_like(F)
    for b in range(F.shape[1]):
        columns, pull = np.ascontiguousarray(F[:, b, :].T), np.ascontiguousarray(A[:, b, :].T)
        H = G[b] + ridge[b] * np.eye(F.shape[2])
        for j, own in enumerate(np.diag(H)):
            if own > 0:  # else the other factor is zero there, and the data say nothing
                columns[j] = np.maximum(columns[j] + (pull[j] - H[j] @ columns) / own, 0)
        out[:, b, :] = columns.T
    return out


def balanced(U: np.ndarray, V: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The same parts with ``‖u_j‖ = ‖v_j‖``, where the ridge costs least; a part with a zero side is zero."""
    norm_U, norm_V = np.linalg.norm(U, axis=0), np.linalg.norm(V, axis=0)
    alive = (norm_U > 0) & (norm_V > 0)
    scale = np.sqrt(np.where(alive, norm_V, 1.0) / np.where(alive, norm_U, 1.0))
    return np.where(alive, U * scale, 0.0), np.where(alive, V / scale, 0.0)


def without_one(U: np.ndarray, V: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Every setting without the part it misses least.

    Without column j of U the others, at their best, fit worse by ``‖v_j‖² / (UᵀU)⁻¹_jj``; likewise with
    the sides changed. So of two almost equal parts one goes first, however large they are.
    """
    smaller = [_without_one(U[:, b, :], V[:, b, :]) for b in range(U.shape[1])]
    return np.stack([u for u, _ in smaller], axis=1), np.stack([v for _, v in smaller], axis=1)


def _without_one(U: np.ndarray, V: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """One setting, U (p, k) and V (n, k), without the part it misses least."""
    (cost_U, inverse_U), (cost_V, inverse_V) = _removal_costs(U, V), _removal_costs(V, U)
    on_V = cost_U.min() <= cost_V.min()  # whether the codes, or else the parts, of the others make up for it
    cost, inverse = (cost_U, inverse_U) if on_V else (cost_V, inverse_V)
    j = int(np.argmin(cost))
    shift = -inverse[:, j] / inverse[j, j]
    others = np.arange(U.shape[1]) != j
    if on_V:
        V = np.maximum(V + np.outer(V[:, j], shift), 0)
    else:
        U = np.maximum(U + np.outer(U[:, j], shift), 0)
    return U[:, others], V[:, others]


def _removal_costs(F: np.ndarray, other: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """How much worse the fit is without each column of ``F`` (m, k), and the inverse of its Gram matrix."""
    G = F.T @ F
    k = len(G)
    smallest = 1e-9 * np.trace(G) / k + np.finfo(float).tiny
    inverse = np.linalg.inv(G + smallest * np.eye(k))
    return np.sum(other**2, axis=0) / np.diag(inverse), inverse


def outlying(
    X: np.ndarray, known: np.ndarray | None, U: np.ndarray, V: np.ndarray, share: float
) -> np.ndarray:
    """Which entries of a dense X (n, p) no factorisation explains, from first factors U (p, k) and V (n, k).

    Huber's loss: residuals are cut at `CLIPPED` standard deviations. ``known`` (n, p) says which entries
    count; ``share`` of a noise's largest singular value is the ridge.
    """
    U, V = U[:, None, :], V[:, None, :]
    size = np.sqrt(X.shape[0]) + np.sqrt(X.shape[1])

    def residuals() -> tuple[np.ndarray, float]:
        """Residuals of the known entries, 0 at the others, and their standard deviation."""
        D = X - V[:, 0, :] @ U[:, 0, :].T
        D = D if known is None else np.where(known, D, 0.0)
        typical = np.quantile(np.abs(D if known is None else D[known]), STEADY)
        return D, float(typical) / NORMAL_QUANTILE

    def clipped() -> tuple[np.ndarray, np.ndarray]:
        """Residuals that are cut, and the ridge for their standard deviation."""
        D, deviation = residuals()
        return np.clip(D, -CLIPPED * deviation, CLIPPED * deviation), np.array([share * deviation * size])

    for _ in range(OUTLIER_STEPS):
        D, ridge = clipped()
        G = gram(V, V)
        U = sweep(U, (D.T @ V[:, 0, :] + U[:, 0, :] @ G[0])[:, None, :], G, ridge)
        D, ridge = clipped()
        G = gram(U, U)
        V = sweep(V, (D @ U[:, 0, :] + V[:, 0, :] @ G[0])[:, None, :], G, ridge)
        U, V = balanced(U, V)
    D, deviation = residuals()
    return np.abs(D) > OUTLYING * deviation
