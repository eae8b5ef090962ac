"""Several models side by side: scores and times."""

from __future__ import annotations

import reprlib
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from lognmf.plots.style import ACCENT, AXIS, DARK, GRID, new_figure, tidy

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_SCORES = {"accuracy": "#1f4e6b", "NMI": "#4f8fb3", "purity": "#80868f"}


def comparison(rows: Sequence[Any]) -> Figure:
    """Scores of several models next to their times; failed ones are named below.

    Parameters
    ----------
    rows : sequence of Row
        The models from top to bottom, as from `lognmf.compare`. With true labels
        their accuracy, NMI and purity are drawn, else the normalised cut.

    Returns
    -------
    matplotlib.figure.Figure

    Raises
    ------
    TypeError
        If ``rows`` are not those of a comparison.

    See Also
    --------
    lognmf.compare : The rows.

    Examples
    --------
    >>> from types import SimpleNamespace as Row
    >>> score = {"accuracy": 0.8, "nmi": 0.7, "purity": 0.8, "seconds": 0.2, "error": None}
    >>> figure = comparison([Row(model="LS-NMF", **score), Row(model="NMF", **score)])
    """
    rows = list(rows) if isinstance(rows, Iterable) and not isinstance(rows, str) else [rows]
    if strange := [row for row in rows if not (hasattr(row, "model") and hasattr(row, "error"))]:
        msg = f"rows must be those that lognmf.compare returns; got {reprlib.repr(strange[0])} among them."
        raise TypeError(msg)
    shown = [row for row in rows if row.error is None]
    labelled = any(row.accuracy is not None for row in shown)
    figure = new_figure(10, (0.52 if labelled else 0.38) * len(shown) + 1.4)
    left, right = figure.subplots(1, 2, width_ratios=(1.7, 1), sharey=True)
    if labelled:
        _draw_scores(left, shown)
    else:
        cuts = [row.normalized_cut or 0.0 for row in shown]
        left.barh(range(len(shown)), cuts, color=ACCENT, height=0.6)
        left.set_xlim(0, 1.12 * max(cuts, default=0) or 1)
        left.set_xlabel("normalised cut of the neighbour graph (lower is better)")
        _write_beside(left, cuts, range(len(shown)), (f"{cut:.3f}" for cut in cuts))
    _draw_seconds(right, [row.seconds or 0.0 for row in shown])
    left.set_yticks(range(len(shown)), [row.model for row in shown])
    left.set_ylim(len(shown) - 0.4, -0.6)
    for axes in (left, right):
        tidy(axes)
        axes.spines["left"].set_visible(False)
        axes.tick_params(axis="y", length=0)
        axes.set_axisbelow(True)
        axes.grid(axis="x", color=GRID, linewidth=0.8)
    if failed := [row.model for row in rows if row.error is not None]:
        figure.supxlabel(f"Without results: {', '.join(failed)}", fontsize=9, color="0.4", x=0.01, ha="left")
    return figure


def _draw_scores(axes: Axes, rows: Sequence[Any]) -> None:
    """Three bars for each method; the accuracy, by which they are sorted, in numbers and with its spread."""
    for place, (name, colour) in enumerate(_SCORES.items()):
        heights = [getattr(row, name.lower()) for row in rows]
        y = np.arange(len(rows)) + 0.26 * (place - 1)
        axes.barh(y, heights, height=0.23, color=colour, label=name)
        if place == 0:
            spread = [getattr(row, "accuracy_std", None) or 0.0 for row in rows]
            axes.errorbar(heights, y, xerr=spread, fmt="none", ecolor=DARK, elinewidth=1)
            ends = [height + one for height, one in zip(heights, spread, strict=True)]
            _write_beside(axes, ends, y, (f"{height:.3f}" for height in heights))
    axes.set_xlim(0, 1)
    axes.set_xlabel("agreement with the true labels")
    axes.legend(loc="lower left", bbox_to_anchor=(0, 1), ncols=3, frameon=False, fontsize=9)


def _draw_seconds(axes: Axes, seconds: Sequence[float]) -> None:
    """A dot for each model, between whole powers of ten."""
    shown = np.maximum(seconds, 1e-3)
    axes.hlines(range(len(shown)), 1e-9, shown, color=AXIS, linewidth=1)
    axes.scatter(shown, range(len(shown)), color=ACCENT, s=40, zorder=3)
    axes.set_xscale("log")
    low, high = (shown.min(), shown.max()) if len(shown) else (0.1, 1.0)
    axes.set_xlim(10 ** np.floor(np.log10(low / 1.5)), 10 ** np.ceil(np.log10(high * 2)))
    axes.xaxis.set_major_formatter("{x:g}")
    axes.xaxis.set_minor_formatter("")
    axes.tick_params(axis="x", which="minor", color=AXIS)
    axes.set_xlabel("seconds to the clusters (log scale)")
    words = [f"{value:.2g}" if value < 99 else f"{value:.0f}" for value in seconds]
    _write_beside(axes, shown, range(len(shown)), words, gap=7)


def _write_beside(
    axes: Axes, x: Iterable[float], y: Iterable[float], words: Iterable[str], *, gap: float = 4
) -> None:
    """Words to the right of the ends of bars, or of dots."""
    for spot, word in zip(zip(x, y, strict=True), words, strict=True):
        text = axes.annotate(word, spot, (gap, 0), textcoords="offset points", va="center")
        text.set(fontsize=8, color=DARK)
