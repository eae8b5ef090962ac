"""Fits under way in a folder, from which another process can go on after this one has died.

A call of `fit` may make several fits, if it chooses weights. Each has a file: how far it has come, or how it
ended. Files appear complete or not at all, and are read without pickle.
"""

from __future__ import annotations

import json
import os
import shutil
import time
import zipfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import array_api_compat
import numpy as np

from lognmf.core.arrays import Array, like, namespace, to_numpy
from lognmf.core.rule import Solution, State
from lognmf.environment import code_version
from lognmf.files import new_file
from lognmf.models.identity import hash_of, key_of, plain
from lognmf.models.on_workers import Remote, RemoteCodes
from lognmf.reading import reason

ABOUT = "about.json"
"""What the fits in a folder belong to."""

NOWHERE = -1
"""The place in a file of codes that are in files of their own."""

SHARE = 20
"""A fit is written when it has run this many times as long as writing it takes."""


def identity(data: Any) -> str:
    """A name that only equal data share; they are read once."""
    if isinstance(data, Remote):
        hashes = data.source.client.gather(data.each(hash_of, data.source.blocks))
    else:
        matrices = (matrix for _, block in data.blocks() for matrix in (block.X, block.M))
        hashes = [hash_of(matrix) for matrix in matrices if matrix is not None]
    return key_of([list(data.shape), *hashes])


class Checkpoint:
    """The fits of one call of `fit`, in a folder that is made if it does not exist."""

    def __init__(self, folder: str | os.PathLike[str], about: Mapping[str, Any]) -> None:
        self.folder, self.fits = Path(folder).resolve(), 0
        path = self.folder / ABOUT
        if path.exists():
            self._check(path, dict(about))
            return
        if self.folder.exists() and (not self.folder.is_dir() or any(self.folder.iterdir())):
            msg = f"{self.folder} is no checkpoint of a fit: give an empty or a new folder as checkpoint."
            raise ValueError(msg)
        with new_file(path) as fresh:
            fresh.write_text(json.dumps(about), encoding="utf-8")

    @classmethod
    def of(
        cls, folder: str | os.PathLike[str], model: Any, data: Any, given: Mapping[str, Any]
    ) -> Checkpoint:
        """That of a model's fit to data, from given first factors or none."""
        parameters = {name: value for name, value in model.get_params().items() if name != "verbose"}
        about: dict[str, Any] = {"version": code_version(), "model": type(model).__name__}
        about["place"] = "workers" if isinstance(data, Remote) else "one process"
        about |= {f"parameter {name}": plain(value) for name, value in parameters.items()}
        about |= {name: plain(value) for name, value in given.items()}
        return cls(folder, about | {"data": identity(data)})

    def _check(self, path: Path, about: Mapping[str, Any]) -> None:
        """Refuse a folder of another fit."""
        try:
            stored = json.loads(path.read_text(encoding="utf-8"))
            differences = [name for name in {**stored, **about} if stored.get(name) != about.get(name)]
        except (ValueError, TypeError, AttributeError) as error:
            msg = f"{path} is damaged: remove {self.folder}, or give another folder as checkpoint."
            raise ValueError(msg) from error
        if differences:
            msg = (
                f"{self.folder} holds the checkpoint of another fit, which differs in "
                f"{', '.join(differences)}: give another folder as checkpoint, or remove this one."
            )
            raise ValueError(msg)

    def begun(self, pattern: Array) -> tuple[Array, Array] | None:
        """Where the first fit was written: stand-ins for its first factors, V without rows; else None."""
        path = self.folder / _name(0)
        if not path.exists():
            return None
        with _opened(path) as file:
            U = like(file["state 0"], pattern)
        return U, U[:0, ...]

    def once(self, name: str, compute: Callable[[], dict[str, Any]]) -> dict[str, Any]:
        """What an earlier process computed under this name, or else what ``compute`` returns."""
        path = self.folder / f"{name}.json"
        if not path.exists():
            with new_file(path) as fresh:
                fresh.write_text(json.dumps(compute()), encoding="utf-8")
        try:
            return json.loads(path.read_text(encoding="utf-8"))
        except ValueError as error:
            raise _damaged(path, error) from error

    def next_fit(self, data: Any) -> KeptFit:
        """The next fit of this call."""
        self.fits += 1
        return KeptFit(self.folder / _name(self.fits - 1), data)


