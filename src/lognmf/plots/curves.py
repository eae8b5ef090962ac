"""Curves over the iterations: objectives, convergence rates and sparseness."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from lognmf.plots.style import AXIS, SCORES, legend_above, line_styles, panels, without_formulas

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_DIGITS = {0.6: tuple(range(1, 10)), 1.3: (1, 2, 3, 5, 7), 3.0: (1, 2, 5)}
"""First digits of the tick labels on an axis that spans less than so many powers of ten."""

_ROUNDING = 1e-10
"""Distances to the end below this share of the objective are rounding."""

_SETTLED = 5
"""Earlier ratios do not set the limits of the axis."""

_RISES = 0.1
"""A method whose distance to the end grows in more than this share of the iterations is drawn thin."""


def convergence_curves(
    histories: Mapping[str, Mapping[str, Mapping[str, Any]]], *, most: int | None = 200
) -> Figure:
    """The objective over the iterations, a row for each model and a column for each data set.

    The random start is left out: its objective is far larger than all that follow.

    Parameters
    ----------
    histories : mapping of str to mapping of str to mapping
        By model and data set, ``iteration`` and ``objective`` as in ``history_``.
    most : int or None, default=200
        Number of iterations that are drawn; None for all.

    Returns
    -------
    matplotlib.figure.Figure

    Raises
    ------
    ValueError
        If the models were fitted to different data sets.

    See Also
    --------
    convergence : One fit.

    Examples
    --------
    >>> history = {"iteration": [0, 1, 2], "objective": [9.0, 3.0, 2.0]}
    >>> figure = convergence_curves({"LS-NMF": {"Yale": history}})
    """
    named = [(m, s, history) for m, sets in histories.items() for s, history in sets.items()]
    columns = max(len(sets) for sets in histories.values())
    if any(len(sets) != columns for sets in histories.values()):
        given = ", ".join(f"{len(sets)} for {model}" for model, sets in histories.items())
        msg = f"convergence_curves needs the same data sets for every model; got {given}."
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
    """``|f(t+1) − f*| / |f(t) − f*|`` with the last value as ``f*``.

    Where it stays below one, the sequence converges at least linearly. As f* is the end of the same
    sequence, the last ratios fall to zero for every method; draw a part well before the end.

    Parameters
    ----------
    iteration, objective : array-like of shape (m,)
        As in ``history_``. Where values are several iterations apart, the ratio is the
        (geometric) average per iteration.

    Returns
    -------
    iteration, ratio : ndarray
        Where the distance to the end is more than rounding.

    See Also
    --------
    convergence_rates : Draw it.

    Examples
    --------
    >>> t, ratio = convergence_rate(range(40), [1 + 0.5**t for t in range(40)])
    >>> [round(float(r), 3) for r in ratio[:3]]
    [0.5, 0.5, 0.5]
    """
    iteration, objective = np.asarray(iteration, dtype=float), np.asarray(objective, dtype=float)
    distance = abs(objective - objective[-1])
    far = distance > _ROUNDING * abs(objective[-1])
    both_far = far[:-1] & far[1:]
    steps = np.diff(iteration)[both_far]
    return iteration[:-1][both_far], (distance[1:][both_far] / distance[:-1][both_far]) ** (1 / steps)


def convergence_rates(
    groups: Mapping[str, Mapping[str, Mapping[str, Any]]], *, most: int | None = 200
) -> Figure:
    """Convergence rates, a panel for each group and a line for each of its histories.

    Parameters
    ----------
    groups : mapping of str to mapping of str to mapping
        By the title of the panel and the name of the line (a data set or a model),
        ``iteration`` and ``objective`` as in ``history_``, fitted with ``tol=0`` and
        ``eval_every=1``.
    most : int or None, default=200
        Number of iterations that are drawn; None for all.

    Returns
    -------
    matplotlib.figure.Figure

    See Also
    --------
    convergence_rate : The numbers.

    Examples
    --------
    >>> history = {"iteration": range(40), "objective": [1 + 0.5**t for t in range(40)]}
    >>> figure = convergence_rates({"Yale": {"LS-NMF": history}})
    """
    figure, places = panels(list(groups), width=5.2, height=3.6, columns=min(len(groups), 2))
    for axes, histories in zip(places, groups.values(), strict=True):
        settled = []
        for name, style in line_styles(histories).items():
            t, ratio = convergence_rate(histories[name]["iteration"], histories[name]["objective"])
            drawn = t <= (np.inf if most is None else most)
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
    """Hoyer's sparseness of U and V over the iterations, a column for each data set.

    Parameters
    ----------
    sets : mapping of str to mapping of str to mapping
        By data set and approach, ``iteration``, ``sparseness_U`` and ``sparseness_V``.

    Returns
    -------
    matplotlib.figure.Figure

    See Also
    --------
    lognmf.metrics.hoyer_sparseness : What is drawn.

    Examples
    --------
    >>> fit = {"iteration": [0, 10], "sparseness_U": [0.2, 0.3], "sparseness_V": [0.5, 0.6]}
    >>> figure = sparseness_curves({"Yale": {"LS-NMF": fit}})
    """
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


def scores_by_weight(sets: Mapping[str, Sequence[Mapping[str, Any]]], weight: str = "gamma") -> Figure:
    """Accuracy, NMI and purity over the values of a weight, a panel for each data set.

    Parameters
    ----------
    sets : mapping of str to sequence of mappings
        Rows by the name of the data set, as from `fit_grid`: each holds ``weight`` and some of
        ``accuracy``, ``nmi`` and ``purity`` as shares of one. Rows of the same weight, such as
        those of several seeds, are drawn as their mean, with a band from the smallest to the largest.
    weight : str, default="gamma"
        Name of the weight.

    Returns
    -------
    matplotlib.figure.Figure

    See Also
    --------
    score_maps : Two weights at once.

    Examples
    --------
    >>> rows = [{"gamma": gamma, "accuracy": 0.6} for gamma in (1.0, 10.0)]
    >>> figure = scores_by_weight({"Yale": rows})
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
