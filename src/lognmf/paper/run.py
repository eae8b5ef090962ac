"""Running cells: what is missing in a store is computed, and every piece is stored as soon as it is done."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from lognmf.core.parallel import cores
from lognmf.grid.plan import place
from lognmf.paper.executors import EXECUTORS, Results, merged
from lognmf.paper.seconds import expected_seconds, piece_size
from lognmf.paper.spec import Cell, Piece, pieces
from lognmf.paper.store import Outcome, StudyStore
from lognmf.paper.work import Task, on_device
from lognmf.parameters import check_choice, check_integer

__all__ = [
    "Progress",
    "Report",
    "check_resources",
    "compute",
    "default_jobs",
    "in_words",
    "missing",
    "outlook",
]


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
    there, here = _split(todo, device if device and device.startswith("cuda") else None)
    seconds = [expected_seconds(piece, None) for piece in here]
    cpu = max(max(seconds, default=0.0), sum(seconds) / jobs)
    return max(cpu, sum(expected_seconds(piece, device) for piece in there))


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
    deadline = None if limit is None else start + limit
    expected = {piece: expected_seconds(piece, device) for piece in todo}
    counts = {True: 0, False: 0}
    passed = 0.0
    for result in _results(todo, store, executor, jobs, device, deadline):
        if result is None:
            continue
        task, outcome = result
        store.put(task.piece, outcome)
        counts[outcome.error is None] += 1
        passed += expected.pop(task.piece, 0.0)
        if on_piece is not None:
            seconds = time.perf_counter() - start
            left = seconds * sum(expected.values()) / max(passed, 1e-9)
            on_piece(Progress(task.piece, outcome, sum(counts.values()), len(todo), seconds, left))
    not_done = sum(not store.is_done(piece) for piece in expected)
    return Report(counts[True], counts[False], not_done, time.perf_counter() - start)


def check_resources(executor: str, jobs: int | None, device: str | None) -> None:
    """Refuse an unknown executor, a bad number of processes or a device that is not available."""
    check_choice("executor", executor, EXECUTORS)
    if jobs is not None:
        check_integer("jobs", jobs, 1)
    if device is not None:
        place(np.zeros((1, 1)), device, None)


def _results(
    todo: Sequence[Piece],
    store: StudyStore,
    executor: str,
    jobs: int,
    device: str | None,
    deadline: float | None,
) -> Results:
    """The results of pieces as they come, from the device and the executor at the same time."""

    def tasks(pieces: Iterable[Piece], device: str | None) -> Iterator[Task]:
        for piece in pieces:
            if deadline is not None and time.perf_counter() > deadline:
                return
            if not store.is_done(piece):  # another run may have done it
                yield Task(piece, device)

    there, here = _split(todo, device)
    # The longest first, so that the processes end at about the same time.
    here.sort(key=lambda piece: -expected_seconds(piece, None))
    others = EXECUTORS[executor](tasks(here, None), jobs)
    return merged(EXECUTORS["inline"](tasks(there, device), 1), others) if there else others


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


def in_words(seconds: float) -> str:
    """A time in seconds, minutes or hours."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"
