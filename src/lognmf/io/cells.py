"""Readers of single cells and of other stores of named arrays: AnnData, 10x Genomics, zarr."""

from __future__ import annotations

import csv
import io
import warnings
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from lognmf.datasets import Dataset
from lognmf.io.arrays import from_arrays, load_mtx
from lognmf.io.request import (
    Request,
    as_vector,
    check_labels_exist,
    dataset,
    hint,
    needs,
    open_text,
    parsing,
    text_bytes,
)
from lognmf.reading import check_unpacked

RAW = "raw"
"""The name of the layer that AnnData stores separately from the others."""


def is_tenx(folder: Path) -> bool:
    """Whether a folder is one of 10x Genomics: matrix, barcodes and features."""
    return folder.is_dir() and _beside(folder, "matrix.mtx") is not None


def is_zarr(folder: Path) -> bool:
    """Whether a folder is a zarr store."""
    return folder.is_dir() and any((folder / name).is_file() for name in ("zarr.json", ".zarray", ".zgroup"))


def read_tenx_folder(folder: Path, request: Request) -> Dataset:
    """Cells × genes from the file of genes × cells, with the names from the files next to it."""
    matrix = _beside(folder, "matrix.mtx") or folder / "matrix.mtx"  # gone since `is_tenx` saw it
    with parsing(matrix):
        X = load_mtx(matrix).T
    genes = _beside(folder, "features.tsv") or _beside(folder, "genes.tsv")
    barcodes = _beside(folder, "barcodes.tsv")
    names = None if genes is None else _distinct(_column(genes, 1), _column(genes, 0))
    cells = None if barcodes is None else _column(barcodes, 0)
    for what, found, size in (("features", names, X.shape[1]), ("barcodes", cells, X.shape[0])):
        if found is not None and len(found) != size:
            msg = (
                f"{folder} has {len(found)} {what} for a matrix of {X.shape[1]} genes and {X.shape[0]} cells."
            )
            raise ValueError(msg)
    check_labels_exist(request.labels, None, folder)
    return dataset(X, None, folder, names, cells)


def read_hdf5(path: Path, request: Request) -> Dataset:
    """An h5 file of 10x Genomics: the group matrix, or the genome's."""
    with needs("h5py", "cells"):
        import h5py
    with parsing(path), h5py.File(path) as file:
        groups = [group for group in file.values() if isinstance(group, h5py.Group) and "indptr" in group]
        if len(groups) != 1:
            msg = f"it has {len(groups)} groups with a matrix of 10x Genomics, and must have one"
            raise ValueError(msg)
        (group,) = groups
        arrays = {name: group[name] for name in ("data", "indices", "indptr", "shape")}
        check_unpacked(sum(array.nbytes for array in arrays.values()), path.stat().st_size)
        values = {name: array[()] for name, array in arrays.items()}
        genes, cells = values["shape"].tolist()
        X = sp.csr_array((values["data"], values["indices"], values["indptr"]), shape=(cells, genes))
        about = group.get("features", group)
        ids = about["id" if "id" in about else "genes"].asstr()[()].tolist()
        symbols = about["name" if "name" in about else "gene_names"].asstr()[()].tolist()
        barcodes = group["barcodes"].asstr()[()].tolist()
    check_labels_exist(request.labels, None, path)
    return dataset(X, None, path, _distinct(symbols, ids), barcodes)


def read_h5ad(path: Path, request: Request) -> Dataset:
    """An AnnData file."""
    with needs("anndata", "cells"):
        import anndata
        import h5py
    with parsing(path):
        with h5py.File(path) as file:
            sizes: list[int] = []
            file.visititems(lambda _, one: sizes.append(getattr(one, "nbytes", 0)))
        check_unpacked(sum(sizes), path.stat().st_size)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", FutureWarning)  # of files that older versions wrote
            cells = anndata.read_h5ad(path)
    return from_anndata(cells, request, path)


def read_zarr(folder: Path, request: Request) -> Dataset:
    """A zarr array, a group of arrays, or AnnData stored as zarr."""
    with needs("zarr", "cells"):
        import zarr
    with parsing(folder):
        store = zarr.open(folder, mode="r")
        if isinstance(store, zarr.Array):
            check_labels_exist(request.labels, None, folder)
            return dataset(np.asarray(store), None, folder)
        if store.attrs.get("encoding-type") == "anndata":
            import anndata

            return from_anndata(anndata.read_zarr(folder), request, folder)
        arrays = {name: np.asarray(array) for name, array in store.arrays()}
    return from_arrays(arrays, request.labels, folder)


def from_anndata(cells: Any, request: Request, path: Path) -> Dataset:
    """X, or a layer, of an AnnData object with the names of its observations and variables."""
    table, request = cells, request.indexed(list(cells.obs.columns))
    elsewhere = [*cells.layers, *([RAW] if cells.raw is not None else [])]
    if request.layer == RAW and cells.raw is not None:
        table = cells.raw
        X = table.X
    elif request.layer is None:
        X = cells.X
    elif request.layer in cells.layers:
        X = cells.layers[request.layer]
    else:
        msg = f"{path} has no layer {request.layer!r}: it has {', '.join(elsewhere) or 'only X'}."
        raise ValueError(msg)
    if request.layer is None and elsewhere and X is not None and X.min() < 0:
        hint(f"X of {path} has negative entries; layer= reads {' or '.join(elsewhere)} instead.")
    if X is None:
        msg = f"{path} has no matrix X: name a layer with layer=."
        raise ValueError(msg)
    if request.index is not None and request.index not in cells.obs:
        msg = f"{path} has no column {request.index!r} with the names of the samples among its obs."
        raise ValueError(msg)
    if request.features is not None and request.features not in table.var:
        msg = f"{path} has no column {request.features!r} with the names of the features among its var."
        raise ValueError(msg)
    check_labels_exist(request.labels, list(cells.obs.columns), path)
    names = table.var_names if request.features is None else table.var[request.features]
    samples = cells.obs_names if request.index is None else cells.obs[request.index]
    y = as_vector(cells.obs[request.labels].astype(str)).astype(str) if request.labels in cells.obs else None
    return dataset(X, y, path, list(map(str, names)), list(map(str, samples)))


def _beside(folder: Path, name: str) -> Path | None:
    """A file in a folder, compressed or not."""
    return next((file for end in ("", ".gz") if (file := folder / f"{name}{end}").is_file()), None)


def _column(path: Path, place: int) -> list[str]:
    """A column of a tsv file without a header; the last cell of shorter lines."""
    with parsing(path):
        text_bytes(path)
        with io.TextIOWrapper(open_text(path), encoding="utf-8", newline="") as file:
            rows = csv.reader(file, delimiter="\t")
            return [row[min(place, len(row) - 1)] for row in rows if row]


def _distinct(names: Sequence[str], ids: Sequence[str]) -> list[str]:
    """Names; repeated ones are followed by their identifiers."""
    times = Counter(names)
    return [f"{name} ({one})" if times[name] > 1 else name for name, one in zip(names, ids, strict=True)]
