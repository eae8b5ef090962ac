"""Matrices to fit: kinds of values, containers, and marks by which a change of the input shows."""

import hashlib
from collections.abc import Callable
from importlib.util import find_spec
from typing import Any

import numpy as np
import scipy.sparse as sp

Rng = np.random.Generator


def _low_rank(rng: Rng, n: int, p: int) -> np.ndarray:
    return rng.random((n, 2)) @ rng.random((2, p))


def _blocks(rng: Rng, n: int, p: int) -> np.ndarray:
    rows, columns = np.arange(n) * 3 // n, np.arange(p) * 3 // p
    return (rows[:, None] == columns) * (1.0 + rng.integers(0, 2, (n, p)))


def _zero_rows_and_columns(rng: Rng, n: int, p: int) -> np.ndarray:
    return rng.random((n, p)) * (rng.random((n, 1)) < 0.5) * (rng.random(p) < 0.5)


def _one_entry(rng: Rng, n: int, p: int) -> np.ndarray:
    X = np.zeros((n, p))
    X[rng.integers(n), rng.integers(p)] = 1
    return X


def _outlier(rng: Rng, n: int, p: int) -> np.ndarray:
    X = _low_rank(rng, n, p)
    X[rng.integers(n)] = 30 * rng.random(p)
    return X


def _powers(low: int, high: int) -> Callable[[Rng, int, int], np.ndarray]:
    return lambda rng, n, p: 10.0 ** rng.uniform(low, high, (n, p))


VALUES: dict[str, Callable[[Rng, int, int], np.ndarray]] = {
    "uniform": lambda rng, n, p: rng.random((n, p)),
    "ones": lambda rng, n, p: np.ones((n, p)),
    "zeros": lambda rng, n, p: np.zeros((n, p)),
    "low rank": _low_rank,
    "blocks": _blocks,
    "sparse": lambda rng, n, p: rng.random((n, p)) * (rng.random((n, p)) < 0.2),
    "counts": lambda rng, n, p: rng.poisson(rng.gamma(0.3, 5.0, (n, p))).astype(float),
    "zero rows and columns": _zero_rows_and_columns,
    "repeated rows": lambda rng, n, p: rng.random((3, p))[rng.integers(3, size=n)],
    "one entry": _one_entry,
    "an outlier": _outlier,
    "six decades": _powers(-3, 3),
    "thirty decades": _powers(-25, 5),
    "denormal": lambda rng, n, p: rng.random((n, p)) * np.where(rng.random((n, p)) < 0.5, 1e-310, 1.0),
    "signed": lambda rng, n, p: rng.normal(size=(n, p)),
}


def _strided(X: np.ndarray) -> np.ndarray:
    room = np.zeros((2 * X.shape[0], 3 * X.shape[1]), dtype=X.dtype)
    room[::2, ::3] = X
    return room[::2, ::3]


def _read_only(X: np.ndarray) -> np.ndarray:
    X = X.copy()
    X.flags.writeable = False
    return X


def _twice(X: np.ndarray) -> sp.csr_array:
    """Every entry as two of half its value, in falling order of columns: legal, not canonical."""
    W = sp.csr_array(X)
    order = np.concatenate([np.arange(W.indptr[i], W.indptr[i + 1])[::-1] for i in range(X.shape[0])])
    order = np.repeat(order.astype(int), 2)
    return sp.csr_array((W.data[order] / 2, W.indices[order], 2 * W.indptr), shape=X.shape)


def _explicit_zeros(X: np.ndarray) -> sp.csr_array:
    n, p = X.shape
    return sp.csr_array(
        (X.ravel().copy(), np.tile(np.arange(p), n), np.arange(0, n * p + 1, p)), shape=X.shape
    )


def _long_indices(X: np.ndarray) -> sp.csr_array:
    W = sp.csr_array(X)
    W.indices, W.indptr = W.indices.astype(np.int64), W.indptr.astype(np.int64)
    return W


def _frozen(X: np.ndarray) -> sp.csr_array:
    W = _twice(X)
    for array in (W.data, W.indices, W.indptr):
        array.flags.writeable = False
    return W


def _frame(library: str) -> Callable[[np.ndarray], Any]:
    def make(X: np.ndarray) -> Any:
        import importlib

        return importlib.import_module(library).DataFrame({f"f{j}": X[:, j] for j in range(X.shape[1])})

    return make


def _tensor(X: np.ndarray) -> Any:
    import torch

    return torch.tensor(X)


_ALL: dict[str, Callable[[np.ndarray], Any]] = {
    "array": np.array,
    "Fortran": np.asfortranarray,
    "read-only": _read_only,
    "strided": _strided,
    "list": np.ndarray.tolist,
    "csr": sp.csr_array,
    "csc": sp.csc_array,
    "coo": sp.coo_array,
    "bsr": sp.bsr_array,
    "lil": sp.lil_array,
    "dok": sp.dok_array,
    "dia": sp.dia_array,
    "csr_matrix": sp.csr_matrix,
    "twice": _twice,
    "explicit zeros": _explicit_zeros,
    "long indices": _long_indices,
    "frozen": _frozen,
    "pandas": _frame("pandas"),
    "polars": _frame("polars"),
    "torch": _tensor,
}

EXTRA = ("pandas", "polars", "torch")
CONTAINERS = {name: make for name, make in _ALL.items() if name not in EXTRA or find_spec(name)}


def mark(X: Any) -> str:
    """A checksum of all that the container holds, in its own order."""
    if sp.issparse(X):
        parts = [np.asarray(value) for _, value in sorted(vars(X).items()) if isinstance(value, np.ndarray)]
        parts = parts or [X.toarray()]
    else:
        parts = [np.asarray(X)]
    total = hashlib.sha256(repr(type(X)).encode())
    for part in parts:
        total.update(f"{part.dtype}{part.shape}".encode() + (repr(part.tolist()).encode()))
    return total.hexdigest()
