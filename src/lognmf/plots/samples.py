"""What the samples of a data set look like, class by class."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from lognmf.plots.canvas import ACCENT, DARK, as_numpy, new_figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_ROWS_A_BLOCK = 20
_MOST_CLASSES = 40
_GAP = 0.06
"""Gap between samples, in widths of a sample."""

_LETTER = 0.07
"""Room for a letter, in inches."""


def samples(
    X: Any,
    y: Any = None,
    *,
    image_shape: tuple[int, int] | None = None,
    class_names: Sequence[str] | None = None,
    points: bool = False,
    per_class: int = 8,
    title: str | None = None,
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
        Most samples of a class.
    title : str, optional
        What stands above.

    Returns
    -------
    matplotlib.figure.Figure
        Pictures in grey, lines through points, else each sample as a curve over its features.
    """
    X = as_numpy(X)
    if image_shape is not None and math.prod(image_shape) != X.shape[1]:
        msg = (
            f"image_shape {image_shape} has {math.prod(image_shape)} pixels, but X has {X.shape[1]} features."
        )
        raise ValueError(msg)
    rows, names, cut = _rows(len(X), None if y is None else as_numpy(y), class_names, per_class)
    ratio = 1.0 if image_shape is None else image_shape[0] / image_shape[1]
    blocks = math.ceil(len(rows) / _ROWS_A_BLOCK)
    high = math.ceil(len(rows) / blocks)
    names = [_shorten(name) for name in names]
    room = _LETTER * (max(map(len, names)) + 4) if any(names) else 0.0
    tiles = max(map(len, rows)) * (1 + _GAP) + _GAP
    width = min(0.55, (12 / blocks - room) / tiles)
    label = room / width
    block, pitch = label + tiles, ratio + _GAP
    figure = new_figure(max(width * blocks * block, 3), max(width * pitch * high, 0.5) + 0.5)
    axes = figure.subplots()
    draw = _draw_picture if image_shape is not None else _draw_path if points else _draw_curve
    known = X[np.isfinite(X)]
    limits = (float(known.min()), float(known.max())) if known.size else (0.0, 1.0)
    for place, (row, name) in enumerate(zip(rows, names, strict=True)):
        left, top = place // high * block + label, -(place % high) * pitch
        axes.text(
            left - 0.15,
            top - ratio / 2,
            name,
            ha="right",
            va="center",
            fontsize=8,
            color=DARK,
            parse_math=False,
        )
        for j, i in enumerate(row):
            x = X[i] if image_shape is None else X[i].reshape(image_shape)
            draw(axes, x, (left + j * (1 + _GAP), top), limits)
    axes.set(xlim=(0, blocks * block), ylim=(-high * pitch, _GAP), aspect="equal")
    axes.set_axis_off()
    heading = f"{title or ''}{' ' if title and cut else ''}{cut}"
    if heading:
        figure.suptitle(heading, fontsize=12, color=DARK, parse_math=False)
    return figure


def _rows(
    n: int, y: np.ndarray | None, class_names: Sequence[str] | None, per_class: int
) -> tuple[list[np.ndarray], list[str], str]:
    """Samples of each row, its name, and what the heading says about classes that are left out."""
    if y is None:
        shown = _spread(np.arange(n), per_class * per_class)
        return (
            [shown[i : i + per_class] for i in range(0, len(shown), per_class)],
            [""] * math.ceil(len(shown) / per_class),
            "",
        )
    labels = np.unique(y)
    shown_labels = labels[:_MOST_CLASSES]
    rows = [_spread(np.flatnonzero(y == label), per_class) for label in shown_labels]
    names = [str(label) if class_names is None else str(class_names[label]) for label in shown_labels]
    cut = "" if len(labels) <= _MOST_CLASSES else f"(the first {_MOST_CLASSES} of {len(labels)} classes)"
    return rows, names, cut


def _spread(indices: np.ndarray, most: int) -> np.ndarray:
    """At most ``most`` of the indices, from the first on at even distances."""
    count = min(most, len(indices))
    # Not up to the last one: of an object on a turntable that would be the first again.
    return indices[np.arange(count) * len(indices) // count]


def _draw_picture(
    axes: Axes, x: np.ndarray, corner: tuple[float, float], limits: tuple[float, float]
) -> None:
    left, top = corner
    place = (left, left + 1, top - x.shape[0] / x.shape[1], top)
    axes.imshow(x, cmap="gray", vmin=limits[0], vmax=limits[1], extent=place)


def _draw_path(axes: Axes, x: np.ndarray, corner: tuple[float, float], limits: tuple[float, float]) -> None:
    left, top = corner
    unit = 0.1 + 0.8 * _unit(x, limits)
    axes.plot(left + unit[0::2], top - 1 + unit[1::2], color=DARK, linewidth=1.2, solid_joinstyle="round")
    axes.plot(left + unit[0], top - 1 + unit[1], ".", color=ACCENT, markersize=4)


def _draw_curve(axes: Axes, x: np.ndarray, corner: tuple[float, float], limits: tuple[float, float]) -> None:
    left, top = corner
    axes.plot(left + np.linspace(0, 1, len(x)), top - 1 + _unit(x, limits), color=DARK, linewidth=0.6)


def _unit(x: np.ndarray, limits: tuple[float, float]) -> np.ndarray:
    smallest, largest = limits
    return (x - smallest) / ((largest - smallest) or 1.0)


def _shorten(name: str, most: int = 12) -> str:
    return name if len(name) <= most else f"{name[: most - 1]}…"
