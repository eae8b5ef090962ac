"""Colours for dark paper: as far from it as they are from white."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lognmf.report.contrast import contrast, on_dark_paper

PAPER, INK = "#14171c", "#e3e7ec"
colours = st.integers(0, 0xFFFFFF).map("#{:06x}".format)


def on_dark(colour):
    return re.search(r"#[0-9a-f]{6}(?=;)", on_dark_paper(f'<svg ><path style="fill: {colour};"/></svg>'))[0]


def test_contrast_by_the_book():
    assert contrast("#000000", "#ffffff") == pytest.approx(21)
    assert contrast("#777777", "#ffffff") == contrast("#ffffff", "#777777") == pytest.approx(4.48, abs=0.01)
    assert contrast("#123456", "#123456") == 1


@given(colours)
def test_a_colour_keeps_its_contrast_up_to_that_of_text(colour):
    wanted = min(contrast(colour, "#ffffff"), contrast(INK, PAPER))
    assert contrast(on_dark(colour), PAPER) == pytest.approx(wanted, rel=0.04)


@given(colours, colours)
def test_two_colours_keep_theirs(one, other):
    highest = contrast(INK, PAPER)
    if max(contrast(one, "#ffffff"), contrast(other, "#ffffff")) < highest:
        assert contrast(on_dark(one), on_dark(other)) == pytest.approx(contrast(one, other), rel=0.08)


def test_only_colours_change():
    others = '<use xlink:href="#abcdef"/><image href="data:image/png;base64,#123456"/>'
    after = on_dark_paper(f'<svg >{others}<g style="fill: #000000"/></svg>')
    assert '<svg fill="#e3e7ec" >' in after  # for letters, whose black is left out
    assert others in after
    assert after.endswith('<g style="fill: #e7e7e7"/></svg>')  # as bright as text
