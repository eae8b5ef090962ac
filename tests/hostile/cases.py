"""Kinds of cases: how one is drawn, checked, repeated and made as simple as it can be and still fail."""

import json
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import numpy as np

Case = dict[str, Any]


class Defect(AssertionError):
    """A promise that a case found broken."""


class Kind(NamedTuple):
    """One way to be hostile: each case picks one of the values offered under each name."""

    name: str
    choices: Mapping[str, Sequence[Any]]
    """Values that JSON can hold, the simplest first: a failing case is simplified towards the front."""
    check: Callable[[Case, Path], str]
    """Checks a case in an empty folder: returns its class, raises where a promise is broken."""
    soak: int
    """Cases of a whole soak."""
    short: int
    """Cases of the run in the tests."""
    chunk: int = 100
    """Cases of one process of a soak."""


def draw(kind: Kind, seed: int, number: int) -> Case:
    """Case `number` of a run with this seed."""
    rng = np.random.default_rng([seed, number, zlib.crc32(kind.name.encode())])
    return {name: values[int(rng.integers(len(values)))] for name, values in kind.choices.items()}


def outcome(kind: Kind, case: Case) -> tuple[str, str | None]:
    """The class of a case, and what is wrong with it, if anything."""
    with TemporaryDirectory(prefix="lognmf-hostile-") as folder:
        try:
            return kind.check(case, Path(folder)), None
        except Exception as error:  # whatever escapes is what we look for
            return "defect", f"{type(error).__name__}: {error}"


def simplified(kind: Kind, case: Case) -> Case:
    """The simplest case that can be reached from this one by single steps and fails in the same way."""
    fault = _fault(outcome(kind, case)[1])
    simpler: Case | None = case
    while simpler is not None:
        case = simpler
        simpler = next((c for c in _simpler(kind, case) if _fault(outcome(kind, c)[1]) == fault), None)
    return case


def _simpler(kind: Kind, case: Case) -> Iterator[Case]:
    for name, values in kind.choices.items():
        for value in values[: list(values).index(case[name])]:
            yield case | {name: value}


def _fault(error: str | None) -> str | None:
    """What two messages about the same fault share: the type and the words before the first figure."""
    if error is None:
        return None
    return error[: next((i for i, letter in enumerate(error) if letter.isdigit()), 60)]


def line(kind: Kind, case: Case) -> str:
    """The command that repeats a case; values that are the simplest are left out."""
    values = {name: value for name, value in case.items() if value != kind.choices[name][0]}
    return f"PYTHONPATH=tests python -m hostile repeat {kind.name} '{json.dumps(values)}'"


def completed(kind: Kind, case: Case) -> Case:
    """The case that `line` gives in short."""
    return {name: case.get(name, values[0]) for name, values in kind.choices.items()}
