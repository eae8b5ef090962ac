"""Functions compiled by numba. Importing this takes a while: do so where they are first needed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numba

OPTIONS: dict[str, Any] = {"nogil": True, "error_model": "numpy"}


def compiled(function: Callable[..., Any], **options: Any) -> Callable[..., Any]:
    """``function``, compiled at its first call and cached on disk if a folder is writable."""
    try:
        return numba.njit(cache=True, **OPTIONS, **options)(function)
    except RuntimeError:
        return numba.njit(**OPTIONS, **options)(function)
