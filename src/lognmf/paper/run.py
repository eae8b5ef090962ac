"""Running cells: what is missing in a store is computed, and every piece is stored as soon as it is done."""

from __future__ import annotations

import itertools
import multiprocessing
import os
import signal
import threading
import time
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any

import numpy as np
from joblib import cpu_count

from lognmf import datasets, to_device
from lognmf.paper.methods import RIVALS
from lognmf.paper.spec import Cell, Data, Piece, pieces
from lognmf.paper.store import Outcome, StudyStore
from lognmf.paper.work import BATCHED, on_device, perform, size
from lognmf.parameters import check_choice, check_integer
from lognmf.progress import say, stage

Results = Generator[tuple[Piece, Outcome], None, Any]
Executor = Callable[[Iterable[Piece], int], Results]
"""``(pieces, jobs) -> (piece, outcome) as they come``. A piece is taken only when it can be started."""


def inline(pieces: Iterable[Piece], jobs: int) -> Results:
    """One after another, in this process, with all its threads."""
    for piece in pieces:
        yield piece, perform(piece)


def processes(pieces: Iterable[Piece], jobs: int) -> Results:
    """In processes of one thread each; if one dies, the pieces in flight fail and the others go on."""
    left: Iterator[Piece] | None = iter(pieces)
    while left is not None:  # a pool breaks with its first dead worker: the pieces left need another one
        left = yield from _one_pool(left, jobs)


def _one_pool(
    waiting: Iterator[Piece], jobs: int
) -> Generator[tuple[Piece, Outcome], None, Iterator[Piece] | None]:
    """Work with one pool of processes; returns the pieces left if it broke."""
    pool = ProcessPoolExecutor(jobs, multiprocessing.get_context("spawn"), _begin_worker)
    running: dict[Future[Outcome], Piece] = {}
    piece: Piece | None = None
    try:
        while True:
            while len(running) < jobs and (piece := next(waiting, None)) is not None:
                running[pool.submit(perform, piece)] = piece
                piece = None
            if not running:
                return None
            for future in wait(running, return_when=FIRST_COMPLETED).done:
                outcome = future.result()
                yield running.pop(future), outcome
    except BrokenProcessPool:
        message = "A process died while it computed this: it may have been out of memory."
        for lost in running.values():
            yield lost, Outcome((), 0.0, {}, message)
        return waiting if piece is None else itertools.chain([piece], waiting)
    finally:
        for worker in list((pool._processes or {}).values()):
            worker.terminate()
        pool.shutdown(wait=True, cancel_futures=True)


def _begin_worker() -> None:
    """One thread; Ctrl-C is left to the parent; the worker ends with its parent."""
    from threadpoolctl import threadpool_limits

    threadpool_limits(1)  # of BLAS, which is loaded by now
    os.environ["OMP_NUM_THREADS"] = "1"  # of our own threads, and of libraries loaded later
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    parent = multiprocessing.parent_process()

    def follow() -> None:
        if parent is not None:
            parent.join()
            os._exit(1)

    threading.Thread(target=follow, daemon=True).start()


def dask(pieces: Iterable[Piece], jobs: int) -> Results:
    """On the workers of the active Dask client, else of a local one with ``jobs`` processes."""
    try:
        from distributed import Client, as_completed, get_client
    except ImportError as error:
        msg = 'The executor "dask" needs Dask: run pip install "lognmf[dask]", or use "processes".'
        raise ValueError(msg) from error
    try:
        client, own = get_client(), False
    except ValueError:
        client, own = Client(n_workers=jobs, threads_per_worker=1, dashboard_address=None), True
    try:
        running = {client.submit(perform, piece, pure=False): piece for piece in pieces}
        for future in as_completed(running):
            fault = future.exception()  # `perform` catches its own errors: this one is a lost worker
            message = f"Dask could not compute this: {type(fault).__name__}: {fault}"
            yield running[future], future.result() if fault is None else Outcome((), 0.0, {}, message)
    finally:
        if own:
            client.close()


EXECUTORS: dict[str, Executor] = {"inline": inline, "processes": processes, "dask": dask}
"""Executors by name."""


@dataclass(frozen=True)
class Report:
    """Pieces that succeeded, failed and were not started before the limit; and the wall-clock seconds."""

    done: int
    failed: int
    left: int
    seconds: float


def missing(cells: Iterable[Cell], store: StudyStore) -> list[Piece]:
    """The pieces of cells that are not done, without repetitions."""
    done = store.done()
    return [
        piece
        for cell in dict.fromkeys(cells)
        for piece in pieces(cell, piece_size(cell))
        if piece.number not in done.get(cell.key, ())
    ]


