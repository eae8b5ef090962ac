"""Batched scores against ``lognmf.metrics``, one labeling at a time."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

from lognmf import metrics
from lognmf.clustering import scores
from lognmf.core.arrays import namespace, to_numpy
from problems import pattern

SCORES = {
    "accuracy": (scores.accuracy, metrics.clustering_accuracy),
    "purity": (scores.purity, metrics.purity),
    "nmi": (scores.normalized_mutual_info, metrics.normalized_mutual_info),
    "nmi, geometric": (
        lambda counts: scores.normalized_mutual_info(counts, average="geometric"),
        lambda y, labels: metrics.normalized_mutual_info(y, labels, average="geometric"),
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
    ours, theirs = SCORES[name]
    found = ours(scores.contingency(y, labels))
    assert found.dtype == np.float64
    np.testing.assert_allclose(found, [theirs(y, column) for column in labels.T], rtol=0, atol=1e-12)


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
    np.testing.assert_array_equal(scores.normalized_cut(W, labels), found["normalized_cut"])


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
    for ours, _ in SCORES.values():
        np.testing.assert_array_equal(ours(counts), ours(to_numpy(counts)))


@pytest.mark.parametrize("small", [np.uint8, np.int32])
def test_counts_of_small_integers(small, rng):
    y, labels = rng.integers(0, 20, 300), rng.integers(0, 20, (300, 50))
    np.testing.assert_array_equal(
        scores.contingency(y.astype(small), labels.astype(small)), scores.contingency(y, labels)
    )


def test_bad_labelings():
    y, labels = np.array([0, 1, 1]), np.zeros((3, 2), dtype=int)
    with pytest.raises(ValueError, match=r"y must have shape \(n,\)"):
        scores.contingency(y[:2], labels)
    with pytest.raises(ValueError, match=r"labels \(n, B\)"):
        scores.contingency(y, labels[:, 0])
    with pytest.raises(ValueError, match="at least one"):
        scores.contingency(y, labels[:, :0])
    with pytest.raises(ValueError, match="y must be integers from 0 on"):
        scores.contingency(y - 1, labels)
    with pytest.raises(ValueError, match="y must be integers"):
        scores.contingency(np.array(["a", "b", "b"]), labels)
    with pytest.raises(ValueError, match="labels must be integers"):
        scores.contingency(y, labels - 0.5)
    with pytest.raises(ValueError, match="average must be one of"):
        scores.normalized_mutual_info(scores.contingency(y, labels), average="mean")
    with pytest.raises(ValueError, match="W must be 3×3"):
        scores.normalized_cut(sp.eye_array(4), labels)


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
