"""The pieces of a study and their rows, stored in a SQLite file as they come."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from lognmf.grid.store import open_store, prepare_store
from lognmf.paper.spec import Cell, Piece

_STUDY = """
CREATE TABLE IF NOT EXISTS about (name TEXT PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS cells (cell TEXT PRIMARY KEY NOT NULL, spec TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS pieces (
    cell TEXT NOT NULL, piece INTEGER NOT NULL, error TEXT, seconds REAL NOT NULL, made TEXT NOT NULL,
    PRIMARY KEY (cell, piece)
);
CREATE TABLE IF NOT EXISTS results (
    cell TEXT NOT NULL, piece INTEGER NOT NULL, place INTEGER NOT NULL, row TEXT NOT NULL, arrays BLOB,
    PRIMARY KEY (cell, piece, place)
);
CREATE VIEW IF NOT EXISTS rows AS
SELECT
    json_extract(spec, '$.data.name') AS data, json_extract(spec, '$.noise.kind') AS noise,
    json_extract(spec, '$.noise.level') AS level, json_extract(spec, '$.noise.replacement') AS replacement,
    json_extract(spec, '$.model') AS model, json_extract(spec, '$.work') AS work,
    json_extract(row, '$.seed') AS seed, json_extract(row, '$.accuracy') AS accuracy,
    json_extract(row, '$.nmi') AS nmi, json_extract(row, '$.purity') AS purity,
    json_extract(row, '$.normalized_cut') AS normalized_cut, json_extract(row, '$.objective') AS objective,
    row, results.cell AS cell, piece
FROM results JOIN cells USING (cell);
"""

_FORMAT = {"format": "lognmf study 1"}

_IS_DONE = "SELECT 1 FROM pieces WHERE cell = ? AND piece = ? AND error IS NULL"


@dataclass(frozen=True)
class Outcome:
    """What became of a piece: its rows, or the error that it failed with.

    ``rows`` are plain JSON values, one row per fit; ``environment`` says on which machine and device and with
    which versions they were computed; ``arrays`` holds what does not fit into a row, by the row's place.
    """

    rows: Sequence[Mapping[str, Any]]
    seconds: float
    environment: Mapping[str, Any]
    error: str | None = None
    arrays: Mapping[int, bytes] = field(default_factory=dict)


def existing_store(path: str | os.PathLike[str]) -> StudyStore:
    """The store in a file that must exist."""
    if not Path(path).is_file():
        msg = f"{path} is not there: give the study.db of another run."
        raise ValueError(msg)
    return StudyStore(path)


class StudyStore:
    """The pieces of a study and their rows, in one SQLite file, which is made if it does not exist.

    A piece is written in one transaction: after a kill it is there as a whole or not at all.
    Several runs may use the same file at once, and files of several machines can be merged.
    A piece that failed is stored with its message until it succeeds. The view ``rows`` shows
    the main columns of all rows to any SQLite tool.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        prepare_store(self.path, _STUDY, _FORMAT)

    def put(self, piece: Piece, outcome: Outcome) -> None:
        """Store the outcome of a piece. A failure never replaces rows."""
        key, number = piece.cell.key, piece.number
        spec = json.dumps(piece.cell.to_dict(), sort_keys=True)
        environment = json.dumps(outcome.environment, sort_keys=True)
        rows = [
            (key, number, place, json.dumps(row, allow_nan=False), outcome.arrays.get(place))
            for place, row in enumerate(outcome.rows)
        ]
        with closing(open_store(self.path)) as file, file:
            file.execute("BEGIN IMMEDIATE")
            if outcome.error is not None and file.execute(_IS_DONE, (key, number)).fetchone():
                return
            file.execute("INSERT OR IGNORE INTO cells VALUES (?, ?)", (key, spec))
            file.execute("DELETE FROM results WHERE cell = ? AND piece = ?", (key, number))
            file.executemany("INSERT INTO results VALUES (?, ?, ?, ?, ?)", rows)
            file.execute(
                "INSERT OR REPLACE INTO pieces VALUES (?, ?, ?, ?, ?)",
                (key, number, outcome.error, outcome.seconds, environment),
            )

    def _query(self, query: str, *values: Any) -> Iterator[Any]:
        with closing(open_store(self.path)) as file:
            yield from file.execute(query, values)

    def is_done(self, piece: Piece) -> bool:
        """Whether the rows of a piece are there."""
        return bool(list(self._query(_IS_DONE, piece.cell.key, piece.number)))

    def done(self) -> dict[str, set[int]]:
        """Numbers of the pieces whose rows are there, by the key of their cell."""
        numbers: dict[str, set[int]] = {}
        for key, number in self._query("SELECT cell, piece FROM pieces WHERE error IS NULL"):
            numbers.setdefault(key, set()).add(number)
        return numbers

    def rows(self, cell: Cell) -> list[dict[str, Any]]:
        """The rows of a cell's finished pieces, in their order."""
        query = "SELECT row FROM results WHERE cell = ? ORDER BY piece, place"
        return [json.loads(row) for (row,) in self._query(query, cell.key)]

    def arrays(self, cell: Cell) -> list[bytes]:
        """The arrays stored with the rows of a cell."""
        query = "SELECT arrays FROM results WHERE cell = ? AND arrays IS NOT NULL ORDER BY piece, place"
        return [blob for (blob,) in self._query(query, cell.key)]

    def scores(self) -> Iterator[tuple[str, dict[str, Any], dict[str, Any]]]:
        """Every row of a grid with the key and the content of its cell."""
        query = "SELECT cell, spec, row FROM results JOIN cells USING (cell) ORDER BY cell, piece, place"
        for key, spec, row in self._query(query):
            cell = json.loads(spec)
            if cell["work"] == "grid":
                yield key, cell, json.loads(row)

    def failures(self) -> list[tuple[dict[str, Any], str]]:
        """The cells with pieces that failed, each with its message."""
        query = "SELECT spec, error FROM pieces JOIN cells USING (cell) WHERE error IS NOT NULL"
        return [(json.loads(spec), error) for spec, error in self._query(f"{query} ORDER BY spec, piece")]

    def environments(self) -> list[dict[str, Any]]:
        """The machines, devices and versions that the rows were computed with, each once."""
        query = "SELECT DISTINCT made FROM pieces WHERE error IS NULL ORDER BY made"
        return [json.loads(text) for (text,) in self._query(query)]

    def seconds(self) -> float:
        """Time of all pieces together."""
        ((total,),) = self._query("SELECT total(seconds) FROM pieces")
        return float(total)

    def merge(self, other: str | os.PathLike[str]) -> int:
        """Copy the pieces of another store that are not done here; returns the number of new rows."""
        existing_store(other)
        with closing(open_store(self.path)) as file:
            file.execute("ATTACH ? AS other", (str(Path(other).resolve()),))
            with file:
                file.execute("BEGIN IMMEDIATE")
                file.execute(
                    "CREATE TEMP TABLE fresh AS SELECT cell, piece FROM other.pieces WHERE error IS NULL "
                    "EXCEPT SELECT cell, piece FROM main.pieces WHERE error IS NULL"
                )
                file.execute("INSERT OR IGNORE INTO main.cells SELECT * FROM other.cells")
                file.execute(
                    "INSERT OR REPLACE INTO main.pieces "
                    "SELECT * FROM other.pieces JOIN fresh USING (cell, piece)"
                )
                new_rows = file.execute(
                    "INSERT INTO main.results SELECT * FROM other.results JOIN fresh USING (cell, piece)"
                ).rowcount
                file.execute(
                    "INSERT OR IGNORE INTO main.pieces SELECT * FROM other.pieces WHERE error IS NOT NULL"
                )
        return new_rows
