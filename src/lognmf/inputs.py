"""What a command reads: the data as the models will see them, and where they came from."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.preprocessing import normalize

from lognmf.models.validation import check_samples
from lognmf.readers import Table, read_table
from lognmf.results import fingerprint

__all__ = ["read", "samples", "source"]


def read(file: str, labels: str | None = None, image_shape: str | None = None) -> Table:
    """Read a table and give it an image shape in words.

    Parameters
    ----------
    file, labels : str
        As for `read_table`.
    image_shape : str, optional
        Height and width of every sample, as in "32x32".

    Returns
    -------
    Table
    """
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


def source(file: str, labels: str | None, table: Table) -> dict[str, Any]:
    """Paths and hashes of what was read.

    Parameters
    ----------
    file, labels : str
        As given to `read`.
    table : Table
        What it returned.

    Returns
    -------
    dict
        ``path`` (None for embedded data) and ``sha256``; ``labels_path`` and
        ``labels_sha256`` where the labels have a file of their own.
    """
    if file == "digits":
        found = {"path": None, "sha256": hashlib.sha256(table.X.tobytes()).hexdigest()}
    else:
        found = {"path": str(Path(file).resolve()), "sha256": fingerprint(file)}
    if labels is not None and Path(labels).is_file():
        found |= {"labels_path": str(Path(labels).resolve()), "labels_sha256": fingerprint(labels)}
    return found


def samples(table: Table, file: str, estimators: Iterable[Any], *, scale: bool) -> Any:
    """The samples as the fits will see them; refused here if none of the models can take them.

    Parameters
    ----------
    table : Table
        What was read.
    file : str
        Its name, for the messages.
    estimators : iterable of estimators
        The models to be fitted, at least one.
    scale : bool
        Whether to scale the samples to unit norm.

    Returns
    -------
    ndarray or csr_matrix of shape (n, p)
    """
    values = table.X.data if sp.issparse(table.X) else table.X
    if values.dtype.kind == "f" and not (finite := np.isfinite(values)).all():
        missing = finite.size - np.count_nonzero(finite)
        msg = f"{file} has {missing} missing or infinite entries: fill them, or drop these rows."
        raise ValueError(msg)
    refusals = []
    for estimator in estimators:
        try:
            X = check_samples(estimator, table.X, reset=True).X
        except (ValueError, TypeError) as error:
            refusals.append(str(error))
        else:
            return normalize(X) if scale else X
    msg = refusals[0]
    raise ValueError(msg)
