"""Rows of files: npy, zarr, HDF5 and AnnData (h5ad), Parquet."""

from __future__ import annotations

import importlib
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from lognmf.blocks.rows import (
    BLOCK_BYTES,
    RowBlocks,
    check_numbers,
    check_two_axes,
    chunked,
    even_edges,
    float_type,
    mapped,
    most_rows,
)
from lognmf.reading import check_npy, reason, short

DEFAULT_KEY = "X"
"""Where AnnData, and most others, keep the samples."""


def from_path(path: str | os.PathLike[str], rows: int | None, key: str | None) -> RowBlocks:
    """Rows of a file or folder, by the ending of its name."""
    path = Path(path).resolve()  # workers may have other current folders
    if not path.exists():
        msg = f"There is no file or folder {path}."
        raise FileNotFoundError(msg)
    reader = READERS.get(path.suffix.lower())
    if reader is None:
        msg = f"{path} ends in none of {', '.join(READERS)}, the formats that can be read in blocks of rows."
        raise ValueError(msg)
    if key is not None and reader in (_npy, _parquet):
        msg = f"key names an array in a zarr or HDF5 file, and {path} holds only one: leave it out."
        raise ValueError(msg)
    return reader(path, rows) if reader in (_npy, _parquet) else reader(path, rows, key)


