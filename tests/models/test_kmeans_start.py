"""Starts from a k-means clustering: what the papers of the baselines say."""

import numpy as np
import pytest
import scipy.sparse as sp

from lognmf.core.data import InMemory
from lognmf.models import starts

SIZES = [9, 12, 7]


@pytest.fixture
def X(rng):
    """Three groups of samples, and three of features."""
    X = np.zeros((28, 15))
    for group, rows in enumerate(np.split(np.arange(28), np.cumsum(SIZES)[:-1])):
        X[np.ix_(rows, np.arange(5) + 5 * group)] = 3
    return X + 0.1 * rng.random(X.shape)


def groups(V):
    """The indicator H of V = H + 0.2, whose columns have these sizes."""
    H = V - 0.2
    np.testing.assert_allclose(np.sort(H, axis=1), [[0, 0, 1]] * len(H), atol=1e-15)
    return np.round(H)


@pytest.mark.parametrize("name", ["orthogonal", "convex", "semi", "robust_manifold"])
def test_codes_are_indicators_and_a_fifth(name, X):
    H = groups(getattr(starts, name)(InMemory(X), 3, np.random.RandomState(0))[1])
    assert sorted(H.sum(axis=0)) == sorted(SIZES)
    assert all(len(set(part)) == 1 for part in np.split(H.argmax(axis=1), np.cumsum(SIZES)[:-1]))


@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
def test_orthogonal_parts_are_mean_samples(form, X):
    U, V = starts.orthogonal(InMemory(form(X)), 3, np.random.RandomState(0))
    H = groups(V)
    means = X.T @ H / H.sum(axis=0)
    np.testing.assert_allclose(U, means + 1e-3 * means.mean(), rtol=1e-12)
    U, _ = starts.orthogonal(InMemory(0 * X), 3, np.random.RandomState(0))
    assert (U == 1e-3).all()


def test_convex_weights_are_shares_of_the_clusters(X):
    B, V = starts.convex(InMemory(X), 3, np.random.RandomState(0))
    np.testing.assert_allclose(B, V / groups(V).sum(axis=0), rtol=1e-12)
    B, V = starts.convex(InMemory(X[:2]), 3, np.random.RandomState(0))  # one cluster has no sample
    np.testing.assert_allclose(B, V, rtol=1e-12)


def test_semi_parts_start_as_nothing(X):
    U, _ = starts.semi(InMemory(X), 3, np.random.RandomState(0))
    assert U.shape == (15, 3)
    assert (U == 0).all()


def test_robust_manifold_parts_are_clusters_of_features(X):
    U, _ = starts.robust_manifold(InMemory(X), 3, np.random.RandomState(0))
    H = groups(U)
    assert H.sum(axis=0).tolist() == [5, 5, 5]
    assert all(len(set(part)) == 1 for part in np.split(H.argmax(axis=1), 3))
