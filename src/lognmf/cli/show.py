"""What a command shows on the screen: progress while it works, tables when it is done."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, redirect_stdout
from typing import TYPE_CHECKING, Any

import typer
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TaskID,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.table import Table

from lognmf.comparison import SPREAD, Row, filled_columns
from lognmf.grid.select import LOOKED_AT, standings

if TYPE_CHECKING:
    from rich.console import Console

    from lognmf.datasets import Dataset
    from lognmf.grid.tune import Tuned

_CRITERIA = {
    "normalized_cut": "the smallest cut of the neighbour graph",
    "balanced_cut": "the most even clusters among the smallest cuts of the neighbour graph",
    "balanced_modularity": "neighbours that stay together, at no more cut and no less balance than the start",
}
"""Criteria of a choice in words."""

_ELSEWHERE = ("start", "purity")
"""Columns of a comparison that do not fit on the screen; the page has them."""

_BEST = 5
"""Settings of a grid that are shown, besides the worst."""


def announce(data: Dataset, k: int) -> None:
    """Say what is about to be factorised."""
    n, p = data.X.shape
    typer.echo(f"{data.name}: {n} samples of {p} features, {k} parts", err=True)


# Progress ------------------------------------------------------------------------------


def bars(console: Console, detail: str = "unit", *, transient: bool = False) -> Progress:
    """Progress bars: description, bar, count, the field ``detail`` of the task, the time so far and left."""
    return Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn(f"{{task.fields[{detail}]}}"),
        TimeElapsedColumn(),
        TextColumn("at most"),
        TimeRemainingColumn(),
        TextColumn("left"),
        console=console,
        transient=transient,
    )


class FitProgress:
    """A scikit-learn callback of a fit, which moves the bar ``task`` by iterations."""

    def __init__(self, progress: Progress, task: TaskID) -> None:
        self.progress, self.task = progress, task

    def setup(self, estimator: Any, context: Any) -> None:
        """Set the length of the bar."""
        self.progress.update(self.task, total=estimator.max_iter)

    def on_fit_task_begin(self, estimator: Any, context: Any) -> None:
        """Nothing to do: the bar moves after each evaluation."""

    def on_fit_task_end(self, estimator: Any, context: Any) -> None:
        """Move to the iteration of an evaluation, which its task is called after."""
        if context.parent is not None:
            self.progress.update(self.task, completed=int(context.task_name.split()[-1]))

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
    with bars(console) as progress:
        model.set_callbacks(FitProgress(progress, progress.add_task(name, total=None, unit="iterations")))
        yield
    model.set_callbacks()


class ComparisonProgress:
    """Two bars: the fits done out of ``total``, and the iterations of the model being fitted."""

    def __init__(self, progress: Progress, total: int) -> None:
        self.progress = progress
        self.fits = progress.add_task("all", total=total, unit="fits")
        self.fit: TaskID | None = None

    def start(self, name: str, model: Any) -> None:
        """Show the bar of the next model."""
        self.fit = self.progress.add_task(name, total=None, unit="iterations")
        if hasattr(model, "set_callbacks"):  # scikit-learn >= 1.9
            model.set_callbacks(FitProgress(self.progress, self.fit))

    def done(self, model: Any) -> None:
        """Remove the model's bar and count it."""
        if hasattr(model, "set_callbacks"):
            model.set_callbacks()
        if self.fit is not None:
            self.progress.remove_task(self.fit)
        self.progress.advance(self.fits)


@contextmanager
def grid_progress(
    total: int, console: Console, doing: str = "tuning"
) -> Iterator[Callable[[int, int, float], None]]:
    """Show the progress of a grid of ``total`` fits; yields the ``on_batch`` of `fit_grid`."""
    with bars(console) as progress:
        task = progress.add_task(doing, total=total, unit="fits")

        def on_batch(done: int, total: int, seconds: float) -> None:
            progress.update(task, completed=done)

        yield on_batch


# Results -------------------------------------------------------------------------------


def results(summary: Mapping[str, Any]) -> Table:
    """The results of a fit, from the entry ``results`` of its summary."""
    about = {
        "objective": f"{summary['objective']:.6g}",
        "iterations": f"{summary['iterations']} ({summary['stop_reason'].replace('_', ' ')})",
        "sparseness of U": f"{summary['sparseness_U']:.3f}",
        "sparseness of V": f"{summary['sparseness_V']:.3f}",
    }
    if summary["outliers"] is not None:
        about["outliers"] = f"{summary['outliers']} of {sum(summary['cluster_sizes'])}"
    return _listed(about | _clusters(summary))