def needed(module: str, path: Path) -> Any:
    """An optional module that reads this file."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        package = module.partition(".")[0]
        msg = f'To read {path}, {package} is needed: run pip install "lognmf[blocks]".'
        raise ImportError(msg) from error


@contextmanager
def _naming(path: Path) -> Iterator[None]:
    """Errors inside say that this file cannot be read, and why."""
    try:
        yield
    except (OSError, ValueError, KeyError, TypeError) as error:
        msg = f"{path} cannot be read: {reason(error)}."
        raise ValueError(msg) from error


def _npy(path: Path, rows: int | None) -> RowBlocks:
    with _naming(path):
        with path.open("rb") as file:
            check_npy(file, path.stat().st_size)
        X = np.load(path, mmap_mode="r", allow_pickle=False)
        # Opened anew for every block: a worker gets the path, and not the entries.
        return replace(mapped(X, rows), _read=partial(_mapped_rows, path))


def _mapped_rows(path: Path, start: int, stop: int) -> np.ndarray:
    return mapped(np.load(path, mmap_mode="r", allow_pickle=False), None).read(slice(start, stop))


# Trees of arrays -----------------------------------------------------------------------


@contextmanager
def _hdf5(path: Path) -> Any:
    with needed("h5py", path).File(path, "r") as file:
        yield file


@contextmanager
def _zarr(path: Path) -> Any:
    yield needed("zarr", path).open(str(path), mode="r")


def _tree(path: Path, rows: int | None, key: str | None, opened: Callable[[Path], Any]) -> RowBlocks:
    """Rows of an array in a file, dense, or sparse as AnnData stores it; opened anew for every block."""
    with _naming(path), opened(path) as root:
        node, key = _node(root, key)
        at = partial(_at, path, key, opened)
        blocks = _sparse(node, at, rows) if hasattr(node, "keys") else _dense(node, at, rows)
        return replace(blocks, feature_names=_variables(root, blocks.shape[1]))


def _variables(root: Any, p: int) -> tuple[str, ...] | None:
    """Names of the variables, where AnnData stores them."""
    if not hasattr(root, "keys") or "var" not in root or not hasattr(root["var"], "keys"):
        return None
    index = str(root["var"].attrs.get("_index", "_index"))
    if index not in root["var"]:
        return None
    names = root["var"][index]
    words = tuple(map(str, (names.asstr() if hasattr(names, "asstr") else names)[:]))
    return words if len(words) == p else None


def _dense(node: Any, at: Callable[[], Any], rows: int | None) -> RowBlocks:
    """Rows of a dense array."""
    check_two_axes(node.shape)
    check_numbers(node)
    chunk = node.chunks[0] if node.chunks else 1
    edges = even_edges(node.shape[0], most_rows(rows, node.shape[1], node.dtype), chunk)
    return RowBlocks(tuple(node.shape), float_type(node.dtype), edges, partial(_dense_rows, at))


def _node(root: Any, key: str | None) -> tuple[Any, str]:
    """The array or sparse group called ``key``; the file itself, X, or the only one without a name."""
    if not hasattr(root, "keys"):
        return root, ""
    names = sorted(root.keys())
    wanted = key or (DEFAULT_KEY if DEFAULT_KEY in names else names[0] if len(names) == 1 else None)
    if wanted is None or wanted not in root:
        held = short(", ".join(names)) or "nothing"
        msg = f"it holds {held}, and no {wanted or DEFAULT_KEY}; name the array of the samples by key"
        raise ValueError(msg)
    return root[wanted], wanted


@contextmanager
def _at(path: Path, key: str, opened: Callable[[Path], Any]) -> Any:
    """The array at ``key`` of a file that is open meanwhile."""
    with opened(path) as root:
        yield root[key] if key else root


def _dense_rows(at: Callable[[], Any], start: int, stop: int) -> np.ndarray:
    with at() as array:
        return np.asarray(array[start:stop])


def _sparse(group: Any, at: Callable[[], Any], rows: int | None) -> RowBlocks:
    """Rows of a sparse matrix in parts ``data``, ``indices``, ``indptr``."""
    kind = str(group.attrs.get("encoding-type", group.attrs.get("h5sparse_format", "csr")))
    parts = "data", "indices", "indptr"
    if "csr" not in kind or any(part not in group for part in parts):
        held = short(", ".join(group.keys()))
        msg = f"{group.name} is a group of {held} ({short(kind)}), and no matrix stored by rows (csr_matrix)"
        raise ValueError(msg)
    for part in parts:
        check_numbers(group[part])
    sizes = group.attrs.get("shape", group.attrs.get("h5sparse_shape", ()))
    check_two_axes(sizes)
    shape = int(sizes[0]), int(sizes[1])
    ends, dtype = np.asarray(group["indptr"][:]), group["data"].dtype
    if len(ends) != shape[0] + 1 or ends[0] != 0 or (np.diff(ends) < 0).any():
        msg = f"the pointers of {group.name} do not fit its {shape[0]} rows"
        raise ValueError(msg)
    if rows is None:
        most = BLOCK_BYTES // (float_type(dtype).itemsize + group["indices"].dtype.itemsize)
        cuts = np.searchsorted(ends, np.arange(most, ends[-1], most), side="right") - 1
        edges = tuple(np.unique([0, *cuts, shape[0]]).tolist())
    else:
        edges = even_edges(shape[0], rows)
    return RowBlocks(shape, float_type(dtype), edges, partial(_sparse_rows, at, ends, shape[1]))


def _sparse_rows(at: Callable[[], Any], ends: np.ndarray, p: int, start: int, stop: int) -> sp.csr_array:
    own = slice(int(ends[start]), int(ends[stop]))
    with at() as group:
        parts = group["data"][own], group["indices"][own], ends[start : stop + 1] - ends[start]
    return sp.csr_array(parts, shape=(stop - start, p))


# Parquet -------------------------------------------------------------------------------


def _parquet(path: Path, rows: int | None) -> RowBlocks:
    """Rows of a Parquet file, or of all those in a folder, in the order of their names."""
    parquet = needed("pyarrow.parquet", path)
    files = sorted(path.rglob("*.parquet")) if path.is_dir() else [path]
    if not files:
        msg = f"{path} holds no Parquet file."
        raise ValueError(msg)
    groups: list[tuple[Path, int]] = []
    sizes: list[int] = []
    schema = None
    for file in files:
        with _naming(file):
            found = parquet.ParquetFile(file)
        with found:
            if schema is not None and not found.schema_arrow.equals(schema):
                msg = f"{file} has other columns than {files[0]}: all files of a folder must have the same."
                raise ValueError(msg)
            schema = found.schema_arrow
            counts = [found.metadata.row_group(i).num_rows for i in range(found.num_row_groups)]
        groups += [(file, i) for i in range(len(counts))]
        sizes += counts
    names, dtype = _numeric(schema, path)
    load = partial(_row_group, groups, dtype)
    return chunked((sum(sizes), len(names)), dtype, sizes, load, rows, names)


def _numeric(schema: Any, path: Path) -> tuple[tuple[str, ...], np.dtype]:
    """Names of the columns, which all hold numbers, and the type of the samples."""
    import pyarrow as pa

    tests = (pa.types.is_integer, pa.types.is_floating, pa.types.is_boolean)
    other = [column.name for column in schema if not any(test(column.type) for test in tests)]
    if other:
        msg = f"{path} has columns that hold no numbers: {short(', '.join(other))}. Store the features alone."
        raise ValueError(msg)
    single = all(column.type == pa.float32() for column in schema)
    return tuple(schema.names), np.dtype(np.float32 if single else np.float64)


def _row_group(groups: list[tuple[Path, int]], dtype: np.dtype, number: int) -> np.ndarray:
    import pyarrow.parquet as parquet

    file, group = groups[number]
    with parquet.ParquetFile(file) as opened:
        table = opened.read_row_group(group)
    X = np.empty(table.shape, dtype=dtype)
    for j, column in enumerate(table.columns):
        X[:, j] = column.to_numpy()
    return X


READERS: dict[str, Callable[..., RowBlocks]] = {
    ".npy": _npy,
    ".zarr": partial(_tree, opened=_zarr),
    **dict.fromkeys((".h5", ".hdf5", ".h5ad"), partial(_tree, opened=_hdf5)),
    ".parquet": _parquet,
}
"""Readers by the ending of the name of a file or folder."""
