"""Colours of a drawing for dark paper: each keeps the contrast that it has on white."""

from __future__ import annotations

import re

_PAPER = "#14171c"
_INK = "#e3e7ec"
"""The dark page and its text, as in style.css."""

_GLARE = 0.05
"""Added to luminances in the contrast ratio of WCAG 2."""


def contrast(one: str, other: str) -> float:
    """Contrast ratio of two colours as WCAG 2 defines it, from 1 to 21.

    >>> round(contrast("#ffffff", "#000000"), 1)
    21.0
    """
    low, high = sorted(_luminance(_linear(colour)) for colour in (one, other))
    return (high + _GLARE) / (low + _GLARE)


def on_dark_paper(svg: str) -> str:
    """An SVG drawn for white paper with the colours of its marks and letters changed; its images stay."""
    # matplotlib leaves black fillings out, so black is given to all that have none.
    svg = re.sub(r"<svg ", f'<svg fill="{_INK}" ', svg, count=1)
    return re.sub(r"(?<=: )#[0-9a-f]{6}\b", lambda found: _dark(found[0]), svg)


def _dark(colour: str) -> str:
    """The same hue, as far from dark paper as ``colour`` is from white; at most as bright as text."""
    light = _linear(colour)
    own = _luminance(light)
    paper, ink = (_luminance(_linear(end)) for end in (_PAPER, _INK))
    wanted = min(contrast(colour, "#ffffff") * (paper + _GLARE) - _GLARE, ink)
    if wanted <= own:
        return _hex([channel * wanted / own for channel in light])
    towards_white = (wanted - own) / (1 - own)
    return _hex([channel + towards_white * (1 - channel) for channel in light])


def _linear(colour: str) -> list[float]:
    """Red, green and blue of #rrggbb as amounts of light, 0 to 1."""
    channels = (int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5))
    return [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]


def _hex(light: list[float]) -> str:
    """The colour #rrggbb of such amounts."""
    channels = (12.92 * c if c <= 0.0031308 else 1.055 * c ** (1 / 2.4) - 0.055 for c in light)
    return "#" + "".join(f"{round(255 * min(max(c, 0.0), 1.0)):02x}" for c in channels)


def _luminance(light: list[float]) -> float:
    """Relative luminance of linear red, green and blue."""
    return 0.2126 * light[0] + 0.7152 * light[1] + 0.0722 * light[2]
