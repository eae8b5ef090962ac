"""Pieces of a study survive kills, carry their origin, and merge."""

import sqlite3
from contextlib import closing

import pytest

from lognmf import GraphNMF
from lognmf.grid import store as grid_store
from lognmf.grid.store import Store
from lognmf.paper import store as paper_store
from lognmf.paper.spec import Data, Noise, cell, pieces
from lognmf.paper.store import Outcome, StudyStore

ABOUT = {"model": "LS-NMF", "data": "abc"}
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


def test_cells_of_one_key_may_be_said_in_several_ways(tmp_path):
    """A default that is given makes the same fits, so the rows belong together; none of them is damaged."""
    default = GraphNMF().get_params()["tol"]
    same = cell(Data("digits", 40), Noise(), "GNMF", options={"tol": default}, grid={"lam": (0.1, 1.0)})
    assert same.key == CELL.key
    store = StudyStore(tmp_path / "study.db")
    store.put(ONE, DONE)
    store.put(list(pieces(same, 1))[1], THERE)
    assert store.remarks() == []
    assert store.rows(CELL) == store.rows(same) == [*DONE.rows, *THERE.rows]


def test_merging_a_version_with_another_default_of_a_varied_parameter(tmp_path, monkeypatch):
    here, there = StudyStore(tmp_path / "here.db"), StudyStore(tmp_path / "there.db")
    here.put(ONE, DONE)
    parameters = paper_store.all_parameters
    monkeypatch.setattr(paper_store, "all_parameters", lambda *given: {**parameters(*given), "lam": 7.0})
    there.put(TWO, THERE)
    here.merge(there.path)
    assert here.remarks() == []
    assert here.rows(CELL) == [*DONE.rows, *THERE.rows]


def test_what_is_no_study(tmp_path):
    Store(tmp_path / "rows.sqlite", ABOUT)
    with pytest.raises(ValueError, match="holds rows of another run"):
        StudyStore(tmp_path / "rows.sqlite")
    with pytest.raises(ValueError, match="is not there"):
        StudyStore(tmp_path / "study.db").merge(tmp_path / "nowhere.db")
    with closing(sqlite3.connect(tmp_path / "other.db")) as file, file:
        file.execute("CREATE TABLE shopping (item TEXT)")
    with pytest.raises(ValueError, match="database of something else"):
        StudyStore(tmp_path / "study.db").merge(tmp_path / "other.db")


# Origin ------------------------------------------------------------------------------------

THERE = Outcome([{"lam": 1.0, "accuracy": 0.75}], 1.0, {}, arrays={0: b"x"})
DAMAGES = {
    "a value": "UPDATE results SET row = replace(row, '0.5', '0.9')",
    "swapped": "UPDATE results SET row = (SELECT row FROM results AS r WHERE r.piece = 1 - results.piece)",
    "arrays": "UPDATE results SET arrays = x'00' WHERE piece = 0",
    "a lost row": "DELETE FROM results WHERE piece = 0",
    "another version": "UPDATE pieces SET version = 'x'; UPDATE results SET version = 'x'",
    "an error": "UPDATE pieces SET error = 'no' WHERE piece = 0",
    "what it is about": "UPDATE pieces SET spec = replace(spec, 'GNMF', 'NMF')",
    "its parameters": "UPDATE pieces SET parameters = '{}'",
    "its time": "UPDATE pieces SET seconds = 0 WHERE piece = 0",
    "where it was made": "UPDATE pieces SET made = '{}' WHERE piece = 0",
    "no text": "UPDATE results SET row = CAST(x'ff00' AS TEXT) WHERE piece = 0",
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_damaged_pieces_are_never_used(damage, tmp_path):
    store = StudyStore(tmp_path / "study.db")
    store.put(ONE, DONE)
    store.put(TWO, THERE)
    with closing(sqlite3.connect(store.path)) as file, file:
        file.executescript(DAMAGES[damage])
    (remark,) = store.remarks()
    assert "not as written, and not used" in remark
    assert "piece 0 of" in remark
    assert not store.is_done(ONE)
    assert DONE.rows[0] not in store.rows(CELL)
    assert all(row["accuracy"] in (0.5, 0.75) for row in store.rows(CELL))
    store.put(ONE, DONE)
    store.put(TWO, THERE)
    assert StudyStore(store.path).rows(CELL) == [*DONE.rows, *THERE.rows]
    assert store.arrays(CELL) == [b"x"]


def test_pieces_of_another_version_are_used_only_if_asked_for(tmp_path, monkeypatch):
    old = StudyStore(tmp_path / "study.db")
    for module in (grid_store, paper_store):
        monkeypatch.setattr(module, "code_version", lambda: "0.0.9+old")
    old.put(ONE, DONE)
    old.put(TWO, THERE)
    monkeypatch.undo()
    store = StudyStore(old.path)
    (remark,) = store.remarks()
    assert "2 results are of other versions of lognmf (2 of 0.0.9+old; this is 0." in remark
    assert "and not used. To use them give any_version=True, on the command line --any-version" in remark
    assert (store.rows(CELL), store.done()) == ([], {})
    store.put(ONE, FAILED)
    anyhow = StudyStore(old.path, any_version=True)
    assert anyhow.rows(CELL) == [*DONE.rows, *THERE.rows]
    assert "and used, as asked for" in anyhow.remarks()[0]
    assert store.failures() != []
    fresh = Outcome([{"lam": 0.1, "accuracy": 0.25}], 1.0, {})
    store.put(ONE, fresh)
    assert store.rows(CELL) == list(fresh.rows)
    assert anyhow.rows(CELL) == [*fresh.rows, *THERE.rows]


def test_a_piece_has_the_version_of_the_worker(tmp_path):
    store = StudyStore(tmp_path / "study.db")
    store.put(ONE, Outcome(DONE.rows, 1.0, {"lognmf": "0.0.9+old"}))
    assert not store.is_done(ONE)
    assert "1 of 0.0.9+old" in store.remarks()[0]


def test_damaged_pieces_are_not_merged(tmp_path):
    here, there = StudyStore(tmp_path / "here.db"), StudyStore(tmp_path / "there.db")
    there.put(ONE, DONE)
    there.put(TWO, THERE)
    with closing(sqlite3.connect(there.path)) as file, file:
        file.executescript(DAMAGES["a value"])
    assert here.merge(there.path) == 1
    assert here.rows(CELL) == list(THERE.rows)
    assert here.remarks() == []
