"""Samples that do not fit into memory: arrays and files that are read in blocks of rows."""

from __future__ import annotations

import os
from typing import Any

import numpy as np

from lognmf.blocks.cluster import WorkerBlocks, client_of, on_cluster
from lognmf.blocks.files import from_path
from lognmf.blocks.rows import BLOCK_BYTES, RowBlocks, from_array, library
from lognmf.parameters import check_integer


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

    See Also
    --------
    on_workers : Blocks on the workers of a Dask cluster.

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


def on_workers(X: Any, *, client: Any = None, device: str | None = None) -> WorkerBlocks:
    """Samples whose blocks, and the codes of their samples, lie on the workers of a Dask cluster.

    NMF, GNMF, LS-NMF, RLS-NMF and WNMF take the result as ``X``. Of every sample only its norm comes to this
    process, and ``embedding_`` is a Dask array. Both solvers work there; coordinate descent needs blocks
    that NumPy computes with, and takes no graph. Blocks of a worker that dies are read and computed again.

    Parameters
    ----------
    X : Dask array, path, or what else `in_blocks` takes or returns
        A chunk of a Dask array is a block. Paths must lead to the same file on every worker.
    client : distributed.Client, optional
        The cluster. Default: the client that is active.
    device : str, optional
        "cuda", "cuda:1", "cpu": compute with torch there, each worker with dense blocks of its own.

    Returns
    -------
    WorkerBlocks
        What a model's `fit` and `transform` take.

    Raises
    ------
    ValueError, TypeError, FileNotFoundError, ImportError
        If there is no client, or X cannot be read in blocks of rows; the message says what to do.

    See Also
    --------
    in_blocks : Blocks that one process reads one after another.

    Examples
    --------
    >>> from distributed import Client  # doctest: +SKIP
    >>> from lognmf import LogSparseNMF, on_workers
    >>> client = Client("tcp://scheduler:8786")  # doctest: +SKIP
    >>> model = LogSparseNMF(20).fit(on_workers("big.zarr"))  # doctest: +SKIP
    """
    client = client_of(client)
    apart = library(X) == "dask" or isinstance(X, RowBlocks)
    if not (device is None or isinstance(device, str)):
        msg = f'device must be None or a name of torch such as "cuda" or "cpu"; got {device!r}.'
        raise TypeError(msg)
    return on_cluster(X, X if isinstance(X, RowBlocks) else None if apart else in_blocks(X), client, device)


def as_source(X: Any) -> RowBlocks | None:
    """``X`` in blocks where it is not in memory; None where it is."""
    if isinstance(X, RowBlocks):
        return X
    apart = isinstance(X, np.memmap) and X.ndim == 2 and X.nbytes > BLOCK_BYTES
    if hasattr(X, "var_names"):  # AnnData itself, not one of its matrices on disk
        return None
    return from_array(X, None) if apart or library(X) in ("dask", "zarr", "h5py", "anndata") else None


__all__ = ["RowBlocks", "WorkerBlocks", "as_source", "in_blocks", "on_workers"]
