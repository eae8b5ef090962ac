"""What fits cost in time, several models on several data sets."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from lognmf.plots.canvas import new_figure, tidy
from lognmf.plots.palette import bar_colours
from lognmf.plots.panels import legend_columns, plain_words

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["fit_times"]


def fit_times(seconds: Mapping[str, Mapping[str, float | None]]) -> Figure:
    """Seconds a fit as bars on a log scale, a group for each data set.

    Parameters
    ----------
    seconds : mapping of str to mapping of str to float
        By data set and model. What is None or missing has no bar.

    Returns
    -------
    matplotlib.figure.Figure
    """
    models = list(dict.fromkeys(model for times in seconds.values() for model in times))
    colours = bar_colours(models)
    known = [value for times in seconds.values() for value in times.values() if value]
    if not known:
        msg = "fit_times needs at least one positive time."
        raise ValueError(msg)
    floor = 10 ** np.floor(np.log10(min(known) / 1.2))
    figure = new_figure(max(1.35 * len(seconds) + 1.2, 6.0), 4.0)
    axes = figure.subplots()
    width = 0.86 / len(models)
    for place, model in enumerate(models):
        heights = [times.get(model) or np.nan for times in seconds.values()]
        x = np.arange(len(seconds)) + width * (place - (len(models) - 1) / 2)
        axes.bar(x, np.array(heights) - floor, width * 0.92, bottom=floor, color=colours[model], label=model)
    axes.set_yscale("log")
    axes.set_ylim(floor, max(known) * 1.6)
    axes.yaxis.set_major_formatter("{x:g}")
    axes.set_xticks(range(len(seconds)), list(seconds), parse_math=False)
    axes.set_ylabel("seconds a fit (log scale)")
    axes.set_axisbelow(True)
    axes.grid(axis="y", color="0.9", linewidth=0.8)
    axes.tick_params(axis="x", length=0)
    tidy(axes)
    legend = figure.legend(
        loc="outside upper center", ncols=legend_columns(figure, models), frameon=False, fontsize=9
    )
    plain_words(legend)
    return figure
