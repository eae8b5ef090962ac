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

from lognmf.models.validation import check_samples
from lognmf.readers import Table, read_table
from lognmf.results import fingerprint

__all__ = ["load"]


def load(
    file: str, labels: str | None, image_shape: str | None, estimators: Sequence[Any], *, scale: bool
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

    Returns
    -------
    table : Table
        The data.
    source : dict
        ``path`` (None for embedded data) and ``sha256``; ``labels_path`` and
        ``labels_sha256`` where the labels have a file of their own.
    """
    table = _read(file, labels, image_shape)
    source = _source(file, labels, table)
    _check_finite(table, file, estimators)
    X = _checked(table.X, estimators)
    return replace(table, X=_unit_samples(X) if scale else X), source


def _read(file: str, labels: str | None, image_shape: str | None) -> Table:
    shape = None if image_shape is None else re.fullmatch(r"(\d+)[x×](\d+)", image_shape)
    if image_shape is not None and shape is None:
        msg = f"--image-shape must be height x width, like 32x32; got {image_shape!r}."
        raise ValueError(msg)
    table = read_table(file, labels)
    if shape is None:
        return table
    height, width = int(shape[1]), int(shape[2])
    if height * width != table.X.shape[1]:
        msg = (
            f"--image-shape {image_shape} has {height * width} pixels, but the samples of {file} have "
            f"{table.X.shape[1]} features."
        )
        raise ValueError(msg)
    return replace(table, image_shape=(height, width))


def _source(file: str, labels: str | None, table: Table) -> dict[str, Any]:
    """Paths and hashes of what was read."""
    if file == "digits":
        source = {"path": None, "sha256": hashlib.sha256(table.X.tobytes()).hexdigest()}
    else:
        source = {"path": str(Path(file).resolve()), "sha256": fingerprint(file)}
    if labels is not None and Path(labels).is_file():
        source |= {"labels_path": str(Path(labels).resolve()), "labels_sha256": fingerprint(labels)}
    return source


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