def _name(number: int) -> str:
    return f"fit-{number:03d}.npz"


@contextmanager
def _opened(path: Path) -> Iterator[Any]:
    """The arrays in a file; errors inside say that it is damaged."""
    try:
        with path.open("rb") as stream, np.load(stream, allow_pickle=False) as file:
            yield file
    except (ValueError, KeyError, OSError, zipfile.BadZipFile) as error:
        raise _damaged(path, error) from error


def _damaged(path: Path, error: Exception) -> ValueError:
    return ValueError(f"{path} is damaged ({reason(error)}): remove {path.parent} and start again.")


class KeptFit:
    """One fit in a checkpoint."""

    def __init__(self, path: Path, data: Any) -> None:
        self.path, self.data = path, data
        self.written, self.cost = time.perf_counter(), 0.0
        self.older: Path | None = None  # the codes of the last time, where they are on workers

    def __call__(self, solution: Callable[[], Solution]) -> State | None:
        """Write a fit as it is, where it is time to; codes on workers are read from the folder after that."""
        if time.perf_counter() - self.written < SHARE * self.cost:
            return None
        return self.write(solution(), finished=False)

    def write(self, solution: Solution, *, finished: bool) -> State:
        """Write a fit; its state, with codes on workers as they were written."""
        began = time.perf_counter()
        U, V, *aux = state = (solution.state.U, solution.state.V, *solution.state.aux)
        facts: dict[str, Any] = {"finished": finished, "reason": solution.reason}
        if isinstance(V, RemoteCodes):
            number = 1 if self.older is None else int(self.older.name.rpartition("-")[2]) + 1
            folder = self.path.with_name(f"{self.path.stem}-{number:06d}")
            V, facts["codes"] = V.written(folder), folder.name
        # The working point is often the best one: the same arrays are written once.
        first = {id(F): place for place, F in reversed(list(enumerate(state)))}
        if "codes" in facts:
            first[id(solution.state.V)] = NOWHERE
        facts["places"] = [first[id(F)] for F in state]
        # What a rule on another device keeps on the CPU goes back there.
        facts["here"] = [place for place, F in enumerate(state) if isinstance(F, np.ndarray)]
        arrays: dict[str, Any] = {
            f"state {place}": to_numpy(state[place]) for place in {*first.values()} - {NOWHERE}
        }
        arrays |= {"objective": solution.objective, "n_iter": solution.n_iter}
        arrays["facts"] = np.array(json.dumps(facts))
        arrays |= {f"history {name}": column for name, column in solution.history.items()}
        with new_file(self.path, force=True) as fresh:
            np.savez(fresh, **arrays)
        if "codes" in facts:
            if self.older is not None:
                shutil.rmtree(self.older, ignore_errors=True)
            self.older = folder
        self.written, self.cost = time.perf_counter(), time.perf_counter() - began
        return State(U, V, tuple(aux))

    def read(self) -> tuple[Solution, bool] | None:
        """The fit as it was written, and whether it had finished; None if it never was."""
        if not self.path.exists():
            return None
        with _opened(self.path) as file:
            facts = json.loads(str(file["facts"]))
            places = {*facts["places"]} - {NOWHERE}
            written = {place: file[f"state {place}"] for place in places}
            here = {*facts["here"]}
            arrays: dict[int, Any] = {
                place: F if place in here else self._placed(F) for place, F in written.items()
            }
            U, V, *aux = (arrays.get(place) for place in facts["places"])
            if "codes" in facts:
                self.older = self.path.with_name(facts["codes"])
                V = RemoteCodes.read(self.data, self.older, *arrays[0].shape[1:])
            history = {name: file[f"history {name}"] for name in ("iteration", "seconds", "objective")}
            numbers = file["objective"], history, file["n_iter"]
            return Solution(State(U, V, tuple(aux)), *numbers, facts["reason"]), facts["finished"]

    def _placed(self, F: np.ndarray) -> Any:
        """An array of a state where the factors live, in the type in which it was written."""
        pattern = self.data.pattern
        if isinstance(pattern, np.ndarray):
            return F
        return namespace(pattern).asarray(F, device=array_api_compat.device(pattern))


def without_work(rule: Any, solution: Solution) -> Solution:
    """A finished fit without what only further steps would need."""
    U, V, aux = solution.state.U, solution.state.V, solution.state.aux
    return replace(solution, state=State(U, V, aux[:1])) if hasattr(rule, "problem") else solution