def compute(
    cells: Iterable[Cell],
    store: StudyStore,
    *,
    executor: str = "processes",
    jobs: int | None = None,
    device: str | None = None,
    limit: float | None = None,
    name: str = "fits",
) -> Report:
    """Compute what is missing of cells in a store, as a stage of work with this name.

    A piece that fails is stored with its message, the next one runs, and a later call tries it again.
    With a ``device``, grids of models that batch well run there, in this process; then the others are
    computed by the ``executor``, in ``jobs`` processes. After ``limit`` seconds no further piece is started.
    """
    check_resources(executor, jobs, device)
    jobs = cpu_count() if jobs is None else jobs
    todo = missing(cells, store)
    start = time.perf_counter()

    def startable(pieces: Iterable[Piece]) -> Iterator[Piece]:
        for piece in pieces:
            if limit is not None and time.perf_counter() - start > limit:
                return
            if not store.is_done(piece):  # another run may have done it
                yield piece

    expected = {piece: expected_seconds(piece, device) for piece in todo}
    there = [piece for piece in todo if device is not None and on_device(piece.cell)]
    here = [piece for piece in todo if device is None or not on_device(piece.cell)]
    here.sort(key=lambda piece: -expected[piece])  # so that the processes end at about the same time
    on_gpu = ((piece, perform(piece, device)) for piece in startable(there))
    whole = sum(expected.values())
    done, failed = 0, 0
    with stage(name, len(todo), "pieces") if todo else nullcontext() as now:
        for piece, outcome in itertools.chain(on_gpu, EXECUTORS[executor](startable(here), jobs)):
            store.put(piece, outcome)
            where = f"{piece.cell.model} on {piece.cell.data.name}"
            if outcome.error is None:
                done += 1
            else:
                failed += 1
                say(f"failed: {where}: {outcome.error}")
            expected.pop(piece)
            if now is not None:
                now.move(done + failed, where, share=1 - sum(expected.values()) / whole)
    not_done = sum(not store.is_done(piece) for piece in expected)
    return Report(done, failed, not_done, time.perf_counter() - start)


def check_resources(executor: str, jobs: int | None, device: str | None) -> None:
    """Refuse an unknown executor, a bad number of processes or a device that is not available."""
    check_choice("executor", executor, EXECUTORS)
    if jobs is not None:
        check_integer("jobs", jobs, 1)
    if device is not None:
        to_device(np.zeros((1, 1)), device)


# Time estimates, for the order of work, the size of pieces and the time left ---------------------

_PIECE_SECONDS = 2000.0
"""Longest time of a piece on one core: what a kill can lose. Short enough to keep a GPU evenly busy."""

_RATE = 1.2e10
"""Multiplications per second of one core in the two products with X of an iteration (measured, float64)."""

_ENTRY = 2.5e-8
"""Seconds of one core for an entry of a factor in an iteration (measured)."""

_RESIDUAL = 4.5e-8
"""Seconds of one core for an entry of X in an iteration of RMNMF, which keeps a residual (measured)."""

_PIECE_START = 0.1
"""Seconds of one core that a piece takes besides its fits."""

_BATCH_GAIN = 2.0
"""How much faster a setting is in a batch."""

_GPU_GAIN = 1000.0
"""How much faster a batch is on a GPU."""


def _size(data: Data) -> tuple[int, int, int]:
    """Samples, features and classes: from the registry, so that no file is read, or of the first samples."""
    entry = datasets.REGISTRY.get(data.name)
    if entry is None or data.head is not None:
        return size(data)
    return entry.samples, entry.features, entry.classes


def cpu_seconds(cell: Cell) -> float:
    """Seconds of one core for one fit of a cell."""
    n, p, k = _size(cell.data)
    if cell.model in RIVALS:
        return _PIECE_START + 1e-3 * n
    products = 4.0 * n * p * k * (2 if cell.model == "CNMF" else 1)
    masked = _RESIDUAL * n * p if cell.option("mask") or cell.model == "RMNMF" else 0.0
    iterations = cell.option("max_iter", 500)
    return iterations * (products / _RATE + _ENTRY * (n + p) * k + masked)


def expected_seconds(piece: Piece, device: str | None) -> float:
    """Seconds for a piece: of one core, or of the GPU for what runs there."""
    gain = _BATCH_GAIN if piece.fits > 1 and piece.cell.model in BATCHED else 1.0
    if device is not None and device.startswith("cuda") and on_device(piece.cell):
        gain = _GPU_GAIN
    return _PIECE_START + piece.fits * cpu_seconds(piece.cell) / gain


def piece_size(cell: Cell) -> int:
    """Fits in a piece: one for models that gain nothing from a batch, else as many as the time allows."""
    if cell.work == "curve" or cell.model not in BATCHED:
        return 1
    return max(1, int(_PIECE_SECONDS * _BATCH_GAIN / cpu_seconds(cell)))
