"""What a step of coordinate descent asks of the loops of an array library."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple


class Loops(NamedTuple):
    """The loops for one penalty, documented in ``compiled.py``; ``tensors.py`` has those for torch."""

    sweep: Callable[..., Any]
    sphere_sweep: Callable[..., Any]
    penalty_sum: Callable[..., Any]
    scale_derivatives: Callable[..., Any]
