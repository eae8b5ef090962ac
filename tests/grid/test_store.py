"""Rows survive kills, belong to one run, and may come from two."""

import re
import sqlite3
import subprocess
import sys
import textwrap
from contextlib import closing

import numpy as np
import pytest

from lognmf import GraphNMF, fit_grid
from lognmf.grid import store as grid_store
from lognmf.grid.store import Store, stored_entries

ABOUT = {"model": "LS-NMF", "data": "abc", "parameters": {"tol": 1e-5, "graph": None}}


def test_round_trip(tmp_path):
    store = Store(tmp_path / "rows.sqlite", ABOUT)
    store.put([("a", {"x": 1.5, "why": None}, {}), ("b", {"x": 0.1 + 0.2}, {"U": np.eye(2)})])
    again = Store(tmp_path / "rows.sqlite", ABOUT)
    assert again.values() == {"a": {"x": 1.5, "why": None}, "b": {"x": 0.1 + 0.2}}
    assert again.arrays("a") == again.arrays("c") == {}
    np.testing.assert_array_equal(again.arrays("b")["U"], np.eye(2))
    again.put([("a", [2], {})])
    assert store.values()["a"] == [2]
    assert stored_entries(store.path) == 2


def test_views_for_other_tools(tmp_path):
    view = "CREATE VIEW numbers AS SELECT json_extract(value, '$.x') AS x FROM entries"
    Store(tmp_path / "rows.sqlite", ABOUT, view).put([("a", {"x": 3}, {})])
    with closing(sqlite3.connect(tmp_path / "rows.sqlite")) as file:
        assert file.execute("SELECT x FROM numbers").fetchall() == [(3,)]


def test_rows_of_another_run_are_refused(tmp_path):
    Store(tmp_path / "rows.sqlite", ABOUT).put([("a", {}, {})])
    with pytest.raises(ValueError, match=r'rows of another run, with data "abc" \(now "abd"\)'):
        Store(tmp_path / "rows.sqlite", ABOUT | {"data": "abd"})
    assert Store(tmp_path / "rows.sqlite", ABOUT).values() == {"a": {}}


def test_what_is_no_store(tmp_path):
    (tmp_path / "text").write_text("no database at all, but long enough to look like one " * 20)
    with pytest.raises(ValueError, match="cannot be used as a store"):
        Store(tmp_path / "text", ABOUT)
    with pytest.raises(ValueError, match="cannot be used as a store"):
        Store(tmp_path / "nowhere" / "rows.sqlite", ABOUT)


def test_all_rows_of_a_batch_or_none(tmp_path):
    store = Store(tmp_path / "rows.sqlite", ABOUT)
    with pytest.raises(TypeError, match="JSON"):
        store.put([("a", {"x": 1.0}, {}), ("b", {"x": object()}, {})])
    with pytest.raises(ValueError, match="NOT NULL constraint failed"):
        store.put([("a", {"x": 1.0}, {}), (None, {"x": 1.0}, {})])
    assert store.values() == {}


def test_a_number_that_is_none_loses_no_batch(tmp_path):
    """What a fit has found is stored, also where a score of a stranger's model is infinite or undefined."""
    store = Store(tmp_path / "rows.sqlite", ABOUT | {"bound": float("nan")})
    store.put([("a", {"x": float("nan"), "y": float("-inf")}, {})])
    row = Store(store.path, ABOUT | {"bound": float("nan")}).values()["a"]
    assert np.isnan(row["x"])
    assert row["y"] == float("-inf")


def test_two_writers(tmp_path):
    program = f"""
        import sys
        from lognmf.grid.store import Store
        store = Store({str(tmp_path / "rows.sqlite")!r}, {ABOUT!r})
        for i in range(50):
            store.put([(f"{{sys.argv[1]}}{{i}}", {{"i": i}}, {{}})])
    """
    command = [sys.executable, "-c", textwrap.dedent(program)]
    writers = [subprocess.Popen([*command, name]) for name in "ab"]
    assert [writer.wait() for writer in writers] == [0, 0]
    assert len(Store(tmp_path / "rows.sqlite", ABOUT).values()) == 100


