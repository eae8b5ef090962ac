"""Nearest neighbours; test_graph.py has the neighbours within a data set."""

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.spatial.distance import cdist

from lognmf.graph import neighbours
from lognmf.graph.neighbours import nearest

FORMS = [np.asarray, sp.csr_array]


@pytest.fixture(autouse=True, params=["as dense", "by feature"])
def way(request, monkeypatch):
    """Small sparse samples are searched as dense ones; here also as large ones are."""
    if request.param == "by feature":
        monkeypatch.setattr(neighbours, "DENSE_UP_TO", 0)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("offset", [0.0, 1e7])
@pytest.mark.parametrize("k", [1, 4, 30])
def test_against_brute_force(rng, form, offset, k):
    X, Y = offset + rng.random((30, 5)), offset + rng.random((11, 5))
    indices, squared = nearest(form(Y), form(X), k)
    expected = cdist(Y, X, "sqeuclidean")
    np.testing.assert_array_equal(indices, np.argsort(expected, axis=1)[:, :k])
    np.testing.assert_allclose(squared, np.sort(expected, axis=1)[:, :k])


@pytest.mark.parametrize("form", FORMS)
def test_a_known_sample_is_found_among_many_that_are_almost_equal(rng, form):
    X = form(1 + 1e-9 * rng.random((50, 3)))
    indices, squared = nearest(X, X, 2)
    np.testing.assert_array_equal(indices[:, 0], range(50))
    assert (squared[:, 0] == 0).all()
    assert (nearest(X, X, 2, but_itself=True)[0] != np.arange(50)[:, None]).all()
