"""What is the same problem is fitted once, and its rows are those of its own fit."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lognmf import MODELS, fit_grid
from lognmf.core.terms import ROW_NORMS
from lognmf.core.terms.robust import kept_share
from lognmf.grid import fit as module
from lognmf.models import engine
from problems import samples


@pytest.fixture
def X(rng):
    return samples(rng, 30, 12)


@pytest.fixture
def fits(monkeypatch):
    """How many settings were fitted, batch by batch."""
    counted = []
    iterate = engine.iterate

    def counting(rule, state, **options):
        counted.append(state.batch)
        return iterate(rule, state, **options)

    monkeypatch.setattr(engine, "iterate", counting)
    return counted


MU = {"solver": "mu", "alpha": 0.01, "beta": 0.001, "lam": 0.1}
"""Multiplicative updates with weights that are not chosen."""


def assert_rows_are_single_fits(result):
    for i, row in enumerate(result.rows):
        single = result.model(i)
        np.testing.assert_allclose(row["objective"], single.objective_, rtol=1e-10)
        np.testing.assert_allclose(row["reconstruction_err"], single.reconstruction_err_, rtol=1e-8)
        assert row["n_iter"] == single.n_iter_
        assert row["stop_reason"] == single.stop_reason_
        assert row["n_outliers"] == (single.outlier_share_ > 0).sum()


@pytest.mark.parametrize("row_norm", ROW_NORMS)
@pytest.mark.parametrize("tol", [0.0, 1e-4])
def test_large_gammas_are_one_problem(X, fits, row_norm, tol):
    model = MODELS["RLS-NMF"](3, **MU, init="scaled", row_norm=row_norm, max_iter=30, tol=tol)
    grid = {"gamma": [1000.0, 0.01, 10.0, 100.0], "lam": [0.1, 1.0]}
    result = fit_grid(model, X, grid, seeds=[0, 1], n_clusters=3)
    assert fits == [8]  # of 16: those of gamma 0.01 and 10
    assert [(row["gamma"], row["lam"], row["seed"]) for row in result.rows] == [
        (gamma, lam, seed) for gamma in grid["gamma"] for lam in grid["lam"] for seed in (0, 1)
    ]
    assert_rows_are_single_fits(result)
    assert result.rows[0]["normalized_cut"] == result.rows[8]["normalized_cut"]


def test_a_large_start_uses_every_gamma(X, fits):
    """From the paper's start, far too large, even gamma = 10 sets samples aside at first."""
    X = X / np.linalg.norm(X, axis=1, keepdims=True)
    model = MODELS["RLS-NMF"](8, **MU, init="random", max_iter=10)
    result = fit_grid(model, X, {"gamma": [1.0, 5.0, 10.0]}, seeds=[0])
    assert fits == [3]
    assert_rows_are_single_fits(result)


@pytest.mark.parametrize("row_norm", ROW_NORMS)
def test_who_waits_for_whom(X, fits, row_norm):
    """The least γ that sets nothing aside at the start is fitted; those above wait, those below do not."""
    model = MODELS["RLS-NMF"](
        3, **MU, init="scaled", row_norm=row_norm, gamma=1.0, max_iter=0, random_state=0
    ).fit(X)
    r = np.linalg.norm(X - model.inverse_transform(model.embedding_), axis=1).max()
    least = 2 * r  # ξ = r − γ/2 for ℓ2,1; for ℓ2,log it begins there too, as long as γ/2 is below 1
    assert r < 1
    fits.clear()
    gammas = [1.02 * least, 0.98 * least, 1.05 * least, 0.5 * least]
    result = fit_grid(model.set_params(max_iter=3), X, {"gamma": gammas})
    assert fits == [3]
    assert [row["seconds"] > 0 for row in result.rows] == [True, True, False, True]
    assert_rows_are_single_fits(result)


