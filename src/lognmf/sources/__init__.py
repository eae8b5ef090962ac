"""Samples that do not fit into memory: arrays and files that are read in blocks of rows."""

from __future__ import annotations

import os
from typing import Any

import numpy as np

from lognmf.parameters import check_integer
from lognmf.sources.arrays import from_array, library
from lognmf.sources.on_disk import from_path
from lognmf.sources.planted import Planted
from lognmf.sources.rows import BLOCK_BYTES, RowBlocks


def in_blocks(X: Any, *, rows: int | None = None, key: str | None = None) -> RowBlocks:
    """Samples that are read in blocks of rows whenever a fit needs them.

    NMF, GNMF, LS-NMF, RLS-NMF and WNMF take the result as ``X``. They take Dask arrays, zarr
    arrays, HDF5 datasets and large memory maps as they are, too; this function reads files, and sets
    the size of the blocks.

    Parameters
    ----------
    X : path, memmap, ndarray, sparse matrix, Dask array, zarr array or HDF5 dataset
        A path ends in npy, zarr, h5, hdf5, h5ad or parquet; a Parquet folder is all the files in it, in the
        order of their names. Chunks of a Dask array may be SciPy CSR matrices.
    rows : int, optional
        Rows of a block. Default: as many as take 128 MiB. Chunks of Dask and Parquet are not divided.
    key : str, optional
        Name of the array in a zarr or HDF5 file. Default: X, or the only one.

    Returns
    -------
    RowBlocks
        What a model's `fit` and `transform` take.

    Raises
    ------
    ValueError, TypeError, FileNotFoundError, ImportError
        If X cannot be read in blocks of rows; the message says what to do.

    Examples
    --------
    >>> import numpy as np
    >>> from lognmf import LogSparseNMF, in_blocks
    >>> X = np.random.default_rng(0).random((100, 8))
    >>> blocks = in_blocks(X, rows=30)
    >>> blocks.edges
    (0, 30, 60, 90, 100)
    >>> LogSparseNMF(3, random_state=0).fit(blocks).embedding_.shape
    (100, 3)
    """
    if rows is not None:
        check_integer("rows", rows, 1)
    if isinstance(X, str | os.PathLike):
        return from_path(X, rows, key)
    if key is not None:
        msg = "key names an array in a file: give the path of the file as X, or leave key out."
        raise ValueError(msg)
    source = from_array(X, rows)
    if source is None:
        msg = (
            f"X must be a path, or an array of NumPy, SciPy, Dask, zarr or h5py; got {type(X).__name__}: "
            "give it to the model as it is."
        )
        raise TypeError(msg)
    return source


def as_source(X: Any) -> RowBlocks | None:
    """``X`` in blocks where it is not in memory; None where it is."""
    if isinstance(X, RowBlocks):
        return X
    apart = isinstance(X, np.memmap) and X.ndim == 2 and X.nbytes > BLOCK_BYTES
    return from_array(X, None) if apart or library(X) in ("dask", "zarr", "h5py", "anndata") else None


__all__ = ["Planted", "RowBlocks", "as_source", "in_blocks"]
