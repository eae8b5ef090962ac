"""The border for blocks on workers: every block is checked where it lies, before any work."""

from __future__ import annotations

import copy
from dataclasses import replace
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.base import clone

from lognmf.core import starts
from lognmf.core.arrays import to_numpy
from lognmf.core.blocks import Facts
from lognmf.core.data import InMemory
from lognmf.models.on_workers import Remote, naming_the_block
from lognmf.models.scale import known_share, row_squares
from lognmf.models.validation import check_accepted, check_factor, check_features, read_samples
from lognmf.models.worker_tasks import block_of
from lognmf.sources import WorkerBlocks
from lognmf.sources.arrays import library

CALLBACKS = "_skl_callbacks"
"""Where scikit-learn keeps the callbacks of an estimator, which stay in this process."""


def check_remote(estimator: Any, source: WorkerBlocks, weights: Any, *, reset: bool) -> Remote:
    """All blocks, each looked at once where it lies."""
    if weights is not None:
        msg = "Blocks on workers take no weights: set missing entries to NaN, or use in_blocks."
        raise TypeError(msg)
    check_features(estimator, source, reset=reset)
    plain, (n, p) = clone(estimator), source.shape
    vars(plain).pop(CALLBACKS, None)
    expected = [(height, p) for height in np.diff(source.edges).tolist()]
    options = {"estimator": plain, "rows": n, "dtype": source.dtype, "device": source.device}
    found = source.client.map(_looked_at, source.blocks, expected, **options, pure=False)
    with naming_the_block(source, found):
        parts = [future.result() for future in found]
    smallest, largest, squares, sizes, known, entries = zip(*parts, strict=True)
    share = float(np.average(known, weights=np.diff(source.edges)))
    if reset and share == 0:
        msg = "X has no known entry: all of them are NaN."
        raise ValueError(msg)
    size = max((s for s, own in zip(sizes, squares, strict=True) if own), default=1.0)
    whole = sum(own * (s / size) ** 2 for own, s in zip(squares, sizes, strict=True))
    facts = Facts(min(smallest), max(largest), np.array([whole]), size, share, max(entries))
    return Remote(source, facts, weights=share < 1)


def _looked_at(
    X: Any, expected: tuple[int, int], estimator: Any, rows: int, dtype: Any, device: str | None
) -> tuple[float, ...]:
    """The smallest and the largest entry, the sum of squares and its unit, share and number of known ones."""
    if X.shape != expected:
        msg = f"it should have the shape {expected}, and has {X.shape}"
        raise ValueError(msg)
    if device is not None and sp.issparse(X):
        msg = "it is sparse, and sparse blocks are computed on the CPU; leave device out"
        raise ValueError(msg)
    data = block_of(X, dtype)
    samples = replace(read_samples(data.X, estimator=estimator), data=data)
    check_accepted(estimator, samples, reset=False, rows=rows)
    squares, size = row_squares(data)
    entries = data.X.nnz if sp.issparse(data.X) else data.X.size
    return samples.smallest, samples.largest, float(squares.sum()), size, known_share(data), entries


def refuses_remote(model: Any) -> str | None:
    """Why a model's settings cannot be fitted on workers, in one sentence; None if they can."""
    if model.init not in starts.STARTS:
        return f"init={model.init!r} needs all of X in memory: use one of {', '.join(starts.STARTS)}."
    return None


def encoded(model: Any, data: Remote) -> Any:
    """Codes of the samples, a Dask array (n, k); every block is encoded where it lies."""
    light = copy.copy(model)
    for name in (
        CALLBACKS,
        "embedding_",
        "_data",
        "graph_",
        "outlier_share_",
        "outlier_norm_",
        "residual_norm_",
    ):
        vars(light).pop(name, None)
    return data.rows(data.each(_encoded, data.blocks, light), model.components_.shape[0])


def _encoded(block: InMemory, model: Any) -> np.ndarray:
    return to_numpy(model._encode(block))


def given_codes(data: Remote, V: Any, k: int, unit: float) -> list[Any]:
    """Futures of first codes that a user gave, an array or a Dask array, divided by ``unit``, by block."""
    if tuple(V.shape) != (data.shape[0], k):
        msg = f"V0 must have shape {(data.shape[0], k)}; got {tuple(V.shape)}."
        raise ValueError(msg)
    source, heights = data.source, np.diff(data.source.edges).tolist()
    if library(V) == "dask":
        parts = source.client.compute([*V.rechunk((tuple(heights), k)).to_delayed().ravel()])
    else:
        V = to_numpy(V)
        parts = [data.sent(V[i:j]) for i, j in zip(source.edges, source.edges[1:], strict=False)]
    checked = source.client.map(
        _checked_codes, parts, heights, k=k, unit=unit, dtype=source.dtype, pure=False
    )
    source.client.gather(data.each(_nothing, checked))  # raises the error of a bad part
    return checked


def _checked_codes(V: Any, height: int, k: int, unit: float, dtype: Any) -> np.ndarray:
    return check_factor("V0", V, (height, k), np.empty(0, dtype)) / unit


def _nothing(_: Any) -> None:
    """Arrives when a part has been checked, and brings its error."""