def clusters(summary: Mapping[str, Any]) -> Table:
    """The clusters alone."""
    return _listed(_clusters(summary))


def _clusters(summary: Mapping[str, Any]) -> dict[str, str]:
    sizes = summary["cluster_sizes"]
    few = " ".join(map(str, sizes)) if len(sizes) <= 20 else f"{min(sizes)} to {max(sizes)}"
    scores = {name: f"{summary[name]:.3f}" for name in ("accuracy", "nmi", "purity") if name in summary}
    return {"clusters": f"{len(sizes)}, of sizes {few}"} | scores


def _listed(values: Mapping[str, str]) -> Table:
    """A name and a value per line."""
    table = Table(box=None, show_header=False, pad_edge=False)
    for key, value in values.items():
        table.add_row(key.replace("nmi", "NMI"), value)
    return table


def candidates(rows: Sequence[Mapping[str, Any]]) -> Table:
    """Clusterings that were tried, the most modular first; that which was kept is marked."""
    table = Table("clustering", box=None, pad_edge=False, collapse_padding=True)
    for title in ("modularity", "cut", "balance", "seconds", ""):
        table.add_column(title, justify="right")
    for row in sorted(rows, key=lambda row: -row["modularity"]):
        numbers = (f"{row[name]:.3f}" for name in ("modularity", "normalized_cut", "balance"))
        kept = "kept" if row["chosen"] else ""
        table.add_row(row["candidate"], *numbers, f"{row['seconds']:.2f}", kept)
    return table


def choice(tuned: Tuned) -> str:
    """Which setting was chosen without labels, and how."""
    setting = ", ".join(f"{name} {value:g}" for name, value in tuned.setting.items())
    settings, seeds = len(tuned.choice.scores), len({row["seed"] for row in tuned.rows})
    bare = (
        "No iterations: no fit was better than the start itself.\n"
        if tuned.setting.get("max_iter") == 0
        else ""
    )
    return (
        f"Chosen without labels: {setting}, seed {tuned.model.random_state}\n"
        f"Criterion: {_CRITERIA[tuned.by]}.\n{bare}"
        f"Means over {seeds} seeds, the best and the worst of {settings} settings (a lower score is better):"
    )


def tried(tuned: Tuned) -> Table:
    """The best settings that were tried and the worst, one per line."""
    ranked = standings(tuned.rows, tuned.by)
    names, measures = list(tuned.setting), ("score", *LOOKED_AT[tuned.by])
    table = Table(box=None, pad_edge=False, collapse_padding=True)
    for title in ("", *names, *measures):
        table.add_column(title.removeprefix("normalized_").replace("_", " "), justify="right")
    shown = range(len(ranked)) if len(ranked) <= _BEST + 1 else (*range(_BEST), len(ranked) - 1)
    for place in shown:
        row = ranked[place]
        numbers = (f"{row[name]:.4f}" for name in measures)
        table.add_row(f"{place + 1}.", *(f"{row[name]:g}" for name in names), *numbers)
    return table


def ranking(rows: Sequence[Row]) -> Table:
    """The methods of a comparison, one per line, without the columns in which none has a value.

    The score by which they are sorted is followed by its spread over the seeds.
    """
    table = Table("method", box=None, pad_edge=False, collapse_padding=True)
    shown: list[tuple[str, str]] = []
    for title, column in filled_columns(rows).items():
        if title in _ELSEWHERE:
            continue
        table.add_column(title, justify="right", min_width=5)
        if column.field in SPREAD and not any(field in SPREAD for field, _ in shown) and rows[0].seeds > 1:
            table.add_column("±", justify="right", min_width=5)
            shown += [(column.field, column.form), (f"{column.field}_std", ".3f")]
        else:
            shown.append((column.field, column.form))
    for row in rows:
        table.add_row(row.model, *(_number(getattr(row, field), form) for field, form in shown))
    return table


def _number(value: Any, form: str) -> str:
    return "-" if value is None else f"{value:{form}}"


def notes(rows: Sequence[Row], n_clusters: int) -> Iterator[str]:
    """From where the models started, which methods failed and why, and which have fewer clusters."""
    starts = dict.fromkeys(row.start for row in rows if row.start is not None)
    seeds = f"means over {rows[0].seeds} seeds" if rows[0].seeds > 1 else "one seed"
    yield f"Start of the models: {', '.join(starts)}; {seeds}."
    for row in rows:
        if row.error is not None:
            yield f"{row.model}: {row.error}"
        elif row.clusters is not None and row.clusters < n_clusters:
            yield (
                f"{row.model}: only {row.clusters} of {n_clusters} clusters, "
                "because V has no more distinct rows."
            )
