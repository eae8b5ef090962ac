"""The two protocols: what is tried, what the labels choose, and what is chosen without them."""

from dataclasses import replace

import pytest

from lognmf.models import MODELS
from lognmf.paper.methods import CONTESTANTS, METHODS
from lognmf.paper.spec import (
    CLEAN,
    PRESETS,
    Data,
    Noise,
    best,
    best_of_each,
    choice_cell,
    final_cell,
    paper_cell,
)

DATA, PAPER = Data("digits", 40), PRESETS["paper"]


@pytest.mark.parametrize(
    ("model", "settings"), [("NMF", 1), ("GNMF", 7), ("RMNMF", 7), ("LS-NMF", 343), ("RLS-NMF", 2401)]
)
def test_the_papers_grids(model, settings):
    found = paper_cell(DATA, CLEAN, model, PAPER)
    assert len(found.settings()) == settings
    assert (found.option("max_iter"), found.option("tol"), found.seeds) == (500, 0.0, (0,))
    assert all(values == (0.001, 0.01, 0.1, 1.0, 10.0, 100.0, 1000.0) for _, values in found.grid)


def test_the_papers_starts():
    starts = {name: paper_cell(DATA, CLEAN, name, PAPER).option("init") for name in METHODS}
    assert {name for name, start in starts.items() if start == "random"} == {
        "NMF",
        "GNMF",
        "WNMF",
        "LS-NMF",
        "RLS-NMF",
    }
    assert {MODELS[name]().init for name, start in starts.items() if start is None} == {"kmeans"}


def test_labels_choose_by_accuracy_then_nmi():
    rows = [
        {"accuracy": 0.5, "nmi": 0.9, "lam": 1},
        {"accuracy": 0.6, "nmi": 0.2, "lam": 2},
        {"accuracy": 0.6, "nmi": 0.3, "lam": 3},
        {"accuracy": 0.6, "nmi": 0.3, "lam": 4},
    ]
    assert best(rows)["lam"] == 3
    assert best_of_each(rows, "nmi") == 0.9
    assert best([]) is None
    assert best_of_each([], "nmi") is None


def test_every_method_has_as_many_tickets():
    for name, contestant in CONTESTANTS.items():
        if contestant.chosen == "lam":
            assert len(choice_cell(DATA, CLEAN, contestant, PAPER).settings()) == 7, name
    assert {"k-means", "spectral clustering", *METHODS} <= CONTESTANTS.keys()


def test_the_choice_is_shared_with_the_grid_where_it_is_the_same():
    assert choice_cell(DATA, CLEAN, CONTESTANTS["GNMF"], PAPER) == paper_cell(DATA, CLEAN, "GNMF", PAPER)
    assert choice_cell(DATA, CLEAN, CONTESTANTS["LS-NMF, all"], PAPER) == paper_cell(
        DATA, CLEAN, "LS-NMF", PAPER
    )
    assert choice_cell(DATA, CLEAN, CONTESTANTS["NMF"], PAPER) is None


def test_the_least_cut_is_run_from_other_seeds():
    preset = replace(PAPER, values={"lam": (0.1, 1.0)})
    rows = [
        {"lam": lam, "seed": 0, "normalized_cut": cut, "clusters": 3, "balance": 1.0, "accuracy": right}
        for lam, cut, right in ((0.1, 0.5, 0.9), (1.0, 0.2, 0.1))
    ]
    found = final_cell(DATA, CLEAN, CONTESTANTS["GNMF"], preset, rows)
    assert dict(found.grid) == {"lam": (1.0,)}  # although the labels like the other one
    assert found.seeds == (1, 2, 3, 4, 5)
    assert not set(found.seeds) & {preset.seed}
    assert final_cell(DATA, CLEAN, CONTESTANTS["GNMF"], preset, rows[:1]) is None
    assert final_cell(DATA, CLEAN, CONTESTANTS["NMF"], preset, []).grid == ()
    assert final_cell(DATA, CLEAN, CONTESTANTS["k-means"], preset, []).seeds == (1, 2, 3, 4, 5)


def test_a_mask_needs_removed_entries():
    assert not CONTESTANTS["WNMF, mask"].suits(CLEAN)
    assert CONTESTANTS["WNMF, mask"].suits(Noise("removal", 0.2))
