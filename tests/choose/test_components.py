"""How many components: what was planted is found, and bad input is refused."""

import time

import numpy as np
import pytest
import scipy.sparse as sp

from lognmf import WeightedNMF, choose_components
from lognmf.choose.components import EXACT, RECOMMENDATIONS
from lognmf.choose.held_out import draw_entries
from problems import moves


def planted(k, seed=0, n=80, p=40, noise=0.05):
    """k sparse parts, and uniform noise."""
    rng = np.random.default_rng(seed)
    V, U = (rng.gamma(2.0, 1.0, (size, k)) * (rng.random((size, k)) < 0.4) for size in (n, p))
    X = V @ U.T
    return X + noise * X.std() * rng.random((n, p))


@pytest.mark.parametrize("by", ["held_out", "stability"])
def test_planted_number_is_found(by):
    choice = choose_components(planted(5), range(1, 10), by=by, random_state=0)
    assert choice.best == 5
    assert "5" in choice.reason
    assert [row["k"] for row in choice.rows] == list(range(1, 10))
    best = choice.rows[4]
    assert best["held_out_error"] < 0.01
    assert best["stability"] > 0.99


def test_a_part_that_explains_little_of_spectra_is_found(rng):
    """Two of three spectra explain 99.5 % of the variance; the third one halves what is left."""
    at = np.linspace(0, 1, 60)
    spectra = [0.3 + 0.2 * at, 0.05 + 0.45 / (1 + np.exp(-(at - 0.15) / 0.02)), 0.01 + 0.08 * np.exp(-5 * at)]
    X = rng.dirichlet(np.ones(3), 400) @ np.array(spectra) + 0.002 * rng.standard_normal((400, 60))
    choice = choose_components(np.maximum(X, 0), range(1, 9), random_state=0)
    assert choice.best == 3
    assert choice.rows[1]["held_out_error"] < 0.05


def test_an_error_that_falls_on_turns_where_the_last_part_is():
    """What is left of nearly exact data has structure too; a straight fall tells nothing."""
    recommend = RECOMMENDATIONS["held_out"]
    least = [{"above_best": 1.0, "above_best_se": 0.0, "stability": 1.0, "k": k} for k in range(1, 8)]
    least[-1]["above_best"] = 0.0
    turning = [
        row | {"held_out_error": 5.0**-k} for row, k in zip(least, (1, 4, 6, 6.2, 6.4, 6.6, 6.8), strict=True)
    ]
    assert (
        recommend([row | {"held_out_error": 1e3 * EXACT * row["held_out_error"]} for row in turning])[0] == 3
    )
    straight = [row | {"held_out_error": 8e-4 * 0.8 ** row["k"]} for row in least]
    assert recommend(straight)[0] == 7


def test_overfitting_shows_in_held_out_entries_only():
    rows = choose_components(planted(3, noise=1.0), range(1, 13), random_state=0).rows
    training, held_out = ([row[name] for row in rows] for name in ("training_error", "held_out_error"))
    assert (np.diff(training) < 0).all()
    assert held_out[-1] > 1.02 * min(held_out)


def test_exact_data_without_noise():
    """No further part can be better, whatever rounding says."""
    assert choose_components(planted(4, noise=0.0), range(1, 9), random_state=0).best == 4


def test_scale_and_storage_do_not_matter():
    X = planted(3, n=50, p=25) * (np.random.default_rng(1).random((50, 25)) < 0.4)
    dense = choose_components(X, (2, 3, 4), random_state=0)
    for other in (1e-6 * X, 1e6 * X, sp.csr_array(X)):
        again = choose_components(other, (2, 3, 4), random_state=0)
        assert again.best == dense.best
        errors = [[row["held_out_error"] for row in choice.rows] for choice in (dense, again)]
        np.testing.assert_allclose(*errors, rtol=1e-6)


def test_outliers_and_missing_entries_are_left_out():
    X = planted(4)
    rng = np.random.default_rng(2)
    X[rng.random(X.shape) < 0.03] = 3 * X.max()
    X[rng.random(X.shape) < 0.05] = np.nan
    choice = choose_components(X, range(1, 9), random_state=0)
    assert choice.best == 4
    assert 0.5 * 96 < choice.n_outliers < 1.5 * 96
    assert choose_components(X, range(1, 4), robust=False, random_state=0).n_outliers == 0


def test_ks_with_gaps_and_in_any_order():
    choice = choose_components(planted(4), [8, 2, 4, 2], random_state=0)
    assert [row["k"] for row in choice.rows] == [2, 4, 8]
    assert choice.best == 4


def test_the_largest_number_asks_for_larger_ones():
    choice = choose_components(planted(6), range(1, 4), random_state=0)
    assert choice.best == 3
    assert "try larger" in choice.reason


def test_the_same_seed_gives_the_same_rows():
    first, again = (choose_components(planted(3), (2, 3), random_state=3).rows for _ in range(2))
    assert first == again


def row(k, error, se=0.0, stability=1.0):
    return {
        "k": k,
        "held_out_error": error,
        "above_best": error - 0.1,
        "above_best_se": se,
        "stability": stability,
    }


