"""Files that appear under their name only when they are complete, their hashes, and csv files."""

from __future__ import annotations

import csv
import hashlib
import os
import re
import shutil
import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import numpy as np

try:
    import fcntl
except ImportError:  # Windows: what a killed process leaves there stays
    fcntl = None  # type: ignore[assignment]

_UNLOCKED = "unlocked-"
_WORKING = re.compile(rf"\.lognmf-({_UNLOCKED})?[0-9a-f]{{32}}")
OLD = "old"
"""The folder in a working folder for files that are being replaced; they may be the only copies."""
_FORMULA = re.compile(r"(^|[;\t\r\n])('*)(?=[=+\-@\t\r])")
"""Where a spreadsheet may begin to read a formula; many split csv files at semicolons or tabs."""
ODD_NAMES = "backslashreplace"
"""How bytes of a file's name that are not UTF-8 are written."""
_ATTEMPTS = 3
"""How often a lock is tried for; a file system may have none."""


def check_new(path: str | os.PathLike[str], *, force: bool = False) -> Path:
    """The absolute path of a file that can be written; refused if not, or if it exists and not ``force``."""
    path = Path(path).resolve()
    if path.is_dir():
        msg = f"{path} is a folder: name a file in it."
        raise IsADirectoryError(msg)
    if path.exists() and not force:
        msg = f"The file {path} already exists: choose another one with --out, or replace it with --force."
        raise FileExistsError(msg)
    ancestor = next(parent for parent in path.parents if parent.exists())
    if not (ancestor.is_dir() and os.access(ancestor, os.W_OK)):
        msg = f"{path} cannot be made, because {ancestor} cannot be written to: choose another path."
        raise PermissionError(msg)
    return path


@contextmanager
def new_file(path: str | os.PathLike[str], *, force: bool = False) -> Iterator[Path]:
    """A file of the same name elsewhere; what is written there is moved to ``path`` on success.

    Missing folders are made.
    """
    path = check_new(path, force=force)
    path.parent.mkdir(parents=True, exist_ok=True)
    with working_folder(path.parent) as hidden:
        fresh = hidden / path.name
        yield fresh
        check_new(path, force=force)
        fresh.replace(path)


@contextmanager
def working_folder(parent: Path) -> Iterator[Path]:
    """A hidden folder in ``parent`` for unfinished files, closed to other users and removed at the end.

    The folders that killed processes left there are removed first. Folders with files in `OLD` are kept.
    """
    remove_abandoned(parent)
    folder, lock = _locked_folder(parent)
    try:
        yield folder
    finally:
        if not _holds_old_files(folder):
            shutil.rmtree(folder, ignore_errors=True)
        if lock is not None:
            os.close(lock)


def is_working_folder(path: Path) -> bool:
    """Whether a path is named like a folder of `working_folder`."""
    return _WORKING.fullmatch(path.name) is not None and path.is_dir() and not path.is_symlink()


def remove_abandoned(parent: Path, *, replaced: bool = False) -> None:
    """Remove the working folders in ``parent`` whose processes are dead: nobody holds their locks.

    Those with files in `OLD` go only if these are ``replaced``, those without locks never.
    """
    with suppress(OSError):  # a folder that cannot be listed
        for folder in filter(is_working_folder, list(parent.iterdir())):
            lock = None if _UNLOCKED in folder.name else _lock(folder)
            if lock is not None:
                if replaced or not _holds_old_files(folder):
                    shutil.rmtree(folder, ignore_errors=True)
                os.close(lock)


def _holds_old_files(folder: Path) -> bool:
    return any((folder / OLD).glob("*"))


def _locked_folder(parent: Path) -> tuple[Path, int | None]:
    """A new working folder, and its lock, which ends with this process however that ends."""
    for _ in range(_ATTEMPTS):
        folder = parent / f".lognmf-{uuid.uuid4().hex}"
        folder.mkdir(mode=0o700)
        lock = _lock(folder)
        if lock is not None and folder.exists():
            return folder, lock
        if lock is not None:  # another process took it for abandoned before it was locked
            os.close(lock)
        shutil.rmtree(folder, ignore_errors=True)
    folder = parent / f".lognmf-{_UNLOCKED}{uuid.uuid4().hex}"  # nobody removes a folder of this name
    folder.mkdir(mode=0o700)
    return folder, None


def _lock(folder: Path) -> int | None:
    """A lock on a folder, as the descriptor that holds it; None if it cannot be had."""
    if fcntl is None:
        return None
    lock = None
    try:
        lock = os.open(folder, os.O_RDONLY)
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        if lock is not None:
            os.close(lock)
        return None
    return lock


def fingerprint(path: str | os.PathLike[str]) -> str:
    """SHA-256 of a file's content, in hexadecimal digits."""
    with Path(path).open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def write_csv(path: str | os.PathLike[str], columns: Mapping[str, Sequence[Any] | np.ndarray]) -> None:
    """Write a table; a ' before words that a spreadsheet would run as formulas makes them text."""
    with Path(path).open("w", newline="", encoding="utf-8", errors=ODD_NAMES) as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(map(_no_formula, columns))
        # Python's numbers: NumPy writes a float32 with fewer digits.
        values = (np.asarray(column, dtype=object).tolist() for column in columns.values())
        writer.writerows(zip(*(map(_no_formula, column) for column in values), strict=True))


def _no_formula(cell: Any) -> Any:
    """A word with a ' wherever a spreadsheet may take what follows for a formula; numbers as they are."""
    if not isinstance(cell, str):
        return cell
    try:
        float(cell)
    except ValueError:
        return _FORMULA.sub(r"\1'\2", cell)
    return cell
