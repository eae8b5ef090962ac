"""Values as JSON and plain arrays, and back; arrays in a file."""

from __future__ import annotations

import hashlib
import os
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from lognmf.core.arrays import is_torch, to_numpy
from lognmf.parameters import check_sparse
from lognmf.reading import usual_bytes

_CSR_PARTS = ("data", "indices", "indptr", "shape")


def write(path: Path, arrays: Mapping[str, Any]) -> None:
    """The arrays in a file; compressed, unless it would unpack to more than `load_model` accepts."""
    with path.open("x+b") as file:
        np.savez_compressed(file, **arrays)
        with zipfile.ZipFile(file) as archive:
            needed = sum(member.file_size for member in archive.infolist())
        if needed > usual_bytes(path.stat().st_size):
            file.seek(0)
            file.truncate()
            np.savez(file, **arrays)


def checksum(arrays: Mapping[str, np.ndarray]) -> str:
    """SHA-256 of names, types, shapes and values."""
    digest = hashlib.sha256()
    for name in sorted(arrays):
        array = np.ascontiguousarray(arrays[name])
        digest.update(repr((name, array.dtype.str, arrays[name].shape)).encode("utf-8", "surrogatepass"))
        digest.update(array.reshape(-1).view(np.uint8).data)
    return digest.hexdigest()


def pack(key: str, value: Any, arrays: dict[str, np.ndarray]) -> Any:
    """``value`` as JSON; arrays go into ``arrays``, and the JSON records their kind."""
    if sp.issparse(value):
        W = sp.csr_array(value)
        for part in _CSR_PARTS:
            arrays[f"{key}:{part}"] = np.asarray(getattr(W, part))
        return {"kind": "csr"}
    if isinstance(value, dict):
        return {
            "kind": "dict",
            "items": {name: pack(f"{key}:{name}", v, arrays) for name, v in value.items()},
        }
    if isinstance(value, tuple):
        return {"kind": "tuple", "items": [pack(f"{key}:{i}", v, arrays) for i, v in enumerate(value)]}
    if isinstance(value, np.ndarray) or is_torch(value) or type(value).__module__.startswith("dask."):
        array = to_numpy(value)
        text = array.dtype == object
        arrays[key] = array.astype(str) if text else array
        return {"kind": "text" if text else "array"}
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, os.PathLike):
        value = os.fspath(value)
    if value is None or isinstance(value, bool | int | float | str):
        return value
    msg = f"{key} is a {type(value).__name__}, which needs pickle. Use a number, a word or an array instead."
    raise TypeError(msg)


def unpack(key: str, value: Any, arrays: Mapping[str, np.ndarray]) -> Any:
    """What `pack` made the JSON ``value`` of."""
    if not isinstance(value, dict):
        return value
    if value["kind"] == "dict":
        return {name: unpack(f"{key}:{name}", v, arrays) for name, v in value["items"].items()}
    if value["kind"] == "tuple":
        return tuple(unpack(f"{key}:{i}", v, arrays) for i, v in enumerate(value["items"]))
    if value["kind"] == "csr":
        data, indices, indptr, shape = (arrays[f"{key}:{part}"] for part in _CSR_PARTS)
        W = sp.csr_array((data, indices, indptr), shape=tuple(int(size) for size in shape))
        check_sparse(key, W)
        return W
    array = arrays[key]
    return array.astype(object) if value["kind"] == "text" else array
