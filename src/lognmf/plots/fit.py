"""One fitted model: how the fit went, its codes V, and what it makes of the samples."""

from __future__ import annotations

import math
import reprlib
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from lognmf.clustering import main_parts
from lognmf.plots.style import (
    ACCENT,
    AXIS,
    DARK,
    GRID,
    as_numpy,
    check_count,
    fitted,
    matrix_of,
    new_figure,
    tidy,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_MOST_POINTS = 20_000
_MOST_NAMES = 25
_WIDE_RANGE = 3
"""Largest over smallest objective from which its axis is logarithmic."""

_FLAT = 1e-6
"""Relative range of an objective that is rounding, not a decrease to be looked at."""

_MOST_DOTS = 1_000
"""Dots that are drawn one by one into a vector drawing."""

_COLOURS = (
    "#1f77b4", "#e6720b", "#2ca02c", "#d62728", "#9467bd",
    "#8e594f", "#d56fb6", "#7f7f7f", "#979819", "#12a2b0",
    "#6f96c1", "#a55005", "#1f781f", "#dd7374", "#a585c6",
    "#aa8c87", "#994e82", "#686868", "#6b6c0f", "#09737e",
)  # fmt: skip
"""Of clusters: each has a contrast of at least 3:1 on white and on dark paper."""


def convergence(fit: Any) -> Figure:
    """The objective over the iterations, and its relative decrease, which decides when to stop.

    Parameters
    ----------
    fit : fitted model or mapping
        The model or clusterer, or its ``history_`` with ``iteration`` and ``objective``.

    Returns
    -------
    matplotlib.figure.Figure

    Raises
    ------
    ValueError, TypeError
        If the model is not fitted, or ``fit`` is neither a model nor a history.

    See Also
    --------
    comparison : Several models.

    Examples
    --------
    >>> figure = convergence({"iteration": [0, 10, 20], "objective": [9.0, 3.0, 2.0]})
    """
    history = fitted(fit, "history_")
    if not isinstance(history, Mapping) or not {"iteration", "objective"} <= history.keys():
        msg = f"convergence needs a fitted model, or its history_; got {reprlib.repr(fit)}."
        raise TypeError(msg)
    iteration, objective = np.asarray(history["iteration"]), np.asarray(history["objective"], dtype=float)
    figure = new_figure(9, 3.4)
    left, right = figure.subplots(1, 2)
    left.plot(iteration, objective, color=ACCENT, linewidth=1.8, marker="o" if len(objective) < 10 else "")
    left.set(xlabel="iteration", ylabel="objective", title=f"Objective, {objective[-1]:.5g} at the end")
    if objective.min() > 0 and objective.max() > _WIDE_RANGE * objective.min():
        left.set_yscale("log")
    else:
        left.ticklabel_format(axis="y", useOffset=False)
        if np.ptp(objective) < _FLAT * abs(objective).max():
            left.set_ylim(np.sort([0.99 * objective[0], 1.01 * objective[0]]))
    size = np.abs(objective[:-1]) * np.diff(iteration)
    fall = np.divide(-np.diff(objective), size, out=np.zeros(len(size)), where=size > 0)
    if (fall > 0).any():
        shown = np.where(fall > 0, fall, np.nan)
        right.plot(iteration[1:], shown, color=ACCENT, linewidth=1.8, marker="o" if len(fall) < 10 else "")
        right.set_yscale("log")
    else:
        right.text(0.5, 0.5, "no decrease", ha="center", va="center", color="0.4", transform=right.transAxes)
    right.set(xlabel="iteration", ylabel="decrease / objective", title="Relative decrease per iteration")
    for axes in (left, right):
        tidy(axes)
        axes.set_xlim(0, 1.03 * max(iteration[-1], 1))
        axes.grid(color=GRID, linewidth=0.8)
    return figure


def codes(fit: Any, labels: Any = None, outliers: Any = None) -> Figure:
    """The codes: a map of the samples, and the matrix itself sorted by cluster.

    Parameters
    ----------
    fit : fitted model, or array of shape (n, k)
        The model or clusterer, or codes as in ``embedding_``. Of more than 20,000 samples an even selection
        is drawn.
    labels : array of shape (n,), optional
        Clusters or classes, numbers or words; default those of a clusterer.
    outliers : array of bool of shape (n,), optional
        Samples to be marked; default ``is_outlier_`` of a model that has it.

    Returns
    -------
    matplotlib.figure.Figure

    Raises
    ------
    ValueError, TypeError
        If the model is not fitted, or there are not as many labels or outliers as samples.

    See Also
    --------
    parts : The components that the codes weigh.

    Examples
    --------
    >>> figure = codes([[0.0, 1.0], [0.1, 0.9], [1.0, 0.0]], labels=[0, 0, 1])
    """
    V = matrix_of(fit, "embedding_")
    labels = getattr(fit, "labels_", None) if labels is None else labels
    outliers = getattr(fit, "is_outlier_", None) if outliers is None else outliers
    for name, values in (("labels", labels), ("outliers", outliers)):
        if values is not None:
            check_count(name, values, len(V), "samples")
    drawn = np.unique(np.linspace(0, len(V) - 1, min(len(V), _MOST_POINTS)).astype(int))
    named = np.zeros(len(V), dtype=int) if labels is None else as_numpy(labels)
    names, clusters = np.unique(named, return_inverse=True)
    outlier = np.zeros(len(V), dtype=bool) if outliers is None else as_numpy(outliers).astype(bool)
    words = [] if labels is None else [str(name) for name in names.tolist()]
    figure = new_figure(11.4, 5.2)
    left, right = figure.subplots(1, 2, width_ratios=(1.1, 1))
    places, explained = _principal_plane(V)
    _draw_map(left, places[drawn], clusters[drawn], outlier[drawn], words)
    left.set_xlabel(f"first principal axis ({explained[0]:.0%} of the variance)")
    left.set_ylabel(f"second principal axis ({explained[1]:.0%})")
    some = "" if len(drawn) == len(V) else f", {len(drawn)} of {len(V)} samples"
    left.set_title(f"Map of the codes{some}")
    _draw_codes(figure, right, V[drawn], clusters[drawn], words)
    return figure


def _principal_plane(V: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Coordinates (n, 2) of the samples on the first two principal axes, and the shares of variance."""
    centred = V.astype(np.float64) - V.mean(axis=0, dtype=np.float64)
    variances, axes = np.linalg.eigh(centred.T @ centred)
    widest = np.argsort(variances)[::-1][:2]
    places, explained = np.zeros((len(V), 2)), np.zeros(2)
    places[:, : len(widest)] = centred @ axes[:, widest]
    explained[: len(widest)] = variances[widest].clip(0) / (variances.clip(0).sum() or 1.0)
    return places, explained


def _draw_map(
    axes: Axes, places: np.ndarray, clusters: np.ndarray, outlier: np.ndarray, words: list[str]
) -> None:
    """Samples as dots coloured by cluster, outliers with a ring."""
    size = float(np.clip(6000 / len(places), 3, 30))
    dots = axes.scatter(places[:, 0], places[:, 1], c=_colours(clusters), s=size, linewidths=0)
    dots.set_rasterized(len(places) > _MOST_DOTS)
    if outlier.any():
        x, y = places[outlier].T
        label = f"outlier ({outlier.sum()})"
        axes.scatter(x, y, s=3 * size + 12, c="none", edgecolors="k", linewidths=0.9, label=label)
        axes.legend(loc="best", frameon=True, framealpha=1, edgecolor=AXIS, fontsize=9)
    present = np.unique(clusters)
    for c in present if words and len(present) <= _MOST_NAMES else ():
        box = {"boxstyle": "round,pad=0.2", "facecolor": "white", "edgecolor": AXIS, "alpha": 0.9}
        middle = np.median(places[clusters == c], axis=0)
        axes.annotate(
            words[c], middle, ha="center", va="center", fontsize=9, color=DARK, bbox=box, parse_math=False
        )
    axes.margins(0.04)
    tidy(axes)


def _draw_codes(figure: Figure, axes: Axes, V: np.ndarray, clusters: np.ndarray, words: list[str]) -> None:
    """Heat map of V: samples by cluster, components by the cluster in which they are largest."""
    heights, present = _heights(V), np.unique(clusters)
    components = order_of_parts(V, clusters)
    own = heights[np.arange(len(V)), heights.argmax(axis=1)]
    samples = np.lexsort((-own, heights[:, components].argmax(axis=1), clusters))
    ends = np.searchsorted(clusters[samples], present, side="right")
    scale: dict[str, Any] = {"cmap": "viridis", "vmin": min(0.0, float(heights.min())), "vmax": 1}
    picture = axes.imshow(heights[samples][:, components], aspect="auto", interpolation="nearest", **scale)
    if words:
        for end in ends[:-1]:
            axes.axhline(end - 0.5, color="white", linewidth=min(1, 15 / len(present)))
        step = math.ceil(len(present) / _MOST_NAMES)
        middles = (np.r_[0, ends[:-1]] + ends - 1) / 2
        axes.set_yticks(middles[::step], [words[c] for c in present[::step]], fontsize=8, parse_math=False)
    else:
        axes.set_yticks([])
    step = math.ceil(len(components) / _MOST_NAMES)
    axes.set_xticks(range(0, len(components), step), [str(j) for j in components[::step]], fontsize=8)
    axes.tick_params(length=0)
    axes.set(xlabel="part", ylabel="samples by cluster" if words else "samples", title="Codes (embedding_)")
    bar = figure.colorbar(picture, ax=axes, fraction=0.05, pad=0.02)
    bar.set_label("code / largest of its part")
    bar.outline.set_visible(False)


def order_of_parts(V: np.ndarray, clusters: np.ndarray) -> np.ndarray:
    """The parts in the order of the clusters whose main parts they are, in every figure of a fit."""
    present, places = np.unique(clusters, return_inverse=True)
    heights = _heights(V)
    cluster_of = np.stack([heights[places == c].mean(axis=0) for c in range(len(present))]).argmax(axis=0)
    if len(present) <= V.shape[1]:
        cluster_of[main_parts(places, len(present), V)] = range(len(present))
    return np.argsort(cluster_of, kind="stable")


def _heights(V: np.ndarray) -> np.ndarray:
    """Codes as shares of the largest of their part."""
    return V / np.where((top := abs(V).max(axis=0)) > 0, top, 1)


def _colours(clusters: np.ndarray) -> np.ndarray:
    """A colour for each sample; from the 21st cluster on they come again."""
    return np.array(_COLOURS)[clusters % len(_COLOURS)]
