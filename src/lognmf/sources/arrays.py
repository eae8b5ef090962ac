"""Rows of arrays that are at hand: in memory, mapped from a file, chunked on disk, or of Dask."""

from __future__ import annotations

import math
import mmap
from typing import Any

import numpy as np
import scipy.sparse as sp

from lognmf.parameters import unmasked
from lognmf.sources.rows import RowBlocks, chunked, even_edges, float_type, most_rows

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
