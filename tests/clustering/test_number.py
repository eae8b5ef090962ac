"""Judges of a number of clusters."""

import numpy as np
import pytest
from scipy.spatial.distance import cdist
from sklearn.metrics import silhouette_samples

from lognmf.clustering.number import distances, number_of_clusters, silhouette


def test_silhouettes_are_those_of_scikit_learn(rng):
    X, labels = rng.random((40, 3)), rng.permutation(np.repeat([0, 1, 2, 3], [1, 9, 10, 20]))
    each = silhouette_samples(X, labels)
    by_cluster = np.mean([each[labels == j].mean() for j in range(4)])
    assert silhouette(cdist(X, X), labels) == pytest.approx(min(each.mean(), by_cluster))
    assert silhouette(cdist(X, X), np.zeros(40, dtype=int)) == -1
    np.testing.assert_allclose(distances(X), cdist(X, X) / X.max(), atol=1e-7)


def test_too_few_samples():
    found = number_of_clusters(np.eye(2), range(2, 2), np.random.RandomState(0))
    assert (found.best, found.rows, found.others) == (1, [], [])


def test_equal_seeds_give_equal_numbers(rng):
    X = rng.random((60, 4)) + 3 * (np.arange(60) % 2)[:, None]
    one, other = (number_of_clusters(X, range(2, 9), np.random.RandomState(3)) for _ in range(2))
    assert one.best == other.best == 2
    assert one.rows == other.rows
