"""From a piece of a study to its rows: scores of settings, or the course of fits."""

from __future__ import annotations

import io
import os
import platform
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import clone

from lognmf import metrics
from lognmf.comparison import label_scores
from lognmf.core.arrays import to_numpy
from lognmf.graph import Graphs
from lognmf.grid.fit import fit_grid
from lognmf.models import MODELS
from lognmf.models.engine import draw, fit_batch
from lognmf.models.starts import NEIGHBOURS
from lognmf.models.validation import check_samples
from lognmf.paper.methods import PINNED, RIVALS
from lognmf.paper.samples import Samples, prepare
from lognmf.paper.spec import Cell, Piece
from lognmf.paper.store import Outcome
from lognmf.report.environment import versions

__all__ = ["WORK", "Task", "perform", "unpack"]

_TROUBLES = (ValueError, TypeError, ArithmeticError, MemoryError, RuntimeError, OSError, LookupError)
"""What data, machines and settings can do to a piece; anything else is a bug and is raised."""

_GPU_MEMORY = 24 << 30
"""Bytes for a batch on a GPU: fixed, so that the same card gives the same rows again."""

_SPARSENESS_EVERY = 10
"""Iterations between looks at the sparseness of a course."""

Rows = list[dict[str, Any]]


@dataclass(frozen=True)
class Task:
    """A piece and where to compute it.

    Parameters
    ----------
    piece : Piece
        What is to be done.
    device : str, optional
        As for `fit_grid`; None is NumPy.
    """

    piece: Piece
    device: str | None = None


def perform(task: Task) -> Outcome:
    """Compute a piece. What goes wrong is an outcome too."""
    start = time.perf_counter()
    made = _made(task.device)
    try:
        rows, arrays = WORK[task.piece.cell.work](task)
    except _TROUBLES as error:
        told = f"{type(error).__name__}: {' '.join(str(error).split())}".rstrip(": ")
        return Outcome((), time.perf_counter() - start, made, told)
    return Outcome(rows, time.perf_counter() - start, made, arrays=arrays)


def _made(device: str | None) -> dict[str, Any]:
    made = {
        "cpu": f"{platform.machine()}, {os.cpu_count()} cores",
        "device": "numpy, float64" if device is None else device,
        **versions(),
    }
    if device is not None:
        import torch

        name = torch.cuda.get_device_name(device) if device.startswith("cuda") else "torch on the CPU"
        made |= {"device": f"{name}, {'float32' if device.startswith('cuda') else 'float64'}"}
        made |= {"torch": torch.__version__}
    return made


# Scores of settings ------------------------------------------------------------------------


def _scores(task: Task) -> tuple[Rows, dict[int, bytes]]:
    cell, samples = task.piece.cell, prepare(task.piece.cell.data, task.piece.cell.noise)
    if cell.model in RIVALS:
        return [_rival(cell.model, samples, seed) for seed in task.piece.seeds], {}
    settings = cell.settings()
    result = fit_grid(
        _estimator(cell, samples),
        _given(cell, samples),
        [{name: [value] for name, value in settings[i].items()} for i in task.piece.settings],
        seeds=task.piece.seeds,
        y=samples.y,
        device=task.device,
        graph=samples.W,
        memory=_GPU_MEMORY if (task.device or "").startswith("cuda") else None,
    )
    return result.rows, {}


def _estimator(cell: Cell, samples: Samples) -> Any:
    """The model of a cell, as many components as classes."""
    options = {name: value for name, value in cell.options if name != "mask"}
    return MODELS[cell.model](samples.classes, **{**PINNED.get(cell.model, {}), **options})


def _given(cell: Cell, samples: Samples) -> np.ndarray:
    """The samples as the model gets them: with holes where it is told what was removed."""
    if not cell.option("mask"):
        return samples.X
    if samples.removed is None:
        msg = f"There is no mask for {cell.data.name}: its noise removes nothing."
        raise ValueError(msg)
    return np.where(samples.removed, np.nan, samples.X)


