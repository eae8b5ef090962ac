"""How the scores of a clustering change with two weights: the paper's figure of alpha and beta."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from lognmf.plots.canvas import DARK, new_figure
from lognmf.plots.palette import SCORES

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["score_maps"]

_MOST_NUMBERS = 100


def score_maps(
    sets: Mapping[str, Sequence[Mapping[str, Any]]], weights: tuple[str, str] = ("alpha", "beta")
) -> Figure:
    """Scores over the values of two weights as heat maps, on one scale of colours.

    The paper draws bars in three dimensions, whose heights hide one another; the numbers are
    the same.

    Parameters
    ----------
    sets : mapping of str to sequence of mappings
        Rows by the name of the data set, as from `fit_grid`: each holds both weights and some
        of ``accuracy``, ``nmi`` and ``purity`` as shares of one. Rows of the same weights are
        drawn as their mean.
    weights : (str, str), default=("alpha", "beta")
        Across and up.

    Returns
    -------
    matplotlib.figure.Figure
        A column for each data set and a row for each score.
    """
    scores = [s for s in SCORES if any(row.get(s) is not None for rows in sets.values() for row in rows)]
    if not scores:
        msg = f"score_maps needs rows with some of {', '.join(SCORES)}: give true labels to the study."
        raise ValueError(msg)
    figure = new_figure(3.1 * len(sets) + 1.0, 2.75 * len(scores) + 0.3)
    grid = figure.subplots(len(scores), len(sets), squeeze=False)
    for j, (name, rows) in enumerate(sets.items()):
        for i, score in enumerate(scores):
            axes = grid[i, j]
            mesh = _draw_map(axes, rows, weights, score)
            axes.set_title(f"{name}, {SCORES[score]['label']}", fontsize=10.5, color=DARK, parse_math=False)
            if i == len(scores) - 1:
                axes.set_xlabel(weights[0])
            if j == 0:
                axes.set_ylabel(weights[1])
    bar = figure.colorbar(mesh, ax=grid, fraction=0.03, pad=0.015, aspect=40)
    bar.set_label("percent")
    bar.outline.set_visible(False)
    return figure


def _draw_map(axes: Axes, rows: Sequence[Mapping[str, Any]], weights: tuple[str, str], score: str) -> Any:
    across, up = (sorted({row[weight] for row in rows}) for weight in weights)
    heights = np.full((len(up), len(across)), np.nan)
    for place in np.ndindex(heights.shape):
        wanted = (across[place[1]], up[place[0]])
        here = [row[score] for row in rows if tuple(row[weight] for weight in weights) == wanted]
        known = [100 * value for value in here if value is not None]
        if known:
            heights[place] = np.mean(known)
    mesh = axes.pcolormesh(heights, cmap="cividis", vmin=0, vmax=100, edgecolors="white", linewidth=1)
    for (i, j), height in np.ndenumerate(heights):
        if heights.size <= _MOST_NUMBERS and np.isfinite(height):
            text = axes.text(j + 0.5, i + 0.5, f"{height:.0f}", ha="center", va="center", fontsize=8)
            text.set_color("white" if height < 55 else "black")
    axes.set_xticks(np.arange(len(across)) + 0.5, [f"{value:g}" for value in across], fontsize=8)
    axes.set_yticks(np.arange(len(up)) + 0.5, [f"{value:g}" for value in up], fontsize=8)
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)
    return mesh
