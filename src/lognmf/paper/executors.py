"""Where tasks are computed: here, in several processes, or by Dask. All yield results as they come."""

from __future__ import annotations

import itertools
import multiprocessing
import os
import queue
import signal
import threading
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import suppress
from typing import Any

from lognmf.paper.store import Outcome
from lognmf.paper.work import Task, perform

__all__ = ["EXECUTORS", "Executor", "Result", "merged"]

Result = tuple[Task, Outcome]
Results = Generator[Result | None, None, Any]
Executor = Callable[[Iterable[Task], int], Results]
"""``(tasks, jobs) -> (task, outcome) as they come``. A task is taken only when it can be started.

None means that there was no result for a while: a moment at which the caller may stop. joblib's
generators lack it: next to a GPU, Ctrl-C would wait for the running tasks."""

_HEARTBEAT = 0.5
"""Seconds without a result after which an executor yields None."""


def inline(tasks: Iterable[Task], jobs: int) -> Results:
    """One after another, in this process, with all its threads."""
    for task in tasks:
        yield task, perform(task)


def processes(tasks: Iterable[Task], jobs: int) -> Results:
    """In processes of one thread each; if one dies, the tasks in flight fail and the others go on."""
    left: Iterator[Task] | None = iter(tasks)
    while left is not None:  # a pool breaks with its first dead worker: the tasks left need another one
        left = yield from _one_pool(left, jobs)


def _one_pool(waiting: Iterator[Task], jobs: int) -> Generator[Result | None, None, Iterator[Task] | None]:
    """Work with one pool of processes; returns the tasks left if it broke."""
    pool = ProcessPoolExecutor(jobs, multiprocessing.get_context("spawn"), _begin_worker)
    running: dict[Future[Outcome], Task] = {}
    task: Task | None = None
    try:
        while True:
            while len(running) < jobs and (task := next(waiting, None)) is not None:
                running[pool.submit(perform, task)] = task
                task = None
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
        return waiting if task is None else itertools.chain([task], waiting)
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


def dask(tasks: Iterable[Task], jobs: int) -> Results:
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
            there.close()  # stops the tasks that are running there

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
