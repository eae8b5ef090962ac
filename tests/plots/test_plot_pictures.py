"""Figures of samples, noise and reconstructions: the right pictures in the right places."""

import numpy as np
import pytest

from drawing import drawn, png, ticks

pytest.importorskip("matplotlib")

from lognmf import plots
from lognmf.plots.samples import spread_out


def pictures(figure):
    """The pictures of a figure from top to bottom and left to right, one list a row."""
    (axes,) = drawn(figure)
    rows = {}
    for image in axes.images:
        left, _, _, top = image.get_extent()
        rows.setdefault(-round(top, 6), []).append((left, np.asarray(image.get_array())))
    return [[array for _, array in sorted(rows[top], key=lambda pair: pair[0])] for top in sorted(rows)]


@pytest.fixture
def X(rng):
    return rng.random((12, 6))


def test_sets_of_different_shapes(X, rng):
    figure = plots.samples_of_sets({"A": (X, (2, 3)), "B": (rng.random((5, 8)), (4, 2))}, count=4)
    rows = pictures(figure)
    assert [len(row) for row in rows] == [4, 4]
    assert rows[1][0].shape == (4, 2)
    np.testing.assert_array_equal(rows[0][-1].ravel(), X[-1])


def test_levels_of_one_sample_stand_together(X):
    levels = {"clean": X, "20 %": X * 0.5, "40 %": X * 0.25}
    figure = plots.noise_levels({"one": (levels, (2, 3)), "two": (levels, (3, 2))}, count=2)
    (first, second) = pictures(figure)
    assert len(first) == len(second) == 6
    for place, scale in enumerate((1, 0.5, 0.25)):
        np.testing.assert_array_equal(first[place].ravel(), X[0] * scale)
        np.testing.assert_array_equal(first[3 + place].ravel(), X[-1] * scale)
    assert ticks(drawn(figure)[0].xaxis) == ["clean", "20 %", "40 %"] * 2
    gaps = np.diff(sorted({image.get_extent()[0] for image in drawn(figure)[0].images}))
    assert gaps[2] > gaps[0] == pytest.approx(gaps[1])


def test_reconstructions_stand_below_their_originals(X):
    rebuilt, outliers = X * 0.9, X - 0.5
    figure = plots.reconstructions(X, rebuilt, (2, 3), outliers=outliers, chosen=[5, 1])
    assert ticks(drawn(figure)[0].yaxis) == ["as given", "reconstruction", "outlier part"]
    assert ticks(drawn(figure)[0].xaxis) == ["5", "1"]
    for row, data in zip(pictures(figure), (X, rebuilt, outliers), strict=True):
        np.testing.assert_array_equal(row, data[[5, 1]].reshape(2, 2, 3))
    signed = drawn(figure)[0].images[-1]
    assert signed.norm.vmin == -signed.norm.vmax < 0
    assert len(pictures(plots.reconstructions(X, rebuilt, (2, 3), count=4))) == 2


def test_pictures_need_a_fitting_shape(X):
    with pytest.raises(ValueError, match=r"\(3, 5\) has 15 pixels, but a sample has 6 features"):
        plots.samples_of_sets({"A": (X, (3, 5))})


def test_words_do_not_leave_the_figure(X):
    figure = plots.samples_of_sets({"a rather long name": (X, (2, 3)), "b": (X, (2, 3))})
    png(figure)
    for label in drawn(figure)[0].get_yticklabels():
        assert label.get_window_extent().x0 >= 0


def test_pictures_of_one_value_and_tensors():
    torch = pytest.importorskip("torch")
    assert len(png(plots.samples_of_sets({"zeros": (torch.zeros(3, 4), (2, 2))}))) > 500


def test_spread_out():
    assert spread_out(10, 4).tolist() == [0, 3, 6, 9]
    assert spread_out(2, 5).tolist() == [0, 1]
