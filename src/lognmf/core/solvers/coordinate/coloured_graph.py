"""A graph in the order in which coordinate sweeps visit it.

Rows of one colour have no edge between them: given the other rows they are independent, so
they can be minimised side by side, and one colour after another is exact Gauss-Seidel.
"""

from __future__ import annotations

from types import ModuleType
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp


class Visit(NamedTuple):
    """Rows sorted by colour, and the graph they hang on.

    Parameters
    ----------
    order : ndarray of shape (n,)
        The rows, colour by colour.
    bounds : ndarray of shape (colours + 1,)
        Where in ``order`` each colour begins; the last number is n.
    indptr, indices, weights : ndarrays
        The graph without loops, in CSR.
    degree : ndarray of shape (n,)
        Sums of its rows.
    """

    order: np.ndarray
    bounds: np.ndarray
    indptr: np.ndarray
    indices: np.ndarray
    weights: np.ndarray
    degree: np.ndarray


def visit(W: sp.sparray, kernels: ModuleType) -> Visit:
    """The rows of the symmetric graph ``W`` (n, n) by colour, the most connected rows first."""
    W = sp.csr_array(W, dtype=np.float64, copy=True)
    if W.diagonal().any():  # a loop joins a row to itself: it adds nothing to Tr(VᵀLV)
        W.setdiag(0)
    W.eliminate_zeros()
    W.sort_indices()
    indptr, indices = W.indptr.astype(np.int64), W.indices.astype(np.int64)
    colour = kernels.greedy_colours(np.argsort(-np.diff(indptr), kind="stable"), indptr, indices)
    order = np.argsort(colour, kind="stable")
    bounds = np.concatenate([[0], np.cumsum(np.bincount(colour))])
    degree = np.asarray(W.sum(axis=1)).reshape(-1)
    return Visit(order, bounds, indptr, indices, W.data, degree)


def independent(n: int) -> Visit:
    """``n`` rows that have nothing to do with one another."""
    nothing = np.zeros(0)
    return Visit(
        np.arange(n),
        np.array([0, n]),
        np.zeros(n + 1, dtype=np.int64),
        nothing.astype(np.int64),
        nothing,
        np.zeros(n),
    )
