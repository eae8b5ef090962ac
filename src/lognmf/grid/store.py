"""JSON values and arrays by key in a SQLite file, so that an interrupted run can be resumed."""

from __future__ import annotations

import hashlib
import io
import json
import os
import sqlite3
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from lognmf.environment import package_version
from lognmf.progress import warn

_TABLES = """
CREATE TABLE about (name TEXT PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE entries (
    key TEXT NOT NULL, version TEXT NOT NULL, value TEXT NOT NULL, arrays BLOB, checksum TEXT NOT NULL,
    PRIMARY KEY (key, version)
);
"""

_NAMED = 3
"""Damaged records that a message names."""


class OtherRunError(ValueError):
    """A store holds results of other data, another model or other options."""


class Store:
    """JSON values, with or without arrays, by key in one SQLite file.

    The file is made if it does not exist. All entries of one `put` are written in one transaction: after a
    kill they are there as a whole or not at all. Two runs may write to the same file. Entries count only
    for the version of lognmf that wrote them, and only as they were written.

    Parameters
    ----------
    path : path
        The file.
    about : mapping of plain JSON values
        What the entries belong to, such as data, model and options. A file that was made for something else
        is refused with an `OtherRunError`.
    more : str, default=""
        Further SQL statements, separated by ``;``, that are run when the file is made, such as those of views
        on the table ``entries``.
    """

    def __init__(self, path: str | os.PathLike[str], about: Mapping[str, Any], more: str = "") -> None:
        self.path = Path(path)
        self._about = json.dumps(about, sort_keys=True)
        prepare_store(self.path, _TABLES + more, about)

    def put(self, entries: Iterable[tuple[str, Any, Mapping[str, np.ndarray]]]) -> None:
        """Write (key, value, arrays) triples, all of them or none; an entry of the same key is replaced."""
        made, lines = package_version(), []
        for key, value, arrays in entries:
            line = (key, made, json.dumps(value), _packed(arrays))
            lines.append((*line, checksum(self._about, *line)))
        with opened(self.path) as file:
            file.executemany("INSERT OR REPLACE INTO entries VALUES (?, ?, ?, ?, ?)", lines)

    def values(self, prefix: str = "") -> dict[str, Any]:
        """The values whose keys begin with ``prefix``, by key and in the order of writing.

        A warning names entries that were damaged.
        """
        query = """
            SELECT key, version, value, arrays, checksum FROM entries
            WHERE version = ? AND key >= ? AND key < ? ORDER BY rowid
        """
        values, damaged = {}, []
        with opened(self.path) as file:
            for *line, check in file.execute(query, (package_version(), prefix, f"{prefix}\U0010ffff")):
                if check == checksum(self._about, *line):
                    values[line[0]] = json.loads(line[2])
                else:
                    damaged.append(str(line[0]))
        if damaged:
            names = "; ".join(sorted(damaged)[:_NAMED]) + ("; …" if len(damaged) > _NAMED else "")
            warn(
                f"{self.path} was edited or damaged: {_results(len(damaged))} not as written, and not used. "
                f"What is needed of them is computed again: {names}."
            )
        return values

    def arrays(self, key: str) -> dict[str, np.ndarray]:
        """The arrays of one entry; none if there is no such entry."""
        query = "SELECT arrays FROM entries WHERE key = ? AND version = ? AND arrays IS NOT NULL"
        with opened(self.path) as file:
            found = file.execute(query, (key, package_version())).fetchone()
        if found is None:
            return {}
        with np.load(io.BytesIO(found[0]), allow_pickle=False) as stored:
            return dict(stored)


def stored_entries(path: Path) -> int:
    """Number of entries in a store, of whatever version."""
    with opened(path) as file:
        return int(file.execute("SELECT count(*) FROM entries").fetchone()[0])


def _packed(arrays: Mapping[str, np.ndarray]) -> bytes | None:
    """Arrays as one file, or None if there are none."""
    if not arrays:
        return None
    file = io.BytesIO()
    np.savez_compressed(file, **arrays)  # type: ignore[arg-type]
    return file.getvalue()


def _results(count: int) -> str:
    return "1 result is" if count == 1 else f"{count} results are"


def checksum(*parts: Any) -> str:
    """A checksum over texts, numbers and bytes in this order."""
    return hashlib.sha256(repr(parts).encode()).hexdigest()[:32]


def prepare_store(path: Path, schema: str, about: Mapping[str, Any]) -> None:
    """Make the tables; a file that is damaged or holds something else is refused and left as it is."""
    wanted = {name: json.dumps(value, sort_keys=True) for name, value in about.items()}
    with opened(path) as file:
        file.execute("BEGIN IMMEDIATE")
        tables = {name for (name,) in file.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
        if tables and "about" not in tables:
            msg = f"{path} cannot be used as a store: it is a database of something else. Give another path."
            raise ValueError(msg)
        if not tables:
            for statement in filter(str.strip, schema.split(";")):
                file.execute(statement)
            file.executemany("INSERT INTO about VALUES (?, ?)", wanted.items())
        stored = dict(file.execute("SELECT name, value FROM about").fetchall())
        differences = [n for n in {**stored, **wanted} if stored.get(n) != wanted.get(n)]
        if differences:
            listed = ", ".join(f"{n} {stored.get(n)} (now {wanted.get(n)})" for n in differences)
            msg = f"{path} holds rows of another run, with {listed}. Give another path, or move it away."
            raise OtherRunError(msg)
        (state,) = file.execute("PRAGMA integrity_check(1)").fetchone()
        if state != "ok":
            raise sqlite3.DatabaseError(state)
    # Now that the file is known to be ours: readers do not wait for writers. While another run uses the file
    # this cannot be switched on, and all works without it.
    with opened(path, timeout=0) as file:
        try:
            file.execute("PRAGMA journal_mode=WAL")
        except sqlite3.OperationalError as error:
            if _code(error) != sqlite3.SQLITE_BUSY:
                raise


@contextmanager
def opened(path: Path, *, timeout: float = 60) -> Iterator[sqlite3.Connection]:
    """A connection to a store, for one transaction. What SQLite finds wrong is said in one sentence."""
    try:
        with closing(sqlite3.connect(path, timeout=timeout)) as file, file:
            file.text_factory = lambda text: str(text, errors="replace")  # damage shows in the checksum
            yield file
    except (sqlite3.Error, UnicodeDecodeError) as error:  # SQLite quotes what it cannot read
        advice = (
            "If it should be one, it is damaged: move it away and start again, or give another path."
            if _is_damage(error)
            else "It may be in use, or the disk full or write-protected: see to that and start again, "
            "or give another path."
        )
        words = " ".join(str(error).split())
        msg = f"{path} cannot be used as a store: {words}. Nothing was changed. {advice}"
        raise ValueError(msg) from error


def _code(error: Exception) -> int:
    """SQLite's number of an error; that of damage for what we find ourselves."""
    return getattr(error, "sqlite_errorcode", sqlite3.SQLITE_CORRUPT) & 0xFF  # without details


def _is_damage(error: Exception) -> bool:
    """Whether the file itself is wrong (SQLITE_ERROR: a table or a column is missing), not its place."""
    return _code(error) in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_ERROR)
