"""Who computes in several threads: nobody, or we ourselves.

A product that takes a fraction of a millisecond gains little from a second thread, and where
other programs use the cores, waiting for that thread costs many times the product: with two
busy cores a comparison of all models on 1797 × 64 numbers took twelve times as long. So small
problems have one thread.

The threads of BLAS wait for each other by spinning. They take the cores from the work between the
products, and where other programs use the cores, each waits for one that does not run. So BLAS has
one thread, and large products are shared out among the same threads as everything else.
"""

from __future__ import annotations

import functools
import math
import os
import threading
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import numpy as np
import scipy.sparse as sp
from threadpoolctl import ThreadpoolController

BLOCK_NUMBERS = 1 << 17
"""Numbers of a block of rows, so that an update's temporaries fit into a core's cache."""

SHARED_PRODUCTS: ContextVar[bool] = ContextVar("shared_products", default=False)
"""True while BLAS is limited to one thread and products are split over our pool.

Worker threads see the default."""

SMALL_PRODUCT = 1 << 23
"""Floating-point operations up to which a product is left to one thread."""


@contextmanager
def threads_for(X: Any, columns: int) -> Iterator[None]:
    """Choose who uses threads inside, where the largest product is that of ``X`` with so many columns."""
    if not (isinstance(X, np.ndarray) or sp.issparse(X)):
        yield
        return
    token = SHARED_PRODUCTS.set(operations(X, columns) > SMALL_PRODUCT and own_threads() > 1)
    try:
        with limited():
            yield
    finally:
        SHARED_PRODUCTS.reset(token)


def operations(X: Any, columns: int) -> int:
    """Floating-point operations of a product of ``X`` with so many columns."""
    return 2 * (X.nnz if sp.issparse(X) else math.prod(X.shape)) * columns


_LOCK = threading.Lock()
_HOLDERS: set[object] = set()  # one for each limit of BLAS that is in force
_BEFORE: dict[Any, int] = {}  # its libraries that had several threads before, and how many


@contextmanager
def limited(openmp: int = 1) -> Iterator[None]:
    """Inside, BLAS has one thread and OpenMP at most ``openmp``.

    BLAS has one number for the whole process, and limits of several threads overlap: the first one notes the
    number, the last one to end gives it back. OpenMP has a number for each thread.
    """
    holder = object()
    fewest = min([openmp, *(library.num_threads for library in _libraries("openmp").lib_controllers)])
    with _libraries("openmp").limit(limits=fewest):
        try:
            with _LOCK:
                if not _HOLDERS:
                    numbers = {blas: blas.num_threads for blas in _libraries("blas").lib_controllers}
                    _BEFORE.update({blas: number for blas, number in numbers.items() if number > 1})
                _HOLDERS.add(holder)
                _set_blas(dict.fromkeys(_BEFORE, 1))
            yield
        finally:
            with _LOCK:
                _HOLDERS.discard(holder)
                if not _HOLDERS:
                    _set_blas(_BEFORE)
                    # Where a limit of somebody else is in force, ours to end next tries again.
                    for blas in [blas for blas, number in _BEFORE.items() if blas.num_threads == number]:
                        del _BEFORE[blas]


def _set_blas(numbers: Mapping[Any, int]) -> None:
    for blas, number in numbers.items():
        blas.set_num_threads(number)
        if hasattr(blas, "clear_controlling_thread"):
            # Newer versions of threadpoolctl let only the thread that has set a number set another one.
            blas.clear_controlling_thread()


@functools.cache
def _libraries(kind: str) -> ThreadpoolController:
    return ThreadpoolController().select(user_api=kind)


