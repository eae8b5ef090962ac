"""``lognmf transform`` and ``predict``: a result folder applied to new samples."""

from __future__ import annotations

import csv
import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from lognmf.cli import options
from lognmf.cli.folder import MODEL, PREPARATION, SAMPLES, SUMMARY, THEIR_CLUSTERS, read_summary
from lognmf.cli.formats.shared import Fitted, parsing
from lognmf.cli.help import option
from lognmf.cli.options import interruptible, worded
from lognmf.files import check_new, new_file
from lognmf.reading import printable

Results = Annotated[
    Path,
    typer.Argument(
        rich_help_panel="Data", metavar="RESULTS", help="Result folder of lognmf fit or lognmf cluster."
    ),
]
Replace = Annotated[bool, option("Results", "--force", help="Replace an existing file.")]


def transform(
    context: typer.Context,
    results: Results,
    file: options.File,
    index: options.Index = None,
    features: options.Features = None,
    layer: options.Layer = None,
    transpose: options.Transpose = False,
    resize: options.Resize = None,
    out: Annotated[
        Path | None, option("Results", metavar="FILE", help="A csv file.", show_default="DATA-codes.csv")
    ] = None,
    force: Replace = False,
) -> None:
    """Write the codes of new samples.

    The codes say how much of each part is in a sample. The samples are scaled as those of the fit were.
    Columns are matched by name where both have names, and those that the model does not know are left out.
    The column of sample names is that of the fit unless --index is given.
    """
    with interruptible(), worded(ValueError, OSError, MemoryError):
        target = _target(out, file, "codes", force=force)
        model, X, names = _prepared(results, file, context)
        codes = model.transform(X)
        columns = {f"part {j}": codes[:, j] for j in range(codes.shape[1])}
        if hasattr(model, "outlier_norm_"):
            columns["outlier norm"] = np.linalg.norm(model.outliers(X), axis=1)
        _write(target, names, columns, force=force)
    typer.echo(f"The codes are in {printable(str(target))}")


def predict(
    context: typer.Context,
    results: Results,
    file: options.File,
    index: options.Index = None,
    features: options.Features = None,
    layer: options.Layer = None,
    transpose: options.Transpose = False,
    resize: options.Resize = None,
    out: Annotated[
        Path | None, option("Results", metavar="FILE", help="A csv file.", show_default="DATA-clusters.csv")
    ] = None,
    force: Replace = False,
) -> None:
    """Write the clusters of new samples.

    They are those of the nearest neighbours among the samples of the fit. Neighbours are sought among the
    samples after lognmf cluster, and among the codes after lognmf fit.
    """
    with interruptible(), worded(ValueError, OSError, MemoryError):
        from lognmf.cli.formats import load_npy
        from lognmf.cli.read import read_data
        from lognmf.clusterer import alike, vote
        from lognmf.models.validation import check_samples

        target = _target(out, file, "clusters", force=force)
        model, X, names = _prepared(results, file, context)
        if (results / SAMPLES).is_file():
            known, new = read_data(results / SAMPLES).X, check_samples(model, X, reset=False).X
            labels = load_npy(results / THEIR_CLUSTERS)
        else:
            known, new, labels = model.embedding_, model.transform(X), clusters(results)
        _write(target, names, {"cluster": vote(alike(new, known), known, labels)}, force=force)
    typer.echo(f"The clusters are in {printable(str(target))}")


def _target(out: Path | None, file: str, what: str, *, force: bool) -> Path:
    """The file to be written, which must be a csv file."""
    stem = Path(os.path.abspath(file)).stem  # noqa: PTH100 - as default_folder has it
    target = check_new(out or f"{stem}-{what}.csv", force=force)
    if target.suffix.lower() != ".csv":
        msg = f"--out must end in .csv; got {target.name}."
        raise ValueError(msg)
    return target


def _prepared(results: Path, file: str, context: typer.Context) -> tuple[Any, Any, Sequence[str] | None]:
    """The model, and new samples as it sees them, with their names."""
    from lognmf.cli.read import read_data, reading, size_of
    from lognmf.cli.scaling import Preparation
    from lognmf.cli.values import where_negative
    from lognmf.models.validation import read_samples
    from lognmf.persistence import load_model

    if not (results / SUMMARY).is_file() or not (results / MODEL).is_file():
        msg = f"{results} is no result folder of lognmf fit or lognmf cluster: give one that holds {MODEL}."
        raise ValueError(msg)
    model, preparation = load_model(results / MODEL), Preparation.load(results / PREPARATION)
    index = _index(results)
    if hasattr(model, "feature_names_in_"):
        del model.feature_names_in_  # the preparation has matched the columns by then
    given = reading(context)
    matched = not (given.transpose or given.features)  # then the columns are not, or not called, the features
    given = replace(given, fitted=Fitted((preparation.feature_names or ()) if matched else (), index))
    data = read_data(file, given, resize=size_of("--resize", given.resize))
    X = preparation.in_order(data.X, data.feature_names, file)
    if X.shape[1] != model.n_features_in_:
        msg = f"{file} has {X.shape[1]} features, but the model has {model.n_features_in_}."
        raise ValueError(msg)
    X = preparation(X)
    if not model.spec.signed and read_samples(X).smallest < 0:
        names = data.feature_names if preparation.feature_names is None else preparation.feature_names
        where = where_negative(X, names)
        msg = f"{file} has negative values in {where}: the model takes none, as its fit had none."
        raise ValueError(msg)
    return model, X, data.sample_names


def _index(results: Path) -> str | None:
    """The column that named the samples of the fit, if one did."""
    summary = read_summary(results)
    with parsing(results / SUMMARY):
        index = summary["settings"].get("index")
        if not isinstance(index, str | None):
            msg = f"the index must be the name of a column; got {index!r}"
            raise TypeError(msg)
        return index


def clusters(results: Path) -> np.ndarray:
    """The clusters of the samples of the fit."""
    from pyarrow import csv as arrow_csv
    from pyarrow import parquet

    packed = results / "labels.parquet"
    table = parquet.read_table(packed) if packed.is_file() else arrow_csv.read_csv(results / "labels.csv")
    return table.column("cluster").to_numpy()


def _write(
    path: Path, names: Sequence[str] | None, columns: Mapping[str, np.ndarray], *, force: bool
) -> None:
    """A csv file with a row for each sample."""
    count = len(next(iter(columns.values())))
    named = {} if names is None else {"name": names}
    rows = zip(range(count), *named.values(), *(column.tolist() for column in columns.values()), strict=True)
    with new_file(path, force=force) as fresh, fresh.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["sample", *named, *columns])
        writer.writerows(rows)
