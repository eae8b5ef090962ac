"""What a command shows on the screen: progress while it works, tables when it is done."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import typer
from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeElapsedColumn
from rich.table import Table

from lognmf.cli.results import PAGE
from lognmf.comparison import SPREAD, Row, filled_columns
from lognmf.progress import Listener, Printer, Stage, in_words, listening
from lognmf.reading import printable

if TYPE_CHECKING:
    from pathlib import Path

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

GUESSED = "chosen automatically by modularity, silhouette and stability"
"""How -k auto chooses the number of clusters."""

_TOP, _MOST_PARTS = 5, 30
"""Features of a part that are shown, and parts."""

_BEST = 5
"""Settings of a grid that are shown, besides the worst."""


def announce(data: Dataset, k: int) -> None:
    """Say what is about to be factorised."""
    n, p = data.X.shape
    typer.echo(f"{data.name}: {n} samples of {p} features, {k} parts", err=True)


# Results -------------------------------------------------------------------------------


def results(summary: Mapping[str, Any]) -> Table:
    """The results of a fit, from the entry ``results`` of its summary."""
    about = {
        "objective": f"{summary['objective']:.6g}",
        "iterations": f"{summary['iterations']} ({summary['stop_reason'].replace('_', ' ')})",
        "sparseness of U": f"{summary['sparseness_U']:.3f}",
        "sparseness of V": f"{summary['sparseness_V']:.3f}",
        "seconds": f"{summary['seconds']:.1f}",
    }
    if summary["outliers"] is not None:
        about["outliers"] = f"{summary['outliers']} of {sum(summary['cluster_sizes'])}"
    return _listed(about | _clusters(summary))


def clusters(summary: Mapping[str, Any], *, number: str | None = None) -> Table:
    """The clusters alone, and how their ``number`` was chosen, if it was not given."""
    chosen = {} if number is None else {"their number": number}
    return _listed(_clusters(summary) | chosen | {"seconds": f"{summary['seconds']:.1f}"})


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


def where(folder: Path) -> str:
    """Where the results are, and their page."""
    name = printable(str(folder))
    return f"Results are in {name}\nOpen {name}{os.sep}{PAGE} in a browser for the whole page"


def parts(model: Any, names: Sequence[str]) -> Table:
    """The features of the largest weight in every part."""
    table = Table("part", "largest features", box=None, pad_edge=False)
    for number, top in enumerate(model.top_features(_TOP, names)[:_MOST_PARTS]):
        table.add_row(str(number), ", ".join(top), style=None)
    return table


def candidates(rows: Sequence[Mapping[str, Any]]) -> Table:
    """Clusterings that were tried, the most modular first, with the chosen one marked."""
    table = Table("clustering", box=None, pad_edge=False, collapse_padding=True)
    for title in ("modularity", "cut", "balance", "seconds", ""):
        table.add_column(title, justify="right")
    for row in sorted(rows, key=lambda row: -row["modularity"]):
        numbers = (f"{row[name]:.3f}" for name in ("modularity", "normalized_cut", "balance"))
        chosen = "chosen" if row["chosen"] else ""
        table.add_row(row["candidate"], *numbers, f"{row['seconds']:.2f}", chosen)
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
    ranked = tuned.standings()
    names = [name for name in tuned.choice.setting if len({row[name] for row in tuned.rows}) > 1]
    measures = [name for name in ranked[0] if name not in tuned.choice.setting]
    table = Table(box=None, pad_edge=False, collapse_padding=True)
    for title in ("", *names, *measures):
        table.add_column(title.removeprefix("normalized_").replace("_", " "), justify="right")
    places = range(len(ranked)) if len(ranked) <= _BEST + 1 else (*range(_BEST), len(ranked) - 1)
    for place in places:
        row = ranked[place]
        numbers = (f"{row[name]:.4f}" for name in measures)
        table.add_row(f"{place + 1}.", *(f"{row[name]:g}" for name in names), *numbers)
    return table


def ranking(rows: Sequence[Row]) -> Table:
    """The methods of a comparison, one per line, without the columns in which none has a value.

    The score by which they are sorted is followed by its spread over the seeds.
    """
    table = Table("method", box=None, pad_edge=False, collapse_padding=True)
    fields: list[tuple[str, str]] = []
    for title, column in filled_columns(rows).items():
        if title in _ELSEWHERE:
            continue
        table.add_column(title, justify="right", min_width=5)
        if column.field in SPREAD and not any(field in SPREAD for field, _ in fields) and rows[0].seeds > 1:
            table.add_column("±", justify="right", min_width=5)
            fields += [(column.field, column.form), (f"{column.field}_std", ".3f")]
        else:
            fields.append((column.field, column.form))
    for row in rows:
        table.add_row(row.model, *(_number(getattr(row, field), form) for field, form in fields))
    return table


def _number(value: Any, form: str) -> str:
    return "-" if value is None else f"{value:{form}}"


def notes(rows: Sequence[Row], n_clusters: int) -> Iterator[str]:
    """The start of the models, the methods that failed, and those with fewer clusters."""
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


# Progress --------------------------------------------------------------------------------


def bars(console: Console) -> Progress:
    """Progress bars with a name, a count, the time so far and the time left."""
    return Progress(
        TextColumn("{task.description}"),
        BarColumn(bar_width=20),
        TextColumn("{task.fields[count]}"),
        TimeElapsedColumn(),
        TextColumn("{task.fields[left]}"),
        console=console,
    )


@contextmanager
def progress(console: Console) -> Iterator[None]:
    """Show the progress of the work inside: bars on a terminal, lines elsewhere."""
    if not console.is_terminal:
        with listening(Printer()):
            yield
        return
    with bars(console) as shown, listening(Bars(shown)):
        yield


class Bars(Listener):
    """A bar for every stage under way; the bar of the outermost stage stays when it is done."""

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
