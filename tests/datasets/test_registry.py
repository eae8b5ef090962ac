"""What the registry says is whole, and true where the files are at hand."""

import re
from pathlib import Path

import pytest

from lognmf import datasets
from lognmf.datasets.loading import LAYOUTS
from lognmf.datasets.registry import REGISTRY, find

CLOSED = {"ar", "ar-100", "jaffe", "jaffe-crop"}


def test_names():
    assert list(datasets.PAPER.values()) == [
        "Semeion", "EYaleB", "ORL", "AR", "Jaffe", "Yale", "COIL20", "Pendigits"
    ]  # fmt: skip
    assert datasets.NAMES[:8] == tuple(datasets.PAPER)
    assert set(datasets.NAMES[8:]) == {"ar-100", "jaffe-crop", "digits"}
    for name, paper in datasets.PAPER.items():
        assert find(paper).name == name


@pytest.mark.parametrize("name", ["mnist", "", None, 3])
def test_unknown_names(name):
    with pytest.raises(ValueError, match=r"There is no data set .*: the names are semeion, eyaleb"):
        find(name)


@pytest.mark.parametrize("entry", REGISTRY.values(), ids=REGISTRY)
def test_entries_are_whole(entry):
    assert entry.layout in LAYOUTS
    assert entry.order in ("rows", "columns")
    assert all((entry.title, entry.source, entry.licence, entry.citation))
    assert len(set(entry.class_names)) == entry.classes
    assert entry.feature_names is None or len(entry.feature_names) == entry.features
    if entry.image_shape is not None:
        assert entry.image_shape[0] * entry.image_shape[1] == entry.features
    assert bool(entry.ask) == (entry.name in CLOSED)
    for file in entry.files:
        assert re.fullmatch(r"[0-9a-f]{64}", file.sha256)
        assert (file.url is None) == (entry.name in CLOSED)
        # A commit, not a branch: its bytes stay as they are.
        assert file.url is None or re.search(r"githubusercontent\.com/[^/]+/[^/]+/[0-9a-f]{40}/", file.url)


def test_hashes_are_those_of_the_files(data_home):
    sums = data_home / "SHA256SUMS"
    if not sums.is_file():
        pytest.skip("the data folder has no SHA256SUMS")
    known = dict(reversed(line.split(maxsplit=1)) for line in sums.read_text().splitlines())
    told = {file.path: file.sha256 for entry in REGISTRY.values() for file in entry.files}
    assert {path: known[path] for path in told} == told


def test_the_page_says_the_same():
    page = Path(__file__).parents[2] / "docs" / "datasets.md"
    rows = [
        line.strip("| ").split(" | ")
        for line in page.read_text(encoding="utf-8").splitlines()
        if line.startswith("| `")
    ]
    assert [row[0].strip("`") for row in rows] == list(REGISTRY)
    for row, entry in zip(rows, REGISTRY.values(), strict=True):
        way = "built in" if not entry.files else "ask the owners" if entry.ask else "downloaded"
        picture = "×".join(map(str, entry.image_shape)) if entry.image_shape else "-"
        sizes = [str(entry.samples), str(entry.features), str(entry.classes), picture]
        assert row[1:] == [entry.title, entry.paper or "-", *sizes, entry.licence, way]