def test_a_smaller_number_wins_unless_it_is_clearly_worse():
    recommend = RECOMMENDATIONS["held_out"]
    assert recommend([row(1, 0.9), row(2, 0.2), row(3, 0.1)])[0] == 3
    assert recommend([row(1, 0.9), row(2, 0.15, se=0.06), row(3, 0.1)])[0] == 2  # within a standard error
    assert recommend([row(1, 0.9), row(2, 0.112), row(3, 0.1)])[0] == 2  # a twentieth of a usual part: 0.015
    assert recommend([row(1, 0.9), row(2, 0.12, se=0.001), row(3, 0.1)])[0] == 3
    assert recommend([row(1, 0.9), row(2, 0.1), row(3, 0.11)])[0] == 2


def test_held_out_entries_are_known_ones_and_differ():
    rng = np.random.default_rng(0)
    unknown = np.arange(0, 400, 3)
    entries = draw_entries((20, 20), unknown, 5, rng)
    assert entries.shape == (5, 13)
    assert len(np.unique(entries)) == entries.size
    assert not np.isin(entries, unknown).any()


def test_progress(capsys):
    began = time.perf_counter()
    with moves("choosing the number of parts") as seen:
        choice = choose_components(planted(2), (1, 2, 3), verbose=1)
    assert 0 < choice.seconds < time.perf_counter() - began
    assert seen.counts == [(1, 3), (2, 3), (3, 3)]
    told = capsys.readouterr().err
    assert "choosing the number of parts: 3 of 3 numbers tried" in told
    assert "s left" in told


@pytest.mark.parametrize(
    ("ks", "options", "error", "words"),
    [
        (5, {}, TypeError, "several integers from 1 to 6"),
        ("2:5", {}, TypeError, "several integers"),
        ([], {}, ValueError, "at least two"),
        ([3, 3], {}, ValueError, "at least two"),
        ([0, 2], {}, ValueError, "each of ks"),
        ([1.5, 2], {}, TypeError, "each of ks"),
        (range(2, 9), {}, ValueError, "must not exceed 6"),
        ((1, 2), {"by": "luck"}, ValueError, "by must be"),
        ((1, 2), {"n_folds": 1}, ValueError, "n_folds"),
        ((1, 2), {"n_folds": 21}, ValueError, "from 2 to 20"),
        ((1, 2), {"robust": "yes"}, TypeError, "robust"),
        ((1, 2), {"random_state": -1}, ValueError, "random_state"),
    ],
)
def test_refusals(ks, options, error, words):
    with pytest.raises(error, match=words):
        choose_components(np.ones((10, 6)), ks, **options)


@pytest.mark.parametrize(
    ("X", "words"),
    [
        (np.full((9, 8), -1.0), "needs nonnegative data"),
        (np.zeros((9, 8)), "zero everywhere"),
        (np.full((9, 8), np.inf), "infinity"),
        (np.ones((3, 3)), "known entries"),
    ],
)
def test_data_that_are_refused(X, words):
    with pytest.raises(ValueError, match=words):
        choose_components(X, (1, 2))


def test_constant_data_need_one_component():
    assert choose_components(np.ones((12, 8)), range(1, 4), random_state=0).best == 1


@pytest.mark.parametrize("rank", [1, 2, 3])
def test_exact_rank(rank):
    """How far fits of further parts are from convergence tells nothing."""
    rng = np.random.default_rng(rank)
    X = rng.random((60, rank)) @ rng.random((rank, 30))
    assert choose_components(X, range(1, 7), random_state=0).best == rank


def test_the_fit_of_a_number_does_not_depend_on_the_others():
    X = planted(4)
    rows = [choose_components(X, ks, random_state=0).rows for ks in (range(2, 7), range(1, 14), [4, 5])]
    for k in (4, 5):
        found = [next(row for row in one if row["k"] == k) for one in rows]
        for name in ("held_out_error", "training_error", "stability"):
            assert found[0][name] == found[1][name] == found[2][name]


def test_the_model_that_will_be_fitted_is_judged():
    X = planted(3, n=40, p=20)
    choice = choose_components(X, [1, 3, 5], model=WeightedNMF(max_iter=200), n_folds=2, random_state=0)
    assert choice.best == 3
    X[np.random.default_rng(0).random(X.shape) < 0.1] = np.nan
    assert choose_components(X, [1, 3], model="WNMF", n_folds=2, random_state=0).best == 3
    with pytest.raises(ValueError, match=r"model must take missing entries, .*; got PlainNMF"):
        choose_components(X, [1, 3], model="NMF")


def test_of_many_samples_and_features_some_are_used(monkeypatch):
    monkeypatch.setattr("lognmf.choose.components.MOST_SAMPLES", 60)
    monkeypatch.setattr("lognmf.choose.components.MOST_FEATURES", 30)
    for form in (np.asarray, sp.csr_array):
        assert choose_components(form(planted(4)), range(2, 7), random_state=0).best == 4
