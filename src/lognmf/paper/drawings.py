"""The drawings that only the study needs: curves, bars and heat maps over data sets and methods."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import cycle
from typing import TYPE_CHECKING, Any

import numpy as np

from lognmf.plots.style import (
    AXIS,
    DARK,
    GRID,
    draw_cells,
    new_figure,
    panels,
    tidy,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.legend import Legend

_MODELS = {
    "NMF": "#6e7781",
    "GNMF": "#117733",
    "RMNMF": "#882255",
    "WNMF": "#2e93cf",
    "CNMF": "#8a8a2a",
    "ONMF": "#aa4499",
    "Semi-NMF": "#b07f00",
    "LS-NMF": "#0072b2",
    "RLS-NMF": "#d55e00",
}
"""The same colour in every figure, safe for colour-blind readers; the paper's two models stand out."""

_OTHERS = ("#0072b2", "#d55e00", "#117733", "#aa4499", "#2e93cf", "#b07f00", "#6e7781", "#882255", "#8a8a2a")
_DASHES = ("-", (0, (5, 1.5)), (0, (1.2, 1.2)), (0, (6, 1.5, 1.2, 1.5)))
_MARKERS = "osD^vPX<>"
SCORES: dict[str, dict[str, Any]] = {
    "accuracy": {"label": "accuracy", "color": "#0072b2", "marker": "o"},
    "nmi": {"label": "NMI", "color": "#d55e00", "marker": "s"},
    "purity": {"label": "purity", "color": "#117733", "marker": "^"},
}
"""How the three scores of a clustering are drawn as lines."""

_DIGITS = {0.6: tuple(range(1, 10)), 1.3: (1, 2, 3, 5, 7), 3.0: (1, 2, 5)}
"""First digits of the tick labels on an axis that spans less than so many powers of ten."""

_ROUNDING = 1e-10
"""Distances to the end below this share of the objective are rounding."""

_SETTLED = 5
"""Earlier ratios do not set the limits of the axis."""

_RISES = 0.1
"""A method whose distance to the end grows in more than this share of the iterations is drawn thin."""

_MOST_NUMBERS = 100
"""Maximum number of cells of a heat map that hold their number."""

Histories = Mapping[str, Mapping[str, Mapping[str, Any]]]
"""``iteration`` and ``objective``, as in ``history_``, by two names."""

Sets = Mapping[str, Sequence[Mapping[str, Any]]]
"""Rows of a grid by data set."""


def convergence_curves(histories: Histories, most: int = 200) -> Figure:
    """The objective over the first ``most`` iterations: a row for each model, a column for each data set.

    The random start is left out: its objective is far larger than all that follow.
    """
    named = [(m, s, history) for m, sets in histories.items() for s, history in sets.items()]
    columns = max(len(sets) for sets in histories.values())
    figure, places = panels([f"{model}, {name}" for model, name, _ in named], columns=columns, height=2.3)
    positive = all(np.min(history["objective"]) > 0 for *_, history in named)
    colours = {model: style["color"] for model, style in line_styles(histories).items()}
    for axes, (model, _, history) in zip(places, named, strict=True):
        iteration, objective = (np.asarray(history[key], dtype=float) for key in ("iteration", "objective"))
        drawn = (iteration <= most) & ((iteration > 0) | (len(iteration) == 1))
        axes.plot(iteration[drawn], objective[drawn], color=colours[model], linewidth=1.9)
        axes.set_xlim(0, max(iteration[drawn][-1], 1))
        if positive:
            _log_scale(axes)
    _label_edges(places, columns, "objective")
    return figure


def _log_scale(axes: Axes) -> None:
    """A log scale with plain numbers, also where it spans less than a power of ten."""
    from matplotlib.ticker import LogLocator, NullFormatter

    axes.set_yscale("log")
    low, high = axes.dataLim.intervaly
    decades = np.log10(high / low)
    subs = next((subs for most, subs in _DIGITS.items() if decades < most), (1,))
    axes.yaxis.set_major_locator(LogLocator(subs=subs, numticks=10))
    axes.yaxis.set_major_formatter("{x:g}")
    axes.yaxis.set_minor_formatter(NullFormatter())


def _label_edges(places: list[Axes], columns: int, what: str) -> None:
    """Label the first column and the last row of a grid of panels."""
    for axes in places[::columns]:
        axes.set_ylabel(what)
    for axes in places[-columns:]:
        axes.set_xlabel("iteration")


def convergence_rate(iteration: Any, objective: Any) -> tuple[np.ndarray, np.ndarray]:
    """Iterations, and ``|f(t+1) − f*| / |f(t) − f*|`` with the last value as ``f*``.

    Where objectives are several iterations apart, the ratio is the geometric mean per iteration. Distances
    to the end that are mere rounding are left out.
    """
    iteration, objective = np.asarray(iteration, dtype=float), np.asarray(objective, dtype=float)
    distance = abs(objective - objective[-1])
    far = distance > _ROUNDING * abs(objective[-1])
    both_far = far[:-1] & far[1:]
    steps = np.diff(iteration)[both_far]
    return iteration[:-1][both_far], (distance[1:][both_far] / distance[:-1][both_far]) ** (1 / steps)


