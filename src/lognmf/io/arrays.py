"""Readers of arrays: npy, npz, mat and mtx files."""

from __future__ import annotations

import os
import struct
import zlib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import scipy.io
import scipy.sparse as sp
from scipy.io.matlab import matfile_version

from lognmf.datasets import Dataset
from lognmf.io.request import Request, as_vector, dataset, ending, parsing, text_bytes
from lognmf.reading import check_npy, check_npz, check_unpacked, most_bytes

_DATA_NAMES = ("X", "data", "fea", "arr_0")
_LABEL_NAMES = ("y", "labels", "gnd", "target")
_COMPRESSED, _DEFLATE_RATIO = 15, 1032
"""MATLAB's type of a compressed element, and the largest ratio that its compression can reach."""


def read_arrays(path: Path, request: Request) -> Dataset:
    """A file with one matrix, or with several named arrays."""
    with parsing(path):
        content = ARRAYS[ending(path)](path)
    return (
        from_arrays(content, request.labels, path)
        if isinstance(content, dict)
        else dataset(content, None, path)
    )


def load_npy(path: Path) -> np.ndarray:
    """The array of an npy file."""
    with path.open("rb") as file:
        check_npy(file, path.stat().st_size)
    return np.load(path, allow_pickle=False)


def _load_npz(path: Path) -> Any:
    """A sparse matrix, or a dict of the file's arrays."""
    check_npz(path)
    with np.load(path, allow_pickle=False) as file:
        if "format" not in file.files:
            return {name: array for name, array in file.items() if isinstance(array, np.ndarray)}
    return sp.load_npz(path)


def _load_mat(path: Path) -> dict[str, Any]:
    """The arrays of a MATLAB file without its structures; the text in cell arrays becomes strings."""
    check_unpacked(_mat_bytes(path), path.stat().st_size)
    arrays = {}
    for name, M in scipy.io.loadmat(path).items():
        if isinstance(M, np.ndarray) and M.dtype == object:
            arrays[name] = np.array([str(np.squeeze(cell)) for cell in M.reshape(-1)]).reshape(M.shape)
        elif sp.issparse(M) or (isinstance(M, np.ndarray) and M.dtype.kind != "V"):
            arrays[name] = M
    return arrays


def _mat_bytes(path: Path) -> int:
    """Bytes of the compressed parts of a MATLAB file when decompressed, counted until they are too many."""
    packed, total = path.stat().st_size, 0
    if matfile_version(path)[0] != 1 or _DEFLATE_RATIO * packed <= most_bytes(packed):
        return 0
    with path.open("rb") as file:
        order = "<" if file.read(128).endswith(b"IM") else ">"
        while len(tag := file.read(8)) == 8:
            kind, size = struct.unpack(f"{order}II", tag)
            if kind != _COMPRESSED:
                file.seek(size, os.SEEK_CUR)
                continue
            unpacker, rest = zlib.decompressobj(), file.read(size)
            while rest and total <= most_bytes(packed):
                total += len(unpacker.decompress(rest, 1 << 20))
                rest = unpacker.unconsumed_tail
    return total


def load_mtx(path: Path) -> Any:
    """A Matrix Market file; refused if its header promises more numbers than the file has room for."""
    _, _, entries, layout, _, symmetry = scipy.io.mminfo(path)
    size = text_bytes(path)
    numbers = entries if layout == "coordinate" or symmetry == "general" else entries // 2
    if 2 * numbers > size + 1:
        msg = f"its header promises {entries} entries, more than {size} bytes can hold"
        raise ValueError(msg)
    return scipy.io.mmread(path)


ARRAYS: dict[str, Callable[[Path], Any]] = {
    ".npy": load_npy,
    ".npz": _load_npz,
    ".mat": _load_mat,
    ".mtx": load_mtx,
    ".mtx.gz": load_mtx,
}
"""Functions that read a matrix, or a dict of arrays, by the ending of the file's name."""


def from_arrays(arrays: Mapping[str, Any], labels: str | None, path: Path) -> Dataset:
    """X and y by their names; an array with a usual name of labels is ignored if it does not fit X."""
    X = _pick_matrix({name: M for name, M in arrays.items() if name != labels}, path)
    if labels is not None:
        return dataset(X, as_vector(arrays[labels]) if labels in arrays else None, path)
    vectors = (as_vector(arrays[name]) for name in _LABEL_NAMES if name in arrays)
    return dataset(X, next((v for v in vectors if v.ndim == 1 and len(v) == X.shape[0]), None), path)


def _pick_matrix(arrays: Mapping[str, Any], path: Path) -> Any:
    named = [name for name in _DATA_NAMES if name in arrays and arrays[name].ndim == 2]
    others = [name for name, M in arrays.items() if M.ndim == 2 and min(M.shape) > 1]
    if not named and len(others) != 1:
        shapes = ", ".join(f"{name} {'×'.join(map(str, M.shape))}" for name, M in arrays.items()) or "nothing"
        msg = (
            f"{path} does not say which array is the data: it holds {shapes}. Call the matrix of samples X "
            "(data, fea and arr_0 are found as well), or store it alone."
        )
        raise ValueError(msg)
    return arrays[(named or others)[0]]
