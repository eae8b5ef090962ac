"""Choosing without labels, on rows made by hand."""

import pytest

from lognmf import fit_grid, select
from lognmf.grid.select import CRITERIA, best_row, standings


def row(lam, cut, *, seed=0, clusters=4, balance=0.9, modularity=None, **more):
    """A row whose modularity falls as its cut rises, unless it is given."""
    modularity = (clusters - 1 - cut) / 4 if modularity is None else modularity
    scores = {"normalized_cut": cut, "modularity": modularity, "clusters": clusters, "balance": balance}
    return {"lam": lam, "seed": seed, **scores, **more}


@pytest.mark.parametrize("by", CRITERIA)
def test_a_collapsed_clustering_loses(by):
    rows = [row(1.0, 0.0, clusters=1, balance=0.0), row(2.0, 0.8), row(3.0, 0.1, clusters=3, balance=0.8)]
    choice = select(rows, by)
    assert choice.setting == {"lam": 2.0}
    assert [setting["lam"] for setting, _ in choice.scores] == [2.0, 3.0, 1.0]


def test_the_least_cut_wins_whatever_its_balance():
    rows = [row(1.0, 0.20, balance=0.5), row(2.0, 0.21, balance=1.0)]
    assert select(rows).setting == {"lam": 1.0}
    assert select(rows).score == pytest.approx(0.20)


def test_the_most_balanced_of_near_equal_cuts_wins():
    rows = [
        row(1.0, 0.20, balance=0.80),
        row(2.0, 0.25, balance=0.95),
        row(3.0, 0.27, balance=1.00),  # beyond 5 % + 0.05
    ]
    choice = select(rows, "balanced_cut")
    assert choice.setting == {"lam": 2.0}
    assert [score for _, score in choice.scores] == pytest.approx([0.05, 0.20, 1.27])


def started(lam, modularity, balance, cut=0.5):
    return row(lam, cut, modularity=modularity, balance=balance, n_iter=20)


START = started(0.0, 0.70, 0.90) | {"n_iter": 0}


def test_the_most_modular_of_those_no_worse_than_the_start_wins():
    rows = [
        START,
        started(1.0, 0.75, 0.90),
        started(2.0, 0.80, 0.89),  # less even than the start
        started(3.0, 0.60, 0.99),
        started(4.0, 0.85, 0.95, cut=0.51),  # cuts more
    ]
    choice = select(rows, "balanced_modularity")
    assert [setting["lam"] for setting, _ in choice.scores] == [1.0, 0.0, 3.0, 4.0, 2.0]
    assert [score for _, score in choice.scores] == pytest.approx([0.25, 0.30, 0.40, 1.15, 1.20])


def test_the_start_stays_where_no_fit_is_better():
    worse = [started(1.0, 0.69, 0.95), started(2.0, 0.75, 0.85)]
    assert select([*worse, START], "balanced_modularity").setting == {"lam": 0.0}


def test_of_equal_clusterings_the_fitted_one_wins():
    assert select([START, started(1.0, 0.70, 0.90)], "balanced_modularity").setting == {"lam": 1.0}


def test_without_a_start_modularity_and_balance_count_alike():
    rows = [started(1.0, 0.70, 0.90), started(2.0, 0.60, 0.99), started(3.0, 0.75, 0.88)]
    choice = select(rows, "balanced_modularity")
    assert [setting["lam"] for setting, _ in choice.scores] == [3.0, 1.0, 2.0]
    assert choice.score == pytest.approx(0.37)


def test_rows_without_a_modularity_are_refused_where_it_is_asked_for():
    old = [{name: value for name, value in row(1.0, 0.2).items() if name != "modularity"}]
    assert select(old).setting == {"lam": 1.0}
    with pytest.raises(ValueError, match="needs rows with a modularity: fit the grid again"):
        select(old, "balanced_modularity")


