"""How far a fit has come, in a folder from which another process can go on after this one has died.

That is U, V, the weights and the number of iterations. A fit is resumed as one that starts from these.
"""

from __future__ import annotations

import json
import os
import shutil
import time
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from lognmf.blocks.cluster import WorkerRows
from lognmf.core.arrays import Array, like, to_numpy
from lognmf.core.rows import Rows
from lognmf.files import new_file
from lognmf.reading import reason

ABOUT, FACTORS = "about.json", "factors.npz"
"""What the fit in a folder belongs to, and how far it has come."""

SHARE = 20
"""A fit is written when it has run this many times as long as writing it takes."""


@dataclass(frozen=True, eq=False)
class Resumed:
    """A fit so far: factors (p, 1, k) and (n, 1, k) of ``X / unit``, chosen weights, iterations made."""

    U: Array
    V: Rows
    weights: dict[str, float]
    iteration: int


class Checkpoint:
    """One call of `fit`, in a folder that is made if it does not exist; ``about`` says which call it is."""

    def __init__(self, folder: str | os.PathLike[str], about: Mapping[str, Any]) -> None:
        self.folder = Path(folder).resolve()
        self.written, self.cost = time.perf_counter(), 0.0
        path = self.folder / ABOUT
        if path.exists():
            self._check(path, dict(about))
            return
        if self.folder.exists() and (not self.folder.is_dir() or any(self.folder.iterdir())):
            msg = f"{self.folder} is no checkpoint of a fit: give an empty or a new folder as checkpoint."
            raise ValueError(msg)
        with new_file(path) as fresh:
            fresh.write_text(json.dumps(about), encoding="utf-8")

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

    @property
    def due(self) -> bool:
        """Whether it is time to write."""
        return time.perf_counter() - self.written >= SHARE * self.cost

    def write(self, now: Resumed) -> None:
        """Write the fit as it is; codes that are on workers are written by these."""
        began, codes = time.perf_counter(), f"codes-{now.iteration:08d}"
        if isinstance(now.V, WorkerRows):
            now.V.written(self.folder / codes)
            arrays: dict[str, Any] = {"U": to_numpy(now.U)}
        else:
            arrays = {"U": to_numpy(now.U), "V": to_numpy(now.V)}
        facts: dict[str, Any] = {"weights": now.weights, "iteration": now.iteration, "codes": codes}
        with new_file(self.folder / FACTORS, force=True) as fresh:
            np.savez(fresh, facts=np.array(json.dumps(facts)), **arrays)
        for older in self.folder.glob("codes-*"):
            if older.name != codes:
                shutil.rmtree(older, ignore_errors=True)
        self.written, self.cost = time.perf_counter(), time.perf_counter() - began

    def read(self, data: Any) -> Resumed | None:
        """The fit as it was written; None if it never was."""
        path = self.folder / FACTORS
        if not path.exists():
            return None
        try:
            with path.open("rb") as stream, np.load(stream, allow_pickle=False) as file:
                facts, U = json.loads(str(file["facts"])), like(file["U"], data.pattern)
                if data.distributed:
                    V: Rows = WorkerRows.read(data, self.folder / facts["codes"])
                else:
                    V = like(file["V"], data.pattern)
                return Resumed(U, V, facts["weights"], facts["iteration"])
        except (ValueError, KeyError, OSError, zipfile.BadZipFile) as error:
            msg = f"{path} is damaged ({reason(error)}): remove {path.parent} and start again."
            raise ValueError(msg) from error
