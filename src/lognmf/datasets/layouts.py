"""How data and labels lie in the files of the registry: one function per layout."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import scipy.io
from sklearn.datasets import load_digits

from lognmf.datasets.pictures import load_folder
from lognmf.datasets.registry import Entry

__all__ = ["LAYOUTS", "read"]

Values = tuple[np.ndarray, Any]


def _matlab(paths: Sequence[Path], entry: Entry) -> Values:
    """Two arrays of a MATLAB 5 file."""
    data, labels = entry.arrays
    content = scipy.io.loadmat(paths[0], variable_names=[data, labels])
    return content[data], content[labels]


def _one_hot(paths: Sequence[Path], entry: Entry) -> Values:
    """Numbers between blanks; one column a class behind the features, 1 in that of the sample."""
    table = np.loadtxt(paths[0])
    return table[:, : entry.features], table[:, entry.features :].argmax(axis=1)


def _last_column(paths: Sequence[Path], entry: Entry) -> Values:
    """Files of numbers between commas, one below the other; the class stands last."""
    table = np.concatenate([np.loadtxt(path, delimiter=",") for path in paths])
    return table[:, :-1], table[:, -1]


def _scikit_learn(paths: Sequence[Path], entry: Entry) -> Values:
    """What comes with scikit-learn."""
    return load_digits(return_X_y=True)


def _pictures(paths: Sequence[Path], entry: Entry) -> Values:
    """An archive of pictures, one folder a class."""
    pictures = load_folder(paths[0])
    return pictures.X, pictures.y


LAYOUTS: dict[str, Callable[[Sequence[Path], Entry], Values]] = {
    "matlab": _matlab,
    "one-hot": _one_hot,
    "last-column": _last_column,
    "scikit-learn": _scikit_learn,
    "pictures": _pictures,
}
"""Layouts by the name they have in the registry."""


def read(paths: Sequence[Path], entry: Entry) -> tuple[np.ndarray, np.ndarray]:
    """Data and labels of a set.

    Parameters
    ----------
    paths : sequence of Path
        Its files.
    entry : Entry
        What the registry says of it.

    Returns
    -------
    X : ndarray of shape (n, p)
        The values of the file, in float64; pictures row by row.
    y : ndarray of shape (n,)
        Classes, from 0.
    """
    data, labels = LAYOUTS[entry.layout](paths, entry)
    X = np.array(data, dtype=np.float64, order="C")[: entry.rows]
    if entry.order == "columns" and entry.image_shape is not None:
        height, width = entry.image_shape
        X = X.reshape(-1, width, height).transpose(0, 2, 1).reshape(len(X), -1)
    y = np.unique(np.asarray(labels).reshape(-1)[: entry.rows], return_inverse=True)[1]
    return X, y.astype(np.intp)