def test_the_best_row_of_a_setting():
    rows = [
        row(1.0, 0.1, modularity=0.9),
        row(2.0, 0.3, modularity=0.5, seed=0),
        row(2.0, 0.4, modularity=0.8, seed=1),
        row(2.0, 0.2, modularity=0.7, seed=2, clusters=3),  # one is cut in full
    ]
    assert best_row(rows, {"lam": 2.0}, "balanced_modularity") == 2
    assert best_row(rows, {"lam": 2.0}, "balanced_cut") == 1


@pytest.mark.parametrize("by", CRITERIA)
def test_seeds_are_averaged(by):
    lucky = [row(1.0, 0.0, seed=0, balance=1.0), row(1.0, 2.0, seed=1, balance=0.1)]
    steady = [row(2.0, 0.5, seed=seed, balance=0.9) for seed in (0, 1)]
    choice = select([lucky[0], *steady, lucky[1]], by)
    assert choice.setting == {"lam": 2.0}
    assert len(choice.scores) == 2


def test_the_order_of_names_does_not_matter():
    one = row(1.0, 0.3, penalty="log")
    rows = [one, dict(reversed((one | {"seed": 1, "normalized_cut": 0.1}).items()))]
    assert [score for _, score in select(rows).scores] == pytest.approx([0.2])
    assert best_row(rows, {"penalty": "log", "lam": 1.0}, "normalized_cut") == 1
    assert len(standings(rows)) == 1


def test_a_setting_is_all_that_is_no_result():
    rows = [row(1.0, 0.3, penalty="log", accuracy=1.0), row(1.0, 0.2, penalty="l1", accuracy=0.0)]
    assert select(rows).setting == {"lam": 1.0, "penalty": "l1"}


def test_labels_are_not_looked_at():
    rows = [row(lam, cut) for lam, cut in ((1.0, 0.5), (2.0, 0.1), (3.0, 0.3))]
    judged = [r | {"accuracy": a, "nmi": a, "purity": a} for r, a in zip(rows, (1.0, 0.0, 0.5), strict=True)]
    assert select(rows) == select(judged)


def test_of_equals_the_first_is_chosen():
    assert select([row(5.0, 0.2), row(1.0, 0.2)]).setting == {"lam": 5.0}


@pytest.mark.parametrize("rows", [[], [{"lam": 1.0, "seed": 0, "objective": 3.0}]])
def test_rows_without_a_cut_are_refused(rows):
    with pytest.raises(ValueError, match=r"normalised cut: give fit_grid n_clusters \(or y\)"):
        select(rows)


def test_an_unknown_criterion_is_refused():
    with pytest.raises(
        ValueError, match=r"by must be one of \['normalized_cut', 'balanced_cut', .*\]; got 'accu"
    ):
        select([row(1.0, 0.2)], "accuracy")


def test_standings_are_what_was_judged():
    rows = [
        row(1.0, 0.1, seed=0, clusters=3, balance=0.4),
        row(1.0, 0.3, seed=1, clusters=4, balance=0.8),
        row(2.0, 0.6, seed=0, balance=1.0),
        row(2.0, 0.4, seed=1, balance=0.9),
    ]
    best, other = standings(rows)
    expected = {"lam": 2.0, "score": 0.5, "normalized_cut": 0.5, "balance": 0.95, "modularity": 0.625}
    assert best == pytest.approx(expected)
    expected = {"lam": 1.0, "score": 0.7, "normalized_cut": 0.7, "balance": 0.6, "modularity": 0.575}
    assert other == pytest.approx(expected)
    assert [place["lam"] for place in standings(rows, "balanced_cut")] == [2.0, 1.0]


def test_a_result_may_be_given_instead_of_its_rows(rng):
    result = fit_grid("GNMF", rng.random((30, 6)), {"lam": [0.1, 10.0]}, n_clusters=3, max_iter=5)
    assert select(result) == select(result.rows)
    assert standings(result) == standings(result.rows)
