"""The machine and the package versions that results were computed with."""

from __future__ import annotations

import os
import platform
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

_PACKAGES = ("lognmf", "numpy", "scipy", "scikit-learn")


def versions() -> dict[str, str]:
    """Versions of Python and of the packages that compute; a source folder on the path has none."""
    return {"python": platform.python_version()} | {name: _version(name) for name in _PACKAGES}


def package_version() -> str:
    """The version of lognmf: stored results of other versions are not used."""
    return _version("lognmf")


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
