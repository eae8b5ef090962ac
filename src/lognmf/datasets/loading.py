"""Data sets by their names."""

from __future__ import annotations

import os

from lognmf.datasets import layouts, places
from lognmf.datasets.dataset import Dataset
from lognmf.datasets.registry import find

__all__ = ["load"]


def load(name: str, *, data_home: str | os.PathLike[str] | None = None) -> Dataset:
    """A data set by its name.

    Its files are looked for in ``data_home``, in the folder that the variable LOGNMF_DATA names,
    and in the cache; files that are nowhere are downloaded, if their terms allow that. A file
    whose hash is not that of the registry is refused.

    Parameters
    ----------
    name : str
        One of ``NAMES``, in capital letters or not: semeion, eyaleb, orl, ar, jaffe, yale, coil20,
        pendigits (the paper's, in its order), ar-100, jaffe-crop, digits. digits needs no file.
    data_home : path, optional
        Folder to look in first, and to download to; default the cache.

    Returns
    -------
    Dataset

    See Also
    --------
    load_folder : Pictures of one's own.

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
    X, y = layouts.read(places.get(entry, data_home), entry)
    return Dataset(
        X=X,
        y=y,
        name=entry.name,
        title=entry.title,
        image_shape=entry.image_shape,
        class_names=entry.class_names,
        feature_names=entry.feature_names,
        points=entry.points,
        source=entry.source,
        licence=entry.licence,
        citation=entry.citation,
    )
