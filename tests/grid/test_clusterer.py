"""`NMFClustering`: clusters without labels, as a scikit-learn clusterer."""

import time
from types import SimpleNamespace

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.datasets import load_digits, make_blobs
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import Normalizer, normalize
from sklearn.utils.estimator_checks import check_clustering, parametrize_with_checks

from lognmf import MODELS, LogSparseNMF, NMFClustering, graph, knn_graph, metrics
from lognmf.grid import clusterer as clustering
from lognmf.grid.candidates import FAMILIES, with_different_starts
from lognmf.grid.vote import vote

GROUPS = np.repeat([0, 1, 2], 20)


EXEMPT = {"check_clustering": "its samples have negative entries, whatever the tags say"}


@parametrize_with_checks([NMFClustering()], expected_failed_checks=lambda estimator: EXEMPT)
def test_scikit_learn(estimator, check):
    check(estimator)


def test_the_exempt_check_on_a_model_that_takes_negative_entries():
    check_clustering("NMFClustering", NMFClustering(model="Semi-NMF"))


@pytest.fixture
def X(rng):
    """Three separated groups of samples, of unit norm."""
    return normalize(np.eye(3)[GROUPS].repeat(4, axis=1) * rng.random((60, 12)) + 0.02 * rng.random((60, 12)))


@pytest.fixture(scope="module")
def digits():
    X, y = load_digits(return_X_y=True)
    return normalize(X[:500]), y[:500]


@pytest.mark.parametrize("name", MODELS)
def test_every_model_clusters(name, X):
    found = NMFClustering(3, model=name, random_state=0).fit(X)
    assert metrics.clustering_accuracy(GROUPS, found.labels_) == 1.0
    assert type(found.model_) is MODELS[name]
    assert found.components_.shape == (3, 12)
    assert found.embedding_.shape == (60, 3)
    assert found.model_.n_iter_ > 0
    np.testing.assert_array_equal(found.predict(X), found.labels_)


def test_what_was_tried(digits):
    X, _ = digits
    found = NMFClustering(10, random_state=0).fit(X)
    assert [row["candidate"] for row in found.rows_] == [*FAMILIES, "codes of a fit from the best"]
    (chosen,) = (row for row in found.rows_ if row["chosen"])
    W = knn_graph(X)
    assert metrics.modularity(W, found.labels_) == pytest.approx(chosen["modularity"])
    assert metrics.normalized_cut(W, found.labels_) == pytest.approx(chosen["normalized_cut"])
    assert chosen["modularity"] == max(
        row["modularity"] for row in found.rows_ if row["candidate"] in FAMILIES
    )


