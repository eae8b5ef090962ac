"""Damaged stores: what comes out is what a fresh computation gives, or a refusal in words."""

import random
import sqlite3
import warnings
from collections.abc import Callable
from contextlib import closing
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple, NoReturn

import numpy as np
import pytest

from hostile.cases import Case, Defect, Kind
from lognmf import RobustLogSparseNMF, fit_grid
from lognmf.paper.run import compute
from lognmf.paper.spec import CLEAN, Data, cell
from lognmf.paper.store import StudyStore

LOOP = {"max_iter": 4, "tol": 0.0}
X = np.random.default_rng(0).random((24, 8))
MODEL = RobustLogSparseNMF(2, init="scaled", **LOOP)
GRID = {"lam": [0.1, 1.0], "gamma": [0.05, 10.0, 100.0]}
CELLS = [
    cell(Data("digits", 30), CLEAN, "GNMF", options=LOOP, grid={"lam": (0.1, 1.0)}, seeds=(0, 1)),
    cell(Data("digits", 30), CLEAN, "k-means"),
    cell(Data("digits", 30), CLEAN, "LS-NMF", options={**LOOP, "eval_every": 1}, work="curve"),
]


class Resumed(NamedTuple):
    """What came out of a store, without times, and what was said about it."""

    rows: list[dict[str, Any]]
    words: list[str]


def resume_grid(path: Path) -> Resumed:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        options = {"seeds": [0, 1], "y": [0, 1, 2] * 8, "memory": 40_000, "store": path}
        rows = fit_grid(MODEL, X, GRID, **options).rows
    return Resumed([without_time(row) for row in rows], [str(warning.message) for warning in caught])


def resume_study(path: Path) -> Resumed:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        store = StudyStore(path)
        store.check()
        compute(CELLS, store, executor="inline")
    rows = [without_time(row) for own in CELLS for row in store.rows(own)]
    rows += [arrays for own in CELLS for arrays in store.arrays(own)]
    return Resumed(rows, [str(warning.message) for warning in caught])


def without_time(row: dict[str, Any]) -> dict[str, Any]:
    rows = {"rows": [without_time(one) for one in row["rows"]]} if "rows" in row else {}
    return {name: value for name, value in (row | rows).items() if name != "seconds"}


SUBJECTS: dict[str, Callable[[Path], Resumed]] = {"rows": resume_grid, "study": resume_study}
"""How each kind of store is resumed."""


@cache
def pristine(name: str, log: bool) -> tuple[dict[str, bytes], list[dict[str, Any]]]:
    """The files of a whole store, by the ends of their names, and what is in it.

    With ``log`` as a killed process leaves them, with all that was written in the write-ahead log.
    """
    with TemporaryDirectory(prefix="lognmf-hostile-") as folder:
        path = Path(folder) / "store"
        with closing(sqlite3.connect(path)) as keeper:
            if log:
                keeper.execute("PRAGMA journal_mode=WAL")
                keeper.execute("PRAGMA user_version").fetchall()
            fresh = SUBJECTS[name](path)
            if log:
                files = {end: path.with_name(f"store{end}").read_bytes() for end in ("", "-wal")}
        return files if log else {"": path.read_bytes()}, fresh.rows


# Damage --------------------------------------------------------------------------------------


def flip(path: Path, rng: random.Random, amount: int) -> None:
    data = bytearray(path.read_bytes())
    for _ in range(amount):
        data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
    path.write_bytes(data)


def zeros(path: Path, rng: random.Random, amount: int) -> None:
    data = bytearray(path.read_bytes())
    start = rng.randrange(len(data))
    data[start : start + 40 * amount] = bytes(len(data[start : start + 40 * amount]))
    path.write_bytes(data)


def truncate(path: Path, rng: random.Random, amount: int) -> None:
    path.write_bytes(path.read_bytes()[: rng.randrange(path.stat().st_size)])


def append(path: Path, rng: random.Random, amount: int) -> None:
    path.write_bytes(path.read_bytes() + rng.randbytes(100 * amount))


def empty(path: Path, rng: random.Random, amount: int) -> None:
    path.write_bytes(b"")


def text(path: Path, rng: random.Random, amount: int) -> None:
    path.write_text("dear diary, " * 10 * amount)


def folder(path: Path, rng: random.Random, amount: int) -> None:
    path.unlink()
    path.mkdir()


def closed(path: Path, rng: random.Random, amount: int) -> None:
    path.chmod(0o444)


def gone(path: Path, rng: random.Random, amount: int) -> None:
    path.unlink()


