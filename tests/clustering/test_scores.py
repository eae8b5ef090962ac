"""Batched scores against scikit-learn and ``lognmf.metrics``, one labeling at a time."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import linear_sum_assignment
from sklearn.metrics import normalized_mutual_info_score
from sklearn.metrics.cluster import contingency_matrix

from lognmf import metrics
from lognmf.clustering import scores
from lognmf.core.arrays import namespace, to_numpy
from problems import pattern


def accuracy(y, labels):
    table = contingency_matrix(y, labels)
    return table[linear_sum_assignment(table, maximize=True)].sum() / len(y)


def geometric(function):
    return lambda *arguments: function(*arguments, average="geometric")


SCORES = {
    "accuracy": (scores.accuracy, metrics.clustering_accuracy, accuracy),
    "purity": (
        scores.purity,
        metrics.purity,
        lambda y, labels: contingency_matrix(y, labels).max(axis=0).sum() / len(y),
    ),
    "nmi": (
        scores.normalized_mutual_info,
        metrics.normalized_mutual_info,
        lambda y, labels: normalized_mutual_info_score(y, labels, average_method="max"),
    ),
    "nmi, geometric": (
        geometric(scores.normalized_mutual_info),
        geometric(metrics.normalized_mutual_info),
        lambda y, labels: normalized_mutual_info_score(y, labels, average_method="geometric"),
    ),
}


@st.composite
def labelings(draw):
    """Classes (n,) and clusters (n, B), with gaps, single groups and more of the one than of the other."""
    n, B = draw(st.integers(1, 40)), draw(st.integers(1, 5))
    classes, clusters = draw(st.integers(1, 8)), draw(st.integers(1, 8))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    labels = rng.integers(0, clusters, (n, B))
    if draw(st.booleans()):
        labels[:, 0] = clusters - 1
    return rng.integers(0, classes, n), labels


@pytest.mark.parametrize("name", SCORES)
@given(labelings())
def test_scores_equal_metrics(name, problem):
    y, labels = problem
    ours, single, theirs = SCORES[name]
    found = ours(scores.contingency(y, labels))
    assert found.dtype == np.float64
    for other in (single, theirs):
        np.testing.assert_allclose(found, [other(y, column) for column in labels.T], rtol=0, atol=1e-12)


@given(labelings(), st.integers(0, 2**32 - 1))
def test_graph_scores_equal_metrics(problem, seed):
    _, labels = problem
    W = sp.random_array((len(labels),) * 2, density=0.2, rng=np.random.default_rng(seed))
    W = sp.csr_array(W + W.T)
    found = scores.graph_scores(W, labels)
    assert set(found) == {"normalized_cut", "modularity"}
    for name, values in found.items():
        expected = [getattr(metrics, name)(W, column) for column in labels.T]
        np.testing.assert_allclose(values, expected, rtol=0, atol=1e-12)


def test_graph_scores_in_chunks(rng, monkeypatch):
    W = sp.random_array((30, 30), density=0.2, rng=rng)
    labels = rng.integers(0, 4, (30, 7))
    whole = scores.graph_scores(W, labels)
    monkeypatch.setattr(scores, "_MEMORY", 1)
    for name, values in scores.graph_scores(W, labels).items():
        np.testing.assert_array_equal(values, whole[name])


@pytest.mark.parametrize("library", ["numpy", "array-api-strict", "torch-cpu", "torch-cuda"])
def test_counts(library, rng):
    home = pattern(library)
    y, labels = rng.integers(0, 5, 60), rng.integers(0, 3, (60, 9))
    labels[:, 4] = 1
    xp = namespace(home)
    counts = scores.contingency(y, xp.asarray(labels, device=home.device))
    assert type(counts) is type(home)
    assert counts.device == home.device
    expected = [
        [[((y == i) & (column == j)).sum() for j in range(3)] for i in range(5)] for column in labels.T
    ]
    np.testing.assert_array_equal(to_numpy(counts), expected)
    for ours, *_ in SCORES.values():
        np.testing.assert_array_equal(ours(counts), ours(to_numpy(counts)))


@pytest.mark.parametrize("small", [np.uint8, np.int32])
def test_counts_of_small_integers(small, rng):
    y, labels = rng.integers(0, 20, 300), rng.integers(0, 20, (300, 50))
    np.testing.assert_array_equal(
        scores.contingency(y.astype(small), labels.astype(small)), scores.contingency(y, labels)
    )


@pytest.mark.parametrize("library", ["numpy", "array-api-strict", "torch-cpu", "torch-cuda"])
def test_sparseness(library, rng):
    home = pattern(library)
    F = rng.normal(size=(6, 5, 3)) * (rng.random((6, 5, 3)) < 0.5)
    F[:, 1], F[:, 2], F[:, 3] = 0, 1, F[:, 3] * 1e200
    found = scores.hoyer_sparseness(namespace(home).asarray(F, device=home.device))
    np.testing.assert_allclose(found, [metrics.hoyer_sparseness(F[:, b]) for b in range(5)], atol=1e-14)
    np.testing.assert_array_equal(found[1:3], [1, 0])
    np.testing.assert_array_equal(scores.hoyer_sparseness(np.zeros((1, 4, 1))), np.ones(4))


def test_bad_labelings():
    """`metrics` checks what `scores` trusts, and makes integers of any labels."""
    y, labels = np.array([0, 1, 1]), np.array([0, 0, 1])
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        metrics.purity(y[:2], labels)
    with pytest.raises(ValueError, match="1d array"):
        metrics.purity(y, np.zeros((3, 2)))
    with pytest.raises(ValueError, match="empty"):
        metrics.purity(y[:0], labels[:0])
    for other in (y - 1, np.array(["a", "b", "b"]), y - 0.5):
        assert metrics.purity(other, labels) == metrics.purity(y, labels)
        assert metrics.purity(labels, other) == metrics.purity(labels, y)
    with pytest.raises(ValueError, match="average must be one of"):
        metrics.normalized_mutual_info(y, labels, average="mean")
    with pytest.raises(ValueError, match="W must be 3×3"):
        metrics.normalized_cut(sp.eye_array(4), labels)


def test_the_cut_by_products_is_the_cut(rng):
    """What a GPU computes, here on a CPU: also with weights, isolated samples and empty clusters."""
    labels = rng.integers(0, 4, (30, 7))
    labels[labels == 2] = 3
    W = sp.random_array((30, 30), density=0.1, rng=rng)
    W = sp.coo_array(W + W.T)
    expected = scores._volume_and_cut(W, labels, 4)
    by_products = scores._volume_and_cut_by_products(W, labels, 4)
    for found, wanted in zip(by_products, expected, strict=True):
        np.testing.assert_allclose(found, wanted, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("library", ["numpy", "array-api-strict", "torch-cpu", "torch-cuda"])
def test_sizes_of_clusters(library):
    """Even, all in one, one cluster empty, and sizes 4, 2, 1, 1."""
    home = pattern(library)
    labels = np.array([[0, 3, 0, 0], [1, 3, 0, 0], [2, 3, 1, 0], [3, 3, 1, 0], [0, 3, 2, 1], [1, 3, 2, 1]])
    labels = np.concatenate([labels, [[2, 3, 2, 2], [3, 3, 0, 3]]])
    clusters, balance = scores.cluster_sizes(namespace(home).asarray(labels, device=home.device), 4)
    assert clusters.tolist() == [4, 1, 3, 4]
    third = -(2 * 3 / 8 * np.log(3 / 8) + 2 / 8 * np.log(2 / 8)) / np.log(4)
    np.testing.assert_allclose(balance, [1, 0, third, 1.75 / 2], atol=1e-15)
    clusters, balance = scores.cluster_sizes(np.array([[0, 0], [0, 1]]), 2)
    assert clusters.tolist() == [1, 2]
    np.testing.assert_allclose(balance, [0, 1], atol=1e-15)
    clusters, balance = scores.cluster_sizes(np.zeros((5, 2), dtype=int), 1)
    assert clusters.tolist() == [1, 1]
    assert balance.tolist() == [0, 0]
