"""The border for samples in blocks of rows, here or on workers: all are checked once, before any work."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.base import clone

from lognmf.blocks import RowBlocks, WorkerBlocks, as_source
from lognmf.blocks.cluster import OnWorkers, checked_rows, naming_the_block
from lognmf.blocks.disk import OnDisk
from lognmf.blocks.rows import by_block
from lognmf.core.data import Data, Facts, InMemory
from lognmf.core.rows import Rows
from lognmf.models.validation import (
    Samples,
    check_accepted,
    check_factor,
    check_features,
    check_samples,
    read_samples,
    with_weights,
)
from lognmf.reading import reason

CALLBACKS = "_skl_callbacks"
"""Where scikit-learn keeps the callbacks of an estimator, which stay in this process."""


def check_data(estimator: Any, X: Any, *, reset: bool, weights: Any = None) -> Any:
    """Samples (n, p) as data in memory or, where they are elsewhere and not small, in blocks of rows."""
    if isinstance(X, WorkerBlocks) and estimator.spec.blocks:
        return _on_workers(estimator, X, weights, reset=reset)
    source = as_source(X)
    if source is None:
        return check_samples(estimator, X, reset=reset, weights=weights)
    if not estimator.spec.blocks and not isinstance(X, np.ndarray):
        msg = (
            f"{type(estimator).__name__} needs all of X in memory: give it as a NumPy array or a SciPy "
            "matrix, or use a model that takes blocks of rows: NMF, GNMF, LS-NMF, RLS-NMF or WNMF."
        )
        raise TypeError(msg)
    if len(source.edges) <= 2 or not estimator.spec.blocks:
        data: Data = check_samples(estimator, _whole(X, source, weights, estimator), reset=reset)
    else:
        data = _on_disk(estimator, source, weights, reset=reset)
    check_names(estimator, source, reset=reset)
    return data


def _whole(X: Any, source: RowBlocks, weights: Any, estimator: Any) -> Samples:
    """All rows in memory."""
    if isinstance(X, np.ndarray):
        return read_samples(X, weights, estimator=estimator)
    rows = slice(0, source.shape[0])
    blocks = as_source(weights)
    weights = weights if blocks is None else blocks.read(rows)
    samples = read_samples(read_block(source, rows), weights, estimator=estimator)
    return Samples(samples.data, samples.smallest, samples.largest, samples.weighted, source)


def _looked_at(X: Any, weights: Any, estimator: Any, n: int) -> tuple[Facts, bool]:
    """What one look at a block finds, and whether entries have weights; or what ``estimator`` cannot take."""
    samples = read_samples(X, weights, estimator=estimator)
    check_accepted(estimator, samples, reset=False, rows=n)
    return samples.data.facts, samples.data.weights


def _together(
    found: Sequence[tuple[Facts, bool]], edges: Sequence[int], *, reset: bool
) -> tuple[Facts, bool]:
    """What was found in the blocks, put together."""
    parts = [facts for facts, _ in found]
    # The size of a block of zeros is 1, and says nothing.
    size = max((part.size for part in parts if part.squares.any()), default=1.0)
    known = float(np.average([part.known for part in parts], weights=np.diff(edges)))
    if reset and known == 0:
        msg = "X has no known entry: all of them are missing (NaN, or of weight 0)."
        raise ValueError(msg)
    squares = np.concatenate([part.squares * (part.size / size) ** 2 for part in parts])
    largest, entries = (max(getattr(part, name) for part in parts) for name in ("largest", "entries"))
    return Facts(largest, squares, size, known, entries), any(weighted for _, weighted in found)


def _on_disk(estimator: Any, source: RowBlocks, weights: Any, *, reset: bool) -> OnDisk:
    """All blocks, each looked at once."""
    check_features(estimator, source, reset=reset)
    cut = None if weights is None else _weights_source(weights, source)
    parts = []
    for rows in source.places:
        X = read_block(source, rows)
        with _named(source, rows):
            parts.append(_looked_at(X, cut and cut.read(rows), estimator, source.shape[0]))
        del X  # one block at a time
    facts, weighted = _together(parts, source.edges, reset=reset)

    def read(rows: slice) -> InMemory:
        X = read_block(source, rows)
        if cut is not None and weighted:
            return with_weights(X, cut.read(rows))
        return checked_rows(X, source.dtype, weights=weighted)

    return OnDisk(read, source.edges, source.shape[1], np.empty(0, source.dtype), facts, weighted)


def _on_workers(estimator: Any, source: WorkerBlocks, weights: Any, *, reset: bool) -> OnWorkers:
    """All blocks, each looked at once where it lies."""
    if weights is not None:
        msg = "Blocks on workers take no weights: set missing entries to NaN, or use in_blocks."
        raise TypeError(msg)
    check_features(estimator, source, reset=reset)
    plain, (n, p) = clone(estimator), source.shape
    vars(plain).pop(CALLBACKS, None)
    expected = [(height, p) for height in np.diff(source.edges).tolist()]
    options = {"estimator": plain, "n": n, "dtype": source.dtype, "device": source.device}
    futures = source.client.map(_looked_at_there, source.blocks, expected, **options, pure=False)
    with naming_the_block(source, futures):
        parts = [future.result() for future in futures]
    facts, weighted = _together(parts, source.edges, reset=reset)
    return OnWorkers(source, facts, weighted)


def _looked_at_there(
    X: Any, expected: tuple[int, int], estimator: Any, n: int, dtype: Any, device: str | None
) -> tuple[Facts, bool]:
    if X.shape != expected:
        msg = f"it should have the shape {expected}, and has {X.shape}"
        raise ValueError(msg)
    if device is not None and sp.issparse(X):
        msg = "it is sparse, and sparse blocks are computed on the CPU; leave device out"
        raise ValueError(msg)
    return _looked_at(X if X.dtype == dtype else X.astype(dtype), None, estimator, n)


def given_codes(data: OnWorkers, V: Any, k: int, unit: float) -> Rows:
    """First codes (n, 1, k) that a user gave, an array or a Dask array, divided by ``unit``."""
    if tuple(V.shape) != (data.shape[0], k):
        msg = f"V0 must have shape {(data.shape[0], k)}; got {tuple(V.shape)}."
        raise ValueError(msg)
    return data.rows_of(V).each(_checked_codes, (data.rows_of(V),), (k, unit, data.source.dtype))


def _checked_codes(V: Any, k: int, unit: float, dtype: Any) -> np.ndarray:
    return check_factor("V0", V, (len(V), k), np.empty(0, dtype))[:, None, :] / unit


def some_rows(estimator: Any, source: RowBlocks, index: np.ndarray) -> Any:
    """The samples ``index``, in order, as one matrix; all blocks are looked at."""
    parts = []
    for rows, of_block in zip(source.places, by_block(index, source.edges), strict=True):
        X = read_block(source, rows)
        with _named(source, rows):
            _looked_at(X, None, estimator, source.shape[0])
        parts.append(X[of_block])
    return sp.vstack(parts, format="csr") if sp.issparse(parts[0]) else np.concatenate(parts)


def _weights_source(weights: Any, source: RowBlocks) -> RowBlocks:
    """Weights of the entries in the blocks of X."""
    blocks = as_source(weights) or as_source(_rows_of_weights(weights, source))
    if blocks is None:
        msg = f"weights must be an array of the shape of X, {source.shape}; got {type(weights).__name__}."
        raise TypeError(msg)
    if blocks.shape != source.shape:
        msg = f"weights must have the shape of X, {source.shape}; got {blocks.shape}."
        raise ValueError(msg)
    return blocks


def _rows_of_weights(weights: Any, source: RowBlocks) -> RowBlocks:
    weights = weights if sp.issparse(weights) else np.asarray(weights)
    weights = sp.csr_array(weights) if sp.issparse(weights) else weights
    return RowBlocks(
        tuple(weights.shape), source.dtype, source.edges, lambda start, stop: weights[start:stop]
    )


def read_block(source: RowBlocks, rows: slice) -> Any:
    """Some rows as an array of the right type; an error names the block."""
    with _named(source, rows, "cannot be read: "):
        X = source.read(rows)
        expected = rows.stop - rows.start, source.shape[1]
        if X.shape != expected:
            msg = f"it should have {expected[0]} rows and {expected[1]} columns, and has {X.shape}"
            raise ValueError(msg)
        return X if X.dtype == source.dtype else X.astype(source.dtype)


@contextmanager
def _named(source: RowBlocks, rows: slice, what: str = "") -> Iterator[None]:
    """Errors inside name the block."""
    try:
        yield
    except MemoryError:
        raise
    except Exception as error:
        number = int(np.searchsorted(source.edges, rows.start, side="right"))
        place = f"Block {number} of X (rows {rows.start} to {rows.stop - 1})"
        kind = TypeError if isinstance(error, TypeError) else ValueError
        msg = f"{place} {what}{reason(error)}." if what else f"{place}: {error}"
        raise kind(msg) from error


def check_names(estimator: Any, source: RowBlocks, *, reset: bool) -> None:
    """Note the names of the features, or compare them."""
    names = source.feature_names
    if reset:
        estimator.__dict__.pop("feature_names_in_", None)
        if names is not None:
            estimator.feature_names_in_ = np.array(names, dtype=object)
    elif names is not None and list(vars(estimator).get("feature_names_in_", names)) != list(names):
        msg = (
            "The names of the features differ from those of the fit: give the same columns in the same order."
        )
        raise ValueError(msg)


def refuses_blocks(model: Any, data: Data) -> str | None:
    """Why a start cannot be drawn for ``data`` in blocks, in one sentence; None if it can."""
    if isinstance(data, InMemory) or not model.spec.starts[model.init].in_memory:
        return None
    possible = ", ".join(name for name, start in model.spec.starts.items() if not start.in_memory)
    return (
        f"init={model.init!r} needs all of X in memory, and X is in blocks of rows: use one of {possible}, "
        "or give first factors U0 and V0."
    )
