"""Values of a data matrix, checked before any work, in words of the command line."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import scipy.sparse as sp

from lognmf.cli.formats.shared import Asked, hint
from lognmf.datasets import Dataset
from lognmf.models.validation import check_samples, read_samples

_NAMED = 8
"""Columns that a message names."""

_IDS, _LABELS = ("id", "index"), ("target", "label", "labels", "class", "y")
"""Names of columns that are rarely features."""

_NARROW = 50
"""Columns up to which any may be no feature; of wider tables, often of words, only the first and the last."""

_ROWS = 5
"""Rows from which a column that counts them is no accident."""


def check_matrix(X: Any, path: Any) -> None:
    """Refuse what is no matrix of real numbers."""
    if X.ndim != 2:
        flat = f"{X.shape[0]}×{int(np.prod(X.shape[1:]))}" if X.ndim > 2 else "samples×features"
        msg = (
            f"{path} holds an array of shape {X.shape}; it must be a matrix with one sample per row. "
            f"Reshape it to {flat}" + (" and give --image-shape." if X.ndim == 3 else ".")
        )
        raise ValueError(msg)
    if X.dtype.kind not in "buif":
        msg = f"{path} holds values of type {X.dtype}; they must be real numbers."
        raise ValueError(msg)


def check_values(data: Dataset, file: str, estimators: Iterable[Any], *, how: str | None) -> Any:
    """X as the first model that takes it sees it, before it is scaled ``how``; missing entries stay NaN."""
    refusals = []
    samples = read_samples(data.X)
    if how == "minmax" and not sp.issparse(data.X) and np.isfinite(samples.smallest):
        samples = replace(samples, smallest=0.0)  # the scaling lifts every feature to 0
    for estimator in estimators:
        try:
            found = check_samples(estimator, samples, reset=True)
        except (ValueError, TypeError) as error:
            refusals.append((estimator, str(error)))
        else:
            return found.X if found.M is None else np.where(found.M > 0, found.X, np.nan)
    _check_finite(data.X, file)
    first, refusal = refusals[0]
    if samples.smallest < 0 and not first.spec.signed:
        refusal = f"{file} has negative values {_advice(data)}"
    raise ValueError(refusal)


def _check_finite(X: Any, file: str) -> None:
    """Say how many entries of the file are infinite or missing, if any."""
    values = X.data if sp.issparse(X) else X
    infinite, missing = np.isinf(values).sum(), np.isnan(values).sum()
    if infinite:
        msg = f"{file} has infinite entries ({infinite}): replace them, or drop these rows."
        raise ValueError(msg)
    if missing:
        msg = (
            f"{file} has missing entries ({missing}): fill them, drop these rows, or choose wnmf or ls-nmf, "
            "which handle missing entries of a dense table."
        )
        raise ValueError(msg)


def _advice(data: Dataset) -> str:
    """Where the negative values are, and what to do."""
    semi = "choose --model semi-nmf, which takes them."
    lift = "" if sp.issparse(data.X) else "add --scale-features minmax, which maps each column to 0 to 1, or "
    return f"in {where_negative(data.X, data.feature_names)}: {lift}{semi}"


def where_negative(X: Any, names: Sequence[str] | None) -> str:
    """The columns of X with negative entries, in words."""
    low = np.unique(X.indices[X.data < 0]) if sp.issparse(X) else np.flatnonzero((X < 0).any(axis=0))
    words = [f"{j + 1}" if names is None else f"{names[j]!r}" for j in low[:_NAMED]]
    more = f" and {len(low) - _NAMED} more" if len(low) > _NAMED else ""
    return f"column{'s' if len(low) > 1 else ''} {', '.join(words)}{more}"


def hint_at_columns(data: Dataset, given: Asked) -> None:
    """Say so where columns that look like numbers or labels of the samples are used as features."""
    found = [] if data.feature_names is None or sp.issparse(data.X) else _odd_columns(data)
    if found:
        said = [f"column {name!r} ({_meant(name, option, given)})" for name, option in found[:_NAMED]]
        hint(f"used as features: {', '.join(said)}.")


def _odd_columns(data: Dataset) -> list[tuple[str, str]]:
    """Names of features that may be none, each with the option that it may be meant for."""
    X, names = data.X, data.feature_names or ()
    words = [name.strip().lower() for name in names]
    odd = []
    for j, word in enumerate(words):
        told = len(words) <= _NARROW or j in (0, len(words) - 1)
        if _counts(X[:, j]) or (told and word in _IDS and _whole(X[:, j])):
            odd.append((names[j], "--index"))
        elif told and word in _LABELS and _whole(X[:, j]) and not (word == "y" and "x" in words):
            odd.append((names[j], "--labels"))
    return odd


def _counts(column: np.ndarray) -> bool:
    """Whether a column holds whole numbers, each by one larger than that before."""
    if len(column) < _ROWS or column[1] - column[0] != 1:
        return False
    return _whole(column) and bool((np.diff(column) == 1).all())


def _whole(column: np.ndarray) -> bool:
    return bool((column == np.floor(column)).all())


def _meant(name: str, option: str, given: Asked) -> str:
    """What to do with a column that may be no feature."""
    if (given.index if option == "--index" else given.labels) is not None:
        return "if it is none, remove it from the file"
    what = "it names the samples" if option == "--index" else "it is their label"
    return f"if {what}, give {option} {shlex.quote(name)}"
