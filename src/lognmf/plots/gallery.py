"""Pictures in rows, as the figures of samples, noise and reconstructions need them."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from lognmf.plots.canvas import DARK, new_figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_GAP = 0.08
_GROUP_GAP = 0.35
_LARGEST = 1.05
_WIDEST = 12.5
_TALLEST = 8.0


def draw_rows(
    rows: Sequence[tuple[str, Sequence[np.ndarray]]],
    *,
    heads: Sequence[str] = (),
    group: int = 0,
    cmaps: Mapping[str, str] | None = None,
) -> Figure:
    """Rows of pictures with their names to the left; every picture on its own scale of greys.

    Parameters
    ----------
    rows : sequence of (str, sequence of arrays)
        Name and pictures (height, width) of each row, all of the same width on paper.
    heads : sequence of str, optional
        What stands above the columns.
    group : int, default=0
        Columns that belong together, with a gap behind them; 0 for none.
    cmaps : mapping of str to str, optional
        Colour maps of rows that have signs, centred at zero.

    Returns
    -------
    matplotlib.figure.Figure
    """
    columns = max(len(pictures) for _, pictures in rows)
    lefts = [j * (1 + _GAP) + (j // group * _GROUP_GAP if group else 0) for j in range(columns)]
    heights = [max(picture.shape[0] / picture.shape[1] for picture in pictures) for _, pictures in rows]
    tops = -np.concatenate(([0.0], np.cumsum([height + _GAP for height in heights])))
    across, down = lefts[-1] + 1, -tops[-1]
    unit = min(_LARGEST, _WIDEST / across, _TALLEST / down)
    figure, axes = _axes(unit * across, unit * down, max(len(name) for name, _ in rows), bool(heads))
    for top, (name, pictures) in zip(tops, rows, strict=False):
        for left, picture in zip(lefts, pictures, strict=False):
            _place(axes, picture, (left, top), (cmaps or {}).get(name))
    axes.set(xlim=(0, across), ylim=(-down, 0))
    middles = [top - height / 2 for top, height in zip(tops, heights, strict=False)]
    axes.set_yticks(middles, [name for name, _ in rows], fontsize=10, color=DARK, parse_math=False)
    heads = heads[:columns]
    axes.set_xticks(
        [left + 0.5 for left in lefts[: len(heads)]], heads, fontsize=9, color=DARK, parse_math=False
    )
    axes.xaxis.tick_top()
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)
    return figure


def _axes(width: float, height: float, letters: int, heads: bool) -> tuple[Figure, Axes]:
    """A figure and axes of this size in inches, with just the room that the words around them take."""
    left, top = 0.085 * letters + 0.15, 0.08 + 0.25 * heads
    room = max(left + width + 0.1, 3.0), top + height + 0.05
    figure = new_figure(*room)
    figure.set_layout_engine("none")
    place = (left / room[0], 0.05 / room[1], width / room[0], height / room[1])
    return figure, figure.add_axes(place)


def as_pictures(X: Any, image_shape: tuple[int, int]) -> np.ndarray:
    """Samples (n, p) as pictures (n, height, width), or a sentence why they are none."""
    X = np.asarray(X)
    if X.shape[1] != math.prod(image_shape):
        msg = (
            f"image_shape {tuple(image_shape)} has {math.prod(image_shape)} pixels, "
            f"but a sample has {X.shape[1]} features."
        )
        raise ValueError(msg)
    return X.reshape(len(X), *image_shape)


def spread_out(n: int, count: int) -> np.ndarray:
    """At most ``count`` of n places, evenly spaced."""
    return np.unique(np.linspace(0, n - 1, min(n, count)).round().astype(int))


def _place(axes: Axes, picture: np.ndarray, corner: tuple[float, float], cmap: str | None) -> None:
    left, top = corner
    extent = (left, left + 1, top - picture.shape[0] / picture.shape[1], top)
    if cmap is None:
        low, high = float(picture.min()), float(picture.max())
    else:
        high = float(abs(picture).max())
        low = -high
    if high <= low:  # a picture of one value
        low, high = low - 0.5, high + 0.5
    axes.imshow(
        picture,
        cmap=cmap or "gray",
        vmin=low,
        vmax=high,
        extent=extent,
        interpolation="nearest",
        aspect="auto",
    )