FILES = (flip, zeros, truncate, append, empty, text, folder, closed, gone)
WORDLESS = {
    "nothing": "SELECT 1",
    "rows deleted": "DELETE FROM entries WHERE rowid % {n} = 0",
    "rows in another order": "UPDATE entries SET rowid = -rowid",
}
EDITS = {
    "a digit": "UPDATE entries SET value = replace(value, '.{n}', '.9') WHERE value LIKE '%.{n}%'",
    "a number": "UPDATE entries SET value = json_set(value, '$.objective', {n}.5) WHERE rowid > {n}",
    "arrays": "UPDATE entries SET arrays = substr(arrays, {n})",
    "values swapped": "UPDATE entries SET value = (SELECT max(value) FROM entries WHERE rowid <= {n})",
    "a version": "UPDATE entries SET version = version || '{n}'",
    "a checksum": "UPDATE entries SET checksum = substr(checksum, {n})",
    "a key": "UPDATE entries SET key = replace(key, '1', '{n}')",
    "a type": "UPDATE entries SET value = {n}.5",
    "no text": "UPDATE entries SET value = CAST(x'ff0{n}' AS TEXT)",
}
STATEMENTS = {
    "a table dropped": "DROP TABLE entries",
    "about": "UPDATE about SET value = replace(value, '{n}', '9')",
    "about deleted": "DELETE FROM about",
    "a table of somebody else": "CREATE TABLE mine (x)",
}
"""Nothing need be said of the first, a warning must follow the second, the third may be refused."""

DAMAGES = [*WORDLESS, *EDITS, *STATEMENTS, *(damage.__name__ for damage in FILES)]


def damage(case: Case, path: Path) -> bool:
    """Damage a store; whether rows were changed in it."""
    name, rng = case["damage"], random.Random(case["place"])
    statement = (WORDLESS | EDITS | STATEMENTS).get(name)
    if statement is None:
        target = path.with_name("store-wal") if case["log"] and case["place"] % 2 else path
        next(do for do in FILES if do.__name__ == name)(target, rng, case["amount"])
        return False
    if name == "arrays" and case["store"] == "rows":
        statement = "SELECT 1"
    with closing(sqlite3.connect(path)) as file, file:
        before = _content(file)
        file.execute(statement.format(n=1 + rng.randrange(1, 5)))
        told = name in EDITS and name != "a version"  # of another version no entry counts
        return told and _content(file) != before


def _content(file: sqlite3.Connection) -> list[Any]:
    file.text_factory = bytes
    return file.execute("SELECT * FROM entries").fetchall()


def broken(promise: str) -> NoReturn:
    raise Defect(promise)


# The check -----------------------------------------------------------------------------------


def check(case: Case, folder: Path) -> str:
    files, fresh = pristine(case["store"], case["log"])
    path = folder / "store"
    for end, content in files.items():
        path.with_name(f"store{end}").write_bytes(content)
    changed = damage(case, path)
    before = _bytes(path)
    resume = SUBJECTS[case["store"]]
    try:
        found = resume(path)
    except ValueError as error:
        return _refusal(error, path, before)
    if not same_rows(found.rows, fresh):
        broken(f"other numbers came out, with the words {found.words}")
    if changed and not found.words:
        broken("rows were changed, and nothing was said")
    if not same_rows(resume(path).rows, fresh):
        broken("other numbers came out the second time")
    return f"resumed {'with a word' if found.words else 'silently'}"


def _refusal(error: ValueError, path: Path, before: bytes | None) -> str:
    message = str(error)
    if str(path) not in message or "\n" in message or not message.endswith("."):
        broken(f"refused without naming the file in a sentence: {message}")
    if before is not None and _bytes(path) != before and not path.with_name("store-wal").exists():
        broken("refused, but changed")
    words = ("another run", "something else", "cannot be used as a store")
    word = next((word for word in words if word in message), None)
    if word is None:
        broken(f"refused for another reason: {message}")
    return f"refused: {word}"


def _bytes(path: Path) -> bytes | None:
    return path.read_bytes() if path.is_file() else None


def same_rows(found: list[dict[str, Any]], fresh: list[dict[str, Any]]) -> bool:
    """Up to rounding: its last digits depend on which fits share a batch."""
    if [row.keys() for row in found] != [row.keys() for row in fresh]:
        return False
    pairs = [(a[name], b[name]) for a, b in zip(found, fresh, strict=True) for name in a]
    return all(_close(a, b) for a, b in pairs)


def _close(a: Any, b: Any) -> bool:
    if isinstance(a, float | np.ndarray):
        return bool(np.allclose(a, b, rtol=1e-6 if isinstance(a, np.ndarray) else 1e-9, atol=1e-12))
    if isinstance(a, list) and a and isinstance(a[0], dict):
        return same_rows(a, b)
    return a == pytest.approx(b, rel=1e-9) if isinstance(a, list) else a == b


STORES = Kind(
    "stores",
    {
        "store": list(SUBJECTS),
        "damage": DAMAGES,
        "log": [False, True],
        "amount": [1, 3, 30],
        "place": list(range(500)),
    },
    check,
    soak=2000,
    short=120,
)
