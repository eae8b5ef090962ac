"""A result folder: tables, pictures and a summary, written as a whole or not at all."""

from __future__ import annotations

import json
import math
import os
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp

from lognmf import metrics, plots, save_model
from lognmf.cli.prepare import Preparation
from lognmf.comparison import Row, label_scores
from lognmf.datasets import Dataset
from lognmf.environment import machine, versions
from lognmf.files import ODD_NAMES, OLD, is_working_folder, remove_abandoned, working_folder, write_csv
from lognmf.io import load_npy, parsing
from lognmf.plots.fit import order_of_parts
from lognmf.report import write_page

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from lognmf.grid.tune import Tuned

    Columns = Mapping[str, Sequence[Any] | np.ndarray]

_LARGE = 2_000_000
"""Cells from which a table is written as parquet instead of csv."""

PAGE = "index.html"
SUMMARY, MODEL, PREPARATION = "summary.json", "model.npz", "preparation.npz"
"""Results in words, the fitted model, and how samples were scaled."""
CLUSTERER, LABELS = "clusterer.npz", "clusters.npy"
"""The fitted clusterer of ``lognmf cluster``, and the clusters of all samples."""

FILES = (
    PAGE,
    SUMMARY,
    "factors.npz",
    MODEL,
    PREPARATION,
    CLUSTERER,
    LABELS,
    "labels.csv",
    "outliers.csv",
    "history.csv",
    "convergence.png",
    "parts.png",
    "codes.png",
    "tuning.csv",
    "sensitivity.png",
    "candidates.csv",
    *(f"{name}.{kind}" for name in ("parts", "codes") for kind in ("csv", "parquet")),
    *(f"{name}.parquet" for name in ("labels", "outliers")),
)
"""Everything the result folder of a fit can hold."""

LARGE_FILES, FACTORS = ("U.npy", "V.npy", "factors.h5", "factors.hdf5", "factors.h5ad"), "factors.zarr"
"""What a fit in blocks writes in place of factors.npz: files, or a folder."""

COMPARISON_FILES = (PAGE, SUMMARY, "comparison.csv", "comparison.png", "parts.png")
"""Everything the result folder of a comparison can hold."""


def read_summary(folder: Path) -> dict[str, Any]:
    """The summary of a result folder; empty where there is none."""
    file = folder / SUMMARY
    if not file.is_file():
        return {}
    with parsing(file):
        return dict(json.loads(file.read_text(encoding="utf-8")))


def load_labels(folder: Path) -> np.ndarray:
    """The clusters of the samples of a result folder."""
    with parsing(folder / LABELS):
        return load_npy(folder / LABELS)


def check_folder(folder: str | os.PathLike[str], *, force: bool = False) -> Path:
    """The absolute path of a result folder that can be written; nothing is changed.

    With ``force`` existing results may be replaced, but never anything else.
    """
    folder = Path(folder).resolve()
    if folder.exists() and not folder.is_dir():
        msg = f"{folder} is a file, so no results can be written there: choose another folder."
        raise FileExistsError(msg)
    if folder.exists() and not force:
        msg = (
            f"The folder {folder} already exists: choose another one with --out, or replace it with --force."
        )
        raise FileExistsError(msg)
    present = list(folder.iterdir()) if folder.exists() else []
    others = sorted(path.name for path in present if not (_is_result(path) or is_working_folder(path)))
    if others:
        few = ", ".join(others[:3]) + (", …" if len(others) > 3 else "")
        msg = f"{folder} is not replaced, because it holds other files ({few}): choose another --out."
        raise FileExistsError(msg)
    ancestor = next(parent for parent in (folder, *folder.parents) if parent.exists())
    if not (ancestor.is_dir() and os.access(ancestor, os.W_OK)):
        msg = f"{folder} cannot be created, because {ancestor} cannot be written to: choose another --out."
        raise PermissionError(msg)
    return folder


def _is_result(path: Path) -> bool:
    """Whether lognmf wrote a path in a result folder: links, and folders but `FACTORS`, are the user's."""
    files = path.name in (*FILES, *LARGE_FILES, *COMPARISON_FILES) and path.is_file()
    return (files or (path.name == FACTORS and path.is_dir())) and not path.is_symlink()


