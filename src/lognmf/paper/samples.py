"""The samples of a cell: loaded, scaled to unit norm, made noisy, with their neighbour graph."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.preprocessing import normalize

from lognmf import datasets, noise
from lognmf.graph import knn_graph
from lognmf.paper.spec import Data, Noise

__all__ = ["NOISES", "Samples", "prepare", "size"]


@dataclass(frozen=True, eq=False)
class Samples:
    """What a model gets to see, and what judges it.

    Parameters
    ----------
    X : ndarray of shape (n, p)
        Samples in rows.
    y : ndarray of shape (n,)
        Their classes 0, 1, ….
    W : csr_array of shape (n, n)
        Graph of the 5 nearest neighbours in X as it is, noise included.
    removed : ndarray of bool of shape (n, p), optional
        Which entries were removed.
    image_shape : tuple of int, optional
        Height and width of a sample, if it is a picture.
    """

    X: np.ndarray
    y: np.ndarray
    W: sp.csr_array
    removed: np.ndarray | None
    image_shape: tuple[int, int] | None

    @property
    def classes(self) -> int:
        """Number of classes."""
        return int(self.y.max()) + 1


def _clean(X: np.ndarray, noise: Noise) -> tuple[np.ndarray, None]:
    return X, None


def _removal(X: np.ndarray, what: Noise) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(what.seed)
    changed, kept = noise.remove(X, what.level, rng, replacement=what.replacement)
    return changed, ~np.asarray(kept, dtype=bool)


def _gaussian(X: np.ndarray, what: Noise) -> tuple[np.ndarray, None]:
    return noise.gaussian(X, what.level, np.random.default_rng(what.seed)), None


NOISES = {"none": _clean, "removal": _removal, "gaussian": _gaussian}
"""Kinds of noise by name: ``(X, noise) -> (X, removed entries or None)``."""


@lru_cache(maxsize=4)
def prepare(data: Data, what: Noise) -> Samples:
    """The samples of a cell. The last few are kept, since cells of one data set follow each other."""
    X, y, image_shape = _load(data)
    X, removed = NOISES[what.kind](X, what)
    return Samples(X, y, knn_graph(X, min(5, len(X) - 1)), removed, image_shape)


def size(data: Data) -> tuple[int, int, int]:
    """Samples, features and classes."""
    X, y, _ = _load(data)
    return (*X.shape, int(y.max()) + 1)


@lru_cache(maxsize=16)
def _load(data: Data) -> tuple[np.ndarray, np.ndarray, Any]:
    found = datasets.load(data.name)
    X = np.asarray(found.X[: data.head], dtype=np.float64)
    y = np.unique(np.asarray(found.y)[: data.head], return_inverse=True)[1]
    return normalize(X), y, found.image_shape
