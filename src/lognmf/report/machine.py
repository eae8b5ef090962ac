"""The machine that something was computed on."""

from __future__ import annotations

import os
import platform
from pathlib import Path

__all__ = ["machine"]


def machine() -> str:
    """System, processor, cores and memory in one line, as far as they are known.

    Returns
    -------
    str

    Examples
    --------
    >>> "core" in machine()
    True
    """
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    facts = [
        f"{platform.system()} {platform.machine()}",
        _processor(),
        f"{cores} core{'s' * (cores != 1)}",
        _memory(),
    ]
    return ", ".join(fact for fact in facts if fact.strip())


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
