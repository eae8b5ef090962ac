"""Runs that a signal ends at any moment: the next one goes on, and nothing is lost or left behind."""

import json
import multiprocessing
import os
import shutil
import signal
import sqlite3
import sys
import time
from collections.abc import Callable
from contextlib import closing
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import numpy as np
from matplotlib.figure import Figure

from hostile.cases import Case, Kind
from hostile.stores import CELLS, broken, resume_grid, same_rows, without_time
from lognmf import plots
from lognmf.cli.main import main
from lognmf.paper import tables as paper
from lognmf.paper.methods import WEIGHTS
from lognmf.paper.run import compute
from lognmf.paper.spec import PRESETS, Data, Preset
from lognmf.paper.store import StudyStore

FORK = multiprocessing.get_context("fork")
"""Children of this process: no import is waited for."""

TINY = Preset(dict.fromkeys(WEIGHTS, (0.1,)), 2, seeds=(1, 2))
X = np.random.default_rng(0).random((20, 6))


def run_grid() -> None:
    resume_grid(Path("store"))


def run_study() -> None:
    compute(CELLS, StudyStore("store"), executor="inline")


def run_reproduce() -> None:
    main(
        ["reproduce", "table5", "--preset", "tiny", "--datasets", "orl", "--executor", "inline", "--out", "r"]
    )


def run_fit() -> None:
    main(["fit", "../x.npy", "-k", "2", "--tune", "--max-iter", "5", "--out", "r", "--force"])


class Job(NamedTuple):
    """What is run, and where it keeps its rows, if it does."""

    run: Callable[[], None]
    store: str | None
    command: bool = False


JOBS = {
    "grid": Job(run_grid, "store"),
    "study": Job(run_study, "store"),
    "fit": Job(run_fit, None, command=True),
    "reproduce": Job(run_reproduce, "r/study.db", command=True),
}


def start(job: Job, folder: Path) -> Any:
    """The job in a process of its own, in a folder; what it prints goes to a file beside that."""

    begun = folder.parent / "begun"
    begun.unlink(missing_ok=True)

    def child() -> None:
        os.chdir(folder)
        with (folder.parent / "said").open("w") as said:
            os.dup2(said.fileno(), 1)
            os.dup2(said.fileno(), 2)
        sys.stdout, sys.stderr = os.fdopen(1, "w"), os.fdopen(2, "w", buffering=1)  # pytest has its own
        signal.signal(signal.SIGINT, signal.default_int_handler)
        PRESETS["tiny"], paper.DATASETS["ORL"] = TINY, Data("digits", 25)
        for name in plots.__all__:  # drawing takes its time
            setattr(plots, name, lambda *_, **__: Figure(figsize=(1, 1)))
        np.save(folder.parent / "x.npy", X)
        begun.touch()
        job.run()

    process = FORK.Process(target=child)
    process.start()
    while process.is_alive() and not begun.exists():
        time.sleep(0.001)
    return process


def finished_rows(job: Job, folder: Path) -> dict[Any, str]:
    """The rows in a store, with their times, by what they are."""
    if job.store is None or not (folder / job.store).is_file():
        return {}
    with closing(sqlite3.connect(folder / job.store)) as file:
        if not file.execute("SELECT 1 FROM sqlite_master WHERE name = 'entries'").fetchone():
            return {}
        return dict(file.execute("SELECT key, value FROM entries").fetchall())


def results(folder: Path) -> dict[str, Any]:
    """What a user has in the end: files by their names, those without times with their content."""
    files = {str(path.relative_to(folder)): path for path in folder.rglob("*") if path.is_file()}
    timed = ("history.csv", "tuning.csv")
    return {
        name: path.read_text() if path.suffix in (".csv", ".txt") and path.name not in timed else None
        for name, path in files.items()
    }


@cache
def undisturbed(name: str) -> tuple[float, list[dict[str, Any]], dict[str, Any]]:
    """Seconds, rows and results of a run that nobody stops."""
    with TemporaryDirectory(prefix="lognmf-hostile-") as parent:
        folder = Path(parent) / "here"
        prepare(folder)
        process = start(JOBS[name], folder)
        began = time.perf_counter()
        process.join()
        seconds = time.perf_counter() - began
        if process.exitcode:
            broken((folder.parent / "said").read_text())
        return seconds, rows_of(finished_rows(JOBS[name], folder)), results(folder)


def prepare(folder: Path) -> None:
    folder.mkdir()
    (folder / "notes.txt").write_text("precious")


def rows_of(found: dict[Any, str]) -> list[dict[str, Any]]:
    return [without_time(json.loads(found[key])) for key in sorted(found)]


def check(case: Case, parent: Path) -> str:
    job, folder = JOBS[case["job"]], parent / "here"
    seconds, rows, files = undisturbed(case["job"])
    prepare(folder)
    for _ in range(case["times"]):
        process = start(job, folder)
        time.sleep(case["moment"] * seconds)
        os.kill(process.pid, getattr(signal, case["signal"]))
        process.join()
        ended = _ending(case, job, process.exitcode, (parent / "said").read_text())
    shutil.copytree(folder, parent / "copy")  # looking into a store tidies up after its writer
    before = finished_rows(job, parent / "copy")
    process = start(job, folder)
    process.join()
    said = (parent / "said").read_text()
    if process.exitcode:
        broken(f"the next run ended with {process.exitcode}: {said}")
    after = finished_rows(job, folder)
    lost = [key for key, row in before.items() if after.get(key) != row]
    if lost:
        broken(f"{len(lost)} of {len(before)} finished rows were lost or computed again: {said}")
    if not same_rows(rows_of(after), rows):
        broken("the rows are not those of an undisturbed run")
    if results(folder) != files:
        broken(f"there are {sorted(results(folder))}, not {sorted(files)}, or their content differs")
    return ended


def _ending(case: Case, job: Job, code: int, said: str) -> str:
    """How the stopped run ended; commands have a sentence and an exit code for it."""
    if code == 0:
        return "done before the signal"
    number = getattr(signal, case["signal"])
    if job.command and number != signal.SIGKILL:
        early = code == -number  # before the command had begun
        if not early and (code != 128 + number or "interrupted" not in said or "Traceback" in said):
            broken(f"{case['signal']} ended with code {code} and the words {said}")
    return f"stopped by {case['signal']}"


KILLS = Kind(
    "kills",
    {
        "job": list(JOBS),
        "signal": ["SIGKILL", "SIGTERM", "SIGINT"],
        "times": [1, 2],
        "moment": [i / 40 for i in range(1, 42)],
    },
    check,
    soak=160,
    short=8,
    chunk=25,
)
