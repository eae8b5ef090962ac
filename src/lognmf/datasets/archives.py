"""Untrusted archives: nothing is written outside the folder, and the unpacked size is limited."""

from __future__ import annotations

import os
import stat
import tarfile
import zipfile
import zlib
from pathlib import Path, PurePosixPath

__all__ = ["ENDINGS", "is_archive", "unpack"]

ENDINGS = (".zip", ".tar", ".tar.gz", ".tgz", ".tar.bz2", ".tar.xz")
"""How the names of archives end."""

_DAMAGE = (zipfile.BadZipFile, tarfile.TarError, zlib.error, EOFError, NotImplementedError)


def is_archive(path: str | os.PathLike[str]) -> bool:
    """Whether ``path`` is an archive, going by the end of its name."""
    return os.fspath(path).lower().endswith(ENDINGS)


def unpack(path: Path, folder: Path, *, most_bytes: int = 4 << 30, most_files: int = 1_000_000) -> None:
    """Unpack a zip or tar archive into an empty folder; refuse a suspicious one before writing anything."""
    if any(folder.iterdir()):
        msg = f"{folder} is not empty: unpack {path} into an empty folder."
        raise FileExistsError(msg)
    archive: zipfile.ZipFile | tarfile.TarFile
    try:
        # Neither library reads more of a file than its header says, so the check below holds.
        if path.name.lower().endswith(".zip"):
            with zipfile.ZipFile(path) as archive:
                zipped = [info for info in archive.infolist() if not info.is_dir()]
                sizes = [(info.filename, info.file_size, _zip_fault(info)) for info in zipped]
                _check(path, sizes, most_bytes, most_files)
                archive.extractall(folder, zipped)
        else:
            with tarfile.open(path) as archive:
                members = [info for info in archive.getmembers() if not info.isdir()]
                _check(path, [(m.name, m.size, _tar_fault(m)) for m in members], most_bytes, most_files)
                archive.extractall(folder, members, filter="data")
    except _DAMAGE as error:
        reason = " ".join(str(error).split()).rstrip(".") or type(error).__name__
        msg = f"{path} cannot be unpacked: {reason}. Get it again."
        raise ValueError(msg) from error


def _check(path: Path, files: list[tuple[str, int, str | None]], most_bytes: int, most_files: int) -> None:
    """Refuse an archive by the names, sizes and faults of its files."""
    size = sum(size for _, size, _ in files)
    if len(files) > most_files or size > most_bytes:
        msg = (
            f"{path} is not unpacked: it holds {len(files)} files of {size} bytes, and at most "
            f"{most_files} files of {most_bytes} bytes are allowed. Unpack it yourself and give the folder."
        )
        raise ValueError(msg)
    seen: set[str] = set()
    for name, _, fault in files:
        fault = fault or ("leads out of the folder" if _leads_out(name) else None)
        fault = fault or ("comes twice" if name in seen else None)
        if fault:
            msg = f"{path} is not unpacked, because {name!r} in it {fault}: it may be an attack."
            raise ValueError(msg)
        seen.add(name)


def _zip_fault(info: zipfile.ZipInfo) -> str | None:
    if stat.S_ISLNK(info.external_attr >> 16):
        return "is a link"
    return "is encrypted" if info.flag_bits & 1 else None


def _tar_fault(info: tarfile.TarInfo) -> str | None:
    if info.issym() or info.islnk():
        return "is a link"
    return None if info.isreg() else "is no plain file"


def _leads_out(name: str) -> bool:
    parts = PurePosixPath(name).parts
    return not parts or name.startswith("/") or ".." in parts or any(mark in name for mark in "\\:\0")
