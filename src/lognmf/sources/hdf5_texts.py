"""Texts of an HDF5 file, tried in a process of their own: the library reserves what a damaged length claims.

This file is both sides: `check_texts` starts it as a program.
"""

from __future__ import annotations

import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

_TOO_MUCH = 3
"""Exit code of the program if the texts need more memory than they may."""

_AT_ONCE = 10_000
"""Texts that are read together."""

_SECONDS, _BYTES_PER_SECOND = 5, 10_000_000
"""Processor seconds that the program may take, and for how many bytes of the file one more: in some damaged
files the library goes round in circles."""


def check_texts(path: Path, most: int) -> None:
    """Refuse a file whose texts need more than ``most`` bytes of memory, or cannot be read to their end."""
    # -P: the modules next to this file must not pass for those of Python.
    ran = subprocess.run([sys.executable, "-P", __file__, str(path), str(most)], capture_output=True)
    if ran.returncode == _TOO_MUCH or ran.returncode < 0:  # a signal: it was killed, or crashed
        from lognmf.reading import LIMIT_VARIABLE  # the program needs nothing but h5py

        msg = (
            f"its texts are damaged, or need more than {most} bytes of memory; if you trust it, set the "
            f"environment variable {LIMIT_VARIABLE} to more"
        )
        raise ValueError(msg)


def _main(path: str, most: str) -> int:
    import h5py

    _limit(int(most), _SECONDS + Path(path).stat().st_size // _BYTES_PER_SECOND)
    with suppress(OSError, RuntimeError), h5py.File(path, "r") as file:
        _try_texts(file)
        file.visititems(lambda _, node: _try_texts(node))
    return 0


def _limit(most: int, seconds: int) -> None:
    """Let this process have ``most`` bytes more than it has, on Linux, and so many processor seconds."""
    if sys.platform == "win32":
        return
    import resource

    resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds))
    if sys.platform == "linux":
        pages = int(Path("/proc/self/statm").read_text().split()[0])
        now = pages * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (now + most, now + most))


def _try_texts(node: Any) -> None:
    """End the program if the texts of a node need too much; other damage is told where they are needed."""
    try:
        _read_texts(node)
    except Exception as error:
        if isinstance(error, MemoryError) or "alloc" in str(error):  # HDF5's words for it vary
            sys.exit(_TOO_MUCH)


def _read_texts(node: Any) -> None:
    """Read all attributes and, of a dataset whose entries have lengths of their own, all entries."""
    list(node.attrs.values())
    if getattr(getattr(node, "dtype", None), "hasobject", False):
        for start in range(0, node.shape[0] if node.shape else 1, _AT_ONCE):
            node[start : start + _AT_ONCE] if node.shape else node[()]


if __name__ == "__main__":
    sys.exit(_main(*sys.argv[1:]))