def test_texts_are_not_left_to_the_graph(rng):
    """Few words in common: the graph is thin, and spectral clusterings split off what hangs together."""
    topics = np.repeat(np.arange(4), 100)
    words = rng.poisson(0.15 + 4 * (np.arange(80) // 20 == topics[:, None]) * rng.random((400, 80)) ** 6)
    X = normalize(sp.csr_array(words, dtype=float))
    found = NMFClustering(4, random_state=0).fit(X)
    assert metrics.clustering_accuracy(topics, found.labels_) > 0.9
    assert found.rows_[0]["modularity"] <= max(row["modularity"] for row in found.rows_)


def test_codes_near_the_clusters(digits):
    """The decomposition belongs to the clusters: most samples have the largest code in their own."""
    X, y = digits
    found = NMFClustering(10, random_state=0).fit(X)
    assert metrics.clustering_accuracy(found.labels_, found.embedding_.argmax(axis=1)) > 0.9
    assert np.linalg.norm(X - found.embedding_ @ found.components_) < 0.7 * np.linalg.norm(X)
    assert metrics.clustering_accuracy(y, found.labels_) > 0.8


class TestEqualSamples:
    def test_have_equal_labels(self, rng):
        X = normalize(rng.random((25, 6)))[rng.integers(0, 25, 200)]
        found = NMFClustering(7, random_state=0).fit(X)
        _, group = np.unique(X, axis=0, return_inverse=True)
        pairs = {(g, label) for g, label in zip(group.reshape(-1), found.labels_, strict=True)}
        assert len(pairs) == len(set(group.reshape(-1)))

    def test_fewer_distinct_samples_than_clusters(self):
        X = np.repeat(np.eye(4), 10, axis=0)
        found = NMFClustering(6, random_state=0).fit(X)
        assert metrics.clustering_accuracy(np.repeat(range(4), 10), found.labels_) == 1.0
        np.testing.assert_array_equal(np.unique(found.labels_), range(4))
        np.testing.assert_array_equal(found.predict(np.eye(4)), found.labels_[::10])

    @pytest.mark.parametrize("value", [0.0, 1.0])
    def test_all_samples_equal(self, value):
        found = NMFClustering(2, random_state=0).fit(np.full((9, 3), value))
        np.testing.assert_array_equal(found.labels_, np.zeros(9))


class TestPredict:
    @pytest.mark.parametrize("form", [np.asarray, sp.csr_array, np.float32])
    def test_training_samples_keep_their_labels(self, digits, form):
        X = form(digits[0])
        found = NMFClustering(10, random_state=0).fit(X)
        np.testing.assert_array_equal(found.predict(X), found.labels_)
        np.testing.assert_array_equal(found.predict(X[3:5]), found.labels_[3:5])

    def test_dense_and_sparse_are_one(self, digits):
        X, _ = digits
        found = NMFClustering(10, random_state=0).fit(X[:400])
        np.testing.assert_array_equal(found.predict(sp.csr_array(X)), found.predict(X))

    def test_new_samples_join_their_class(self, digits):
        X, y = digits
        found = NMFClustering(10, random_state=0).fit(X[:350])
        both = metrics.clustering_accuracy(y, found.predict(X))
        assert both > metrics.clustering_accuracy(y[:350], found.labels_) - 0.05

    def test_the_nearest_counts_most(self):
        known = np.array([[0.0], [1.0], [5.0], [5.5], [6.0]])
        labels = np.array([0, 0, 1, 1, 2])
        np.testing.assert_array_equal(
            vote(np.array([[0.1], [4.0], [5.9], [5.5]]), known, labels), [0, 1, 2, 1]
        )

    def test_an_equal_sample_decides_alone(self, rng):
        known = 1 + 1e-9 * rng.random((8, 3))
        np.testing.assert_array_equal(vote(known, known, np.arange(8)), range(8))


class TestEstimator:
    def test_parameters_of_the_model(self, X):
        clusterer = NMFClustering(3, model=LogSparseNMF(max_iter=7, solver="mu", lam=1.0), random_state=0)
        clusterer.set_params(model__alpha=0.5, model__beta=0.2)
        found = clone(clusterer).fit(X).model_
        assert (found.alpha, found.beta, found.lam, found.max_iter) == (0.5, 0.2, 1.0, 7)
        assert (found.n_components, clusterer.model.n_components) == (3, 10)

    def test_in_a_pipeline(self, X):
        steps = make_pipeline(Normalizer(), NMFClustering(3, random_state=0))
        labels = steps.fit_predict(7 * X)
        np.testing.assert_array_equal(steps.predict(7 * X), labels)
        assert metrics.clustering_accuracy(GROUPS, labels) == 1.0

    def test_equal_seeds_give_equal_results(self, digits):
        one, other = (NMFClustering(5, random_state=3).fit(digits[0]) for _ in range(2))
        np.testing.assert_array_equal(one.labels_, other.labels_)
        np.testing.assert_array_equal(one.embedding_, other.embedding_)

    def test_nothing_is_printed_unless_asked(self, X, capsys):
        NMFClustering(3, random_state=0).fit(X)
        assert capsys.readouterr() == ("", "")
        NMFClustering(3, random_state=0, verbose=1).fit(X)
        assert capsys.readouterr().err.count("modularity") == 5


def blobs(sizes, seed=0):
    """Round clusters of these sizes, far apart, and which sample is of which."""
    centres = [(5, 5), (15, 5), (5, 15), (15, 15)][: len(sizes)]
    X, y = make_blobs(sizes, centers=np.array(centres), random_state=seed)
    return np.maximum(X, 0), y


@pytest.mark.parametrize("effort", ["quick", "grid"])
@pytest.mark.parametrize("sizes", [(60, 60, 60), (150, 15, 15), (100, 100, 12)])
def test_separated_clusters_of_any_size_are_found(sizes, effort):
    """Modularity alone would split the large one and merge the small ones."""
    X, y = blobs(sizes)
    found = NMFClustering(3, effort=effort, random_state=0).fit(X)
    assert metrics.clustering_accuracy(y, found.labels_) == 1


def test_few_outliers_by_default():
    digits = normalize(load_digits().data[:400])
    model = NMFClustering(10, model="RLS-NMF", random_state=0).fit(digits).model_
    assert model.is_outlier_.mean() < 0.05


class TestNumberOfClusters:
    @pytest.mark.parametrize("sizes", [(100, 100), (60, 60, 60), (150, 15, 15), (40, 40, 40, 40)])
    def test_of_compact_clusters(self, sizes):
        """Splitting them raises the modularity."""
        clusterer = NMFClustering("auto", random_state=0).fit(blobs(sizes)[0])
        assert clusterer.n_clusters_ == len(sizes)

    def test_is_that_of_the_most_modular_clustering(self, X):
        clusterer = NMFClustering("auto", random_state=0).fit(X)
        assert (clusterer.n_clusters_, clusterer.components_.shape) == (3, (3, 12))
        assert metrics.clustering_accuracy(GROUPS, clusterer.labels_) == 1
        assert NMFClustering(4).fit(X).n_clusters_ == 4

    @pytest.mark.parametrize("n", [1, 2, 3, 4])
    def test_of_very_few_samples(self, rng, n):
        clusterer = NMFClustering("auto", random_state=0).fit(rng.random((n, 3)))
        assert clusterer.labels_.max() < clusterer.n_clusters_ <= max(1, n - 1)

    def test_the_choice_takes_time(self, X, monkeypatch):
        def slow(*given):
            time.sleep(0.2)
            return most_modular(*given)

        most_modular = clustering.most_modular
        monkeypatch.setattr(clustering, "most_modular", slow)
        found = NMFClustering("auto", random_state=0, time_limit=0.1).fit(X)
        assert found.rows_[0]["seconds"] > 0.2
        assert len(found.rows_) == 2, "the first family, and the fit from it"

    def test_says_why(self, X, capsys):
        NMFClustering("auto", random_state=0, verbose=1).fit(X)
        assert "3 clusters are compact and far apart" in capsys.readouterr().err

    def test_other_words_are_refused(self, X):
        with pytest.raises(ValueError, match="n_clusters must be an integer >= 1 or \"auto\"; got 'many'"):
            NMFClustering("many").fit(X)


class TestEffort:
    @pytest.fixture(autouse=True)
    def small(self, monkeypatch):
        monkeypatch.setattr("lognmf.grid.tune.WEIGHTS", {"lam": (0.1, 10.0)})
        monkeypatch.setattr("lognmf.grid.tune.ITERATIONS", (0, 5))

    @pytest.mark.parametrize(("n_neighbors", "grids"), [(5, 1), (6, 2)])
    def test_the_grid_is_tried_from_every_start(self, n_neighbors, grids, digits):
        """Both seeds have the same spectral start here; another graph says nothing about it."""
        X, y = digits
        options = {"effort": "grid", "n_init": 2, "n_neighbors": n_neighbors, "random_state": 0}
        found = NMFClustering(10, **options).fit(X)
        assert len(found.rows_) == 2 * len(FAMILIES) + 1 + grids
        assert sum("grid" in row["candidate"] for row in found.rows_) == grids
        assert len({row["seed"] for row in found.rows_}) == 2
        assert metrics.clustering_accuracy(y, found.labels_) > 0.8
        assert found.model_.n_iter_ > 0

    def test_seeds_are_tried_for_every_family(self, X):
        found = NMFClustering(3, n_init=3, random_state=0).fit(X)
        assert len(found.rows_) == 3 * len(FAMILIES) + 1

    def test_it_goes_on_from_a_store(self, X, tmp_path, monkeypatch):
        options = {"effort": "grid", "n_init": 1, "random_state": 0, "store": tmp_path / "rows.sqlite"}
        first = NMFClustering(3, **options).fit(X)
        monkeypatch.setattr("lognmf.grid.grid.Grid._fitted", lambda *_, **__: pytest.fail("fitted again"))
        np.testing.assert_array_equal(NMFClustering(3, **options).fit(X).labels_, first.labels_)

    def test_seeds_with_another_start_count(self):
        """Clusters are the same whatever their numbers are."""
        starts = iter([[0, 0, 1, 2], [2, 2, 0, 1], [0, 1, 1, 2]])
        candidates = SimpleNamespace(
            n_neighbors=5,
            found=[
                SimpleNamespace(candidate="spectral", seed=seed, labels=np.array(next(starts)))
                for seed in (7, 8, 9)
            ],
        )
        assert with_different_starts([7, 8, 9, 10], "spectral", candidates) == [7, 9, 10]
        assert with_different_starts([7, 8, 9], "random", candidates) == [7, 8, 9]

    def test_no_time(self, X):
        found = NMFClustering(3, effort="grid", time_limit=1e-9, random_state=0).fit(X)
        assert [row["candidate"] for row in found.rows_] == ["spectral", "codes of a fit from the best"]
        assert metrics.clustering_accuracy(GROUPS, found.labels_) == 1.0


BAD = {
    "no cluster": ({"n_clusters": 0}, ValueError, "n_clusters must be an integer >= 1; got 0"),
    "too many": ({"n_clusters": 61}, ValueError, "n_clusters must be at most the number of samples, 60"),
    "half": ({"n_clusters": 2.5}, TypeError, "n_clusters must be an integer >= 1"),
    "model": ({"model": "K-NMF"}, ValueError, "model must be an estimator or one of"),
    "foreign model": ({"model": object()}, TypeError, "estimator of this package"),
    "weight": ({"model": LogSparseNMF(lam=-1.0)}, ValueError, "lam must be a finite number >= 0"),
    "effort": ({"effort": "huge"}, ValueError, "effort must be one of"),
    "graph": ({"graph": "fast"}, ValueError, 'graph must be "knn", "exact", "approximate".*got \'fast\''),
    "no graph": ({"graph": None}, ValueError, "graph must not be None"),
    "wrong graph": ({"graph": sp.eye_array(4)}, ValueError, "graph must be 60×60 for 60 samples"),
    "neighbours": ({"n_neighbors": 0}, ValueError, "n_neighbors must be an integer >= 1; got 0"),
    "seeds": ({"n_init": 0}, ValueError, "n_init must be an integer >= 1; got 0"),
    "time": ({"time_limit": 0}, ValueError, "time_limit must be a finite number > 0"),
    "random state": ({"random_state": -1}, ValueError, "random_state must be a seed"),
}


@pytest.mark.parametrize(("options", "error", "words"), BAD.values(), ids=BAD)
def test_refused_in_words(options, error, words, X, monkeypatch):
    monkeypatch.setattr("lognmf.graph.find_neighbours", lambda *_: pytest.fail("the graph was built"))
    with pytest.raises(error, match=words):
        NMFClustering(**{"n_clusters": 3, **options}).fit(X)


def test_missing_and_negative_entries_are_refused(X):
    X[3, 4] = np.nan
    with pytest.raises(ValueError, match="NMFClustering does not take"):
        NMFClustering(3).fit(X)
    X[3, 4] = -1
    with pytest.raises(ValueError, match="Negative values in data passed to NMFClustering"):
        NMFClustering(3).fit(X)
    assert NMFClustering(3, model="Semi-NMF", random_state=0).fit(X).labels_.shape == (60,)


@pytest.mark.parametrize("given_to", ["clusterer", "model"])
@pytest.mark.parametrize("effort", ["quick", "grid"])
def test_a_given_graph_serves_for_all(given_to, effort, X, monkeypatch):
    monkeypatch.setattr("lognmf.graph.find_neighbours", lambda *_: pytest.fail("a graph was searched for"))
    other = np.arange(60) % 3  # groups that the samples do not have
    W = sp.csr_array((other[:, None] == other) * 1.0 - np.eye(60))
    clusterer = NMFClustering(3, effort=effort, n_init=1, random_state=0)
    if given_to == "model":
        clusterer.set_params(model=LogSparseNMF(graph=W, lam=1.0, max_iter=2))
    else:
        clusterer.set_params(graph=W)
    clusterer.fit(X)
    assert metrics.clustering_accuracy(other, clusterer.labels_) == 1.0
    np.testing.assert_array_equal(clusterer.model_.graph_.toarray(), W.toarray())


def test_how_neighbours_are_found_is_named_and_told(X, monkeypatch, capsys):
    asked, search = [], graph.find_neighbours
    monkeypatch.setattr(graph, "find_neighbours", lambda *how: asked.append(how[1:]) or search(*how))
    for name, method in graph.SEARCHES.items():
        NMFClustering(3, graph=name, verbose=1, random_state=0).fit(X)
        assert asked.pop() == (5, method)
        assert not asked
        assert "5 neighbours of 60 samples found exactly" in capsys.readouterr().err
