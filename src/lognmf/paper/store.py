"""The pieces of a study and their rows, stored in a SQLite file as they come."""

from __future__ import annotations

import itertools
import json
import os
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from lognmf.grid.store import Record, checksum, opened, prepare_store, sift
from lognmf.paper.methods import all_parameters
from lognmf.paper.spec import Cell, Piece
from lognmf.report.environment import code_version

_STUDY = """
CREATE TABLE about (name TEXT PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE pieces (
    cell TEXT NOT NULL, piece INTEGER NOT NULL, version TEXT NOT NULL, error TEXT, seconds REAL NOT NULL,
    made TEXT NOT NULL, spec TEXT NOT NULL, parameters TEXT NOT NULL, checksum TEXT NOT NULL,
    PRIMARY KEY (cell, piece, version)
);
CREATE TABLE results (
    cell TEXT NOT NULL, piece INTEGER NOT NULL, version TEXT NOT NULL, place INTEGER NOT NULL,
    row TEXT NOT NULL, arrays BLOB,
    PRIMARY KEY (cell, piece, version, place)
);
CREATE VIEW rows AS
SELECT
    json_extract(spec, '$.data.name') AS data, json_extract(spec, '$.noise.kind') AS noise,
    json_extract(spec, '$.noise.level') AS level, json_extract(spec, '$.noise.replacement') AS replacement,
    json_extract(spec, '$.model') AS model, json_extract(spec, '$.work') AS work,
    json_extract(row, '$.seed') AS seed, json_extract(row, '$.accuracy') AS accuracy,
    json_extract(row, '$.nmi') AS nmi, json_extract(row, '$.purity') AS purity,
    json_extract(row, '$.normalized_cut') AS normalized_cut, json_extract(row, '$.objective') AS objective,
    row, cell, piece, version
FROM results JOIN pieces USING (cell, piece, version);
"""

_FORMAT = {"format": "lognmf study 3"}

_PIECES = """
SELECT
    pieces.cell, pieces.piece, pieces.version, error, seconds, made, spec, parameters, checksum,
    place, row, arrays
FROM pieces LEFT JOIN results USING (cell, piece, version)
"""
_IN_ORDER = "ORDER BY pieces.cell, pieces.piece, pieces.rowid, place"


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


class _Stored(NamedTuple):
    """A piece as the file has it; ``rows`` are (place, JSON text, arrays)."""

    cell: str
    number: int
    version: str
    error: str | None
    seconds: float
    made: str
    spec: str
    parameters: str
    rows: tuple[tuple[int, str, bytes | None], ...]

    @property
    def key(self) -> tuple[str, int]:
        """What it is, whatever version computed it."""
        return self.cell, self.number


def existing_store(path: str | os.PathLike[str], *, any_version: bool = False) -> StudyStore:
    """The store in a file that must exist."""
    if not Path(path).is_file():
        msg = f"{path} is not there: give the study.db of another run."
        raise ValueError(msg)
    return StudyStore(path, any_version=any_version)


