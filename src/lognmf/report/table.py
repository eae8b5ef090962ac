"""How the cells of a table read: our number, the paper's, the difference, and which number is the best."""

from __future__ import annotations

import math
from typing import Any

from lognmf.report.page import Cell, Table

__all__ = ["table_context"]

_MINUS, _DASH = "\N{MINUS SIGN}", "\N{EN DASH}"
_LARGE = 3
"""A difference is large above this many tolerances."""


def table_context(table: Table, anchor: str) -> dict[str, Any]:
    """What the template shows of a table; ``anchor`` is its name in the page."""
    notes = _notes(table)
    note_ids = {note: f"{anchor}--note-{i}" for i, note in enumerate(notes, start=1)}
    best = _best(table)
    has_paper = any(cell.paper is not None for _, cells in table.rows for cell in cells)
    return {
        "title": table.title,
        "caption": table.caption,
        "corner": table.corner,
        "tolerances": (f"{table.tolerance:g}", f"{_LARGE * table.tolerance:g}") if has_paper else (),
        # The order of the first click: the best numbers come first.
        "columns": [
            (title, "ascending" if _direction(table, j) < 0 else "descending")
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
