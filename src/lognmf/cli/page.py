"""The HTML page of a comparison."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp

from lognmf import plots
from lognmf.comparison import Row, filled_columns
from lognmf.report import Cell, Figure, Highlight, Page, Section, Table
from lognmf.report.methods import spelled_out

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Drawing

    from lognmf.cli.write import Comparison

_MEANING = (
    "cut: normalised cut of the neighbour graph by the clusters, lower is better. "
    "sparse: Hoyer's sparseness of the factors. error: the norm of X − VUᵀ. "
    "seconds: from the data to the clusters, with graph, start, fit and k-means."
)

_SPREAD = ("accuracy", "normalized_cut")
"""Scores whose spread the table shows: with those of all it would be too wide."""

_MOST_CLASSES = 12
_ELSEWHERE = ("models", "class", "parameters", "clusterer", "number")
"""Settings that a page shows in a table, or as facts of their own."""

_WEIGHTS = ("alpha", "beta", "gamma", "lam")
SILENT = ("verbose", "warm_start")
"""Parameters that do not affect a result."""


def comparison_page(
    comparison: Comparison, summary: Mapping[str, Any], figures: Mapping[str, Drawing]
) -> Page:
    """The page of a comparison, its summary and its figures: ``comparison``, and ``parts`` of pictures."""
    n = comparison.data.X.shape[0]
    k, clusters = comparison.settings["n_components"], comparison.settings["n_clusters"]
    fitted = [row for row in comparison.rows if row.error is None]
    models = [row for row in fitted if row.model in comparison.models]
    return Page(
        f"Methods compared on {comparison.data.name}",
        f"{len(models)} factorisations of the same {n} samples into {k} parts, clustered by k-means on V"
        + (", and clusterings without a factorisation." if len(fitted) > len(models) else "."),
        (
            Section("Result", tuple(_story(comparison.rows, clusters)), (_result(comparison.rows),)),
            Section("Figures", (), tuple(_figures(comparison, figures))),
            _settings({name: model["parameters"] for name, model in summary["settings"]["models"].items()}),
        ),
        facts(summary),
        tuple(_highlights(comparison, fitted)),
        spelled_out(row.model for row in comparison.rows),
    )


def _highlights(comparison: Comparison, fitted: Sequence[Row]) -> Iterator[Highlight]:
    """The best method, the best factorisation, the data and the time."""
    models = [row for row in fitted if row.model in comparison.models]
    yield Highlight(fitted[0].model, f"is the best of {len(fitted)} methods: {_score(fitted[0])}")
    if models[0].model != fitted[0].model:
        yield Highlight(models[0].model, f"is the best of {len(models)} factorisations: {_score(models[0])}")
    n, p = comparison.data.X.shape
    yield Highlight(f"{n} × {p}", "samples × features")
    yield Highlight(f"{comparison.seconds:.1f} s", f"for {sum(row.seeds for row in fitted)} fits")


def _score(row: Row) -> str:
    if row.accuracy is not None:
        return f"accuracy {row.accuracy:.3f}"
    return f"normalised cut {row.normalized_cut:.3f}"


def _story(rows: Sequence[Row], clusters: int) -> list[str]:
    """How the table is sorted, and what it does not show."""
    if any(row.accuracy is not None for row in rows):
        order = "The methods are sorted by accuracy."
    else:
        order = (
            "There are no true labels, so the methods are sorted by the cut. "
            "A small cut suggests a good clustering but does not prove it."
        )
    order += _runs(rows)
    few = [
        f"- {row.model} has only {row.clusters} of {clusters} clusters, because V has no more distinct rows."
        for row in rows
        if row.clusters is not None and row.clusters < clusters
    ]
    return [order, *few, *(f"- {row.model} has no result. {row.error}" for row in rows if row.error)]


def _runs(rows: Sequence[Row]) -> str:
    """How often each method was run, from which start, and what to make of differences."""
    starts = sorted({row.start for row in rows if row.start is not None})
    start = "start from random numbers" if starts == ["random"] else "start as the table says"
    text = f" The models {start} and have their default weights. "
    if rows[0].seeds == 1:
        return text + "There is one seed, so small differences are not meaningful."
    return text + (
        f"Numbers are means over {rows[0].seeds} seeds, and ± is the standard deviation: "
        "smaller differences are not meaningful."
    )


def _result(rows: Sequence[Row]) -> Table:
    columns = filled_columns(rows)
    if "start" in columns:  # the scores come first: on a narrow page the last columns are out of sight
        columns["start"] = columns.pop("start")
    cells = tuple((row.model, tuple(_cell(row, c.field) for c in columns.values())) for row in rows)
    return Table(
        "All methods",
        _MEANING,
        tuple(columns),
        cells,
        corner="method",
        form=tuple(column.form for column in columns.values()),
        better=tuple(column.better for column in columns.values()),
        best="column",
    )


def _cell(row: Row, field: str) -> Cell:
    spread = getattr(row, f"{field}_std") if field in _SPREAD else None
    return Cell(getattr(row, field), spread=spread, note=_note(row, field))


def _note(row: Row, field: str) -> str:
    if row.error is not None:
        return row.error
    if field != "n_iter" or row.stop_reason is None:
        return ""
    return f"at most {row.max_iter}; stopped: {row.stop_reason.replace('_', ' ')}"


def _figures(comparison: Comparison, figures: Mapping[str, Drawing]) -> list[Figure]:
    data = comparison.data
    shown = [Figure("Scores and times", "The best method comes first.", figures["comparison"])]
    if "parts" in figures:
        caption = "One row per model, of the first seed; every picture has its own scale."
        shown.append(Figure("Parts", caption, figures["parts"]))
    if data.image_shape is not None and not sp.issparse(data.X):
        X, y, caption = data.X, data.y, "Samples as they were fitted."
        if y is not None:
            some = _few_classes(y)
            X, y, caption = X[some], y[some], f"{caption[:-1]}, of up to {_MOST_CLASSES} classes."
        shown.append(Figure("Data", caption, plots.samples(X, y, image_shape=data.image_shape)))
    return shown


def _few_classes(y: np.ndarray) -> np.ndarray:
    """Indices of the samples of evenly selected classes."""
    classes = np.unique(y)
    chosen = np.linspace(0, len(classes) - 1, min(len(classes), _MOST_CLASSES)).round().astype(int)
    return np.flatnonzero(np.isin(y, classes[chosen]))


def _settings(parameters: Mapping[str, Mapping[str, Any]]) -> Section:
    """The parameters that all models share, and a table of those in which they differ, by model."""
    names = dict.fromkeys(name for own in parameters.values() for name in own if name not in SILENT)
    first, *others = parameters.values()
    alike = [name for name in names if all(own.get(name) == first.get(name) for own in others)]
    differ = sorted((name for name in names if name not in alike), key=lambda name: name not in _WEIGHTS)
    rows = tuple(
        (model, tuple(Cell(word(own.get(name))) for name in differ)) for model, own in parameters.items()
    )
    shared = ", ".join(f"{name} {word(first.get(name))}" for name in alike)
    text = "Each model has its default settings, but for what the command says and for the start."
    caption = "Only those in which the models differ."
    table = Table("Parameters", caption, tuple(differ), rows, "model", ".10g", best="")
    return Section("Settings", (text, f"The same for all: {shared}."), (table,))


def word(value: Any) -> float | str | None:
    """A parameter as a cell shows it."""
    number = isinstance(value, int | float) and not isinstance(value, bool)
    return value if value is None or number else str(value)


def facts(summary: Mapping[str, Any]) -> dict[str, str]:
    """How the numbers were computed, in words."""
    source, settings = summary["input"], summary["settings"]
    asked = {name: value for name, value in settings.items() if name not in _ELSEWHERE and value is not None}
    number = (
        {"Number of clusters": f"{asked['clusters']}, {settings['number']}"} if "number" in settings else {}
    )
    return {
        "Command": f"`{summary['command']}`",
        **number,
        "Date": summary["date"],
        "Data": "\n".join(f"{name}: {value}" for name, value in source.items() if value is not None),
        "Settings": ", ".join(f"{name} {value}" for name, value in asked.items()),
        "Versions": ", ".join(f"{name} {version}" for name, version in summary["versions"].items()),
        "Machine": summary["machine"],
    }
