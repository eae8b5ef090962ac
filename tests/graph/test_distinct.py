"""Equal samples."""

import numpy as np
import pytest
import scipy.sparse as sp

from lognmf.graph import neighbours
from lognmf.graph.neighbours import distinct_rows

FORMS = [np.asarray, sp.csr_array]


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


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("seen", [0, 1])
def test_rows_with_equal_hashes_are_compared(rng, form, seen, monkeypatch):
    X = rng.integers(0, 3, size=(60, 2)).astype(float)
    monkeypatch.setattr(neighbours, "_hashes", lambda _: seen * X[:, 0])
    first, group = distinct_rows(form(X))
    assert len(first) == len(np.unique(X, axis=0))
    np.testing.assert_array_equal(X[first][group], X)
    assert (np.diff(first) > 0).all()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("form", FORMS)
def test_hashes_of_unequal_rows_differ(rng, form, dtype):
    X = np.eye(300, dtype=dtype) + np.float32(2) ** rng.integers(-9, 9, size=(300, 1))
    assert len(np.unique(neighbours._hashes(form(X)))) == 300
    assert len(np.unique(neighbours._hashes(form(-X)))) == 300
