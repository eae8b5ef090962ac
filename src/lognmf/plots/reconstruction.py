"""What a model keeps of the samples, and what it puts aside."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from lognmf.plots.canvas import as_numpy
from lognmf.plots.gallery import as_pictures, draw_rows, spread_out

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["reconstructions"]


def reconstructions(
    X: Any,
    rebuilt: Any,
    image_shape: tuple[int, int],
    *,
    outliers: Any = None,
    chosen: Sequence[int] | None = None,
    count: int = 10,
) -> Figure:
    """Original pictures above their reconstructions, and the outlier part below.

    Parameters
    ----------
    X : array of shape (n, p)
        Samples in rows.
    rebuilt : array of shape (n, p)
        ``V Uᵀ``, as from ``model.inverse_transform(model.embedding_)``.
    image_shape : (int, int)
        Height and width of a picture, with ``height · width = p``.
    outliers : array of shape (n, p), optional
        The outlier part S, as from ``model.outliers(X)``. Red is positive and blue negative.
    chosen : sequence of int, optional
        Which samples; default an even selection.
    count : int, default=10
        How many, where they are not chosen.

    Returns
    -------
    matplotlib.figure.Figure
    """
    kinds = {"original": X, "reconstruction": rebuilt} | (
        {} if outliers is None else {"outlier part": outliers}
    )
    places = spread_out(len(as_numpy(X)), count) if chosen is None else np.asarray(chosen)
    rows = [(name, as_pictures(as_numpy(data), image_shape)[places]) for name, data in kinds.items()]
    return draw_rows(rows, heads=[str(i) for i in places], cmaps={"outlier part": "RdBu_r"})
