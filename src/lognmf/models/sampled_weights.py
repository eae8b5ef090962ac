"""Weights of data in blocks, chosen by fits of some samples in memory: fits of all would take too long."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from lognmf.core.arrays import Array, namespace
from lognmf.core.blocks import Blocks
from lognmf.core.data import InMemory
from lognmf.graph import Graphs
from lognmf.models.checkpoint import Checkpoint
from lognmf.models.engine import draw
from lognmf.models.on_workers import Remote
from lognmf.models.weights import AUTO, fit_batch
from lognmf.progress import stage
from lognmf.sources.rows import by_block, sample_size

SEED = 0
"""The same data give the same samples."""

FEWEST, PER_COMPONENT = 1000, 50
"""Samples needed, and for each component; where memory has no room for so many, weights are chosen by all."""


def sampled_weights(model: Any, data: Any, unit: float, kept: Checkpoint | None) -> dict[str, list[float]]:
    """The weights that are "auto", where ``data`` have many more samples than a block; else none.

    A checkpoint keeps them: another process goes on with the same numbers.
    """
    auto = [name for name in model.spec.auto if getattr(model, name) == AUTO]
    index = _some(model, data) if auto else None
    if index is None:
        return {}

    def choose() -> dict[str, list[float]]:
        with stage(f"choosing weights from {len(index)} samples"):
            found = _chosen(model, _rows(data, index), unit, len(index) / data.shape[0])
        return {name: [found[name]] for name in auto}

    return choose() if kept is None else kept.once("weights", choose)


def _some(model: Any, data: Any) -> np.ndarray | None:
    """Random samples that fit into a block, in their order; None where all are to be used."""
    if not isinstance(data, Blocks | Remote) or not isinstance(model.graph, str | None):
        return None
    edges = data.edges if isinstance(data, Blocks) else data.source.edges
    n, count = data.shape[0], sample_size(edges, data.shape[1], data.pattern.dtype)
    if count == n or count < max(FEWEST, PER_COMPONENT * model.n_components):
        return None
    return np.sort(np.random.default_rng(SEED).choice(n, count, replace=False))


def _chosen(model: Any, data: InMemory, unit: float, share: float) -> dict[str, float]:
    """The weights for all samples by a fit to this ``share`` of them.

    The data term is a sum over samples, and so is the penalty of their codes; that of the parts is not.
    """
    graphs = Graphs(data.stand_in)
    start = draw(model, data, graphs, model.random_state)
    given = {} if model.alpha == AUTO else {"alpha": [model.alpha * share]}
    fits = fit_batch(model, data, graphs, start, unit=unit, max_iter=model.max_iter, weights=given)
    found = {name: float(values[0]) for name, values in fits.weights.items()}
    return found | {"alpha": found["alpha"] / share}


def _rows(data: Blocks | Remote, index: np.ndarray) -> InMemory:
    """The samples ``index`` in memory; every block is read once."""
    if isinstance(data, Remote):
        parts = data.some_rows(index)
    else:
        parts = [
            data.loaded(rows).take_rows(own)
            for rows, own in zip(data.places, by_block(index, data.edges), strict=True)
        ]
    M = _stacked([part.M for part in parts]) if data.weights else None
    return InMemory(_stacked([part.X for part in parts]), M, data.unit)


def _stacked(parts: list[Any]) -> Array:
    return sp.vstack(parts, format="csr") if sp.issparse(parts[0]) else namespace(parts[0]).concat(parts)
