"""The evidence for a number of components."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from lognmf.plots.style import ACCENT, panels

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_MARK = "#b85c0a"
_PALE = "0.55"

TITLES = {
    "held_out": "Error of held-out entries, lower is better",
    "stability": "Stability of the parts, higher is better",
    "modularity": "Modularity of the clusters, higher is better",
    "silhouette": "Silhouette of the clusters, higher is better",
    "agreement": "Agreement of the judges, higher is better",
}


def components(rows: Sequence[Mapping[str, Any]], best: int, by: str = "held_out") -> Figure:
    """The evidence for each number of components, with the recommended one marked.

    Parameters
    ----------
    rows : sequence of mappings
        As ``rows`` of `choose_components`: ``k`` with the columns that were computed.
    best : int
        The recommended number.
    by : str, default="held_out"
        What the recommendation goes by, such as "held_out", "stability" or, for the rows of
        ``NMFClustering("auto").number_``, "agreement"; its panel is the first.

    Returns
    -------
    matplotlib.figure.Figure

    See Also
    --------
    lognmf.choose_components : Makes the rows.

    Examples
    --------
    >>> rows = [{"k": k, "stability": value} for k, value in ((2, 0.9), (3, 1.0), (4, 0.5))]
    >>> figure = components(rows, 3, "stability")
    """
    ks = np.array([row["k"] for row in rows])
    shown = [name for name in TITLES if {name, f"{name}_error"} & set(rows[0])]
    shown.sort(key=lambda name: name != by)
    figure, places = panels([TITLES[name] for name in shown], width=4.3, height=3.1)
    for name, axes in zip(shown, places, strict=True):
        axes.axvline(best, color=_MARK, linewidth=6, alpha=0.25, zorder=0)
        _DRAW[name](axes, ks, {column: [row[column] for row in rows] for column in rows[0]})
        axes.set_xlabel("number of " + ("clusters" if "agreement" in rows[0] else "components"))
        axes.locator_params(axis="x", integer=True)
    top = by == "held_out"  # errors fall, the others rise: the number stands where no curve is
    where: Any = {"xycoords": ("data", "axes fraction"), "xytext": (5, -4 if top else 4)}
    where |= {"textcoords": "offset points", "va": "top" if top else "bottom"}
    places[0].annotate(f"k = {best}", (best, float(top)), color=_MARK, fontweight="bold", **where)
    return figure


def _held_out(axes: Axes, ks: np.ndarray, columns: Mapping[str, Any]) -> None:
    """Errors of held-out and of fitted entries, as shares of the variance."""
    axes.plot(ks, columns["training_error"], color=_PALE, linestyle="--", label="fitted entries")
    axes.errorbar(
        ks, columns["held_out_error"], yerr=columns["held_out_se"], color=ACCENT, marker="o", markersize=4,
        linewidth=1.8, elinewidth=1, capsize=2, label="held-out entries",
    )  # fmt: skip
    axes.set_ylabel("share of the variance")
    errors = np.array([columns["held_out_error"], columns["training_error"]])
    if errors.min() > 0 and errors.max() > 20 * errors.min():
        axes.set_yscale("log")
        for formatter in (axes.yaxis.set_major_formatter, axes.yaxis.set_minor_formatter):
            formatter(lambda value, _: f"{value:.1g}" if f"{value:e}"[0] in "1235" else "")
    axes.legend(frameon=False, fontsize=8.5)


def _stability(axes: Axes, ks: np.ndarray, columns: Mapping[str, Any]) -> None:
    """Mean cosine of matched parts."""
    axes.plot(ks, columns["stability"], color=ACCENT, marker="o", markersize=4, linewidth=1.8)
    axes.set_ylabel("mean cosine of matched parts")
    axes.set_ylim(top=1.02)


def _of_clusters(name: str, axes: Axes, ks: np.ndarray, columns: Mapping[str, Any]) -> None:
    """A score of the clustering into k clusters."""
    axes.plot(ks, columns[name], color=ACCENT, marker="o", markersize=4, linewidth=1.8)
    axes.set_ylabel(name)


_DRAW: dict[str, Callable[[Axes, np.ndarray, Mapping[str, Any]], None]] = {
    "held_out": _held_out,
    "stability": _stability,
    "modularity": partial(_of_clusters, "modularity"),
    "silhouette": partial(_of_clusters, "silhouette"),
    "agreement": partial(_of_clusters, "agreement"),
}
