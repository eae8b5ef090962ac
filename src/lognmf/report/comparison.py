"""The page of a comparison on a user's own data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp

from lognmf import plots
from lognmf.comparison import Row, known_columns
from lognmf.plots.samples import spread_out
from lognmf.report.page import Cell, Figure, Highlight, Page, Section, Table

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Drawing

    from lognmf.cli.write import Comparison

__all__ = ["comparison_page"]

_MEANING = (
    "cut: normalised cut of the neighbour graph by the clusters, lower is better. "
    "sparse: Hoyer's sparseness of the factors. error: the norm of X − VUᵀ. seconds: of the fit alone."
)

_MOST_CLASSES = 12
_WEIGHTS = ("alpha", "beta", "gamma", "lam")
_SILENT = ("verbose", "warm_start")
"""Parameters that change nothing in a result."""


def comparison_page(
    comparison: Comparison, summary: Mapping[str, Any], figures: Mapping[str, Drawing]
) -> Page:
    """The page of a comparison.

    Parameters
    ----------
    comparison : Comparison
        What was done.
    summary : mapping
        As from `summarize_comparison`.
    figures : mapping of str to Figure
        ``comparison``, and ``parts`` where the samples are pictures.

    Returns
    -------
    Page
    """
    n, p = comparison.table.X.shape
    k, clusters = comparison.settings["n_components"], comparison.settings["n_clusters"]
    parameters = {name: model["parameters"] for name, model in summary["settings"]["models"].items()}
    fitted = [row for row in comparison.rows if row.error is None]
    return Page(
        f"Methods compared on {comparison.table.name}",
        f"{len(fitted)} factorisations of the same {n} samples into {k} parts, clustered by k-means on V.",
        (
            Section("Result", tuple(_story(comparison.rows, clusters)), (_result(comparison.rows),)),
            Section("Figures", (), tuple(_figures(comparison, figures))),
            Section(
                "Settings",
                ("Each model has its own defaults, unless the command says otherwise.", _shared(parameters)),
                (_settings(parameters),),
            ),
        ),
        _facts(summary),
        (
            Highlight(fitted[0].model, "first of the table"),
            *_score(fitted[0]),
            Highlight(f"{n} × {p}", "samples × features"),
            Highlight(f"{sum(row.seconds or 0 for row in fitted):.1f} s", f"for {len(fitted)} fits"),
        ),
    )


def _score(row: Row) -> list[Highlight]:
    if row.accuracy is not None:
        return [Highlight(f"{row.accuracy:.3f}", f"accuracy of {row.model}")]
    return [Highlight(f"{row.normalized_cut:.3f}", f"normalised cut of {row.model}")]


def _story(rows: Sequence[Row], clusters: int) -> list[str]:
    """What the order of the table is, and what the table cannot say."""
    if any(row.accuracy is not None for row in rows):
        order = (
            "The models are sorted by accuracy. One start and default weights: small differences say little."
        )
    else:
        order = (
            "There are no true labels, so the models are sorted by the cut. "
            "A small cut is a hint and not a proof of a good clustering."
        )
    few = [
        f"- {row.model} found only {row.clusters} of {clusters} clusters, as its codes differ no more."
        for row in rows
        if row.clusters is not None and row.clusters < clusters
    ]
    return [order, *few, *(f"- {row.model} has no result. {row.error}" for row in rows if row.error)]


def _result(rows: Sequence[Row]) -> Table:
    known = known_columns(rows)
    cells = [
        (row.model, tuple(Cell(getattr(row, field), note=_note(row, field)) for field, *_ in known.values()))
        for row in rows
    ]
    return Table(
        "All models",
        _MEANING,
        tuple(known),
        tuple(cells),
        corner="model",
        form=tuple(form for _, form, _ in known.values()),
        better=tuple(better for *_, better in known.values()),
        best="column",
    )


def _note(row: Row, field: str) -> str:
    if row.error is not None:
        return row.error
    return f"stopped: {row.stop_reason.replace('_', ' ')}" if field == "n_iter" and row.stop_reason else ""


def _figures(comparison: Comparison, figures: Mapping[str, Drawing]) -> list[Figure]:
    table = comparison.table
    found = [Figure("Scores and times", "The best model first.", figures["comparison"])]
    if "parts" in figures:
        caption = (
            "One row a model, every picture on its own scale; from the same start parts keep their places."
        )
        found.append(Figure("Parts", caption, figures["parts"]))
    if table.image_shape is not None and not sp.issparse(table.X):
        shown = _few_classes(table.y, len(table.X))
        y = None if table.y is None else table.y[shown]
        drawing = plots.samples(table.X[shown], y, image_shape=table.image_shape)
        found.append(Figure("Data", "Samples of some classes, as they were fitted.", drawing))
    return found


def _few_classes(y: np.ndarray | None, n: int) -> np.ndarray:
    """Samples of an even selection of the classes."""
    if y is None:
        return np.arange(n)
    classes = np.unique(y)
    return np.flatnonzero(np.isin(y, classes[spread_out(len(classes), _MOST_CLASSES)]))


def _shared(parameters: Mapping[str, Mapping[str, Any]]) -> str:
    """What all models have alike, in a sentence."""
    alike = [f"{name} {_word(values[0])}" for name, values in _values(parameters).items() if _same(values)]
    return f"The same for all: {', '.join(alike)}."


def _settings(parameters: Mapping[str, Mapping[str, Any]]) -> Table:
    """The parameters in which the models differ, one row a model; a dash for those it does not have."""
    values = _values(parameters)
    names = sorted(
        (name for name in values if not _same(values[name])), key=lambda name: name not in _WEIGHTS
    )
    rows = tuple(
        (model, tuple(Cell(_word(known.get(name))) for name in names)) for model, known in parameters.items()
    )
    caption = "Those in which the models differ."
    return Table("Parameters", caption, tuple(names), rows, "model", "g", best="")


def _values(parameters: Mapping[str, Mapping[str, Any]]) -> dict[str, list[Any]]:
    names = dict.fromkeys(name for known in parameters.values() for name in known)
    names = {name: None for name in names if name not in _SILENT}
    return {name: [known.get(name) for known in parameters.values()] for name in names}


def _same(values: Sequence[Any]) -> bool:
    return all(value == values[0] for value in values)


def _word(value: Any) -> float | str | None:
    number = isinstance(value, int | float) and not isinstance(value, bool)
    return value if value is None or number else str(value)


def _facts(summary: Mapping[str, Any]) -> dict[str, str]:
    """Where the numbers come from, in words."""
    source, settings = summary["input"], summary["settings"]
    asked = {name: value for name, value in settings.items() if name != "models" and value is not None}
    return {
        "Command": f"`{summary['command']}`",
        "Date": summary["date"],
        "Data": "\n".join(f"{name}: {value}" for name, value in source.items() if value is not None),
        "Settings": ", ".join(f"{name} {value}" for name, value in asked.items()),
        "Versions": ", ".join(f"{name} {version}" for name, version in summary["versions"].items()),
        "Machine": summary["machine"],
    }
