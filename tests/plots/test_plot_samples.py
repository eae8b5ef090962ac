"""Pictures of samples: the right ones, where they belong."""

import numpy as np
import pytest
from matplotlib.image import AxesImage

from lognmf import plots


@pytest.fixture
def X(rng):
    return rng.random((30, 6))


def images(figure):
    return [child for child in figure.axes[0].get_children() if isinstance(child, AxesImage)]


def words(figure):
    return [text.get_text() for text in figure.axes[0].texts]


def test_pictures_of_each_class(X):
    y = np.repeat([0, 1, 2], [20, 8, 2])
    figure = plots.samples(X, y, image_shape=(2, 3), class_names=["u", "v", "w"], per_class=4, title="T $x")
    shown = images(figure)
    assert len(shown) == 4 + 4 + 2
    assert words(figure) == ["u", "v", "w"]
    assert figure.get_suptitle() == "T $x"
    # Even steps through a class; upright; one class below the other; one scale for all.
    for image, i in zip(shown, [0, 5, 10, 15, 20, 22, 24, 26, 28, 29], strict=True):
        np.testing.assert_array_equal(image.get_array(), X[i].reshape(2, 3))
        assert image.get_clim() == (X.min(), X.max())
    tops = [image.get_extent()[3] for image in shown]
    assert tops[0] == tops[3] > tops[4] > tops[8]
    lefts = [image.get_extent()[0] for image in shown[:4]]
    assert lefts == sorted(set(lefts))
    figure.canvas.draw()


def test_without_classes(X):
    figure = plots.samples(X, image_shape=(3, 2), per_class=5)
    assert len(images(figure)) == 25
    assert set(words(figure)) <= {""}


def test_points_are_drawn_as_lines():
    X = np.array([[0, 0, 50, 100, 100, 0]])
    figure = plots.samples(X, [0], points=True)
    line = figure.axes[0].lines[0]
    x, y = line.get_data()
    assert np.argmax(y) == 1
    assert (np.diff(x) > 0).all()


def test_other_samples_are_curves(X):
    figure = plots.samples(X, np.zeros(30, int), per_class=3)
    assert [len(line.get_xdata()) for line in figure.axes[0].lines] == [6, 6, 6]


def test_missing_entries_do_not_spoil_the_scale(X):
    X[3, 2], X[4, 1] = np.nan, np.inf
    figure = plots.samples(X, image_shape=(3, 2))
    known = X[np.isfinite(X)]
    assert {image.get_clim() for image in images(figure)} == {(known.min(), known.max())}
    figure.canvas.draw()


def test_constant_data():
    """Nothing to scale by: still drawn, without a warning."""
    pictures = plots.samples(np.zeros((3, 4)), image_shape=(2, 2))
    assert len(images(pictures)) == 3
    assert all(np.isfinite(image.get_clim()).all() for image in images(pictures))
    for figure in (pictures, plots.samples(np.zeros((3, 4)))):
        figure.canvas.draw()
        assert figure.axes


def test_too_many_classes_are_told(rng):
    X, y = rng.random((60, 4)), np.arange(60)
    figure = plots.samples(X, y, image_shape=(2, 2), title="many")
    assert len(images(figure)) == 40
    assert figure.get_suptitle() == "many (the first 40 of 60 classes)"
    assert len({round(image.get_extent()[0], 3) for image in images(figure)}) == 2


def test_the_wrong_shape(X):
    with pytest.raises(ValueError, match=r"image_shape \(2, 2\) has 4 pixels, but X has 6 features"):
        plots.samples(X, image_shape=(2, 2))
