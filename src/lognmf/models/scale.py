"""The unit of the data: what makes the weights of a model independent of the scale of X."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any, TypeVar

import numpy as np
import scipy.sparse as sp

from lognmf.core.arrays import Array, Matrix, double, to_numpy, total
from lognmf.core.blocks import Blocks, Facts
from lognmf.core.data import Data, InMemory, divided, few_rows, in_memory
from lognmf.core.matrices import is_csr_tensor, sparse_squared_row_norms, stored_values
from lognmf.parameters import check_positive

AnyData = TypeVar("AnyData", InMemory, Blocks)

SAME = 1e-12
"""A unit this close to 1 is 1: samples of unit norm are fitted as they are."""

FEW, MOST = 0.1, 0.5
"""Norms differ by much where this share of the samples has more than that share of all squares."""


def check_scale(scale: Any) -> None:
    """Refuse what is neither "auto" nor a unit."""
    if not isinstance(scale, str):
        check_positive("scale", scale)
    elif scale != "auto":
        msg = f'scale must be "auto" or a finite number > 0; got {scale!r}.'
        raise ValueError(msg)


def unit_of(data: Data, share: np.ndarray | None = None) -> float:
    """Root mean square of the samples' norms; missing entries count as an average known one.

    ``share`` (n,) of its norm is what counts of each sample.
    """
    n = data.shape[0]
    squares, size = row_squares(data)
    squares = squares if share is None else squares * share**2
    known = known_share(data)
    unit = size * math.sqrt(squares.sum() / n / known)
    return 1.0 if unit == 0 or abs(unit - 1) < SAME else unit


def in_units(data: AnyData, unit: float) -> AnyData:
    """The data in this unit; themselves where it is 1."""
    return data if unit == 1 else replace(data, unit=unit)


def uneven_norms(data: Data, so: str = ", so the fit describes mostly these") -> str | None:
    """Sentences where a few samples decide the fit, with what becomes of it; None if the norms are alike."""
    squares = row_squares(data)[0]
    few, shares = math.ceil(FEW * len(squares)), squares / (squares.sum() or 1.0)
    order = np.argsort(shares)[::-1]
    first, share = shares[order[0]], shares[order[:few]].sum()
    if few < 2 or share <= MOST:
        return None
    alone = f", and sample {order[0]} has {first:.0%}" if first > share / 2 else ""
    return (
        f"The norms of the samples differ by much: {few} of {len(squares)} samples have {share:.0%} of the "
        f"sum of squares of X{alone}{so}. lognmf.normalize(X) gives every sample the same norm."
    )


def facts_of(data: Any) -> Facts:
    """What a first pass over data in blocks has found."""
    return data.facts


def row_squares(data: Data) -> tuple[np.ndarray, float]:
    """Squared norms (n,) of ``X / size``, weighted as the entries are, and the largest entry ``size``.

    Squares of the entries themselves may overflow or vanish.
    """
    if not isinstance(data, InMemory):
        facts = facts_of(data)
        return facts.squares, facts.size
    X, M = in_memory(data).X, in_memory(data).M
    values = stored_values(X)
    size = 0.0 if 0 in values.shape else max(float(values.max()), -float(values.min()))
    if size == 0:
        return np.zeros(X.shape[0]), 1.0
    if M is None and (is_csr_tensor(X) or (sp.issparse(X) and X.dtype == np.float64)):
        return to_numpy(double(sparse_squared_row_norms(X, size))), size
    squares = [
        to_numpy(_row_sums(divided(X[rows, :], size), None if M is None else M[rows, :]))
        for rows in few_rows(X)
    ]
    return np.concatenate(squares), size


def _row_sums(X: Matrix, M: Matrix | None) -> Array:
    """``Σ_j m_ij x_ij²`` of every row, in float64."""
    if sp.issparse(X):
        squares = X.multiply(X) if M is None else M.multiply(X.multiply(X))
        return np.asarray(squares.sum(axis=1), dtype=np.float64).reshape(-1)
    return total(X**2 if M is None else M * X**2, axis=1)


def known_share(data: Data) -> float:
    """Mean weight of an entry."""
    if not isinstance(data, InMemory):
        return facts_of(data).known
    M = in_memory(data).M
    if M is None:
        return 1.0
    return (float(M.sum()) if sp.issparse(M) else float(total(M, axis=(0, 1)))) / math.prod(data.shape)
