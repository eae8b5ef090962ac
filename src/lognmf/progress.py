"""What long work is doing, told to whoever listens: printed lines, or bars of the command line."""

from __future__ import annotations

import sys
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Protocol

OnBatch = Callable[[int, int, float], None]
"""``(done, of how many, seconds so far)``."""

_BETWEEN = {"lognmf", "sklearn", "joblib", "contextlib"}
"""Packages whose lines may lie between that of a user and a warning."""


@dataclass(eq=False)
class Stage:
    """Work under way: how much of it is done, and how much there is, if that is known."""

    name: str
    total: int | None = None
    unit: str = ""
    at_most: bool = False  # it may end before ``total``
    on_batch: OnBatch | None = None
    done: int = 0
    note: str = ""
    left: float | None = None  # seconds, if they are known
    failed: bool = False
    began: float = field(default_factory=time.perf_counter)

    @property
    def seconds(self) -> float:
        """Seconds so far."""
        return time.perf_counter() - self.began

    def move(self, done: int, note: str = "", *, share: float | None = None) -> None:
        """Tell how much is done; ``share`` of the time, if the parts of the work differ."""
        self.done, self.note, seconds = done, note, self.seconds
        if self.total and not self.at_most:
            share = done / self.total if share is None else share
            self.left = seconds * (1 - share) / share if share else None
        if self.on_batch is not None:
            self.on_batch(done, self.total or 0, seconds)
        for listener in _listeners.get():
            listener.move(self)

    @property
    def count(self) -> str:
        """How much of how much is done, in words; empty where it is not known."""
        if self.total is None:
            return ""
        return f"{self.done} of {'at most ' if self.at_most else ''}{self.total} {self.unit}"


class Listener(Protocol):
    """Who is told; of nested stages the outer one begins first and ends last."""

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
def stage(
    name: str,
    total: int | None = None,
    unit: str = "",
    *,
    at_most: bool = False,
    on_batch: OnBatch | None = None,
) -> Iterator[Stage]:
    """A stage of the work, which begins and ends here."""
    now = Stage(name, total, unit, at_most, on_batch)
    told = _listeners.get()
    for listener in told:
        listener.begin(now)
    try:
        yield now
    except BaseException:
        now.failed = True
        raise
    finally:
        for listener in told:
            listener.end(now)


def say(sentence: str) -> None:
    """Tell a sentence."""
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
    """These listeners are told too, or they ``alone``."""
    token = _listeners.set((() if alone else _listeners.get()) + listeners)
    try:
        yield
    finally:
        _listeners.reset(token)


@contextmanager
def printed(verbose: int) -> Iterator[None]:
    """Print what is told, if ``verbose`` and if nobody prints it already."""
    if not verbose or any(isinstance(listener, Printer) for listener in _listeners.get()):
        yield
        return
    with listening(Printer(verbose)):
        yield


class Printer:
    """Lines on stderr: how far the work is at most once per second, with ``verbose`` above 1 always."""

    def __init__(self, verbose: int = 1) -> None:
        self.every = 1.0 if verbose == 1 else 0.0
        self.last = time.perf_counter()
        self.line = ""
        self.begun: set[str] = set()
        self.depth = 0

    def begin(self, stage: Stage) -> None:
        """Name the stage, unless one of that name was before, or its first move will do so."""
        self.depth += 1
        if (stage.total is None or self.depth > 1) and stage.name not in self.begun:
            self.begun.add(stage.name)
            self.say(stage.name)

    def move(self, stage: Stage) -> None:
        """How far it is."""
        if time.perf_counter() - self.last >= self.every:
            self._print(stage)

    def end(self, stage: Stage) -> None:
        """How far it came, unless that was the last line."""
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
