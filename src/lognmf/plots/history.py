"""How a fit went."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from lognmf.plots.canvas import ACCENT, new_figure, tidy

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def convergence(history: Mapping[str, Any]) -> Figure:
    """The objective over the iterations, and its relative decrease, which decides when to stop.

    Parameters
    ----------
    history : mapping
        ``iteration`` and ``objective``, as in ``history_``.

    Returns
    -------
    matplotlib.figure.Figure
    """
    iteration, objective = np.asarray(history["iteration"]), np.asarray(history["objective"], dtype=float)
    figure = new_figure(9, 3.4)
    left, right = figure.subplots(1, 2)
    left.plot(iteration, objective, color=ACCENT, linewidth=1.8, marker="." if len(objective) < 30 else "")
    left.set(xlabel="iteration", ylabel="objective", title=f"Objective, {objective[-1]:.5g} at the end")
    if objective.min() > 0:
        left.set_yscale("log")
    size = np.abs(objective[:-1]) * np.diff(iteration)
    fall = np.divide(-np.diff(objective), size, out=np.zeros(len(size)), where=size > 0)
    if (fall > 0).any():
        shown = np.where(fall > 0, fall, np.nan)
        right.plot(iteration[1:], shown, color=ACCENT, linewidth=1.8, marker="." if len(fall) < 30 else "")
        right.set_yscale("log")
    else:
        right.text(0.5, 0.5, "no decrease", ha="center", va="center", color="0.4", transform=right.transAxes)
    right.set(xlabel="iteration", ylabel="decrease / objective", title="Relative decrease per iteration")
    for axes in (left, right):
        tidy(axes)
        axes.set_xlim(0, max(iteration[-1], 1))
        axes.grid(color="0.9", linewidth=0.8)
    return figure
