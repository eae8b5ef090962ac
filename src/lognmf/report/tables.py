"""A table as HTML: in each cell ours, the paper's number and the difference."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from html import escape

from lognmf.report.page import Cell, Table

__all__ = ["table"]

_MINUS, _DASH = "\N{MINUS SIGN}", "\N{EN DASH}"
_LARGE = 3
"""A difference is large beyond this many tolerances."""


def table(content: Table, anchor: str) -> str:
    """A table as HTML.

    Parameters
    ----------
    content : Table
    anchor : str
        Its name in the page.

    Returns
    -------
    str
    """
    notes = _notes(content)
    names = {note: f"{anchor}--note-{place}" for place, note in enumerate(notes, start=1)}
    best = _best(content)
    head = "".join(_heading(content, j) for j in range(len(content.columns)))
    body = "\n".join(
        f'<tr><th scope="row">{escape(name)}</th>'
        + "".join(_cell(content, cell, j, names, best=(i, j) in best) for j, cell in enumerate(cells))
        + "</tr>"
        for i, (name, cells) in enumerate(content.rows)
    )
    title = f"<h3>{escape(content.title)}</h3>" if content.title else ""
    caption = f"<p>{escape(content.caption)}</p>" if content.caption else ""
    label = f'aria-labelledby="{anchor}--caption"'
    return (
        f'<div class="table" id="{anchor}"><div class="caption" id="{anchor}--caption">{title}{caption}</div>'
        f'{_legend(content)}<div class="scroll" role="region" tabindex="0" {label}>'
        f'<table {label}><thead><tr><th scope="col">{escape(content.corner)}</th>{head}</tr></thead>\n'
        f"<tbody>\n{body}\n</tbody></table></div>{_note_list(notes, names)}</div>"
    )


def _heading(content: Table, j: int) -> str:
    """Title of a column; sorted, its best numbers come first."""
    first = "ascending" if _direction(content, j) < 0 else "descending"
    return f'<th scope="col" data-first="{first}">{escape(content.columns[j])}</th>'


def _cell(content: Table, cell: Cell, j: int, names: Mapping[str, str], *, best: bool) -> str:
    form, number, difference = _form(content, j), _number(cell.value), _difference(cell)
    kinds, more = [], ""
    if number is not None:
        more += f' data-sort="{number!r}"'
    else:
        kinds.append("word")
    if difference is not None:
        kinds.append(_kind(difference * (_direction(content, j) or 1), content.tolerance))
    if cell.note:
        kinds.append("noted")
        more += f' tabindex="0" data-note="{escape(cell.note)}" aria-describedby="{names[cell.note]}"'
    ours = escape(_written(cell.value, form))
    if best:
        ours = f"<b>{ours}</b>"
    if cell.spread is not None:
        ours += f' <span class="spread">± {escape(_written(cell.spread, form))}</span>'
    kind = f' class="{" ".join(kinds)}"' if kinds else ""
    return f'<td{kind}{more}><span class="ours">{ours}</span>{_published(cell.paper, difference, form)}</td>'


def _published(paper: float | None, difference: float | None, form: str) -> str:
    """The paper's number, and how far ours lies from it."""
    if paper is None:
        return ""
    shown = escape(_written(paper, form))
    if difference is not None:
        size = _written(abs(difference), form)
        sign = "±" if not size.strip("0.%") else "+" if difference > 0 else _MINUS
        shown += f' <span class="difference">{sign}{escape(size)}</span>'
    return f'<span class="paper"><span class="unseen">paper </span>{shown}</span>'


def _difference(cell: Cell) -> float | None:
    ours, paper = _number(cell.value), _number(cell.paper)
    return None if ours is None or paper is None else ours - paper


def _kind(gain: float, tolerance: float) -> str:
    """Class of a cell by how much better ours is; a difference of just the tolerance is none."""
    if abs(gain) <= tolerance + 1e-9:
        return "near"
    return f"{'better' if gain > 0 else 'worse'} {'far' if abs(gain) > _LARGE * tolerance else 'off'}"


def _legend(content: Table) -> str:
    if not any(cell.paper is not None for _, cells in content.rows for cell in cells):
        return ""
    small, large = f"{content.tolerance:g}", f"{_LARGE * content.tolerance:g}"
    keys = {
        "near": f"within {small} of the paper",
        "better off": f"better by more than {small}",
        "better far": f"by more than {large}",
        "worse off": f"worse by more than {small}",
        "worse far": f"by more than {large}",
    }
    items = "".join(f'<li class="{kind}">{escape(words)}</li>' for kind, words in keys.items())
    how = "Below each number: the paper's, and the difference."
    return f'<p class="how">{how}</p><ul class="legend" aria-label="Colours of the cells">{items}</ul>'


def _notes(content: Table) -> dict[str, list[str]]:
    """The notes of a table, each once, with the cells it belongs to."""
    notes: dict[str, list[str]] = {}
    for name, cells in content.rows:
        for column, cell in zip(content.columns, cells, strict=True):
            if cell.note:
                notes.setdefault(cell.note, []).append(f"{name}, {column}")
    return notes


def _note_list(notes: Mapping[str, Sequence[str]], names: Mapping[str, str]) -> str:
    if not notes:
        return ""
    items = "".join(
        f'<li><span class="where">{escape("; ".join(places))}:</span> '
        f'<span id="{names[note]}">{escape(note)}</span></li>'
        for note, places in notes.items()
    )
    return f'<details class="notes"><summary>Notes ({len(notes)})</summary><ul>{items}</ul></details>'


def _best(content: Table) -> set[tuple[int, int]]:
    """Places of the best numbers; those that read the same are all the best."""
    shown = {
        (i, j): (_direction(content, j) * number, _written(number, _form(content, j)))
        for i, (_, cells) in enumerate(content.rows)
        for j, cell in enumerate(cells)
        if (number := _number(cell.value)) is not None and _direction(content, j)
    }
    best = set()
    lines = {"row": 0, "column": 1}
    if content.best in lines:
        axis = lines[content.best]
        for line in {place[axis] for place in shown}:
            here = {place: value for place, value in shown.items() if place[axis] == line}
            words = max(here.values())[1]
            # Where all are equal none is the best.
            if len({value[1] for value in here.values()}) > 1:
                best |= {place for place, value in here.items() if value[1] == words}
    return best


def _direction(content: Table, j: int) -> int:
    return content.better[j] if content.better else 1


def _form(content: Table, j: int) -> str:
    return content.form if isinstance(content.form, str) else content.form[j]


def _number(value: float | str | None) -> float | None:
    """A finite number, as Python's float, or nothing."""
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
