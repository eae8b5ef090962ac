"""Shared by all figures: sizes, colours, plain axes and panels."""

from __future__ import annotations

import math
import reprlib
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from lognmf.core.arrays import to_numpy

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

DARK, ACCENT = "#333333", "#2a6f97"

AXIS, GRID = "#8c8c8c", "#e6e6e6"
"""Axes, and the lines behind the marks. All else has a contrast of at least 3:1 on white, words 4.5:1."""

_MOST_COLUMNS = 4


def as_numpy(values: Any) -> np.ndarray:
    """An array of any library, in NumPy."""
    return to_numpy(values)


def fitted(model: Any, name: str) -> Any:
    """The attribute ``name`` of a fitted model, or of a clusterer's; what is no estimator, as it is."""
    if not hasattr(model, "get_params"):
        return model
    check_is_fitted(model)
    owner = model if hasattr(model, name) else getattr(model, "model_", None)
    if not hasattr(owner, name):
        msg = (
            f"{type(model).__name__} has no {name}: give a fitted model of lognmf, or the values themselves."
        )
        raise TypeError(msg)
    return getattr(owner, name)


def matrix_of(model: Any, name: str) -> np.ndarray:
    """The matrix ``name`` of a fitted model, or a matrix that was given in its place."""
    matrix = as_numpy(fitted(model, name))
    if matrix.ndim != 2 or matrix.dtype.kind not in "buif" or 0 in matrix.shape:
        msg = f"A fitted model or a matrix like its {name} is needed; got {reprlib.repr(model)}."
        raise ValueError(msg)
    return matrix


def check_count(name: str, values: Any, count: int, owners: str) -> None:
    """Refuse another number of values than there are owners."""
    if len(values) != count:
        msg = f"{name} must have {count} entries, one for each of the {owners}; got {len(values)}."
        raise ValueError(msg)


def new_figure(width: float, height: float) -> Figure:
    """An empty figure of this size, in inches."""
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        msg = 'Plots need matplotlib: run pip install "lognmf[plots]".'
        raise ImportError(msg) from error

    return Figure(figsize=(width, height), dpi=150, layout="constrained")


def tidy(axes: Axes) -> None:
    """Axes without a box: two pale lines."""
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    for side in ("left", "bottom"):
        axes.spines[side].set_color(AXIS)
    axes.tick_params(color=AXIS)


def panels(
    titles: Sequence[str], *, width: float = 3.1, height: float = 2.7, columns: int | None = None
) -> tuple[Figure, list[Axes]]:
    """A figure with one panel for each title, in as few rows as fit, and its panels."""
    columns = min(len(titles), _MOST_COLUMNS) if columns is None else columns
    rows = math.ceil(len(titles) / columns)
    figure = new_figure(max(width * columns + 0.3, 4.0), height * rows + 0.3)
    places = list(figure.subplots(rows, columns, squeeze=False).reshape(-1))
    for axes in places[len(titles) :]:
        axes.set_axis_off()
    for axes, title in zip(places, titles, strict=False):
        axes.set_title(title, fontsize=10.5, color=DARK, parse_math=False)
        axes.grid(color=GRID, linewidth=0.8)
        tidy(axes)
    return figure, places[: len(titles)]


def draw_cells(
    axes: Axes, heights: np.ndarray, values: tuple[list[Any], list[Any]], fontsize: int = 10, **look: Any
) -> Any:
    """A heat map without a frame, its rows and columns named by their values."""
    mesh = axes.pcolormesh(heights, edgecolors="white", **look)
    for axis, side in zip((axes.xaxis, axes.yaxis), values, strict=True):
        axis.set_ticks(
            np.arange(len(side)) + 0.5, [in_few_letters(value) for value in side], fontsize=fontsize
        )
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)
    return mesh


def in_few_letters(value: Any) -> str:
    """A value in a few letters."""
    number = isinstance(value, int | float) and not isinstance(value, bool)
    return f"{value:g}" if number else str(value)
