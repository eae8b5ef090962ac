"""What is wrong with a table of text, in a sentence that says where and what to do."""

from __future__ import annotations

import csv
import io
import re
import shlex
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import IO, Any

from lognmf.reading import short

_MISSING = {"", "na", "n/a", "#n/a", "nan", "null", "none"}
_THOUSANDS = re.compile(r"[-+]?\d{1,3}(,\d{3})+(\.\d*)?")
_UTF16 = (b"\xff\xfe", b"\xfe\xff")


def is_number(cell: str) -> bool:
    """Whether a cell of text is a number, or empty."""
    if cell.strip().lower() in _MISSING:
        return True
    try:
        float(cell)
    except ValueError:
        return False
    return True


def not_utf8(path: Path, kind: str, start: bytes = b"") -> ValueError:
    """The error that text of a ``kind`` has another encoding; ``start`` are its first bytes, if known."""
    coding, name = ("utf-16", "UTF-16") if start[:2] in _UTF16 else ("latin1", "Latin-1 or Windows-1252")
    example = f", for example with iconv -f {coding} -t utf-8 {shlex.quote(str(path))} > utf8.{kind}"
    return ValueError(
        f"{path} cannot be read as {kind}: it is not encoded in UTF-8, but perhaps in {name}; save it as "
        f"UTF-8{'' if kind.endswith('gz') else example}."
    )


def uneven_line(opened: Callable[[], IO[bytes]], delimiter: str) -> str | None:
    """Which line has another number of cells than the first, if one has."""
    with opened() as file:
        rows = csv.reader(io.TextIOWrapper(file, "utf-8-sig", "replace", newline=""), delimiter=delimiter)
        width = 0
        try:
            for row in rows:
                width = width or len(row)
                if row and len(row) != width:
                    line = f"line {rows.line_num} has {len(row)} cells, and the first line has {width}"
                    return f"{line}; all must have the same number"
        except csv.Error:  # a cell is too long to be one
            pass
    return None


def check_spelling(column: str, cells: Iterable[Any], decimal: str, path: Path) -> None:
    """Refuse a column of numbers some of which are spelled as text; a column of words passes."""
    texts = [str(cell) for cell in cells if cell is not None]
    known = [text for text in texts if text.strip().lower() not in _MISSING]
    odd = [text for text in known if not is_number(text.replace(",", ".") if decimal == "," else text)]
    if not odd:
        return
    grouped = _THOUSANDS.fullmatch(odd[0].strip()) is not None
    if not grouped and 2 * len(odd) > len(known):
        return
    advice = "write numbers without commas between thousands" if grouped else "replace it, or leave it empty"
    msg = (
        f"Column {column} of {path} holds {short(odd[0])!r} in row {_row(cells, odd[0])} of the data, which "
        f"is not a number: {advice}."
    )
    raise ValueError(msg)


def _row(cells: Iterable[Any], wanted: str) -> int:
    """The number of the first row with a cell."""
    return next(number for number, cell in enumerate(cells, start=1) if cell == wanted)
