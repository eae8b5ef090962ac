"""The graph-aware start."""

import numpy as np
import pytest
import scipy.linalg
import scipy.sparse as sp
from scipy.sparse.csgraph import connected_components
from sklearn.datasets import load_digits
from sklearn.preprocessing import normalize

from lognmf import MODELS, LogSparseNMF, knn_graph, metrics
from lognmf.models import spectral_start, validation
from lognmf.models.spectral_start import spectral
from problems import samples


def unequal(rng, sizes=(60, 20, 20, 20)):
    """Groups of unequal size, samples of unit norm."""
    centres = np.eye(len(sizes), 12)
    X = np.concatenate([centres[g] + 0.35 * rng.random((n, 12)) for g, n in enumerate(sizes)])
    return X / np.linalg.norm(X, axis=1, keepdims=True), np.repeat(range(len(sizes)), sizes)


def test_v_is_an_indicator_and_u_its_parts(rng):
    X, groups = unequal(rng)
    U, V = spectral(X, 4, np.random.RandomState(0))
    assert (U > 0).all()
    np.testing.assert_allclose(np.sort(V, axis=1), [[0.2, 0.2, 0.2, 1.2]] * len(X))
    assert metrics.clustering_accuracy(groups, V.argmax(axis=1)) == 1.0
    exact = np.linalg.lstsq(V, X, rcond=None)[0].T
    np.testing.assert_allclose(U[exact > 0.01], exact[exact > 0.01], rtol=1e-6)


def test_directions_are_clustered_not_lengths():
    """With the lengths of scikit-learn's SpectralClustering digits are merged: accuracy 0.82."""
    X, y = load_digits(return_X_y=True)
    V = spectral(normalize(X), 10, np.random.RandomState(0))[1]
    assert metrics.clustering_accuracy(y, V.argmax(axis=1)) > 0.88


@pytest.mark.parametrize("form", [sp.csr_array, np.asarray, lambda X: X.astype(np.float32)])
def test_equal_seeds_give_equal_starts(rng, form):
    X = form(unequal(rng)[0])
    one, other = (spectral(X, 4, np.random.RandomState(3)) for _ in range(2))
    for a, b in zip(one, other, strict=True):
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize(("n", "k"), [(1, 1), (2, 2), (2, 5), (3, 2), (4, 3), (6, 5), (6, 6)])
def test_few_samples(rng, n, k):
    U, V = spectral(rng.random((n, 4)), k, np.random.RandomState(0))
    assert U.shape == (4, k)
    assert V.shape == (n, k)
    assert np.isfinite(U).all()


def test_more_pieces_than_clusters():
    X = np.eye(9).repeat(8, axis=0)
    model = MODELS["NMF"](4, init="spectral", max_iter=3, random_state=0).fit(X)
    assert np.isfinite(model.embedding_).all()


def test_without_iterations_the_codes_are_the_start(rng):
    X, groups = unequal(rng)
    model = LogSparseNMF(4, init="spectral", max_iter=0, random_state=0).fit(X)
    assert model.n_iter_ == 0
    assert metrics.clustering_accuracy(groups, model.embedding_.argmax(axis=1)) == 1.0


class TestEmbedding:
    """Lanczos iterations where the graph is connected, a factorisation where it is in pieces."""

    @pytest.fixture
    def forbidden(self, monkeypatch):
        def forbid(name):
            monkeypatch.setattr(spectral_start, name, lambda *_: pytest.fail(f"{name} was called"))

        return forbid

    def connected(self, rng, n=80):
        W = knn_graph(rng.random((n, 6)), 8)
        assert connected_components(W)[0] == 1
        return W

    def test_both_ways_span_the_same_space(self, rng, forbidden):
        W = self.connected(rng)
        factorised = spectral_start._factorised(int32(W), 4, np.random.RandomState(0))
        forbidden("_factorised")
        iterated = spectral_start._embedding(W, 4, np.random.RandomState(0))
        angles = scipy.linalg.subspace_angles(iterated, factorised)
        assert angles.max() < 1e-6

    def test_a_graph_in_pieces_has_an_indicator_of_each(self, rng):
        W = sp.block_diag([self.connected(rng, n) for n in (20, 30, 40)], format="csr")
        E = spectral_start._embedding(W, 3, np.random.RandomState(0))
        pieces = np.repeat(np.arange(3), (20, 30, 40))
        for piece in range(3):
            np.testing.assert_allclose(
                E[pieces == piece], E[pieces == piece][:1].repeat((20, 30, 40)[piece], 0), atol=1e-6
            )
        assert np.linalg.matrix_rank(E, tol=1e-6) == 3

    def test_a_large_graph_in_pieces_is_not_factorised(self, rng, forbidden, monkeypatch):
        forbidden("_factorised")
        monkeypatch.setattr(spectral_start, "LARGE", 10)
        W = sp.block_diag([self.connected(rng, n) for n in (20, 30)], format="csr")
        assert spectral_start._embedding(W, 3, np.random.RandomState(0)).shape == (50, 3)

    def test_what_does_not_converge_is_factorised(self, rng, monkeypatch):
        monkeypatch.setattr(spectral_start, "RESTARTS", 1)
        chain = sp.diags_array([np.ones(999), np.ones(999)], offsets=[-1, 1], format="csr")
        E = spectral_start._embedding(chain, 5, np.random.RandomState(0))
        expected = np.cos(np.outer(np.arange(1000) / 999 * np.pi, np.arange(5)))
        assert scipy.linalg.subspace_angles(E, expected).max() < 1e-5


def int32(W):
    return sp.csr_array((W.data, W.indices.astype(np.int32), W.indptr.astype(np.int32)), shape=W.shape)


class TestGraphIsSearchedOnce:
    @pytest.fixture
    def searches(self, monkeypatch):
        """Graphs that were searched for, by whoever asks."""
        found = []

        def counted(X, k):
            found.append(k)
            return knn_graph(X, k)

        for module in (spectral_start, validation):
            monkeypatch.setattr(module, "knn_graph", counted)
        return found

    @pytest.mark.parametrize(
        ("options", "expected"),
        [
            ({}, [5]),
            ({"n_neighbors": 7}, [7, 5]),
            ({"lam": 0}, [5]),
            ({"graph": None}, [5]),
            ({"init": "random"}, [5]),
        ],
    )
    def test_by_a_fit(self, options, expected, searches, rng):
        LogSparseNMF(3, max_iter=2, random_state=0, **options).fit(samples(rng, 30, 8))
        assert searches == expected

    def test_the_start_is_the_same_wherever_its_graph_comes_from(self, searches, rng):
        X = samples(rng, 30, 8)
        fits = [LogSparseNMF(3, lam=lam, max_iter=0, random_state=0).fit(X) for lam in (0.0, 1.0)]
        np.testing.assert_array_equal(fits[0].embedding_, fits[1].embedding_)