@contextmanager
def new_folder(folder: str | os.PathLike[str], *, force: bool) -> Iterator[Path]:
    """A working folder whose files replace those of ``folder`` at the end, all of them or none."""
    folder = check_folder(folder, force=force)
    folder.parent.mkdir(parents=True, exist_ok=True)
    remove_abandoned(folder.parent)
    # Inside an existing folder, because that may be on another file system than its parent.
    with working_folder(folder if folder.exists() else folder.parent) as hidden:
        fresh, old = hidden / "new", hidden / OLD
        fresh.mkdir()
        yield fresh
        check_folder(folder, force=force)
        if folder.exists():
            _replace_results(folder, fresh, old)
            shutil.rmtree(old, ignore_errors=True)
            remove_abandoned(folder, replaced=True)
        else:
            fresh.rename(folder)


def _replace_results(folder: Path, fresh: Path, old: Path) -> None:
    """Move the results in ``folder`` to ``old`` and those in ``fresh`` to ``folder``; undo that if it fails.

    The folder itself stays, because it may be the current one of a shell. The summary is moved first from
    ``folder`` and last to it: a folder with a summary is complete.
    """
    old.mkdir()
    present = sorted(filter(_is_result, folder.iterdir()), key=lambda path: path.name != SUMMARY)
    moves = [(path, old / path.name) for path in present]
    new = sorted(fresh.iterdir(), key=lambda path: path.name == SUMMARY)
    moves += [(path, folder / path.name) for path in new]
    try:
        for source, target in moves:
            source.rename(target)
    except BaseException:
        for source, target in reversed(moves):
            if target.exists() and not source.exists():
                target.rename(source)
        raise


# What is written -------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Run:
    """A fitted model, the clusters of its samples, and how both were computed."""

    data: Dataset
    model: Any
    labels: np.ndarray
    settings: Mapping[str, Any]  # options other than the model's parameters
    source: Mapping[str, Any]  # paths and hashes of the data
    command: str
    typed: Mapping[str, Sequence[str]]  # the arguments and options of that command
    preparation: Preparation
    tuning: Tuned | None = None
    clusterer: Any = None  # of `lognmf cluster`
    kind: str = ""  # the ending of a file that was read in blocks
    seconds: float = field(kw_only=True)


@dataclass(frozen=True, eq=False)
class Comparison:
    """Models fitted to one data set: their rows, best first, and the estimators by the paper's names."""

    data: Dataset
    rows: Sequence[Row]
    models: Mapping[str, Any]
    settings: Mapping[str, Any]
    source: Mapping[str, Any]
    command: str
    seconds: float = field(kw_only=True)


def summarize(run: Run) -> dict[str, Any]:
    """Settings, versions and results of a run, as plain values for strict JSON."""
    model, y, tuned = run.model, run.data.y, run.tuning
    settings = {**run.settings, **_recipe(model)}
    if (sample := getattr(run.clusterer, "sample_", None)) is not None:
        settings["sampled"] = len(sample)
    summary = _origin(run) | {"settings": settings}
    if tuned is not None:
        summary["tuning"] = {
            "setting": tuned.setting,
            "criterion": tuned.by,
            "score": tuned.score,
            "seeds": sorted({row["seed"] for row in tuned.rows}),
            "grid": tuned.grid,
        }
    results = {
        "objective": model.objective_,
        "iterations": model.n_iter_,
        "stop_reason": model.stop_reason_,
        "seconds": run.seconds,
        "reconstruction_err": model.reconstruction_err_,
        "sparseness_U": metrics.hoyer_sparseness(model.components_),
        "sparseness_V": metrics.hoyer_sparseness(model.embedding_),
        "outliers": int(model.is_outlier_.sum()) if hasattr(model, "is_outlier_") else None,
        "cluster_sizes": np.bincount(run.labels),
    }
    if y is not None:
        results |= {"classes": len(np.unique(y))} | label_scores(y, run.labels)
    return _plain(summary | {"results": results})


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


