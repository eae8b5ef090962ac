"""Checks of arguments: what was given, what is allowed."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from numbers import Integral, Real
from typing import Any

import numpy as np
import scipy.sparse as sp


def check_integer(name: str, value: Any, minimum: int) -> None:
    """Refuse what is not an integer of at least ``minimum``."""
    if not isinstance(value, Integral) or isinstance(value, bool):
        msg = f"{name} must be an integer >= {minimum}; got {value!r} of type {type(value).__name__}."
        raise TypeError(msg)
    if value < minimum:
        msg = f"{name} must be an integer >= {minimum}; got {value}."
        raise ValueError(msg)


def check_seed(name: str, value: Any) -> None:
    """Refuse what is not an integer that NumPy takes as a seed."""
    check_integer(name, value, 0)
    if value >= 2**32:
        msg = f"{name} must be an integer from 0 to 2**32 - 1; got {value}."
        raise ValueError(msg)


def check_random_state(value: Any) -> None:
    """Refuse what is neither a seed nor a source of random numbers."""
    source = value is None or value is np.random or isinstance(value, np.random.RandomState)
    if not source and not (isinstance(value, Integral) and 0 <= int(value) < 2**32):
        msg = f"random_state must be a seed from 0 to 2**32 - 1, a RandomState or None; got {value!r}."
        raise ValueError(msg)


def check_nonnegative(name: str, value: Any) -> None:
    """Refuse what is not a finite number >= 0."""
    if not isinstance(value, Real) or isinstance(value, bool):
        msg = f"{name} must be a finite number >= 0; got {value!r} of type {type(value).__name__}."
        raise TypeError(msg)
    try:
        number = float(value)
    except OverflowError:  # an integer beyond any float
        number = math.inf
    if not (math.isfinite(number) and number >= 0):
        msg = f"{name} must be a finite number >= 0; got {value}."
        raise ValueError(msg)


def check_at_least(name: str, value: Any, minimum: float) -> None:
    """Refuse what is not a finite number >= ``minimum``."""
    check_nonnegative(name, value)
    if value < minimum:
        msg = f"{name} must be a finite number >= {minimum}; got {value}."
        raise ValueError(msg)


def check_positive(name: str, value: Any) -> None:
    """Refuse what is not a finite number > 0."""
    check_nonnegative(name, value)
    if value == 0:
        msg = f"{name} must be a finite number > 0; got {value}."
        raise ValueError(msg)


def check_flag(name: str, value: Any) -> None:
    """Refuse what is neither True nor False."""
    if not isinstance(value, bool | np.bool_):
        msg = f"{name} must be True or False; got {value!r} of type {type(value).__name__}."
        raise TypeError(msg)


def check_choice(name: str, value: Any, choices: Iterable[str]) -> None:
    """Refuse what is not one of the words ``choices``."""
    choices = list(choices)
    if not (isinstance(value, str) and value in choices):
        msg = f"{name} must be one of {choices}; got {value!r}."
        raise ValueError(msg)


def unmasked(X: Any) -> Any:
    """``X`` itself; what a ``numpy.ma`` array masks becomes NaN, so that it counts as missing."""
    if not isinstance(X, np.ma.MaskedArray):
        return X
    if not np.ma.is_masked(X):
        return X.data
    return np.ma.filled(X.astype(np.float64) if X.dtype.kind in "bui" else X, np.nan)


def check_layout(name: str, X: Any) -> None:
    """Refuse a torch tensor that is not dense."""
    if str(layout := getattr(X, "layout", "torch.strided")) != "torch.strided":
        msg = f"{name} must be a dense tensor; got layout {layout}. Use {name}.to_dense()."
        raise TypeError(msg)


def check_sparse(name: str, M: Any) -> None:
    """Refuse a sparse matrix whose parts contradict each other: SciPy would leave its arrays' memory."""
    if not sp.issparse(M):
        return
    if M.dtype.kind not in "buifcO":
        msg = f"{name} must hold numbers; got a sparse matrix of {M.dtype}."
        raise ValueError(msg)
    fault_of = _SPARSE_FAULTS.get(M.format)
    fault = _compressed_fault(M.tocsr()) if fault_of is None else fault_of(M)
    if fault:
        msg = f"{name} is a broken sparse matrix: {fault}. Build it again from its entries."
        raise ValueError(msg)


def _compressed_fault(M: Any) -> str | None:
    """What is wrong with a csr, csc or bsr matrix; SciPy's own check stops if the last pointer is 0."""
    height, width = M.blocksize if M.format == "bsr" else (1, 1)
    if M.ndim != 2 or M.shape[0] % height or M.shape[1] % width:
        return f"its shape {M.shape} is no whole number of blocks in two dimensions"
    rows, columns = M.shape[0] // height, M.shape[1] // width
    if M.format == "csc":
        rows, columns = columns, rows
    pointers, indices = M.indptr, M.indices
    if not (_whole_numbers(pointers) and _whole_numbers(indices)):
        return "its indices are no vectors of whole numbers"
    ordered = len(pointers) == rows + 1 and pointers[0] == 0 and (pointers[1:] >= pointers[:-1]).all()
    if not ordered or pointers[-1] > min(len(indices), len(M.data)):
        return f"its pointers do not share out its {len(M.data)} values among {rows} rows or columns"
    return _outside(indices[: pointers[-1]], columns, M.shape)


def _coordinate_fault(M: Any) -> str | None:
    """What is wrong with a coo matrix."""
    if M.ndim != 2 or any(not _whole_numbers(c) or len(c) != len(M.data) for c in M.coords):
        return "it does not have a row and a column for every value"
    faults = (_outside(c, size, M.shape) for c, size in zip(M.coords, M.shape, strict=True))
    return next(filter(None, faults), None)


def _diagonal_fault(M: Any) -> str | None:
    """What is wrong with a dia matrix."""
    offsets = M.offsets
    sound = _whole_numbers(offsets) and M.data.ndim == 2 and len(offsets) == len(M.data)
    return (
        None if sound and len(np.unique(offsets)) == len(offsets) else "its offsets do not fit its diagonals"
    )


def _whole_numbers(indices: np.ndarray) -> bool:
    return indices.ndim == 1 and indices.dtype.kind in "iu"


def _outside(indices: np.ndarray, size: int, shape: tuple[int, ...]) -> str | None:
    inside = len(indices) == 0 or (indices.min() >= 0 and indices.max() < size)
    return None if inside else f"an index lies outside its {'×'.join(map(str, shape))} entries"


_SPARSE_FAULTS: dict[str, Callable[[Any], str | None]] = {
    **dict.fromkeys(("csr", "csc", "bsr"), _compressed_fault),
    "coo": _coordinate_fault,
    "dia": _diagonal_fault,
}
