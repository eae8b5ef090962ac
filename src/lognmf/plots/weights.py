"""How a clustering depends on the weights."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from lognmf.grid.select import LOOKED_AT, standings
from lognmf.plots.canvas import ACCENT, DARK, new_figure, tidy

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_MOST_NUMBERS = 120
_MARK = "#e07a1f"
_PANELS = {
    "normalized_cut": ("Normalised cut, lower is better", "Blues_r", ".3f", 0.1),
    "modularity": ("Modularity on the neighbour graph, higher is better", "Blues", ".4f", 0.02),
    "balance": ("Balance of the cluster sizes, higher is better", "Blues", ".4f", 0.02),
}
"""What is drawn of a setting: title, colours that are darker where it is better, how it is
written, and the least difference that takes all colours."""

_AXES = {
    "alpha": "alpha, sparsity of the parts",
    "beta": "beta, sparsity of the codes",
    "gamma": "gamma, outlier part",
    "lam": "lam, neighbour graph",
    "max_iter": "most iterations",
    "n_components": "number of parts",
}


def sensitivity(rows: Sequence[Mapping[str, Any]], by: str = "normalized_cut") -> Figure:
    """How the clusterings of a grid depend on its parameters, with the chosen setting marked.

    A heat map over the two parameters with the most values (at a tie, those on which the cut
    depends most), or lines where only one varies. Numbers are means over the seeds; of the
    other parameters the best setting is shown.

    Parameters
    ----------
    rows : sequence of mappings
        Rows of `fit_grid`, made with ``n_clusters`` or ``y``.
    by : {"normalized_cut", "balanced_cut", "balanced_modularity"}, default="normalized_cut"
        Criterion of the choice, as for `select`: what it weighs is drawn. "balanced_cut"
        shows the balance only of settings whose cut is good enough.

    Returns
    -------
    matplotlib.figure.Figure
    """
    ranked = _judged(standings(rows, by), by)
    values = _varied(ranked)
    if not values:
        msg = "sensitivity needs rows of several settings, in which a parameter varies."
        raise ValueError(msg)
    axis, *others = values
    panels = LOOKED_AT[by]
    height = 1.7 + 0.52 * max(len(values[others[0]]), 3) if others else 3.9
    figure = new_figure(4.8 * len(panels) + 0.4, height)
    all_axes = figure.subplots(1, len(panels), squeeze=False)[0]
    for axes, panel in zip(all_axes, panels, strict=True):
        if others:
            _draw_heat(axes, ranked, (axis, others[0]), values, panel)
        else:
            _draw_line(axes, rows, ranked, (axis, values[axis]), panel)
        axes.set_title(_PANELS[panel][0], fontsize=10.5, color=DARK)
        axes.set_xlabel(_AXES.get(axis, axis))
    if others:
        all_axes[0].set_ylabel(_AXES.get(others[0], others[0]))
    dashes = any(np.isnan(place[panel]) for place in ranked for panel in panels)
    story = _story(ranked[0], rows, sorted(others[1:]), dashes=dashes)
    figure.suptitle(story, fontsize=10, color=DARK, x=0.012, ha="left")
    return figure


def _parameters(place: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in place.items() if name not in ("score", *_PANELS)}


def _varied(ranked: Sequence[Mapping[str, Any]]) -> dict[str, list[Any]]:
    """Values of the parameters that vary, those with the most first, at a tie the most decisive."""
    values: dict[str, list[Any]] = {}
    for name in _parameters(ranked[0]):
        found = list({str(place[name]): place[name] for place in ranked}.values())
        if len(found) > 1:
            numbers = all(isinstance(value, int | float) for value in found)
            values[name] = sorted(found) if numbers else found
    reach = {name: np.ptp([_best(ranked, {name: v})["score"] for v in values[name]]) for name in values}
    return {name: values[name] for name in sorted(values, key=lambda n: (-len(values[n]), -reach[n]))}


def _best(ranked: Sequence[Mapping[str, Any]], wanted: Mapping[str, Any]) -> Mapping[str, Any]:
    """The best setting with these values; nothing where there is none."""
    fitting = (place for place in ranked if all(str(place[n]) == str(v) for n, v in wanted.items()))
    return next(fitting, {})


def _judged(ranked: list[dict[str, Any]], by: str) -> list[dict[str, Any]]:
    """Without the balance of settings whose cut is too large, as it does not count there."""
    if by != "balanced_cut":
        return ranked
    return [place | {"balance": np.nan} if place["score"] > 1 else place for place in ranked]


def _draw_heat(
    axes: Axes,
    ranked: Sequence[Mapping[str, Any]],
    names: tuple[str, str],
    values: Mapping[str, list[Any]],
    panel: str,
) -> None:
    """A cell for every pair of values, with its number where there is room."""
    import matplotlib as mpl
    from matplotlib.patches import Rectangle

    across, up = (values[name] for name in names)
    cells = [[_best(ranked, {names[0]: x, names[1]: y}) for x in across] for y in up]
    heights = np.array([[cell.get(panel, np.nan) for cell in line] for line in cells])
    _, colours, form, least = _PANELS[panel]
    low, high = np.nanmin(heights), np.nanmax(heights)
    # Pale ends, so that every number can be read; small differences stay small.
    room = 0.1 * (high - low) + max(least - (high - low), 0) / 2
    norm = mpl.colors.Normalize(low - room, high + room)
    cmap = mpl.colormaps[colours].with_extremes(bad="0.94")
    mesh = axes.pcolormesh(heights, cmap=cmap, norm=norm, edgecolors="white", linewidth=2)
    if heights.size <= _MOST_NUMBERS:
        _write_numbers(axes, mesh, heights, form)
    else:
        axes.figure.colorbar(mesh, ax=axes, fraction=0.05, pad=0.02).outline.set_visible(False)
    column, row = ([str(v) for v in values[name]].index(str(ranked[0][name])) for name in names)
    frame = Rectangle((column, row), 1, 1, fill=False, edgecolor=_MARK, linewidth=3, clip_on=False, zorder=3)
    axes.add_patch(frame)
    axes.set_xticks(np.arange(len(across)) + 0.5, [_word(value) for value in across])
    axes.set_yticks(np.arange(len(up)) + 0.5, [_word(value) for value in up])
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)


def _write_numbers(axes: Axes, mesh: Any, heights: np.ndarray, form: str) -> None:
    """The heights into their cells, dark on light and light on dark; a dash for none."""
    for (i, j), height in np.ndenumerate(heights):
        none = bool(np.isnan(height))
        dark = not none and float(np.dot(mesh.cmap(mesh.norm(height))[:3], (0.3, 0.59, 0.11))) < 0.52
        text = axes.text(j + 0.5, i + 0.5, "–" if none else f"{height:{form}}", fontsize=9)
        text.set(ha="center", va="center", color="white" if dark else "0.6" if none else DARK)


def _draw_line(
    axes: Axes,
    rows: Sequence[Mapping[str, Any]],
    ranked: Sequence[Mapping[str, Any]],
    parameter: tuple[str, list[Any]],
    panel: str,
) -> None:
    """The means over the values of a parameter, and the seeds as dots."""
    name, values = parameter
    positive = all(isinstance(value, int | float) and value > 0 for value in values)
    places = dict(zip(map(str, values), values if positive else range(len(values)), strict=True))
    means = [_best(ranked, {name: value})[panel] for value in values]
    axes.plot(list(places.values()), means, color=ACCENT, linewidth=1.8)
    most = max(row["clusters"] for row in rows)
    for row in rows:
        if not np.isnan(means[list(places).index(str(row[name]))]):
            # As it is judged: a cluster without samples counts as cut in full.
            y = row[panel] + (most - row["clusters"] if panel == "normalized_cut" else 0)
            axes.plot(places[str(row[name])], y, "o", color=ACCENT, markersize=4.5, alpha=0.5, mew=0)
    chosen = places[str(ranked[0][name])], ranked[0][panel]
    axes.plot(*chosen, "o", markersize=13, markerfacecolor="none", markeredgecolor=_MARK, mew=2.5, zorder=4)
    if positive:
        axes.set_xscale("log")
    axes.set_xlim(*_wider(list(places.values()), log=positive))
    axes.set_xticks(list(places.values()), [_word(value) for value in values])
    axes.minorticks_off()
    low, high = axes.get_ylim()
    room = 0.08 * (high - low) + max(_PANELS[panel][3] - (high - low), 0) / 2
    axes.set_ylim(low - room, high + room)
    axes.grid(color="0.92", linewidth=0.8)
    tidy(axes)


def _wider(places: Sequence[float], *, log: bool) -> tuple[float, float]:
    """Limits a bit beyond the ends, the same in panels with and without all points."""
    low, high = places[0], places[-1]
    room = (high / low) ** 0.06 if log else 0.06 * (high - low)
    return (low / room, high * room) if log else (low - room, high + room)


def _story(
    best: Mapping[str, Any], rows: Sequence[Mapping[str, Any]], hidden: Sequence[str], *, dashes: bool
) -> str:
    """What is marked, and what the numbers are."""
    setting = ", ".join(f"{name} {_word(value)}" for name, value in _parameters(best).items())
    seeds = len({row["seed"] for row in rows})
    lines = [f"Mean over {seeds} seeds" if seeds > 1 else "One seed"]
    if hidden:
        lines.append(f"each cell with its best {' and '.join(hidden)}")
    if dashes:
        lines.append("no balance where the cut is too large")
    return f"Chosen (orange): {setting}\n{', '.join(lines)}"


def _word(value: Any) -> str:
    number = isinstance(value, int | float) and not isinstance(value, bool)
    return f"{value:g}" if number else str(value)
