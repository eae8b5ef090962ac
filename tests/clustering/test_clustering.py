"""k-means on codes."""

import numpy as np
import pytest
import scipy.sparse as sp

from lognmf.clustering import cluster
from lognmf.metrics import clustering_accuracy


@pytest.fixture
def V(rng):
    """Three tight groups of 10, 12 and 14 codes."""
    return np.repeat(np.eye(3), (10, 12, 14), axis=0) + 0.01 * rng.random((36, 3))


def test_groups_are_found(V):
    labels = cluster(V, 3, random_state=0)
    assert labels.shape == (36,)
    assert sorted(np.bincount(labels).tolist()) == [10, 12, 14]
    assert len(set(labels[:10])) == len(set(labels[10:22])) == len(set(labels[22:])) == 1


def test_same_seed_same_labels(rng):
    V = rng.random((60, 4))
    np.testing.assert_array_equal(cluster(V, 5, random_state=3), cluster(V, 5, random_state=3))


def test_torch_codes_give_the_same_labels(V):
    torch = pytest.importorskip("torch")
    labels = cluster(torch.tensor(V), 3, random_state=0)
    assert isinstance(labels, np.ndarray)
    np.testing.assert_array_equal(labels, cluster(V, 3, random_state=0))


def test_fewer_distinct_codes_than_clusters():
    labels = cluster(np.repeat(np.eye(2), 5, axis=0), 4, random_state=0)
    assert sorted(np.bincount(labels).tolist()) == [5, 5]


def test_as_many_clusters_as_samples(rng):
    assert sorted(cluster(rng.random((6, 2)), 6, random_state=0)) == list(range(6))


@pytest.mark.parametrize("n_clusters", [0, -1, 37, 2.0, True, "3", None])
def test_bad_number_of_clusters(V, n_clusters):
    with pytest.raises(ValueError, match=r"n_clusters must be an integer from 1 to 36.*got"):
        cluster(V, n_clusters)


def test_codes_must_be_a_matrix():
    with pytest.raises(ValueError, match=r"shape \(samples, components\); got \(5,\)"):
        cluster(np.ones(5), 2)


def test_sparse_codes_with_wide_indices():
    V = sp.csr_array(np.repeat(np.eye(3), 4, axis=0))
    V.indices, V.indptr = V.indices.astype(np.int64), V.indptr.astype(np.int64)
    labels = cluster(V, 3, random_state=0)
    assert len(set(labels[::4])) == 3


@pytest.mark.parametrize("seed", [-1, 2**32, "seed"])
def test_bad_seed(seed):
    with pytest.raises(ValueError, match=f"^random_state must be a seed .* got {seed!r}"):
        cluster(np.eye(3), 2, random_state=seed)


@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
def test_many_samples_are_started_on_some(rng, form, monkeypatch):
    monkeypatch.setattr("lognmf.clustering.kmeans.STARTED_ON", 100)
    groups = rng.permutation(np.repeat(range(4), 50))
    V = form(np.eye(4)[groups] + 0.05 * rng.random((200, 4)))
    labels = cluster(V, 4, random_state=0)
    assert clustering_accuracy(groups, labels) == 1.0
    np.testing.assert_array_equal(labels, cluster(V, 4, random_state=0))
