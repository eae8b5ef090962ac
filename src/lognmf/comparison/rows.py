"""The table of a comparison: a row per method, and its columns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple


class Column(NamedTuple):
    """A column of a table of rows: field of `Row`, number format, and which numbers are better."""

    field: str
    form: str
    better: int
    """1 if higher is better, -1 if lower is better, 0 if neither."""


_COLUMNS = {
    "start": Column("start", "", 0),
    "accuracy": Column("accuracy", ".3f", 1),
    "NMI": Column("nmi", ".3f", 1),
    "purity": Column("purity", ".3f", 1),
    "cut": Column("normalized_cut", ".3f", -1),
    "seconds": Column("seconds", ".2f", -1),
    "sparse U": Column("sparseness_U", ".3f", 0),
    "sparse V": Column("sparseness_V", ".3f", 0),
    "error": Column("reconstruction_err", "#.4g", -1),
    "iter": Column("n_iter", ".0f", 0),
}
"""Columns of a comparison, by their titles."""

SPREAD = ("accuracy", "nmi", "purity", "normalized_cut")
"""Scores of which a row has the standard deviation too."""


@dataclass(frozen=True)
class Row:
    """Scores of one method, means over the seeds; None where a number is not available.

    The standard deviations are those of the seeds, None for one seed.
    """

    model: str  # the paper's name, or that of a clustering without a model
    class_name: str = ""
    start: str | None = None  # kind of start of the model
    accuracy: float | None = None  # agreement of the clusters with the true labels, as the next two
    nmi: float | None = None
    purity: float | None = None
    normalized_cut: float | None = None  # of the neighbour graph by the clusters; lower is better
    accuracy_std: float | None = None
    nmi_std: float | None = None
    purity_std: float | None = None
    normalized_cut_std: float | None = None
    clusters: int | None = None  # the fewest; fewer than requested where V has fewer distinct rows
    sparseness_U: float | None = None  # Hoyer's
    sparseness_V: float | None = None
    reconstruction_err: float | None = None  # ‖X − V Uᵀ‖_F
    objective: float | None = None  # the model's own; not comparable between models
    n_iter: float | None = None
    max_iter: int | None = None  # how many iterations were allowed
    stop_reason: str | None = None
    seconds: float | None = None  # from the data to the clusters: graph, start, fit and k-means
    seeds: int = 1
    error: str | None = None  # why there are no results


def filled_columns(rows: Sequence[Row]) -> dict[str, Column]:
    """The columns, by their titles, in which at least one row has a value."""
    return {
        title: column
        for title, column in _COLUMNS.items()
        if any(getattr(row, column.field) is not None for row in rows)
    }


def rank(row: Row) -> tuple[float, ...]:
    """Sorts the better row first; equal ones keep the paper's order."""
    if row.error is not None:
        return (1,)
    if row.accuracy is not None:
        return (0, -row.accuracy)
    # Fewer clusters cut less: one alone cuts nothing.
    return (0, -(row.clusters or 0), row.normalized_cut or 0.0)
