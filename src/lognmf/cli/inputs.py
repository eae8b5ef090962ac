"""What a command reads: the data as the models will see them, and where they came from."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.preprocessing import normalize

from lognmf.cli.read import Table, is_name, read_table
from lognmf.cli.write import fingerprint
from lognmf.datasets.registry import find
from lognmf.models.validation import check_samples

__all__ = ["load", "read"]


def load(
    file: str,
    labels: str | None,
    image_shape: str | None,
    estimators: Sequence[Any],
    *,
    scale: bool,
    resize: str | None = None,
) -> tuple[Table, dict[str, Any]]:
    """Read a table as the models will see it; refused here if none of them can take it.

    Parameters
    ----------
    file, labels : str
        As for `read_table`.
    image_shape : str or None
        Height and width of every sample, as in "32x32".
    estimators : sequence of estimators
        The models to be fitted, at least one.
    scale : bool
        Whether to scale the samples to unit norm.
    resize : str or None
        Height and width that pictures are brought to, as in "32x32".

    Returns
    -------
    table : Table
        The data.
    source : dict
        ``path`` (None for a named data set, which has ``dataset``, ``source``, ``licence`` and
        ``citation`` instead) and ``sha256``, that of the values where they are not of a single
        file; ``labels_path`` and ``labels_sha256`` where the labels have a file of their own.
    """
    table = read(file, labels, image_shape, resize)
    source = _source(file, labels, table)
    _check_finite(table, file, estimators)
    X = _checked(table.X, estimators)
    return replace(table, X=_unit_samples(X) if scale else X), source


def read(file: str, labels: str | None, image_shape: str | None, resize: str | None) -> Table:
    """Read a table as it is.

    Parameters
    ----------
    file, labels, image_shape, resize : str
        As for `load`.

    Returns
    -------
    Table
    """
    shape, size = _shape("--image-shape", image_shape), _shape("--resize", resize)
    table = read_table(file, labels, resize=size)
    if shape is None:
        return table
    pixels = shape[0] * shape[1]
    if pixels != table.X.shape[1]:
        msg = (
            f"--image-shape {image_shape} has {pixels} pixels, but the samples of {file} have "
            f"{table.X.shape[1]} features."
        )
        raise ValueError(msg)
    return replace(table, image_shape=shape)


def _shape(option: str, text: str | None) -> tuple[int, int] | None:
    """Height and width out of a text like 32x32."""
    if text is None:
        return None
    found = re.fullmatch(r"(\d+)[x×](\d+)", text)
    if found is None:
        msg = f"{option} must be height x width, like 32x32; got {text!r}."
        raise ValueError(msg)
    return int(found[1]), int(found[2])


def _source(file: str, labels: str | None, table: Table) -> dict[str, Any]:
    """Paths and hashes of what was read."""
    path = Path(file).resolve()
    if is_name(file):
        entry = find(file)
        told = {"source": entry.source, "licence": entry.licence, "citation": entry.citation}
        source: dict[str, Any] = {"path": None, "dataset": entry.name, "sha256": _hash_of(table), **told}
    else:
        source = {"path": str(path), "sha256": _hash_of(table) if path.is_dir() else fingerprint(path)}
    if labels is not None and Path(labels).is_file():
        source |= {"labels_path": str(Path(labels).resolve()), "labels_sha256": fingerprint(labels)}
    return source


def _hash_of(table: Table) -> str:
    return hashlib.sha256(table.X.tobytes()).hexdigest()


def _check_finite(table: Table, file: str, estimators: Sequence[Any]) -> None:
    values = table.X.data if sp.issparse(table.X) else table.X
    if values.dtype.kind != "f" or np.isfinite(values).all():
        return
    if np.isinf(values).any():
        msg = f"{file} has infinite entries ({np.isinf(values).sum()}): replace them, or drop these rows."
        raise ValueError(msg)
    if sp.issparse(table.X) or not any(estimator._missing for estimator in estimators):
        msg = (
            f"{file} has missing entries ({np.isnan(values).sum()}): fill them, drop these rows, or choose "
            "wnmf or ls-nmf, which leave missing entries of a dense table out."
        )
        raise ValueError(msg)


def _unit_samples(X: Any) -> Any:
    """Samples of unit norm; missing entries stay missing and count nothing."""
    if sp.issparse(X) or not np.isnan(X.min()):
        return normalize(X)
    norms = np.sqrt(np.nansum(X**2, axis=1, keepdims=True))
    return X / np.where(norms > 0, norms, 1)


def _checked(X: Any, estimators: Sequence[Any]) -> Any:
    """X as the first model that can take it sees it, missing entries still NaN."""
    refusals = []
    for estimator in estimators:
        try:
            known = check_samples(estimator, X, reset=True)
            return known.X if known.M is None else np.where(known.M > 0, known.X, np.nan)
        except (ValueError, TypeError) as error:
            refusals.append(str(error))
    msg = refusals[0]
    raise ValueError(msg)
