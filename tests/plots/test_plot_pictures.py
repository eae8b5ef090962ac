"""Rows of pictures: the right ones in the right places."""

import numpy as np
import pytest

from drawing import drawn, png, ticks

pytest.importorskip("matplotlib")

from lognmf import plots


def shown(figure):
    """The pictures of a figure from top to bottom and left to right, one list a row."""
    (axes,) = drawn(figure)
    rows = {}
    for image in axes.images:
        left, _, _, top = image.get_extent()
        rows.setdefault(-round(top, 6), []).append((left, np.asarray(image.get_array())))
    return [[array for _, array in sorted(rows[top], key=lambda pair: pair[0])] for top in sorted(rows)]


def test_rows_of_different_shapes_and_lengths(rng):
    wide, tall = rng.random((4, 2, 3)), rng.random((2, 4, 2))
    first, second = shown(plots.pictures({"wide": wide, "tall": tall}))
    np.testing.assert_array_equal(first, wide)
    np.testing.assert_array_equal(second, tall)


def test_groups_stand_together_below_their_heads(rng):
    figure = plots.pictures({"one": rng.random((6, 2, 2))}, heads=["a", "b", "c"] * 2, group=3)
    assert ticks(drawn(figure)[0].xaxis) == ["a", "b", "c"] * 2
    gaps = np.diff(sorted({image.get_extent()[0] for image in drawn(figure)[0].images}))
    assert gaps[2] > gaps[0] == pytest.approx(gaps[1])


def test_signed_rows_are_centred_at_zero(rng):
    X = rng.random((2, 2, 2)) - 0.2
    figure = plots.pictures({"as given": X, "change": X}, signed=["change"])
    assert ticks(drawn(figure)[0].yaxis) == ["as given", "change"]
    plain, signed = drawn(figure)[0].images[0], drawn(figure)[0].images[-1]
    assert plain.norm.vmin == X[0].min()
    assert signed.norm.vmin == -signed.norm.vmax < 0


def test_words_do_not_leave_the_figure(rng):
    figure = plots.pictures({"a rather long name": rng.random((5, 2, 3)), "b": rng.random((5, 2, 3))})
    png(figure)
    for label in drawn(figure)[0].get_yticklabels():
        assert label.get_window_extent().x0 >= 0


def test_pictures_of_one_value_and_tensors():
    torch = pytest.importorskip("torch")
    assert len(png(plots.pictures({"zeros": torch.zeros(3, 2, 2)}))) > 500