def _rival(name: str, samples: Samples, seed: int) -> dict[str, Any]:
    start = time.perf_counter()
    labels = RIVALS[name](samples, seed)
    seconds = time.perf_counter() - start
    return {
        "seed": seed,
        "seconds": seconds,
        "normalized_cut": metrics.normalized_cut(samples.W, labels),
        "clusters": len(np.unique(labels)),
        **label_scores(samples.y, labels),
    }


# The course of fits ------------------------------------------------------------------------


def _courses(task: Task) -> tuple[Rows, dict[int, bytes]]:
    """Objective, time and sparseness along each fit; its factors are kept as arrays."""
    piece = task.piece
    samples, settings = prepare(piece.cell.data, piece.cell.noise), piece.cell.settings()
    rows: Rows = []
    arrays = {}
    for setting, seed in ((settings[i], seed) for i in piece.settings for seed in piece.seeds):
        model = _estimator(piece.cell, samples).set_params(**setting, random_state=seed, tol=0)
        row, factors = _course(model, _given(piece.cell, samples), samples.W)
        arrays[len(rows)] = _pack(factors)
        rows.append({**setting, "seed": seed, **row})
    return rows, arrays


def _course(model: Any, X: np.ndarray, W: Any) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """One fit, its sparseness looked at on the way."""
    model._check_parameters()
    data = check_samples(clone(model), X, reset=True)
    graphs, max_iter = Graphs(data.X, {NEIGHBOURS: W}), model._iteration_limit()
    often = model.eval_every <= _SPARSENESS_EVERY
    looks: list[dict[str, float]] = []

    def look(iteration: int, rule: Any, state: Any) -> None:
        if iteration in (0, max_iter) or (often and iteration % _SPARSENESS_EVERY == 0):
            U, V, _ = rule.factors(state)
            both = {"U": metrics.hoyer_sparseness(U[:, 0, :]), "V": metrics.hoyer_sparseness(V[:, 0, :])}
            looks.append({"iteration": iteration, **both})

    first = draw(model, data, graphs, model.random_state)
    fits = fit_batch(model, data, graphs, first, max_iter=max_iter, on_state=look)
    if looks[-1]["iteration"] < max_iter:  # nothing moved any more
        looks.append({**looks[-1], "iteration": max_iter})
    history = fits.history(0)
    row = {
        "n_iter": int(fits.n_iter[0]),
        "seconds": float(history["seconds"][-1]),
        "objective": float(history["objective"][-1]),
        "iterations": history["iteration"].tolist(),
        "objectives": history["objective"].tolist(),
        "sparseness": looks,
    }
    U, V = (to_numpy(F)[:, 0, :].astype(np.float32) for F in fits.factors)
    parts = fits.outlier_part()
    share = {} if parts is None else {"share": to_numpy(parts[0])[:, 0].astype(np.float32)}
    return row, {"U": U, "V": V, **share}


def _pack(factors: Mapping[str, Any]) -> bytes:
    file = io.BytesIO()
    np.savez_compressed(file, **factors)
    return file.getvalue()


def unpack(blob: bytes) -> dict[str, np.ndarray]:
    """The arrays that were kept beside a row."""
    with np.load(io.BytesIO(blob), allow_pickle=False) as file:
        return {name: file[name] for name in file.files}


BATCHED = ("NMF", "GNMF", "WNMF", "LS-NMF", "RLS-NMF")
"""Models whose grids are one wide problem; the others gain little from a GPU."""


def on_device(cell: Cell) -> bool:
    """Whether a cell belongs on the GPU, if there is one; a spectral start keeps a core busy, not the GPU."""
    return cell.work == "grid" and cell.model in BATCHED and cell.option("init") != "spectral"


WORK: dict[str, Callable[[Task], tuple[Rows, dict[int, bytes]]]] = {"grid": _scores, "curve": _courses}
"""Kinds of work by name: ``task -> (rows, arrays by place)``."""
