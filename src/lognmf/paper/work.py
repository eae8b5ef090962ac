"""From a piece of a study to its rows: scores of settings, or the course of a fit."""

from __future__ import annotations

import io
import os
import platform
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.base import clone

from lognmf import metrics
from lognmf.comparison import label_scores
from lognmf.core.arrays import to_numpy
from lognmf.graph import Graphs
from lognmf.grid.grid import fit_grid
from lognmf.models import MODELS
from lognmf.models.engine import draw
from lognmf.models.starts import NEIGHBOURS
from lognmf.models.validation import check_samples
from lognmf.models.weights import fit_batch
from lognmf.paper.methods import PINNED, RIVALS
from lognmf.paper.samples import Samples, prepare
from lognmf.paper.spec import Cell, Piece
from lognmf.paper.store import Outcome
from lognmf.report.environment import code_version, versions

_TROUBLES = (ValueError, TypeError, ArithmeticError, MemoryError, RuntimeError, OSError, LookupError)
"""What data, machines and settings can do to a piece; anything else is a bug and is raised."""

_GPU_MEMORY = 24 << 30
"""Bytes for a batch on a GPU: fixed, so that the same card gives the same rows again."""

_SPARSENESS_EVERY = 10
"""Iterations between looks at the sparseness of a course."""

Work = tuple[list[dict[str, Any]], dict[int, bytes]]
"""Rows, and the arrays kept beside some of them, by the row's place."""


def perform(piece: Piece, device: str | None = None) -> Outcome:
    """Compute a piece, on a device as for `fit_grid`. What goes wrong is an outcome too."""
    start = time.perf_counter()
    environment = _environment(device)
    try:
        rows, arrays = WORK[piece.cell.work](piece, device)
    except _TROUBLES as error:
        message = f"{type(error).__name__}: {' '.join(str(error).split())}".rstrip(": ")
        return Outcome((), time.perf_counter() - start, environment, message)
    return Outcome(rows, time.perf_counter() - start, environment, arrays=arrays)


def _environment(device: str | None) -> dict[str, Any]:
    """The machine, the device, its precision, and the versions of all that computes."""
    machine = {"cpu": f"{platform.machine()}, {os.cpu_count()} cores"}
    made = versions() | {"lognmf": code_version()}
    if device is None:
        return {**machine, "device": "numpy, float64", **made}
    import torch

    on_gpu = device.startswith("cuda")
    name = f"{torch.cuda.get_device_name(device)}, float32" if on_gpu else "torch on the CPU, float64"
    return {**machine, "device": name, **made, "torch": torch.__version__}


# Scores of settings ------------------------------------------------------------------------


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
    """The scores of a clustering without a factorisation."""
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


# The course of a fit -----------------------------------------------------------------------


def _course(piece: Piece, device: str | None) -> Work:
    """Objective, time and sparseness along the one fit of a piece; its factors are kept as arrays."""
    cell, (place,), (seed,) = piece.cell, piece.settings, piece.seeds
    samples, setting = prepare(cell.data, cell.noise), cell.settings()[place]
    model = _estimator(cell, samples).set_params(**setting, random_state=seed, tol=0)
    model._check_parameters()
    data = check_samples(clone(model), _given(cell, samples), reset=True)
    graphs, max_iter = Graphs(data.X, {NEIGHBOURS: samples.W}), model.max_iter
    often = model.eval_every <= _SPARSENESS_EVERY
    looks: list[dict[str, float]] = []

    def look(iteration: int, rule: Any, state: Any) -> None:
        if iteration in (0, max_iter) or (often and iteration % _SPARSENESS_EVERY == 0):
            U, V, _ = rule.factors(state)
            both = {"U": metrics.hoyer_sparseness(U[:, 0, :]), "V": metrics.hoyer_sparseness(V[:, 0, :])}
            looks.append({"iteration": iteration, **both})

    first = draw(model, data, graphs, seed)
    fits = fit_batch(model, data, graphs, first, unit=1.0, max_iter=max_iter, on_state=look)
    if looks[-1]["iteration"] < max_iter:  # nothing moved any more
        looks.append({**looks[-1], "iteration": max_iter})
    history = fits.history(0)
    row = {
        **setting,
        "seed": seed,
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
    return [row], {0: _pack(U=U, V=V, **share)}


def _pack(**arrays: np.ndarray) -> bytes:
    """Arrays as one blob."""
    file = io.BytesIO()
    np.savez_compressed(file, **arrays)  # type: ignore[arg-type]
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


WORK: dict[str, Callable[[Piece, str | None], Work]] = {"grid": _scores, "curve": _course}
"""Kinds of work by name: ``(piece, device) -> (rows, arrays)``."""
