"""The graph-aware start."""

import numpy as np
import pytest
import scipy.linalg
import scipy.sparse as sp
from scipy.sparse.csgraph import connected_components
from sklearn.datasets import load_digits
from sklearn.preprocessing import normalize

from lognmf import MODELS, LogSparseNMF, graph, knn_graph, metrics
from lognmf.clustering import spectral as module
from lognmf.core import sparse_products
from lognmf.core.data import InMemory
from lognmf.models import starts
from lognmf.models.starts import spectral
from problems import samples


def unequal(rng, sizes=(60, 20, 20, 20)):
    """Groups of unequal size, samples of unit norm."""
    centres = np.eye(len(sizes), 12)
    X = np.concatenate([centres[g] + 0.35 * rng.random((n, 12)) for g, n in enumerate(sizes)])
    return X / np.linalg.norm(X, axis=1, keepdims=True), np.repeat(range(len(sizes)), sizes)


def test_v_is_an_indicator_and_u_its_parts(rng):
    X, groups = unequal(rng)
    U, V = spectral(InMemory(X), 4, np.random.RandomState(0))
    assert (U > 0).all()
    np.testing.assert_allclose(np.sort(V, axis=1), [[0.2, 0.2, 0.2, 1.2]] * len(X))
    assert metrics.clustering_accuracy(groups, V.argmax(axis=1)) == 1.0
    exact = np.linalg.lstsq(V, X, rcond=None)[0].T
    assert exact.min() < 0
    np.testing.assert_allclose(U, np.maximum(exact, np.abs(exact).mean() / 100), rtol=1e-9)


def test_directions_are_clustered_not_lengths():
    """With the lengths of scikit-learn's SpectralClustering digits are merged: accuracy 0.82."""
    X, y = load_digits(return_X_y=True)
    V = spectral(InMemory(normalize(X)), 10, np.random.RandomState(0))[1]
    assert metrics.clustering_accuracy(y, V.argmax(axis=1)) > 0.88


@pytest.mark.parametrize("form", [sp.csr_array, np.asarray, lambda X: X.astype(np.float32)])
def test_equal_seeds_give_equal_starts(rng, form):
    X = form(unequal(rng)[0])
    one, other = (spectral(InMemory(X), 4, np.random.RandomState(3)) for _ in range(2))
    for a, b in zip(one, other, strict=True):
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize(("n", "k"), [(1, 1), (2, 2), (2, 5), (3, 2), (4, 3), (6, 5), (6, 6)])
def test_few_samples(rng, n, k):
    U, V = spectral(InMemory(rng.random((n, 4))), k, np.random.RandomState(0))
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
    """Against all eigenvectors: of well connected graphs, graphs in pieces and chains."""

    def connected(self, rng, n=80):
        W = knn_graph(rng.random((n, 6)), 8)
        assert connected_components(W)[0] == 1
        return W

    def chain(self, n):
        return sp.diags_array([np.ones(n - 1), np.ones(n - 1)], offsets=[-1, 1], format="csr")

    def assert_leading(self, W, k):
        """The embedding spans what the leading eigenvectors span."""
        scale = 1 / np.sqrt(W.sum(axis=1))
        vectors = np.linalg.eigh(scale[:, None] * W.toarray() * scale)[1][:, -k:] * scale[:, None]
        pieces = connected_components(W)[0]
        E = module._embedding(sp.csr_array(W), k, pieces, np.random.RandomState(0))
        assert E.shape == vectors.shape
        assert scipy.linalg.subspace_angles(E, vectors).max() < 1e-5

    def test_connected(self, rng):
        self.assert_leading(self.connected(rng), 4)

    def in_pieces(self, rng):
        return sp.block_diag([self.connected(rng, n) for n in (20, 30, 40)], format="csr")

    def test_in_pieces(self, rng):
        self.assert_leading(self.in_pieces(rng), 5)

    def test_of_many_samples_nearly(self, rng, monkeypatch):
        """Filtered vectors miss little of what the leading eigenvectors keep of the walk."""
        monkeypatch.setattr(module, "LARGE", 10)
        groups = knn_graph(unequal(rng, (150, 100, 100, 50))[0], 5)
        for W, k in ((self.connected(rng), 4), (self.in_pieces(rng), 5), (groups, 4), (self.chain(400), 3)):
            degree = W.sum(axis=1)
            walk = (W / np.sqrt(degree)).T / np.sqrt(degree)
            values = np.linalg.eigvalsh(walk.toarray())[-k:]
            E = module._embedding(sp.csr_array(W), k, connected_components(W)[0], np.random.RandomState(0))
            Q = np.linalg.qr(E * np.sqrt(degree)[:, None])[0]
            assert Q.shape == (W.shape[0], k)
            assert values.sum() - np.trace(Q.T @ (walk @ Q)) < 0.01

    def test_of_many_samples_on_tensors(self, rng, monkeypatch):
        """As on a GPU: the same vectors but for rounding."""
        torch = pytest.importorskip("torch", reason="torch is an extra")
        monkeypatch.setattr(module, "LARGE", 10)
        W, pattern = self.connected(rng), torch.zeros(1, dtype=torch.float64)
        here, there = (module._embedding(W, 4, 1, np.random.RandomState(0), p) for p in (None, pattern))
        np.testing.assert_allclose(
            np.linalg.svd(np.linalg.qr(here)[0].T @ np.linalg.qr(there)[0])[1], 1, atol=1e-4
        )

    def test_of_many_samples_whatever_the_threads(self, rng, monkeypatch, several_threads):
        monkeypatch.setattr(module, "LARGE", 10)
        monkeypatch.setattr(sparse_products, "LARGE", 1)
        W, found = self.connected(rng), []
        for threads in (1, 3):
            several_threads(threads)
            found.append(module._embedding(W, 4, 1, np.random.RandomState(0)))
        np.testing.assert_array_equal(*found)

    def test_chains(self):
        self.assert_leading(self.chain(1000), 5)
        self.assert_leading(sp.block_diag([self.chain(300), self.chain(200)], format="csr"), 6)

    def test_what_does_not_converge_gives_what_it_has(self, rng, monkeypatch):
        monkeypatch.setattr(module, "RESTARTS", 1)
        E = module._embedding(self.chain(3000), 40, 1, np.random.RandomState(0))
        assert E.shape[1] <= 40
        assert np.isfinite(E).all()


