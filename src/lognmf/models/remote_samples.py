"""The border for blocks on workers: every block is checked where it lies, before any work."""

from __future__ import annotations

import copy
from dataclasses import replace
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.base import clone

from lognmf.core import starts
from lognmf.core.blocks import Facts
from lognmf.core.data import InMemory
from lognmf.models.on_workers import Remote
from lognmf.models.scale import known_share, row_squares
from lognmf.models.validation import check_accepted, check_features, converted, read_samples
from lognmf.reading import reason
from lognmf.sources import WorkerBlocks


def check_remote(estimator: Any, source: WorkerBlocks, mask: Any, *, reset: bool) -> Remote:
    """All blocks, each looked at once where it lies."""
    if mask is not None:
        msg = "Blocks on workers take no mask: use in_blocks."
        raise TypeError(msg)
    check_features(estimator, source, reset=reset)
    plain, (n, p) = clone(estimator), source.shape
    client = source.client
    raw = client.map(_as_data, source.blocks, dtype=source.dtype, pure=False)
    expected = [(height, p) for height in np.diff(source.edges).tolist()]
    found = client.map(_looked_at, raw, expected, estimator=plain, rows=n, pure=False)
    parts = []
    for number, future in enumerate(found):
        try:
            parts.append(future.result())
        except Exception as error:
            rows = f"rows {source.edges[number]} to {source.edges[number + 1] - 1}"
            kind = TypeError if isinstance(error, TypeError) else ValueError
            msg = f"Block {number + 1} of X ({rows}): {reason(error)}."
            raise kind(msg) from error
    smallest, largest, squares, sizes, entries = zip(*parts, strict=True)
    size = max((s for s, own in zip(sizes, squares, strict=True) if own), default=1.0)
    whole = sum(own * (s / size) ** 2 for own, s in zip(squares, sizes, strict=True))
    facts = Facts(min(smallest), max(largest), np.array([whole]), size, 1.0, max(entries))
    return Remote(source, tuple(raw), facts)


def _as_data(X: Any, dtype: Any) -> InMemory:
    X = sp.csr_array(X) if sp.issparse(X) else np.asarray(X)
    return converted(X if X.dtype == dtype else X.astype(dtype))


def _looked_at(data: InMemory, expected: tuple[int, int], estimator: Any, rows: int) -> tuple[float, ...]:
    """The smallest and the largest entry, the sum of squares in its unit, and the number of entries."""
    if data.shape != expected:
        msg = f"it should have the shape {expected}, and has {data.shape}"
        raise ValueError(msg)
    samples = replace(read_samples(data.X, estimator=estimator), data=data)
    check_accepted(estimator, samples, reset=False, rows=rows)
    if data.M is not None:
        msg = "it has missing entries, which blocks on workers may not have; use in_blocks"
        raise ValueError(msg)
    squares, size = row_squares(data)
    entries = data.X.nnz if sp.issparse(data.X) else data.X.size
    return samples.smallest, samples.largest, float(squares.sum()), size, entries * known_share(data)


def refuses_remote(model: Any) -> str | None:
    """Why a model's settings cannot be fitted on workers, in one sentence; None if they can."""
    if isinstance(getattr(model, "gamma", 0.0), str):
        return "Blocks on workers need a number for gamma, whose choice looks at every residual: give one."
    if getattr(model, "lam", 0) > 0 and getattr(model, "graph", None) is not None:
        return "Blocks on workers take no graph yet: set lam=0 or graph=None, or use in_blocks."
    if model.warm_start and hasattr(model, "components_"):
        return "Blocks on workers take no first factors: set warm_start=False."
    if model.init not in starts.STARTS:
        return f"init={model.init!r} needs all of X in memory: use one of {', '.join(starts.STARTS)}."
    return None


def encoded(model: Any, data: Remote) -> Any:
    """Codes of the samples, a Dask array (n, k); every block is encoded where it lies."""
    light = copy.copy(model)
    for name in ("embedding_", "_data", "graph_", "outlier_share_", "outlier_norm_", "residual_norm_"):
        vars(light).pop(name, None)
    return data.rows(data.each(_encoded, data.raw, light), model.components_.shape[0])


def _encoded(block: InMemory, model: Any) -> np.ndarray:
    return model._encode(block)
