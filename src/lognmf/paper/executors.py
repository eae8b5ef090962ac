"""Where pieces are computed: here, in processes beside each other, or by Dask. All yield as results come."""

from __future__ import annotations

import multiprocessing
import os
import queue
import signal
import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from typing import Any

from lognmf.paper.store import Outcome
from lognmf.paper.work import Task, perform

__all__ = ["EXECUTORS", "Done", "Executor", "beside"]

Done = tuple[Task, Outcome]
Executor = Callable[[Iterable[Task], int], Iterator[Done | None]]
"""``(tasks, jobs) -> (task, outcome) as they come``. Tasks are taken only when there is room for them.

None means that nothing has come for a while: a moment at which the caller may stop."""

_HEARTBEAT = 0.5
"""Seconds without results after which an executor says so."""


def inline(tasks: Iterable[Task], jobs: int) -> Iterator[Done | None]:
    """One after another, in this process, with all its threads."""
    for task in tasks:
        yield task, perform(task)


def processes(tasks: Iterable[Task], jobs: int) -> Iterator[Done | None]:
    """In processes of one thread each. One that dies makes a failure of its task, and the others go on."""
    waiting, task = iter(tasks), None
    while True:
        task = next(waiting, None) if task is None else task
        if task is None:
            return
        # A pool breaks with its first dead worker; what was not yet begun goes to the next pool.
        task = yield from _one_pool(task, waiting, jobs)


def _one_pool(task: Task | None, waiting: Iterator[Task], jobs: int) -> Any:
    pool = ProcessPoolExecutor(jobs, multiprocessing.get_context("spawn"), _begin_worker)
    running: dict[Future[Outcome], Task] = {}
    try:
        while True:
            while len(running) < jobs and task is not None:
                running[pool.submit(perform, task)] = task
                task = next(waiting, None)
            if not running:
                return None
            ready = wait(running, _HEARTBEAT, FIRST_COMPLETED).done
            for future in ready:
                outcome = future.result()
                yield running.pop(future), outcome
            if not ready:
                yield None
    except BrokenProcessPool:
        told = "A process died while it computed this: it may have been out of memory."
        for lost in running.values():
            yield lost, Outcome((), 0.0, {}, told)
        return task
    finally:
        for worker in list((pool._processes or {}).values()):
            worker.terminate()
        pool.shutdown(wait=True, cancel_futures=True)


def _begin_worker() -> None:
    """One thread; Ctrl-C is for the parent; no worker outlives it."""
    from threadpoolctl import threadpool_limits

    threadpool_limits(1)  # of BLAS, which has begun by now
    os.environ["OMP_NUM_THREADS"] = "1"  # of our own, and of what is loaded later
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    parent = multiprocessing.parent_process()

    def follow() -> None:
        if parent is not None:
            parent.join()
            os._exit(1)

    threading.Thread(target=follow, daemon=True).start()


def dask(tasks: Iterable[Task], jobs: int) -> Iterator[Done | None]:
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
        running = {client.submit(perform, task, pure=False): task for task in tasks}
        for future in as_completed(running):
            lost = future.exception()  # what `perform` meets is in its outcome: this is a worker's death
            told = f"Dask could not compute this: {type(lost).__name__}: {lost}"
            yield running[future], future.result() if lost is None else Outcome((), 0.0, {}, told)
    finally:
        if own:
            client.close()


EXECUTORS: dict[str, Executor] = {"inline": inline, "processes": processes, "dask": dask}
"""Executors by name."""


def beside(here: Iterator[Done | None], there: Iterator[Done | None]) -> Iterator[Done | None]:
    """Two streams at once: ``here`` in this thread, ``there`` drawn from a thread of its own."""
    came: queue.Queue[Done | Exception | None] = queue.Queue()
    stop = threading.Event()

    def draw() -> None:
        try:
            for done in there:
                if done is not None:
                    came.put(done)
                if stop.is_set():
                    break
            came.put(None)
        except Exception as error:  # told to the thread that can act on it
            came.put(error)
        finally:
            there.close()  # type: ignore[attr-defined]  # what was begun there ends here

    thread = threading.Thread(target=draw, daemon=True)
    thread.start()

    def taken(*, patient: bool) -> Iterator[Done]:
        while True:
            try:
                item = came.get(block=patient)
            except queue.Empty:
                return
            if item is None:
                came.put(None)
                return
            if isinstance(item, Exception):
                raise item
            yield item

    try:
        for done in here:
            yield done
            yield from taken(patient=False)
        yield from taken(patient=True)
    finally:
        stop.set()
        thread.join()
