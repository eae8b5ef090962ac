"""The kept reproduction: its rows give the numbers of its tables, and the page shows them."""

import csv
from collections import defaultdict
from pathlib import Path

import pyarrow.parquet
import pytest

from lognmf.paper.tables import DATASETS, TABLES

DOCS = Path(__file__).parents[2] / "docs"
KEPT = DOCS / "reproduction"


def read(name):
    with (KEPT / "tables" / name).open(encoding="utf-8") as file:
        return list(csv.DictReader(file))


def place(data, noise, level, replacement, model):
    return data, noise, round(level, 4), replacement, model


@pytest.fixture(scope="module")
def paper_rows():
    """Rows of the paper's protocol by data, noise and model."""
    if not (KEPT / "rows.parquet").exists():
        pytest.skip("the sdist has no docs/reproduction/rows.parquet")
    columns = ["data", "noise", "level", "replacement", "model", "accuracy", "nmi", "purity"]
    table = pyarrow.parquet.read_table(
        KEPT / "rows.parquet", columns=columns, filters=[("protocol", "=", "paper")]
    )
    found = defaultdict(list)
    for *where, accuracy, nmi, purity in zip(*table.to_pydict().values(), strict=True):
        found[place(*where)].append((accuracy, nmi, purity))
    return found


@pytest.mark.parametrize("table", TABLES.values(), ids=TABLES)
def test_rows_give_the_numbers_of_the_tables(table, paper_rows):
    entries = {(entry.dataset, entry.level): entry for entry in table.entries}
    metrics = ("accuracy", "nmi", "purity")
    rows = read(f"{table.name}.csv")
    assert rows
    for row in rows:
        noise = entries[row["dataset"], row["level"]].noise
        replacement = row["replacement"] == "True"
        found = paper_rows[
            place(DATASETS[row["dataset"]].name, noise.kind, noise.level, replacement, row["method"])
        ]
        assert len(found) == int(row["settings"])
        best = max(found)  # the highest accuracy, then the highest NMI
        assert 100 * best[metrics.index(row["metric"])] == pytest.approx(float(row["ours"]), abs=2e-4)


@pytest.mark.parametrize("name", TABLES)
def test_the_page_shows_the_numbers_of_the_tables(name):
    page = (DOCS / "reproduction" / "tables.md").read_text(encoding="utf-8").replace("\u00a0", " ")
    section = page.split(f"## Table {name.removeprefix('table')}: ")[1].split("\n## ")[0]
    for row in read(f"{name}.csv"):
        if row["paper"]:
            assert f"{float(row['ours']):.1f} / {float(row['paper']):.1f}" in section
    for row in read(f"{name}-honest.csv"):
        if row["metric"] == "accuracy":
            assert f"{float(row['mean']):.1f} ± {float(row['std']):.1f}" in section
