"""`NMFClustering`: clusters without labels, as a scikit-learn clusterer."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.datasets import load_digits, make_blobs
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import Normalizer, normalize
from sklearn.utils.estimator_checks import check_clustering, parametrize_with_checks

from lognmf import MODELS, LogSparseNMF, NMFClustering, graph, knn_graph, metrics
from lognmf.clusterer import FAMILIES, vote
from lognmf.clustering.number import number_of_clusters

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
    silhouettes = [row["silhouette"] for row in found.rows_]
    weight = 2 * max(silhouettes) ** 2
    assert chosen["modularity"] + weight * chosen["silhouette"] == max(
        row["modularity"] + weight * row["silhouette"] for row in found.rows_
    )


def test_texts_are_not_left_to_the_graph(rng):
    """Few words in common: the graph is thin, and spectral clusterings split off what hangs together."""
    topics = np.repeat(np.arange(4), 100)
    words = rng.poisson(0.15 + 4 * (np.arange(80) // 20 == topics[:, None]) * rng.random((400, 80)) ** 6)
    X = normalize(sp.csr_array(words, dtype=float))
    found = NMFClustering(4, random_state=0).fit(X)
    assert metrics.clustering_accuracy(topics, found.labels_) > 0.9


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
        assert capsys.readouterr().err.count("modularity") == 6


def blobs(sizes, seed=0):
    """Round clusters of these sizes, far apart, and which sample is of which."""
    centres = [(5, 5), (15, 5), (5, 15), (15, 15)][: len(sizes)]
    X, y = make_blobs(sizes, centers=np.array(centres), random_state=seed)
    return np.maximum(X, 0), y


@pytest.mark.parametrize("sizes", [(60, 60, 60), (150, 15, 15), (100, 100, 12)])
def test_separated_clusters_of_any_size_are_found(sizes):
    """Modularity alone would split the large one and merge the small ones."""
    X, y = blobs(sizes)
    found = NMFClustering(3, random_state=0).fit(X)
    assert metrics.clustering_accuracy(y, found.labels_) == 1


@pytest.mark.parametrize("seed", range(3))
def test_groups_of_three_to_five_samples(seed):
    """A graph of five neighbours joins such groups."""
    rng = np.random.default_rng(seed)
    y = np.repeat(np.arange(8), rng.integers(3, 6, 8))
    centres = 10 * rng.random((8, 10))
    apart = np.linalg.norm(centres[:, None] - centres, axis=2)[np.triu_indices(8, 1)].min()
    X = np.abs(centres[y] + apart / 20 * rng.standard_normal((len(y), 10)))
    assert metrics.clustering_accuracy(y, NMFClustering(8, random_state=0).fit(X).labels_) == 1


@pytest.mark.parametrize("few", [5, 20])
def test_a_small_group_far_from_a_large_one(few, rng):
    X = rng.standard_normal((400 + few, 5)) + 16 * (np.arange(400 + few) >= 400)[:, None] / np.sqrt(5)
    found = NMFClustering(2, random_state=0).fit(X - X.min())
    np.testing.assert_array_equal(np.sort(np.bincount(found.labels_)), [few, 400])


def test_one_sample_far_away_is_no_cluster(rng):
    X, y = blobs((60, 60))
    X = np.concatenate([X, [[400.0, 400.0]]])
    assert metrics.clustering_accuracy(y, NMFClustering(2, random_state=0).fit(X).labels_[:-1]) == 1


def test_judges_that_disagree_are_reported(rng):
    """Two long parallel lines: neighbours say one thing, distances another."""
    at = np.repeat([0.0, 0.8], 150)
    X = np.column_stack([np.tile(np.linspace(0, 10, 150), 2), at]) + 0.01 * rng.random((300, 2))
    X[::2, 0] += 30  # and both are cut in the middle
    with pytest.warns(UserWarning, match="graph and the distances disagree on 4 clusters"):
        NMFClustering(4, random_state=0).fit(X)


def test_a_refused_fit_leaves_the_last_one_as_it_was(X):
    found = NMFClustering(3, random_state=0).fit(X)
    with pytest.raises(ValueError, match="at most the number of samples"):
        found.fit(X[:2, :5])
    np.testing.assert_array_equal(found.predict(X), found.labels_)


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

    def test_is_that_of_the_groups(self, X):
        clusterer = NMFClustering("auto", random_state=0).fit(X)
        assert (clusterer.n_clusters_, clusterer.components_.shape) == (3, (3, 12))
        assert metrics.clustering_accuracy(GROUPS, clusterer.labels_) == 1
        assert clusterer.number_.best == 3
        best = max(clusterer.number_.rows, key=lambda row: row["agreement"])
        assert best["k"] == 3
        assert set(best) == {"k", "modularity", "silhouette", "stability", "agreement"}
        given = NMFClustering(4).fit(X)
        assert (given.n_clusters_, given.number_) == (4, None)

    @pytest.mark.parametrize("draw", ["random", "standard_normal"])
    def test_of_a_cloud_is_one(self, draw):
        X = getattr(np.random.default_rng(0), draw)((120, 4))
        clusterer = NMFClustering("auto", random_state=0).fit(X - X.min())
        assert clusterer.n_clusters_ == 1
        assert clusterer.number_.reason.startswith("No clusters: ")

    def test_of_many_far_blobs(self, rng):
        """Equal eigenvalues of the graph are counted, one by one."""
        y = np.arange(2500) % 20
        X = 100 * rng.random((20, 10))[y] + rng.random((2500, 10))
        assert number_of_clusters(X, range(2, 31), np.random.RandomState(0)).best == 20

    def test_of_copies_of_few_samples(self, rng):
        X = np.repeat(rng.random((4, 6)), 50, axis=0)
        clusterer = NMFClustering("auto", random_state=0).fit(X)
        assert (clusterer.n_clusters_, clusterer.components_.shape[0]) == (4, 4)

    @pytest.mark.parametrize("n", [1, 2, 3, 4])
    def test_of_very_few_samples(self, rng, n):
        clusterer = NMFClustering("auto", random_state=0).fit(rng.random((n, 3)))
        assert clusterer.labels_.max() < clusterer.n_clusters_ <= max(1, n - 1)

    def test_says_why(self, X, capsys):
        NMFClustering("auto", random_state=0, verbose=1).fit(X)
        assert "3 clusters: modularity" in capsys.readouterr().err

    def test_other_words_are_refused(self, X):
        with pytest.raises(ValueError, match="n_clusters must be an integer >= 1 or \"auto\"; got 'many'"):
            NMFClustering("many").fit(X)


BAD = {
    "no cluster": ({"n_clusters": 0}, ValueError, "n_clusters must be an integer >= 1; got 0"),
    "too many": ({"n_clusters": 61}, ValueError, "n_clusters must be at most the number of samples, 60"),
    "half": ({"n_clusters": 2.5}, TypeError, "n_clusters must be an integer >= 1"),
    "model": ({"model": "K-NMF"}, ValueError, "model must be an estimator or one of"),
    "foreign model": ({"model": object()}, TypeError, "estimator of this package"),
    "weight": ({"model": LogSparseNMF(lam=-1.0)}, ValueError, "lam must be a finite number >= 0"),
    "graph": ({"graph": "fast"}, ValueError, 'graph must be "knn", "exact", "approximate".*got \'fast\''),
    "no graph": ({"graph": None}, ValueError, "graph must not be None"),
    "wrong graph": ({"graph": sp.eye_array(4)}, ValueError, "graph must be 60×60 for 60 samples"),
    "neighbours": ({"n_neighbors": 0}, ValueError, "n_neighbors must be an integer >= 1; got 0"),
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
def test_a_given_graph_serves_for_all(given_to, X, monkeypatch):
    monkeypatch.setattr("lognmf.graph.find_neighbours", lambda *_: pytest.fail("a graph was searched for"))
    other = np.arange(60) % 3  # groups that the samples do not have
    W = sp.csr_array((other[:, None] == other) * 1.0 - np.eye(60))
    clusterer = NMFClustering(3, random_state=0)
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
