"""The samples of a cell: loaded, scaled to unit norm, made noisy; their graph, and how long fits take."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.preprocessing import normalize

from lognmf import datasets
from lognmf.datasets.registry import REGISTRY
from lognmf.graph import knn_graph
from lognmf.noise import gaussian, remove
from lognmf.paper.methods import RIVALS
from lognmf.paper.spec import Cell, Data, Noise, Piece
from lognmf.paper.work import BATCHED, on_device

__all__ = ["NOISES", "Samples", "prepare", "size"]


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


def _clean(X: np.ndarray, noise: Noise) -> tuple[np.ndarray, None]:
    """The samples as they are."""
    return X, None


def _removal(X: np.ndarray, noise: Noise) -> tuple[np.ndarray, np.ndarray]:
    """Some entries set to zero."""
    rng = np.random.default_rng(noise.seed)
    changed, kept = remove(X, noise.level, rng, replacement=noise.replacement)
    return changed, ~np.asarray(kept, dtype=bool)


def _gaussian(X: np.ndarray, noise: Noise) -> tuple[np.ndarray, None]:
    """Noise added to every entry, all shifted to be nonnegative."""
    return gaussian(X, noise.level, np.random.default_rng(noise.seed)), None


NOISES = {"none": _clean, "removal": _removal, "gaussian": _gaussian}
"""Kinds of noise by name: ``(X, noise) -> (X, removed entries or None)``."""


@lru_cache(maxsize=4)
def prepare(data: Data, noise: Noise) -> Samples:
    """The samples of a cell. The last few are cached, since cells of one data set follow each other."""
    X, y, image_shape = _load(data)
    X, removed = NOISES[noise.kind](X, noise)
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


_PIECE_SECONDS = 2000.0
"""Longest time of a piece on one core: what a kill can lose. Short enough to keep a GPU evenly busy."""

_RATE = 1.2e10
"""Multiplications per second of one core in the two products with X of an iteration (measured, float64)."""

_ENTRY = 2.5e-8
"""Seconds of one core for an entry of a factor in an iteration (measured)."""

_RESIDUAL = 4.5e-8
"""Seconds of one core for an entry of X in an iteration of RMNMF, which keeps a residual (measured)."""

_PIECE_START = 0.1
"""Seconds of one core that a piece takes besides its fits."""

_BATCH_GAIN = 2.0
"""How much faster a setting is in a batch."""

_GPU_RATE, _GPU_ENTRY, _GPU_START = 3.3e13, 2e-10, 0.5
"""The same on one H200 in float32, and the seconds it takes to start (measured)."""


def _size(data: Data) -> tuple[int, int, int]:
    """Samples, features and classes: from the registry, so that no file is read, or of the first samples."""
    entry = REGISTRY.get(data.name)
    if entry is None or data.head is not None:
        return size(data)
    return entry.samples, entry.features, entry.classes


def cpu_seconds(cell: Cell) -> float:
    """Seconds of one core for one fit of a cell."""
    n, p, k = _size(cell.data)
    if cell.model in RIVALS:
        return _PIECE_START + 1e-3 * n
    products = 4.0 * n * p * k * (2 if cell.model == "CNMF" else 1)
    masked = _RESIDUAL * n * p if cell.option("mask") or cell.model == "RMNMF" else 0.0
    iterations = cell.option("max_iter", 500)
    return iterations * (products / _RATE + _ENTRY * (n + p) * k + masked)


def expected_seconds(piece: Piece, device: str | None) -> float:
    """Seconds for a piece: of one core, or of the GPU for what runs there."""
    if device is None or not device.startswith("cuda") or not on_device(piece.cell):
        gain = _BATCH_GAIN if piece.fits > 1 and piece.cell.model in BATCHED else 1.0
        return _PIECE_START + piece.fits * cpu_seconds(piece.cell) / gain
    n, p, k = _size(piece.cell.data)
    iterations = piece.cell.option("max_iter", 500)
    return _GPU_START + piece.fits * iterations * (4.0 * n * p * k / _GPU_RATE + _GPU_ENTRY * n * k)


def piece_size(cell: Cell) -> int:
    """Fits in a piece: one for models that gain nothing from a batch, else as many as the time allows."""
    if cell.work != "grid" or cell.model not in BATCHED:
        return 1
    return max(1, int(_PIECE_SECONDS * _BATCH_GAIN / cpu_seconds(cell)))
