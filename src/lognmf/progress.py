"""Progress of long work: it runs in stages, and listeners hear of them.

`fit_grid`, `compare`, `choose_components` and every ``fit`` open stages. The parameter ``verbose`` prints
them; a `Listener` of your own may do anything else with them.
"""

from __future__ import annotations

import sys
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any

_BETWEEN = {"lognmf", "sklearn", "joblib", "contextlib"}
"""Packages whose lines may lie between that of a user and a warning."""


@dataclass(eq=False)
class Stage:
    """Work under way: how much of it is done, and how much there is, if that is known."""

    name: str
    total: int | None = None
    unit: str = ""
    at_most: bool = False  # it may end before ``total``
    done: int = 0
    note: str = ""
    result: Any = None  # what the last move has finished, such as a fitted model
    left: float | None = None  # seconds, if they are known
    failed: bool = False
    began: float = field(default_factory=time.perf_counter)

    @property
    def seconds(self) -> float:
        """Seconds so far."""
        return time.perf_counter() - self.began

    def move(self, done: int, note: str = "", *, share: float | None = None, result: Any = None) -> None:
        """Say how much is done; ``share`` of the time, if the parts of the work differ."""
        self.done, self.note, self.result = done, note, result
        if self.total and not self.at_most:
            share = done / self.total if share is None else share
            self.left = self.seconds * (1 - share) / share if share else None
        for listener in _listeners.get():
            listener.move(self)

    @property
    def count(self) -> str:
        """How much of how much is done, in words; empty where it is not known."""
        if self.total is None:
            return ""
        return f"{self.done} of {'at most ' if self.at_most else ''}{self.total} {self.unit}"


class Listener:
    """Hears of stages; a subclass overrides what it wants to hear.

    Of nested stages the outer one begins first and ends last.

    Examples
    --------
    >>> import numpy as np
    >>> from lognmf import fit_grid
    >>> from lognmf.progress import Listener, listening
    >>> class Count(Listener):
    ...     def move(self, stage):
    ...         if stage.unit == "fits":
    ...             print(stage.count)
    >>> X = np.random.default_rng(0).random((30, 8))
    >>> with listening(Count()):
    ...     rows = fit_grid("GNMF", X, {"lam": [0.1, 1.0]}, max_iter=5).rows
    2 of 2 fits
    """

    def begin(self, stage: Stage) -> None:
        """A stage begins."""

    def move(self, stage: Stage) -> None:
        """More of it is done."""

    def end(self, stage: Stage) -> None:
        """It has ended, or ``failed``."""

    def say(self, sentence: str) -> None:
        """Something worth knowing."""


_listeners: ContextVar[tuple[Listener, ...]] = ContextVar("listeners", default=())


@contextmanager
def stage(name: str, total: int | None = None, unit: str = "", *, at_most: bool = False) -> Iterator[Stage]:
    """Run a stage of the work, which begins and ends here."""
    now = Stage(name, total, unit, at_most)
    listeners = _listeners.get()
    for listener in listeners:
        listener.begin(now)
    try:
        yield now
    except BaseException:
        now.failed = True
        raise
    finally:
        for listener in listeners:
            listener.end(now)


def say(sentence: str) -> None:
    """Pass a sentence on to the listeners."""
    for listener in _listeners.get():
        listener.say(sentence)


def warn(sentence: str, kind: type[Warning] = UserWarning) -> None:
    """Warn at the user's line: the innermost one that is neither ours nor that of a library that calls us."""
    frame, level = sys._getframe(1), 2
    while frame.f_back is not None and frame.f_globals.get("__name__", "").partition(".")[0] in _BETWEEN:
        frame, level = frame.f_back, level + 1
    warnings.warn(sentence, kind, stacklevel=level)


@contextmanager
def listening(*listeners: Listener, alone: bool = False) -> Iterator[None]:
    """Let these listeners hear of the work within, next to those that do already.

    Parameters
    ----------
    *listeners : Listener
        Called in the process and thread that enters the context.
    alone : bool, default=False
        Whether the listeners of before do not hear of it.
    """
    token = _listeners.set((() if alone else _listeners.get()) + listeners)
    try:
        yield
    finally:
        _listeners.reset(token)


@contextmanager
def printed(verbose: int) -> Iterator[None]:
    """Print the stages within, if ``verbose`` and if they are not printed already."""
    if not verbose or any(isinstance(listener, Printer) for listener in _listeners.get()):
        yield
        return
    with listening(Printer(verbose)):
        yield


class Printer(Listener):
    """Prints lines on stderr: how far the work is, at most once per second unless ``verbose`` is above 1."""

    def __init__(self, verbose: int = 1) -> None:
        self.every = 1.0 if verbose == 1 else 0.0
        self.last = time.perf_counter()
        self.line = ""
        self.begun: set[str] = set()
        self.depth = 0

    def begin(self, stage: Stage) -> None:
        """Name the stage, unless one of that name was named before, or its first move will name it."""
        self.depth += 1
        if (stage.total is None or self.depth > 1) and stage.name not in self.begun:
            self.begun.add(stage.name)
            self.say(stage.name)

    def move(self, stage: Stage) -> None:
        """Print how far it is."""
        if time.perf_counter() - self.last >= self.every:
            self._print(stage)

    def end(self, stage: Stage) -> None:
        """Print how far it came, unless the last line says so."""
        self.depth -= 1
        if stage.failed:
            return
        if stage.total is None:
            if stage.note:
                self.say(f"{stage.note}, {stage.seconds:.1f} s")
        elif self.line != _position(stage):
            if self.depth:
                self.move(stage)
            else:
                self._print(stage)

    def say(self, sentence: str) -> None:
        """Print a sentence."""
        self.line = ""
        print(sentence, file=sys.stderr, flush=True)  # noqa: T201

    def _print(self, stage: Stage) -> None:
        self.last = time.perf_counter()
        left = "" if stage.left is None else f", {in_words(stage.left)} left"
        self.say(f"{_position(stage)}, {stage.seconds:.1f} s{left}")
        self.line = _position(stage)


def _position(stage: Stage) -> str:
    """Where a stage is, without the time."""
    return f"{stage.name}: {stage.count}" + (f", {stage.note}" if stage.note else "")


def in_words(seconds: float) -> str:
    """A time in seconds, minutes or hours."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"
