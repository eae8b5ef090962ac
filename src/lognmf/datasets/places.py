"""Where data sets lie, and archives unpacked there."""

from __future__ import annotations

import errno
import os
import stat
import tarfile
import zipfile
from collections.abc import Iterable, Iterator
from importlib.util import find_spec
from pathlib import Path, PurePosixPath
from typing import Self

from lognmf.datasets.registry import Entry, File
from lognmf.files import fingerprint
from lognmf.reading import check_unpacked, reason, short, zip_members

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

_DEEPEST, _LONGEST_NAME, _LONGEST_HEADER = 32, 255, 1 << 16
"""Folders within each other, and bytes of a name and of a header of a tar: no honest archive has more."""


class _RefusedError(ValueError):
    """An archive that is read well, and not unpacked."""


class _Member(tarfile.TarInfo):
    """A header of a tar; long names stand in headers of their own, which are read into memory at once."""

    @classmethod
    def frombuf(cls, buf: bytes | bytearray, encoding: str, errors: str) -> Self:
        member = super().frombuf(buf, encoding, errors)
        if member.type in _HEADER_TYPES and member.size > _LONGEST_HEADER:
            msg = f"a header of {member.size} bytes is longer than {_LONGEST_HEADER}: it may be an attack"
            raise tarfile.ReadError(msg)
        return member


_HEADER_TYPES = (
    tarfile.GNUTYPE_LONGNAME,
    tarfile.GNUTYPE_LONGLINK,
    tarfile.XHDTYPE,
    tarfile.XGLTYPE,
    tarfile.SOLARIS_XHDTYPE,
)


def is_archive(path: str | os.PathLike[str]) -> bool:
    """Whether ``path`` is an archive, going by the end of its name."""
    return os.fspath(path).lower().endswith(ENDINGS)


def unpack(path: Path, folder: Path, *, most_files: int = 1_000_000) -> None:
    """Unpack a zip or tar archive into an empty folder; refuse a suspicious one before writing anything."""
    if any(folder.iterdir()):
        msg = f"{folder} is not empty: unpack {path} into an empty folder."
        raise FileExistsError(msg)
    archive: zipfile.ZipFile | tarfile.TarFile
    try:
        # Neither library reads more of a file than its header says, so the check below holds.
        if path.name.lower().endswith(".zip"):
            with zipfile.ZipFile(path) as archive:
                zipped = [info for info in zip_members(archive, path) if not info.is_dir()]
                _check(path, ((i.filename, i.file_size, _zip_fault(i)) for i in zipped), most_files)
                archive.extractall(folder, zipped)
        else:
            with tarfile.open(path, tarinfo=_Member) as archive:
                # One by one: the headers behind a file too large are never reached.
                _check(path, ((m.name, m.size, _tar_fault(m)) for m in archive if not m.isdir()), most_files)
                members = [member for member in archive.getmembers() if not member.isdir()]
                archive.extractall(folder, members, filter="data")
    except (_RefusedError, MemoryError, PermissionError):
        raise
    except Exception as error:  # damaged archives fail in many ways
        if getattr(error, "errno", None) == errno.ENOSPC:
            raise
        msg = f"{path} cannot be unpacked: {reason(error)}. Get it again."
        raise ValueError(msg) from error


def _check(path: Path, files: Iterable[tuple[str, int, str | None]], most_files: int) -> None:
    """Refuse an archive by the names, sizes and faults of its files."""
    packed, size = path.stat().st_size, 0
    seen: set[str] = set()
    for name, length, fault in files:
        size += length
        fault = fault or _name_fault(name) or ("comes twice" if name in seen else None)
        if fault:
            msg = f"{path} is not unpacked, because {short(name)!r} in it {fault}: it may be an attack."
            raise _RefusedError(msg)
        seen.add(name)
        if len(seen) > most_files:
            msg = (
                f"{path} is not unpacked: it holds more than {most_files} files. Unpack it yourself and give "
                "the folder."
            )
            raise _RefusedError(msg)
        try:
            check_unpacked(size, packed)
        except ValueError as error:
            msg = f"{path} is not unpacked: {error}, or unpack it yourself and give the folder."
            raise _RefusedError(msg) from None


def _zip_fault(info: zipfile.ZipInfo) -> str | None:
    if stat.S_ISLNK(info.external_attr >> 16):
        return "is a link"
    return "is encrypted" if info.flag_bits & 1 else None


def _tar_fault(info: tarfile.TarInfo) -> str | None:
    if info.issym() or info.islnk():
        return "is a link"
    return None if info.isreg() else "is no plain file"


def _name_fault(name: str) -> str | None:
    parts = PurePosixPath(name).parts
    if not parts or name.startswith("/") or ".." in parts or any(mark in name for mark in "\\:\0"):
        return "leads out of the folder"
    if len(parts) > _DEEPEST:
        return f"lies more than {_DEEPEST} folders deep"
    if max(len(os.fsencode(part)) for part in parts) > _LONGEST_NAME:
        return f"has a name of more than {_LONGEST_NAME} bytes"
    return None
