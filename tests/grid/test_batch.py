"""Settings that differ in max_iter alone are one fit, looked at on its way; rows are as of single fits."""

import numpy as np
import pytest

from lognmf import MODELS, fit_grid
from lognmf.grid import grid as module
from lognmf.models import engine
from problems import samples

FIXED = {"alpha": 0.01, "beta": 0.001, "lam": 0.1}


@pytest.fixture
def X(rng):
    return samples(rng, 40, 12)


@pytest.fixture
def fits(monkeypatch):
    """Settings and iterations of every batch that was fitted."""
    counted, iterate = [], engine.iterate

    def counting(rule, state, *, max_iter, **options):
        counted.append((state.batch, max_iter))
        return iterate(rule, state, max_iter=max_iter, **options)

    monkeypatch.setattr(engine, "iterate", counting)
    return counted


def assert_rows_are_single_fits(result, count):
    assert len(result.rows) == count
    for i, row in enumerate(result.rows):
        single = result.model(i)
        np.testing.assert_allclose(row["objective"], single.objective_, rtol=1e-9)
        np.testing.assert_allclose(row["reconstruction_err"], single.reconstruction_err_, rtol=1e-8)
        assert (row["n_iter"], row["stop_reason"]) == (single.n_iter_, single.stop_reason_)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize(
    "options",
    [
        {"solver": "mu", "tol": 0.0},
        {"solver": "mu", "tol": 2e-3},
        {"solver": "mu", "tol": 0.0, "n_init": 2, "unit_components": False},
        {"solver": "cd", "tol": 1e-3},
    ],
)
def test_one_fit_for_all(options, X, fits):
    model = MODELS["LS-NMF"](3, **FIXED | options, init="scaled")
    grid = {"lam": [0.0, 1.0], "max_iter": [0, 50, 10, 30]}
    result = fit_grid(model, X, grid, seeds=[0, 3], n_clusters=3)
    assert fits == [(4 * options.get("n_init", 1), 50)]
    assert [(row["lam"], row["max_iter"], row["seed"]) for row in result.rows] == [
        (lam, limit, seed) for lam in (0.0, 1.0) for limit in (0, 50, 10, 30) for seed in (0, 3)
    ]
    assert_rows_are_single_fits(result, 16)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_settings_with_different_limits(X, fits):
    """A list of settings asks for no more rows than it names."""
    model = MODELS["GNMF"](3, init="random")
    grid = [{"lam": [0.1], "max_iter": [20]}, {"lam": [1.0], "max_iter": [10, 0]}]
    assert_rows_are_single_fits(fit_grid(model, X, grid), 3)
    assert fits[0] == (2, 20)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_only_where_the_longer_fit_is_evaluated(X, fits):
    model = MODELS["GNMF"](3, init="random", eval_every=10)
    assert_rows_are_single_fits(fit_grid(model, X, {"lam": [0.1], "max_iter": [20, 7, 10]}), 3)
    assert fits[:2] == [(1, 20), (1, 7)]


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_not_where_weights_are_chosen_at_the_end(X):
    model = MODELS["LS-NMF"](3, lam=0.0)
    assert_rows_are_single_fits(fit_grid(model, X, {"max_iter": [20, 10]}), 2)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_also_for_classes_of_a_user(X, fits):
    class Mine(MODELS["GNMF"]):
        """A user's subclass gets everything ours get."""

    fit_grid(Mine(3, init="random"), X, {"max_iter": [20, 10]})
    assert fits == [(1, 20)]


def test_memory_is_for_fits_not_rows(X, fits):
    model = MODELS["GNMF"](3, init="random", max_iter=10, tol=0.0)
    one = 16 * (40 + 12) * 3 * 8
    fit_grid(model, X, {"lam": [0.1, 1.0], "max_iter": [0, 10, 20]}, memory=one)
    assert fits == [(1, 20), (1, 20)]


def test_equal_codes_are_clustered_once(X, monkeypatch):
    """Before the first iteration they are the same whatever the weights are."""
    clustered, kmeans = [], module.kmeans

    def counting(V, *args, **options):
        clustered.append(V.shape[1])
        return kmeans(V, *args, **options)

    monkeypatch.setattr(module, "kmeans", counting)
    model = MODELS["GNMF"](3, init="random", tol=0.0)
    result = fit_grid(model, X, {"lam": [0.1, 1.0, 10.0], "max_iter": [0, 10]}, seeds=[0, 1], n_clusters=3)
    assert clustered == [2, 6]
    start = [row for row in result.rows if row["max_iter"] == 0]
    assert len({(row["seed"], row["normalized_cut"]) for row in start}) <= 2