def test_a_store_opens_while_another_run_reads_it(tmp_path, monkeypatch):
    """The switch to a write-ahead log needs the file for itself; whoever does not get it goes without."""
    path, connect, opened = tmp_path / "rows.sqlite", sqlite3.connect, []
    with closing(connect(path)) as other:

        def connect_second_while_the_other_reads(path, timeout):
            opened.append(path)
            if len(opened) == 2:
                other.execute("BEGIN")
                other.execute("SELECT * FROM entries").fetchall()
            return connect(path, timeout=0)

        monkeypatch.setattr(sqlite3, "connect", connect_second_while_the_other_reads)
        store = Store(path, ABOUT)
        other.rollback()
        store.put([("a", {}, {})])
        assert other.execute("PRAGMA journal_mode").fetchone() == ("delete",)
    monkeypatch.undo()
    assert Store(path, ABOUT).values() == {"a": {}}
    with closing(connect(path)) as file:
        assert file.execute("PRAGMA journal_mode").fetchone() == ("wal",)


def test_only_a_store_in_use_goes_without_a_write_ahead_log(tmp_path, monkeypatch):
    class Failing(sqlite3.Connection):
        def execute(self, sql, *values):
            if "journal_mode" in sql:
                error = sqlite3.OperationalError("out of order")
                error.sqlite_errorcode = sqlite3.SQLITE_ERROR
                raise error
            return super().execute(sql, *values)

    connect = sqlite3.connect
    monkeypatch.setattr(sqlite3, "connect", lambda path, timeout: connect(path, timeout, factory=Failing))
    with pytest.raises(ValueError, match="cannot be used as a store: out of order"):
        Store(tmp_path / "rows.sqlite", ABOUT)


def cannot_be_used_now(error):
    assert re.search(
        r"cannot be used as a store: .*\. Nothing was changed\. .*in use, .* or give another", error
    )
    assert "damaged" not in error
    assert "away" not in error


def test_a_store_in_use_is_not_called_damaged(tmp_path, monkeypatch):
    store = Store(tmp_path / "rows.sqlite", ABOUT)
    connect = sqlite3.connect
    monkeypatch.setattr(sqlite3, "connect", lambda path, timeout: connect(path, timeout=0))
    with closing(connect(store.path)) as file:
        file.execute("BEGIN IMMEDIATE")
        with pytest.raises(ValueError, match="database is locked") as caught:
            store.put([("a", {}, {})])
    cannot_be_used_now(str(caught.value))


def test_a_full_disk_is_not_called_damage(tmp_path, monkeypatch):
    store = Store(tmp_path / "rows.sqlite", ABOUT)
    connect = sqlite3.connect

    def full(path, timeout):
        file = connect(path, timeout=timeout)
        file.execute("PRAGMA max_page_count=1")
        return file

    monkeypatch.setattr(sqlite3, "connect", full)
    with pytest.raises(ValueError, match="is full") as caught:
        store.put([("a", {"x": "x" * 100_000}, {})])
    cannot_be_used_now(str(caught.value))
    assert store.values() == {}


def test_a_folder_is_not_called_a_damaged_store(tmp_path):
    with pytest.raises(ValueError, match="unable to open") as caught:
        Store(tmp_path, ABOUT)
    cannot_be_used_now(str(caught.value))


# Files that are no stores --------------------------------------------------------------------


def test_another_database_is_left_as_it_is(tmp_path):
    for name, statement in {
        "other": "CREATE TABLE t (x)",
        "about": "CREATE TABLE about (name, value)",
    }.items():
        with closing(sqlite3.connect(tmp_path / name)) as file, file:
            file.execute(statement)
        before = (tmp_path / name).read_bytes()
        with pytest.raises(ValueError, match=r"something else|cannot be used|another run"):
            Store(tmp_path / name, ABOUT)
        assert (tmp_path / name).read_bytes() == before
    assert sorted(path.name for path in tmp_path.iterdir()) == ["about", "other"]


