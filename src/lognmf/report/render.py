"""A page as one HTML document with its style and script inside; the markup is in the template."""

from __future__ import annotations

import base64
import hashlib
import io
import math
import os
import re
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from importlib.resources import files
from itertools import count, groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lognmf.files import new_file
from lognmf.report.page import Cell, Figure, Page, Table

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Drawing

_PIXELS_PER_INCH = 96
"""CSS pixels per inch."""

_SHARPNESS = 2
"""Pixels of a photograph for each pixel of the page."""

_LARGEST_DRAWING = 400_000
"""Bytes of the marks of an SVG above which a PNG is easier on the reader's browser."""

_LARGEST_WITH_IMAGES = 1_500_000
"""The same with the images inside it."""

_MINUS, _DASH = "\N{MINUS SIGN}", "\N{EN DASH}"
_LARGE = 3
"""A difference is large above this many tolerances."""

_WIDE = 3
"""Columns from which a row says which of them is the best, as that one may be out of sight."""


def write_page(page: Page, path: str | os.PathLike[str]) -> Path:
    """Write ``page`` as one HTML file, which appears complete or not at all.

    Parameters
    ----------
    page : Page
        What to write.
    path : path
        The file. An existing one is replaced.

    Returns
    -------
    Path
        The file, as an absolute path.
    """
    text = render(page)
    with new_file(path, force=True) as fresh:
        fresh.write_text(text, encoding="utf-8", errors="backslashreplace", newline="\n")
    return Path(path).resolve()


def render(page: Page) -> str:
    """The page as an HTML document; the same page gives the same text."""
    return _template().render(
        page=page,
        sections=_sections(page),
        methods={method.name: _method_anchor(method.name) for method in page.methods},
        style=_resource("style.css").strip(),
        script=_resource("script.js").strip(),
    )


@cache
def _template() -> Any:
    from jinja2 import Environment, StrictUndefined

    environment = Environment(autoescape=True, undefined=StrictUndefined, keep_trailing_newline=True)
    environment.filters |= {"words": _words, "by_list": _by_list, "digest": _digest}
    return environment.from_string(_resource("page.html.j2"))


def _resource(name: str) -> str:
    return files("lognmf.report").joinpath(name).read_text(encoding="utf-8")


def _digest(text: str) -> str:
    """Hash by which the page's security policy allows just this style or script."""
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def _words(text: str) -> Any:
    """Escaped text; what stands between backticks is code, which breaks between its words only."""
    from markupsafe import Markup, escape

    def code(found: re.Match[str]) -> str:
        return f"<code>{' '.join(f'<span>{word}</span>' for word in found[1].split(' '))}</code>"

    return Markup(re.sub(r"`([^`]+)`", code, str(escape(text))))


def _by_list(text: Sequence[str]) -> Iterator[tuple[bool, list[str]]]:
    """Runs of lines, and whether they are entries of a list: those start with a dash."""
    for listed, lines in groupby(text, key=lambda line: line.startswith("- ")):
        yield listed, list(lines)


def _sections(page: Page) -> list[dict[str, Any]]:
    """What the template shows of the sections; their anchors are named first, those of their items then."""
    name = _anchors()
    anchors = [name(section.title) for section in page.sections]
    return [
        {"anchor": anchor, "section": section, "contents": [_item(i, name(i.title)) for i in section.items]}
        for anchor, section in zip(anchors, page.sections, strict=True)
    ]


def _item(item: Table | Figure, anchor: str) -> dict[str, Any]:
    shown = _table(item, anchor) if isinstance(item, Table) else {"image": _image(item.figure)}
    return {"anchor": anchor, "title": item.title, "caption": item.caption, **shown}


def _method_anchor(name: str) -> str:
    return f"method--{_slug(name)}"


def _slug(title: str) -> str:
    """Letters and digits of a title, with dashes between its words."""
    return "-".join(re.findall(r"[a-z0-9]+", title.lower())) or "part"


