"""A clusterer gives the codes of samples, as its model does."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

from lognmf import NMFClustering, in_blocks


@pytest.fixture
def X(rng):
    return np.repeat(np.eye(3, 6), 20, axis=0) + 0.2 * rng.random((60, 6))


@pytest.mark.parametrize("kind", [np.asarray, sp.csr_array, np.float32])
def test_codes_are_those_of_the_model(kind, X):
    clusterer = NMFClustering(3, random_state=0).fit(kind(X))
    codes = clusterer.transform(kind(X)[::7])
    np.testing.assert_array_equal(codes, clusterer.model_.transform(kind(X)[::7]))
    assert codes.dtype == kind(X).dtype
    np.testing.assert_array_equal(clusterer.fit_transform(kind(X)), clusterer.transform(kind(X)))


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_frames_and_names(library, X):
    pytest.importorskip(library)
    frame = pytest.importorskip("pandas").DataFrame(X, columns=list("abcdef"))
    clusterer = NMFClustering(3, random_state=0).set_output(transform=library).fit(frame)
    names = ["nmfclustering0", "nmfclustering1", "nmfclustering2"]
    assert list(clusterer.transform(frame).columns) == list(clusterer.get_feature_names_out()) == names
    with pytest.raises(ValueError, match="feature names should match"):
        clusterer.transform(frame[list("abcdfe")])


def test_blocks(X):
    clusterer = NMFClustering(3, random_state=0).fit(X)
    codes = clusterer.transform(in_blocks(X, rows=25))
    np.testing.assert_allclose(codes, clusterer.transform(X), rtol=1e-6, atol=1e-9)
    with pytest.raises(ValueError, match="X has 5 features, but NMFClustering is expecting 6"):
        clusterer.transform(in_blocks(X[:, :5], rows=25))


def test_in_a_pipeline(X):
    y = np.repeat([0, 1, 2], 20)
    assert make_pipeline(NMFClustering(3, random_state=0), LogisticRegression()).fit(X, y).score(X, y) == 1


def test_refusals(X):
    with pytest.raises(NotFittedError):
        NMFClustering(3).transform(X)
    clusterer = NMFClustering(3, random_state=0).fit(X)
    with pytest.raises(ValueError, match="X has 5 features, but NMFClustering is expecting 6"):
        clusterer.transform(X[:, :5])
    with pytest.raises(ValueError, match="Negative values in data passed to NMFClustering"):
        clusterer.transform(-X)