def convergence_rates(groups: Histories, most: int = 200) -> Figure:
    """Convergence rates of the first ``most`` iterations: a panel for each group, a line for each history."""
    figure, places = panels(list(groups), width=5.2, height=3.6, columns=min(len(groups), 2))
    for axes, histories in zip(places, groups.values(), strict=True):
        settled = []
        for name, style in line_styles(histories).items():
            t, ratio = convergence_rate(histories[name]["iteration"], histories[name]["objective"])
            drawn = t <= most
            descends = np.mean(ratio[drawn] > 1) <= _RISES if drawn.any() else True
            if not descends:
                style |= {"linewidth": 0.7, "marker": "", "zorder": 1}
            label = name if descends else f"{name} (not descending)"
            every = max(int(drawn.sum()) // 5, 1)
            axes.plot(t[drawn], ratio[drawn], label=label, markersize=4, markevery=every, **style)
            settled.append(ratio[drawn & (t >= _SETTLED) & descends])
        axes.axhline(1, color="0.35", linewidth=1, linestyle=(0, (2, 2)))
        axes.set(xlabel="iteration t", ylabel="|f(t+1) − f*| / |f(t) − f*|")
        place: dict[str, Any] = {"loc": "lower right", "ncols": 2}
        without_formulas(axes.legend(fontsize=8, handlelength=2.8, framealpha=1, edgecolor=AXIS, **place))
        axes.set_ylim(*_rate_limits(np.concatenate(settled)))
    return figure


def _rate_limits(ratios: np.ndarray) -> tuple[float, float]:
    """Limits that show nearly all ratios; a few outliers are cut off."""
    if not len(ratios):
        return 0.0, 1.05
    low, high = np.quantile(ratios, (0.02, 0.98))
    return min(max(float(low) - 0.05, 0.0), 0.9), min(max(float(high) + 0.01, 1.02), 1.3)


def sparseness_curves(sets: Mapping[str, Mapping[str, Mapping[str, Any]]]) -> Figure:
    """Hoyer's sparseness of U and V over the iterations, by data set and approach: a column for each set."""
    titles = [f"{name}, {factor}" for factor in "UV" for name in sets]
    figure, places = panels(titles, columns=len(sets), height=2.4)
    styles = line_styles(dict.fromkeys(approach for lines in sets.values() for approach in lines))
    drawn = [(factor, lines) for factor in "UV" for lines in sets.values()]
    for axes, (factor, lines) in zip(places, drawn, strict=True):
        for approach, line in lines.items():
            style = {"label": approach, "markersize": 4, "markevery": (0.1, 0.2), **styles[approach]}
            axes.plot(line["iteration"], line[f"sparseness_{factor}"], **style)
        axes.set_ylim(0, 1)
        axes.margins(x=0.01)
    _label_edges(places, len(sets), "sparseness")
    legend_above(figure, places, handlelength=2.6)
    return figure


def scores_by_weight(sets: Sets, weight: str) -> Figure:
    """Accuracy, NMI and purity in percent over the values of a weight, a panel for each data set.

    Rows of the same weight are drawn as their mean, with a band from the smallest to the largest.
    """
    figure, places = panels(list(sets))
    for axes, rows in zip(places, sets.values(), strict=True):
        values = sorted({float(row[weight]) for row in rows})
        for score, style in SCORES.items():
            groups = [
                [100 * row[score] for row in rows if row[weight] == value and row.get(score) is not None]
                for value in values
            ]
            if not all(groups):
                continue
            axes.plot(values, [np.mean(group) for group in groups], markersize=5, linewidth=1.6, **style)
            low, high = [min(group) for group in groups], [max(group) for group in groups]
            if low != high:
                axes.fill_between(values, low, high, color=style["color"], alpha=0.15, linewidth=0)
        if min(values) > 0:
            axes.set_xscale("log")
        axes.set(ylim=(0, 102), xlabel=weight)
    places[0].set_ylabel("percent")
    legend_above(figure, places, handlelength=2.6)
    return figure


def score_maps(sets: Sets, weights: tuple[str, str]) -> Figure:
    """Scores in percent over the values of two weights: a column for each data set, a row for each score.

    The paper shows the same numbers as bars in three dimensions, which hide one another.
    """
    scores = [s for s in SCORES if any(row.get(s) is not None for rows in sets.values() for row in rows)]
    figure = new_figure(3.1 * len(sets) + 1.0, 2.75 * len(scores) + 0.3)
    grid = figure.subplots(len(scores), len(sets), squeeze=False)
    for j, (name, rows) in enumerate(sets.items()):
        for i, score in enumerate(scores):
            axes = grid[i, j]
            mesh = _draw_scores(axes, rows, weights, score)
            axes.set_title(f"{name}, {SCORES[score]['label']}", fontsize=10.5, color=DARK, parse_math=False)
            if i == len(scores) - 1:
                axes.set_xlabel(weights[0])
            if j == 0:
                axes.set_ylabel(weights[1])
    bar = figure.colorbar(mesh, ax=grid, fraction=0.03, pad=0.015, aspect=40)
    bar.set_label("percent")
    bar.outline.set_visible(False)
    return figure


def _draw_scores(axes: Axes, rows: Sequence[Mapping[str, Any]], weights: tuple[str, str], score: str) -> Any:
    """A heat map of one score over two weights, in percent."""
    across, up = (sorted({row[weight] for row in rows}) for weight in weights)
    heights = np.full((len(up), len(across)), np.nan)
    for i, j in np.ndindex(heights.shape):
        here = [row for row in rows if (row[weights[0]], row[weights[1]]) == (across[j], up[i])]
        if given := [100 * row[score] for row in here if row[score] is not None]:
            heights[i, j] = np.mean(given)
    look: dict[str, Any] = {"cmap": "cividis", "vmin": 0, "vmax": 100, "linewidth": 1}
    mesh = draw_cells(axes, heights, (across, up), fontsize=8, **look)
    for (i, j), height in np.ndenumerate(heights):
        if heights.size <= _MOST_NUMBERS and np.isfinite(height):
            text = axes.text(j + 0.5, i + 0.5, f"{height:.0f}", ha="center", va="center", fontsize=8)
            text.set_color("white" if height < 55 else "black")
    return mesh


def fit_times(seconds: Mapping[str, Mapping[str, float | None]]) -> Figure:
    """Seconds per fit as bars on a log scale, a group for each data set; None has no bar."""
    models = list(dict.fromkeys(model for times in seconds.values() for model in times))
    colours = bar_colours(models)
    positive = [value for times in seconds.values() for value in times.values() if value]
    floor = 10 ** np.floor(np.log10(min(positive) / 1.2))
    figure = new_figure(max(1.35 * len(seconds) + 1.2, 6.0), 4.0)
    axes = figure.subplots()
    width = 0.86 / len(models)
    for place, model in enumerate(models):
        heights = [times.get(model) or np.nan for times in seconds.values()]
        x = np.arange(len(seconds)) + width * (place - (len(models) - 1) / 2)
        axes.bar(x, np.array(heights) - floor, width * 0.92, bottom=floor, color=colours[model], label=model)
    axes.set_yscale("log")
    axes.set_ylim(floor, max(positive) * 1.6)
    axes.yaxis.set_major_formatter("{x:g}")
    axes.yaxis.set_minor_formatter("")
    axes.set_xticks(range(len(seconds)), list(seconds), parse_math=False)
    axes.set_ylabel("seconds per fit (log scale)")
    axes.set_axisbelow(True)
    axes.grid(axis="y", color=GRID, linewidth=0.8)
    axes.tick_params(axis="x", length=0)
    tidy(axes)
    legend_above(figure, [axes])
    return figure


# Colours and legends ------------------------------------------------------------------------


def legend_above(figure: Figure, axes: Sequence[Axes], **options: Any) -> None:
    """One legend above all panels; each line is named once."""
    named: dict[str, Any] = {}
    for panel in axes:
        for handle, label in zip(*panel.get_legend_handles_labels(), strict=True):
            named.setdefault(label, handle)
    entry = 0.55 + 0.085 * max(map(len, named))
    columns = max(1, min(len(named), int(figure.get_size_inches()[0] / entry)))
    legend = figure.legend(
        list(named.values()),
        list(named),
        loc="outside upper center",
        ncols=columns,
        frameon=False,
        fontsize=9,
        **options,
    )
    without_formulas(legend)


def without_formulas(legend: Legend) -> None:
    """Show names as they are: a dollar sign begins no formula."""
    for text in legend.get_texts():
        text.set_parse_math(False)


def bar_colours(names: Iterable[str]) -> dict[str, str]:
    """A colour for each name: that of the model, or the next one."""
    names = list(names)
    if all(name in _MODELS for name in names):
        return {name: _MODELS[name] for name in names}
    return dict(zip(names, cycle(_OTHERS), strict=False))


def line_styles(names: Iterable[str]) -> dict[str, dict[str, Any]]:
    """Arguments of ``Axes.plot`` for each name: no two lines differ by colour alone."""
    ours = ("LS-NMF", "RLS-NMF")
    ways = zip(bar_colours(names).items(), cycle(_DASHES), cycle(_MARKERS), strict=False)
    return {
        name: {
            "color": colour,
            "linestyle": "-" if name in ours else dashes,
            "marker": marker,
            "linewidth": 2.2 if name in ours else 1.4,
            "zorder": 3 if name in ours else 2,
        }
        for (name, colour), dashes, marker in ways
    }
