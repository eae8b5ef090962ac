"""The multiplicative update as one kernel, where the array's device has one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from lognmf.core.arrays import Array, kernels
from lognmf.core.terms.l1 import L1Halves
from lognmf.core.terms.laplacian import GraphHalves
from lognmf.core.terms.log import LogHalves
from lognmf.core.terms.protocol import FitHalves, Halves

_SLOPES: dict[type, str] = {LogHalves: "log", L1Halves: "l1"}
"""Sparsity penalties that the kernel knows."""


def multiplied(F: Array, terms: Sequence[Halves]) -> Array | None:
    """``F · Σneg / Σpos`` in one pass, or None: no kernel for this device, or for one of the terms."""
    compiled = kernels(F)
    if compiled is None:
        return None
    options: dict[str, Any] = {}
    for term in terms:
        if isinstance(term, FitHalves):
            found = {"A": term.A, "P": term.P, "taken": term.taken, "kept": term.kept}
        elif isinstance(term, LogHalves | L1Halves):
            found = {"slope": _SLOPES[type(term)], "half": term.half}
        elif isinstance(term, GraphHalves):
            found = {"graph": (term.W, term.degree, term.weight)}
        else:
            return None
        if options.keys() & found.keys():
            return None
        options |= found
    return compiled.update(F, **options) if "A" in options else None
