"""One function per figure. Each returns a matplotlib Figure and touches no global state."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from lognmf.core.arrays import is_torch, to_numpy

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from lognmf.comparison import Row

__all__ = ["comparison", "convergence", "embedding", "parts", "parts_of_models"]

_MOST_PARTS = 64
_MOST_BARS = 8
_MOST_POINTS = 20_000
_MOST_NAMES = 25
_MOST_PARTS_A_MODEL = 20
_DARK, _ACCENT = "#333333", "#2a6f97"
_SCORES = {"accuracy": _ACCENT, "NMI": "#89c2d9", "purity": "#c9cdd2"}


def convergence(history: Mapping[str, Any]) -> Figure:
    """The objective over the iterations, and its relative decrease, which decides when to stop.

    Parameters
    ----------
    history : mapping
        ``iteration`` and ``objective``, as in ``history_``.

    Returns
    -------
    matplotlib.figure.Figure
    """
    iteration, objective = np.asarray(history["iteration"]), np.asarray(history["objective"], dtype=float)
    figure = _figure(9, 3.4)
    left, right = figure.subplots(1, 2)
    left.plot(iteration, objective, color=_ACCENT, linewidth=1.8, marker="." if len(objective) < 30 else "")
    left.set(xlabel="iteration", ylabel="objective", title=f"Objective, {objective[-1]:.5g} at the end")
    if objective.min() > 0:
        left.set_yscale("log")
    size = np.abs(objective[:-1]) * np.diff(iteration)
    fall = np.divide(-np.diff(objective), size, out=np.zeros(len(size)), where=size > 0)
    if (fall > 0).any():
        shown = np.where(fall > 0, fall, np.nan)
        right.plot(iteration[1:], shown, color=_ACCENT, linewidth=1.8, marker="." if len(fall) < 30 else "")
        right.set_yscale("log")
    else:
        right.text(0.5, 0.5, "no decrease", ha="center", va="center", color="0.4", transform=right.transAxes)
    right.set(xlabel="iteration", ylabel="decrease / objective", title="Relative decrease per iteration")
    for axes in (left, right):
        _tidy(axes)
        axes.set_xlim(0, max(iteration[-1], 1))
        axes.grid(color="0.9", linewidth=0.8)
    return figure


def parts(
    components: Any,
    image_shape: tuple[int, int] | None = None,
    order: Sequence[int] | None = None,
    *,
    feature_names: Sequence[str] | None = None,
) -> Figure:
    """The parts: images if their shape is known, else the largest features of each.

    Parameters
    ----------
    components : array of shape (k, p)
        The parts, as in ``components_``. At most 64 are drawn.
    image_shape : (int, int), optional
        Height and width of a part, with ``height · width = p``.
    order : sequence of int, optional
        Which parts, in which order; default 0, 1, ….
    feature_names : sequence of str, optional
        Names of the p features.

    Returns
    -------
    matplotlib.figure.Figure
    """
    components = _numpy(components)
    p = components.shape[1]
    if image_shape is not None:
        _check_shape(image_shape, p)
    order = list(range(len(components)) if order is None else order)
    shown = order[:_MOST_PARTS]
    columns = min(len(shown), math.ceil(math.sqrt(2 * len(shown))))
    rows = math.ceil(len(shown) / columns)
    if image_shape is None:
        figure = _bars(components, shown, (rows, columns), feature_names)
    else:
        figure = _images(components, shown, (rows, columns), image_shape)
    cut = "" if len(shown) == len(order) else f", the first {len(shown)} of {len(order)}"
    figure.suptitle(f"Parts: columns of U{cut}", fontsize=12, color=_DARK)
    return figure


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
    V = _numpy(V)
    drawn = np.unique(np.linspace(0, len(V) - 1, min(len(V), _MOST_POINTS)).astype(int))
    clusters = np.zeros(len(V), dtype=int) if labels is None else _numpy(labels).astype(int)
    outlier = np.zeros(len(V), dtype=bool) if share is None else _numpy(share) > 0
    figure = _figure(12, 5.4)
    left, right = figure.subplots(1, 2, width_ratios=(1.1, 1))
    places, explained = _principal_plane(V)
    _draw_map(left, places[drawn], clusters[drawn], outlier[drawn], named=labels is not None)
    left.set_xlabel(f"first principal axis ({explained[0]:.0%} of the variance)")
    left.set_ylabel(f"second principal axis ({explained[1]:.0%})")
    some = "" if len(drawn) == len(V) else f", {len(drawn)} of {len(V)} samples"
    left.set_title(f"Map of the codes{some}")
    _draw_codes(figure, right, V[drawn], clusters[drawn], named=labels is not None)
    return figure


def comparison(rows: Sequence[Row]) -> Figure:
    """How well models did, beside the time they took; failed ones are named below.

    Parameters
    ----------
    rows : sequence of Row
        The models from top to bottom, as from `compare`. With true labels their accuracy,
        NMI and purity are drawn, else the normalised cut.

    Returns
    -------
    matplotlib.figure.Figure
    """
    shown = [row for row in rows if row.error is None]
    labelled = any(row.accuracy is not None for row in shown)
    figure = _figure(10, (0.52 if labelled else 0.38) * len(shown) + 1.4)
    left, right = figure.subplots(1, 2, width_ratios=(1.7, 1), sharey=True)
    if labelled:
        _draw_scores(left, shown)
    else:
        cuts = [row.normalized_cut or 0.0 for row in shown]
        left.barh(range(len(shown)), cuts, color=_ACCENT, height=0.6)
        left.set_xlim(0, 1.12 * max(cuts, default=0) or 1)
        left.set_xlabel("normalised cut of the neighbour graph (lower is better)")
        _write_beside(left, cuts, range(len(shown)), (f"{cut:.3f}" for cut in cuts))
    _draw_seconds(right, [row.seconds or 0.0 for row in shown])
    left.set_yticks(range(len(shown)), [row.model for row in shown])
    left.set_ylim(len(shown) - 0.4, -0.6)
    for axes in (left, right):
        _tidy(axes)
        axes.spines["left"].set_visible(False)
        axes.tick_params(axis="y", length=0)
        axes.set_axisbelow(True)
        axes.grid(axis="x", color="0.92", linewidth=0.8)
    if failed := [row.model for row in rows if row.error is not None]:
        figure.supxlabel(f"Without results: {', '.join(failed)}", fontsize=9, color="0.4", x=0.01, ha="left")
    return figure


def parts_of_models(components: Mapping[str, Any], image_shape: tuple[int, int]) -> Figure:
    """The parts of several models as images, one row a model.

    Parameters
    ----------
    components : mapping of str to array of shape (k, p)
        The parts by the model's name, as in ``components_``. At most 20 are drawn of each.
        Every image has its own scale; where a model has negative ones, red is positive
        and blue negative.
    image_shape : (int, int)
        Height and width of a part, with ``height · width = p``.

    Returns
    -------
    matplotlib.figure.Figure
    """
    bases = {name: _numpy(parts) for name, parts in components.items()}
    for parts in bases.values():
        _check_shape(image_shape, parts.shape[1])
    most = max(len(parts) for parts in bases.values())
    columns, ratio, pitch = min(most, _MOST_PARTS_A_MODEL), image_shape[0] / image_shape[1], 1.1
    width = min(0.9, 13 / columns)
    figure = _figure(width * pitch * columns + 1.5, width * (ratio + 0.1) * len(bases) + 0.5)
    axes = figure.subplots()
    tops = [-row * (ratio + 0.1) for row in range(len(bases))]
    for top, parts in zip(tops, bases.values(), strict=True):
        signed = bool(parts.min() < 0)
        for j, part in enumerate(parts[:columns]):
            _draw_image(axes, part.reshape(image_shape), signed=signed, corner=(j * pitch, top))
    axes.set(xlim=(-0.02, columns * pitch - 0.08), ylim=(tops[-1] - ratio - 0.02, 0.02), xticks=[])
    axes.set_yticks([top - ratio / 2 for top in tops], list(bases), fontsize=11)
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)
    cut = "" if columns == most else f", the first {columns} of {most}"
    signs = " (red is positive, blue negative)" if any(parts.min() < 0 for parts in bases.values()) else ""
    figure.suptitle(f"Parts: columns of U{cut}{signs}", fontsize=12, color=_DARK)
    return figure


# Comparison ----------------------------------------------------------------------------


def _draw_scores(axes: Axes, rows: Sequence[Row]) -> None:
    """Three bars a model; the accuracy, by which the models are sorted, in numbers."""
    for place, (name, colour) in enumerate(_SCORES.items()):
        heights = [getattr(row, name.lower()) for row in rows]
        y = np.arange(len(rows)) + 0.26 * (place - 1)
        axes.barh(y, heights, height=0.26, color=colour, label=name)
        if place == 0:
            _write_beside(axes, heights, y, (f"{height:.3f}" for height in heights))
    axes.set_xlim(0, 1)
    axes.set_xlabel("agreement with the true labels")
    axes.legend(loc="lower left", bbox_to_anchor=(0, 1), ncols=3, frameon=False, fontsize=9)


def _draw_seconds(axes: Axes, seconds: Sequence[float]) -> None:
    """A dot a model between whole powers of ten."""
    shown = np.maximum(seconds, 1e-3)
    axes.hlines(range(len(shown)), 1e-9, shown, color="0.88", linewidth=1.2)
    axes.scatter(shown, range(len(shown)), color=_ACCENT, s=40, zorder=3)
    axes.set_xscale("log")
    low, high = (shown.min(), shown.max()) if len(shown) else (0.1, 1.0)
    axes.set_xlim(10 ** np.floor(np.log10(low / 1.5)), 10 ** np.ceil(np.log10(high * 2)))
    axes.xaxis.set_major_formatter("{x:g}")
    axes.xaxis.set_minor_formatter("")
    axes.tick_params(axis="x", which="minor", color="0.8")
    axes.set_xlabel("seconds a fit (log scale)")
    words = [f"{value:.2g}" if value < 99 else f"{value:.0f}" for value in seconds]
    _write_beside(axes, shown, range(len(shown)), words, gap=7)


def _write_beside(
    axes: Axes, x: Iterable[float], y: Iterable[float], words: Iterable[str], *, gap: float = 4
) -> None:
    """Words to the right of the ends of bars, or of dots."""
    for spot, word in zip(zip(x, y, strict=True), words, strict=True):
        text = axes.annotate(word, spot, (gap, 0), textcoords="offset points", va="center")
        text.set(fontsize=8, color=_DARK)


# Parts ---------------------------------------------------------------------------------


def _images(
    components: np.ndarray, shown: list[int], grid: tuple[int, int], shape: tuple[int, int]
) -> Figure:
    rows, columns = grid
    width = min(1.5, 14 / columns)
    figure = _figure(max(width * columns, 3), max((width * shape[0] / shape[1] + 0.25) * rows + 0.4, 1.5))
    signed = components.min() < 0
    for axes, j in _grid(figure, grid, shown):
        _draw_image(axes, components[j].reshape(shape), signed=signed)
        axes.set_title(str(j), fontsize=9, color=_DARK, pad=3)
        axes.set(xticks=[], yticks=[])
        for spine in axes.spines.values():
            spine.set_color("0.8")
    return figure


def _draw_image(
    axes: Axes, image: np.ndarray, *, signed: bool, corner: tuple[float, float] | None = None
) -> None:
    """An image on its own scale; framed and of unit width from ``corner`` on, where many share their axes."""
    largest = abs(image).max() or 1.0
    place = None
    if corner is not None:
        left, top = corner
        right, bottom = left + 1, top - image.shape[0] / image.shape[1]
        place = (left, right, bottom, top)
        corners = [left, right, right, left, left], [bottom, bottom, top, top, bottom]
        axes.plot(*corners, color="0.8", linewidth=0.8)
    axes.imshow(
        image,
        cmap="RdBu_r" if signed else "gray_r",
        vmin=-largest if signed else 0,
        vmax=largest,
        extent=place,
    )


def _check_shape(image_shape: tuple[int, int], p: int) -> None:
    if math.prod(image_shape) != p:
        msg = f"image_shape {image_shape} has {math.prod(image_shape)} pixels, but a part has {p} features."
        raise ValueError(msg)


def _bars(
    components: np.ndarray, shown: list[int], grid: tuple[int, int], names: Sequence[str] | None
) -> Figure:
    rows, columns = grid
    count = min(_MOST_BARS, components.shape[1])
    figure = _figure(max(2.4 * columns, 3.5), (0.19 * count + 0.55) * rows + 0.5)
    for axes, j in _grid(figure, grid, shown):
        top = np.argsort(-abs(components[j]), kind="stable")[:count]
        axes.barh(range(count), components[j, top], color=_ACCENT, height=0.7)
        words = [str(i) if names is None else _shorten(names[i]) for i in top]
        axes.set_yticks(range(count), words, fontsize=8)
        axes.invert_yaxis()
        axes.set_title(str(j), fontsize=9, color=_DARK, pad=3)
        axes.set_xticks([])
        _tidy(axes)
        axes.spines["bottom"].set_visible(False)
        axes.tick_params(length=0)
    return figure


def _grid(figure: Figure, grid: tuple[int, int], shown: list[int]) -> list[tuple[Axes, int]]:
    """Axes for every part; places without one stay empty."""
    places = figure.subplots(*grid, squeeze=False).reshape(-1)
    for axes in places[len(shown) :]:
        axes.set_axis_off()
    return list(zip(places, shown, strict=False))


def _shorten(name: str, most: int = 16) -> str:
    return name if len(name) <= most else f"{name[: most // 2]}…{name[-most // 2 + 1 :]}"


# Codes ---------------------------------------------------------------------------------


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
        axes.annotate(str(c), middle, ha="center", va="center", fontsize=9, color=_DARK, bbox=box)
    axes.margins(0.04)
    _tidy(axes)


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


# All figures ---------------------------------------------------------------------------


def _figure(width: float, height: float) -> Figure:
    from matplotlib.figure import Figure

    return Figure(figsize=(width, height), dpi=150, layout="constrained")


def _tidy(axes: Axes) -> None:
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    for side in ("left", "bottom"):
        axes.spines[side].set_color("0.6")
    axes.tick_params(color="0.6")


def _numpy(values: Any) -> np.ndarray:
    return to_numpy(values) if is_torch(values) else np.asarray(values)
