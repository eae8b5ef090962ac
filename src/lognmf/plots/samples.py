"""Samples as pictures, lines or curves, and rows of chosen pictures."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from lognmf.plots.style import ACCENT, DARK, as_numpy, check_count, new_figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_ROWS_A_BLOCK = 20
_MOST_CLASSES = 40
_LETTER = 0.07
"""Room for a letter, in inches."""

_GAP, _ROW_GAP, _GROUP_GAP = 0.06, 0.08, 0.35
"""Gaps between samples of a class, between pictures in rows and between groups, in widths of a picture."""

_LARGEST, _WIDEST, _TALLEST = 1.05, 10.0, 8.0
"""Largest width of a picture, and largest width and height of rows of pictures, in inches."""


def samples(
    X: Any,
    y: Any = None,
    *,
    image_shape: tuple[int, int] | None = None,
    class_names: Sequence[str] | None = None,
    points: bool = False,
    per_class: int = 8,
    title: str | None = None,
    cmap: str = "gray",
) -> Figure:
    """Samples of each class in a row, spread evenly over the samples it has.

    Parameters
    ----------
    X : array of shape (n, p)
        Samples, all drawn on one scale; missing entries stay white.
    y : array of shape (n,), optional
        Classes 0, 1, …. Without them samples of the whole set are drawn. At most 40 classes are shown.
    image_shape : (int, int), optional
        Height and width, when samples are pictures.
    class_names : sequence of str, optional
        What the classes are called.
    points : bool, default=False
        Whether the features are points x1 y1 x2 y2 … of a line, which is then drawn.
    per_class : int, default=8
        Maximum number of samples of a class.
    title : str, optional
        Heading of the figure.
    cmap : str, default="gray"
        Colours of pictures; "gray_r" draws black on white.

    Returns
    -------
    matplotlib.figure.Figure
        Pictures, lines through points, else each sample as a curve over its features.

    Raises
    ------
    ValueError
        If ``image_shape`` does not suit X, or y has another number of samples.

    See Also
    --------
    pictures : Chosen pictures in rows.

    Examples
    --------
    >>> figure = samples(np.eye(4), [0, 0, 1, 1], image_shape=(2, 2), class_names=["left", "right"])
    """
    X = as_numpy(X)
    if image_shape is not None:
        check_shape(image_shape, X.shape[1], "X")
    if y is not None:
        check_count("y", y, len(X), "samples")
    rows, names, cut = _rows(len(X), None if y is None else as_numpy(y), class_names, per_class)
    ratio = 1.0 if image_shape is None else image_shape[0] / image_shape[1]
    blocks = math.ceil(len(rows) / _ROWS_A_BLOCK)
    high = math.ceil(len(rows) / blocks)
    room = _LETTER * (max(map(len, names)) + 4) if any(names) else 0.0
    tiles = max(map(len, rows)) * (1 + _GAP) + _GAP
    width = min(0.55, (11 / blocks - room) / tiles)
    label = room / width
    block, pitch = label + tiles, ratio + _GAP
    heading = " ".join(filter(None, (title, cut)))
    above = 0.5 if heading else 0.1
    figure = new_figure(max(width * blocks * block, 3), max(width * pitch * high, 0.5) + above)
    axes = figure.subplots()
    image = partial(place_image, cmap=cmap)
    draw = image if image_shape is not None else _draw_path if points else _draw_curve
    finite = X[np.isfinite(X)]
    limits = (float(finite.min()), float(finite.max())) if finite.size else (0.0, 1.0)
    words: dict[str, Any] = {"ha": "right", "va": "center", "fontsize": 8, "color": DARK, "parse_math": False}
    for place, (row, name) in enumerate(zip(rows, names, strict=True)):
        left, top = place // high * block + label, -(place % high) * pitch
        axes.text(left - 0.15, top - ratio / 2, name, **words)
        for j, i in enumerate(row):
            x = X[i] if image_shape is None else X[i].reshape(image_shape)
            draw(axes, x, (left + j * (1 + _GAP), top), limits)
    axes.set(xlim=(0, blocks * block), ylim=(-high * pitch, _GAP), aspect="equal")
    axes.set_axis_off()
    if heading:
        figure.suptitle(heading, fontsize=12, color=DARK, parse_math=False)
    return figure


def _rows(
    n: int, y: np.ndarray | None, class_names: Sequence[str] | None, per_class: int
) -> tuple[list[np.ndarray], list[str], str]:
    """Samples of each row, its name, and what the heading says about classes that are left out."""
    if y is None:
        shown = _spread(np.arange(n), per_class * per_class)
        rows = [shown[i : i + per_class] for i in range(0, len(shown), per_class)]
        return rows, [""] * len(rows), ""
    labels = np.unique(y)
    shown_labels = labels[:_MOST_CLASSES]
    rows = [_spread(np.flatnonzero(y == label), per_class) for label in shown_labels]
    names = [str(label) if class_names is None else str(class_names[label]) for label in shown_labels]
    cut = "" if len(labels) <= _MOST_CLASSES else f"(the first {_MOST_CLASSES} of {len(labels)} classes)"
    return rows, [name if len(name) <= 12 else f"{name[:11]}…" for name in names], cut


def _spread(indices: np.ndarray, most: int) -> np.ndarray:
    """At most ``most`` of the indices, from the first on at even distances."""
    count = min(most, len(indices))
    # Not up to the last one: of an object on a turntable that would be the first again.
    return indices[np.arange(count) * len(indices) // count]


def place_image(
    axes: Axes,
    image: np.ndarray,
    corner: tuple[float, float],
    limits: tuple[float, float],
    cmap: str = "gray",
    **options: Any,
) -> None:
    """An image of unit width below its upper left corner."""
    left, top = corner
    extent = (left, left + 1, top - image.shape[0] / image.shape[1], top)
    options = {"interpolation": "none"} | options
    axes.imshow(image, cmap=cmap, vmin=limits[0], vmax=limits[1], extent=extent, **options)


def _draw_path(axes: Axes, x: np.ndarray, corner: tuple[float, float], limits: tuple[float, float]) -> None:
    """A sample as a line through its points, with a dot where it begins."""
    left, top = corner
    unit = 0.1 + 0.8 * _unit(x, limits)
    axes.plot(left + unit[0::2], top - 1 + unit[1::2], color=DARK, linewidth=1.2, solid_joinstyle="round")
    axes.plot(left + unit[0], top - 1 + unit[1], ".", color=ACCENT, markersize=4)


def _draw_curve(axes: Axes, x: np.ndarray, corner: tuple[float, float], limits: tuple[float, float]) -> None:
    """A sample as a curve over its features."""
    left, top = corner
    axes.plot(left + np.linspace(0, 1, len(x)), top - 1 + _unit(x, limits), color=DARK, linewidth=0.6)


def _unit(x: np.ndarray, limits: tuple[float, float]) -> np.ndarray:
    """Values between the limits, mapped to 0 … 1."""
    smallest, largest = limits
    return (x - smallest) / ((largest - smallest) or 1.0)


# Rows of pictures --------------------------------------------------------------------------


def pictures(
    rows: Mapping[str, Sequence[Any]],
    *,
    heads: Sequence[str] = (),
    group: int = 0,
    signed: Sequence[str] = (),
) -> Figure:
    """Named rows of pictures, each picture on its own scale.

    Parameters
    ----------
    rows : mapping of str to sequence of arrays of shape (height, width)
        The pictures by the name of their row: of a data set, of its reconstruction, ….
    heads : sequence of str, optional
        Words above the columns.
    group : int, default=0
        Number of columns that stand together, before a gap; 0 for no gaps.
    signed : sequence of str, optional
        Names of rows in which red is positive and blue negative.

    Returns
    -------
    matplotlib.figure.Figure

    See Also
    --------
    samples : The samples of one data set, by class.

    Examples
    --------
    >>> X = np.arange(12.0).reshape(3, 2, 2)
    >>> figure = pictures({"samples": X, "changes": X - 5}, heads=["a", "b", "c"], signed=["changes"])
    """
    drawn = {name: [as_numpy(picture) for picture in row] for name, row in rows.items()}
    columns = max(map(len, drawn.values()))
    lefts = [j * (1 + _ROW_GAP) + (j // group * _GROUP_GAP if group else 0) for j in range(columns)]
    heights = [max(picture.shape[0] / picture.shape[1] for picture in row) for row in drawn.values()]
    tops = -np.concatenate(([0.0], np.cumsum([height + _ROW_GAP for height in heights])))
    across, down = lefts[-1] + 1, -tops[-1]
    unit = min(_LARGEST, _WIDEST / across, _TALLEST / down)
    figure, axes = _tight_axes(unit * across, unit * down, max(map(len, rows)), bool(heads))
    for top, (name, row) in zip(tops, drawn.items(), strict=False):
        for left, picture in zip(lefts, row, strict=False):
            _place(axes, picture, (left, top), "RdBu_r" if name in signed else None)
    axes.set(xlim=(0, across), ylim=(-down, 0))
    middles = [top - height / 2 for top, height in zip(tops, heights, strict=False)]
    words: dict[str, Any] = {"color": DARK, "parse_math": False}
    axes.set_yticks(middles, list(rows), fontsize=10, **words)
    heads = heads[:columns]
    axes.set_xticks([left + 0.5 for left in lefts[: len(heads)]], heads, fontsize=9, **words)
    axes.xaxis.tick_top()
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)
    return figure


def _tight_axes(width: float, height: float, letters: int, heads: bool) -> tuple[Figure, Axes]:
    """A figure and axes of this size in inches, with just enough room for the words around them."""
    left, top = 0.085 * letters + 0.15, 0.08 + 0.25 * heads
    room = max(left + width + 0.1, 3.0), top + height + 0.05
    figure = new_figure(*room)
    figure.set_layout_engine("none")
    place = (left / room[0], 0.05 / room[1], width / room[0], height / room[1])
    return figure, figure.add_axes(place)


def _place(axes: Axes, picture: np.ndarray, corner: tuple[float, float], cmap: str | None) -> None:
    """A picture on its own scale of greys, or of colours that are centred at zero."""
    high = float(picture.max() if cmap is None else abs(picture).max())
    low = float(picture.min()) if cmap is None else -high
    if high <= low:  # a picture of one value
        low, high = low - 0.5, high + 0.5
    place_image(axes, picture, corner, (low, high), cmap or "gray", aspect="auto")


def check_shape(image_shape: tuple[int, int], p: int, owner: str) -> None:
    """Refuse pictures of another number of pixels than there are features."""
    if math.prod(image_shape) != p:
        pixels = math.prod(image_shape)
        msg = (
            f"image_shape {tuple(image_shape)} has {pixels} pixels, but {owner} has {p} features: "
            "give a height and width whose product is the number of features."
        )
        raise ValueError(msg)
