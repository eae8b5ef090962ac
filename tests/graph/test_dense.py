"""Exact search among dense samples: each way finds the same, and leaves to the next what it cannot decide."""

import numpy as np
import pytest
from scipy.spatial.distance import cdist

from lognmf.graph import dense


@pytest.fixture(autouse=True)
def single(monkeypatch):
    """Products in single precision come first also with few samples, as with many."""
    monkeypatch.setattr(dense, "_SINGLE_FROM", 0)


def distances(X):
    squared = cdist(X, X, "sqeuclidean")
    np.fill_diagonal(squared, np.inf)
    return squared


@pytest.mark.parametrize("scale", [1e-100, 1e-30, 1.0, 1e30, 1e100])
@pytest.mark.parametrize("offset", [0.0, 10.0, 1e4, 1e9])
def test_single_precision_misses_nothing(rng, scale, offset):
    X = scale * (offset + rng.normal(size=(250, 9)))
    indices, squared = dense.nearest_dense(X, X, 4, but_itself=True)
    expected = distances(X)
    np.testing.assert_array_equal(indices, np.argsort(expected, axis=1)[:, :4])
    np.testing.assert_allclose(squared, np.sort(expected, axis=1)[:, :4], rtol=1e-12)


def test_single_precision_decides_ordinary_samples(rng, monkeypatch):
    monkeypatch.setattr(dense.Points, "plain", None)
    X = 100 + rng.normal(size=(400, 30))
    indices, _ = dense.nearest_dense(X, X, 5, but_itself=True)
    np.testing.assert_array_equal(indices, np.argsort(distances(X), axis=1)[:, :5])


def test_one_huge_and_many_tiny_samples(rng):
    """What single precision takes for zeros is left to double precision."""
    X = np.concatenate([1e-25 * rng.normal(size=(120, 4)), [[1.0, 0, 0, 0]], rng.normal(size=(40, 4))])
    indices, _ = dense.nearest_dense(X, X, 3, but_itself=True)
    np.testing.assert_array_equal(indices[:120], np.argsort(distances(X), axis=1)[:120, :3])


@pytest.mark.parametrize("levels", [2, 3, 50])
@pytest.mark.parametrize("k", [1, 5])
def test_ties_are_broken_as_without_single_precision(rng, levels, k, monkeypatch):
    X = np.unique(rng.integers(0, levels, size=(600, 12)), axis=0).astype(float)
    X = X[rng.permutation(len(X))]
    found = dense.nearest_dense(X, X, k, but_itself=True)
    monkeypatch.setattr(dense, "_SINGLE_FROM", 10**9)
    for one, other in zip(found, dense.nearest_dense(X, X, k, but_itself=True), strict=True):
        np.testing.assert_array_equal(one, other)


def test_new_samples_far_from_the_known_ones(rng):
    X, Y = rng.normal(size=(200, 3)), 1e6 + rng.normal(size=(20, 3))
    indices, _ = dense.nearest_dense(Y, X, 2, but_itself=False)
    np.testing.assert_array_equal(indices, np.argsort(cdist(Y, X, "sqeuclidean"), axis=1)[:, :2])


@pytest.mark.parametrize("k", [1, 2, 200])
def test_the_last_search_sorts_all_distances(rng, k):
    X = rng.normal(size=(300, 4))
    expected, rows = distances(X), np.array([0, 17, 299])
    nearest, squared = dense._settle(X, X, rows, k, but_itself=True)
    np.testing.assert_array_equal(nearest, np.argsort(expected[rows], axis=1)[:, :k])
    np.testing.assert_allclose(squared, np.sort(expected[rows], axis=1)[:, :k], rtol=1e-12)
