"""Data sets by name: their files are read according to the layout that the registry states."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np
import scipy.io
from sklearn.datasets import load_digits

from lognmf.datasets import places
from lognmf.datasets.pictures import load_folder
from lognmf.datasets.registry import Dataset, Entry, find


def load(name: str, *, data_home: str | os.PathLike[str] | None = None) -> Dataset:
    """Load a data set by its name.

    Its files are looked for in ``data_home``, in the folder named by the variable LOGNMF_DATA, and in the
    cache. Missing files are downloaded if their terms allow it. A file with an unexpected hash is refused.

    Parameters
    ----------
    name : str
        One of ``NAMES``, in upper or lower case: semeion, eyaleb, orl, ar, jaffe, yale, coil20,
        pendigits (the paper's, in its order), ar-100, jaffe-crop, digits. digits needs no file.
    data_home : path, optional
        Folder to look in first, and to download to; default the cache.

    Returns
    -------
    Dataset
        The samples, their classes and their source.

    Raises
    ------
    ValueError, FileNotFoundError
        If the name is unknown, or a file is missing or differs from the registry's.

    See Also
    --------
    load_folder : Loads your own pictures.

    Examples
    --------
    >>> from lognmf import datasets
    >>> digits = datasets.load("digits")
    >>> digits
    <Dataset digits: 1797 samples of 64 features, 10 classes>
    >>> digits.X[0].reshape(digits.image_shape).shape
    (8, 8)
    """
    entry = find(name)
    data, labels = LAYOUTS[entry.layout](places.get(entry, data_home), entry)
    X = np.array(data, dtype=np.float64, order="C")[: entry.rows]
    if entry.order == "columns" and entry.image_shape is not None:
        height, width = entry.image_shape
        X = X.reshape(-1, width, height).transpose(0, 2, 1).reshape(len(X), -1)
    y = np.unique(np.asarray(labels).reshape(-1)[: entry.rows], return_inverse=True)[1].astype(np.intp)
    facts = {
        field.name: getattr(entry, field.name) for field in fields(Dataset) if hasattr(entry, field.name)
    }
    return Dataset(X, y, **facts)


Values = tuple[np.ndarray, Any]
"""Data and labels."""


def _matlab(paths: Sequence[Path], entry: Entry) -> Values:
    """Two arrays of a MATLAB 5 file."""
    data, labels = entry.arrays
    content = scipy.io.loadmat(paths[0], variable_names=[data, labels])
    return content[data], content[labels]


def _one_hot(paths: Sequence[Path], entry: Entry) -> Values:
    """Numbers separated by blanks: the features, then one column per class with a 1 for the sample's."""
    table = np.loadtxt(paths[0])
    return table[:, : entry.features], table[:, entry.features :].argmax(axis=1)


def _last_column(paths: Sequence[Path], entry: Entry) -> Values:
    """Files of comma-separated numbers, one below the other; the class is the last column."""
    table = np.concatenate([np.loadtxt(path, delimiter=",") for path in paths])
    return table[:, :-1], table[:, -1]


def _scikit_learn(paths: Sequence[Path], entry: Entry) -> Values:
    """The digits of scikit-learn."""
    return load_digits(return_X_y=True)


def _pictures(paths: Sequence[Path], entry: Entry) -> Values:
    """An archive of pictures, one folder per class."""
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
