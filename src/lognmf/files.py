"""A file that appears under its name complete or not at all."""

from __future__ import annotations

import os
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

__all__ = ["check_new", "new_file"]


def check_new(path: str | os.PathLike[str], *, force: bool = False) -> Path:
    """Refuse a file that could not be written; nothing is changed.

    Parameters
    ----------
    path : path
        Where the file shall be.
    force : bool, default=False
        Whether one that is there may be replaced.

    Returns
    -------
    Path
        The file, as an absolute path.
    """
    path = Path(path).resolve()
    if path.is_dir():
        msg = f"{path} is a folder: name a file in it."
        raise IsADirectoryError(msg)
    if path.exists() and not force:
        msg = f"The file {path} already exists: choose another one with --out, or replace it with --force."
        raise FileExistsError(msg)
    ancestor = next(parent for parent in path.parents if parent.exists())
    if not (ancestor.is_dir() and os.access(ancestor, os.W_OK)):
        msg = f"{path} cannot be made, because {ancestor} cannot be written to: choose another --out."
        raise PermissionError(msg)
    return path


@contextmanager
def new_file(path: str | os.PathLike[str], *, force: bool = False) -> Iterator[Path]:
    """A name to write to; what is there when all went well is moved to ``path``.

    Parameters
    ----------
    path : path
        Where the file shall be, as `check_new` allows it. Missing folders are made.
    force : bool, default=False
        Replace a file that is there.

    Yields
    ------
    Path
        A file beside it, with the same ending.
    """
    path = check_new(path, force=force)
    path.parent.mkdir(parents=True, exist_ok=True)
    fresh = path.with_name(f".{path.stem}-{uuid.uuid4().hex}{path.suffix}")
    try:
        yield fresh
        check_new(path, force=force)
        fresh.replace(path)
    finally:
        fresh.unlink(missing_ok=True)
