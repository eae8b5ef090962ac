"""Files that appear under their name only when they are complete, and their hashes."""

from __future__ import annotations

import hashlib
import os
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


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
    """A temporary name with the same ending; the file written there is moved to ``path`` on success.

    Missing folders are made. Not mkstemp: its file may be read by its owner only.
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


def fingerprint(path: str | os.PathLike[str]) -> str:
    """SHA-256 of a file's content, in hexadecimal digits."""
    with Path(path).open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
