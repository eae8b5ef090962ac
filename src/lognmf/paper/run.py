"""Running cells: what is missing in a store is computed, and every piece is kept as soon as it is done."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from lognmf.core.parallel import cores
from lognmf.grid.plan import place
from lognmf.paper.executors import EXECUTORS, Done, beside
from lognmf.paper.seconds import expected_seconds, piece_size
from lognmf.paper.spec import Cell, Piece, pieces
from lognmf.paper.store import Outcome, StudyStore
from lognmf.paper.work import Task, on_device
from lognmf.parameters import check_choice, check_integer

__all__ = ["Progress", "Report", "check_means", "compute", "in_words", "missing", "outlook", "usual_jobs"]


@dataclass(frozen=True)
class Progress:
    """How far a run is.

    Parameters
    ----------
    piece : Piece
        What has just been done.
    outcome : Outcome
        What became of it.
    done, total : int
        Pieces.
    seconds, left : float
        Time so far, and what is left at this pace.
    """

    piece: Piece
    outcome: Outcome
    done: int
    total: int
    seconds: float
    left: float


@dataclass(frozen=True)
class Report:
    """What a run did.

    Parameters
    ----------
    done, failed, left : int
        Pieces that succeeded, that failed, and that were not begun before the time was up.
    seconds : float
        Wall-clock time.
    """

    done: int
    failed: int
    left: int
    seconds: float


def missing(cells: Iterable[Cell], store: StudyStore) -> list[Piece]:
    """The pieces of cells that are not done, those of a cell that stands twice only once."""
    known = store.done()
    return [
        piece
        for cell in dict.fromkeys(cells)
        for piece in pieces(cell, piece_size(cell))
        if piece.number not in known.get(cell.key, ())
    ]


def outlook(todo: Sequence[Piece], device: str | None, jobs: int) -> float:
    """Seconds that the pieces will take: those of the GPU and those of the cores go side by side."""
    gpu = device is not None and device.startswith("cuda")
    there = [p for p in todo if gpu and on_device(p.cell)]
    here = [p for p in todo if not (gpu and on_device(p.cell))]
    longest = max((expected_seconds(p, None) for p in here), default=0.0)
    cores = max(longest, sum(expected_seconds(p, None) for p in here) / jobs)
    return max(cores, sum(expected_seconds(p, device) for p in there))


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

    A piece that fails is kept with its message, the next one runs, and a later call tries it again.

    Parameters
    ----------
    cells : iterable of Cell
        What is wanted.
    store : StudyStore
        Where the rows are, and will be.
    executor : str, default="processes"
        A name in `EXECUTORS`.
    jobs : int, optional
        Processes; default one for each core, less two beside a GPU, which needs one to be fed.
    device : str, optional
        "cuda": grids of models that batch well run there, in this process, and the others by the
        executor at the same time.
    limit : float, optional
        Seconds after which no further piece is begun.
    on_piece : callable, optional
        Called with a `Progress` after every piece.

    Returns
    -------
    Report
    """
    check_means(executor, jobs, device)
    jobs = usual_jobs(device) if jobs is None else jobs
    todo = missing(cells, store)
    began = time.perf_counter()
    deadline = None if limit is None else began + limit
    expected = {piece: expected_seconds(piece, device) for piece in todo}
    counts = {True: 0, False: 0}
    passed = 0.0
    for come in _outcomes(todo, store, executor, jobs, device, deadline):
        if come is None:
            continue
        task, outcome = come
        store.put(task.piece, outcome)
        counts[outcome.error is None] += 1
        passed += expected.pop(task.piece, 0.0)
        if on_piece is not None:
            seconds = time.perf_counter() - began
            left = seconds * sum(expected.values()) / max(passed, 1e-9)
            on_piece(Progress(task.piece, outcome, sum(counts.values()), len(todo), seconds, left))
    left = sum(not store.is_done(piece) for piece in expected)
    return Report(counts[True], counts[False], left, time.perf_counter() - began)


def check_means(executor: str, jobs: int | None, device: str | None) -> None:
    """Refuse an executor, a number of processes or a device that there is not."""
    check_choice("executor", executor, EXECUTORS)
    if jobs is not None:
        check_integer("jobs", jobs, 1)
    if device is not None:
        place(np.zeros((1, 1)), device, None)


def _outcomes(
    todo: Sequence[Piece],
    store: StudyStore,
    executor: str,
    jobs: int,
    device: str | None,
    deadline: float | None,
) -> Iterator[Done | None]:
    def wanted(pieces: Iterable[Piece], device: str | None) -> Iterator[Task]:
        for piece in pieces:
            if deadline is not None and time.perf_counter() > deadline:
                return
            if not store.is_done(piece):  # another run may have been here
                yield Task(piece, device)

    there = [piece for piece in todo if device is not None and on_device(piece.cell)]
    here = [piece for piece in todo if device is None or not on_device(piece.cell)]
    # The longest first: then the processes end together.
    here.sort(key=lambda piece: -expected_seconds(piece, None))
    others = EXECUTORS[executor](wanted(here, None), jobs)
    return beside(EXECUTORS["inline"](wanted(there, device), 1), others) if there else others


def usual_jobs(device: str | None) -> int:
    """Processes where nobody says how many."""
    return cores() if device is None else max(1, cores() - 2)


def in_words(seconds: float) -> str:
    """A time as a person says it."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"
