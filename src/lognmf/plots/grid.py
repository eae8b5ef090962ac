"""How a clustering depends on the weights of a model, from the rows of a grid."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from lognmf.parameters import check_choice
from lognmf.plots.style import ACCENT, DARK, GRID, draw_cells, in_few_letters, new_figure, tidy

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Rows = Sequence[Mapping[str, Any]]

_MOST_NUMBERS = 120
"""Maximum number of cells of a heat map that hold their number; larger ones have a colour bar."""

_MARK = "#e07a1f"
_PANELS = {
    "normalized_cut": ("Normalised cut, lower is better", "Blues_r", ".3f", 0.1),
    "modularity": ("Modularity on the neighbour graph, higher is better", "Blues", ".4f", 0.02),
    "balance": ("Balance of the cluster sizes, higher is better", "Blues", ".4f", 0.02),
}
"""Title, colours that are darker where it is better, number format, and the smallest difference
that uses the whole range of colours."""

SHOWN = {
    "normalized_cut": ("normalized_cut",),
    "balanced_cut": ("normalized_cut", "balance"),
    "balanced_modularity": ("modularity", "normalized_cut", "balance"),
}
"""Panels for each criterion: what it looks at."""

_AXES = {
    "alpha": "alpha, sparsity of the parts",
    "beta": "beta, sparsity of the codes",
    "gamma": "gamma, outlier part",
    "lam": "lam, neighbour graph",
    "max_iter": "maximum number of iterations",
    "n_components": "number of parts",
}


def sensitivity(result: Any, by: str | None = None, *, ranked: Rows | None = None) -> Figure:
    """How the clusterings of a grid depend on its parameters, with the chosen setting marked.

    A heat map over the two parameters with the most values (at a tie, those on which the score
    depends most), or lines where only one varies. Numbers are means over the seeds; of the
    other parameters the best setting is shown.

    Parameters
    ----------
    result : result of `tune` or `fit_grid`, or sequence of mappings
        A grid that was fitted with ``n_clusters`` or ``y``, or its rows.
    by : {"normalized_cut", "balanced_cut", "balanced_modularity"}, optional
        Criterion of the choice, as for `select`: what it looks at is drawn. "balanced_cut" shows the balance
        only of settings whose cut is good enough. Default: that of `tune`, else "normalized_cut".
    ranked : sequence of mappings, optional
        Needed with bare rows: their settings, best first, with ``score`` and means over the seeds.

    Returns
    -------
    matplotlib.figure.Figure

    Raises
    ------
    ValueError, TypeError
        If ``by`` is no criterion, no parameter varies in the rows, or bare rows come without their ranking.

    See Also
    --------
    lognmf.tune : Fits such a grid.

    Examples
    --------
    >>> import numpy as np
    >>> from lognmf import fit_grid
    >>> X = np.random.default_rng(0).random((30, 8))
    >>> figure = sensitivity(fit_grid("GNMF", X, {"lam": [0.1, 1.0]}, n_clusters=3, max_iter=5))
    """
    by = getattr(result, "by", "normalized_cut") if by is None else by
    check_choice("by", by, SHOWN)
    rows: Rows = getattr(result, "rows", result)
    ranked = _judged(_ranked(result, by) if ranked is None else ranked, by)
    values = _varied(ranked)
    if not values:
        msg = (
            "sensitivity needs rows of several settings, in which a parameter varies; "
            f"got {len(rows)} rows of one setting. Give fit_grid a grid of more than one value."
        )
        raise ValueError(msg)
    axis, *others = values
    height = 1.7 + 0.52 * max(len(values[others[0]]), 3) if others else 3.9
    figure = new_figure(4.8 * len(SHOWN[by]) + 0.4, height)
    all_axes = figure.subplots(1, len(SHOWN[by]), squeeze=False)[0]
    for axes, panel in zip(all_axes, SHOWN[by], strict=True):
        if others:
            _draw_heat(axes, ranked, (axis, others[0]), values, panel)
        else:
            _draw_line(axes, rows, ranked, (axis, values[axis]), panel)
        axes.set_title(_PANELS[panel][0], fontsize=10.5, color=DARK)
        axes.set_xlabel(_AXES.get(axis, axis))
    if others:
        all_axes[0].set_ylabel(_AXES.get(others[0], others[0]))
    remarks = []
    if any(np.isnan(place[panel]) for place in ranked for panel in SHOWN[by]):
        remarks.append("no balance where the cut is too large")
    cells = ({axis: x, others[0]: y} for x in values[axis] for y in values[others[0]]) if others else ()
    if not all(_best(ranked, cell) for cell in cells):
        remarks.append("grey: not tried")
    story = _story(ranked[0], rows, sorted(others[1:]), remarks)
    figure.suptitle(story, fontsize=10, color=DARK, x=0.012, ha="left")
    return figure


def _ranked(result: Any, by: str) -> Rows:
    """The settings of a result, best first."""
    if not hasattr(result, "standings"):
        msg = (
            "sensitivity takes the result of tune or fit_grid; bare rows need ranked, their settings from "
            f"the best to the worst. Got {type(result).__name__} without it."
        )
        raise TypeError(msg)
    return result.standings(by)


def _parameters(place: Mapping[str, Any]) -> dict[str, Any]:
    """The setting alone."""
    return {name: value for name, value in place.items() if name not in ("score", *_PANELS)}


def _varied(ranked: Rows) -> dict[str, list[Any]]:
    """Values of the parameters that vary, those with the most first, at a tie the most decisive."""
    values: dict[str, list[Any]] = {}
    for name in _parameters(ranked[0]):
        tried = list({str(place[name]): place[name] for place in ranked}.values())
        if len(tried) > 1:
            numbers = all(isinstance(value, int | float) for value in tried)
            values[name] = sorted(tried) if numbers else tried
    reach = {name: np.ptp([_best(ranked, {name: v})["score"] for v in values[name]]) for name in values}
    return {name: values[name] for name in sorted(values, key=lambda n: (-len(values[n]), -reach[n]))}


def _best(ranked: Rows, wanted: Mapping[str, Any]) -> Mapping[str, Any]:
    """The best setting with these values; nothing where there is none."""
    fitting = (place for place in ranked if all(str(place[n]) == str(v) for n, v in wanted.items()))
    return next(fitting, {})


def _judged(ranked: Rows, by: str) -> Rows:
    """Without the balance of settings whose cut is too large, as it does not count there."""
    if by != "balanced_cut":
        return ranked
    return [{**place, "balance": np.nan} if place["score"] > 1 else place for place in ranked]


def _draw_heat(
    axes: Axes, ranked: Rows, names: tuple[str, str], values: Mapping[str, list[Any]], panel: str
) -> None:
    """A heat map over two parameters, with numbers where there is room."""
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
    mesh = draw_cells(axes, heights, (across, up), cmap=cmap, norm=norm, linewidth=2)
    if heights.size <= _MOST_NUMBERS:
        _write_numbers(axes, mesh, heights, form)
    else:
        axes.figure.colorbar(mesh, ax=axes, fraction=0.05, pad=0.02).outline.set_visible(False)
    column, row = ([str(v) for v in values[name]].index(str(ranked[0][name])) for name in names)
    frame = Rectangle((column, row), 1, 1, fill=False, edgecolor=_MARK, linewidth=3, clip_on=False, zorder=3)
    axes.add_patch(frame)


def _write_numbers(axes: Axes, mesh: Any, heights: np.ndarray, form: str) -> None:
    """The heights into their cells, dark on light and light on dark; a dash for none."""
    for (i, j), height in np.ndenumerate(heights):
        none = bool(np.isnan(height))
        dark = not none and float(np.dot(mesh.cmap(mesh.norm(height))[:3], (0.3, 0.59, 0.11))) < 0.52
        text = axes.text(j + 0.5, i + 0.5, "–" if none else f"{height:{form}}", fontsize=9)
        text.set(ha="center", va="center", color="white" if dark else "0.6" if none else DARK)


def _draw_line(axes: Axes, rows: Rows, ranked: Rows, parameter: tuple[str, list[Any]], panel: str) -> None:
    """The means over the values of a parameter, and the seeds as dots."""
    name, values = parameter
    positive = all(isinstance(value, int | float) and value > 0 for value in values)
    places = dict(zip(map(str, values), values if positive else range(len(values)), strict=True))
    means = [_best(ranked, {name: value})[panel] for value in values]
    axes.plot(list(places.values()), means, color=ACCENT, linewidth=1.8)
    most = max(row["clusters"] for row in rows)
    for row in rows:
        if not np.isnan(means[list(places).index(str(row[name]))]):
            # As the criterion does: a cluster without samples counts as cut in full.
            y = row[panel] + (most - row["clusters"] if panel == "normalized_cut" else 0)
            axes.plot(places[str(row[name])], y, "o", color=ACCENT, markersize=4.5, alpha=0.8, mew=0)
    chosen = places[str(ranked[0][name])], ranked[0][panel]
    axes.plot(*chosen, "o", markersize=13, markerfacecolor="none", markeredgecolor=_MARK, mew=2.5, zorder=4)
    if positive:
        axes.set_xscale("log")
    axes.set_xlim(*_wider(list(places.values()), log=positive))
    axes.set_xticks(list(places.values()), [in_few_letters(value) for value in values])
    axes.minorticks_off()
    low, high = axes.get_ylim()
    room = 0.08 * (high - low) + max(_PANELS[panel][3] - (high - low), 0) / 2
    axes.set_ylim(low - room, high + room)
    axes.grid(color=GRID, linewidth=0.8)
    tidy(axes)


def _wider(places: Sequence[float], *, log: bool) -> tuple[float, float]:
    """Limits a bit beyond the ends, the same in panels with and without all points."""
    low, high = places[0], places[-1]
    room = (high / low) ** 0.06 if log else 0.06 * (high - low)
    return (low / room, high * room) if log else (low - room, high + room)


def _story(best: Mapping[str, Any], rows: Rows, hidden: Sequence[str], remarks: Sequence[str]) -> str:
    """The heading: what is marked, and what the numbers are."""
    setting = ", ".join(f"{name} {in_few_letters(value)}" for name, value in _parameters(best).items())
    seeds = len({row["seed"] for row in rows})
    lines = [f"Mean over {seeds} seeds" if seeds > 1 else "One seed"]
    if hidden:
        lines.append(f"each cell with its best {' and '.join(hidden)}")
    return f"Chosen (orange): {setting}\n{', '.join([*lines, *remarks])}"
