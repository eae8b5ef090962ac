"""What a command prints when it is done."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from rich.table import Table

from lognmf.comparison import Row, known_columns
from lognmf.grid.select import LOOKED_AT, standings

if TYPE_CHECKING:
    from lognmf.grid.tune import Tuned

__all__ = ["choice", "notes", "ranking", "results", "tried"]

_CRITERIA = {
    "normalized_cut": "the least cut of the neighbour graph",
    "balanced_cut": "the most even clusters among the least cuts of the neighbour graph",
    "balanced_modularity": "neighbours that stay together, at no more cut and no less balance than the start",
}
"""Criteria of a choice in words."""

_BEST = 5
"""Settings of a grid that are shown beside the worst."""


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


def choice(tuned: Tuned) -> str:
    """What was chosen without labels, and how.

    Parameters
    ----------
    tuned : Tuned
        As from `tune`.

    Returns
    -------
    str
    """
    setting = ", ".join(f"{name} {value:g}" for name, value in tuned.setting.items())
    settings, seeds = len(tuned.choice.scores), len({row["seed"] for row in tuned.rows})
    bare = (
        "No iterations: no fit was better than the start itself.\n"
        if tuned.setting.get("max_iter") == 0
        else ""
    )
    return (
        f"Chosen without labels: {setting}, seed {tuned.model.random_state}\n"
        f"for {_CRITERIA[tuned.by]}.\n{bare}"
        f"Means over {seeds} seeds, the best and the worst of {settings} settings (a lower score is better):"
    )


def tried(tuned: Tuned) -> Table:
    """The best settings that were tried and the worst, one a line.

    Parameters
    ----------
    tuned : Tuned
        As from `tune`.

    Returns
    -------
    rich.table.Table
    """
    ranked = standings(tuned.rows, tuned.by)
    names, looked_at = list(tuned.setting), ("score", *LOOKED_AT[tuned.by])
    table = Table(box=None, pad_edge=False, collapse_padding=True)
    for title in ("", *names, *looked_at):
        table.add_column(title.removeprefix("normalized_").replace("_", " "), justify="right")
    shown = range(len(ranked)) if len(ranked) <= _BEST + 1 else (*range(_BEST), len(ranked) - 1)
    for place in shown:
        found = ranked[place]
        numbers = (f"{found[name]:.4f}" for name in looked_at)
        table.add_row(f"{place + 1}.", *(f"{found[name]:g}" for name in names), *numbers)
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
    known = known_columns(rows)
    table = Table("model", box=None, pad_edge=False, collapse_padding=True)
    for title in known:
        table.add_column(title, justify="right", min_width=5)
    for row in rows:
        values = [(getattr(row, field), form) for field, form, _ in known.values()]
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
