"""A graph in the order in which coordinate sweeps visit its rows.

Rows of one colour have no edge between them: given the other rows they are independent, so
they can be minimised side by side, and one colour after another is exact Gauss-Seidel.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import scipy.sparse as sp


class ColouredGraph(NamedTuple):
    """A graph without loops in CSR, ``degree`` (n,) its row sums, and its rows sorted by colour.

    ``order`` (n,) lists the rows colour by colour; ``bounds`` (colours + 1,) says where in it each begins.
    """

    order: np.ndarray
    bounds: np.ndarray
    indptr: np.ndarray
    indices: np.ndarray
    weights: np.ndarray
    degree: np.ndarray


def coloured(W: sp.sparray) -> ColouredGraph:
    """The symmetric graph ``W`` (n, n), coloured greedily, the most connected rows first."""
    from lognmf.core.solvers.coordinate.compiled import greedy_colours

    W = sp.csr_array(W, dtype=np.float64, copy=True)
    if W.diagonal().any():  # a loop joins a row to itself: it adds nothing to Tr(VᵀLV)
        W.setdiag(0)
    W.eliminate_zeros()
    W.sort_indices()
    indptr, indices = W.indptr.astype(np.int64), W.indices.astype(np.int64)
    colour = greedy_colours(np.argsort(-np.diff(indptr), kind="stable"), indptr, indices)
    bounds = np.concatenate([[0], np.cumsum(np.bincount(colour))])
    degree = np.asarray(W.sum(axis=1)).reshape(-1)
    return ColouredGraph(np.argsort(colour, kind="stable"), bounds, indptr, indices, W.data, degree)


def without_edges(n: int) -> ColouredGraph:
    """``n`` independent rows, all of one colour."""
    none = np.zeros(0, dtype=np.int64)
    indptr = np.zeros(n + 1, dtype=np.int64)
    return ColouredGraph(np.arange(n), np.array([0, n]), indptr, none, np.zeros(0), np.zeros(n))
