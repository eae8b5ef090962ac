"""The page of a reproduction: it says what was run, and tests nothing on too few data."""

import pytest

from lognmf.paper.analyse import FEWEST_SETS, LabelFree
from lognmf.paper.methods import CONTESTANTS, METHODS
from lognmf.paper.pages import _test_section, page
from lognmf.paper.spec import PRESETS
from lognmf.paper.tables import DATASETS, TABLES, Study


def words(preset):
    built = page(Study(PRESETS[preset], DATASETS, None), {}, [], {})
    return built, " ".join([built.title, built.subtitle, *(t for s in built.sections for t in s.text)])


def test_only_the_papers_preset_is_called_the_papers_protocol():
    whole, text = words("paper")
    assert whole.title == "The paper, rebuilt"
    assert "The paper's protocol: all combinations" in text
    short, text = words("quick")
    assert short.title == "The paper's experiments in short"
    assert "fewer settings and iterations" in text
    assert "The paper's protocol" not in text


@pytest.mark.parametrize("preset", PRESETS)
def test_the_paper_is_cited_and_its_methods_are_spelled_out(preset):
    built, text = words(preset)
    assert "Log-based sparse nonnegative matrix factorization for data representation" in text
    assert [method.name for method in built.methods] == list(METHODS)


def label_free(count):
    """Results of all methods on so many data sets, with LS-NMF ahead everywhere."""
    entries = [entry for entry in TABLES["table1"].entries if entry.level == "clean"][:count]
    return [
        LabelFree("table1", entry, name, {"accuracy": (60.0 + (name == "LS-NMF"), 1.0)}, 5, {})
        for entry in entries
        for name in CONTESTANTS
    ]


@pytest.mark.parametrize("sets", [1, FEWEST_SETS - 1])
def test_nothing_is_tested_on_few_data_sets(sets):
    section = _test_section(label_free(sets))
    assert section.items == ()
    assert section.text[0].startswith(f"With {sets} data set")


def test_enough_data_sets_are_tested():
    (table,) = _test_section(label_free(FEWEST_SETS)).items
    against = dict(table.rows)
    pairs, wins, *_, p, _ = (cell.value for cell in against["LS-NMF against NMF"])
    assert (pairs, wins) == (FEWEST_SETS, FEWEST_SETS)
    assert p == pytest.approx(2 / 2**FEWEST_SETS)
    assert p < 0.05 < 2 / 2 ** (FEWEST_SETS - 1)
