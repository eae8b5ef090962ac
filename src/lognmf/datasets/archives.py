"""Archives from strangers, unpacked so that nothing lands outside the folder and no disk is filled."""

from __future__ import annotations

import os
import stat
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import IO, Any

__all__ = ["ENDINGS", "is_archive", "unpack"]

ENDINGS = (".zip", ".tar", ".tar.gz", ".tgz", ".tar.bz2", ".tar.xz")
"""How the names of archives end."""

_MOST_BYTES = 4 << 30
_MOST_FILES = 1_000_000
_CHUNK = 1 << 20
_DAMAGE = (zipfile.BadZipFile, tarfile.TarError, zlib.error, EOFError, NotImplementedError)


def is_archive(path: str | os.PathLike[str]) -> bool:
    """Whether ``path`` is an archive, going by the end of its name.

    Parameters
    ----------
    path : path

    Returns
    -------
    bool
    """
    return os.fspath(path).lower().endswith(ENDINGS)


def unpack(
    path: str | os.PathLike[str],
    folder: str | os.PathLike[str],
    *,
    most_bytes: int = _MOST_BYTES,
    most_files: int = _MOST_FILES,
) -> None:
    """Unpack a zip or tar archive into an empty folder.

    Parameters
    ----------
    path : path
        The archive.
    folder : path
        Where its files go. It must be empty, so that nothing can be overwritten.
    most_bytes, most_files : int
        How much it may hold, unpacked.

    Raises
    ------
    ValueError
        Before anything is written, if a name leads out of the folder, if it holds a link or
        a device, is encrypted, too large or damaged. What a damaged one held before the
        damage may be in the folder.
    """
    path, folder = Path(path), Path(folder)
    if any(folder.iterdir()):
        msg = f"{folder} is not empty: unpack {path} into an empty folder."
        raise FileExistsError(msg)
    with _members(path) as members:
        _check(path, members, most_bytes, most_files)
        left = most_bytes
        for member in members:
            target = folder.joinpath(*PurePosixPath(member.name).parts)
            target.parent.mkdir(parents=True, exist_ok=True)
            left -= _copy(member, target, left, path)


@dataclass(frozen=True)
class _Member:
    name: str
    size: int
    fault: str | None
    open: Callable[[], IO[bytes] | None]


@contextmanager
def _members(path: Path) -> Iterator[list[_Member]]:
    """The files of an archive; damage of any kind becomes one sentence."""
    try:
        if path.name.lower().endswith(".zip"):
            with zipfile.ZipFile(path) as archive:
                yield [_zipped(archive, info) for info in archive.infolist() if not info.is_dir()]
        else:
            with tarfile.open(path) as archive:
                yield [_tarred(archive, info) for info in archive.getmembers() if not info.isdir()]
    except _DAMAGE as error:
        reason = " ".join(str(error).split()).rstrip(".") or type(error).__name__
        msg = f"{path} cannot be unpacked: {reason}. Get it again."
        raise ValueError(msg) from error


def _zipped(archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> _Member:
    mode = info.external_attr >> 16
    fault = "is a link" if stat.S_ISLNK(mode) else "is encrypted" if info.flag_bits & 1 else None
    return _Member(info.filename, info.file_size, fault, lambda: archive.open(info))


def _tarred(archive: tarfile.TarFile, info: tarfile.TarInfo) -> _Member:
    fault = "is a link" if info.issym() or info.islnk() else None if info.isreg() else "is no plain file"
    return _Member(info.name, info.size, fault, lambda: archive.extractfile(info))


def _check(path: Path, members: list[_Member], most_bytes: int, most_files: int) -> None:
    """Refuse an archive by what its list of files says."""
    size = sum(member.size for member in members)
    if len(members) > most_files or size > most_bytes:
        msg = (
            f"{path} is not unpacked: it holds {len(members)} files of {size} bytes, and at most "
            f"{most_files} files of {most_bytes} bytes are taken. Unpack it yourself and give the folder."
        )
        raise ValueError(msg)
    seen: set[str] = set()
    for member in members:
        fault = member.fault or ("leads out of the folder" if _leads_out(member.name) else None)
        fault = fault or ("comes twice" if member.name in seen else None)
        if fault:
            msg = f"{path} is not unpacked, because {member.name!r} in it {fault}: it may be an attack."
            raise ValueError(msg)
        seen.add(member.name)


def _leads_out(name: str) -> bool:
    parts = PurePosixPath(name).parts
    return (
        not parts or name.startswith("/") or ".." in parts or any(mark in name for mark in ("\\", ":", "\0"))
    )


def _copy(member: _Member, target: Path, most: int, path: Path) -> int:
    """Write one file; how many bytes it has. Its header may have lied."""
    content: Any = member.open()
    written = 0
    with content, target.open("xb") as file:
        while chunk := content.read(_CHUNK):
            written += len(chunk)
            if written > most:
                msg = f"{path} is not unpacked: {member.name!r} in it is larger than it says."
                raise ValueError(msg)
            file.write(chunk)
    return written
