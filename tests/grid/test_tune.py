"""Weights chosen without labels."""

from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp

from lognmf import MODELS, LogSparseNMF, knn_graph, metrics, normalize, tune
from lognmf.grid.select import CRITERIA, LOOKED_AT, select
from lognmf.grid.tune import ITERATIONS, WEIGHTS, default_grid
from problems import moves

GROUPS = np.repeat([0, 1, 2], 15)
SMALL = {"lam": [0.1, 10.0], "alpha": [0.001, 0.1]}


@pytest.fixture
def X(rng):
    """Three separated groups of samples, of unit norm."""
    X = np.repeat(np.eye(3).repeat(4, axis=1), 15, axis=0) * rng.random((45, 12)) + 0.02 * rng.random(
        (45, 12)
    )
    return X / np.linalg.norm(X, axis=1, keepdims=True)


@pytest.mark.parametrize("name", ["LS-NMF", "RLS-NMF", "GNMF", "NMF"])
def test_separated_groups_are_found_without_labels(name, X):
    tuned = tune(X, 3, model=name)
    assert metrics.clustering_accuracy(GROUPS, tuned.labels) == 1.0
    assert type(tuned.model) is MODELS[name]
    expected = {n: WEIGHTS[n] for n in MODELS[name].spec.weights if n != "gamma"} | {"max_iter": ITERATIONS}
    assert set(tuned.setting) == set(expected) | ({"gamma"} if name == "RLS-NMF" else set())
    assert all(tuned.setting[n] in values for n, values in expected.items())
    limits = expected.pop("max_iter")
    count = int(np.prod([len(values) for values in expected.values()]))  # a third of them has all limits
    assert len(tuned.rows) == 3 * (3 * count + (len(limits) - 3) * -(-count // 3))
    assert "accuracy" not in tuned.rows[0]


@pytest.mark.parametrize("by", CRITERIA)
def test_the_model_and_its_labels_are_those_that_were_judged(rng, by):
    X = rng.random((40, 10))
    tuned = tune(X, 4, grid=SMALL, max_iter=25, by=by, init="random", n_clusters=3, seeds=[7, 2, 5])
    own = [row for row in tuned.rows if all(row[n] == v for n, v in tuned.setting.items())]
    assert [row["seed"] for row in own] == [7, 2, 5]
    scores = {
        "normalized_cut": lambda row: row["normalized_cut"],
        "modularity": lambda row: -row["modularity"],
    }
    best = min(own, key=scores[LOOKED_AT[by][0]])
    assert tuned.model.random_state == best["seed"]
    assert tuned.model.objective_ == pytest.approx(best["objective"], rel=1e-10)
    assert metrics.normalized_cut(knn_graph(X), tuned.labels) == pytest.approx(best["normalized_cut"])
    assert metrics.modularity(knn_graph(X), tuned.labels) == pytest.approx(best["modularity"])
    assert (tuned.by, tuned.score) == (by, tuned.choice.scores[0][1])
    if by == "normalized_cut":
        assert tuned.score == pytest.approx(np.mean([row["normalized_cut"] for row in own]))


def test_the_same_call_twice_gives_the_same_result(X):
    one, other = (tune(X, 3, grid=SMALL, max_iter=20) for _ in range(2))
    assert one.setting == other.setting
    np.testing.assert_array_equal(one.labels, other.labels)
    np.testing.assert_array_equal(one.model.embedding_, other.model.embedding_)


def test_what_is_not_in_the_grid_stays(X):
    model = LogSparseNMF(beta=0.7, penalty="l1", n_neighbors=3, tol=0.0)
    tuned = tune(X, 3, model=model, grid={"lam": [1.0, 2.0]}, max_iter=7, seeds=[4])
    expected = {"n_components": 3, "beta": 0.7, "penalty": "l1", "n_neighbors": 3, "tol": 0.0, "max_iter": 7}
    assert expected.items() <= tuned.model.get_params().items()
    assert (tuned.model.init, tuned.model.random_state, tuned.model.n_iter_) == ("spectral", 4, 7)
    assert {row["beta"] for row in tuned.rows} == {0.7}
    assert model.n_components == 10  # as given


def test_nothing_is_printed_unless_asked(X, capsys):
    grid = {"lam": [1.0]}
    tune(X, 3, grid=grid, seeds=[0], max_iter=1)
    assert capsys.readouterr() == ("", "")
    tune(X, 3, grid=grid, seeds=[0], max_iter=1, verbose=1)
    assert "1 of 1 fits" in capsys.readouterr().err


def test_outliers_are_few_where_none_was_made(rng):
    """Clusters say nothing about gamma: it follows from the residuals of the chosen fit."""
    topics, shares = rng.dirichlet(np.full(60, 0.1), 5), rng.dirichlet(np.full(5, 0.3), 200)
    X = normalize(rng.poisson(200 * shares @ topics).astype(float))
    X[3] = normalize(rng.random((1, 60)))
    tuned = tune(X, 5, model="RLS-NMF", grid={"lam": [0.1, 10.0], "max_iter": [10, 30]}, seeds=[0])
    assert tuned.model.gamma == tuned.setting["gamma"] < 10
    # The rows are those of fits without outliers; gamma is no part of the setting that was compared.
    same = [row for row in tuned.rows if all(row[n] == v for n, v in tuned.choice.setting.items())]
    assert len(same) == 1
    assert "gamma" not in {**tuned.choice.setting, **tuned.rows[0]}
    assert tuned.model.is_outlier_[3]
    assert tuned.model.is_outlier_.sum() < 20
    given = tune(X, 5, model=MODELS["RLS-NMF"](gamma=0.7), grid={"lam": [0.1, 1.0]}, seeds=[0], max_iter=5)
    assert given.model.gamma == given.setting["gamma"] == 0.7


def test_default_grid():
    assert default_grid(MODELS["RLS-NMF"](init="spectral")) == {
        "alpha": (0.001, 0.01, 0.1),
        "beta": (0.001, 0.01, 0.1),
        "lam": (0.01, 0.1, 1.0, 10.0, 100.0),
        "max_iter": (0, 10, 30, 100, 300),
    }
    assert default_grid(MODELS["LS-NMF"](init="random")) == {n: WEIGHTS[n] for n in ("alpha", "beta", "lam")}
    assert default_grid(MODELS["RLS-NMF"](init="spectral"), fixed=("lam", "alpha")) == {
        "beta": WEIGHTS["beta"],
        "max_iter": ITERATIONS,
    }
    assert default_grid(MODELS["ONMF"]()) == {}


def test_an_unknown_weight_stays_as_the_model_has_it():
    class OwnModel(LogSparseNMF):
        spec = replace(LogSparseNMF.spec, weights=("alpha", "smoothness"))

    assert default_grid(OwnModel(init="random")) == {"alpha": WEIGHTS["alpha"]}


def test_given_iterations_are_not_tuned(X):
    tuned = tune(X, 3, model="GNMF", max_iter=6)
    assert set(tuned.setting) == {"lam"}
    assert tuned.model.max_iter == 6


def test_iterations_in_the_grid(X):
    tuned = tune(X, 3, grid={"max_iter": [5, 15]}, seeds=[0])
    assert [row["n_iter"] for row in tuned.rows] == [5, 15]
    assert tuned.model.n_iter_ == tuned.setting["max_iter"]


def test_only_the_best_third_of_the_default_grid_goes_on(X):
    with moves() as seen:
        tuned = tune(X, 3, model="GNMF", seeds=[0, 1])
    weights = {limit: {row["lam"] for row in tuned.rows if row["max_iter"] == limit} for limit in ITERATIONS}
    assert all(weights[limit] == set(WEIGHTS["lam"]) for limit in ITERATIONS if limit <= 30)
    few = [row for row in tuned.rows if row["max_iter"] <= 30]
    ranked = [setting["lam"] for setting, _ in select(few, tuned.by).scores if setting["max_iter"] > 0]
    best = set(list(dict.fromkeys(ranked))[:2])  # of five
    assert weights[100] == weights[300] == best
    assert len(tuned.rows) == 2 * (3 * 5 + 2 * 2)
    assert seen.counts[-1] == (50, 50)  # those left out count as done


def test_a_given_grid_is_fitted_in_full(X):
    tuned = tune(X, 3, model="GNMF", seeds=[0], grid={"lam": [0.1, 1.0, 10.0], "max_iter": [0, 10, 50]})
    assert len(tuned.rows) == 9


def test_a_fit_is_not_less_balanced_than_the_start(rng):
    X = rng.random((60, 8))
    tuned = tune(X, 4, model="GNMF", seeds=[0, 1])
    of = {str(s): score for s, score in tuned.choice.scores}
    start = of[str({"lam": 0.01, "max_iter": 0})]
    assert tuned.score <= start < 1
    assert tuned.model.n_iter_ <= tuned.setting["max_iter"]


def test_sparse_data(X):
    X[X < 0.02] = 0
    dense, sparse = (tune(A, 3, grid=SMALL, max_iter=20, seeds=[0]) for A in (X, sp.csr_array(X)))
    assert dense.setting == sparse.setting
    np.testing.assert_array_equal(dense.labels, sparse.labels)


def test_equal_samples_leave_no_gaps_in_the_labels():
    X = np.eye(3).repeat(6, axis=0)
    tuned = tune(X, 3, model="NMF", n_clusters=5, grid={"max_iter": [5]}, seeds=[0])
    assert tuned.rows[0]["clusters"] == 3
    np.testing.assert_array_equal(np.unique(tuned.labels), [0, 1, 2])


def test_store_and_progress(X, tmp_path):
    options = {"grid": SMALL, "max_iter": 5, "store": tmp_path / "rows.sqlite"}
    with moves() as seen:
        first = tune(X, 3, **options)
    assert seen.counts[-1] == (12, 12)
    assert tune(X, 3, **options).rows == first.rows


BAD = {
    "model": ({"model": "K-NMF"}, ValueError, "model must be an estimator or one of"),
    "foreign model": ({"model": object()}, TypeError, "estimator of this package"),
    "criterion": ({"by": "accuracy"}, ValueError, "by must be one of"),
    "weight of another": ({"grid": {"gamma": [1.0]}}, ValueError, "LogSparseNMF has no parameter 'gamma'"),
    "empty grid": ({"grid": []}, ValueError, "grid is empty"),
    "negative weight": ({"grid": {"lam": [-1.0]}}, ValueError, "lam must be a finite number >= 0"),
    "components": ({"n_components": 0}, ValueError, "n_components must be an integer >= 1; got 0"),
    "components in words": ({"n_components": "ten"}, TypeError, "n_components must be an integer >= 1"),
    "clusters": ({"n_clusters": 46}, ValueError, "at most the number of samples, 45"),
    "start": ({"init": "zero"}, ValueError, "init must be one of"),
    "start of another": ({"model": "ONMF"}, ValueError, r"init must be one of \['kmeans', 'random'\]"),
    "seeds": ({"seeds": []}, ValueError, "seeds must be different integers"),
    "iterations": ({"max_iter": -1}, ValueError, "max_iter must be an integer >= 0"),
    "iterations twice": (
        {"max_iter": 5, "grid": [{"max_iter": [5]}]}, ValueError, "max_iter is given, 5, and in the grid too",
    ),
    "data": ({"X": -np.ones((45, 3))}, ValueError, "Negative values"),
}  # fmt: skip


@pytest.mark.parametrize("case", BAD)
def test_bad_arguments_are_refused_before_any_work(case, X, monkeypatch):
    options, error, words = BAD[case]
    monkeypatch.setattr("lognmf.models.engine.iterate", lambda *_, **__: pytest.fail("work was done"))
    with pytest.raises(error, match=words):
        tune(**{"X": X, "n_components": 3, **options})
