"""A result folder: tables, pictures and a summary of a fit or a comparison, all or nothing."""

from __future__ import annotations

import csv
import json
import math
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp

from lognmf import metrics, plots
from lognmf.cli.factors import write_factors
from lognmf.cli.fit_page import fit_page
from lognmf.cli.folder import MODEL, PAGE, PREPARATION, SAMPLES, SUMMARY, THEIR_CLUSTERS, new_folder
from lognmf.cli.page import comparison_page
from lognmf.comparison import Row, label_scores
from lognmf.core.arrays import to_numpy
from lognmf.persistence import save_model
from lognmf.plots.fit import order_of_parts
from lognmf.report import write_page
from lognmf.report.environment import machine, versions

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from lognmf.cli.scaling import Preparation
    from lognmf.datasets import Dataset
    from lognmf.grid.tune import Tuned

    Columns = Mapping[str, Sequence[Any] | np.ndarray]

_LARGE = 2_000_000
"""Cells from which a table is written as parquet instead of csv."""

_ODD_NAMES = "backslashreplace"
"""How bytes of a file's name that are no UTF-8 are written; JSON reads that as the name again."""

_FORMULA = re.compile(r"'*[=+\-@\t\r]")


@dataclass(frozen=True, eq=False)
class Run:
    """A fitted model, the clusters of its samples, and how both were computed.

    ``settings`` is what the user asked for besides the model's own parameters, ``source`` has the paths
    and hashes of the data, ``command`` is the command line, ``preparation`` says how samples were scaled,
    ``seconds`` how long that took, ``tuning`` how weights were chosen. ``tried`` has a row for each
    clustering that was tried, ``known`` are samples and their clusters that new ones are compared with, and
    ``sampled`` is the number of samples that were clustered, if not all.
    """

    data: Dataset
    model: Any
    labels: np.ndarray
    settings: Mapping[str, Any]
    source: Mapping[str, Any]
    command: str
    preparation: Preparation
    tuning: Tuned | None = None
    tried: Sequence[Mapping[str, Any]] = ()
    known: tuple[Any, np.ndarray] | None = None
    sampled: int | None = None
    seconds: float = field(kw_only=True)


@dataclass(frozen=True, eq=False)
class Comparison:
    """Models fitted to one data set: their rows, best first, and the estimators by the paper's names.

    ``settings``, ``source``, ``command`` and ``seconds`` are those of `Run`.
    """

    data: Dataset
    rows: Sequence[Row]
    models: Mapping[str, Any]
    settings: Mapping[str, Any]
    source: Mapping[str, Any]
    command: str
    seconds: float = field(kw_only=True)


# The summary ---------------------------------------------------------------------------


def summarize(run: Run) -> dict[str, Any]:
    """Settings, versions and results of a run, as plain values for strict JSON."""
    settings = {**run.settings, **_recipe(run.model)}
    if run.sampled is not None:
        settings["sampled"] = run.sampled
    tuning = {} if run.tuning is None else {"tuning": _tuning(run.tuning)}
    return _plain(_origin(run) | {"settings": settings} | tuning | {"results": _results(run)})


def summarize_comparison(comparison: Comparison) -> dict[str, Any]:
    """Settings, versions and rows of a comparison, as plain values for strict JSON."""
    models = {name: _recipe(model) for name, model in comparison.models.items()}
    settings = {**comparison.settings, "models": models}
    results = {"seconds": comparison.seconds, "results": list(map(vars, comparison.rows))}
    return _plain(_origin(comparison) | {"settings": settings} | results)


def _origin(done: Run | Comparison) -> dict[str, Any]:
    """Command, date, machine, versions and data of a run or a comparison."""
    X = done.data.X
    return {
        "command": done.command,
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "machine": machine(),
        "versions": versions(),
        "input": {
            "name": done.data.name,
            **done.source,
            "samples": X.shape[0],
            "features": X.shape[1],
            "sparse": sp.issparse(X),
            "dtype": str(X.dtype),
        },
    }


def _recipe(model: Any) -> dict[str, Any]:
    return {"class": type(model).__name__, "parameters": model.get_params(deep=False)}


def _tuning(tuned: Tuned) -> dict[str, Any]:
    seeds = sorted({row["seed"] for row in tuned.rows})
    chosen = {"setting": tuned.setting, "criterion": tuned.by, "score": tuned.score}
    return chosen | {"seeds": seeds, "grid": tuned.grid}


def _results(run: Run) -> dict[str, Any]:
    model, y = run.model, run.data.y
    results = {
        "objective": model.objective_,
        "iterations": model.n_iter_,
        "stop_reason": model.stop_reason_,
        "seconds": run.seconds,
        "reconstruction_err": model.reconstruction_err_,
        "sparseness_U": metrics.hoyer_sparseness(model.components_),
        "sparseness_V": metrics.hoyer_sparseness(model.embedding_),
        "outliers": int(to_numpy(model.is_outlier_).sum()) if hasattr(model, "is_outlier_") else None,
        "cluster_sizes": np.bincount(run.labels),
    }
    if y is None:
        return results
    return results | {"classes": len(np.unique(y))} | label_scores(y, run.labels)


# The files -----------------------------------------------------------------------------


