"""The paper's tables and figures as values, and its numbers."""

import pytest

from lognmf.models import MODELS
from lognmf.paper.analyse import METRICS, numbers, published
from lognmf.paper.figures import DRAW
from lognmf.paper.spec import PRESETS
from lognmf.paper.tables import DATASETS, FIGURES, TABLES, Study, targets


def test_all_numbers_of_the_paper_have_their_place():
    placed = {
        (table.label, entry.dataset, entry.level, metric, method)
        for table in TABLES.values()
        for entry in table.entries
        for metric in METRICS
        for method in MODELS
    }
    assert placed == numbers().keys()
    assert len(placed) == 702


def test_numbers():
    assert published("tab_all", "Jaffe", "clean", "nmi", "RLS-NMF") == 98.13
    assert published("tab_per_noisy_COIL20", "COIL20", "removed 40%", "accuracy", "WNMF") == 56.53
    assert published("tab_all", "Jaffe", "clean", "nmi", "k-means") is None


def test_wnmf_of_the_paper_knew_no_mask():
    """It equals NMF in all metrics where 40 % of COIL20 were removed, which a mask would not allow."""
    for metric in METRICS:
        where = ("tab_per_noisy_COIL20", "COIL20", "removed 40%", metric)
        assert published(*where, "WNMF") == published(*where, "NMF")


def test_the_papers_order():
    assert list(TABLES) == [f"table{i}" for i in range(1, 8)]
    assert [e.dataset for e in TABLES["table1"].entries] == list(DATASETS)
    assert all(e.noise.replacement for name in ("table2", "table3", "table4") for e in TABLES[name].entries)
    assert [e.noise.level for e in TABLES["table5"].entries] == [0.005, 0.01, 0.015]


def test_every_figure_is_drawn():
    assert FIGURES.keys() == DRAW.keys()
    assert len(FIGURES) == 11


def test_targets():
    assert [t.name for t in targets(["all"])] == [*TABLES, *FIGURES]
    assert [t.name for t in targets(["table2", "tables"])] == ["table2", "table1", *list(TABLES)[2:]]
    with pytest.raises(
        ValueError, match="There is no 'table9' to reproduce: choose among all, tables, figures, table1"
    ):
        targets(["table9"])


def test_only_the_wanted_data_sets():
    study = Study(PRESETS["paper"], {"Yale": DATASETS["Yale"]}, None)
    for target in targets(["all"]):
        assert {cell.data.name for cell in target.first(study)} <= {"yale"}
    assert list(TABLES["table2"].first(study)) == []


def test_removals_are_run_with_and_without_replacement():
    study = Study(PRESETS["paper"], {"Yale": DATASETS["Yale"]}, None)
    noises = {cell.noise for cell in TABLES["table3"].first(study)}
    assert {(noise.level, noise.replacement) for noise in noises} == {
        (level, replacement) for level in (0.2, 0.4, 0.6) for replacement in (True, False)
    }
