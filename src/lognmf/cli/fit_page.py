"""The HTML page of a fit or a clustering."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp

from lognmf.cli.fit_sections import Shown, clusters, codes, parts, samples_to_look_at
from lognmf.cli.next_steps import next_steps
from lognmf.cli.page import SILENT, facts, word
from lognmf.report import Cell, Figure, Highlight, Page, Section, Table
from lognmf.report.methods import spelled_out

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Drawing

    from lognmf.cli.write import Run
    from lognmf.grid.tune import Tuned

_SEED_COLUMNS = {
    "cut": "normalized_cut", "modularity": "modularity", "balance": "balance", "objective": "objective",
}  # fmt: skip
"""What a page shows of the fits from several seeds."""

_WEIGHTS = ("alpha", "beta", "gamma", "lam")


def fit_page(run: Run, summary: Mapping[str, Any], figures: Mapping[str, Drawing], folder: Path) -> Page:
    """The page of a run, its summary and its figures; ``folder`` is where the results will be."""
    shown, results = Shown(run), summary["results"]
    n, p = run.data.X.shape
    whole = "" if run.data.title in ("", run.data.name) else f"{run.data.title}: "
    found = f"{len(shown.sizes)} clusters" if run.tried else f"{shown.k} parts"
    how = "the best of several clusterings" if run.tried else "k-means on the codes"
    how += f"; their number is {run.settings['number']}" if "number" in run.settings else ""
    mixture = f"each a mixture of {shown.k} parts by {shown.method}"
    sections = (
        clusters(shown),
        parts(shown, figures["parts"]),
        codes(figures["codes"]),
        samples_to_look_at(shown),
        _convergence(run, results, figures["convergence"]),
        _seeds(run.tuning, figures["sensitivity"]) if run.tuning is not None else None,
        _tried(run) if run.tried else None,
        _next(run, results, folder, shown),
        _settings(run),
    )
    return Page(
        f"{run.data.name}: {found}",
        f"{whole}{n} samples of {p} features, {mixture}. Clusters: {how}.",
        tuple(section for section in sections if section is not None),
        facts(summary),
        tuple(_highlights(shown, results)),
        spelled_out([shown.method, "NMFClustering"] if run.tried else [shown.method]),
    )


# Tiles -------------------------------------------------------------------------------------


def _highlights(shown: Shown, results: Mapping[str, Any]) -> Iterator[Highlight]:
    sizes = shown.sizes
    yield Highlight(str(len(sizes)), f"clusters of {sizes.min()} to {sizes.max()} samples")
    if "accuracy" in results:
        yield Highlight(
            f"{results['accuracy']:.1%}", "of the samples are in the cluster of their label (accuracy)"
        )
    whole = _norm(shown.data.X) if shown.readable else 0.0
    error = results["reconstruction_err"]
    if whole > 0:
        yield Highlight(f"{error / whole:.1%}", "relative error: the norm of X − VUᵀ over that of X")
    else:
        yield Highlight(f"{error:.4g}", "error: the norm of X − VUᵀ")
    zeros = [float(np.mean(factor == 0)) for factor in (shown.components, shown.V)]
    if any(zeros):
        yield Highlight(" / ".join(f"{share:.0%}" for share in zeros), "zeros in the parts / in the codes")
    if results["outliers"] is not None:
        yield Highlight(str(results["outliers"]), f"outliers among {len(shown.V)} samples")
    yield Highlight(f"{results['seconds']:.2g} s", "from the command to the clusters")


def _norm(X: Any) -> float:
    """Frobenius norm of the entries that are known."""
    values = X.data if sp.issparse(X) else X
    return float(np.sqrt(np.nansum(np.square(values, dtype=np.float64))))


# How it was found --------------------------------------------------------------------------


def _convergence(run: Run, results: Mapping[str, Any], drawing: Drawing) -> Section:
    ends = {
        "converged": "The fit has converged",
        "max_iter": "The fit stopped at its maximum number of iterations, before it had converged,",
    }
    end = ends.get(results["stop_reason"], f"The fit stopped ({results['stop_reason'].replace('_', ' ')})")
    text = f"{end} after {results['iterations']} iterations."
    if run.tuning is not None and "max_iter" in run.tuning.setting:
        text = f"The number of iterations, {results['iterations']}, was chosen with the weights."
    if run.tried:
        text += " Few iterations are meant here: they keep the parts near the clusters."
    return Section("Convergence", (text,), (Figure("Objective", "", drawing),))


def _seeds(tuned: Tuned, drawing: Drawing) -> Section:
    """How weights were chosen, and how much the seeds differ at those."""
    own = [row for row in tuned.rows if all(row[n] == value for n, value in tuned.choice.setting.items())]
    columns = {
        title: key for title, key in _SEED_COLUMNS.items() if all(row.get(key) is not None for row in own)
    }
    rows = tuple(
        (f"seed {row['seed']}", tuple(Cell(float(row[key])) for key in columns.values())) for row in own
    )
    caption = "The chosen weights from every seed: smaller differences between settings mean nothing."
    spread = Table("Spread over seeds", caption, tuple(columns), rows, "seed", "#.4g", best="")
    setting = ", ".join(f"{name} {value:g}" for name, value in tuned.setting.items())
    tried = Figure("Settings that were tried", "The chosen one is marked.", drawing)
    return Section("Weights", (f"Chosen without labels: {setting}.",), (tried, spread))


def _tried(run: Run) -> Section:
    """The clusterings that were tried."""
    rows = tuple(
        (
            row["candidate"],
            (
                *(Cell(row[key]) for key in ("modularity", "normalized_cut", "balance", "seconds")),
                Cell("kept" if row["chosen"] else ""),
            ),
        )
        for row in sorted(run.tried, key=lambda row: -row["modularity"])
    )
    table = Table(
        "Clusterings",
        "modularity: how many neighbours share a cluster beyond chance, higher is better. cut: normalised "
        "cut of the neighbour graph, lower is better. balance: 1 if all clusters have the same size.",
        ("modularity", "cut", "balance", "seconds", "kept"),
        rows,
        "clustering",
        (".3f", ".3f", ".3f", ".2f", ""),
        (1, -1, 1, 0, 0),
        "column",
    )
    text = "All were judged on the neighbour graph, without labels."
    if run.sampled is not None:
        text += (
            f" {run.sampled} random samples were clustered; parts, objective and convergence are those of a "
            "fit to them. Each of the others joined the cluster of its nearest neighbours among them."
        )
    return Section("Clusterings that were tried", (text,), (table,))


def _next(run: Run, results: Mapping[str, Any], folder: Path, shown: Shown) -> Section:
    known = {**results, "parts": shown.k, "chosen": "components" in run.settings}
    steps = next_steps(run.command, folder, len(shown.sizes), known, run.model, run.data.X)
    return Section("What to try next", tuple(f"- `{command}`: {purpose}." for command, purpose in steps))


def _settings(run: Run) -> Section:
    """The parameters of the model; weights that were chosen from the data with the value they got."""
    rows = []
    values = {name: v for name, v in run.model.get_params(deep=False).items() if name not in SILENT}
    for name, value in values.items():
        found = getattr(run.model, f"{name}_", None) if name in _WEIGHTS and isinstance(value, str) else None
        rows.append((name, (Cell(word(value) if found is None else f"{value}: {float(found):.4g}"),)))
    caption = f"Of {type(run.model).__name__}. After auto comes the value that was chosen from the data."
    table = Table("Parameters", caption, ("value",), tuple(rows), "parameter", ".10g", best="")
    return Section("Settings", (), (table,))
