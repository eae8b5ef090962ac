"""The contents of a page: cells, tables, figures and sections. All text is plain; none of it is HTML."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Drawing


@dataclass(frozen=True)
class Cell:
    """One entry of a table.

    Parameters
    ----------
    value : float, str or None
        A number, a word, or None, which is shown as a dash.
    spread : float, optional
        Its standard deviation, shown as ± spread.
    paper : float, optional
        The published number. It is shown below, with the difference, which colours the cell.
    note : str, default=""
        An explanation, shown on hover and on focus, and listed below the table.
    """

    value: float | str | None
    spread: float | None = None
    paper: float | None = None
    note: str = ""


@dataclass(frozen=True)
class Table:
    """A table whose columns sort.

    Parameters
    ----------
    title, caption : str
        The heading and the text below it.
    columns : tuple of str
        Titles of the columns, except the first one, which holds the names of the rows.
    rows : tuple of (str, tuple of Cell)
        Name and cells of each row, one cell per column.
    corner : str, default=""
        Title of the first column.
    form : str or tuple of str, default=".1f"
        Format of the numbers, for all columns or one for each.
    better : tuple of int, default=()
        For each column 1 if higher is better, -1 if lower is better, 0 if neither; default 1
        for all.
    best : {"row", "column", ""}, default="row"
        Where the best number is bold: in each row, in each column, or nowhere.
    tolerance : float, default=3
        Differences from the paper up to this size are not coloured.
    """

    title: str
    caption: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, tuple[Cell, ...]], ...]
    corner: str = ""
    form: str | tuple[str, ...] = ".1f"
    better: tuple[int, ...] = ()
    best: str = "row"
    tolerance: float = 3.0

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
    """A matplotlib figure with its heading.

    Parameters
    ----------
    title, caption : str
        The heading and the text below the figure.
    figure : matplotlib.figure.Figure
        A figure with photographs becomes a PNG, any other one an SVG.
    """

    title: str
    caption: str
    figure: Drawing


@dataclass(frozen=True, eq=False)
class Section:
    """A part of a page.

    Parameters
    ----------
    title : str
        The heading, which is also listed in the table of contents.
    text : tuple of str, default=()
        Paragraphs. Those that start with ``- `` become a list; words between backticks are code.
    items : tuple of Table and Figure, default=()
        Shown below the text.
    """

    title: str
    text: tuple[str, ...] = ()
    items: tuple[Table | Figure, ...] = ()


@dataclass(frozen=True)
class Highlight:
    """A number that stands out at the top of a page.

    Parameters
    ----------
    value : str
        The number, written out.
    label : str
        What it is.
    """

    value: str
    label: str


@dataclass(frozen=True, eq=False)
class Page:
    """A page.

    Parameters
    ----------
    title, subtitle : str
        The heading and the sentence below it.
    sections : tuple of Section
        In the order of the table of contents.
    facts : mapping of str to str, optional
        How the results were computed: command, versions, seeds, machine. Shown at the end.
    highlights : tuple of Highlight, default=()
        A few numbers that stand out at the top.
    """

    title: str
    subtitle: str
    sections: tuple[Section, ...]
    facts: Mapping[str, str] = field(default_factory=dict)
    highlights: tuple[Highlight, ...] = ()
