"""Time estimates."""

import pytest

from lognmf import datasets
from lognmf.paper import samples, seconds
from lognmf.paper.spec import CLEAN, PRESETS, Data, paper_cell
from lognmf.paper.tables import DATASETS


@pytest.mark.parametrize("data", DATASETS.values(), ids=DATASETS)
def test_an_estimate_reads_no_file(data, monkeypatch):
    monkeypatch.setattr(datasets, "load", lambda *_, **__: pytest.fail("loaded"))
    assert seconds.cpu_seconds(paper_cell(data, CLEAN, "LS-NMF", PRESETS["paper"])) > 0


@pytest.mark.parametrize("data", DATASETS.values(), ids=DATASETS)
def test_the_registry_has_the_sizes_of_the_files(data, data_home):
    assert seconds._size(data) == samples.size(data)


def test_the_size_of_the_first_samples():
    assert seconds._size(Data("digits", 25)) == samples.size(Data("digits", 25)) == (25, 64, 10)
