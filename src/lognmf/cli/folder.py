"""A result folder, which appears complete or not at all, and holds only what is ours."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from lognmf.cli.formats.shared import parsing
from lognmf.files import OLD, is_working_folder, remove_abandoned, working_folder

PAGE = "index.html"
SUMMARY, MODEL, PREPARATION = "summary.json", "model.npz", "preparation.npz"
"""Results in words, the fitted model, and how samples were scaled."""
SAMPLES, THEIR_CLUSTERS = "samples.npz", "samples-clusters.npy"
"""The samples that new ones are compared with, for `predict`, and their clusters."""

FILES = (
    PAGE,
    SUMMARY,
    "factors.npz",
    MODEL,
    PREPARATION,
    SAMPLES,
    THEIR_CLUSTERS,
    "labels.csv",
    "outliers.csv",
    "history.csv",
    "convergence.png",
    "parts.png",
    "codes.png",
    "tuning.csv",
    "sensitivity.png",
    "candidates.csv",
    *(f"{name}.{kind}" for name in ("parts", "codes") for kind in ("csv", "parquet")),
    *(f"{name}.parquet" for name in ("labels", "outliers")),
)
"""Everything the result folder of a fit can hold."""

LARGE_FILES, FACTORS = ("U.npy", "V.npy", "factors.h5", "factors.hdf5", "factors.h5ad"), "factors.zarr"
"""What stands for factors.npz after a fit in blocks: files, or a folder."""

COMPARISON_FILES = (PAGE, SUMMARY, "comparison.csv", "comparison.png", "parts.png")
"""Everything the result folder of a comparison can hold."""


def read_summary(folder: Path) -> dict[str, Any]:
    """The summary of a result folder; empty where there is none."""
    file = folder / SUMMARY
    if not file.is_file():
        return {}
    with parsing(file):
        return dict(json.loads(file.read_text(encoding="utf-8")))


def check_folder(folder: str | os.PathLike[str], *, force: bool = False) -> Path:
    """The absolute path of a result folder that can be written; nothing is changed.

    With ``force`` existing results may be replaced, but never anything else.
    """
    folder = Path(folder).resolve()
    if folder.exists() and not folder.is_dir():
        msg = f"{folder} is a file, so no results can be written there: choose another folder."
        raise FileExistsError(msg)
    if folder.exists() and not force:
        msg = (
            f"The folder {folder} already exists: choose another one with --out, or replace it with --force."
        )
        raise FileExistsError(msg)
    present = list(folder.iterdir()) if folder.exists() else []
    others = sorted(path.name for path in present if not (_is_result(path) or is_working_folder(path)))
    if others:
        few = ", ".join(others[:3]) + (", …" if len(others) > 3 else "")
        msg = f"{folder} is not replaced, because it holds other files ({few}): choose another --out."
        raise FileExistsError(msg)
    ancestor = next(parent for parent in (folder, *folder.parents) if parent.exists())
    if not (ancestor.is_dir() and os.access(ancestor, os.W_OK)):
        msg = f"{folder} cannot be made, because {ancestor} cannot be written to: choose another --out."
        raise PermissionError(msg)
    return folder


def _is_result(path: Path) -> bool:
    """Whether a path in a result folder is ours: a link, or another folder than `FACTORS`, is not."""
    files = path.name in (*FILES, *LARGE_FILES, *COMPARISON_FILES) and path.is_file()
    return (files or (path.name == FACTORS and path.is_dir())) and not path.is_symlink()


@contextmanager
def new_folder(folder: str | os.PathLike[str], *, force: bool) -> Iterator[Path]:
    """A folder for the files of ``folder``, which get there at the end, all of them or none."""
    folder = check_folder(folder, force=force)
    folder.parent.mkdir(parents=True, exist_ok=True)
    remove_abandoned(folder.parent)
    # Within an existing folder, which may be on a file system of its own.
    with working_folder(folder if folder.exists() else folder.parent) as hidden:
        fresh, old = hidden / "new", hidden / OLD
        fresh.mkdir()
        yield fresh
        check_folder(folder, force=force)
        if folder.exists():
            _replace_results(folder, fresh, old)
            shutil.rmtree(old, ignore_errors=True)
            remove_abandoned(folder, replaced=True)
        else:
            fresh.rename(folder)


def _replace_results(folder: Path, fresh: Path, old: Path) -> None:
    """Move the results in ``folder`` to ``old`` and those in ``fresh`` to ``folder``; if that fails, back.

    The folder itself stays: it may be the current one of a shell. No old file ever stands next to a new one,
    and where there is a summary, all is there: it is the first to go and the last to come.
    """
    old.mkdir()
    present = sorted(filter(_is_result, folder.iterdir()), key=lambda path: path.name != SUMMARY)
    moves = [(path, old / path.name) for path in present]
    coming = sorted(fresh.iterdir(), key=lambda path: path.name == SUMMARY)
    moves += [(path, folder / path.name) for path in coming]
    try:
        for source, target in moves:
            source.rename(target)
    except BaseException:
        for source, target in reversed(moves):
            if target.exists() and not source.exists():
                target.rename(source)
        raise