class StudyStore:
    """The pieces of a study and their rows, in one SQLite file, which is made if it does not exist.

    A piece is written in one transaction: after a kill it is there as a whole or not at all.
    Several runs may use the same file at once, and files of several machines can be merged.
    A piece that failed is stored with its message until it succeeds. Pieces of other versions of lognmf are
    used only with ``any_version``, damaged ones never; `remarks` tells of both. The view ``rows`` shows
    the main columns of all rows to any SQLite tool.
    """

    def __init__(self, path: str | os.PathLike[str], *, any_version: bool = False) -> None:
        self.path, self.any_version = Path(path), any_version
        prepare_store(self.path, _STUDY, _FORMAT)

    def put(self, piece: Piece, outcome: Outcome) -> None:
        """Store the outcome of a piece. A failure never replaces rows."""
        cell, texts = piece.cell, [json.dumps(row, allow_nan=False) for row in outcome.rows]
        stored = _Stored(
            cell.key,
            piece.number,
            outcome.environment.get("lognmf", code_version()),  # of the worker, where it says
            outcome.error,
            float(outcome.seconds),
            json.dumps(outcome.environment, sort_keys=True),
            json.dumps(cell.to_dict(), sort_keys=True),
            json.dumps(all_parameters(cell.model, dict(cell.options)), sort_keys=True),
            tuple((place, text, outcome.arrays.get(place)) for place, text in enumerate(texts)),
        )
        with opened(self.path) as file:
            file.execute("BEGIN IMMEDIATE")
            _put(file, stored)

    def _records(self, where: str = "", *values: Any) -> list[Record]:
        """The pieces in the file, intact or not."""
        with opened(self.path) as file:
            lines = file.execute(f"{_PIECES} {where} {_IN_ORDER}", values).fetchall()
        records = []
        for (_, number, version), group in itertools.groupby(lines, key=lambda line: line[:3]):
            same = list(group)
            rows = tuple(line[9:] for line in same if line[9] is not None)
            stored, check = _Stored._make((*same[0][:8], rows)), same[0][8]
            name = f"piece {number} of {stored.spec}"
            intact = check == checksum(*stored)
            records.append(Record(stored.key, name, version, intact, stored, finished=stored.error is None))
        return records

    def _pieces(self, where: str = "", *values: Any) -> list[_Stored]:
        """The pieces that may be used, in order."""
        found, _ = sift(self.path, self._records(where, *values), any_version=self.any_version)
        return [found[key] for key in sorted(found)]

    def _done(self, where: str = "", *values: Any) -> list[_Stored]:
        return [piece for piece in self._pieces(where, *values) if piece.error is None]

    def remarks(self) -> list[str]:
        """Sentences about pieces that are damaged or of other versions."""
        return sift(self.path, self._records(), any_version=self.any_version)[1]

    def is_done(self, piece: Piece) -> bool:
        """Whether the rows of a piece are there."""
        return bool(self._done("WHERE pieces.cell = ? AND pieces.piece = ?", piece.cell.key, piece.number))

    def done(self) -> dict[str, set[int]]:
        """Numbers of the pieces whose rows are there, by the key of their cell."""
        numbers: dict[str, set[int]] = {}
        for piece in self._done():
            numbers.setdefault(piece.cell, set()).add(piece.number)
        return numbers

    def rows(self, cell: Cell) -> list[dict[str, Any]]:
        """The rows of a cell's finished pieces, in their order."""
        pieces = self._done("WHERE pieces.cell = ?", cell.key)
        return [json.loads(row) for piece in pieces for _, row, _ in piece.rows]

    def arrays(self, cell: Cell) -> list[bytes]:
        """The arrays stored with the rows of a cell."""
        pieces = self._done("WHERE pieces.cell = ?", cell.key)
        return [blob for piece in pieces for _, _, blob in piece.rows if blob is not None]

    def scores(self) -> Iterator[tuple[str, dict[str, Any], dict[str, Any]]]:
        """Every row of a grid with the key and the content of its cell."""
        for piece in self._done():
            cell = json.loads(piece.spec)
            if cell["work"] == "grid":
                yield from ((piece.cell, cell, json.loads(row)) for _, row, _ in piece.rows)

    def failures(self) -> list[tuple[dict[str, Any], str]]:
        """The cells with pieces that failed, each with its message."""
        failed = [(p.spec, p.number, p.error) for p in self._pieces() if p.error is not None]
        return [(json.loads(spec), error) for spec, _, error in sorted(failed)]

    def environments(self) -> list[dict[str, Any]]:
        """The machines, devices and versions that the rows were computed with, each once."""
        return [json.loads(text) for text in sorted({piece.made for piece in self._done()})]

    def seconds(self) -> float:
        """Time of all pieces together."""
        return sum(piece.seconds for piece in self._pieces())

    def merge(self, other: str | os.PathLike[str]) -> int:
        """Copy the intact pieces of another store that are not done here; returns the number of new rows."""
        theirs = [record.content for record in existing_store(other)._records() if record.intact]
        mine = {(r.key, r.version): r for r in self._records() if r.intact}
        new_rows = 0
        with opened(self.path) as file:
            file.execute("BEGIN IMMEDIATE")
            for piece in theirs:
                here = mine.get((piece.key, piece.version))
                if here is None or (piece.error is None and not here.finished):
                    _put(file, piece)
                    new_rows += len(piece.rows)
        return new_rows


def _put(file: sqlite3.Connection, stored: _Stored) -> None:
    """Write a piece; a failure never replaces rows."""
    own = (stored.cell, stored.number, stored.version)
    same = "WHERE cell = ? AND piece = ? AND version = ?"
    if (
        stored.error is not None
        and file.execute(f"SELECT 1 FROM pieces {same} AND error IS NULL", own).fetchone()
    ):
        return
    file.execute(f"DELETE FROM results {same}", own)
    file.executemany("INSERT INTO results VALUES (?, ?, ?, ?, ?, ?)", [(*own, *row) for row in stored.rows])
    values = (*stored[:-1], checksum(*stored))
    file.execute("INSERT OR REPLACE INTO pieces VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)", values)
