"""``lognmf transform`` and ``predict``: a result folder applied to new samples."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from lognmf.cli import options
from lognmf.cli.options import argument, interruptible, option, worded
from lognmf.cli.results import CLUSTERER, MODEL, PREPARATION, SUMMARY, load_labels, read_summary
from lognmf.files import check_new, new_file, write_csv
from lognmf.io import Fitted, parsing
from lognmf.reading import printable

Results = Annotated[Path, argument("Data", "RESULTS", "Result folder of lognmf fit or lognmf cluster.")]

_VOTERS = 3
"""Neighbours that decide on the cluster of a new sample, as in `NMFClustering.predict`."""

_ENTRIES = 1 << 22
"""Entries of the outlier part that are computed at a time."""


def _out(what: str) -> Any:
    return option("Results", metavar="FILE", help="A csv file.", show_default=f"DATA-{what}.csv")


def transform(
    context: typer.Context,
    results: Results,
    file: options.File,
    index: options.Index = None,
    features: options.Features = None,
    layer: options.Layer = None,
    transpose: options.Transpose = False,
    resize: options.Resize = None,
    out: Annotated[Path | None, _out("codes")] = None,
    force: options.ForceFile = False,
) -> None:
    """Write the codes of new samples.

    The codes say how much of each part is in a sample. The samples are scaled as those of the fit were.
    Columns are matched by name where both have names, and columns that the model does not know are ignored.
    The column of sample names is that of the fit unless --index is given.
    """
    with interruptible(), worded(ValueError, OSError, MemoryError):
        target = _target(out, file, "codes", force=force)
        model, X, names = _prepared(results, file, context)
        V = model.transform(X)
        columns = {f"part {j}": V[:, j] for j in range(V.shape[1])}
        if hasattr(model, "outlier_norm_"):
            rows = max(1, _ENTRIES // X.shape[1])  # the outlier part is dense
            parts = (model.outliers(X[i : i + rows], V[i : i + rows]) for i in range(0, len(V), rows))
            columns["outlier norm"] = np.concatenate([np.linalg.norm(S, axis=1) for S in parts])
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
    out: Annotated[Path | None, _out("clusters")] = None,
    force: options.ForceFile = False,
) -> None:
    """Write the clusters of new samples.

    They are those of the nearest neighbours among the samples of the fit. Neighbours are sought among the
    samples after lognmf cluster, and among the codes after lognmf fit.
    """
    with interruptible(), worded(ValueError, OSError, MemoryError):
        from sklearn.neighbors import KNeighborsClassifier

        from lognmf import load_model

        target = _target(out, file, "clusters", force=force)
        model, X, names = _prepared(results, file, context)
        if (results / CLUSTERER).is_file():
            clusters = _without_names(load_model(results / CLUSTERER)).predict(X)
        else:
            codes, labels = model.embedding_, load_labels(results)
            voters = KNeighborsClassifier(min(_VOTERS, len(codes)), weights="distance", algorithm="brute")
            clusters = voters.fit(codes, labels).predict(model.transform(X))
        _write(target, names, {"cluster": clusters}, force=force)
    typer.echo(f"The clusters are in {printable(str(target))}")


def _target(out: Path | None, file: str, what: str, *, force: bool) -> Path:
    """The file to be written, which must be a csv file."""
    target = check_new(out or f"{options.stem(file)}-{what}.csv", force=force)
    if target.suffix.lower() != ".csv":
        msg = f"--out must end in .csv; got {target.name}."
        raise ValueError(msg)
    return target


def _prepared(results: Path, file: str, context: typer.Context) -> tuple[Any, Any, Sequence[str] | None]:
    """The model, and new samples as it sees them, with their names."""
    from lognmf import io, load_model
    from lognmf.cli.prepare import Preparation, negative_columns

    if not (results / SUMMARY).is_file() or not (results / MODEL).is_file():
        msg = (
            f"{results} is not a result folder of lognmf fit or lognmf cluster: give one that holds {MODEL}."
        )
        raise ValueError(msg)
    model = _without_names(load_model(results / MODEL))
    preparation = Preparation.load(results / PREPARATION)
    params = context.params
    # Transposed columns have no names yet, and --features gives them others.
    by_name = not (params["transpose"] or params["features"])
    fitted = Fitted((preparation.feature_names or ()) if by_name else (), _index(results))
    data = io.read(file, options.request(params, fitted))
    X = preparation.in_order(data.X, data.feature_names, file)
    if X.shape[1] != model.n_features_in_:
        msg = f"{file} has {X.shape[1]} features, but the model has {model.n_features_in_}."
        raise ValueError(msg)
    values = X.data if hasattr(X, "indices") else X
    lifted = preparation.shift is not None  # to 0 at least
    if (preparation.log or not model.spec.signed) and not lifted and (values < 0).any():
        names = data.feature_names if preparation.feature_names is None else preparation.feature_names
        msg = f"{file} has negative values in {negative_columns(X, names)}: the model takes none."
        raise ValueError(msg)
    X = preparation(X)
    return model, X, data.sample_names


def _without_names(model: Any) -> Any:
    """The model without the names of its features: the preparation has matched the columns."""
    if hasattr(model, "feature_names_in_"):
        del model.feature_names_in_
    return model


def _index(results: Path) -> str | None:
    """The column that named the samples of the fit, if one did."""
    summary = read_summary(results)
    with parsing(results / SUMMARY):
        index = summary["settings"].get("index")
        if not isinstance(index, str | None):
            msg = f"the index must be the name of a column; got {index!r}"
            raise TypeError(msg)
        return index


def _write(
    path: Path, names: Sequence[str] | None, columns: Mapping[str, np.ndarray], *, force: bool
) -> None:
    """Write a csv file with a row for each sample."""
    sample: dict[str, Any] = {"sample": np.arange(len(next(iter(columns.values()))))}
    sample |= {} if names is None else {"name": names}
    with new_file(path, force=force) as fresh:
        write_csv(fresh, {**sample, **columns})
