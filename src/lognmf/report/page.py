"""The contents of a page: cells, tables, figures and sections. All text is plain; none of it is HTML."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Drawing


@dataclass(frozen=True)
class Cell:
    """One entry of a table."""

    value: float | str | None  # a number, a word, or None, which is shown as a dash
    spread: float | None = None  # its standard deviation, shown as ± spread
    paper: float | None = None  # the published number, shown below; the difference colours the cell
    note: str = ""  # an explanation, shown on hover and on focus, and listed below the table


@dataclass(frozen=True)
class Table:
    """A table whose columns sort."""

    title: str
    caption: str
    columns: tuple[str, ...]  # titles, except that of the first column, which holds the names of the rows
    rows: tuple[tuple[str, tuple[Cell, ...]], ...]  # name and cells of each, one cell per column
    corner: str = ""  # title of the first column
    form: str | tuple[str, ...] = ".1f"  # format of the numbers, for all columns or one for each
    better: tuple[int, ...] = ()  # per column 1 if higher is better, -1 if lower, 0 if neither; default 1
    best: str = "row"  # where the best number is bold: in each "row", in each "column", or nowhere ("")
    best_word: str = "best"  # how rows of a wide table name the column of their best number
    tolerance: float = 3.0  # differences from the paper up to this size are not coloured

    def __post_init__(self) -> None:
        for name, cells in self.rows:
            if len(cells) != len(self.columns):
                msg = (
                    f"Table {self.title!r} has {len(self.columns)} columns, but its row {name!r} has "
                    f"{len(cells)} cells: give one cell for each column."
                )
                raise ValueError(msg)
        for what, given in {"form": self.form, "better": self.better}.items():
            if isinstance(given, tuple) and given and len(given) != len(self.columns):
                msg = (
                    f"{what} must have one entry for each of the {len(self.columns)} columns; got {given!r}."
                )
                raise ValueError(msg)
        if self.best not in ("row", "column", ""):
            msg = f"best must be 'row', 'column' or ''; got {self.best!r}."
            raise ValueError(msg)


@dataclass(frozen=True, eq=False)
class Figure:
    """A matplotlib figure with its heading: an SVG, or a PNG where that would be very large."""

    title: str
    caption: str
    figure: Drawing


@dataclass(frozen=True, eq=False)
class Section:
    """A part of a page."""

    title: str  # also listed in the table of contents
    text: tuple[str, ...] = ()  # paragraphs; those that start with "- " are a list, between backticks is code
    items: tuple[Table | Figure, ...] = ()  # shown below the text


@dataclass(frozen=True)
class Highlight:
    """A number, written out, that stands out at the top of a page, and what it is."""

    value: str
    label: str


@dataclass(frozen=True)
class Method:
    """A method that a page names: what the name stands for, and where it is described."""

    name: str  # as in the tables, whose rows of this name link here
    title: str
    meaning: str = ""
    reference: str = ""


@dataclass(frozen=True, eq=False)
class Page:
    """A page."""

    title: str
    subtitle: str
    sections: tuple[Section, ...]
    facts: Mapping[str, str] = field(default_factory=dict)  # how the results were computed, shown at the end
    highlights: tuple[Highlight, ...] = ()
    methods: tuple[Method, ...] = ()  # spelled out below the sections
