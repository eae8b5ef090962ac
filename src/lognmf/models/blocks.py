"""The border for samples in blocks of rows: one pass checks them all before any work."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp

from lognmf.core.blocks import Blocks, Facts
from lognmf.core.data import Data, InMemory
from lognmf.core.matrices import with_small_indices
from lognmf.core.starts import STARTS
from lognmf.graph import Graphs, check_graph
from lognmf.models.on_workers import Remote
from lognmf.models.remote_graph import GraphsOnWorkers
from lognmf.models.remote_samples import check_remote, refuses_remote
from lognmf.models.scale import known_share, row_squares
from lognmf.models.validation import (
    Samples,
    check_accepted,
    check_features,
    check_samples,
    converted,
    read_samples,
)
from lognmf.progress import listening, stage
from lognmf.reading import reason
from lognmf.sources import RowBlocks, WorkerBlocks, as_source
from lognmf.sources.rows import by_block


def check_data(estimator: Any, X: Any, *, reset: bool, weights: Any = None) -> Any:
    """Samples (n, p) as data in memory or, where they are elsewhere and not small, in blocks of rows."""
    if isinstance(X, WorkerBlocks) and estimator.spec.blocks:
        return check_remote(estimator, X, weights, reset=reset)
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
        data = _checked(estimator, source, weights, reset=reset)
    check_names(estimator, source, reset=reset)
    return data


def _whole(X: Any, source: RowBlocks, weights: Any, estimator: Any) -> Samples:
    """All rows in memory."""
    if isinstance(X, np.ndarray):
        return read_samples(X, weights, estimator=estimator)
    rows = slice(0, source.shape[0])
    blocks = as_source(weights)
    weights = weights if blocks is None else blocks.read(rows)
    return replace(read_samples(read_block(source, rows), weights, estimator=estimator), source=source)


def _checked(estimator: Any, source: RowBlocks, weights: Any, *, reset: bool) -> Blocks:
    """All blocks, each looked at once."""
    check_features(estimator, source, reset=reset)
    n, p = source.shape
    cut = None if weights is None else _weights_source(weights, source)
    nothing, pattern = Facts(0.0, 0.0, np.zeros(n), 1.0, 1.0, 1), np.empty(0, source.dtype)
    whole = Blocks(lambda rows: _read(source, cut, rows), source.edges, p, pattern, nothing)
    parts, weighted = [], False
    for rows in whole.places:
        X = read_block(source, rows)
        with _named(source, rows):
            own = None if cut is None else cut.read(rows)
            samples = read_samples(X, own, estimator=estimator)
            check_accepted(estimator, samples, reset=False, rows=n)
        data = samples.data
        weighted = weighted or data.weights
        entries = X.nnz if sp.issparse(X) else X.size
        parts.append((samples.smallest, samples.largest, *row_squares(data), known_share(data), entries))
        del X, samples, data  # one block at a time
    facts = _together(parts, whole.places)
    if reset and facts.known == 0:
        msg = "X has no known entry: all of them are missing (NaN, or of weight 0)."
        raise ValueError(msg)
    return replace(whole, facts=facts, weights=weighted)


def some_rows(estimator: Any, source: RowBlocks, index: np.ndarray) -> Any:
    """The samples ``index``, in order, as one matrix; all blocks are looked at."""
    parts = []
    for rows, own in zip(source.places, by_block(index, source.edges), strict=True):
        X = read_block(source, rows)
        with _named(source, rows):
            check_accepted(estimator, read_samples(X, estimator=estimator), reset=False, rows=source.shape[0])
        parts.append(X[own])
    return sp.vstack(parts, format="csr") if sp.issparse(parts[0]) else np.concatenate(parts)


def _together(parts: list[tuple[Any, ...]], places: list[slice]) -> Facts:
    """What was found in the blocks, put together."""
    smallest, largest, squares, sizes, known, entries = zip(*parts, strict=True)
    # The size of a block of zeros is 1, and says nothing.
    size = max((s for s, own in zip(sizes, squares, strict=True) if own.any()), default=1.0)
    heights = [rows.stop - rows.start for rows in places]
    return Facts(
        min(smallest),
        max(largest),
        np.concatenate([own * (s / size) ** 2 for own, s in zip(squares, sizes, strict=True)]),
        size,
        float(np.average(known, weights=heights)),
        max(entries),
    )


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


def _read(source: RowBlocks, weights: RowBlocks | None, rows: slice) -> InMemory:
    """Some rows as data in memory, for a fit that has checked them before."""
    return converted(read_block(source, rows), None if weights is None else weights.read(rows))


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


@dataclass(frozen=True, eq=False)
class GraphsOfBlocks:
    """The graphs of samples in blocks: neighbours are sought in a block, the one before and the next."""

    data: Blocks

    @cached_property
    def _built(self) -> dict[tuple[int, str], sp.csr_array]:
        return {}

    def knn(self, n_neighbors: int, graph: Any = "knn") -> sp.csr_array:
        """The graph of so many neighbours, built once, or a given one."""
        if not isinstance(graph, str):
            return self.given(graph)
        if (n_neighbors, graph) not in self._built:
            self._built[n_neighbors, graph] = self._near(n_neighbors, graph)
        return self._built[n_neighbors, graph]

    def _near(self, n_neighbors: int, search: str) -> sp.csr_array:
        """The neighbour graphs of every two consecutive blocks, the last and the first too, put together.

        A graph within each block would do without the second block, but it is in pieces, and a strong graph
        term then makes clusters of the pieces.
        """
        n, places = self.data.shape[0], self.data.places
        W = sp.csr_array((n, n))
        task = f"finding {n_neighbors} neighbours of {n} samples"
        pairs = list(zip(places, places[1:] + places[:1] * (len(places) > 2), strict=False))
        with stage(task, len(pairs), "pairs of blocks") as told:
            for done, (one, other) in enumerate(pairs, start=1):
                with listening(alone=True):  # each pair is one move of this stage
                    near = Graphs(self._together(one, other)).knn(n_neighbors, search).tocoo()
                number = np.concatenate([np.arange(rows.start, rows.stop) for rows in (one, other)])
                ends = tuple(number[end] for end in near.coords)
                W = sp.csr_array(W.maximum(sp.csr_array((near.data, ends), shape=(n, n))))
                told.move(done)
        return with_small_indices(W)

    def _together(self, one: slice, other: slice) -> Any:
        """The samples of two blocks."""
        parts = [self.data.loaded(rows).X for rows in (one, other)]
        return sp.vstack(parts, format="csr") if sp.issparse(parts[0]) else np.concatenate(parts)

    def given(self, W: Any) -> sp.csr_array:
        """A graph that a user gave, checked."""
        return check_graph(W, self.data.shape[0])


def graphs_of(data: Data) -> Any:
    """The graphs of a data set."""
    if isinstance(data, Remote):
        return GraphsOnWorkers(data)
    return GraphsOfBlocks(data) if isinstance(data, Blocks) else Graphs(data.stand_in)


def refuses_blocks(model: Any, data: Data) -> str | None:
    """Why a start cannot be drawn for ``data`` in blocks, in one sentence; None if it can."""
    if isinstance(data, Remote):
        return refuses_remote(model)
    if not isinstance(data, Blocks) or model.init in STARTS:
        return None
    return (
        f"init={model.init!r} needs all of X in memory, and X is read in blocks of rows: use one of "
        f"{', '.join(STARTS)}, or give first factors U0 and V0."
    )