def write_results(folder: str | os.PathLike[str], run: Run, *, force: bool = False, kind: str = "") -> Path:
    """Write a run into ``folder``, which appears complete or not at all.

    Factors of samples from a large file are written in its format, which ``kind`` is the ending of.
    """
    with new_folder(folder, force=force) as fresh:
        model, data, tuning = run.model, run.data, run.tuning
        components, V = to_numpy(model.components_), to_numpy(model.embedding_)
        write_factors(fresh, kind, components.T, V, data.feature_names)
        save_model(model, fresh / MODEL)
        run.preparation.save(fresh / PREPARATION)
        if run.known is not None:  # a new sample gets the cluster of its nearest neighbours
            _save_samples(fresh / SAMPLES, run.known[0])
            np.save(fresh / THEIR_CLUSTERS, run.known[1])
        sample: Columns = {"sample": np.arange(len(V))}
        if data.sample_names is not None:
            sample = {**sample, "name": data.sample_names}
        labels = {**sample, "cluster": run.labels} | ({} if data.y is None else {"label": data.y})
        part = [f"part {j}" for j in range(len(components))]
        features = data.feature_names or [f"feature {j}" for j in range(components.shape[1])]
        tables: dict[str, Columns] = {
            "labels": labels,
            "history": model.history_,
            "parts": {"feature": features, **dict(zip(part, components, strict=True))},
            "codes": {**sample, **dict(zip(part, V.T, strict=True))},
        }
        if hasattr(model, "outlier_share_"):
            tables["outliers"] = {
                **sample,
                "outlier": to_numpy(model.is_outlier_).astype(int),
                "share": to_numpy(model.outlier_share_),
                "norm": to_numpy(model.outlier_norm_),
            }
        order = order_of_parts(V, run.labels).tolist()
        figures = {
            "convergence": plots.convergence(model.history_),
            "parts": plots.parts(components, data.image_shape, order, feature_names=data.feature_names),
            "codes": plots.codes(V, run.labels, getattr(model, "is_outlier_", None)),
        }
        if tuning is not None:
            tables["tuning"] = _columns(tuning.rows)
            figures["sensitivity"] = plots.sensitivity(tuning)
        if run.tried:
            tables["candidates"] = _columns(run.tried)
        summary = summarize(run)
        _write(fresh, tables, figures, summary, as_columns=kind == ".parquet")
        write_page(fit_page(run, summary, figures, Path(folder).resolve()), fresh / PAGE)
    return Path(folder).resolve()


def write_comparison(folder: str | os.PathLike[str], comparison: Comparison, *, force: bool = False) -> Path:
    """Write a comparison into ``folder``, which appears complete or not at all."""
    rows, shape = comparison.rows, comparison.data.image_shape
    summary = summarize_comparison(comparison)
    with new_folder(folder, force=force) as fresh:
        figures = {"comparison": plots.comparison(rows)}
        if shape is not None:
            fitted = [row.model for row in rows if row.error is None and row.model in comparison.models]
            parts = {name: to_numpy(comparison.models[name].components_) for name in fitted}
            figures["parts"] = plots.parts_of_models(parts, shape)
        _write(fresh, {"comparison": _columns([vars(row) for row in rows])}, figures, summary)
        write_page(comparison_page(comparison, summary, figures), fresh / PAGE)
    return Path(folder).resolve()


def _write(
    folder: Path,
    tables: Mapping[str, Columns],
    figures: Mapping[str, Figure],
    summary: Mapping[str, Any],
    *,
    as_columns: bool = False,
) -> None:
    """Write tables as csv, parts and codes as parquet if asked to, figures as png, and the summary."""
    for name, table in tables.items():
        packed = as_columns and name in ("parts", "codes")
        if packed or len(table) * len(next(iter(table.values()))) > _LARGE:
            _write_parquet(folder / f"{name}.parquet", table)
            continue
        with (folder / f"{name}.csv").open("w", newline="", encoding="utf-8", errors=_ODD_NAMES) as file:
            writer = csv.writer(file, lineterminator="\n")
            writer.writerow(table)
            # Python's numbers: NumPy writes a float32 with fewer digits.
            values = (np.asarray(column, dtype=object).tolist() for column in table.values())
            writer.writerows(zip(*([_no_formula(cell) for cell in column] for column in values), strict=True))
    for name, figure in figures.items():
        figure.savefig(folder / f"{name}.png")
    text = json.dumps(summary, indent=2, ensure_ascii=False, allow_nan=False)
    (folder / SUMMARY).write_text(text + "\n", encoding="utf-8", errors=_ODD_NAMES)


def _save_samples(path: Path, X: Any) -> None:
    if sp.issparse(X):
        sp.save_npz(path, X)
    else:
        np.savez_compressed(path, X=X)


def _write_parquet(path: Path, columns: Columns) -> None:
    import pyarrow as pa
    from pyarrow import parquet

    parquet.write_table(pa.table({name: pa.array(list(column)) for name, column in columns.items()}), path)


def _no_formula(cell: Any) -> Any:
    """A word that a spreadsheet would run as a formula, with a ' before it; anything else as it is."""
    if not isinstance(cell, str) or not _FORMULA.match(cell):
        return cell
    try:
        float(cell)
    except ValueError:
        return f"'{cell}"
    return cell


def _columns(rows: Sequence[Mapping[str, Any]]) -> Columns:
    return {name: [row[name] for row in rows] for name in rows[0]}


def _plain(value: Any) -> Any:
    """``value`` as strict JSON has it: NaN and infinity become null, other objects text."""
    if isinstance(value, np.ndarray | np.generic):
        value = value.tolist()
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, Mapping):
        return {name: _plain(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return value if value is None or isinstance(value, bool | int | float | str) else str(value)
