"""Data sets, and the registry of those that have names; reading it opens no data file."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from importlib.resources import files
from typing import Any

import numpy as np


@dataclass(frozen=True, eq=False)
class Dataset:
    """Samples, their classes and their source.

    Parameters
    ----------
    X : ndarray of shape (n, p)
        Samples in rows, float64, with the values of the file. ``X[i].reshape(image_shape)`` is
        an upright picture.
    y : ndarray of shape (n,), or None
        Classes 0, 1, …; None if unknown.
    name : str
        The name that `load` knows it by.
    title : str
        Its full name.
    image_shape : (int, int), optional
        Height and width, when samples are pictures.
    class_names : tuple of str, optional
        Names of class 0, 1, ….
    feature_names : tuple of str, optional
        Names of the columns of X.
    sample_names : tuple of str, optional
        Names of the rows of X.
    points : bool, default=False
        Whether the features are points x1 y1 x2 y2 … of a line.
    source, licence, citation : str
        Where it comes from, under which terms it may be used, what to cite.

    See Also
    --------
    lognmf.datasets.load : Reads one by its name.

    Examples
    --------
    >>> import numpy as np
    >>> Dataset(np.eye(3), None, "corners", "Three corners")
    <Dataset corners: 3 samples of 3 features>
    """

    X: Any
    y: np.ndarray | None
    name: str
    title: str
    image_shape: tuple[int, int] | None = None
    class_names: tuple[str, ...] | None = None
    feature_names: tuple[str, ...] | None = None
    sample_names: tuple[str, ...] | None = None
    points: bool = False
    source: str = ""
    licence: str = ""
    citation: str = ""

    def __repr__(self) -> str:
        n, p = self.X.shape
        classes = "" if self.class_names is None else f", {len(self.class_names)} classes"
        return f"<Dataset {self.name}: {n} samples of {p} features{classes}>"


@dataclass(frozen=True)
class File:
    """A file of a data set: its path below a data folder, its hash, and its address if it may be shared."""

    path: str
    sha256: str
    url: str | None = None


@dataclass(frozen=True)
class Entry:
    """A data set of the registry; ``registry.toml`` says what each field means."""

    name: str
    title: str
    samples: int
    features: int
    classes: int
    layout: str
    class_name: str
    first_class: int
    source: str
    licence: str
    citation: str
    files: tuple[File, ...]
    paper: str | None = None
    image_shape: tuple[int, int] | None = None
    order: str = "rows"
    points: bool = False
    arrays: tuple[str, str] = ("X", "y")
    rows: int | None = None
    ask: str | None = None

    @property
    def class_names(self) -> tuple[str, ...]:
        """What the classes 0, 1, … are called."""
        return tuple(self.class_name.format(self.first_class + label) for label in range(self.classes))

    @property
    def feature_names(self) -> tuple[str, ...] | None:
        """Names of the features, where they have some."""
        if not self.points:
            return None
        return tuple(f"{axis}{i + 1}" for i in range(self.features // 2) for axis in "xy")


def _entry(name: str, fields: dict[str, Any]) -> Entry:
    """The data set ``name`` from its part of ``registry.toml``."""
    facts: dict[str, Any] = {k: tuple(v) if isinstance(v, list) else v for k, v in fields.items()}
    return Entry(name, **facts | {"files": tuple(File(**file) for file in fields["files"])})


_TEXT = files("lognmf.datasets").joinpath("registry.toml").read_text(encoding="utf-8")
REGISTRY: dict[str, Entry] = {name: _entry(name, fields) for name, fields in tomllib.loads(_TEXT).items()}
"""The named data sets, those of the paper first."""

NAMES: tuple[str, ...] = tuple(REGISTRY)
"""Names that `load` knows."""

PAPER: dict[str, str] = {name: entry.paper for name, entry in REGISTRY.items() if entry.paper}
"""The paper's eight data sets in its order: our name, and how its tables spell it."""


def find(name: str) -> Entry:
    """The data set called ``name``, in upper or lower case; other names are refused."""
    entry = REGISTRY.get(name.lower()) if isinstance(name, str) else None
    if entry is None:
        msg = f"There is no data set {name!r}: the names are {', '.join(REGISTRY)}."
        raise ValueError(msg)
    return entry
