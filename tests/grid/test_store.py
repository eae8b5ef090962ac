"""Rows survive kills, belong to one run, and may come from two."""

import sqlite3
import subprocess
import sys
import textwrap
from contextlib import closing

import pytest

from lognmf.grid.store import RowStore
from lognmf.paper.spec import Data, Noise, cell, pieces
from lognmf.paper.store import Outcome, StudyStore

ABOUT = {"model": "LS-NMF", "data": "abc", "parameters": {"tol": 1e-5, "graph": None}}


def test_round_trip(tmp_path):
    store = RowStore(tmp_path / "rows.sqlite", ABOUT)
    store.put([("a", {"x": 1.5, "why": None}), ("b", {"x": 0.1 + 0.2})])
    again = RowStore(tmp_path / "rows.sqlite", ABOUT)
    assert again.rows() == {"a": {"x": 1.5, "why": None}, "b": {"x": 0.1 + 0.2}}
    again.put([("a", {"x": 2})])
    assert store.rows()["a"] == {"x": 2}


def test_rows_of_another_run_are_refused(tmp_path):
    RowStore(tmp_path / "rows.sqlite", ABOUT).put([("a", {})])
    with pytest.raises(ValueError, match=r"rows of another run, with data 'abc' \(now 'abd'\)"):
        RowStore(tmp_path / "rows.sqlite", ABOUT | {"data": "abd"})
    assert RowStore(tmp_path / "rows.sqlite", ABOUT).rows() == {"a": {}}


def test_what_is_no_store(tmp_path):
    (tmp_path / "text").write_text("no database at all, but long enough to look like one " * 20)
    with pytest.raises(ValueError, match="cannot be used as a store"):
        RowStore(tmp_path / "text", ABOUT)
    with pytest.raises(ValueError, match="cannot be used as a store"):
        RowStore(tmp_path / "nowhere" / "rows.sqlite", ABOUT)


def test_all_rows_of_a_batch_or_none(tmp_path):
    store = RowStore(tmp_path / "rows.sqlite", ABOUT)
    with pytest.raises(ValueError, match="JSON"):
        store.put([("a", {"x": 1.0}), ("b", {"x": float("nan")})])
    with pytest.raises(sqlite3.IntegrityError):
        store.put([("a", {"x": 1.0}), (None, {"x": 1.0})])
    assert store.rows() == {}


def test_two_writers(tmp_path):
    program = f"""
        import sys
        from lognmf.grid.store import RowStore
        store = RowStore({str(tmp_path / "rows.sqlite")!r}, {ABOUT!r})
        for i in range(50):
            store.put([(f"{{sys.argv[1]}}{{i}}", {{"i": i}})])
    """
    command = [sys.executable, "-c", textwrap.dedent(program)]
    writers = [subprocess.Popen([*command, name]) for name in "ab"]
    assert [writer.wait() for writer in writers] == [0, 0]
    assert len(RowStore(tmp_path / "rows.sqlite", ABOUT).rows()) == 100


# The store of a study ------------------------------------------------------------------------

CELL = cell(Data("digits", 40), Noise(), "GNMF", grid={"lam": (0.1, 1.0)})
ONE, TWO = pieces(CELL, 1)
DONE = Outcome([{"lam": 0.1, "seed": 0, "accuracy": 0.5}], 1.5, {"device": "abacus"})
FAILED = Outcome((), 0.5, {"device": "abacus"}, "ValueError: no")


def test_pieces_are_kept(tmp_path):
    store = StudyStore(tmp_path / "study.db")
    assert (store.done(), store.rows(CELL), store.failures()) == ({}, [], [])
    store.put(TWO, Outcome([{"lam": 1.0}], 1.0, {}, arrays={0: b"12"}))
    store.put(ONE, DONE)
    again = StudyStore(tmp_path / "study.db")
    assert again.rows(CELL) == [DONE.rows[0], {"lam": 1.0}]
    assert again.arrays(CELL) == [b"12"]
    assert again.done() == {CELL.key: {0, 1}}
    assert again.is_done(ONE)
    assert again.seconds() == 2.5
    assert {"device": "abacus"} in again.environments()


def test_a_failure_is_kept_until_it_succeeds(tmp_path):
    store = StudyStore(tmp_path / "study.db")
    store.put(ONE, FAILED)
    assert not store.is_done(ONE)
    assert store.failures() == [(CELL.to_dict(), "ValueError: no")]
    store.put(ONE, DONE)
    assert store.failures() == []
    store.put(ONE, FAILED)  # of a slower run: what is there stays
    assert store.rows(CELL) == list(DONE.rows)


def test_rows_can_be_queried_with_any_tool(tmp_path):
    StudyStore(tmp_path / "study.db").put(ONE, DONE)
    with closing(sqlite3.connect(tmp_path / "study.db")) as file:
        found = file.execute("SELECT data, noise, model, accuracy FROM rows").fetchall()
    assert found == [("digits", "none", "GNMF", 0.5)]


def test_merging(tmp_path):
    here, there = StudyStore(tmp_path / "here.db"), StudyStore(tmp_path / "there.db")
    here.put(ONE, DONE)
    there.put(ONE, Outcome([{"lam": 0.1, "accuracy": 0.9}], 1.0, {}))
    there.put(TWO, Outcome([{"lam": 1.0}], 1.0, {}, arrays={0: b"x"}))
    assert here.merge(tmp_path / "there.db") == 1
    assert here.merge(tmp_path / "there.db") == 0
    assert here.rows(CELL) == [DONE.rows[0], {"lam": 1.0}]
    assert here.arrays(CELL) == [b"x"]


def test_merging_failures(tmp_path):
    here, there = StudyStore(tmp_path / "here.db"), StudyStore(tmp_path / "there.db")
    here.put(ONE, FAILED)
    here.put(TWO, DONE)
    there.put(ONE, DONE)
    there.put(TWO, FAILED)
    here.merge(tmp_path / "there.db")
    assert here.failures() == []
    assert len(here.rows(CELL)) == 2


def test_what_is_no_study(tmp_path):
    RowStore(tmp_path / "rows.sqlite", ABOUT)
    with pytest.raises(ValueError, match="holds rows of another run"):
        StudyStore(tmp_path / "rows.sqlite")
    with pytest.raises(ValueError, match="is not there"):
        StudyStore(tmp_path / "study.db").merge(tmp_path / "nowhere.db")
    with closing(sqlite3.connect(tmp_path / "other.db")) as file, file:
        file.execute("CREATE TABLE shopping (item TEXT)")
    with pytest.raises(ValueError, match="database of something else"):
        StudyStore(tmp_path / "study.db").merge(tmp_path / "other.db")
