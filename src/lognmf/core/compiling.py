"""Functions compiled by numba. Importing this takes a while: do so where they are first needed."""

# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations

import functools
import zlib
from collections.abc import Callable
from typing import Any

import numba
import numpy as np
from numba.extending import register_jitable

_OPTIONS: dict[str, Any] = {"nogil": True, "error_model": "numpy"}
_FAST: dict[str, Any] = {**_OPTIONS, "fastmath": {"contract", "reassoc", "nsz"}}


def compiled(function: Callable[..., Any]) -> Callable[..., Any]:
    """``function``, compiled at its first call and cached on disk if a folder is writable."""
    return _cached(function, _OPTIONS)


def compiled_fast(function: Callable[..., Any]) -> Callable[..., Any]:
    """The same, where sums may be taken in any order."""
    return _cached(function, _FAST)


def _cached(function: Callable[..., Any], options: dict[str, Any]) -> Callable[..., Any]:
    try:
        return numba.njit(cache=True, **options)(function)
    except RuntimeError:
        return numba.njit(**options)(function)


def inlined(*functions: Callable[..., float]) -> int:
    """Let numba inline plain functions into a closure; a number that changes with their formulas.

    The closure must use the number: numba's cache on disk knows names only and misses a changed formula.
    """
    for function in functions:
        _register(function)
    return zlib.crc32(repr([_formula(function) for function in functions]).encode())


# A dispatcher in a closure would defeat the cache on disk.
_register = functools.cache(register_jitable(**_FAST))


def _formula(function: Callable[..., float]) -> tuple[Any, ...]:
    """What a function computes."""
    code, cells = function.__code__, function.__closure__ or ()
    constants = [function.__globals__.get(name) for name in code.co_names]
    return code.co_code, code.co_consts, code.co_names, constants, [cell.cell_contents for cell in cells]


@compiled
def add_product(data, indices, indptr, F, out, low, high):
    """``out += M @ F`` in the rows from low to high, entry by entry in the order in which M stores them.

    An index without a sign cannot count from the end, which saves a test for each.
    """
    columns = F.shape[1]
    if columns == 1:
        for i in range(low, high):
            total = out[i, 0]
            for e in range(indptr[i], indptr[i + 1]):
                total += data[e] * F[np.uint64(indices[e]), 0]
            out[i, 0] = total
        return
    for i in range(low, high):
        e, end, own = np.int64(indptr[i]), np.int64(indptr[i + 1]), out[i]
        while e + 4 <= end:  # four at a time: the row of ``out`` is read and written once for them
            x0, x1, x2, x3 = data[e], data[e + 1], data[e + 2], data[e + 3]
            f0, f1 = F[np.uint64(indices[e])], F[np.uint64(indices[e + 1])]
            f2, f3 = F[np.uint64(indices[e + 2])], F[np.uint64(indices[e + 3])]
            for c in range(columns):
                own[c] = (((own[c] + x0 * f0[c]) + x1 * f1[c]) + x2 * f2[c]) + x3 * f3[c]
            e += 4
        while e < end:
            x, f = data[e], F[np.uint64(indices[e])]
            for c in range(columns):
                own[c] += x * f[c]
            e += 1
