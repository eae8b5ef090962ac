"""What an interrupted command has done, kept beside its result folder for the next call."""

from __future__ import annotations

import signal
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import typer

from lognmf.cli.main import Stopped
from lognmf.grid.store import OtherRunError, stored_entries
from lognmf.progress import say
from lognmf.reading import printable

Result = TypeVar("Result")


def resumed(folder: Path, work: Callable[[Path], Result]) -> Result:
    """``work(store)``, which keeps finished fits in a file beside ``folder`` and begins with those in it.

    Ctrl-C says that they are there. Fits of other data or settings are forgotten.
    """
    store = _store(folder)
    where = printable(str(store))
    store.parent.mkdir(parents=True, exist_ok=True)
    if store.exists():
        say(f"Going on from {where}")
    try:
        try:
            return work(store)
        except OtherRunError:
            say(f"{where} holds fits of other data or settings: starting anew")
            store.unlink()
            return work(store)
    except (KeyboardInterrupt, Stopped) as stop:
        kept = stored_entries(store) if store.exists() else 0
        if not kept:
            store.unlink(missing_ok=True)
            raise
        typer.echo(f"interrupted; {kept} fits are kept in {where}: run the command again to go on", err=True)
        raise typer.Exit(128 + next(iter(stop.args), signal.SIGINT)) from None


def finished(folder: Path) -> None:
    """Forget what was kept: ``folder`` is written."""
    _store(folder).unlink(missing_ok=True)


def _store(folder: Path) -> Path:
    return folder.with_name(f"{folder.name}.unfinished.db")
