"""Neighbour graphs of samples in blocks: neighbours are sought in a block, the one before and the next.

On a cluster every block has the rows of W of its samples. Codes of neighbours in other blocks travel in every
iteration, and nothing else of the graph.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, ClassVar

import array_api_compat
import numpy as np
import scipy.sparse as sp

from lognmf.blocks.cluster import OnWorkers, Part, WorkerRows
from lognmf.blocks.disk import OnDisk, stacked
from lognmf.core.arrays import Array, double, like, namespace, take
from lognmf.core.data import InMemory
from lognmf.core.matrices import on_cpu, operator_like, with_small_indices
from lognmf.core.terms.laplacian import GraphHalves, Laplacian
from lognmf.core.terms.protocol import Halves
from lognmf.graph import Graphs, check_graph
from lognmf.progress import listening, stage


def pairs_of(count: int) -> list[tuple[int, int]]:
    """The pairs of blocks in which neighbours are sought: each block and the next, the last and the first.

    A graph within each block would do without the second block, but it is in pieces, and a strong graph
    term then makes clusters of the pieces.
    """
    return [(i, (i + 1) % count) for i in range(count if count > 2 else count - 1)] or [(0, 0)]


def near(one: InMemory, other: InMemory, n_neighbors: int, search: str) -> sp.csr_array:
    """The neighbour graph of the samples of two blocks, or of one."""
    blocks = [one] if one is other else [one, other]
    together = stacked([InMemory(on_cpu(block.X)) for block in blocks])
    return Graphs(together.X).knn(n_neighbors, search)


@dataclass(frozen=True, eq=False)
class GraphsOfBlocks:
    """The graphs of samples that are read block by block."""

    data: OnDisk

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
        n, places = self.data.shape[0], self.data.places
        W = sp.csr_array((n, n))
        pairs = pairs_of(len(places))
        task = f"finding {n_neighbors} neighbours of {n} samples"
        with stage(task, len(pairs), "pairs of blocks") as shown:
            for done, pair in enumerate(pairs, start=1):
                with listening(alone=True):  # each pair is one move of this stage
                    one, other = (self.data.loaded(places[i]) for i in pair)
                    found = near(one, other, n_neighbors, search).tocoo()
                number = np.concatenate([np.arange(places[i].start, places[i].stop) for i in pair])
                ends = tuple(number[end] for end in found.coords)
                W = sp.csr_array(W.maximum(sp.csr_array((found.data, ends), shape=(n, n))))
                shown.move(done)
        return with_small_indices(W)

    def given(self, W: Any) -> sp.csr_array:
        """A graph that a user gave, checked."""
        return check_graph(W, self.data.shape[0])


@dataclass(frozen=True, eq=False)
class GraphsOnWorkers:
    """The graphs of samples on workers."""

    data: OnWorkers

    @cached_property
    def _known(self) -> dict[Any, WorkerGraph]:
        return {}

    def knn(self, n_neighbors: int, graph: Any = "knn") -> WorkerGraph:
        """The graph that `GraphsOfBlocks` makes of the same blocks, or a given one."""
        key = (n_neighbors, graph) if isinstance(graph, str) else id(graph)
        if key not in self._known:
            built = isinstance(graph, str)
            self._known[key] = self._built(n_neighbors, graph) if built else self._cut(self.given(graph))
        return self._known[key]

    def given(self, W: Any) -> sp.csr_array:
        """A graph that a user gave, checked."""
        return check_graph(W, self.data.shape[0])

    def _built(self, n_neighbors: int, search: str) -> WorkerGraph:
        client, blocks, edges = self.data.source.client, self.data.blocks, self.data.edges
        pairs = pairs_of(len(blocks))
        graphs = [
            client.submit(near, blocks[i], blocks[j], n_neighbors, search, pure=False) for i, j in pairs
        ]
        rows, others = [], []
        for block in range(len(blocks)):
            own = [number for number, pair in enumerate(pairs) if block in pair]
            found = [graphs[number] for number in own]
            rows.append(client.submit(_rows, found, [pairs[n] for n in own], block, edges, pure=False))
            others.append(tuple(sorted({other for n in own for other in pairs[n]} - {block})))
        return self._of(rows, others, None)

    def _cut(self, W: sp.csr_array) -> WorkerGraph:
        edges = self.data.edges
        parts = [W[start:stop] for start, stop in itertools.pairwise(edges)]
        found = [np.unique(np.searchsorted(edges, part.indices, side="right") - 1) for part in parts]
        others = [tuple(j for j in js.tolist() if j != i) for i, js in enumerate(found)]
        return self._of([self.data.sent(part) for part in parts], others, W)

    def _of(self, rows: list[Any], others: list[tuple[int, ...]], given: sp.csr_array | None) -> WorkerGraph:
        client, numbers = self.data.source.client, range(len(rows))
        cut = client.map(_block_rows, rows, numbers, edges=self.data.edges, pure=False)
        wanted = [
            tuple(client.submit(_wanted, mine, other, pure=False) for other in own)
            for mine, own in zip(cut, others, strict=True)
        ]
        return WorkerGraph(tuple(cut), tuple(others), tuple(wanted), given)


@dataclass(frozen=True, eq=False)
class WorkerGraph:
    """Rows of W on the workers."""

    rows: tuple[Any, ...]  # futures of `BlockRows`
    others: tuple[tuple[int, ...], ...]  # the other blocks in which a block has neighbours
    wanted: tuple[tuple[Any, ...], ...]  # futures: which rows it needs of each of them
    given: sp.csr_array | None = field(repr=False)  # W, if it was given

    def term(self, weight: Array) -> WorkerLaplacian:
        """The graph term with this weight (B,)."""
        return WorkerLaplacian(self, weight)


@dataclass(frozen=True, eq=False)
class WorkerLaplacian:
    """The graph term where blocks are on workers."""

    graph: WorkerGraph
    weight: Array

    quadratic: ClassVar[bool] = True

    def terms(self, V: WorkerRows) -> list[Any]:
        """Futures of the term of every block, with the codes that its neighbours have now."""
        client, graph = V.data.source.client, self.graph
        halos = [
            [
                client.submit(_halo, V.parts[i], V.place, index, pure=False)
                for i, index in zip(*own, strict=True)
            ]
            for own in zip(graph.others, graph.wanted, strict=True)
        ]
        return client.map(BlockTerm, graph.rows, halos, weight=self.weight, pure=False)

    def take(self, index: np.ndarray) -> WorkerLaplacian:
        """The term for the settings ``index``."""
        return replace(self, weight=take(self.weight, index, axis=0))


def graphs_of(data: Any) -> Any:
    """The graphs of a data set."""
    if isinstance(data, OnWorkers):
        return GraphsOnWorkers(data)
    return GraphsOfBlocks(data) if isinstance(data, OnDisk) else Graphs(data.X)


# On a worker -----------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class BlockRows:
    """Rows of W: columns are the samples of the block, then ``wanted`` ones of other blocks."""

    W: sp.csr_array
    wanted: dict[int, np.ndarray]


@dataclass(frozen=True, eq=False)
class BlockTerm:
    """The graph term of some rows; ``halo`` are the codes of their neighbours in other blocks."""

    rows: BlockRows
    halo: Sequence[Array]
    weight: np.ndarray

    quadratic: ClassVar[bool] = True

    def halves(self, V: Array) -> Halves:
        """Half gradients, for the rows of the block."""
        F, weight = self._codes(V), like(self.weight, V)
        degree = like(np.asarray(self.rows.W.sum(axis=1)).reshape(-1), V)
        halves, n = GraphHalves(F, operator_like(self.rows.W, V), degree, weight), V.shape[0]
        return lambda rows: halves(slice(*rows.indices(n)))

    def value(self, V: Array) -> Array:
        """Its part of the term: an edge is in the rows of both of its ends, and half of it counts in each."""
        xp, device = namespace(V), array_api_compat.device(V)
        W, weight = self.rows.W.tocoo(), like(self.weight, V)
        ends = (xp.asarray(end.astype(np.int64), device=device) for end in W.coords)
        edges = (*ends, like(W.data / 2, double(weight)))
        return Laplacian(self.rows.W, weight, weight, self.rows.W, edges).value(self._codes(V))

    def _codes(self, V: Array) -> Array:
        return namespace(V).concat([V, *(like(F, V) for F in self.halo)], axis=0) if self.halo else V


def _rows(
    graphs: Sequence[sp.csr_array], pairs: Sequence[tuple[int, int]], block: int, edges: Sequence[int]
) -> sp.csr_array:
    """Rows of W (rows, n) of a block, from the graphs of the pairs of blocks that it is in."""
    W = sp.csr_array((edges[block + 1] - edges[block], edges[-1]))
    for graph, pair in zip(graphs, pairs, strict=True):
        number = np.concatenate([np.arange(edges[b], edges[b + 1]) for b in dict.fromkeys(pair)])
        own = np.flatnonzero((number >= edges[block]) & (number < edges[block + 1]))
        near = graph[own].tocoo()
        W = sp.csr_array(W.maximum(sp.csr_array((near.data, (near.row, number[near.col])), shape=W.shape)))
    return W


def _block_rows(W: sp.csr_array, block: int, edges: Sequence[int]) -> BlockRows:
    """Rows of W (rows, n) with columns for the neighbours alone."""
    start, stop = edges[block], edges[block + 1]
    columns = np.unique(W.indices)
    away = columns[(columns < start) | (columns >= stop)]
    homes = np.searchsorted(edges, away, side="right") - 1
    wanted = {int(home): away[homes == home] - edges[home] for home in np.unique(homes)}
    inside = (W.indices >= start) & (W.indices < stop)
    place = np.where(inside, W.indices - start, stop - start + np.searchsorted(away, W.indices))
    shape = (stop - start, stop - start + len(away))
    return BlockRows(sp.csr_array((W.data, place, W.indptr), shape=shape), wanted)


def _wanted(rows: BlockRows, other: int) -> np.ndarray:
    return rows.wanted.get(other, np.zeros(0, dtype=np.int64))


def _halo(part: Part, place: int, index: np.ndarray) -> Array:
    return take(part[0][place], index, axis=0)
