"""Time estimates: for the order of work, the size of pieces and the time left."""

from __future__ import annotations

from lognmf.datasets.registry import REGISTRY
from lognmf.paper.methods import RIVALS
from lognmf.paper.samples import size
from lognmf.paper.spec import Cell, Data, Piece
from lognmf.paper.work import BATCHED, on_device

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
