"""What a command prints when it is done."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from rich.table import Table

from lognmf.comparison import Row

__all__ = ["notes", "ranking", "results"]

_COLUMNS = {
    "accuracy": ("accuracy", ".3f"),
    "NMI": ("nmi", ".3f"),
    "purity": ("purity", ".3f"),
    "cut": ("normalized_cut", ".3f"),
    "sparse U": ("sparseness_U", ".3f"),
    "sparse V": ("sparseness_V", ".3f"),
    "error": ("reconstruction_error", "#.4g"),
    "iter": ("n_iter", "d"),
    "seconds": ("seconds", ".2f"),
}
"""Columns of a comparison: fields of `Row`, and how they are written."""


def results(found: Mapping[str, Any], *, n_samples: int) -> Table:
    """The results of a fit.

    Parameters
    ----------
    found : mapping
        ``results`` of a summary.
    n_samples : int
        Number of samples.

    Returns
    -------
    rich.table.Table
    """
    sizes = found["cluster_sizes"]
    few = " ".join(map(str, sizes)) if len(sizes) <= 20 else f"{min(sizes)} to {max(sizes)}"
    rows = {
        "objective": f"{found['objective']:.6g}",
        "iterations": f"{found['iterations']} ({found['stop_reason'].replace('_', ' ')})",
        "sparseness of U": f"{found['sparseness_U']:.3f}",
        "sparseness of V": f"{found['sparseness_V']:.3f}",
        "outliers": None if found["outliers"] is None else f"{found['outliers']} of {n_samples}",
        "clusters": f"{len(sizes)}, of sizes {few}",
    }
    rows |= {name: f"{found[name]:.3f}" for name in ("accuracy", "nmi", "purity") if name in found}
    table = Table(box=None, show_header=False, pad_edge=False)
    for key, value in rows.items():
        if value is not None:
            table.add_row(key.replace("nmi", "NMI"), value)
    return table


def ranking(rows: Sequence[Row]) -> Table:
    """The models of a comparison, one a line.

    Parameters
    ----------
    rows : sequence of Row
        As from `compare`.

    Returns
    -------
    rich.table.Table
        Without the columns that no model has.
    """
    known = {
        title: (field, form)
        for title, (field, form) in _COLUMNS.items()
        if any(getattr(row, field) is not None for row in rows)
    }
    table = Table("model", box=None, pad_edge=False, collapse_padding=True)
    for title in known:
        table.add_column(title, justify="right", min_width=5)
    for row in rows:
        values = [(getattr(row, field), form) for field, form in known.values()]
        table.add_row(row.model, *("-" if value is None else f"{value:{form}}" for value, form in values))
    return table


def notes(rows: Sequence[Row], n_clusters: int) -> Iterator[str]:
    """What the table of a comparison does not say.

    Parameters
    ----------
    rows : sequence of Row
        As from `compare`.
    n_clusters : int
        Clusters asked for.

    Yields
    ------
    str
        Why a model failed, or that it found fewer clusters.
    """
    for row in rows:
        if row.error is not None:
            yield f"{row.model}: {row.error}"
        elif row.clusters is not None and row.clusters < n_clusters:
            yield f"{row.model}: only {row.clusters} of {n_clusters} clusters, as its codes differ no more."
