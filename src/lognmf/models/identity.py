"""What tells one fit from another: equal values have equal names, different ones have not."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any

import numpy as np
import scipy.sparse as sp

from lognmf.core.arrays import Matrix
from lognmf.core.matrices import is_sparse, on_cpu


def key_of(value: Any) -> str:
    """A text that equal values share; matrices enter with all their entries."""
    return json.dumps(plain(value), sort_keys=True)


def plain(value: Any) -> Any:
    """``value`` as JSON can hold it; a matrix becomes its shape and a hash of its entries.

    Any other object is refused: its text need not tell it from another one.
    """
    value = value.item() if isinstance(value, np.generic) else value
    if hasattr(value, "shape"):
        kind = "sparse" if is_sparse(value) else "array"
        return f"{kind} {'×'.join(map(str, value.shape))} {hash_of(value)[:16]}"
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if isinstance(value, Mapping):
        return {name: plain(item) for name, item in value.items()}
    if value is None or isinstance(value, bool | int | float | str):
        return value
    msg = (
        f"parameters in a grid, a store or a checkpoint must be numbers, words, None, matrices or lists of "
        f"them; got {value!r}: give a value of these kinds, or fit the model alone."
    )
    raise TypeError(msg)


def hash_of(X: Matrix) -> str:
    """SHA-256 of the shape and the entries of a matrix, in hexadecimal digits."""
    X = on_cpu(X)
    parts = sp.csr_array(X) if sp.issparse(X) else None
    arrays = (X,) if parts is None else (parts.data, parts.indices, parts.indptr)
    digest = hashlib.sha256(repr(tuple(X.shape)).encode())
    for array in arrays:
        digest.update(np.ascontiguousarray(array).view(np.uint8).data)
    return digest.hexdigest()
