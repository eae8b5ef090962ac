"""Small figures beside one another, with one legend for all."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from lognmf.plots.canvas import DARK, new_figure, tidy

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.legend import Legend

_MOST_COLUMNS = 4


def panels(
    titles: Sequence[str], *, width: float = 3.1, height: float = 2.7, columns: int | None = None
) -> tuple[Figure, list[Axes]]:
    """A figure with one panel for each title, in as few rows as fit, and its panels."""
    columns = min(len(titles), _MOST_COLUMNS) if columns is None else columns
    rows = math.ceil(len(titles) / columns)
    figure = new_figure(max(width * columns + 0.3, 4.0), height * rows + 0.3)
    places = list(figure.subplots(rows, columns, squeeze=False).reshape(-1))
    for axes in places[len(titles) :]:
        axes.set_axis_off()
    for axes, title in zip(places, titles, strict=False):
        axes.set_title(title, fontsize=10.5, color=DARK, parse_math=False)
        axes.grid(color="0.92", linewidth=0.8)
        tidy(axes)
    return figure, places[: len(titles)]


def legend_columns(figure: Figure, names: Sequence[str]) -> int:
    """How many entries of a legend fit beside one another."""
    entry = 0.55 + 0.085 * max(map(len, names))
    return max(1, min(len(names), int(figure.get_size_inches()[0] / entry)))


def one_legend(figure: Figure, axes: Sequence[Axes]) -> None:
    """The lines of all panels, each named once, above them."""
    named: dict[str, Any] = {}
    for panel in axes:
        for handle, label in zip(*panel.get_legend_handles_labels(), strict=True):
            named.setdefault(label, handle)
    legend = figure.legend(
        list(named.values()),
        list(named),
        loc="outside upper center",
        ncols=legend_columns(figure, list(named)),
        frameon=False,
        fontsize=9,
        handlelength=2.6,
    )
    plain_words(legend)


def plain_words(legend: Legend) -> None:
    """Names as they are: a dollar sign begins no formula."""
    for text in legend.get_texts():
        text.set_parse_math(False)
