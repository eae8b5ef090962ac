"""Running cells: what is missing in a store is computed, and every piece is stored as soon as it is done."""

from __future__ import annotations

import itertools
import multiprocessing
import os
import queue
import signal
import threading
import time
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import numpy as np

from lognmf.core.parallel import cores
from lognmf.grid.plan import place
from lognmf.paper.seconds import expected_seconds, piece_size
from lognmf.paper.spec import Cell, Piece, pieces
from lognmf.paper.store import Outcome, StudyStore
from lognmf.paper.work import on_device, perform
from lognmf.parameters import check_choice, check_integer

Result = tuple[Piece, Outcome]
Results = Generator[Result | None, None, Any]
Executor = Callable[[Iterable[Piece], int], Results]
"""``(pieces, jobs) -> (piece, outcome) as they come``. A piece is taken only when it can be started.

None means that there was no result for a while: a moment at which the caller may stop. joblib's
generators lack it: next to a GPU, Ctrl-C would wait for the running pieces."""

_HEARTBEAT = 0.5
"""Seconds without a result after which an executor yields None."""


def inline(pieces: Iterable[Piece], jobs: int) -> Results:
    """One after another, in this process, with all its threads."""
    for piece in pieces:
        yield piece, perform(piece)


def processes(pieces: Iterable[Piece], jobs: int) -> Results:
    """In processes of one thread each; if one dies, the pieces in flight fail and the others go on."""
    left: Iterator[Piece] | None = iter(pieces)
    while left is not None:  # a pool breaks with its first dead worker: the pieces left need another one
        left = yield from _one_pool(left, jobs)


def _one_pool(waiting: Iterator[Piece], jobs: int) -> Generator[Result | None, None, Iterator[Piece] | None]:
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
            ready = wait(running, _HEARTBEAT, FIRST_COMPLETED).done
            for future in ready:
                outcome = future.result()
                yield running.pop(future), outcome
            if not ready:
                yield None
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


def merged(here: Results, there: Results) -> Results:
    """The results of two executors as they come: ``here`` runs in this thread, ``there`` in its own."""
    arrived: queue.Queue[Result | Exception | None] = queue.Queue()
    stop = threading.Event()

    def run_there() -> None:
        try:
            for result in there:
                arrived.put(result)
                if stop.is_set():
                    break
        except Exception as error:  # raised again in the caller's thread
            arrived.put(error)
        finally:
            there.close()  # stops the pieces that are running there

    def results(patience: float) -> Iterator[Result]:
        """What has arrived, until nothing more does for so many seconds."""
        with suppress(queue.Empty):
            while True:
                item = arrived.get(timeout=patience)
                if isinstance(item, Exception):
                    raise item
                if item is not None:
                    yield item

    thread = threading.Thread(target=run_there, daemon=True)
    thread.start()
    try:
        for result in here:
            yield result
            yield from results(0)
        while thread.is_alive() or not arrived.empty():
            yield from results(_HEARTBEAT)
    finally:
        stop.set()
        thread.join()


@dataclass(frozen=True)
class Progress:
    """How far a run is: the piece just done, how many are done of how many, the seconds so far and left."""

    piece: Piece
    outcome: Outcome
    done: int
    total: int
    seconds: float
    left: float


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


def outlook(todo: Sequence[Piece], device: str | None, jobs: int) -> float:
    """Seconds that the pieces will take; those of the GPU and those of the processes run at the same time."""
    gpu = device if device and device.startswith("cuda") else None
    there, here = _split(todo, gpu)
    seconds = [expected_seconds(piece, None) for piece in here]
    cpu = max(max(seconds, default=0.0), sum(seconds) / jobs)
    return max(cpu, sum(expected_seconds(piece, gpu) for piece in there))


def compute(
    cells: Iterable[Cell],
    store: StudyStore,
    *,
    executor: str = "processes",
    jobs: int | None = None,
    device: str | None = None,
    limit: float | None = None,
    on_piece: Callable[[Progress], Any] | None = None,
) -> Report:
    """Compute what is missing of cells in a store.

    A piece that fails is stored with its message, the next one runs, and a later call tries it again.
    With a ``device``, grids of models that batch well run there, in this process, and the others at the
    same time by the ``executor``, in ``jobs`` processes. After ``limit`` seconds no further piece is started.
    """
    check_resources(executor, jobs, device)
    jobs = default_jobs(device) if jobs is None else jobs
    todo = missing(cells, store)
    start = time.perf_counter()

    def startable(pieces: Iterable[Piece]) -> Iterator[Piece]:
        for piece in pieces:
            if limit is not None and time.perf_counter() - start > limit:
                return
            if not store.is_done(piece):  # another run may have done it
                yield piece

    there, here = _split(todo, device)
    # The longest first, so that the processes end at about the same time.
    here.sort(key=lambda piece: -expected_seconds(piece, None))
    results = EXECUTORS[executor](startable(here), jobs)
    if there:
        results = merged(((piece, perform(piece, device)) for piece in startable(there)), results)
    expected = {piece: expected_seconds(piece, device) for piece in todo}
    whole = sum(expected.values())
    counts = {True: 0, False: 0}
    for piece, outcome in filter(None, results):
        store.put(piece, outcome)
        counts[outcome.error is None] += 1
        expected.pop(piece)
        if on_piece is not None:
            seconds, rest = time.perf_counter() - start, sum(expected.values())
            left = seconds * rest / max(whole - rest, 1e-9)
            on_piece(Progress(piece, outcome, sum(counts.values()), len(todo), seconds, left))
    not_done = sum(not store.is_done(piece) for piece in expected)
    return Report(counts[True], counts[False], not_done, time.perf_counter() - start)


def check_resources(executor: str, jobs: int | None, device: str | None) -> None:
    """Refuse an unknown executor, a bad number of processes or a device that is not available."""
    check_choice("executor", executor, EXECUTORS)
    if jobs is not None:
        check_integer("jobs", jobs, 1)
    if device is not None:
        place(np.zeros((1, 1)), device, None)


def _split(todo: Iterable[Piece], device: str | None) -> tuple[list[Piece], list[Piece]]:
    """The pieces that run on the device, and the others."""
    there: list[Piece] = []
    here: list[Piece] = []
    for piece in todo:
        (there if device is not None and on_device(piece.cell) else here).append(piece)
    return there, here


def default_jobs(device: str | None) -> int:
    """One process per core; next to a GPU two fewer, as it needs one core to be fed."""
    return cores() if device is None else max(1, cores() - 2)
