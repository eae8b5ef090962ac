"""Progress bars for fits, fed by scikit-learn's callbacks where its version has them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stdout
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeElapsedColumn

from lognmf.paper.run import in_words

__all__ = [
    "ComparisonProgress",
    "FitProgress",
    "comparison_progress",
    "fit_progress",
    "grid_progress",
    "study_progress",
]


class FitProgress:
    """Callback of a fit that moves a bar by iterations.

    Parameters
    ----------
    progress : rich.progress.Progress
        Where the bar is shown.
    task : rich.progress.TaskID
        The bar.
    """

    def __init__(self, progress: Progress, task: TaskID) -> None:
        self.progress, self.task = progress, task

    def setup(self, estimator: Any, context: Any) -> None:
        """Learn how long the fit may take."""
        self.progress.update(self.task, total=estimator._most_iterations())

    def on_fit_task_begin(self, estimator: Any, context: Any) -> None:
        """Nothing to do: the bar moves when an evaluation is done."""

    def on_fit_task_end(self, estimator: Any, context: Any) -> None:
        """Move on by the iterations of one evaluation; the last one may have fewer."""
        if context.parent is not None:
            done = (context.task_id + 1) * estimator.eval_every
            self.progress.update(self.task, completed=min(done, estimator._most_iterations()))

    def teardown(self, estimator: Any, context: Any) -> None:
        """Leave the bar full: a fit that has converged early is complete."""
        done = next(task.completed for task in self.progress.tasks if task.id == self.task)
        self.progress.update(self.task, total=done)


@contextmanager
def fit_progress(model: Any, name: str, console: Console) -> Iterator[None]:
    """Show the progress of a fit of ``model``, under ``name``."""
    if not hasattr(model, "set_callbacks"):  # scikit-learn < 1.9
        verbose = model.verbose
        model.set_params(verbose=1)
        with redirect_stdout(console.file):
            yield
        model.set_params(verbose=verbose)
        return
    with _bars(console) as progress:
        model.set_callbacks(FitProgress(progress, progress.add_task(name, total=None, unit="iterations")))
        yield
    model.set_callbacks()


class ComparisonProgress:
    """Two bars: the models done, and the iterations of the one that is being fitted.

    Parameters
    ----------
    progress : rich.progress.Progress
        Where the bars are shown.
    total : int
        Number of models.
    """

    def __init__(self, progress: Progress, total: int) -> None:
        self.progress = progress
        self.models = progress.add_task("all", total=total, unit="models")
        self.fit: TaskID | None = None

    def start(self, name: str, model: Any) -> None:
        """Show the bar of the next model."""
        self.fit = self.progress.add_task(name, total=None, unit="iterations")
        if hasattr(model, "set_callbacks"):  # scikit-learn >= 1.9
            model.set_callbacks(FitProgress(self.progress, self.fit))

    def done(self, model: Any) -> None:
        """Take the model's bar away and count it."""
        if hasattr(model, "set_callbacks"):
            model.set_callbacks()
        if self.fit is not None:
            self.progress.remove_task(self.fit)
        self.progress.advance(self.models)


@contextmanager
def comparison_progress(total: int, console: Console) -> Iterator[ComparisonProgress]:
    """Show the progress of a comparison of ``total`` models."""
    with _bars(console) as progress:
        yield ComparisonProgress(progress, total)


@contextmanager
def grid_progress(total: int, console: Console) -> Iterator[Callable[[int, int, float], None]]:
    """Show the progress of a grid of ``total`` fits; yields what `fit_grid` takes as ``on_batch``."""
    with _bars(console) as progress:
        task = progress.add_task("tuning", total=total, unit="fits")

        def on_batch(done: int, total: int, seconds: float) -> None:
            progress.update(task, completed=done)

        yield on_batch


@contextmanager
def study_progress(console: Console) -> Iterator[Callable[[Any], None] | None]:
    """Show how far a study is; yields what `reproduce` takes as ``on_piece``, None without a screen."""
    if not console.is_terminal:
        yield None
        return
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[left]}"),
        TimeElapsedColumn(),
    )
    with Progress(*columns, console=console, transient=True) as progress:
        task = progress.add_task("", total=None, left="")

        def on_piece(done: Any) -> None:
            cell = done.piece.cell
            if done.outcome.error is not None:
                console.print(f"failed: {cell.model} on {cell.data.name}: {done.outcome.error}", markup=False)
            progress.update(
                task,
                description=f"{cell.model} on {cell.data.name}",
                completed=done.done,
                total=done.total,
                left=f"{in_words(done.left)} left",
            )

        yield on_piece


def _bars(console: Console) -> Progress:
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[unit]}"),
        TimeElapsedColumn(),
    )
    return Progress(*columns, console=console)
