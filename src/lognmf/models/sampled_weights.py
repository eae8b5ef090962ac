"""Weights of data in blocks, chosen by fits of some samples in memory: fits of all would take too long."""

from __future__ import annotations

from typing import Any

import numpy as np

from lognmf.blocks.rows import sample_size
from lognmf.core.data import Data, InMemory
from lognmf.graph import Graphs
from lognmf.models.engine import draw
from lognmf.models.weights import AUTO, fit_batch
from lognmf.progress import stage

SEED = 0
"""The same data give the same samples."""

FEWEST, PER_COMPONENT = 1000, 50
"""Samples needed, and for each component; where memory has no room for so many, weights are chosen by all."""


def sampled_weights(model: Any, data: Data, unit: float) -> dict[str, list[float]]:
    """The weights that are "auto", where ``data`` have many more samples than a block; else none."""
    auto = model.auto_weights()
    index = _some(model, data) if auto else None
    if index is None:
        return {}
    with stage(f"choosing weights from {len(index)} samples"):
        found = _chosen(model, data.take_rows(index), unit, len(index) / data.shape[0])
    return {name: [found[name]] for name in auto}


def _some(model: Any, data: Any) -> np.ndarray | None:
    """Random samples that fit into a block, in their order; None where all are to be used."""
    if isinstance(data, InMemory) or not isinstance(model.graph, str | None):
        return None
    n, count = data.shape[0], sample_size(data.edges, data.shape[1], data.pattern.dtype)
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
