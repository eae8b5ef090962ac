"""Rows stored in a SQLite file as they come, so that an interrupted run can be resumed."""

from __future__ import annotations

import json
import os
import sqlite3
from collections.abc import Iterable, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

_ROWS = """
CREATE TABLE IF NOT EXISTS about (name TEXT PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS rows (key TEXT PRIMARY KEY NOT NULL, row TEXT NOT NULL);
"""


class RowStore:
    """Rows by key, in one SQLite file, which is made if it does not exist.

    A batch of rows is written in one transaction: after a kill it is there as a whole or
    not at all. Two runs may write to the same file. ``about`` says what the rows belong to (data, model,
    options), as plain JSON values; a file that was made for something else is refused.
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
        tables = {name for (name,) in file.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
        if tables and "about" not in tables:
            msg = f"{path} cannot be used as a store of rows: it is a database of something else."
            raise ValueError(msg)
        for statement in filter(str.strip, schema.split(";")) if not tables else ():
            file.execute(statement)
        for name, value in about.items():
            file.execute("INSERT OR IGNORE INTO about VALUES (?, ?)", (name, json.dumps(value)))
        stored = {name: json.loads(value) for name, value in file.execute("SELECT * FROM about")}
        differences = [n for n in {**stored, **about} if stored.get(n) != about.get(n)]
        if differences:
            listed = ", ".join(f"{n} {stored.get(n)!r} (now {about.get(n)!r})" for n in differences)
            msg = f"{path} holds rows of another run, with {listed}. Give another store, or remove it."
            raise ValueError(msg)


def open_store(path: Path) -> sqlite3.Connection:
    """A connection to the file, which is made if it does not exist."""
    try:
        file = sqlite3.connect(path, timeout=60)
        file.execute("PRAGMA journal_mode=WAL")
    except sqlite3.Error as error:
        msg = f"{path} cannot be used as a store of rows: {error}."
        raise ValueError(msg) from error
    return file
