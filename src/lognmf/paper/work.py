"""From a piece of a study to its rows: the samples, the scores of settings, or the course of a fit."""

from __future__ import annotations

import os
import platform
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.preprocessing import normalize

from lognmf import MODELS, datasets, fit_grid, knn_graph, metrics, noise
from lognmf.environment import versions
from lognmf.paper.methods import PINNED, RIVALS
from lognmf.paper.spec import Cell, Data, Noise, Piece
from lognmf.paper.store import Outcome
from lognmf.progress import listening

_TROUBLES = (ValueError, TypeError, ArithmeticError, MemoryError, RuntimeError, OSError, LookupError)
"""Errors that data, machines and settings can cause; anything else is a bug and is raised."""

_GPU_MEMORY = 24 << 30
"""Bytes for a batch on a GPU: fixed, so that the same card gives the same rows again."""

# Samples -----------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Samples:
    """The data that a model is given, and the classes that its clustering is compared with."""

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
def prepare(data: Data, added: Noise) -> Samples:
    """The samples of a cell. The last few are cached, since cells of one data set follow each other."""
    X, y, image_shape = _load(data)
    rng, removed = np.random.default_rng(added.seed), None
    if added.kind == "removal":
        X, known = noise.remove(X, added.level, rng, replacement=added.replacement)
        removed = ~np.asarray(known, dtype=bool)
    elif added.kind == "gaussian":
        X = noise.gaussian(X, added.level, rng)
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


# Pieces ------------------------------------------------------------------------------------


def perform(piece: Piece, device: str | None = None) -> Outcome:
    """Compute a piece, on a device as for `fit_grid`. An error is an outcome too."""
    start = time.perf_counter()
    environment = _environment(device)
    try:
        with listening(alone=True):  # the progress of a study counts pieces
            rows, arrays = WORK[piece.cell.work](piece, device)
    except _TROUBLES as error:
        message = f"{type(error).__name__}: {' '.join(str(error).split())}".rstrip(": ")
        return Outcome((), time.perf_counter() - start, environment, message)
    return Outcome(rows, time.perf_counter() - start, environment, arrays=arrays)


def _environment(device: str | None) -> dict[str, Any]:
    """The machine, the device, its precision, and the versions of the packages that compute."""
    made = {
        "cpu": f"{platform.machine()}, {os.cpu_count()} cores",
        "device": "numpy, float64",
        **versions(),
    }
    if device is None:
        return made
    import torch

    on_gpu = device.startswith("cuda")
    name = f"{torch.cuda.get_device_name(device)}, float32" if on_gpu else "torch on the CPU, float64"
    return {**made, "device": name, "torch": torch.__version__}


Work = tuple[list[dict[str, Any]], dict[str, np.ndarray]]
"""Rows, and the arrays that are stored with them."""


def _scores(piece: Piece, device: str | None) -> Work:
    """The scores of every fit of a piece."""
    cell, samples = piece.cell, prepare(piece.cell.data, piece.cell.noise)
    if cell.model in RIVALS:
        return [_rival(cell.model, samples, seed) for seed in piece.seeds], {}
    settings = cell.settings()
    result = fit_grid(
        _estimator(cell, samples),
        _given(cell, samples),
        [{name: [value] for name, value in settings[i].items()} for i in piece.settings],
        seeds=piece.seeds,
        y=samples.y,
        device=device,
        graph=samples.W,
        memory=_GPU_MEMORY if (device or "").startswith("cuda") else None,
    )
    return result.rows, {}


def _estimator(cell: Cell, samples: Samples) -> Any:
    """The model of a cell, with as many components as classes."""
    options = {name: value for name, value in cell.options if name != "mask"}
    return MODELS[cell.model](samples.classes, **{**PINNED.get(cell.model, {}), **options})


def _given(cell: Cell, samples: Samples) -> np.ndarray:
    """The samples for the model: with NaN at the removed entries if the cell gives it the mask."""
    if not cell.option("mask"):
        return samples.X
    if samples.removed is None:
        msg = f"There is no mask for {cell.data.name}: its noise removes nothing."
        raise ValueError(msg)
    return np.where(samples.removed, np.nan, samples.X)


def _rival(name: str, samples: Samples, seed: int) -> dict[str, Any]:
    """The scores of a clustering without a factorisation."""
    start = time.perf_counter()
    labels = RIVALS[name](samples, seed)
    seconds = time.perf_counter() - start
    return {
        "seed": seed,
        "seconds": seconds,
        "normalized_cut": metrics.normalized_cut(samples.W, labels),
        "clusters": len(np.unique(labels)),
        "accuracy": metrics.clustering_accuracy(samples.y, labels),
        "nmi": metrics.normalized_mutual_info(samples.y, labels),
        "purity": metrics.purity(samples.y, labels),
    }


def _course(piece: Piece, device: str | None) -> Work:
    """Objective and time along the one fit of a piece, with its factors as arrays."""
    cell, (place,), (seed,) = piece.cell, piece.settings, piece.seeds
    samples, setting = prepare(cell.data, cell.noise), cell.settings()[place]
    model = _estimator(cell, samples).set_params(**setting, random_state=seed)
    if "graph" in model.get_params():
        model.set_params(graph=samples.W)
    history = model.fit(_given(cell, samples)).history_
    row = {
        **setting,
        "seed": seed,
        "n_iter": int(model.n_iter_),
        "seconds": float(history["seconds"][-1]),
        "objective": float(history["objective"][-1]),
        "iterations": history["iteration"].tolist(),
        "objectives": history["objective"].tolist(),
    }
    arrays = {"U": model.components_.T, "V": model.embedding_}
    if cell.model == "RLS-NMF":
        arrays["share"] = model.outlier_share_
    return [row], {name: array.astype(np.float32) for name, array in arrays.items()}


BATCHED = ("NMF", "GNMF", "WNMF", "LS-NMF", "RLS-NMF")
"""Models whose grids are one wide problem; the others gain little from a GPU."""


def on_device(cell: Cell) -> bool:
    """Whether a cell belongs on the GPU, if there is one; a spectral start keeps a core busy, not the GPU."""
    return cell.work != "curve" and cell.model in BATCHED and cell.option("init") != "spectral"


WORK: dict[str, Callable[[Piece, str | None], Work]] = {
    "grid": _scores,
    "sparseness": _scores,
    "curve": _course,
}
"""Kinds of work by name: ``(piece, device) -> (rows, arrays)``."""
