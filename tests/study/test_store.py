"""Rows survive kills, belong to one run, and may come from two."""

import sqlite3
import subprocess
import sys
import textwrap

import pytest

from lognmf.study.store import RowStore

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
        from lognmf.study.store import RowStore
        store = RowStore({str(tmp_path / "rows.sqlite")!r}, {ABOUT!r})
        for i in range(50):
            store.put([(f"{{sys.argv[1]}}{{i}}", {{"i": i}})])
    """
    command = [sys.executable, "-c", textwrap.dedent(program)]
    writers = [subprocess.Popen([*command, name]) for name in "ab"]
    assert [writer.wait() for writer in writers] == [0, 0]
    assert len(RowStore(tmp_path / "rows.sqlite", ABOUT).rows()) == 100