@pytest.mark.parametrize("what", ["text", "half", "index", "no table", "schema"])
def test_a_damaged_file_is_refused_in_one_sentence(what, tmp_path):
    path = tmp_path / "rows.sqlite"
    store = Store(path, ABOUT)
    store.put([(f"{i:03}", {"x": i}, {}) for i in range(300)])
    if what == "text":
        path.write_text("dear diary, " * 100)
    elif what == "half":
        path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    else:
        with closing(sqlite3.connect(path)) as file, file:
            file.execute("PRAGMA writable_schema = ON")
            about = "entries" if what != "index" else "sqlite_autoindex_entries_1"
            change = "sql = 'x', name = CAST(x'ff' AS TEXT)" if what == "schema" else "rootpage = 2"
            file.execute(f"UPDATE sqlite_master SET {change} WHERE name = ?", (about,))
    before = path.read_bytes()
    with pytest.raises(
        ValueError, match=r"cannot be used as a store: .*\. Nothing was changed\. .*move it away"
    ):
        Store(path, ABOUT).values()
    assert path.read_bytes() == before


# Origin --------------------------------------------------------------------------------------

X = np.random.default_rng(0).random((20, 6))
GRID = {"lam": [0.1, 1.0]}
OPTIONS = {"seeds": [0, 1], "y": [0, 1] * 10, "max_iter": 3}
DAMAGES = {
    "a value": """UPDATE entries SET value = replace(value, '"accuracy": 0.', '"accuracy": 0.9')""",
    "swapped": "UPDATE entries SET value = (SELECT value FROM entries e WHERE e.rowid = 5 - entries.rowid)",
    "a key": "UPDATE entries SET key = replace(key, '0.1', '0.2')",
    "the checksum": "UPDATE entries SET checksum = '' WHERE rowid = 1",
    "no text": "UPDATE entries SET value = CAST(x'ff00' AS TEXT) WHERE rowid = 3",
}


def timeless(result):
    return [{name: value for name, value in row.items() if name != "seconds"} for row in result.rows]


@pytest.mark.parametrize("damage", DAMAGES)
def test_damaged_rows_are_computed_again(damage, tmp_path):
    fresh = fit_grid(GraphNMF(2), X, GRID, store=tmp_path / "rows.sqlite", **OPTIONS)
    with closing(sqlite3.connect(tmp_path / "rows.sqlite")) as file, file:
        file.execute(DAMAGES[damage])
    with pytest.warns(UserWarning, match=r"not as written, and not used\. .* computed again: \[\{\"lam\": "):
        again = fit_grid(GraphNMF(2), X, GRID, store=tmp_path / "rows.sqlite", **OPTIONS)
    assert timeless(again) == timeless(fresh)


@pytest.mark.parametrize(("count", "words"), [(1, "1 result is"), (4, "4 results are")])
def test_three_of_the_damaged_entries_are_named(count, words, tmp_path):
    store = Store(tmp_path / "rows.sqlite", ABOUT)
    store.put([(name, {"x": 1}, {}) for name in "abcdef"])
    with closing(sqlite3.connect(store.path)) as file, file:
        file.execute("UPDATE entries SET value = '{}' WHERE rowid <= ?", (count,))
    names = "; ".join("abcd"[: min(count, 3)]) + ("; …" if count > 3 else "")
    with pytest.warns(UserWarning, match=rf"damaged: {words} not as written, .* again: {names}\.$"):
        assert sorted(store.values()) == list("abcdef"[count:])


def test_rows_of_another_version_are_computed_again(tmp_path, monkeypatch):
    store = tmp_path / "rows.sqlite"
    monkeypatch.setattr(grid_store, "package_version", lambda: "0.0.9")
    old = fit_grid(GraphNMF(2), X, GRID, store=store, **OPTIONS)
    monkeypatch.undo()
    new = fit_grid(GraphNMF(2), X, GRID, store=store, **OPTIONS)
    assert new.rows != old.rows  # other times
    assert fit_grid(GraphNMF(2), X, GRID, store=store, **OPTIONS).rows == new.rows
    monkeypatch.setattr(grid_store, "package_version", lambda: "0.0.9")
    assert fit_grid(GraphNMF(2), X, GRID, store=store, **OPTIONS).rows == old.rows  # nothing was lost


