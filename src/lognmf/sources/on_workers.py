"""Samples whose blocks lie on the workers of a Dask cluster."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from lognmf.sources.arrays import check_dask, library
from lognmf.sources.rows import RowBlocks, float_type


@dataclass(frozen=True, eq=False)
class WorkerBlocks:
    """Samples in blocks of rows on the workers of a Dask cluster: what `on_workers` makes.

    Attributes
    ----------
    shape : tuple of int
        Number of samples and of features.
    dtype : numpy dtype
        Type in which they are computed with, float32 or float64.
    edges : tuple of int
        First row of every block, and the number of rows.
    client : distributed.Client
        The connection to the cluster.
    device : str or None
        Where torch computes with them; None: NumPy does.
    """

    shape: tuple[int, int]
    dtype: np.dtype
    edges: tuple[int, ...]
    client: Any = field(repr=False)
    blocks: tuple[Any, ...] = field(repr=False)  # a future of every block
    device: str | None = None


def client_of(client: Any) -> Any:
    """The given client, or the one that is active."""
    try:
        from distributed import Client, default_client
    except ImportError as error:
        msg = 'A cluster needs Dask: run pip install "lognmf[dask]".'
        raise ImportError(msg) from error
    if client is None:
        try:
            return default_client()
        except ValueError as error:
            msg = "There is no Dask client: make one, such as distributed.Client(), or give client."
            raise ValueError(msg) from error
    if not isinstance(client, Client):
        msg = f"client must be a distributed.Client; got {type(client).__name__}."
        raise TypeError(msg)
    if client.asynchronous:
        msg = "client is asynchronous: give one that waits for its results."
        raise ValueError(msg)
    return client


def on_cluster(X: Any, source: RowBlocks | None, client: Any, device: str | None) -> WorkerBlocks:
    """The chunks of a Dask array, or the blocks of another source, as they come to lie on workers."""
    if library(X) == "dask":
        heights = check_dask(X)
        edges = tuple(np.cumsum([0, *heights]).tolist())
        blocks = tuple(client.compute([*X.to_delayed().ravel()]))
        return WorkerBlocks(X.shape, float_type(X.dtype), edges, client, blocks, device)
    if source is None:
        msg = f"X must be a Dask array or what in_blocks takes; got {type(X).__name__}."
        raise TypeError(msg)
    if library(X) == "h5py":
        msg = "An HDF5 dataset that is open here cannot be sent to workers: give the path of its file."
        raise TypeError(msg)
    places = [slice(*ends) for ends in zip(source.edges, source.edges[1:], strict=False)]
    blocks = tuple(client.map(source.read, places, pure=False))
    return WorkerBlocks(source.shape, source.dtype, source.edges, client, blocks, device)
