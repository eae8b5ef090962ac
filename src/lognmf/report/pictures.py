"""A matplotlib figure inside a page."""

from __future__ import annotations

import base64
import io
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["Picture", "picture"]

_PIXELS_AN_INCH = 96
"""Of a page, by the standard."""

_SHARPNESS = 2
"""Pixels of a photograph for each of the page."""

_LARGEST_DRAWING = 400_000
"""Bytes of an SVG beyond which a PNG is kinder to the reader's browser."""


@dataclass(frozen=True)
class Picture:
    """A figure as a page holds it.

    Parameters
    ----------
    kind : {"drawing", "photo"}
        Lines on nothing, which a dark page may invert, or pixels on white paper.
    uri : str
        The content, as a ``data:`` address.
    width, height : int
        On the page, in pixels.
    """

    kind: str
    uri: str
    width: int
    height: int


def picture(figure: Figure) -> Picture:
    """A figure as an SVG, or as a PNG if it shows photographs or is very heavy.

    Parameters
    ----------
    figure : matplotlib.figure.Figure
        It is not changed.

    Returns
    -------
    Picture
        The same figure gives the same bytes.
    """
    from matplotlib.image import AxesImage

    width, height = (round(inches * _PIXELS_AN_INCH) for inches in figure.get_size_inches())
    if not figure.findobj(AxesImage):
        content = _svg(figure)
        if len(content) <= _LARGEST_DRAWING:
            return Picture("drawing", _uri("image/svg+xml", content), width, height)
    return Picture("photo", _uri("image/png", _png(figure)), width, height)


def _svg(figure: Figure) -> bytes:
    import matplotlib as mpl

    file = io.BytesIO()
    # Letters as paths, because a picture inside a page has no fonts; with the salt its names repeat.
    with mpl.rc_context({"svg.fonttype": "path", "svg.hashsalt": "lognmf"}):
        figure.savefig(file, format="svg", transparent=True, metadata={"Date": None, "Creator": None})
    return file.getvalue()


def _png(figure: Figure) -> bytes:
    file = io.BytesIO()
    figure.savefig(
        file,
        format="png",
        dpi=_SHARPNESS * _PIXELS_AN_INCH,
        facecolor="white",
        metadata={"Software": None},
    )
    return file.getvalue()


def _uri(kind: str, content: bytes) -> str:
    return f"data:{kind};base64,{base64.b64encode(content).decode()}"