def test_a_follower_is_fitted_if_its_leader_was_wrong(X, fits, monkeypatch):
    """A leader that sets a sample aside later on speaks for itself alone."""
    told = []
    rows = module.Run.rows

    def doubting(self, pairs, *, watched):
        found, quiet = rows(self, pairs, watched=watched)
        told.append(quiet)
        return found, [False] * len(quiet)

    monkeypatch.setattr(module.Run, "rows", doubting)
    model = MODELS["RLS-NMF"](3, **MU, init="scaled", max_iter=20)
    result = fit_grid(model, X, {"gamma": [10.0, 100.0, 1000.0]})
    assert fits == [1, 2]
    assert told == [[True], [False, False]]
    assert_rows_are_single_fits(result)


def test_what_was_set_aside_is_noticed(X):
    """The weights push the fit away from samples that it met at the start."""
    model = MODELS["RLS-NMF"](3, **MU | {"alpha": 100.0, "beta": 100.0}, init="scaled", max_iter=60, tol=0.0)
    gammas = [round(gamma, 2) for gamma in np.linspace(0.5, 3, 26)]
    result = fit_grid(model, X, {"gamma": gammas})
    assert_rows_are_single_fits(result)
    assert 0 < sum(row["n_outliers"] > 0 for row in result.rows) < len(gammas)


@pytest.mark.parametrize(
    ("name", "grid", "fitted"),
    [
        ("LS-NMF", [{"lam": [1.0, 1.0, 1]}, {"lam": [1.0]}], 1),
        ("LS-NMF", {"lam": [0.1, 1.0, 10.0], "graph": [None]}, 1),
        ("LS-NMF", {"lam": [0.0, 1.0], "n_neighbors": [3, 4]}, 3),
        ("LS-NMF", {"alpha": [0.0], "beta": [0.0, 1.0], "penalty": ["log", "l1"]}, 3),
        ("LS-NMF", {"alpha": [0.1], "lam": [0.1, 1.0]}, 2),
        ("GNMF", {"lam": [1.0, 2.0], "graph": [None, "knn"]}, 3),
        ("NMF", [{}, {}], 1),
    ],
)
def test_repetitions_and_idle_parameters(X, fits, name, grid, fitted):
    numbers = {n: v for n, v in MU.items() if n in MODELS[name]().get_params()}
    result = fit_grid(MODELS[name](3, max_iter=10, **numbers), X, grid, seeds=[0])
    assert sum(fits) == fitted
    for i, row in enumerate(result.rows):
        np.testing.assert_allclose(row["objective"], result.model(i).objective_, rtol=1e-10)


def test_store_and_progress(X, fits, tmp_path):
    seen = []
    options = {"seeds": [0, 1], "store": tmp_path / "rows.sqlite", "on_batch": lambda *a: seen.append(a[:2])}
    model, grid = MODELS["RLS-NMF"](3, **MU, init="scaled", max_iter=5), {"gamma": [10.0, 100.0, 10.0]}
    first = fit_grid(model, X, grid, **options)
    assert fits == [2]
    assert seen == [(6, 6)]
    again = fit_grid(model, X, grid, **options)
    assert fits == [2]
    assert again.rows == first.rows
    assert [row["seconds"] > 0 for row in first.rows] == [True, True, False, False, True, True]
    more = fit_grid(model, X, {"gamma": [10.0, 100.0, 1000.0]}, **options)
    assert [row["gamma"] for row in more.rows] == [10.0, 10.0, 100.0, 100.0, 1000.0, 1000.0]
    assert more.rows[:4] == first.rows[:4]


@given(
    st.sampled_from(sorted(ROW_NORMS)),
    st.floats(0, 1e4),
    st.floats(0, 1),
    st.floats(1e-6, 1e4),
    st.floats(1.001, 1e3),
)
def test_what_is_not_worth_its_price_is_not_worth_a_higher_one(norm, r, share, tau, factor):
    """The criterion: no outlier at (r, τ) means none at a smaller residual and a larger weight."""
    kept = [
        kept_share(ROW_NORMS[norm](), np.array([[a]]), np.array([b]))[0, 0]
        for a, b in ((r, tau), (share * r, factor * tau))
    ]
    assert kept[1] == 1 or kept[0] < 1
