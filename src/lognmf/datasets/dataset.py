"""What a data set is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

__all__ = ["Dataset"]


@dataclass(frozen=True, eq=False)
class Dataset:
    """Samples, their classes and where they come from.

    Parameters
    ----------
    X : ndarray of shape (n, p)
        Samples in rows, float64, with the values of the file. ``X[i].reshape(image_shape)`` is
        an upright picture.
    y : ndarray of shape (n,), or None
        Classes 0, 1, …; None where they are not known.
    name : str
        What `load` calls it.
    title : str
        What people call it.
    image_shape : (int, int), optional
        Height and width, when samples are pictures.
    class_names : tuple of str, optional
        What class 0, 1, … is called.
    feature_names : tuple of str, optional
        Names of the columns of X.
    points : bool, default=False
        Whether the features are points x1 y1 x2 y2 … of a line.
    source, licence, citation : str
        Where it comes from, under which terms it may be used, what to cite.
    """

    X: Any
    y: np.ndarray | None
    name: str
    title: str
    image_shape: tuple[int, int] | None = None
    class_names: tuple[str, ...] | None = None
    feature_names: tuple[str, ...] | None = None
    points: bool = False
    source: str = ""
    licence: str = ""
    citation: str = ""

    def __repr__(self) -> str:
        n, p = self.X.shape
        classes = "" if self.class_names is None else f", {len(self.class_names)} classes"
        return f"<Dataset {self.name}: {n} samples of {p} features{classes}>"
