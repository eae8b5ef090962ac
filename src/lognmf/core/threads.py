"""Threads: large products and loops are split over a few, and BLAS has one meanwhile.

The threads of BLAS wait for each other by spinning. Beside one other busy program, a robust fit of
20,000 × 200 samples took seven times as long with two of them as with one (`benchmarks/threads.py`). Ours
sleep, and the thread that asks for work does whatever they have not begun: a thread that wakes up late costs
nothing. Split this way, a product of 1 ms takes as long as with BLAS's own threads. Small ones are not split.
"""

from __future__ import annotations

import contextvars
import functools
import itertools
import math
import os
import threading
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import numpy as np
import scipy.sparse as sp
from threadpoolctl import ThreadpoolController

THREADS: ContextVar[int] = ContextVar("threads", default=1)
"""Threads that work may be split over: 1 outside `threads_for`, and in work that is split already."""

SMALL = 1 << 23
"""Floating-point operations up to which work is not split: a third of a millisecond of a product."""

PARTS = 2
"""Parts of work for each thread: one that is slowed down by other programs then does fewer of them."""

BLOCK_NUMBERS = 1 << 17
"""Numbers of a block of rows, so that the temporary arrays of an update fit into a core's cache."""

ELEMENTWISE = 16
"""Operations that count for one number of an array that is read, changed and written."""


@contextmanager
def threads_for(X: Any, columns: int) -> Iterator[None]:
    """Inside, BLAS has one thread, and work is split if a product of ``X`` with so many columns is large."""
    if not (isinstance(X, np.ndarray) or sp.issparse(X)):
        yield
        return
    with one_blas_thread():
        token = THREADS.set(allowed() if operations(X, columns) > SMALL else 1)
        try:
            yield
        finally:
            THREADS.reset(token)


def operations(X: Any, columns: int) -> int:
    """Floating-point operations of a product of ``X`` with so many columns."""
    return 2 * (X.nnz if sp.issparse(X) else math.prod(X.shape)) * columns


def allowed() -> int:
    """Threads we may use: as many as BLAS, on at most the cores of this process.

    So OMP_NUM_THREADS, threadpoolctl and joblib limit both, and NUMBA_NUM_THREADS limits our compiled loops.
    """
    with _LOCK:
        numbers = [_BEFORE.get(blas, blas.num_threads) or 1 for blas in _blas().lib_controllers]
    given = (os.environ.get(name, "") for name in ("OMP_NUM_THREADS", "NUMBA_NUM_THREADS"))
    return max(1, min([cores(), *numbers, *(int(number) for number in given if number.isdecimal())]))


def cores() -> int:
    """Cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


# Limits of BLAS ------------------------------------------------------------------------

_LOCK = threading.Lock()
_HOLDERS: set[object] = set()  # one for each limit that is in force
_BEFORE: dict[Any, int] = {}  # libraries that had several threads before, and how many


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Inside, BLAS has one thread.

    It has one number for the whole process, and limits of several threads overlap: the first one notes the
    number, and the last one to end restores it.
    """
    holder = object()
    try:
        with _LOCK:
            if not _HOLDERS:
                numbers = {blas: blas.num_threads for blas in _blas().lib_controllers}
                _BEFORE.update({blas: number for blas, number in numbers.items() if number > 1})
            _HOLDERS.add(holder)
            _set_blas(dict.fromkeys(_BEFORE, 1))
        yield
    finally:
        with _LOCK:
            _HOLDERS.discard(holder)
            if not _HOLDERS:
                _set_blas(_BEFORE)
                # Another library may have set a limit meanwhile: our next one to end tries again.
                for blas in [blas for blas, number in _BEFORE.items() if blas.num_threads == number]:
                    del _BEFORE[blas]


def _set_blas(numbers: Mapping[Any, int]) -> None:
    for blas, number in numbers.items():
        blas.set_num_threads(number)
        if hasattr(blas, "clear_controlling_thread"):
            # Newer versions of threadpoolctl let only the thread that has set a number set another one.
            blas.clear_controlling_thread()


@functools.cache
def _blas() -> ThreadpoolController:
    return ThreadpoolController().select(user_api="blas")


# Work that is split --------------------------------------------------------------------


def is_split(cost: float) -> bool:
    """Whether work of so many operations is split here."""
    return THREADS.get() > 1 and cost > SMALL


