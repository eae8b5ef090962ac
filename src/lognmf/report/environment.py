"""The machine and the package versions that results were computed with."""

from __future__ import annotations

import hashlib
import os
import platform
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

_PACKAGES = ("lognmf", "numpy", "scipy", "scikit-learn")
_SHOW_ONLY = ("cli", "plots", "report")
"""Parts of the package that change no number."""


def versions() -> dict[str, str]:
    """Versions of Python and of the packages that compute; a source folder on the path has none."""
    return {"python": platform.python_version()} | {name: _version(name) for name in _PACKAGES}


@cache
def code_version() -> str:
    """The version of lognmf with a checksum of its code, as in 0.1.0+3f2a9c1b, for rows that are stored.

    All states of a development checkout have one version: the checksum tells them apart, and nobody has to
    remember to raise a number. A release has the same checksum on every machine. Code that only shows
    results does not count; code of models outside the package is not seen.
    """
    root, total = Path(__file__).parents[1], hashlib.sha256()
    for file in sorted(path.relative_to(root) for path in root.rglob("*.py")):
        if file.parts[0] not in _SHOW_ONLY:
            total.update(f"{file.as_posix()}\0".encode() + (root / file).read_bytes().replace(b"\r\n", b"\n"))
    return f"{_version('lognmf')}+{total.hexdigest()[:8]}"


def machine() -> str:
    """System, processor, cores and memory in one line, as far as the system reports them."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    parts = (
        f"{platform.system()} {platform.machine()}",
        _processor(),
        f"{cores} core{'s' * (cores != 1)}",
        _memory(),
    )
    return ", ".join(part for part in parts if part.strip())


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "not installed"


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return platform.processor()
    names = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(names, platform.processor())


def _memory() -> str:
    try:
        size = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):
        return ""
    return f"{size / 2**30:.0f} GiB of memory"
