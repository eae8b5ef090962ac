"""Where the files of a data set are: a data folder, the cache, or the place they are fetched from."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

from lognmf.datasets.registry import Entry, File

__all__ = ["cache", "folders", "get", "locate", "present"]

DATA_VARIABLE = "LOGNMF_DATA"
CACHE_VARIABLE = "LOGNMF_CACHE"


def folders(data_home: str | os.PathLike[str] | None = None) -> Iterator[Path]:
    """Folders in which files are looked for, the first ones first.

    Parameters
    ----------
    data_home : path, optional
        The user's own choice.

    Yields
    ------
    Path
        ``data_home``, the folder that the variable LOGNMF_DATA names, the cache.
    """
    named = (data_home, os.environ.get(DATA_VARIABLE), cache())
    yield from (Path(folder).expanduser() for folder in named if folder)


def cache() -> Path | None:
    """Where downloads are kept: the folder that LOGNMF_CACHE names, or the system's usual one.

    Returns
    -------
    Path or None
        None where the variable is not set and pooch, which knows the usual one, is not installed.
    """
    if named := os.environ.get(CACHE_VARIABLE):
        return Path(named).expanduser()
    if find_spec("pooch") is None:
        return None
    import pooch

    return Path(pooch.os_cache("lognmf")).expanduser()


def present(file: File, data_home: str | os.PathLike[str] | None = None) -> Path | None:
    """The first place where ``file`` is, whatever its content.

    Parameters
    ----------
    file : File
    data_home : path, optional
        As for `folders`.

    Returns
    -------
    Path or None
        None if it is nowhere.
    """
    # Below a folder of the set's own, or beside the files of other sets.
    spellings = dict.fromkeys((file.path, Path(file.path).name))
    candidates = (folder / spelling for folder in folders(data_home) for spelling in spellings)
    return next((path for path in candidates if path.is_file()), None)


def locate(file: File, data_home: str | os.PathLike[str] | None = None) -> Path | None:
    """The first place where ``file`` is; refused if its content is another one.

    Parameters
    ----------
    file : File
    data_home : path, optional
        As for `folders`.

    Returns
    -------
    Path or None
        None if it is nowhere.
    """
    path = present(file, data_home)
    if path is not None:
        check_hash(path, file, remedy="Remove or replace it")
    return path


def get(entry: Entry, data_home: str | os.PathLike[str] | None = None) -> list[Path]:
    """The files of a data set; those that are nowhere are downloaded.

    Parameters
    ----------
    entry : Entry
    data_home : path, optional
        Where to look first, and where to put what is downloaded; default the cache.

    Returns
    -------
    list of Path
    """
    return [locate(file, data_home) or _fetch(entry, file, data_home) for file in entry.files]


def check_hash(path: Path, file: File, *, remedy: str, what: str | None = None) -> None:
    """Refuse a file whose content is not that of the registry.

    Parameters
    ----------
    path : Path
        Where it is.
    file : File
        What it should be.
    remedy : str
        What to do, as the beginning of a sentence.
    what : str, optional
        What to call it; default its path.
    """
    with path.open("rb") as content:
        found = hashlib.file_digest(content, "sha256").hexdigest()
    if found != file.sha256:
        msg = (
            f"{what or path} is not the file it should be: its SHA-256 is {found}, expected {file.sha256}. "
            f"{remedy}: it may be damaged, cut off or another version."
        )
        raise ValueError(msg)


def _fetch(entry: Entry, file: File, data_home: str | os.PathLike[str] | None) -> Path:
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
        f"are: {entry.licence}. For leave to use it {entry.ask}. Then put the file {Path(file.path).name} "
        f"(SHA-256 {file.sha256}; origin: {entry.source}) at {place}, or set {DATA_VARIABLE} to "
        f"the folder that holds {file.path}."
    )
