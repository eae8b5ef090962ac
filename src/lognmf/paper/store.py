"""The results of a study, stored in a SQLite file as they come."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from lognmf.grid.store import Store
from lognmf.paper.spec import Cell, Piece

_FORMAT = {"format": "lognmf study 4"}
_FAILED = " failed"
_VIEW = """
CREATE VIEW rows AS
SELECT
    json_extract(entries.value, '$.cell.data.name') AS data,
    json_extract(entries.value, '$.cell.noise.kind') AS noise,
    json_extract(entries.value, '$.cell.noise.level') AS level,
    json_extract(entries.value, '$.cell.noise.replacement') AS replacement,
    json_extract(entries.value, '$.cell.model') AS model,
    json_extract(entries.value, '$.cell.work') AS work,
    json_extract(fit.value, '$.seed') AS seed, json_extract(fit.value, '$.accuracy') AS accuracy,
    json_extract(fit.value, '$.nmi') AS nmi, json_extract(fit.value, '$.purity') AS purity,
    json_extract(fit.value, '$.normalized_cut') AS normalized_cut,
    json_extract(fit.value, '$.objective') AS objective,
    fit.value AS row, entries.key AS key, version
FROM entries, json_each(entries.value, '$.rows') AS fit
"""


@dataclass(frozen=True)
class Outcome:
    """The result of a piece: its rows, or the error that it failed with.

    ``rows`` are plain JSON values, one row per fit. ``environment`` names the machine, the device and the
    versions that computed them. ``arrays`` holds the factors of a followed fit.
    """

    rows: Sequence[Mapping[str, Any]]
    seconds: float
    environment: Mapping[str, Any]
    error: str | None = None
    arrays: Mapping[str, np.ndarray] = field(default_factory=dict)


class StudyStore:
    """The results of a study in one SQLite file, which is made if it does not exist.

    A piece is written in one transaction: after a kill it is there as a whole or not at all.
    Several runs may use the same file at once, and files of several machines can be merged.
    A failure is stored with its message, and counts until the piece succeeds. The view ``rows`` shows
    the main columns of all rows to any SQLite tool.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        self._store = Store(self.path, _FORMAT, _VIEW)

    def put(self, piece: Piece, outcome: Outcome) -> None:
        """Store the outcome of a piece. A failure never replaces rows."""
        value = {
            "cell": piece.cell.to_dict(),
            "rows": list(outcome.rows),
            "error": outcome.error,
            "seconds": float(outcome.seconds),
            "made": dict(outcome.environment),
        }
        ending = "" if outcome.error is None else _FAILED
        self._store.put([(_key(piece) + ending, value, outcome.arrays)])

    def _finished(self, prefix: str = "") -> dict[str, Any]:
        """The pieces with rows whose keys begin with ``prefix``, in order."""
        values = self._store.values(prefix)
        return {key: values[key] for key in sorted(values) if not key.endswith(_FAILED)}

    def check(self) -> None:
        """Read everything once: a warning names the results that are damaged."""
        self._store.values()

    def is_done(self, piece: Piece) -> bool:
        """Whether the rows of a piece are there."""
        return _key(piece) in self._finished(_key(piece))

    def done(self) -> dict[str, set[int]]:
        """Numbers of the finished pieces by the key of their cell."""
        numbers: dict[str, set[int]] = {}
        for key in self._finished():
            cell, number = key.split()
            numbers.setdefault(cell, set()).add(int(number))
        return numbers

    def rows(self, cell: Cell) -> list[dict[str, Any]]:
        """The rows of a cell's finished pieces, in their order."""
        return [row for piece in self._finished(cell.key).values() for row in piece["rows"]]

    def arrays(self, cell: Cell) -> list[dict[str, np.ndarray]]:
        """The arrays that are stored with the pieces of a cell."""
        return [arrays for key in self._finished(cell.key) if (arrays := self._store.arrays(key))]

    def scores(self) -> Iterator[tuple[str, dict[str, Any], dict[str, Any]]]:
        """Every row of a grid with the key and the content of its cell."""
        for key, piece in self._finished().items():
            if piece["cell"]["work"] == "grid":
                yield from ((key.split()[0], piece["cell"], row) for row in piece["rows"])

    def failures(self) -> list[tuple[dict[str, Any], str]]:
        """The cells with pieces that have failed and not succeeded since, each with its message."""
        values = self._store.values()
        failed = [key for key in sorted(values) if key.endswith(_FAILED)]
        return [
            (values[key]["cell"], values[key]["error"])
            for key in failed
            if key.removesuffix(_FAILED) not in values
        ]

    def environments(self) -> list[dict[str, Any]]:
        """The machines, devices and versions that the rows were computed with, each once."""
        texts = {json.dumps(piece["made"], sort_keys=True) for piece in self._finished().values()}
        return [json.loads(text) for text in sorted(texts)]

    def seconds(self) -> float:
        """Time of all pieces together."""
        return sum(piece["seconds"] for piece in self._store.values().values())

    def merge(self, other: str | os.PathLike[str]) -> int:
        """Copy the pieces of another store that are not here; returns the number of new rows."""
        if not Path(other).is_file():
            msg = f"{other} is not there: give the study.db of another run."
            raise ValueError(msg)
        theirs, here = StudyStore(other)._store, self._store.values()
        new = {key: value for key, value in theirs.values().items() if key not in here}
        self._store.put((key, value, theirs.arrays(key)) for key, value in new.items())
        return sum(len(value["rows"]) for value in new.values())


def _key(piece: Piece) -> str:
    """The key of a piece; in their order the pieces of a cell are sorted."""
    return f"{piece.cell.key} {piece.number:06d}"
