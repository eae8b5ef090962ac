"""How sparse the factors become over the iterations."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from lognmf.plots.palette import line_styles
from lognmf.plots.panels import one_legend, panels

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["sparseness_curves"]


def sparseness_curves(sets: Mapping[str, Mapping[str, Mapping[str, Any]]]) -> Figure:
    """Hoyer's sparseness of U and V over the iterations, a column for each data set.

    Parameters
    ----------
    sets : mapping of str to mapping of str to mapping
        By data set and approach, ``iteration``, ``sparseness_U`` and ``sparseness_V``, as from
        `sparseness_history`.

    Returns
    -------
    matplotlib.figure.Figure
    """
    titles = [f"{name}, {factor}" for factor in "UV" for name in sets]
    figure, places = panels(titles, columns=len(sets), height=2.4)
    styles = line_styles(dict.fromkeys(approach for lines in sets.values() for approach in lines))
    drawn = [(factor, lines) for factor in "UV" for lines in sets.values()]
    for axes, (factor, lines) in zip(places, drawn, strict=True):
        for approach, found in lines.items():
            y = found[f"sparseness_{factor}"]
            axes.plot(
                found["iteration"], y, label=approach, markersize=4, markevery=(0.1, 0.2), **styles[approach]
            )
        axes.set_ylim(0, 1)
        axes.margins(x=0.01)
    for axes in places[:: len(sets)]:
        axes.set_ylabel("sparseness")
    for axes in places[-len(sets) :]:
        axes.set_xlabel("iteration")
    one_legend(figure, places)
    return figure
