"""Who computes in several threads: nobody, BLAS, or we ourselves.

A product that takes a fraction of a millisecond gains little from a second thread, and where
other programs use the cores, waiting for that thread costs many times the product: with two
busy cores a comparison of all models on 1797 × 64 numbers took twelve times as long. So small
problems have one thread.

The threads of BLAS wait for their next product by spinning, and so take the cores from the
elementwise work between the products of a large batch. There BLAS has one thread, and products
are shared out among the same threads as everything else.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import scipy.sparse as sp
from threadpoolctl import ThreadpoolController

from lognmf.core.arrays import SHARED_PRODUCTS, Matrix, is_torch, own_threads

SMALL_PRODUCT = 1 << 23
"""Floating-point operations up to which a product is left to one thread."""

WIDE_PRODUCT = 1 << 28
"""Those from which it is shared out among our own threads; in between BLAS uses its threads."""


@contextmanager
def threads_for(X: Matrix, columns: int, *, share: bool = True) -> Iterator[None]:
    """Choose who uses threads inside, where the largest product is that of ``X`` with so many columns.

    Without ``share`` wide products are left to BLAS.
    """
    operations = 2 * (X.nnz if sp.issparse(X) else math.prod(X.shape)) * columns
    shared = share and operations >= WIDE_PRODUCT and isinstance(X, np.ndarray) and own_threads() > 1
    if is_torch(X) or (operations > SMALL_PRODUCT and not shared):
        yield
        return
    token = SHARED_PRODUCTS.set(shared)
    try:
        with _controller().limit(limits=1):
            yield
    finally:
        SHARED_PRODUCTS.reset(token)


@functools.cache
def _controller() -> ThreadpoolController:
    return ThreadpoolController()
