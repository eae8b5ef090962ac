"""Objectives over the iterations, several models and data sets beside one another."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from lognmf.plots.palette import line_styles
from lognmf.plots.panels import panels

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["convergence_curves"]

_NUMBERS = {0.6: tuple(range(1, 10)), 1.3: (1, 2, 3, 5, 7), 3.0: (1, 2, 5)}
"""First digits that are written on an axis of less than so many powers of ten."""


def convergence_curves(
    histories: Mapping[str, Mapping[str, Mapping[str, Any]]], *, most: int | None = 200
) -> Figure:
    """The objective over the iterations, a row for each model and a column for each data set.

    The random start, whose objective dwarfs all that follows, is left out.

    Parameters
    ----------
    histories : mapping of str to mapping of str to mapping
        By model and data set, ``iteration`` and ``objective`` as in ``history_``.
    most : int or None, default=200
        Iterations that are drawn; None for all.

    Returns
    -------
    matplotlib.figure.Figure
    """
    named = [(m, s, history) for m, sets in histories.items() for s, history in sets.items()]
    columns = max(len(sets) for sets in histories.values())
    if any(len(sets) != columns for sets in histories.values()):
        msg = "convergence_curves needs the same data sets for every model."
        raise ValueError(msg)
    figure, places = panels([f"{model}, {name}" for model, name, _ in named], columns=columns, height=2.3)
    positive = all(np.min(history["objective"]) > 0 for *_, history in named)
    colours = {model: style["color"] for model, style in line_styles(histories).items()}
    for axes, (model, _, history) in zip(places, named, strict=True):
        iteration, objective = (np.asarray(history[key], dtype=float) for key in ("iteration", "objective"))
        drawn = (iteration <= (np.inf if most is None else most)) & ((iteration > 0) | (len(iteration) == 1))
        axes.plot(iteration[drawn], objective[drawn], color=colours[model], linewidth=1.9)
        axes.set_xlim(0, max(iteration[drawn][-1], 1))
        if positive:
            _few_numbers(axes)
    for axes in places[::columns]:
        axes.set_ylabel("objective")
    for axes in places[-columns:]:
        axes.set_xlabel("iteration")
    return figure


def _few_numbers(axes: Axes) -> None:
    """A log scale with plain numbers, also where it spans less than a power of ten."""
    from matplotlib.ticker import LogLocator, NullFormatter

    axes.set_yscale("log")
    low, high = axes.dataLim.intervaly
    decades = np.log10(high / low)
    subs = next((subs for most, subs in _NUMBERS.items() if decades < most), (1,))
    axes.yaxis.set_major_locator(LogLocator(subs=subs, numticks=10))
    axes.yaxis.set_major_formatter("{x:g}")
    axes.yaxis.set_minor_formatter(NullFormatter())
