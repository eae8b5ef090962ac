"""How the scores of a clustering change with one weight: the paper's figure of gamma."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from lognmf.plots.palette import SCORES
from lognmf.plots.panels import one_legend, panels

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["scores_by_weight"]


def scores_by_weight(sets: Mapping[str, Sequence[Mapping[str, Any]]], weight: str = "gamma") -> Figure:
    """Accuracy, NMI and purity over the values of a weight, a panel for each data set.

    Parameters
    ----------
    sets : mapping of str to sequence of mappings
        Rows by the name of the data set, as from `fit_grid`: each holds ``weight`` and some of
        ``accuracy``, ``nmi`` and ``purity`` as shares of one. Rows of the same weight, such as
        those of several seeds, are drawn as their mean, with a band from the least to the most.
    weight : str, default="gamma"
        Which one.

    Returns
    -------
    matplotlib.figure.Figure
    """
    figure, places = panels(list(sets))
    for axes, rows in zip(places, sets.values(), strict=True):
        values = sorted({float(row[weight]) for row in rows})
        for score, style in SCORES.items():
            found = [
                [100 * row[score] for row in rows if row[weight] == value and row.get(score) is not None]
                for value in values
            ]
            if not all(found):
                continue
            axes.plot(values, [np.mean(group) for group in found], markersize=5, linewidth=1.6, **style)
            least, most = [min(group) for group in found], [max(group) for group in found]
            if least != most:
                axes.fill_between(values, least, most, color=style["color"], alpha=0.15, linewidth=0)
        if min(values) > 0:
            axes.set_xscale("log")
        axes.set(ylim=(0, 102), xlabel=weight)
    places[0].set_ylabel("percent")
    one_legend(figure, places)
    return figure