def test_more_pieces_than_clusters_share_the_clusters():
    """Where pieces are all there is to see, the largest have a cluster of their own."""
    sizes = (12, 30, 9, 20, 7)
    X = np.repeat(np.eye(5), sizes, axis=0) + 1e-3 * np.random.default_rng(0).random((sum(sizes), 5))
    labels = spectral(InMemory(X), 3, np.random.RandomState(0))[1].argmax(axis=1)
    of_piece = [set(part) for part in np.split(labels, np.cumsum(sizes)[:-1])]
    assert all(len(found) == 1 for found in of_piece)
    large = [of_piece[place] for place in (1, 3, 0)]
    assert set.union(*large) == {0, 1, 2}
    assert of_piece[2] == of_piece[1]  # the next one joins the largest, and so on
    assert of_piece[4] == of_piece[3]


@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
def test_crumbs_have_no_cluster_of_their_own(form, rng):
    """Near-duplicates are pieces of the graph; ten of them must not take the clusters of all the others."""
    X, groups = unequal(rng, (200, 150, 150, 150))
    strange = np.repeat(np.eye(12)[4:] + 0.01, 7, axis=0) + 1e-4 * rng.random((56, 12))
    Z = np.concatenate([X, strange])
    assert connected_components(knn_graph(Z, 5))[0] > 8
    labels = spectral(InMemory(form(Z)), 4, np.random.RandomState(0))[1].argmax(axis=1)
    assert metrics.clustering_accuracy(groups, labels[: len(X)]) == 1.0


@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
@pytest.mark.parametrize("near", range(3))
def test_a_tiny_piece_joins_the_nearest_cluster(near, form, rng):
    """Six near-duplicates, off to one side of one of three groups."""
    centres = 10 * np.eye(3, 8)
    groups = np.repeat(centres, 60, axis=0) + rng.random((180, 8))
    few = centres[near] + 4 * np.eye(8)[5] + 1e-3 * rng.random((6, 8))
    _, V = starts.spectral(InMemory(form(np.concatenate([groups, few]))), 3, np.random.RandomState(0))
    labels = V.argmax(axis=1)
    found = [set(part) for part in np.split(labels, [60, 120, 180])]
    assert [len(part) for part in found] == [1] * 4
    assert len(set.union(*found)) == 3
    assert found[3] == found[near]


