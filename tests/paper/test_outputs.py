"""Rows of a study as one Parquet file."""

import json

import numpy as np
import pyarrow.parquet
import pytest

from lognmf.paper.outputs import COLUMNS, write_rows
from lognmf.paper.run import compute
from lognmf.paper.spec import Data, Noise, cell
from lognmf.paper.store import StudyStore

OPTIONS = {"max_iter": 3, "tol": 0.0, "eval_every": 3}
REMOVED = Noise("removal", 0.2, replacement=True)
CELLS = [
    cell(Data("digits", 30), Noise(), "LS-NMF", options=OPTIONS, grid={"lam": (0.1, 1.0)}, seeds=(0, 1)),
    cell(Data("digits", 30), REMOVED, "NMF", options=OPTIONS),
    cell(Data("digits", 30), Noise(), "k-means", seeds=(1,)),
    cell(Data("digits", 30), Noise(), "NMF", options=OPTIONS, work="curve"),
]


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    store = StudyStore(tmp_path_factory.mktemp("rows") / "study.db")
    assert compute(CELLS, store, executor="inline").failed == 0
    return store


def read(path):
    return pyarrow.parquet.read_table(path).to_pylist()


def test_every_score_is_there(store, tmp_path):
    write_rows(tmp_path / "rows.parquet", store, {CELLS[0].key: "paper", CELLS[2].key: "honest"})
    found = read(tmp_path / "rows.parquet")
    assert len(found) == 4 + 1 + 1  # the course of a fit is no score
    assert all(list(row) == list(COLUMNS) for row in found)
    of_model = {row["model"]: row for row in found}
    assert [of_model[name]["protocol"] for name in ("LS-NMF", "NMF", "k-means")] == ["paper", None, "honest"]
    assert of_model["NMF"]["noise"] == "removal"
    assert of_model["NMF"]["replacement"]
    assert of_model["NMF"]["level"] == np.float32(0.2)
    assert json.loads(of_model["NMF"]["options"]) == OPTIONS
    assert of_model["k-means"]["n_iter"] is None


def test_numbers_are_those_of_the_store(store, tmp_path):
    write_rows(tmp_path / "rows.parquet", store)
    found = [row for row in read(tmp_path / "rows.parquet") if row["model"] == "LS-NMF"]
    kept = sorted(store.rows(CELLS[0]), key=lambda row: (row["lam"], row["seed"]))
    for row, own in zip(found, kept, strict=True):
        assert row["seed"] == own["seed"]
        for name in ("lam", "accuracy", "nmi", "objective", "normalized_cut"):
            assert row[name] == np.float32(own[name])


def test_equal_stores_give_equal_files(store, tmp_path):
    other = StudyStore(tmp_path / "study.db")
    compute(CELLS[::-1], other, executor="inline")
    for name, one in (("a", store), ("b", other)):
        write_rows(tmp_path / name, one)
    assert pyarrow.parquet.read_table(tmp_path / "a").equals(pyarrow.parquet.read_table(tmp_path / "b"))


def test_an_empty_store_gives_an_empty_table(tmp_path):
    write_rows(tmp_path / "rows.parquet", StudyStore(tmp_path / "study.db"))
    table = pyarrow.parquet.read_table(tmp_path / "rows.parquet")
    assert (table.num_rows, table.column_names) == (0, list(COLUMNS))
