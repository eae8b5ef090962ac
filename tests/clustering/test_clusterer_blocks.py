"""Samples in blocks are clustered by a random part of them."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.datasets import load_digits

from lognmf import NMFClustering, in_blocks, knn_graph, metrics, normalize
from lognmf.blocks import RowBlocks, WorkerBlocks, rows


@pytest.fixture(scope="module")
def digits():
    X, y = load_digits(return_X_y=True)
    return normalize(X[:600]), y[:600]


@pytest.mark.parametrize("kind", [np.asarray, sp.csr_array])
def test_some_are_clustered_and_the_others_join_them(kind, digits, monkeypatch):
    X, y = kind(digits[0]), digits[1]
    monkeypatch.setattr(rows, "MOST_SAMPLES", 400)
    one, again = (NMFClustering(10, random_state=0).fit(in_blocks(X, rows=130)) for _ in range(2))
    assert len(one.sample_) == 400
    assert len(np.unique(one.sample_)) == 400
    np.testing.assert_array_equal(one.labels_, again.labels_)
    assert len(one.labels_) == len(one.embedding_) == 600
    assert metrics.clustering_accuracy(y, one.labels_) > 0.75
    # Those that were clustered have the clusters that they got, which is what the others are compared with.
    known, labels = one._known
    np.testing.assert_array_equal(one.predict(known), labels)
    np.testing.assert_array_equal(one.predict(in_blocks(X, rows=70)), one.labels_)
    np.testing.assert_array_equal(one.predict(X), one.labels_)
    np.testing.assert_allclose(one.embedding_, one.model_.transform(X), atol=1e-8)
    assert NMFClustering(10, random_state=0).fit(X).sample_ is None


def test_all_of_a_few_samples_are_clustered(digits):
    X = digits[0][:200]
    whole, parts = (NMFClustering(5, random_state=0).fit(Y) for Y in (X, in_blocks(X, rows=60)))
    assert len(parts.sample_) == 200
    assert metrics.clustering_accuracy(whole.labels_, parts.labels_) > 0.9


def test_refused(digits):
    X = digits[0][:60].copy()
    blocks = in_blocks(X, rows=20)
    with pytest.raises(ValueError, match=r"graph must be a word such as .* where X is read in blocks"):
        NMFClustering(3, graph=knn_graph(X)).fit(blocks)
    with pytest.raises(TypeError, match="takes no blocks on workers, because it reads them here"):
        NMFClustering(3).fit(WorkerBlocks((60, 64), X.dtype, (0, 60), None, ()))
    model = NMFClustering(3, random_state=0).fit(X)
    with pytest.raises(ValueError, match="X has 4 features, but NMFClustering is expecting 64"):
        model.predict(in_blocks(X[:, :4], rows=20))
    X[33, 3] = -1
    fresh = NMFClustering(3)
    with pytest.raises(ValueError, match=r"^Block 2 of X \(rows 20 to 39\): Negative values"):
        fresh.fit(blocks)
    assert not hasattr(fresh, "labels_")


def test_names(digits):
    X = digits[0][:60]
    names = tuple(f"f{j}" for j in range(64))
    named = RowBlocks(X.shape, X.dtype, (0, 30, 60), lambda start, stop: X[start:stop], names)
    assert NMFClustering(3, random_state=0).fit(named).feature_names_in_.tolist() == list(names)
