"""Samples in blocks of rows that are read when they are needed, and how arrays of other libraries are cut."""

from __future__ import annotations

import itertools
import math
import mmap
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import scipy.sparse as sp

from lognmf.parameters import unmasked

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


# Arrays that are at hand ---------------------------------------------------------------

PIECE_BYTES = 1 << 22
"""Bytes of a mapped file that are copied at a time."""


def library(X: Any) -> str:
    """The library that the type of ``X`` is from; it is not imported to find out."""
    return type(X).__module__.partition(".")[0]


def from_array(X: Any, rows: int | None) -> RowBlocks | None:
    """Rows of an array of a library that we know; None for all else."""
    if isinstance(X, np.memmap):
        return mapped(X, rows)
    if isinstance(X, np.ndarray) or sp.issparse(X):
        X = sp.csr_array(X) if sp.issparse(X) else X
        return _sliced(X, rows)
    if library(X) in ("zarr", "h5py", "anndata") and len(getattr(X, "shape", ())) == 2:
        check_numbers(X)
        chunks = getattr(X, "chunks", None)
        return _sliced(X, rows, chunks[0] if chunks else 1)
    if library(X) == "dask" and hasattr(X, "chunks"):
        return _from_dask(X, rows)
    return None


def mapped(X: Any, rows: int | None) -> RowBlocks:
    """Rows of a mapped file."""
    return _sliced(X, rows, read=lambda start, stop: _copied(X, start, stop))


def _sliced(X: Any, rows: int | None, chunk: int = 1, read: Any = None) -> RowBlocks:
    """Rows of what gives them as ``X[start:stop]``."""
    check_two_axes(X.shape)
    if sp.issparse(X) and rows is None:
        edges: tuple[int, ...] = (0, X.shape[0])
    else:
        edges = even_edges(X.shape[0], most_rows(rows, X.shape[1], X.dtype), chunk)
    return RowBlocks(
        tuple(X.shape), float_type(X.dtype), edges, read or (lambda start, stop: unmasked(X[start:stop]))
    )


def check_two_axes(shape: Any) -> None:
    """Refuse what is no matrix."""
    if len(shape) != 2:
        msg = f"X must have two axes, samples and features; got shape {tuple(shape)}."
        raise ValueError(msg)


def check_numbers(array: Any) -> None:
    """Refuse an array on disk that holds no numbers, or pickles, which are programs."""
    pickled = "pickle" in str(array.metadata.to_dict()).lower() if hasattr(array, "metadata") else False
    if np.dtype(array.dtype).kind not in "buif" or pickled:
        held = "pickles" if pickled else f"{array.dtype} values"
        msg = f"The array {array.name or 'X'} holds {held}, and numbers are needed."
        raise ValueError(msg)


def _copied(X: np.memmap, start: int, stop: int) -> np.ndarray:
    """Rows of a mapped file in memory of their own, a few at a time; their pages are given back.

    Pages that were read once count as memory of the process until somebody else needs it. Those of a private
    copy may hold changes, and are left alone.
    """
    file = _mapping(X)
    if file is None or not X.flags.c_contiguous or X.mode not in ("r", "r+"):
        return np.array(X[start:stop], order="C")
    block = np.empty((stop - start, *X.shape[1:]), dtype=X.dtype)
    origin, page = np.frombuffer(file, np.uint8).ctypes.data, mmap.PAGESIZE
    step = max(1, PIECE_BYTES // max(1, block[:1].nbytes))
    for first in range(start, stop, step):
        piece = X[first : min(first + step, stop)]
        block[first - start : first - start + len(piece)] = piece
        offset = piece.ctypes.data - origin
        begin, end = offset // page * page, min(-(-(offset + piece.nbytes) // page) * page, len(file))
        file.madvise(mmap.MADV_DONTNEED, begin, end - begin)
    return block


def _mapping(X: Any) -> Any:
    """The map of a file that an array is a view of; None where pages cannot be given back."""
    while X is not None and not isinstance(X, mmap.mmap):
        X = getattr(X, "base", None)
    return X if hasattr(mmap, "MADV_DONTNEED") else None


def _from_dask(X: Any, rows: int | None) -> RowBlocks:
    heights, chunks = check_dask(X), X.to_delayed().ravel()
    return chunked(tuple(X.shape), X.dtype, heights, lambda i: _computed(chunks[i]), rows)


def check_dask(X: Any) -> tuple[int, ...]:
    """Rows of the chunks of a Dask array; refused unless samples are in one piece."""
    check_two_axes(X.shape)
    heights, widths = X.chunks
    if any(math.isnan(size) for size in (*heights, *widths)):
        msg = "X is a Dask array whose chunks have unknown sizes: call X.compute_chunk_sizes() first."
        raise ValueError(msg)
    if len(widths) > 1:
        msg = (
            f"X is a Dask array with its features in {len(widths)} chunks, and every sample is needed in one "
            "piece: use X.rechunk({1: -1})."
        )
        raise ValueError(msg)
    return heights


def _computed(chunk: Any) -> Any:
    block = chunk.compute()
    return sp.csr_array(block) if sp.issparse(block) else np.asarray(unmasked(block))
