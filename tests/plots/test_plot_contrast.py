"""All marks of all figures can be told from their paper, light and dark, and all words can be read."""

import doctest
import importlib
import io
from xml.etree import ElementTree

import matplotlib as mpl
import pytest

from lognmf import plots
from looking import poor_marks, small_letters

CSS_PIXELS = 96 / 72
"""Of a page, for one unit of an SVG."""


def example(name):
    """The figure that the docstring of a plot draws."""
    plot = getattr(plots, name)
    names = dict(vars(importlib.import_module(plot.__module__)))
    for step in doctest.DocTestParser().get_examples(plot.__doc__):
        exec(step.source, names)
    return names["figure"]


@pytest.mark.parametrize("name", plots.__all__)
def test_marks_and_words_of_every_figure(name):
    file = io.BytesIO()
    with mpl.rc_context({"svg.fonttype": "path"}):
        example(name).savefig(file, format="svg", transparent=True)
    root = ElementTree.fromstring(file.getvalue())
    for theme in ("light", "dark"):
        assert poor_marks(root, theme) == []
    assert small_letters(root, CSS_PIXELS) == []