def write_results(folder: str | os.PathLike[str], run: Run, *, force: bool = False) -> Path:
    """Write a run into ``folder``."""
    from lognmf.cli.pages import fit_page

    model, data, tuning = run.model, run.data, run.tuning
    components, V = model.components_, model.embedding_
    with new_folder(folder, force=force) as fresh:
        _write_factors(fresh, run.kind, components.T, V, data.feature_names)
        save_model(model, fresh / MODEL)
        run.preparation.save(fresh / PREPARATION)
        np.save(fresh / LABELS, run.labels)
        sample: Columns = {"sample": np.arange(len(V))}
        if data.sample_names is not None:
            sample = {**sample, "name": data.sample_names}
        part = [f"part {j}" for j in range(len(components))]
        features = data.feature_names or [f"feature {j}" for j in range(components.shape[1])]
        tables: dict[str, Columns] = {
            "labels": {**sample, "cluster": run.labels} | ({} if data.y is None else {"label": data.y}),
            "history": model.history_,
            "parts": {"feature": features, **dict(zip(part, components, strict=True))},
            "codes": {**sample, **dict(zip(part, V.T, strict=True))},
        }
        if hasattr(model, "outlier_share_"):
            tables["outliers"] = {
                **sample,
                "outlier": model.is_outlier_.astype(int),
                "share": model.outlier_share_,
                "norm": model.outlier_norm_,
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
        if run.clusterer is not None:
            save_model(run.clusterer, fresh / CLUSTERER)
            tables["candidates"] = _columns(run.clusterer.rows_)
        summary = summarize(run)
        _write(fresh, tables, figures, summary, as_columns=run.kind == ".parquet")
        write_page(fit_page(run, summary, figures, Path(folder).resolve()), fresh / PAGE)
    return Path(folder).resolve()


def write_comparison(folder: str | os.PathLike[str], comparison: Comparison, *, force: bool = False) -> Path:
    """Write a comparison into ``folder``."""
    from lognmf.cli.pages import comparison_page

    rows, shape = comparison.rows, comparison.data.image_shape
    summary = summarize_comparison(comparison)
    with new_folder(folder, force=force) as fresh:
        figures = {"comparison": plots.comparison(rows)}
        if shape is not None:
            fitted = [row.model for row in rows if row.error is None and row.model in comparison.models]
            parts = {name: comparison.models[name].components_ for name in fitted}
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
    """Write tables as csv, parts and codes as parquet if ``as_columns``, figures as png, and the summary."""
    for name, table in tables.items():
        packed = as_columns and name in ("parts", "codes")
        if packed or len(table) * len(next(iter(table.values()))) > _LARGE:
            import pyarrow as pa
            from pyarrow import parquet

            arrow = pa.table({title: pa.array(list(column)) for title, column in table.items()})
            parquet.write_table(arrow, folder / f"{name}.parquet")
        else:
            write_csv(folder / f"{name}.csv", table)
    for name, figure in figures.items():
        figure.savefig(folder / f"{name}.png")
    text = json.dumps(summary, indent=2, ensure_ascii=False, allow_nan=False)
    (folder / SUMMARY).write_text(text + "\n", encoding="utf-8", errors=ODD_NAMES)


def _write_factors(
    folder: Path, kind: str, U: np.ndarray, V: np.ndarray, names: Sequence[str] | None
) -> None:
    """U (p, k) and V (n, k) in the format of a file that was read in blocks, else as npz.

    Those of Parquet files are the tables of parts and codes.
    """
    arrays: dict[str, Any] = {"U": U, "V": V}
    if kind == ".npy":
        for name, F in arrays.items():
            np.save(folder / f"{name}.npy", F)
    elif kind == ".zarr":
        import zarr

        group = zarr.open_group(folder / FACTORS, mode="w")
        for name, F in arrays.items():
            group.create_array(name, data=np.ascontiguousarray(F))
    elif kind == ".h5ad":
        import pandas
        from anndata import AnnData

        var = pandas.DataFrame(index=[str(name) for name in names or range(len(U))])
        AnnData(var=var, shape=(len(V), len(U)), obsm={"codes": V}, varm={"parts": U}).write_h5ad(
            folder / "factors.h5ad"
        )
    elif kind in (".h5", ".hdf5"):
        import h5py

        with h5py.File(folder / f"factors{kind}", "w") as file:
            for name, F in arrays.items():
                file[name] = F
    elif kind != ".parquet":
        more: dict[str, Any] = {} if names is None else {"feature_names": np.array(names, dtype=str)}
        np.savez_compressed(folder / "factors.npz", **arrays, **more)


def _columns(rows: Sequence[Mapping[str, Any]]) -> Columns:
    return {name: [row[name] for row in rows] for name in rows[0]}


def _plain(value: Any) -> Any:
    """``value`` for strict JSON: NaN and infinity become null, and other objects text."""
    if isinstance(value, np.ndarray | np.generic):
        value = value.tolist()
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, Mapping):
        return {name: _plain(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return value if value is None or isinstance(value, bool | int | float | str) else str(value)


def squared_errors(X: Any, V: np.ndarray, components: np.ndarray) -> np.ndarray:
    """``‖x − Uv‖²`` of each sample (n,), without a matrix of the size of X."""
    squares = X.multiply(X).sum(axis=1) if sp.issparse(X) else np.square(X).sum(axis=1)
    crossed = ((X @ components.T) * V).sum(axis=1)
    fitted = ((V @ (components @ components.T)) * V).sum(axis=1)
    return (np.asarray(squares).reshape(-1) - 2 * crossed + fitted).clip(0)