@pytest.mark.parametrize(
    ("large", "small", "few", "near"),
    [
        ([20, 0, 0], [0, 4, 0], [6, 4, 3], 1),  # nearer to the small mean, a larger product with the other
        ([1.2, 0, 0], [0, 1, 0], [0.5, 0.5, 0.3], 1),  # halves of squared norms decide
        ([1.2, 0, 0], [0, 1, 0], [0.75, 0.5, 0.3], 0),
    ],
)
def test_nearness_is_distance(large, small, few, near, rng):
    """Whatever the norms of the means."""
    spread = 0.02 * np.linalg.norm(small)
    groups = np.repeat([large, small], 60, axis=0) + spread * rng.normal(size=(120, 3))
    X = np.concatenate([groups, few + 1e-4 * rng.random((4, 3))])
    W = sp.block_diag([knn_graph(X[:120], 5), knn_graph(X[120:], 3)], format="csr")
    _, V = spectral(InMemory(X), 2, np.random.RandomState(0), W)
    labels = V.argmax(axis=1)
    assert set(labels[120:]) == {labels[60 * near]}
    assert labels[0] != labels[60]


@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
def test_a_tiny_piece_joins_no_cluster_without_samples(form, rng, monkeypatch):
    """Means of such clusters would lie at the origin, next to a small sample."""
    X = np.concatenate([5 + rng.random((20, 3)), 9 + rng.random((20, 3)), np.full((1, 3), 0.1)])
    found = np.repeat([0, 2], 20)
    monkeypatch.setattr(module, "spectral_clusters", lambda *_: found)
    tiny, rng = np.arange(41) == 40, np.random.RandomState(0)
    labels = module._with_tiny_pieces(form(X), 4, rng, sp.csr_array((41, 41)), tiny, 10)
    assert labels.tolist() == [*found, 0]


