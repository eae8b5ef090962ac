"""Results of a study survive kills, belong to their version, and merge."""

import sqlite3
from contextlib import closing

import numpy as np
import pytest

from lognmf import GraphNMF
from lognmf.grid.store import Store
from lognmf.paper.spec import Data, Noise, cell, pieces
from lognmf.paper.store import Outcome, StudyStore

CELL = cell(Data("digits", 40), Noise(), "GNMF", grid={"lam": (0.1, 1.0)})
ONE, TWO = pieces(CELL, 1)
DONE = Outcome([{"lam": 0.1, "seed": 0, "accuracy": 0.5}], 1.5, {"device": "abacus"})
THERE = Outcome([{"lam": 1.0, "accuracy": 0.75}], 1.0, {}, arrays={"U": np.eye(2)})
FAILED = Outcome((), 0.5, {"device": "abacus"}, "ValueError: no")


def test_pieces_come_back(tmp_path):
    store = StudyStore(tmp_path / "study.db")
    assert (store.done(), store.rows(CELL), store.failures()) == ({}, [], [])
    store.put(TWO, THERE)
    store.put(ONE, DONE)
    again = StudyStore(tmp_path / "study.db")
    assert again.rows(CELL) == [*DONE.rows, *THERE.rows]
    ((name, array),) = again.arrays(CELL)[0].items()
    assert name == "U"
    np.testing.assert_array_equal(array, np.eye(2))
    assert again.done() == {CELL.key: {0, 1}}
    assert again.is_done(ONE)
    assert again.seconds() == 2.5
    assert {"device": "abacus"} in again.environments()


def test_a_failure_counts_until_it_succeeds(tmp_path):
    store = StudyStore(tmp_path / "study.db")
    store.put(ONE, FAILED)
    assert not store.is_done(ONE)
    assert store.failures() == [(CELL.to_dict(), "ValueError: no")]
    store.put(ONE, DONE)
    assert store.failures() == []
    store.put(ONE, FAILED)  # of a slower run: the rows stay
    assert store.rows(CELL) == list(DONE.rows)
    assert store.failures() == []


def test_rows_can_be_queried_with_any_tool(tmp_path):
    StudyStore(tmp_path / "study.db").put(ONE, DONE)
    with closing(sqlite3.connect(tmp_path / "study.db")) as file:
        found = file.execute("SELECT data, noise, model, accuracy FROM rows").fetchall()
    assert found == [("digits", "none", "GNMF", 0.5)]


def test_merging(tmp_path):
    here, there = StudyStore(tmp_path / "here.db"), StudyStore(tmp_path / "there.db")
    here.put(ONE, DONE)
    there.put(ONE, Outcome([{"lam": 0.1, "accuracy": 0.9}], 1.0, {}))
    there.put(TWO, THERE)
    assert here.merge(tmp_path / "there.db") == 1
    assert here.merge(tmp_path / "there.db") == 0
    assert here.rows(CELL) == [*DONE.rows, *THERE.rows]
    assert len(here.arrays(CELL)) == 1


def test_merging_failures(tmp_path):
    here, there = StudyStore(tmp_path / "here.db"), StudyStore(tmp_path / "there.db")
    here.put(ONE, FAILED)
    here.put(TWO, DONE)
    there.put(ONE, DONE)
    there.put(TWO, FAILED)
    here.merge(tmp_path / "there.db")
    assert here.failures() == []
    assert len(here.rows(CELL)) == 2


def test_cells_of_one_key_belong_together(tmp_path):
    """A default that is written out makes the same fits."""
    default = GraphNMF().get_params()["tol"]
    same = cell(Data("digits", 40), Noise(), "GNMF", options={"tol": default}, grid={"lam": (0.1, 1.0)})
    store = StudyStore(tmp_path / "study.db")
    store.put(ONE, DONE)
    store.put(list(pieces(same, 1))[1], THERE)
    assert store.rows(CELL) == store.rows(same) == [*DONE.rows, *THERE.rows]


def test_a_file_of_something_else_is_refused(tmp_path):
    Store(tmp_path / "rows.sqlite", {"model": "LS-NMF"})
    with pytest.raises(ValueError, match="holds rows of another run"):
        StudyStore(tmp_path / "rows.sqlite")
    with pytest.raises(ValueError, match="is not there"):
        StudyStore(tmp_path / "study.db").merge(tmp_path / "nowhere.db")
    with closing(sqlite3.connect(tmp_path / "other.db")) as file, file:
        file.execute("CREATE TABLE shopping (item TEXT)")
    with pytest.raises(ValueError, match="database of something else"):
        StudyStore(tmp_path / "study.db").merge(tmp_path / "other.db")


def test_damaged_pieces_are_neither_used_nor_merged(tmp_path):
    here, there = StudyStore(tmp_path / "here.db"), StudyStore(tmp_path / "there.db")
    there.put(ONE, DONE)
    there.put(TWO, THERE)
    with closing(sqlite3.connect(there.path)) as file, file:
        file.execute("UPDATE entries SET value = replace(value, '0.5', '0.9')")
    with pytest.warns(UserWarning, match=r"was edited or damaged: 1 result is not as written"):
        there.check()
    with pytest.warns(UserWarning, match="was edited or damaged"):
        assert not there.is_done(ONE)
    with pytest.warns(UserWarning, match="was edited or damaged"):
        assert here.merge(there.path) == 1
    assert here.rows(CELL) == list(THERE.rows)
    there.put(ONE, DONE)
    assert there.rows(CELL) == [*DONE.rows, *THERE.rows]
