"""The codes V."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from lognmf.plots.canvas import DARK, as_numpy, new_figure, tidy

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_MOST_POINTS = 20_000
_MOST_NAMES = 25


def embedding(V: Any, labels: Any = None, share: Any = None) -> Figure:
    """The codes: a map of the samples, and the matrix itself sorted by cluster.

    Parameters
    ----------
    V : array of shape (n, k)
        Codes, as in ``embedding_``. Of very many samples an even selection is drawn.
    labels : array of shape (n,), optional
        Clusters, as integers from 0.
    share : array of shape (n,), optional
        Outlier shares, as in ``outlier_share_``; samples with a positive one are marked.

    Returns
    -------
    matplotlib.figure.Figure
    """
    V = as_numpy(V)
    drawn = np.unique(np.linspace(0, len(V) - 1, min(len(V), _MOST_POINTS)).astype(int))
    clusters = np.zeros(len(V), dtype=int) if labels is None else as_numpy(labels).astype(int)
    outlier = np.zeros(len(V), dtype=bool) if share is None else as_numpy(share) > 0
    figure = new_figure(12, 5.4)
    left, right = figure.subplots(1, 2, width_ratios=(1.1, 1))
    places, explained = _principal_plane(V)
    _draw_map(left, places[drawn], clusters[drawn], outlier[drawn], named=labels is not None)
    left.set_xlabel(f"first principal axis ({explained[0]:.0%} of the variance)")
    left.set_ylabel(f"second principal axis ({explained[1]:.0%})")
    some = "" if len(drawn) == len(V) else f", {len(drawn)} of {len(V)} samples"
    left.set_title(f"Map of the codes{some}")
    _draw_codes(figure, right, V[drawn], clusters[drawn], named=labels is not None)
    return figure


def _principal_plane(V: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Places (n, 2) of the samples on the two widest axes, and the shares of the variance."""
    centred = V.astype(np.float64) - V.mean(axis=0, dtype=np.float64)
    variances, axes = np.linalg.eigh(centred.T @ centred)
    widest = np.argsort(variances)[::-1][:2]
    places, explained = np.zeros((len(V), 2)), np.zeros(2)
    places[:, : len(widest)] = centred @ axes[:, widest]
    explained[: len(widest)] = variances[widest].clip(0) / (variances.clip(0).sum() or 1.0)
    return places, explained


def _draw_map(
    axes: Axes, places: np.ndarray, clusters: np.ndarray, outlier: np.ndarray, *, named: bool
) -> None:
    size = float(np.clip(6000 / len(places), 3, 30))
    axes.scatter(places[:, 0], places[:, 1], c=_colours(clusters), s=size, alpha=0.75, linewidths=0)
    if outlier.any():
        x, y = places[outlier].T
        label = f"outlier ({outlier.sum()})"
        axes.scatter(x, y, s=3 * size + 12, c="none", edgecolors="k", linewidths=0.9, label=label)
        axes.legend(loc="best", frameon=True, framealpha=0.9, edgecolor="0.8", fontsize=9)
    present = np.unique(clusters)
    for c in present if named and len(present) <= _MOST_NAMES else ():
        box = {"boxstyle": "round,pad=0.2", "facecolor": "white", "edgecolor": "0.6", "alpha": 0.85}
        middle = np.median(places[clusters == c], axis=0)
        axes.annotate(str(c), middle, ha="center", va="center", fontsize=9, color=DARK, bbox=box)
    axes.margins(0.04)
    tidy(axes)


def _draw_codes(figure: Figure, axes: Axes, V: np.ndarray, clusters: np.ndarray, *, named: bool) -> None:
    """Heat map of V: columns of equal height, samples by cluster, components by the cluster they serve."""
    heights = V / np.where((top := abs(V).max(axis=0)) > 0, top, 1)
    present = np.unique(clusters)
    means = np.stack([heights[clusters == c].mean(axis=0) for c in present])
    components = np.lexsort((-means.max(axis=0), means.argmax(axis=0)))
    own = heights[np.arange(len(V)), heights.argmax(axis=1)]
    samples = np.lexsort((-own, heights[:, components].argmax(axis=1), clusters))
    ends = np.searchsorted(clusters[samples], present, side="right")
    picture = axes.imshow(
        heights[samples][:, components],
        aspect="auto",
        cmap="viridis",
        vmin=min(0.0, float(heights.min())),
        vmax=1,
        interpolation="nearest",
    )
    if named:
        for end in ends[:-1]:
            axes.axhline(end - 0.5, color="white", linewidth=min(1, 15 / len(present)))
        step = math.ceil(len(present) / _MOST_NAMES)
        middles = (np.r_[0, ends[:-1]] + ends - 1) / 2
        axes.set_yticks(middles[::step], [str(c) for c in present[::step]], fontsize=8)
    else:
        axes.set_yticks([])
    step = math.ceil(len(components) / _MOST_NAMES)
    axes.set_xticks(range(0, len(components), step), [str(j) for j in components[::step]], fontsize=8)
    axes.tick_params(length=0)
    axes.set(xlabel="component", ylabel="samples by cluster" if named else "samples", title="Codes V")
    bar = figure.colorbar(picture, ax=axes, fraction=0.05, pad=0.02)
    bar.set_label("code / largest of its component")
    bar.outline.set_visible(False)


def _colours(clusters: np.ndarray) -> np.ndarray:
    """A colour for each sample: the ten strong ones of tab20 first, then the pale ones."""
    import matplotlib as mpl

    palette = mpl.colormaps["tab20"](np.r_[0:20:2, 1:20:2])
    return palette[clusters % 20]
