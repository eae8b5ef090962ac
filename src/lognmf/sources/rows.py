"""Samples that are somewhere: how many, how they are cut into blocks of rows, and how to read some rows."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import scipy.sparse as sp

BLOCK_BYTES = 1 << 27
"""Bytes that a block of rows takes in memory, unless the user says how many rows it has."""

MOST_SAMPLES = 20_000
"""Samples that stand for all, at most."""


@dataclass(frozen=True, eq=False)
class RowBlocks:
    """Samples in blocks of rows that are read when they are needed: what `in_blocks` makes.

    Attributes
    ----------
    shape : tuple of int
        Number of samples and of features.
    dtype : numpy dtype
        Type in which they are computed with, float32 or float64.
    edges : tuple of int
        First row of every block, and the number of rows.
    feature_names : tuple of str or None
        Names of the features, where the source has some.
    """

    shape: tuple[int, int]
    dtype: np.dtype
    edges: tuple[int, ...]
    _read: Callable[[int, int], Any] = field(repr=False)
    feature_names: tuple[str, ...] | None = field(default=None, repr=False)

    def read(self, rows: slice) -> Any:
        """Rows ``rows.start`` to ``rows.stop`` as a NumPy array or a SciPy CSR matrix.

        Parameters
        ----------
        rows : slice
            Its ``start`` and ``stop`` are numbers of rows.

        Returns
        -------
        X : ndarray or csr_array of shape (rows, p)
            The entries as they are stored.
        """
        return self._read(rows.start, rows.stop)

    @property
    def places(self) -> list[slice]:
        """The rows of every block."""
        return [slice(*ends) for ends in itertools.pairwise(self.edges)]

    def recut(self, edges: tuple[int, ...]) -> RowBlocks:
        """The same samples in other blocks."""
        return RowBlocks(self.shape, self.dtype, edges, self._read, self.feature_names)

    def __len__(self) -> int:
        return self.shape[0]


def float_type(dtype: Any) -> np.dtype:
    """The type to compute with: float32 for itself, float64 for all else."""
    return np.dtype(np.float32 if np.dtype(dtype) == np.float32 else np.float64)


def most_rows(rows: int | None, p: int, dtype: Any) -> int:
    """Rows of a block: as many as asked for, or as fit into `BLOCK_BYTES`."""
    return int(rows) if rows is not None else max(1, BLOCK_BYTES // max(1, p * float_type(dtype).itemsize))


def sample_size(edges: Sequence[int], p: int, dtype: Any) -> int:
    """How many of the samples in blocks stand for all where these are too many: about a block of them."""
    widest = max(stop - start for start, stop in itertools.pairwise(edges))
    return min(edges[-1], MOST_SAMPLES, max(widest, most_rows(None, p, dtype)))


def by_block(index: np.ndarray, edges: Sequence[int]) -> list[np.ndarray]:
    """The samples ``index``, which are in order, counted from the first of their block, for every block."""
    parts = np.split(index, np.searchsorted(index, edges[1:-1]))
    return [part - start for part, start in zip(parts, edges[:-1], strict=True)]


def even_edges(n: int, most: int, chunk: int = 1) -> tuple[int, ...]:
    """Edges of blocks of at most ``most`` rows, in whole chunks where these are smaller."""
    step = most - most % chunk if chunk < most else most
    return (*range(0, n, step), n)


def merged_edges(sizes: Iterable[int], most: int) -> tuple[int, ...]:
    """Edges of blocks of whole chunks of these sizes, with at most ``most`` rows where a chunk allows it."""
    edges, last = [0], 0
    for end in itertools.accumulate(size for size in sizes if size):
        if end - edges[-1] > most and last > edges[-1]:
            edges.append(last)
        last = end
    return (*edges, last)


def chunked(
    shape: tuple[int, int],
    dtype: Any,
    sizes: Sequence[int],
    load: Callable[[int], Any],
    rows: int | None,
    names: tuple[str, ...] | None = None,
) -> RowBlocks:
    """Samples that can only be read in chunks of these ``sizes``; ``load(i)`` reads chunk i."""
    ends = [0, *itertools.accumulate(sizes)]

    def read(start: int, stop: int) -> Any:
        parts = [
            _part(load(i), size, slice(max(start - first, 0), stop - first), i)
            for i, (first, size) in enumerate(zip(ends, sizes, strict=False))
            if first < stop and start < first + size
        ]
        if len(parts) == 1:
            return parts[0]
        return sp.vstack(parts, format="csr") if sp.issparse(parts[0]) else np.concatenate(parts)

    edges = merged_edges(sizes, most_rows(rows, shape[1], dtype))
    return RowBlocks(shape, float_type(dtype), edges, read, names)


def _part(chunk: Any, size: int, own: slice, number: int) -> Any:
    """Some rows of a chunk; refused if it has not as many as it should."""
    if chunk.shape[0] != size:
        msg = f"chunk {number} should have {size} rows, and has {chunk.shape[0]}"
        raise ValueError(msg)
    return chunk if own.start == 0 and own.stop >= size else chunk[own]
