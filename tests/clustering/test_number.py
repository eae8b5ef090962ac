"""Judges of a number of clusters."""

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.spatial.distance import cdist
from sklearn.metrics import silhouette_samples

from lognmf.clustering.number import _cloud, distances, number_of_clusters, silhouette


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


@pytest.mark.parametrize("shape", [(30, 8), (30, 50)])
@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
def test_clouds_have_the_variances_of_the_data(form, shape, rng):
    X = rng.random(shape) * (rng.random(shape) < 0.5)
    exact = np.linalg.svd(X - X.mean(axis=0), compute_uv=False) / np.sqrt(30) / X.max()
    cloud = _cloud(form(X), np.random.RandomState(0), uniform=True)
    edges = np.sqrt(3) * np.sort(exact[exact > 1e-6])
    assert cloud.shape == (30, len(edges))
    assert (abs(cloud).max(axis=0) <= edges * (1 + 1e-9)).all()
    assert (abs(cloud).max(axis=0) > 0.5 * edges).all()
