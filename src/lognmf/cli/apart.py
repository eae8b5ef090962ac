"""MATLAB and Matrix Market files, read in a process of their own: SciPy's readers crash on damaged ones.

This file is both sides: `read_apart` starts it as a program, which leaves plain arrays in a folder.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import scipy.io
import scipy.sparse as sp

_REFUSED, _NOT_IMPLEMENTED, _NO_MEMORY = 3, 4, 5
"""Exit codes of the program."""
_FAILED, _KILLED = 1, -9
"""Those of a Python that cannot start the program, and of one that was killed; any other but 0 is a crash."""


def read_apart(path: Path) -> dict[str, Any]:
    """The matrices of a file by their names; that of an mtx file is called X."""
    with TemporaryDirectory() as folder:
        # -P: the modules next to this file must not pass for those of Python.
        program = [sys.executable, "-P", __file__, str(path), folder]
        ran = subprocess.run(program, capture_output=True, text=True, errors="replace")
        if ran.returncode == _NOT_IMPLEMENTED:
            raise NotImplementedError(ran.stdout)
        if ran.returncode == _NO_MEMORY:
            raise MemoryError(ran.stdout)
        if ran.returncode:
            told = {
                _REFUSED: ran.stdout,
                _FAILED: f"the process that reads it failed: {ran.stderr.strip().rpartition(chr(10))[2]}",
                _KILLED: "the process that reads it was killed: the memory may not have been enough",
            }
            raise ValueError(told.get(ran.returncode, "it is damaged, and SciPy's reader crashed on it"))
        return _take(Path(folder))


def _take(folder: Path) -> dict[str, Any]:
    """What `_leave` left."""
    found = {}
    for i, name in enumerate(np.load(folder / "names.npy", allow_pickle=False).tolist()):
        dense = folder / f"{i}.npy"
        found[name] = (
            np.load(dense, allow_pickle=False) if dense.exists() else sp.load_npz(folder / f"{i}.npz")
        )
    return found


def _leave(matrices: dict[str, Any], folder: Path) -> None:
    """Write matrices as plain files; text in MATLAB's cells becomes text, and structures are left out."""
    names: list[str] = []
    for name, M in matrices.items():
        if sp.issparse(M):
            sp.save_npz(folder / f"{len(names)}.npz", M, compressed=False)
        elif isinstance(M, np.ndarray) and M.dtype.kind != "V":
            if M.dtype == object:
                M = np.array([str(np.squeeze(cell)) for cell in M.reshape(-1)]).reshape(M.shape)
            np.save(folder / f"{len(names)}.npy", np.asarray(M), allow_pickle=False)
        else:
            continue
        names.append(name)
    np.save(folder / "names.npy", np.array(names, dtype=str))


def _main(path: str, folder: str) -> int:
    try:
        content = (
            {"X": scipy.io.mmread(path)}
            if path.lower().endswith((".mtx", ".mtx.gz"))
            else scipy.io.loadmat(path)
        )
        _leave({name: M for name, M in content.items() if not name.startswith("__")}, Path(folder))
    except Exception as error:
        sys.stdout.write(str(error) or type(error).__name__)
        codes = {NotImplementedError: _NOT_IMPLEMENTED, MemoryError: _NO_MEMORY}
        return next((code for kind, code in codes.items() if isinstance(error, kind)), _REFUSED)
    return 0


if __name__ == "__main__":
    sys.exit(_main(*sys.argv[1:]))