def _anchors() -> Callable[[str], str]:
    """A function that turns titles into anchors, each used once."""
    used = {"content", "facts", "methods", "theme"}

    def name(title: str) -> str:
        word = _slug(title)
        candidates = (word if i == 1 else f"{word}-{i}" for i in count(1))
        anchor = next(candidate for candidate in candidates if candidate not in used)
        used.add(anchor)
        return anchor

    return name


# Figures -------------------------------------------------------------------------------


def _image(figure: Drawing) -> dict[str, Any]:
    """A figure as an SVG, or as a PNG if that would be very large; on dark paper drawings are inverted."""
    import matplotlib as mpl

    # Letters as paths, because a picture inside a page has no fonts; with the salt its names repeat.
    look: Any = {"svg.fonttype": "path", "svg.hashsalt": "lognmf", "image.composite_image": False}
    dpi = _SHARPNESS * _PIXELS_PER_INCH
    with mpl.rc_context(look):
        metadata = {"Date": None, "Creator": None}
        content = _saved(figure, "svg", dpi=dpi, transparent=True, metadata=metadata)
    content = re.sub(rb"(?<=base64,)[^\"]+", _smaller, content)
    images = re.findall(rb"base64,[^\"]*", content)
    form = "svg+xml"
    if len(content) - sum(map(len, images)) > _LARGEST_DRAWING or len(content) > _LARGEST_WITH_IMAGES:
        content = _saved(figure, "png", dpi=dpi, facecolor="white", metadata={"Software": None})
        form = "png"
    width, height = (round(inches * _PIXELS_PER_INCH) for inches in figure.get_size_inches())
    return {
        "kind": "photo" if images or form == "png" else "drawing",
        "uri": f"data:image/{form};base64,{base64.b64encode(content).decode()}",
        "width": width,
        "height": height,
    }


def _smaller(found: re.Match[bytes]) -> bytes:
    """An image inside a drawing in as few colours as it has; without its transparency if it has none."""
    from PIL import Image

    picture = Image.open(io.BytesIO(base64.b64decode(found[0])))
    if picture.mode != "RGBA" or picture.getchannel("A").getextrema() != (255, 255):
        return found[0]
    red, green, blue, _ = picture.split()
    grey = red.tobytes() == green.tobytes() == blue.tobytes()
    file = io.BytesIO()
    (red if grey else picture.convert("RGB")).save(file, format="png", optimize=True)
    return base64.b64encode(file.getvalue())


def _saved(figure: Drawing, form: str, **options: Any) -> bytes:
    file = io.BytesIO()
    figure.savefig(file, format=form, **options)
    return file.getvalue()


# Tables --------------------------------------------------------------------------------


def _table(table: Table, anchor: str) -> dict[str, Any]:
    """What the template shows of a table; ``anchor`` is its name in the page."""
    notes = _notes(table)
    note_ids = {note: f"{anchor}--note-{i}" for i, note in enumerate(notes, start=1)}
    best = _best(table)
    has_paper = any(cell.paper is not None for _, cells in table.rows for cell in cells)
    return {
        "corner": table.corner,
        "best": table.best,
        "winners": [_winners(table, best, i) for i in range(len(table.rows))],
        "tolerances": (f"{table.tolerance:g}", f"{_LARGE * table.tolerance:g}") if has_paper else (),
        # The order after the first click: best numbers first.
        "columns": [
            (title, "ascending" if _direction(table, j) < 0 else "descending", _words_only(table, j))
            for j, title in enumerate(table.columns)
        ],
        "rows": [
            (
                name,
                [
                    _cell(table, cell, j) | {"best": (i, j) in best, "note_id": note_ids.get(cell.note)}
                    for j, cell in enumerate(cells)
                ],
            )
            for i, (name, cells) in enumerate(table.rows)
        ],
        "notes": [{"id": note_ids[note], "text": note, "cells": where} for note, where in notes.items()],
    }


