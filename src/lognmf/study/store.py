"""Rows kept in a SQLite file as they come, so that a run can be interrupted and go on."""

from __future__ import annotations

import json
import os
import sqlite3
from collections.abc import Iterable, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

__all__ = ["RowStore"]

_SCHEMA = """
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
        with closing(self._open()) as file, file:
            for statement in filter(str.strip, _SCHEMA.split(";")):
                file.execute(statement)
            for name, value in self.about.items():
                file.execute("INSERT OR IGNORE INTO about VALUES (?, ?)", (name, json.dumps(value)))
            found = {name: json.loads(value) for name, value in file.execute("SELECT * FROM about")}
        differences = [n for n in {**found, **self.about} if found.get(n) != self.about.get(n)]
        if differences:
            told = ", ".join(f"{n} {found.get(n)!r} (now {self.about.get(n)!r})" for n in differences)
            msg = f"{self.path} holds rows of another run, with {told}. Give another store, or remove it."
            raise ValueError(msg)

    def rows(self) -> dict[str, dict[str, Any]]:
        """All rows by their keys."""
        with closing(self._open()) as file:
            return {key: json.loads(row) for key, row in file.execute("SELECT key, row FROM rows")}

    def put(self, rows: Iterable[tuple[str, Mapping[str, Any]]]) -> None:
        """Write rows, all of them or none; one that is there already is replaced."""
        values = [(key, json.dumps(row, allow_nan=False)) for key, row in rows]
        with closing(self._open()) as file, file:
            file.executemany("INSERT OR REPLACE INTO rows VALUES (?, ?)", values)

    def _open(self) -> sqlite3.Connection:
        try:
            file = sqlite3.connect(self.path, timeout=60)
            file.execute("PRAGMA journal_mode=WAL")
        except sqlite3.Error as error:
            msg = f"{self.path} cannot be used as a store of rows: {error}."
            raise ValueError(msg) from error
        return file
