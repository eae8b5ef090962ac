"""Objectives over the iterations, several models and data sets beside one another."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from lognmf.plots.palette import line_styles
from lognmf.plots.panels import panels

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["convergence_curves"]


def convergence_curves(
    histories: Mapping[str, Mapping[str, Mapping[str, Any]]], *, most: int | None = 200
) -> Figure:
    """The objective over the iterations, a row for each model and a column for each data set.

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
    colours = {model: style["color"] for model, style in line_styles(histories).items()}
    for axes, (model, _, history) in zip(places, named, strict=True):
        iteration, objective = (np.asarray(history[key], dtype=float) for key in ("iteration", "objective"))
        drawn = iteration <= (np.inf if most is None else most)
        axes.plot(iteration[drawn], objective[drawn], color=colours[model], linewidth=1.9)
        axes.set_xlim(0, max(iteration[drawn][-1], 1))
        if objective[drawn].min() > 0 and objective[drawn].max() > 20 * objective[drawn].min():
            axes.set_yscale("log")
        else:
            axes.ticklabel_format(axis="y", scilimits=(-3, 4))
    for axes in places[::columns]:
        axes.set_ylabel("objective")
    for axes in places[-columns:]:
        axes.set_xlabel("iteration")
    return figure
