"""Nearest neighbours and equal samples; tests/test_graph.py has the neighbours within a data set."""

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.spatial.distance import cdist

from lognmf.neighbours import distinct_rows, nearest

FORMS = [np.asarray, sp.csr_array]


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


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("p", [1, 3, 40])
def test_distinct_rows(rng, form, p):
    X = rng.integers(0, 3, size=(60, p)).astype(float)
    X[30:] = X[rng.integers(0, 30, size=30)]
    first, group = distinct_rows(form(X))
    assert len(first) == len(np.unique(X, axis=0))
    np.testing.assert_array_equal(X[first][group], X)
    np.testing.assert_array_equal(group[first], range(len(first)))
    assert (np.diff(first) > 0).all()


def test_rows_that_differ_where_nobody_looked_first():
    X = np.zeros((3, 1000))
    X[1, 7] = X[2, 8] = 1.0
    np.testing.assert_array_equal(distinct_rows(X)[1], [0, 1, 2])


def test_zeros_of_either_sign_are_equal(rng):
    X = rng.random((12, 3))
    X[:2] = 0.0
    X[1] *= -1
    stored = sp.csr_array((np.zeros(1), ([0], [1])), shape=X.shape) + sp.csr_array(X)
    for form in (X, stored):
        np.testing.assert_array_equal(distinct_rows(form)[1], [0, 0, *range(1, 11)])