def _words_only(table: Table, j: int) -> bool:
    """Whether a column has words and no number: it then stands at the left."""
    values = [cells[j].value for _, cells in table.rows]
    return any(isinstance(value, str) for value in values) and all(_number(v) is None for v in values)


def _cell(table: Table, cell: Cell, j: int) -> dict[str, Any]:
    form, number, paper = _form(table, j), _number(cell.value), _number(cell.paper)
    difference = None if number is None or paper is None else number - paper
    kinds = ["word"] if number is None else []
    if difference is not None:
        kinds.append(_kind(difference * (_direction(table, j) or 1), table.tolerance))
    if cell.note:
        kinds.append("noted")
    return {
        "kinds": " ".join(kinds),
        "sort": None if number is None else repr(number),
        "note": cell.note,
        "ours": _written(cell.value, form),
        "spread": "" if cell.spread is None else _written(cell.spread, form),
        "paper": "" if cell.paper is None else _written(cell.paper, form),
        "difference": "" if difference is None else _signed(difference, form),
    }


def _signed(difference: float, form: str) -> str:
    size = _written(abs(difference), form)
    sign = "±" if not size.strip("0.%") else "+" if difference > 0 else _MINUS
    return sign + size


def _kind(gain: float, tolerance: float) -> str:
    """Class of a cell by how much better ours is; a difference of exactly the tolerance counts as none."""
    if abs(gain) <= tolerance + 1e-9:
        return "near"
    return f"{'better' if gain > 0 else 'worse'} {'far' if abs(gain) > _LARGE * tolerance else 'off'}"


def _notes(table: Table) -> dict[str, list[str]]:
    """The notes of a table, each once, with the cells it belongs to."""
    notes: dict[str, list[str]] = {}
    for name, cells in table.rows:
        for column, cell in zip(table.columns, cells, strict=True):
            if cell.note:
                notes.setdefault(cell.note, []).append(f"{name}, {column}")
    return notes


def _best(table: Table) -> set[tuple[int, int]]:
    """Row and column of the best numbers; those that read the same are all the best."""
    if not table.best:
        return set()
    lines: dict[int, dict[tuple[int, int], tuple[float, str]]] = {}
    for i, (_, cells) in enumerate(table.rows):
        for j, cell in enumerate(cells):
            number, direction = _number(cell.value), _direction(table, j)
            if number is not None and direction:
                line = lines.setdefault(i if table.best == "row" else j, {})
                line[i, j] = (direction * number, _written(number, _form(table, j)))
    best = set()
    for line in lines.values():
        first = max(line.values())[1]
        if any(text != first for _, text in line.values()):  # where all are equal none is the best
            best |= {place for place, (_, text) in line.items() if text == first}
    return best


def _winners(table: Table, best: set[tuple[int, int]], i: int) -> str:
    """The columns in which a row of a wide table is best; nothing if it is not judged by its rows."""
    if table.best != "row" or len(table.columns) < _WIDE:
        return ""
    places = [j for j in range(len(table.columns)) if (i, j) in best]
    if not places:
        return ""
    number = _written(table.rows[i][1][places[0]].value, _form(table, places[0]))
    return f"{table.best_word}: {', '.join(table.columns[j] for j in places)} ({number})"


def _direction(table: Table, j: int) -> int:
    return table.better[j] if table.better else 1


def _form(table: Table, j: int) -> str:
    return table.form if isinstance(table.form, str) else table.form[j]


def _number(value: float | str | None) -> float | None:
    """A finite number, as Python's float, or None."""
    if value is None or isinstance(value, str):
        return None
    number = float(value)
    return number if math.isfinite(number) else None


def _written(value: float | str | None, form: str) -> str:
    if value is None:
        return _DASH
    if isinstance(value, str):
        return value
    if form.endswith("d") and math.isfinite(value):
        value = round(value)
    return f"{value:{form}}".replace("-", _MINUS) if math.isfinite(value) else str(value)