@pytest.mark.parametrize(
    ("pieces", "large", "inverted"), [(1, 100, [False]), (2, 100, [True]), (2, 59, []), (1, 59, [])]
)
def test_which_eigenvectors_are_sought_by_an_inverse(pieces, large, inverted, rng, monkeypatch):
    """Those of a graph in pieces: plain iterations find them by luck. Those of a large graph are filtered."""
    sought, eigsh = [], module.eigsh
    monkeypatch.setattr(module, "LARGE", large)
    monkeypatch.setattr(module, "eigsh", lambda **how: sought.append("sigma" in how) or eigsh(**how))
    W = sp.block_diag([knn_graph(rng.random((60 // pieces, 4)), 8) for _ in range(pieces)], format="csr")
    module._embedding(W, 3, pieces, np.random.RandomState(0))
    assert sought == inverted


def test_curves_are_quick():
    """Hundreds of pieces and almost equal eigenvalues: nothing must run away (it took minutes)."""
    t = np.sort(np.random.default_rng(1).random(4000))
    X = np.stack([t, t**2, 1 - t, np.sin(3 * t) + 1], axis=1)
    for k in (10, 60):
        U, V = spectral(InMemory(X), k, np.random.RandomState(0))
        assert np.isfinite(U).all()
        assert len(np.unique(V.argmax(axis=1))) == k


class TestGraphIsSearchedOnce:
    @pytest.fixture
    def searches(self, monkeypatch):
        """Graphs that were searched for, by whoever asks."""
        found = []

        search = graph.find_neighbours

        def counted(X, k, *more):
            found.append(k)
            return search(X, k, *more)

        monkeypatch.setattr(graph, "find_neighbours", counted)
        return found

    @pytest.mark.parametrize(
        ("options", "expected"),
        [
            ({}, [5]),
            ({"n_neighbors": 7}, [7]),  # which serves the start too
            ({"n_neighbors": 3}, [5]),
            ({"n_neighbors": 7, "lam": 0}, [5]),
            ({"graph": "exact"}, [5]),
            ({"graph": "approximate"}, [5]),
            ({"graph": sp.csr_array(np.kron(np.eye(3), 1 - np.eye(10)))}, []),
            ({"lam": 0}, [5]),
            ({"graph": None}, [5]),
            ({"init": "random"}, [5]),
        ],
    )
    def test_by_a_fit(self, options, expected, searches, rng):
        options = {"init": "spectral", "lam": 0.1} | options
        LogSparseNMF(3, max_iter=2, random_state=0, **options).fit(samples(rng, 30, 8))
        assert searches == expected

    def test_by_restarts(self, searches, rng):
        LogSparseNMF(3, init="spectral", max_iter=2, n_init=4, lam=0, random_state=0).fit(samples(rng, 30, 8))
        assert searches == [5]

    def test_the_start_is_the_same_wherever_its_graph_comes_from(self, searches, rng):
        X = samples(rng, 30, 8)
        options = {"init": "spectral", "max_iter": 0, "random_state": 0}
        fits = [LogSparseNMF(3, lam=lam, **options).fit(X) for lam in (0.0, 1.0)]
        np.testing.assert_allclose(fits[0].embedding_, fits[1].embedding_, rtol=1e-8)


class TestEqualSamples:
    def test_a_crowd_of_them_is_not_split(self, rng):
        """590 equal samples are more than an average cluster, and their graph alone has slow modes."""
        crowd = np.zeros((590, 6))
        crowd[:, 0] = 1
        others = np.abs(np.eye(6)[1 + np.arange(400) % 5] + 0.05 * rng.normal(size=(400, 6)))
        X = np.concatenate([crowd, others])[rng.permutation(990)]
        labels = spectral(InMemory(X), 8, np.random.RandomState(0))[1].argmax(axis=1)
        assert len(set(labels[X[:, 0] == 1])) == 1

    def test_as_many_clusters_as_distinct_samples(self, rng):
        X = np.repeat(rng.random((4, 3)), 5, axis=0)
        for k in (4, 7):
            labels = spectral(InMemory(X), k, np.random.RandomState(0))[1].argmax(axis=1)
            np.testing.assert_array_equal(labels, np.repeat(range(4), 5))

    def test_a_data_set_given_twice_has_its_clusters(self, rng):
        X = samples(rng, 60, 8)
        once = spectral(InMemory(X), 4, np.random.RandomState(0))[1].argmax(axis=1)
        twice = spectral(InMemory(np.tile(X, (2, 1))), 4, np.random.RandomState(0))[1].argmax(axis=1)
        np.testing.assert_array_equal(twice[:60], twice[60:])
        assert metrics.clustering_accuracy(once, twice[:60]) > 0.9


def test_a_given_graph_is_what_the_start_clusters(rng):
    X, _ = unequal(rng, (30, 30))
    other = np.tile([0, 1], 30)  # a graph of other groups than those of the data
    W = sp.csr_array((other[:, None] == other).astype(float) - np.eye(60))
    W = W + sp.csr_array(([0.01, 0.01], ([0, 1], [1, 0])), shape=W.shape)
    model = LogSparseNMF(2, init="spectral", graph=W, max_iter=0, random_state=0).fit(X)
    assert metrics.clustering_accuracy(other, model.embedding_.argmax(axis=1)) == 1.0


def test_many_samples_on_a_gpu(rng, monkeypatch):
    """The branch that a GPU takes, on a CPU: our own k-means on the device finds the same groups."""
    torch = pytest.importorskip("torch", reason="torch is an extra")
    monkeypatch.setattr(module, "LARGE", 10)
    monkeypatch.setattr(module, "on_gpu", lambda _: True)
    X, groups = unequal(rng)
    labels = module.spectral_clusters(torch.as_tensor(X), 4, np.random.RandomState(0), knn_graph(X, 5))
    assert metrics.clustering_accuracy(groups, labels) == 1.0
    U, V = spectral(InMemory(torch.as_tensor(X)), 4, np.random.RandomState(0), knn_graph(X, 5))
    assert (U > 0).all()
    assert metrics.clustering_accuracy(groups, V.argmax(axis=1)) == 1.0


def test_where_hardly_any_sample_has_a_neighbour(rng):
    """As many samples as clusters in pieces that are not tiny are too few to tell clusters apart."""
    W = sp.lil_array((60, 60))
    W[:3, :3] = 1 - np.eye(3)
    labels = module.spectral_clusters(rng.random((60, 4)), 3, np.random.RandomState(0), sp.csr_array(W))
    assert len(set(labels[:3])) == 1
