"""Fits on a Dask cluster: blocks and their codes lie on workers, the basis and small sums travel.

An iteration is one round of tasks: the new basis goes out, every block makes its part of the pass
(`Multiplicative.pass_block`), and its sums come back, added up on the way. All futures are results of tasks,
so Dask computes again what a dead worker held.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from lognmf.core.arrays import Array, Elsewhere, take
from lognmf.core.blocks import Facts
from lognmf.core.data import InMemory
from lognmf.core.problem import Problem
from lognmf.core.rule import State
from lognmf.core.solvers.multiplicative import Multiplicative, unit_columns
from lognmf.core.terms.protocol import DataFit
from lognmf.models import worker_tasks as tasks
from lognmf.reading import reason
from lognmf.sources import WorkerBlocks
from lognmf.sources.rows import by_block

if TYPE_CHECKING:
    from lognmf.models.remote_graph import RemoteGraph

FAN = 8
"""How many sums are added by one task."""

MOST_RESIDUALS = 100_000
"""Residuals that come to the client where a weight is chosen by them; of more samples, evenly spaced ones."""


@contextmanager
def naming_the_block(source: WorkerBlocks, futures: Sequence[Any]) -> Iterator[None]:
    """Errors inside name the block whose future, among those of all blocks, has failed."""
    from distributed import KilledWorker

    try:
        yield
    except Exception as error:
        number = next((i for i, future in enumerate(futures) if future.status == "error"), None)
        if number is None:
            raise
        place = f"Block {number + 1} of X (rows {source.edges[number]} to {source.edges[number + 1] - 1})"
        if isinstance(error, KilledWorker):
            msg = (
                f"{place}: the workers that were given it died, mostly for lack of memory: use smaller "
                "blocks, or workers with more memory."
            )
            raise MemoryError(msg) from error
        kind = TypeError if isinstance(error, TypeError) else ValueError
        msg = f"{place}: {reason(error)}."
        raise kind(msg) from error


@dataclass(frozen=True, eq=False)
class Remote:
    """Data whose blocks are on workers."""

    source: WorkerBlocks
    facts: Facts
    unit: float = 1.0
    weights: bool = False  # whether entries are missing, and the others have a weight of 1

    @property
    def shape(self) -> tuple[int, int]:
        """Number of samples and of features."""
        return self.source.shape

    @property
    def pattern(self) -> Array:
        """An array of the library and dtype of the factors here."""
        return np.empty(0, self.source.dtype)

    @property
    def stand_in(self) -> np.ndarray:
        """Products are taken elsewhere: nothing is large here."""
        return np.empty((1, 1), self.source.dtype)

    @property
    def squared_norms(self) -> np.ndarray:
        """The mean of ``‖x_i‖²``, as the only one: those of all samples are elsewhere."""
        return self.facts.squares / self.shape[0] * (self.facts.size / self.unit) ** 2

    @cached_property
    def blocks(self) -> list[Any]:
        """Futures of the blocks as `InMemory` in this unit."""
        source = self.source
        options = {"dtype": source.dtype, "device": source.device, "unit": self.unit, "weights": self.weights}
        return source.client.map(tasks.block_of, source.blocks, **options, pure=False)

    def each(self, function: Callable[..., Any], parts: Sequence[Any], *more: Any) -> list[Any]:
        """Futures of ``function(part, *more)``; ``more`` is sent once."""
        if not more:  # a task that needs nothing but its part runs where that is
            return self.source.client.map(function, parts, pure=False)
        options = {"function": function, "more": self.sent(more)}
        return self.source.client.map(tasks.applied, parts, **options, pure=False)

    def some_rows(self, index: np.ndarray) -> list[InMemory]:
        """The samples ``index``, in order, by block."""
        client, own = self.source.client, by_block(index, self.source.edges)
        futures = client.map(tasks.some_rows, self.blocks, own, pure=False)
        with naming_the_block(self.source, futures):
            return client.gather(futures)

    def sent(self, message: Any) -> Any:
        """A future of ``message``: it leaves this process once, and workers hand it on."""
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message="Sending large graph")
            return self.source.client.submit(tasks.same, message, pure=False)

    def added(self, futures: list[Any]) -> tuple[Any, ...]:
        """The sum of tuples of arrays, added up as a tree on the workers."""
        client, parts = self.source.client, futures
        while len(futures) > 1:
            groups = [futures[i : i + FAN] for i in range(0, len(futures), FAN)]
            futures = [client.submit(tasks.added, group, pure=False) for group in groups]
        with naming_the_block(self.source, parts):
            return futures[0].result()

    def rows(self, futures: list[Any], *shape: int) -> Any:
        """A Dask array of n rows from a future of every block."""
        import dask.array as da

        heights = np.diff(self.source.edges).tolist()
        dtype = self.source.dtype
        parts = [
            da.from_delayed(future, (height, *shape), dtype=dtype)
            for future, height in zip(futures, heights, strict=True)
        ]
        return da.concatenate(parts)


@dataclass(frozen=True, eq=False)
class RemoteCodes(Elsewhere):
    """Codes V (n, B, k) on workers: futures of a part of every block."""

    data: Remote
    parts: tuple[Any, ...]
    batch: int
    k: int

    @property
    def shape(self) -> tuple[int, int, int]:
        """Samples, settings, components."""
        return self.data.shape[0], self.batch, self.k

    def __mul__(self, scale: Any) -> RemoteCodes:
        return replace(self, parts=tuple(self.data.each(tasks.scaled, self.parts, scale)))

    def taken(self, index: np.ndarray) -> RemoteCodes:
        """The settings ``index``."""
        if len(index) == self.batch and (index == np.arange(self.batch)).all():
            return self
        return replace(self, parts=tuple(self.data.each(tasks.taken, self.parts, index)), batch=len(index))

    def total(self, function: Callable[[Array], Array]) -> np.ndarray:
        """The sum of a function of some rows over all of them, (B,)."""
        return self.data.added(self.data.each(tasks.of_codes, self.parts, function))[0]

    def joined(self, others: list[RemoteCodes]) -> RemoteCodes:
        """The batch with others beside it."""
        if not others:
            return self
        batches = (self.parts, *(other.parts for other in others))
        parts = self.data.source.client.map(tasks.joined, *batches, pure=False)
        return replace(self, parts=tuple(parts), batch=self.batch + sum(other.batch for other in others))

    def __getitem__(self, where: tuple[slice, int, slice]) -> Any:
        """The codes of one setting, a Dask array (n, k)."""
        return self.data.rows(self.data.each(tasks.codes_of, self.parts, where[1]), self.k)

    def written(self, folder: Path) -> RemoteCodes:
        """The same codes, from files in a folder that every worker reaches.

        They no longer depend on what was computed before: only what follows is computed again after a loss.
        """
        client, files = self.data.source.client, _files(folder, len(self.parts))
        made = client.map(tasks.written, self.parts, files, pure=False)
        with naming_the_block(self.data.source, made):
            client.gather(made)
        return self.read(self.data, folder, self.batch, self.k)

    @classmethod
    def read(cls, data: Remote, folder: Path, batch: int, k: int) -> RemoteCodes:
        """Codes that were written."""
        files = _files(folder, len(data.blocks))
        parts = data.source.client.map(tasks.read, files, data.blocks, pure=False)
        return cls(data, tuple(parts), batch, k)


def _files(folder: Path, count: int) -> list[Path]:
    return [folder / f"block-{number:06d}.npz" for number in range(count)]


@dataclass(frozen=True)
class RemoteProblem:
    """What the choice of weights asks of a problem whose blocks are on workers."""

    terms: Problem  # without data: it travels
    data: Remote
    graph: RemoteGraph | None

    @property
    def fit(self) -> DataFit:
        """How far ``V Uᵀ`` is from the data."""
        return self.terms.fit

    def total(self, of_rows: Callable[..., Array], U: Array, V: RemoteCodes, _: Any) -> np.ndarray:
        """Sum over all samples of a function of blocks, (B,)."""
        return self.data.added(self.mapped(partial(tasks.totalled, of_rows), U, V))[0]

    def squared_residuals(self, U: Array, V: RemoteCodes, _: Any) -> np.ndarray:
        """``‖x_i − U v_i‖²`` of at most `MOST_RESIDUALS` samples, evenly spaced, and settings."""
        every = -(-self.data.shape[0] // MOST_RESIDUALS)
        parts = self.mapped(partial(tasks.residuals, every), U, V)
        with naming_the_block(self.data.source, parts):
            return np.concatenate([part for (part,) in self.data.source.client.gather(parts)])

    def mapped(self, function: Callable[..., Any], U: Array, V: RemoteCodes) -> list[Any]:
        """Futures of ``function(problem, U, block, V, XU)``."""
        options = {"message": self.data.sent((self.terms, U)), "function": function}
        return self.over_blocks(tasks.of_part, V, **options)

    def over_blocks(self, task: Callable[..., Any], V: RemoteCodes, **options: Any) -> list[Any]:
        """Futures of ``task(block, part, graph)``, graph being the block's part of the graph term or None."""
        count = len(V.parts)
        graphs = [None] * count if self.graph is None else self.graph.terms(V.parts)
        return self.data.source.client.map(task, self.data.blocks, V.parts, graphs, **options, pure=False)


