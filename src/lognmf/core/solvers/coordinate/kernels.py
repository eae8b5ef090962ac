"""Which form of coordinate descent's work is used: compiled loops where numba is, else NumPy."""

from __future__ import annotations

import functools
import warnings
from types import ModuleType


@functools.cache
def kernels() -> ModuleType:
    """`compiled`, or its twin `sweeps` with a word on what is missing."""
    try:
        from lognmf.core.solvers.coordinate import compiled
    except ImportError:
        from lognmf.core.solvers.coordinate import sweeps

        msg = (
            'solver="cd" runs many times slower without numba. Install it by pip install "lognmf[cd]"; '
            "the results are the same."
        )
        warnings.warn(msg, stacklevel=2)
        return sweeps
    return compiled
