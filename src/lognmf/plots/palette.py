"""Colours that mean the same in every figure, told apart by every kind of colour vision."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import cycle
from typing import Any

__all__ = ["SCORES", "bar_colours", "line_styles"]

_MODELS = {
    "NMF": "#6e7781",
    "GNMF": "#117733",
    "RMNMF": "#882255",
    "WNMF": "#56b4e9",
    "CNMF": "#999933",
    "ONMF": "#aa4499",
    "Semi-NMF": "#d8a200",
    "LS-NMF": "#0072b2",
    "RLS-NMF": "#d55e00",
}
"""The paper's two models are the strong blue and red, the baselines quieter."""

_OTHERS = ("#0072b2", "#d55e00", "#117733", "#aa4499", "#56b4e9", "#d8a200", "#6e7781", "#882255", "#999933")
_DASHES = ("-", (0, (5, 1.5)), (0, (1.2, 1.2)), (0, (6, 1.5, 1.2, 1.5)))
_MARKERS = "osD^vPX<>"

SCORES: dict[str, dict[str, Any]] = {
    "accuracy": {"label": "accuracy", "color": "#0072b2", "marker": "o"},
    "nmi": {"label": "NMI", "color": "#d55e00", "marker": "s"},
    "purity": {"label": "purity", "color": "#117733", "marker": "^"},
}
"""How the three scores of a clustering are drawn as lines."""


def bar_colours(names: Iterable[str]) -> dict[str, str]:
    """A colour for each name: a model's own, or the next one.

    Parameters
    ----------
    names : iterable of str
        Models, data sets or anything else.

    Returns
    -------
    dict
    """
    names = list(names)
    if all(name in _MODELS for name in names):
        return {name: _MODELS[name] for name in names}
    return dict(zip(names, cycle(_OTHERS), strict=False))


def line_styles(names: Iterable[str]) -> dict[str, dict[str, Any]]:
    """Colour, dashes and marker of the line of each name: no two differ by colour alone.

    Parameters
    ----------
    names : iterable of str
        Models, data sets or anything else.

    Returns
    -------
    dict of dict
        Arguments of ``Axes.plot``.
    """
    colours = bar_colours(names)
    own = ("LS-NMF", "RLS-NMF")
    ways = zip(colours.items(), cycle(_DASHES), cycle(_MARKERS), strict=False)
    return {
        name: {
            "color": colour,
            "linestyle": "-" if name in own else dashes,
            "marker": marker,
            "linewidth": 2.2 if name in own else 1.4,
            "zorder": 3 if name in own else 2,
        }
        for (name, colour), dashes, marker in ways
    }