def by_rows(function: Callable[[slice], Any], F: Any) -> Any:
    """``function(rows)`` for blocks of rows of ``F``, put together again.

    Elementwise work on a large batch is bound by memory unless its temporaries stay in the
    cache, so NumPy arrays are taken in small blocks, several at a time in our own
    threads. Other libraries, and small arrays, are taken whole.
    """
    n, a_row = F.shape[0], math.prod(F.shape[1:])
    step = max(1, BLOCK_NUMBERS // max(1, a_row))
    if step >= n or not isinstance(F, np.ndarray):
        return function(slice(None))
    first = function(slice(0, step))
    out = np.empty((n, *first.shape[1:]), dtype=first.dtype)
    out[:step] = first

    def fill(start: int) -> None:
        rows = slice(start, min(start + step, n))
        out[rows] = function(rows)

    _in_threads(fill, range(step, n, step))
    return out


def by_settings(function: Callable[[slice], Any], F: Any) -> Any:
    """The same for blocks of settings of ``F`` (rows, B, k), where all rows are needed together."""
    B, a_setting = F.shape[1], F.shape[0] * F.shape[2]
    step = max(1, BLOCK_NUMBERS // max(1, a_setting))
    if step >= B or not isinstance(F, np.ndarray):
        return function(slice(None))
    out = np.empty_like(F)

    def fill(start: int) -> None:
        own = slice(start, min(start + step, B))
        out[:, own] = function(own)

    _in_threads(fill, range(0, B, step))
    return out


def shared_out(work: Callable[[slice], None], count: int, ends: np.ndarray | None = None) -> None:
    """``work(own)`` for about equal parts of ``count`` things, one for each of our own threads.

    Parts of equal work, where ``ends`` (count + 1,) says how much there is before each thing.
    """
    threads = own_threads()
    if ends is None:
        edges = np.linspace(0, count, threads + 1).astype(int).tolist()
    else:
        inner = np.searchsorted(ends, np.linspace(ends[0], ends[-1], threads + 1)[1:-1])
        edges = [0, *inner.tolist(), count]
    _in_threads(lambda part: work(slice(edges[part], edges[part + 1])), range(threads))


def in_blocks(work: Callable[[slice], None], count: int, step: int) -> None:
    """``work(own)`` for blocks of ``step`` of ``count`` things, several at a time in our own threads."""
    _in_threads(lambda start: work(slice(start, min(start + step, count))), range(0, count, step))


def in_parts(work: Callable[[slice], None], count: int, ends: np.ndarray | None = None) -> None:
    """`shared_out` where products are; elsewhere ``work`` for all of the ``count`` things at once."""
    if SHARED_PRODUCTS.get():
        shared_out(work, count, ends)
    else:
        work(slice(0, count))


def _in_threads(work: Callable[[int], None], parts: range) -> None:
    errors = np.geterr()  # of this thread: others would warn of what is ignored here

    def worker(part: int) -> None:
        with np.errstate(**errors):
            work(part)

    workers = _workers(own_threads())
    begun: list[Future[None]] = []
    try:
        for place, part in enumerate(parts):
            if (one := _begun(workers, worker, part)) is None:
                for left in parts[place:]:
                    work(left)
                break
            begun.append(one)
        for one in begun:
            one.result()
    except BaseException:
        for one in begun:
            one.cancel()
        # An interruption may come after a thread was started and before the executor knows of it. Nobody
        # else would wake that thread at the end of the process, which waits for it.
        workers.shutdown(wait=False)
        _workers.cache_clear()
        raise


def _begun(workers: ThreadPoolExecutor, work: Callable[[int], None], part: int) -> Future[None] | None:
    """A part that the workers will do; None if they take no more, when they or the interpreter shut down."""
    try:
        return workers.submit(work, part)
    except RuntimeError as error:
        if "shutdown" not in str(error):
            raise
        return None


@functools.cache
def _workers(count: int) -> ThreadPoolExecutor:
    return ThreadPoolExecutor(max_workers=count, thread_name_prefix="lognmf")


def own_threads() -> int:
    """Threads we use: one for each core, or as few as OMP_NUM_THREADS, which BLAS heeds too, allows."""
    allowed = os.environ.get("OMP_NUM_THREADS", "")
    return min(cores(), max(1, int(allowed))) if allowed.isdecimal() else cores()


def cores() -> int:
    """Cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _after_fork() -> None:
    """A forked process has none of its parent's threads: it needs its own workers and waits for nobody."""
    global _LOCK
    _workers.cache_clear()
    _LOCK = threading.Lock()
    _HOLDERS.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