def split(
    work: Callable[[slice], Any], count: int, cost: float, *, least: int = 1, ends: np.ndarray | None = None
) -> None:
    """``work(part)`` for parts of ``count`` things, in several threads if the ``cost`` exceeds `SMALL`.

    ``cost`` counts operations, ``least`` is the smallest part that pays. The parts are equal, or of equal
    work where ``ends`` (count + 1,) says how much work there is before each thing.
    """
    several = THREADS.get() * min(PARTS, count // (least * THREADS.get()))
    if not is_split(cost) or not several:
        work(slice(0, count))
        return
    if ends is None:
        edges = np.linspace(0, count, several + 1).astype(int).tolist()
    else:
        inner = np.searchsorted(ends, np.linspace(ends[0], ends[-1], several + 1)[1:-1])
        edges = [0, *inner.tolist(), count]
    _run([functools.partial(work, slice(*part)) for part in itertools.pairwise(edges)])


def in_blocks(work: Callable[[slice], Any], count: int, step: int) -> None:
    """``work(block)`` for blocks of ``step`` of ``count`` things, several at a time inside `threads_for`."""
    _run([functools.partial(work, slice(i, min(i + step, count))) for i in range(0, count, step)])


def by_rows(function: Callable[[slice], Any], F: Any) -> Any:
    """``function(rows)`` for blocks of rows of ``F``, put together again.

    Elementwise work on a large batch is bound by memory unless its temporary arrays stay in the cache, so
    NumPy arrays are taken in small blocks. Other libraries, and small arrays, are taken whole.
    """
    n, a_row = F.shape[0], math.prod(F.shape[1:])
    step = max(1, BLOCK_NUMBERS // max(1, a_row))
    if step >= n or not isinstance(F, np.ndarray):
        return function(slice(None))
    first = function(slice(0, step))
    out = np.empty((n, *first.shape[1:]), dtype=first.dtype)
    out[:step] = first

    def fill(block: slice) -> None:
        rows = slice(block.start + step, block.stop + step)
        out[rows] = function(rows)

    in_blocks(fill, n - step, step)
    return out


def by_settings(function: Callable[[slice], Any], F: Any) -> Any:
    """The same for blocks of settings of ``F`` (rows, B, k), where all rows are needed together."""
    B, a_setting = F.shape[1], F.shape[0] * F.shape[2]
    step = max(1, BLOCK_NUMBERS // max(1, a_setting))
    if step >= B or not isinstance(F, np.ndarray):
        return function(slice(None))
    out = np.empty_like(F)

    def fill(settings: slice) -> None:
        out[:, settings] = function(settings)

    in_blocks(fill, B, step)
    return out


def _run(parts: list[Callable[[], Any]]) -> None:
    """Call all ``parts``, in this thread and in those that wake up in time to help."""
    todo = deque(parts)

    def drain() -> None:
        while True:
            try:
                part = todo.popleft()
            except IndexError:
                return
            part()

    def help_out() -> None:
        THREADS.set(1)  # what is split is not split again
        drain()

    helpers: list[Future[None]] = []
    try:
        for _ in range(min(THREADS.get(), len(parts)) - 1):
            # The context has NumPy's error state: other threads would warn of what is ignored here.
            if (helper := _begun(contextvars.copy_context().run, help_out)) is None:
                break
            helpers.append(helper)
        drain()
        for helper in helpers:
            if not helper.cancel():
                helper.result()
    except BaseException:
        todo.clear()
        # An interruption may come after a thread was started and before the executor knows of it. Nobody
        # else would wake that thread at the end of the process, which waits for it.
        _pool().shutdown(wait=False, cancel_futures=True)
        _pool.cache_clear()
        raise


def _begun(*work: Any) -> Future[None] | None:
    """Work that a thread of the pool will do; None if it takes no more, when Python shuts down."""
    try:
        return _pool().submit(*work)
    except RuntimeError as error:
        if "shutdown" not in str(error):
            raise
        return None


@functools.cache
def _pool() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(max_workers=cores(), thread_name_prefix="lognmf")


def _after_fork() -> None:
    """A forked process has none of its parent's threads: it needs a new pool and waits for nobody."""
    global _LOCK
    _pool.cache_clear()
    _LOCK = threading.Lock()
    _HOLDERS.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