@dataclass(frozen=True)
class RemoteMultiplicative:
    """Multiplicative updates where blocks and codes are on workers; the state's ``aux`` are the sums."""

    rule: Multiplicative  # without data: it travels
    data: Remote
    graph: RemoteGraph | None

    by_sample: ClassVar[int] = 0

    @classmethod
    def of(cls, rule: Multiplicative, graph: RemoteGraph | None) -> RemoteMultiplicative:
        """The same updates on the workers that hold the data of ``rule``, with the graph as one more term."""
        data: Any = rule.problem.data
        nothing = InMemory(np.empty((0, 0)))
        return cls(replace(rule, problem=replace(rule.problem, data=nothing)), data, graph)

    @property
    def problem(self) -> RemoteProblem:
        """What is minimised."""
        return RemoteProblem(self.rule.problem, self.data, self.graph)

    @property
    def degree(self) -> int:
        """Degree of the objective in X."""
        return self.rule.degree

    def start(self, U: Array, V: RemoteCodes) -> State:
        if self.rule.unit_components:
            U, V = unit_columns(U, V)
        return self._pass(U, V, None)

    def step(self, state: State) -> State:
        return self._pass(self.rule.next_U(state.U, state.aux), state.V, state.U)

    def _pass(self, U: Array, V: Any, U_old: Array | None) -> State:
        parts = self.problem.over_blocks(tasks.passed, V, message=self.data.sent((self.rule, U, U_old)))
        sums = self.data.added(self.data.each(tasks.sums_of, parts))
        return State(U, replace(V, parts=tuple(parts)), sums)

    def value(self, state: State) -> np.ndarray:
        (value,) = self.data.added(self.problem.mapped(tasks.value, state.U, state.V))
        for penalty in self.rule.problem.on_U:
            value = value + penalty.value(state.U)
        return value

    def squared_error(self, state: State) -> np.ndarray:
        """``‖X − V Uᵀ‖²_F`` of every setting, (B,)."""
        return self.problem.total(self.rule.problem.fit.squared_residuals, state.U, state.V, None)

    def factors(self, state: State) -> tuple[Any, Any, Any]:
        """U and V of a state; ``X @ U`` stays where it is."""
        return state.U, state.V, None

    def outlier_part(self, state: State) -> tuple[Any, Any, Any] | None:
        """Share, norm and residual norm of every sample, Dask arrays (n, B); None without outliers."""
        if not hasattr(self.rule.problem.fit, "outlier_part"):
            return None
        parts = self.problem.mapped(tasks.outliers, state.U, state.V)
        columns = (self.data.each(tasks.entry, parts, place) for place in range(3))
        share, norm, residual = (self.data.rows(column, state.batch) for column in columns)
        return share, norm, residual

    def take(self, index: np.ndarray) -> RemoteMultiplicative:
        graph = self.graph and replace(self.graph, weight=take(self.graph.weight, index, axis=0))
        return replace(self, rule=self.rule.take(index), graph=graph)
