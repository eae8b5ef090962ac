"""Equal samples."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from lognmf.core.arrays import is_torch

BLOCK = 1 << 16
"""Numbers per block of work."""

_MIX = np.uint64(0x9E3779B97F4A7C15)
"""An odd number whose multiples spread over all 64 bits."""


def distinct_rows(X: Any) -> tuple[np.ndarray, np.ndarray]:
    """The first of every set of equal rows (m,), in order, and for each row the number of its set (n,)."""
    group = _sets_of_equal(_hashes(X))
    while not (equal := _equal_rows(X, group)).all():
        # Rows of one hash that are not equal: those that equal the first stay, the others are another set.
        group = _sets_of_equal(2 * group + ~equal)
    return _firsts(group), group


def _sets_of_equal(values: np.ndarray) -> np.ndarray:
    """The number of each value's set (n,), sets in the order of their first values."""
    _, first, inverse = np.unique(values, return_index=True, return_inverse=True)
    number = np.empty(len(first), dtype=np.intp)
    number[np.argsort(first)] = np.arange(len(first))
    return number[inverse]


def _firsts(group: np.ndarray) -> np.ndarray:
    """The first member of every set (m,)."""
    return np.unique(group, return_index=True)[1]


def _equal_rows(X: Any, group: np.ndarray) -> np.ndarray:
    """Whether each row equals the first one of its set (n,)."""
    first = _firsts(group)[group]
    others = np.flatnonzero(first != np.arange(len(group)))
    equal = np.ones(len(group), dtype=bool)
    if is_torch(X):
        from lognmf.neighbours.tensors import equal_rows

        equal[others] = equal_rows(X, others, first[others])
        return equal
    step = max(1, BLOCK // max(1, X.nnz // X.shape[0] if sp.issparse(X) else X.shape[1]))
    for start in range(0, len(others), step):
        rows = others[start : start + step]
        if sp.issparse(X):
            difference = sp.csr_array(X[rows] != X[first[rows]])
            equal[rows] = np.diff(difference.indptr) == 0
        else:
            equal[rows] = (X[rows] == X[first[rows]]).all(axis=1)
    return equal


def _hashes(X: Any) -> np.ndarray:
    """A number for each row (n,): equal for equal rows, and hardly ever for others."""
    if is_torch(X):
        from lognmf.neighbours.tensors import hashes

        return hashes(X)
    if sp.issparse(X):
        marks = _mixed(_bits(X.data), X.indices.astype(np.uint64))
        marks[X.data == 0] = 0  # a stored zero is no entry
        sums = np.concatenate([np.zeros(1, np.uint64), np.cumsum(marks)])  # modulo 2⁶⁴, so nothing is lost
        return sums[X.indptr[1:]] - sums[X.indptr[:-1]]
    marks = np.empty(X.shape[0], dtype=np.uint64)
    columns = np.arange(X.shape[1], dtype=np.uint64)
    step = max(1, BLOCK // X.shape[1])
    for start in range(0, X.shape[0], step):
        rows = slice(start, start + step)
        marks[rows] = _mixed(_bits(X[rows]), columns).sum(axis=1)
    return marks


def _bits(values: np.ndarray) -> np.ndarray:
    """The bits of floats as integers; −0 and 0 have the same."""
    values = np.ascontiguousarray(values + 0.0)
    return values.view(np.uint32 if values.itemsize == 4 else np.uint64).astype(np.uint64, copy=False)


def _mixed(bits: np.ndarray, columns: np.ndarray) -> np.ndarray:
    """A random-looking number for each entry, by its value and its column."""
    marks = (bits ^ (bits >> np.uint64(32))) * _MIX
    marks ^= (columns + np.uint64(1)) * np.uint64(0xD6E8FEB86659FD93)
    marks ^= marks >> np.uint64(29)
    marks *= _MIX
    marks ^= marks >> np.uint64(32)
    return marks