def test_rows_cannot_be_carried_to_another_store(tmp_path):
    fit_grid(GraphNMF(2), X, GRID, store=tmp_path / "one", **OPTIONS)
    fit_grid(GraphNMF(2), X + 1, GRID, store=tmp_path / "two", **OPTIONS)
    with closing(sqlite3.connect(tmp_path / "two")) as file, file:
        file.execute("ATTACH ? AS other", (str(tmp_path / "one"),))
        file.execute("INSERT OR REPLACE INTO entries SELECT * FROM other.entries")
    with pytest.warns(UserWarning, match="4 results are not as written"):
        again = fit_grid(GraphNMF(2), X + 1, GRID, store=tmp_path / "two", **OPTIONS)
    assert timeless(again) == timeless(fit_grid(GraphNMF(2), X + 1, GRID, **OPTIONS))


# Parameters ----------------------------------------------------------------------------------


def test_numbers_of_numpy(tmp_path):
    grid = {"lam": np.array([0.1, 1.0]), "n_components": [np.int64(2)], "n_neighbors": (np.int32(3),)}
    options = {"seeds": np.arange(2), "n_clusters": 2, "max_iter": 3, "store": tmp_path / "rows.sqlite"}
    first = fit_grid("GNMF", X, grid, **options)
    assert fit_grid("GNMF", X, grid, **options).rows == first.rows
    same = {"lam": [0.1, 1.0], "n_components": [2], "n_neighbors": [3]}
    assert fit_grid("GNMF", X, same, **{**options, "seeds": [0, 1]}).rows == first.rows


class Odd(GraphNMF):
    """A stranger's model with one parameter more, which does nothing."""

    def __init__(self, n_components=2, lam=0.1, odd=None, max_iter=3, init="random"):
        super().__init__(n_components, lam=lam, max_iter=max_iter, init=init)
        self.odd = odd


class Quiet:
    """All of them look the same."""

    def __repr__(self):
        return "Quiet()"


def test_values_that_have_no_name_are_refused_before_the_fit(tmp_path, monkeypatch):
    monkeypatch.setattr("lognmf.grid.grid.fit_batch", lambda *_, **__: pytest.fail("fitted"))
    for given in ({"grid": {"odd": [Quiet(), Quiet()]}}, {"grid": GRID, "store": tmp_path / "rows.sqlite"}):
        with pytest.raises(TypeError, match=r"must be numbers, words, None, matrices .*; got Quiet\(\)"):
            fit_grid(Odd(odd=Quiet()), X, **given)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("labels", [[None, "a"], [object(), object()], [np.nan, 1.0]])
def test_labels_that_are_no_classes_are_refused_before_the_fit(labels, tmp_path, monkeypatch):
    monkeypatch.setattr("lognmf.grid.grid.fit_batch", lambda *_, **__: pytest.fail("fitted"))
    with pytest.raises(ValueError, match="y must hold a number or a word for each sample"):
        fit_grid("NMF", X, {"n_components": [2]}, y=labels * 10, store=tmp_path / "rows.sqlite")
    assert list(tmp_path.iterdir()) == []


def test_lists_of_numbers_are_stored(tmp_path):
    many = np.arange(2000.0)
    grid = {"odd": [(1, np.int64(2)), {"a": [np.float32(0.5)]}, (many,), (many[::-1],), float("inf")]}
    first = fit_grid(Odd(), X, grid, store=tmp_path / "rows.sqlite")
    assert len({str(row["odd"]) for row in first.rows}) == 5
    assert fit_grid(Odd(), X, grid, store=tmp_path / "rows.sqlite").rows == first.rows
