"""Samples of several data sets, and of their noisy copies."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from lognmf.plots.canvas import as_numpy
from lognmf.plots.gallery import as_pictures, draw_rows, spread_out

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["noise_levels", "samples_of_sets"]


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
