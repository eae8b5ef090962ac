"""Functions compiled by numba. Importing this takes a while: do so where they are first needed."""

from __future__ import annotations

import functools
import zlib
from collections.abc import Callable
from typing import Any

import numba
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
