"""What all figures share: paper, colours and plain axes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from lognmf.core.arrays import is_torch, to_numpy

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

DARK, ACCENT = "#333333", "#2a6f97"


def new_figure(width: float, height: float) -> Figure:
    """An empty figure of this size, in inches."""
    from matplotlib.figure import Figure

    return Figure(figsize=(width, height), dpi=150, layout="constrained")


def tidy(axes: Axes) -> None:
    """Axes without a box: two pale lines."""
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    for side in ("left", "bottom"):
        axes.spines[side].set_color("0.6")
    axes.tick_params(color="0.6")


def as_numpy(values: Any) -> np.ndarray:
    """Values of any array library in NumPy."""
    return to_numpy(values) if is_torch(values) else np.asarray(values)
