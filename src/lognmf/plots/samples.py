"""What the data look like: samples of each class, of several data sets, and of noisy copies."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from lognmf.plots.canvas import as_numpy
from lognmf.plots.gallery import as_pictures, draw_rows, spread_out

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["noise_levels", "samples", "samples_of_sets"]


def samples(
    X: Any,
    image_shape: tuple[int, int],
    y: Any = None,
    *,
    class_names: Sequence[str] | None = None,
    n_classes: int = 10,
    per_class: int = 12,
) -> Figure:
    """Samples as pictures, a row for each class.

    Parameters
    ----------
    X : array of shape (n, p)
        Samples in rows.
    image_shape : (int, int)
        Height and width of a picture, with ``height · width = p``.
    y : array of shape (n,), optional
        Classes. Without them the samples fill rows in their order.
    class_names : sequence of str, optional
        Names of the classes in the order of their sorted values; default the values.
    n_classes, per_class : int
        Most rows, and most pictures in each; both are an even selection.

    Returns
    -------
    matplotlib.figure.Figure
    """
    pictures = as_pictures(as_numpy(X), image_shape)
    if y is None:
        shown = spread_out(len(pictures), n_classes * per_class)
        lines = [shown[i : i + per_class] for i in range(0, len(shown), per_class)]
        return draw_rows([("", pictures[line]) for line in lines])
    y = as_numpy(y)
    classes = np.unique(y)
    drawn = spread_out(len(classes), n_classes)
    names = [str(c) for c in classes] if class_names is None else list(class_names)
    members = {c: np.flatnonzero(y == classes[c]) for c in drawn}
    rows = [(names[c], pictures[members[c][spread_out(len(members[c]), per_class)]]) for c in drawn]
    cut = "" if len(drawn) == len(classes) else f", {len(drawn)} of {len(classes)} classes"
    return draw_rows(rows, title=f"Samples by class{cut}")


def samples_of_sets(sets: Mapping[str, tuple[Any, tuple[int, int]]], *, count: int = 12) -> Figure:
    """Samples of several data sets, a row for each.

    Parameters
    ----------
    sets : mapping of str to (array of shape (n, p), (int, int))
        Samples and the shape of their pictures, by the name of the set.
    count : int, default=12
        Most pictures of each: an even selection.

    Returns
    -------
    matplotlib.figure.Figure
    """
    rows = []
    for name, (X, shape) in sets.items():
        pictures = as_pictures(as_numpy(X), shape)
        rows.append((name, pictures[spread_out(len(pictures), count)]))
    return draw_rows(rows)


def noise_levels(sets: Mapping[str, tuple[Mapping[str, Any], tuple[int, int]]], *, count: int = 3) -> Figure:
    """The same samples under rising noise, side by side.

    Parameters
    ----------
    sets : mapping of str to (mapping of str to array of shape (n, p), (int, int))
        For each data set its noisy copies by the name of the level, and the shape of the
        pictures. The levels are the same for all sets.
    count : int, default=3
        Samples of each set: an even selection.

    Returns
    -------
    matplotlib.figure.Figure
        A row for each data set; in it the levels of one sample stand together.
    """
    rows = []
    for name, (levels, shape) in sets.items():
        copies = [as_pictures(as_numpy(X), shape) for X in levels.values()]
        chosen = spread_out(len(copies[0]), count)
        rows.append((name, [copy[i] for i in chosen for copy in copies]))
    first = list(next(iter(sets.values()))[0])
    return draw_rows(rows, heads=first * count, group=len(first))
