"""Progress on the screen: bars on a terminal, lines elsewhere."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from rich.markup import escape
from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeElapsedColumn

from lognmf.progress import Listener, Printer, Stage, in_words, listening

if TYPE_CHECKING:
    from rich.console import Console


def bars(console: Console) -> Progress:
    """Progress bars: what is done, a bar, how many of how many, the time so far and the time left."""
    return Progress(
        TextColumn("{task.description}"),
        BarColumn(bar_width=20),
        TextColumn("{task.fields[count]}"),
        TimeElapsedColumn(),
        TextColumn("{task.fields[left]}"),
        console=console,
    )


@contextmanager
def shown(console: Console) -> Iterator[None]:
    """Show what the work within is doing."""
    if not console.is_terminal:
        with listening(Printer()):
            yield
        return
    with bars(console) as progress, listening(Bars(progress)):
        yield


class Bars(Listener):
    """A bar for every stage under way; that of the outermost stays when it is done."""

    def __init__(self, progress: Progress) -> None:
        self.progress = progress
        self.tasks: dict[Stage, TaskID] = {}

    def begin(self, stage: Stage) -> None:
        """Add a bar."""
        name = escape(stage.name)
        self.tasks[stage] = self.progress.add_task(name, total=stage.total, count=stage.count, left="")

    def move(self, stage: Stage) -> None:
        """Move the bar."""
        left = "" if stage.left is None else f"{in_words(stage.left)} left"
        self.progress.update(self.tasks[stage], completed=stage.done, count=stage.count, left=left)

    def end(self, stage: Stage) -> None:
        """Remove the bar, or leave it full: a fit that has converged early is complete."""
        task = self.tasks.pop(stage)
        if self.tasks or stage.total is None:
            self.progress.remove_task(task)
        elif not stage.failed:
            full, count = max(stage.done, 1), f"{stage.done} {stage.unit}"
            self.progress.update(task, total=full, completed=full, count=count, left="")

    def say(self, sentence: str) -> None:
        """Print a sentence above the bars."""
        self.progress.console.print(sentence, markup=False, highlight=False, soft_wrap=True)
