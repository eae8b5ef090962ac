"""Finds the files of data sets, and unpacks archives."""

from __future__ import annotations

import errno
import itertools
import os
import tarfile
import zipfile
from collections.abc import Iterable, Iterator
from importlib.util import find_spec
from pathlib import Path

from lognmf.datasets.registry import Entry, File
from lognmf.files import fingerprint
from lognmf.reading import LimitError, check_unpacked, reason, zip_members

DATA_VARIABLE = "LOGNMF_DATA"
CACHE_VARIABLE = "LOGNMF_CACHE"

Folder = str | os.PathLike[str] | None


def folders(data_home: Folder = None) -> Iterator[Path]:
    """Folders to look in, in this order: ``data_home``, the one LOGNMF_DATA names, the cache."""
    named = (data_home, os.environ.get(DATA_VARIABLE), cache())
    yield from (Path(folder).expanduser() for folder in named if folder)


def cache() -> Path | None:
    """The folder that LOGNMF_CACHE names, or the system's usual one; None without pooch."""
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
    if (digest := fingerprint(path)) != file.sha256:
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


ENDINGS = (".zip", ".tar", ".tar.gz", ".tgz", ".tar.bz2", ".tar.xz")
"""How the names of archives end."""


def is_archive(path: str | os.PathLike[str]) -> bool:
    """Whether ``path`` is an archive, going by the end of its name."""
    return os.fspath(path).lower().endswith(ENDINGS)


def unpack(path: Path, folder: Path) -> None:
    """Unpack a zip or tar archive into an empty folder.

    Nothing is written outside the folder. An archive whose files need far more memory than the archive is
    refused before anything is written.
    """
    if any(folder.iterdir()):
        msg = f"{folder} is not empty: unpack {path} into an empty folder."
        raise FileExistsError(msg)
    try:
        if path.name.lower().endswith(".zip"):
            with zipfile.ZipFile(path) as archive:
                _check_size(path, (member.file_size for member in zip_members(archive, path)))
                archive.extractall(folder)
        else:
            with tarfile.open(path) as archive:
                _check_size(path, (member.size for member in archive))
                archive.extractall(folder, filter="data")
    except (LimitError, MemoryError, PermissionError):
        raise
    except Exception as error:  # damaged archives fail in many ways
        if getattr(error, "errno", None) == errno.ENOSPC:
            raise
        msg = f"{path} cannot be unpacked: {reason(error)}. Get it again."
        raise ValueError(msg) from error


def _check_size(path: Path, sizes: Iterable[int]) -> None:
    """Refuse files that become too large together, without looking at those behind the limit."""
    packed = path.stat().st_size
    for total in itertools.accumulate(sizes):
        try:
            check_unpacked(total, packed)
        except LimitError as error:
            msg = f"{path} is not unpacked: {error}, or unpack it yourself and give the folder."
            raise LimitError(msg) from None
