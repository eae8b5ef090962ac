"""How far a grid is, and how long it will take."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable


class Report:
    """Tells how far a grid is and how long it will take."""

    def __init__(self, all_settings: int, on_batch: Callable[[int, int, float], None] | None, verbose: int):
        self.all, self.on_batch, self.verbose = all_settings, on_batch, verbose
        self.count, self.start = 0, time.perf_counter()

    def done(self, settings: int) -> None:
        self.count += settings
        seconds = time.perf_counter() - self.start
        if self.on_batch is not None:
            self.on_batch(self.count, self.all, seconds)
        if self.verbose:
            left = seconds / self.count * (self.all - self.count)
            print(f"{self.count} of {self.all} fits, {seconds:.0f} s, {left:.0f} s left", file=sys.stderr)  # noqa: T201
