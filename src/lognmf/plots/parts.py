"""The parts U: of one model, and of several below one another."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from lognmf.plots.samples import check_shape, place_image
from lognmf.plots.style import ACCENT, AXIS, DARK, check_count, matrix_of, new_figure, tidy

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_MOST_PARTS = 64
_MOST_BARS = 8
_MOST_BAR_CHARTS = 5
"""Side by side, so that the figure is no wider than a page."""

_MOST_PARTS_A_MODEL = 20


def parts(
    components: Any,
    image_shape: tuple[int, int] | None = None,
    order: Sequence[int] | None = None,
    *,
    feature_names: Sequence[str] | None = None,
    cmap: str = "gray",
) -> Figure:
    """The parts: images if their shape is given, else the largest features of each.

    An image is drawn as the samples are: black is zero, and white the largest value of the part.
    Where parts have negative entries, red is positive and blue negative.

    Parameters
    ----------
    components : fitted model, or array of shape (k, p)
        The model or clusterer, or its ``components_``. At most 64 parts are drawn.
    image_shape : (int, int), optional
        Height and width of a part, with ``height · width = p``.
    order : sequence of int, optional
        Which parts, in which order; default 0, 1, ….
    feature_names : sequence of str, optional
        Names of the p features; default those of the data frame that the model was fitted to.
    cmap : str, default="gray"
        Colours of images without negative entries; "gray_r" draws black on white.

    Returns
    -------
    matplotlib.figure.Figure

    Raises
    ------
    ValueError
        If the model is not fitted, or ``image_shape`` or ``feature_names`` does not suit the components.

    See Also
    --------
    parts_of_models : Several models side by side.

    Examples
    --------
    >>> figure = parts([[0, 3, 1], [5, 0, 1]], feature_names=["apple", "banana", "cherry"])
    """
    if feature_names is None:
        feature_names = getattr(components, "feature_names_in_", None)
    components = matrix_of(components, "components_")
    if feature_names is not None:
        check_count("feature_names", feature_names, components.shape[1], "features")
    if image_shape is not None:
        check_shape(image_shape, components.shape[1], "a part")
    order = list(range(len(components)) if order is None else order)
    shown = order[:_MOST_PARTS]
    most = _MOST_PARTS if image_shape is not None else _MOST_BAR_CHARTS
    columns = min(len(shown), math.ceil(math.sqrt(2 * len(shown))), most)
    grid = math.ceil(len(shown) / columns), columns
    if image_shape is None:
        figure = _bars(components, shown, grid, feature_names)
    else:
        figure = _images(components, shown, grid, image_shape, cmap)
    cut = "" if len(shown) == len(order) else f", the first {len(shown)} of {len(order)}"
    figure.suptitle(f"Parts: rows of components_{cut}", fontsize=12, color=DARK)
    return figure


def _images(
    components: np.ndarray, shown: list[int], grid: tuple[int, int], shape: tuple[int, int], cmap: str
) -> Figure:
    """Each part as an image in its own axes."""
    rows, columns = grid
    width = min(1.4, 11 / columns)
    figure = new_figure(max(width * columns, 3), max((width * shape[0] / shape[1] + 0.25) * rows + 0.4, 1.5))
    signed = components.min() < 0
    for axes, j in _axes_of_parts(figure, grid, shown):
        low, high, colours = _scale(components[j], cmap, signed=signed)
        axes.imshow(components[j].reshape(shape), cmap=colours, vmin=low, vmax=high, interpolation="none")
        axes.set_title(f"part {j}", fontsize=9, color=DARK, pad=3)
        axes.set(xticks=[], yticks=[])
        for spine in axes.spines.values():
            spine.set_color(AXIS)
    return figure


def _bars(
    components: np.ndarray, shown: list[int], grid: tuple[int, int], names: Sequence[str] | None
) -> Figure:
    """The largest features of each part as bars, as many as are not zero."""
    rows, columns = grid
    count = int(np.clip(np.count_nonzero(components[shown], axis=1).max(), 1, _MOST_BARS))
    figure = new_figure(max(2.2 * columns, 3.5), (0.19 * count + 0.55) * rows + 0.5)
    for axes, j in _axes_of_parts(figure, grid, shown):
        top = np.argsort(-abs(components[j]), kind="stable")[:count]
        top = top[components[j, top] != 0]
        axes.barh(range(len(top)), components[j, top], color=ACCENT, height=0.7)
        words = [str(i) if names is None else shorten(names[i]) for i in top]
        axes.set_yticks(range(len(top)), words, fontsize=8, parse_math=False)
        axes.set_ylim(count - 0.5, -0.5)  # bars of all parts are equally thick
        axes.set_title(f"part {j}", fontsize=9, color=DARK, pad=3)
        axes.set_xticks([])
        tidy(axes)
        axes.spines["bottom"].set_visible(False)
        axes.tick_params(length=0)
    return figure


def _axes_of_parts(figure: Figure, grid: tuple[int, int], shown: list[int]) -> list[tuple[Axes, int]]:
    """Axes for every part; those without a part stay empty."""
    places = figure.subplots(*grid, squeeze=False).reshape(-1)
    for axes in places[len(shown) :]:
        axes.set_axis_off()
    return list(zip(places, shown, strict=False))


def shorten(name: str, most: int = 16) -> str:
    """A name without its middle where it is too long: both ends may tell features apart."""
    return name if len(name) <= most else f"{name[: most // 2]}…{name[-most // 2 + 1 :]}"


def parts_of_models(
    components: Mapping[str, Any], image_shape: tuple[int, int], *, cmap: str = "gray"
) -> Figure:
    """The parts of several models as images, one row per model.

    Parameters
    ----------
    components : mapping of str to fitted model or array of shape (k, p)
        The models or their parts by the model's name, as in ``components_``. At most 20 are drawn of each.
        Every image has its own scale, from black at zero to white; where a model has negative
        entries, red is positive and blue negative.
    image_shape : (int, int)
        Height and width of a part, with ``height · width = p``.
    cmap : str, default="gray"
        Colours of models without negative entries; "gray_r" draws black on white.

    Returns
    -------
    matplotlib.figure.Figure

    Raises
    ------
    ValueError
        If ``image_shape`` does not suit the components.

    See Also
    --------
    parts : One model.

    Examples
    --------
    >>> figure = parts_of_models({"NMF": [[0, 3, 1, 2]], "ONMF": [[1, 0, 0, 2]]}, (2, 2))
    """
    bases = {name: matrix_of(parts, "components_") for name, parts in components.items()}
    for parts in bases.values():
        check_shape(image_shape, parts.shape[1], "a part")
    most = max(len(parts) for parts in bases.values())
    columns, ratio, pitch = min(most, _MOST_PARTS_A_MODEL), image_shape[0] / image_shape[1], 1.1
    width = min(0.9, 9.2 / columns)
    figure = new_figure(width * pitch * columns + 1.5, width * (ratio + 0.1) * len(bases) + 0.5)
    axes = figure.subplots()
    tops = [-row * (ratio + 0.1) for row in range(len(bases))]
    for top, parts in zip(tops, bases.values(), strict=True):
        signed = bool(parts.min() < 0)
        for j, part in enumerate(parts[:columns]):
            left, bottom = j * pitch, top - ratio
            frame = [left, left + 1, left + 1, left, left], [bottom, bottom, top, top, bottom]
            axes.plot(*frame, color=AXIS, linewidth=0.8)
            low, high, colours = _scale(part, cmap, signed=signed)
            place_image(axes, part.reshape(image_shape), (left, top), (low, high), colours)
    axes.set(xlim=(-0.02, columns * pitch - 0.08), ylim=(tops[-1] - ratio - 0.02, 0.02), xticks=[])
    axes.set_yticks([top - ratio / 2 for top in tops], list(bases), fontsize=11, parse_math=False)
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)
    cut = "" if columns == most else f", the first {columns} of {most}"
    signs = " (red is positive, blue negative)" if any(parts.min() < 0 for parts in bases.values()) else ""
    figure.suptitle(f"Parts: rows of components_{cut}{signs}", fontsize=12, color=DARK)
    return figure


def _scale(part: np.ndarray, cmap: str, *, signed: bool) -> tuple[float, float, str]:
    """Lowest and highest value of a part on its own scale, and its colours."""
    largest = abs(part).max() or 1.0
    return (-largest, largest, "RdBu_r") if signed else (0, largest, cmap)
