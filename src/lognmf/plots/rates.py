"""How fast objectives come down to where they end."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from lognmf.plots.palette import line_styles
from lognmf.plots.panels import panels, plain_words

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["convergence_rate", "convergence_rates"]

_ROUNDING = 1e-10
"""Share of the objective below which a distance to the end is rounding."""

_SETTLED = 5
"""Iterations after which a ratio says something about the rate."""

_RISES = 0.1
"""Share of iterations away from the end beyond which a sequence does not descend; its line is pale."""


def convergence_rate(iteration: Any, objective: Any) -> tuple[np.ndarray, np.ndarray]:
    """``|f(t+1) − f*| / |f(t) − f*|`` with the last value as ``f*``.

    Below one everywhere, the sequence converges at least linearly. As f* is the end of the same
    sequence, the last ratios sink to zero whatever the method; draw a part well before the end.

    Parameters
    ----------
    iteration, objective : array-like of shape (m,)
        As in ``history_``. Where values lie several iterations apart, the ratio is that of one
        iteration on (geometric) average.

    Returns
    -------
    iteration, ratio : ndarray
        Where the distance to the end is more than rounding.

    Examples
    --------
    >>> t, ratio = convergence_rate(range(40), [1 + 0.5**t for t in range(40)])
    >>> [round(float(r), 3) for r in ratio[:3]]
    [0.5, 0.5, 0.5]
    """
    iteration, objective = np.asarray(iteration, dtype=float), np.asarray(objective, dtype=float)
    distance = abs(objective - objective[-1])
    far = distance > _ROUNDING * abs(objective[-1])
    known = far[:-1] & far[1:]
    steps = np.diff(iteration)[known]
    return iteration[:-1][known], (distance[1:][known] / distance[:-1][known]) ** (1 / steps)


def convergence_rates(
    groups: Mapping[str, Mapping[str, Mapping[str, Any]]], *, most: int | None = 200
) -> Figure:
    """Convergence rates, a panel for each group and a line for each of its histories.

    Parameters
    ----------
    groups : mapping of str to mapping of str to mapping
        By the title of the panel and the name of the line (a data set or a model),
        ``iteration`` and ``objective`` as in ``history_``, made with ``tol=0`` and
        ``eval_every=1``.
    most : int or None, default=200
        Iterations that are drawn; None for all.

    Returns
    -------
    matplotlib.figure.Figure
    """
    figure, places = panels(list(groups), width=5.2, height=3.6, columns=min(len(groups), 2))
    for axes, histories in zip(places, groups.values(), strict=True):
        settled = []
        for name, style in line_styles(histories).items():
            t, ratio = convergence_rate(histories[name]["iteration"], histories[name]["objective"])
            drawn = t <= (np.inf if most is None else most)
            descends = np.mean(ratio[drawn] > 1) <= _RISES if drawn.any() else True
            if not descends:
                style |= {"alpha": 0.4, "linewidth": 0.7, "marker": "", "zorder": 1}
            label = name if descends else f"{name} (not descending)"
            every = max(int(drawn.sum()) // 5, 1)
            axes.plot(t[drawn], ratio[drawn], label=label, markersize=4, markevery=every, **style)
            settled.append(ratio[drawn & (t >= _SETTLED) & descends])
        axes.axhline(1, color="0.35", linewidth=1, linestyle=(0, (2, 2)))
        axes.set(xlabel="iteration t", ylabel="|f(t+1) − f*| / |f(t) − f*|")
        legend = axes.legend(
            fontsize=8, ncols=2, loc="lower right", handlelength=2.8, framealpha=0.9, edgecolor="0.85"
        )
        plain_words(legend)
        axes.set_ylim(*_limits(np.concatenate(settled)))
    return figure


def _limits(ratios: np.ndarray) -> tuple[float, float]:
    """Limits that show nearly all ratios; the wildest of a method that does not descend are cut off."""
    if not len(ratios):
        return 0.0, 1.05
    low, high = np.quantile(ratios, (0.02, 0.98))
    return min(max(float(low) - 0.05, 0.0), 0.9), min(max(float(high) + 0.01, 1.02), 1.3)
