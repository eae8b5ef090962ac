"""The samples of a cell: loaded, scaled to unit norm, noise added, with their neighbour graph."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.preprocessing import normalize

from lognmf import datasets
from lognmf.graph import knn_graph
from lognmf.noise import gaussian, remove
from lognmf.paper.spec import Data, Noise


@dataclass(frozen=True, eq=False)
class Samples:
    """What a model is given, and the classes that its clustering is compared with."""

    X: np.ndarray  # (n, p), one sample per row
    y: np.ndarray  # (n,), classes 0, 1, …
    W: sp.csr_array  # (n, n), graph of the 5 nearest neighbours in X, noise included
    removed: np.ndarray | None  # (n, p) of bool, the entries that were removed
    image_shape: tuple[int, int] | None

    @property
    def classes(self) -> int:
        """Number of classes."""
        return int(self.y.max()) + 1


@lru_cache(maxsize=4)
def prepare(data: Data, noise: Noise) -> Samples:
    """The samples of a cell. The last few are cached, since cells of one data set follow each other."""
    X, y, image_shape = _load(data)
    rng, removed = np.random.default_rng(noise.seed), None
    if noise.kind == "removal":
        X, kept = remove(X, noise.level, rng, replacement=noise.replacement)
        removed = ~np.asarray(kept, dtype=bool)
    elif noise.kind == "gaussian":
        X = gaussian(X, noise.level, rng)
    return Samples(X, y, knn_graph(X, min(5, len(X) - 1)), removed, image_shape)


def size(data: Data) -> tuple[int, int, int]:
    """Samples, features and classes, from the files."""
    X, y, _ = _load(data)
    return (*X.shape, int(y.max()) + 1)


@lru_cache(maxsize=16)
def _load(data: Data) -> tuple[np.ndarray, np.ndarray, Any]:
    """Samples of unit norm, their classes and the shape of their pictures."""
    dataset = datasets.load(data.name)
    X = np.asarray(dataset.X[: data.head], dtype=np.float64)
    y = np.unique(np.asarray(dataset.y)[: data.head], return_inverse=True)[1]
    return normalize(X), y, dataset.image_shape
