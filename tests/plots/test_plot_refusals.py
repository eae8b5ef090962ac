"""What cannot be drawn is refused in words, before any drawing."""

import numpy as np
import pytest
from sklearn.decomposition import NMF
from sklearn.exceptions import NotFittedError

from lognmf import NMFClustering, PlainNMF, plots

pytest.importorskip("matplotlib")


@pytest.fixture
def X(rng):
    return rng.random((20, 4))


@pytest.mark.parametrize("draw", [plots.parts, plots.codes, plots.convergence])
@pytest.mark.parametrize("model", [PlainNMF(2), NMFClustering(2)])
def test_models_that_are_not_fitted(draw, model):
    with pytest.raises(NotFittedError, match=f"{type(model).__name__} instance is not fitted yet"):
        draw(model)


def test_convergence_of_a_clusterer_is_that_of_its_model(X):
    clusterer = NMFClustering(3, random_state=0).fit(X)
    line = plots.convergence(clusterer).axes[0].lines[0]
    np.testing.assert_array_equal(line.get_ydata(), clusterer.model_.history_["objective"])


def test_models_in_place_of_their_parts(X):
    model = PlainNMF(2, max_iter=5, random_state=0).fit(X)
    assert plots.parts_of_models({"NMF": model}, (2, 2)).axes


def test_models_of_other_libraries_have_parts_alone(X):
    model = NMF(2, init="nndsvda").fit(X)
    assert plots.parts(model).axes
    with pytest.raises(TypeError, match="NMF has no embedding_: give a fitted model of lognmf"):
        plots.codes(model)


@pytest.mark.parametrize("draw", [plots.parts, plots.codes])
@pytest.mark.parametrize("given", [3, "x", [1.0, 2.0], [["a", "b"]], np.empty((0, 3)), None])
def test_what_is_no_matrix(draw, given):
    with pytest.raises(
        ValueError, match=r"A fitted model or a matrix like its (components|embedding)_ is needed; got"
    ):
        draw(given)


@pytest.mark.parametrize("given", ["x", 3, [1.0], {"iteration": [0]}])
def test_what_is_no_history(given):
    with pytest.raises(TypeError, match="convergence needs a fitted model, or its history_; got"):
        plots.convergence(given)


@pytest.mark.parametrize("given", ["x", 3, [1], {"model": "NMF"}])
def test_what_is_no_comparison(given):
    with pytest.raises(TypeError, match=r"rows must be those that lognmf\.compare returns; got"):
        plots.comparison(given)


def test_wrong_numbers_of_labels_and_names(X):
    model = PlainNMF(2, max_iter=5, random_state=0).fit(X)
    with pytest.raises(ValueError, match="labels must have 20 entries, one for each of the samples; got 2"):
        plots.codes(model, [1, 2])
    with pytest.raises(ValueError, match="outliers must have 20 entries, one for each of the samples; got 1"):
        plots.codes(model, outliers=[True])
    with pytest.raises(
        ValueError, match="feature_names must have 4 entries, one for each of the features; got 1"
    ):
        plots.parts(model, feature_names=["a"])
    with pytest.raises(ValueError, match="y must have 20 entries, one for each of the samples; got 3"):
        plots.samples(X, [0, 0, 1])
