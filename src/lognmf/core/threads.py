"""Threads of BLAS and OpenMP: one for small problems.

A product that takes a fraction of a millisecond gains little from a second thread, and where
other programs use the cores, waiting for that thread costs many times the product: with two
busy cores a comparison of all models on 1797 × 64 numbers took twelve times as long.
"""

from __future__ import annotations

import functools
from contextlib import AbstractContextManager, nullcontext

from threadpoolctl import ThreadpoolController

SMALL_PRODUCT = 1 << 23
"""Floating-point operations up to which a product is left to one thread."""


def threads_for(product: int) -> AbstractContextManager[None]:
    """Use one thread inside if the largest ``product`` there has few operations."""
    return nullcontext() if product > SMALL_PRODUCT else _controller().limit(limits=1)


@functools.cache
def _controller() -> ThreadpoolController:
    return ThreadpoolController()
