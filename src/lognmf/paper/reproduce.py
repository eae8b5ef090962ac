"""The paper in one call: compute what is missing, then write tables, figures and the page."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from lognmf.paper.run import (
    Report,
    check_resources,
    compute,
    missing,
)
from lognmf.paper.spec import PRESETS, Cell, Data
from lognmf.paper.store import StudyStore
from lognmf.paper.tables import DATASETS, Study, targets
from lognmf.paper.work import size
from lognmf.parameters import check_choice
from lognmf.progress import printed, say

STORE = "study.db"
"""The file of all rows in a result folder."""

FILES = (STORE, "index.html", "index.md", "run.json", "rows.parquet")
FOLDERS = ("tables", "figures")
"""All that a result folder holds."""


def reproduce(
    what: Sequence[str] = ("all",),
    out: str | os.PathLike[str] = "reproduction",
    *,
    preset: str = "paper",
    data: Mapping[str, Data] | Sequence[str] | None = None,
    device: str | None = None,
    executor: str = "processes",
    jobs: int | None = None,
    limit: float | None = None,
    merge: Sequence[str | os.PathLike[str]] = (),
    force: bool = False,
    fit: bool = True,
    pages: bool = True,
    command: str = "",
    verbose: int = 1,
) -> Report:
    """Rebuild tables and figures of the paper next to its numbers.

    The rows are stored in ``out/study.db`` as they come. Another call computes only what is
    missing, so a run may be interrupted, done in parts, or on several machines.

    Parameters
    ----------
    what : sequence of str, default=("all",)
        Names in `TABLES` and `FIGURES`, or "all", "tables", "figures".
    out : path, default="reproduction"
        The result folder.
    preset : str, default="paper"
        A name in `PRESETS`: the paper's grids, or "quick".
    data : sequence of str, or mapping of str to Data, optional
        Data sets by the paper's names, in any case; default all. A mapping replaces them by other data.
    device : str, optional
        "cuda": grids run there, and the models that a GPU does not speed up on the cores at the same time.
    executor, jobs : str and int, optional
        A name in `EXECUTORS`, and the number of processes; default one per core.
    limit : float, optional
        Seconds after which no further fit is started; tables and figures are written after that.
    merge : sequence of paths
        Stores of other runs whose rows are copied first.
    force : bool, default=False
        Whether to delete the rows of an existing run first.
    fit : bool, default=True
        Whether to compute what is missing.
    pages : bool, default=True
        Whether to write tables, figures and the page; otherwise only rows.
    command : str, default=""
        The command that was run, for the page.
    verbose : int, default=1
        Whether to print to stderr what is being done, about once a second.

    Returns
    -------
    Report
    """
    check_choice("preset", preset, PRESETS)
    wanted = targets(what)
    chosen = _chosen(data)
    if not any(target.inside(chosen) for target in wanted):
        msg = f"Nothing of {', '.join(what)} is about {', '.join(chosen)}: choose other data sets, or all."
        raise ValueError(msg)
    check_resources(executor, jobs, device)
    for one in chosen.values():
        size(one)  # refuses data that cannot be loaded before any work
    folder = check_out(out)
    for other in merge:
        if not Path(other).is_file():
            msg = f"{other} is not there: give the study.db of another run."
            raise ValueError(msg)
        if force and Path(other).resolve() == (folder / STORE).resolve():
            msg = f"{other} is to be merged and, by --force, to be deleted: leave out one of them."
            raise ValueError(msg)
    folder.mkdir(parents=True, exist_ok=True)
    if force:
        _delete_rows(folder)
    study = Study(PRESETS[preset], chosen, StudyStore(folder / STORE))
    start = time.perf_counter()
    reports = []
    with printed(verbose):
        for other in merge:
            say(f"{study.store.merge(other)} rows taken over from {other}")
        study.store.check()
        for name in ("grids", "chosen settings") if fit else ():
            cells = plan(what, study, chosen=name != "grids")
            left = None if limit is None else limit - (time.perf_counter() - start)
            todo = missing(cells, study.store)
            if todo and (left is None or left > 0):
                say(f"{name}: {sum(piece.fits for piece in todo)} fits in {len(todo)} pieces")
            options: Any = {"executor": executor, "jobs": jobs, "device": device, "limit": left}
            reports.append(compute(cells, study.store, **options, name=name))
        done, failed, not_done = (sum(getattr(r, key) for r in reports) for key in ("done", "failed", "left"))
        if pages:
            from lognmf.paper.outputs import write_outputs

            write_outputs(folder, wanted, study, preset=preset, command=command)
            say(f"The page is {folder / 'index.html'}")
    return Report(done, failed, not_done, time.perf_counter() - start)


def check_out(out: str | os.PathLike[str]) -> Path:
    """The result folder; refused if it holds other files, or something else under a name of ours."""
    folder = Path(out)
    if folder.exists() and not folder.is_dir():
        msg = f"{folder} is a file, so no results can be written there: choose another folder."
        raise FileExistsError(msg)
    if folder.is_dir() and any(folder.iterdir()) and not (folder / STORE).exists():
        msg = f"{folder} holds other files, and no {STORE} to resume: choose another folder with --out."
        raise FileExistsError(msg)
    wrong = [folder / name for name in FILES if (folder / name).is_dir()]
    wrong += [folder / name for name in FOLDERS if (folder / name).exists() and not (folder / name).is_dir()]
    if wrong:
        kind = "folder" if wrong[0].is_dir() else "file"
        msg = f"{wrong[0]} is a {kind}, and in the way of the results: move it away, or choose another --out."
        raise FileExistsError(msg)
    return folder


def _delete_rows(folder: Path) -> None:
    """Delete the rows in a result folder; a file that is not a study of ours is refused."""
    if (folder / STORE).exists():
        StudyStore(folder / STORE)
        for ending in ("", "-wal", "-shm"):
            (folder / f"{STORE}{ending}").unlink(missing_ok=True)


def plan(what: Sequence[str], study: Study, *, chosen: bool = False) -> list[Cell]:
    """The cells of the grids, or the cells that are ``chosen`` from the rows of the grids."""
    cells: dict[Cell, None] = {}
    for target in targets(what):
        cells |= dict.fromkeys((cell for *_, cell in target.then(study)) if chosen else target.first(study))
    return list(cells)


def _chosen(data: Mapping[str, Data] | Sequence[str] | None) -> Mapping[str, Data]:
    """Data sets by the paper's names."""
    if data is None:
        return DATASETS
    if isinstance(data, Mapping):
        return data
    names = {name.lower(): name for name in DATASETS}
    unknown = [name for name in data if name.lower() not in names]
    if unknown or not data:
        got = ", ".join(map(repr, unknown)) or "none"
        msg = f"datasets must be among {', '.join(names)}; got {got}."
        raise ValueError(msg)
    chosen = {names[name.lower()] for name in data}
    return {name: source for name, source in DATASETS.items() if name in chosen}
