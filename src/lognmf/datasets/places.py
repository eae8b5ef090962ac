"""Where the files of a data set are: in a data folder, in the cache, or still to be downloaded."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

from lognmf.datasets.registry import Entry, File

__all__ = ["cache", "check_hash", "folders", "get", "locate", "present"]

DATA_VARIABLE = "LOGNMF_DATA"
CACHE_VARIABLE = "LOGNMF_CACHE"

Folder = str | os.PathLike[str] | None


def folders(data_home: Folder = None) -> Iterator[Path]:
    """Folders to look in, in this order: ``data_home``, the one LOGNMF_DATA names, the cache."""
    named = (data_home, os.environ.get(DATA_VARIABLE), cache())
    yield from (Path(folder).expanduser() for folder in named if folder)


def cache() -> Path | None:
    """The folder that LOGNMF_CACHE names, or the system's usual one; None if only pooch would know that."""
    if named := os.environ.get(CACHE_VARIABLE):
        return Path(named).expanduser()
    if find_spec("pooch") is None:
        return None
    import pooch

    return Path(pooch.os_cache("lognmf")).expanduser()


def present(file: File, data_home: Folder = None) -> Path | None:
    """The first place where ``file`` is, whatever its content; None if it is in none of the folders."""
    # In a folder of its own data set, or next to the files of other sets.
    spellings = dict.fromkeys((file.path, Path(file.path).name))
    candidates = (folder / spelling for folder in folders(data_home) for spelling in spellings)
    return next((path for path in candidates if path.is_file()), None)


def locate(file: File, data_home: Folder = None) -> Path | None:
    """The first place where ``file`` is; refused if its content has another hash."""
    path = present(file, data_home)
    if path is not None:
        check_hash(path, file, remedy="Remove or replace it")
    return path


def get(entry: Entry, data_home: Folder = None) -> list[Path]:
    """The files of a data set; missing ones are downloaded to ``data_home``, by default to the cache."""
    return [locate(file, data_home) or _fetch(entry, file, data_home) for file in entry.files]


def check_hash(path: Path, file: File, *, remedy: str, what: str | None = None) -> None:
    """Refuse a file with another hash than the registry's; the message ends with the ``remedy``."""
    with path.open("rb") as content:
        digest = hashlib.file_digest(content, "sha256").hexdigest()
    if digest != file.sha256:
        msg = (
            f"{what or path} is not the file it should be: its SHA-256 is {digest}, expected {file.sha256}. "
            f"{remedy}: it may be damaged, cut off or another version."
        )
        raise ValueError(msg)


def _fetch(entry: Entry, file: File, data_home: Folder) -> Path:
    """Download a file, or say how to get it."""
    home = Path(data_home).expanduser() if data_home else cache()
    if file.url is None:
        raise FileNotFoundError(_how_to_get(entry, file, home))
    if find_spec("pooch") is None or home is None:
        msg = (
            f"The file {Path(file.path).name} of {entry.title} is not here, and downloading it needs pooch: "
            f'run pip install "lognmf[data]", or put the file from {file.url} into a folder that '
            f"{DATA_VARIABLE} names."
        )
        raise FileNotFoundError(msg)
    from lognmf.datasets.download import download

    return download(file, home)


def _how_to_get(entry: Entry, file: File, home: Path | None) -> str:
    named = os.environ.get(DATA_VARIABLE) or home
    place = Path(named).expanduser() / file.path if named else f"FOLDER/{file.path}"
    return (
        f"The data set {entry.name} ({entry.title}) is not here, and it is not downloaded because its terms "
        f"are: {entry.licence}. For permission to use it {entry.ask}. Then put the file "
        f"{Path(file.path).name} (SHA-256 {file.sha256}; origin: {entry.source}) at {place}, or set "
        f"{DATA_VARIABLE} to the folder that holds {file.path}."
    )
