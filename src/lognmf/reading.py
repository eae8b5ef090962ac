"""Files from elsewhere: what they may unpack to, arrays checked before they are read, names fit to print."""

from __future__ import annotations

import math
import os
import re
import zipfile
from pathlib import Path
from typing import IO

import numpy as np

LIMIT_VARIABLE = "LOGNMF_MAX_BYTES"

_ALWAYS, _RATIO = 1 << 28, 100
"""Bytes of memory that any file may need, and how many for each of its own."""
_LONGEST = 300
_END_OF_ZIP, _ELSEWHERE = 22, 0xFFFF
"""Bytes of the last record of a zip file, and its number of files where another record has that."""
_UNPRINTABLE = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")


class LimitError(ValueError):
    """A file needs too much memory, or the variable that sets the limit is no number."""


def usual_bytes(packed: int) -> int:
    """Bytes that ``packed`` bytes may become unless LOGNMF_MAX_BYTES is set: 100 times as many or 256 MiB."""
    return max(_ALWAYS, _RATIO * packed)


def most_bytes(packed: int) -> int:
    """Bytes that ``packed`` bytes may become here."""
    named = os.environ.get(LIMIT_VARIABLE)
    if named is None:
        return usual_bytes(packed)
    if not named.isdecimal():
        msg = f"{LIMIT_VARIABLE} must be a number of bytes; got {named!r}."
        raise LimitError(msg)
    return int(named)


def check_unpacked(size: int, packed: int) -> None:
    """Refuse ``packed`` bytes that become too many; the caller's message says which file they are."""
    if size > (most := most_bytes(packed)):
        msg = (
            f"it needs {size} bytes of memory, and a file of {packed} bytes may need at most {most}; if you "
            f"trust it, set the environment variable {LIMIT_VARIABLE}={size}"
        )
        raise LimitError(msg)


def check_npy(stream: IO[bytes], size: int) -> None:
    """Refuse an array of ``size`` bytes, header included, that does not hold what its header promises."""
    old = np.lib.format.read_magic(stream) == (1, 0)
    read_header = np.lib.format.read_array_header_1_0 if old else np.lib.format.read_array_header_2_0
    try:
        shape, _, dtype = read_header(stream)
    except Exception as error:  # NumPy has Python parse the header, which fails in many ways
        msg = f"its header cannot be read: {reason(error)}"
        raise ValueError(msg) from error
    promised, held = math.prod(shape) * dtype.itemsize, size - stream.tell()
    if min(shape, default=0) < 0 or (promised != held and not dtype.hasobject):  # NumPy refuses objects
        msg = f"its header promises {promised} bytes of values, and it holds {held}"
        raise ValueError(msg)


def check_npz(path: str | os.PathLike[str]) -> None:
    """Refuse an npz file that unpacks to too much, or whose arrays do not hold what their headers promise.

    Then NumPy reads every array to its end, and only there the zip format compares checksums.
    """
    with zipfile.ZipFile(path) as archive:
        members = zip_members(archive, path)
        check_unpacked(sum(member.file_size for member in members), Path(path).stat().st_size)
        seen = set()
        for member in members:
            name = member.filename.removesuffix(".npy")
            if name in seen:
                msg = f"the name {name!r} comes twice"
                raise ValueError(msg)
            seen.add(name)
            if member.filename.endswith(".npy"):
                with archive.open(member) as stream:
                    check_npy(stream, member.file_size)


def zip_members(archive: zipfile.ZipFile, path: str | os.PathLike[str]) -> list[zipfile.ZipInfo]:
    """All members of a zip file; refused if some were lost, which zipfile itself does not notice."""
    members = archive.infolist()
    with Path(path).open("rb") as file:
        file.seek(-_END_OF_ZIP - len(archive.comment), os.SEEK_END)
        expected = int.from_bytes(file.read(12)[10:], "little")
    if expected not in (len(members), _ELSEWHERE):
        msg = f"it should hold {expected} files, and its table of contents lists {len(members)}"
        raise ValueError(msg)
    return members


def printable(name: str) -> str:
    r"""``name`` with control characters, and bytes that are no UTF-8, as escapes like ``\xff``."""
    return _UNPRINTABLE.sub(_escape, name)


def _escape(found: re.Match[str]) -> str:
    code = ord(found[0])
    if 0xDC80 <= code <= 0xDCFF:  # how Python spells a byte of a file's name that is no UTF-8
        code -= 0xDC00
    return f"\\x{code:02x}" if code < 256 else f"\\u{code:04x}"


def reason(error: BaseException) -> str:
    """The message of ``error`` in one short line, without a full stop; its type where it has none."""
    return short(" ".join(str(error).split())).rstrip(".") or type(error).__name__


def short(text: str) -> str:
    """What can be printed of ``text``, without the middle where it is long: messages quote whole headers."""
    text = printable(text)
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST // 2]} … {text[-_LONGEST // 2 :]}"
