"""Names of rows and of what they belong to: equal values have equal names, different ones have not."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp

from lognmf.core.arrays import Matrix, is_sparse, is_torch, on_cpu
from lognmf.core.data import InMemory


def describe(
    estimator: Any,
    data: InMemory,
    names: Sequence[str],
    n_clusters: int | None,
    classes: np.ndarray | None,
    graph: sp.csr_array | None,
) -> dict[str, Any]:
    """What rows of a store belong to."""
    apart = (*names, "random_state", "verbose")
    return {
        "format": 4,
        "model": type(estimator).__name__,
        "parameters": plain({n: v for n, v in estimator.get_params().items() if n not in apart}),
        "grid": list(names),
        "data": plain(data.X),
        "mask": plain(data.M),
        "library": "torch" if is_torch(data.X) else "numpy",
        "dtype": str(data.X.dtype),
        "n_clusters": n_clusters,
        "classes": plain(classes),
        "graph": plain(graph),
    }


def row_key(setting: Mapping[str, Any], seed: int) -> str:
    """The name of a row in a store."""
    return key_of([setting, seed])


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
        return f"{kind} {'×'.join(map(str, value.shape))} {_hash(value)[:16]}"
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if isinstance(value, Mapping):
        return {name: plain(item) for name, item in value.items()}
    if value is None or isinstance(value, bool | int | float | str):
        return value
    msg = (
        f"parameters in a grid or a store must be numbers, words, None, matrices or lists of them; "
        f"got {value!r}: give a value of these kinds, or fit the model alone."
    )
    raise TypeError(msg)


def _hash(X: Matrix) -> str:
    X = on_cpu(X)
    parts = sp.csr_array(X) if sp.issparse(X) else None
    arrays = (X,) if parts is None else (parts.data, parts.indices, parts.indptr)
    digest = hashlib.sha256(repr(tuple(X.shape)).encode())
    for array in arrays:
        digest.update(np.ascontiguousarray(array).view(np.uint8).data)
    return digest.hexdigest()
