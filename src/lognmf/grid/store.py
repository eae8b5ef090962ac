"""Rows kept in a SQLite file as they come, so that a run can be interrupted and go on."""

from __future__ import annotations

import json
import os
import sqlite3
from collections.abc import Iterable, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

__all__ = ["RowStore", "open_store", "prepare_store"]

_ROWS = """
CREATE TABLE IF NOT EXISTS about (name TEXT PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS rows (key TEXT PRIMARY KEY NOT NULL, row TEXT NOT NULL);
"""


class RowStore:
    """Rows by key, in one SQLite file.

    A batch of rows is written in one transaction: after a kill it is there as a whole or
    not at all. Two runs may write to the same file.

    Parameters
    ----------
    path : path
        The file; made if it is not there.
    about : mapping
        What the rows belong to (data, model, options), as plain JSON values. A file that
        was made for something else is refused.
    """

    def __init__(self, path: str | os.PathLike[str], about: Mapping[str, Any]) -> None:
        self.path = Path(path)
        self.about = json.loads(json.dumps(about))
        prepare_store(self.path, _ROWS, self.about)

    def rows(self) -> dict[str, dict[str, Any]]:
        """All rows by their keys."""
        with closing(open_store(self.path)) as file:
            return {key: json.loads(row) for key, row in file.execute("SELECT key, row FROM rows")}

    def put(self, rows: Iterable[tuple[str, Mapping[str, Any]]]) -> None:
        """Write rows, all of them or none; one that is there already is replaced."""
        values = [(key, json.dumps(row, allow_nan=False)) for key, row in rows]
        with closing(open_store(self.path)) as file, file:
            file.executemany("INSERT OR REPLACE INTO rows VALUES (?, ?)", values)


def prepare_store(path: Path, schema: str, about: Mapping[str, Any]) -> None:
    """Make the tables, and refuse a file that holds something else."""
    with closing(open_store(path)) as file, file:
        file.execute("BEGIN IMMEDIATE")
        known = {name for (name,) in file.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
        if known and "about" not in known:
            msg = f"{path} cannot be used as a store of rows: it is a database of something else."
            raise ValueError(msg)
        for statement in filter(str.strip, schema.split(";")) if not known else ():
            file.execute(statement)
        for name, value in about.items():
            file.execute("INSERT OR IGNORE INTO about VALUES (?, ?)", (name, json.dumps(value)))
        found = {name: json.loads(value) for name, value in file.execute("SELECT * FROM about")}
        differences = [n for n in {**found, **about} if found.get(n) != about.get(n)]
        if differences:
            told = ", ".join(f"{n} {found.get(n)!r} (now {about.get(n)!r})" for n in differences)
            msg = f"{path} holds rows of another run, with {told}. Give another store, or remove it."
            raise ValueError(msg)


def open_store(path: Path) -> sqlite3.Connection:
    """A connection to the file, which is made if it is not there."""
    try:
        file = sqlite3.connect(path, timeout=60)
        file.execute("PRAGMA journal_mode=WAL")
    except sqlite3.Error as error:
        msg = f"{path} cannot be used as a store of rows: {error}."
        raise ValueError(msg) from error
    return file
