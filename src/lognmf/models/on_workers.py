"""Fits on a Dask cluster: blocks and their codes lie on workers, the basis and small sums travel.

An iteration is one round of tasks: the new basis goes out, every block makes its part of the pass
(`Multiplicative.pass_block`), and its sums come back, added up on the way. All futures are results of tasks,
so Dask computes again what a dead worker held.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any, ClassVar

import numpy as np

from lognmf.core.arrays import Array, Elsewhere, total
from lognmf.core.blocks import Facts
from lognmf.core.data import InMemory
from lognmf.core.problem import Problem
from lognmf.core.rule import State
from lognmf.core.solvers.multiplicative import Multiplicative, unit_columns
from lognmf.core.terms.protocol import DataFit
from lognmf.sources import WorkerBlocks

FAN = 8
"""How many sums are added by one task."""


@dataclass(frozen=True, eq=False)
class Remote:
    """Data whose blocks are on workers; ``raw`` are futures of `InMemory` in the units of X."""

    source: WorkerBlocks
    raw: tuple[Any, ...]
    facts: Facts
    unit: float = 1.0

    weights: ClassVar[bool] = False

    @property
    def shape(self) -> tuple[int, int]:
        """Number of samples and of features."""
        return self.source.shape

    @property
    def pattern(self) -> Array:
        """An array of the library and dtype of the factors."""
        return np.empty(0, self.source.dtype)

    @property
    def stand_in(self) -> np.ndarray:
        """Products are taken elsewhere: nothing is large here."""
        return np.empty((1, 1), self.source.dtype)

    @cached_property
    def blocks(self) -> list[Any]:
        """Futures of the blocks as `InMemory` in this unit."""
        return self.each(_in_unit, self.raw, self.unit)

    def each(self, function: Callable[..., Any], parts: Sequence[Any], *more: Any) -> list[Any]:
        """Futures of ``function(part, *more)``; ``more`` is sent once."""
        return self.source.client.map(_applied, parts, function=function, more=self.sent(more), pure=False)

    def sent(self, message: Any) -> Any:
        """A future of ``message``: it leaves this process once, and workers hand it on."""
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message="Sending large graph")
            return self.source.client.submit(_same, message, pure=False)

    def added(self, futures: list[Any]) -> tuple[Any, ...]:
        """The sum of tuples of arrays, added up as a tree on the workers."""
        client = self.source.client
        while len(futures) > 1:
            groups = [futures[i : i + FAN] for i in range(0, len(futures), FAN)]
            futures = [client.submit(_sum, group, pure=False) for group in groups]
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
    """Codes V (n, B, k) on workers: futures of ``(V, XU, kept, sums)`` of every block."""

    data: Remote
    parts: tuple[Any, ...]
    batch: int
    k: int

    @property
    def shape(self) -> tuple[int, int, int]:
        """Samples, settings, components."""
        return self.data.shape[0], self.batch, self.k

    def __mul__(self, scale: Any) -> RemoteCodes:
        return replace(self, parts=tuple(self.data.each(_scaled, self.parts, scale)))

    def taken(self, index: np.ndarray) -> RemoteCodes:
        """The settings ``index``."""
        if len(index) == self.batch and (index == np.arange(self.batch)).all():
            return self
        return replace(self, parts=tuple(self.data.each(_taken, self.parts, index)), batch=len(index))

    def total(self, function: Callable[[Array], Array]) -> np.ndarray:
        """The sum of a function of some rows over all of them, (B,)."""
        return self.data.added(self.data.each(_of_codes, self.parts, function))[0]

    def joined(self, others: list[RemoteCodes]) -> RemoteCodes:
        """The batch with others beside it."""
        if not others:
            return self
        batches = (self.parts, *(other.parts for other in others))
        parts = self.data.source.client.map(_joined, *batches, pure=False)
        return replace(self, parts=tuple(parts), batch=self.batch + sum(other.batch for other in others))

    def __getitem__(self, where: tuple[slice, int, slice]) -> Any:
        """The codes of one setting, a Dask array (n, k)."""
        return self.data.rows(self.data.each(_codes_of, self.parts, where[1]), self.k)


@dataclass(frozen=True)
class RemoteProblem:
    """What the choice of weights asks of a problem whose blocks are on workers."""

    terms: Problem  # without data: it travels
    data: Remote

    @property
    def fit(self) -> DataFit:
        """How far ``V Uᵀ`` is from the data."""
        return self.terms.fit

    def total(self, of_rows: Callable[..., Array], U: Array, V: RemoteCodes, _: Any) -> np.ndarray:
        """Sum over all samples of a function of blocks, (B,)."""
        return self.data.added(self.mapped(partial(_totalled, of_rows), U, V))[0]

    def mapped(self, function: Callable[..., Any], U: Array, V: RemoteCodes) -> list[Any]:
        """Futures of ``function(problem, U, block, V, XU)``."""
        message = self.data.sent((self.terms, U))
        return self.data.source.client.map(
            _of_part, self.data.blocks, V.parts, message=message, function=function, pure=False
        )


@dataclass(frozen=True)
class RemoteMultiplicative:
    """Multiplicative updates where blocks and codes are on workers; the state's ``aux`` are the sums."""

    rule: Multiplicative  # without data: it travels
    data: Remote

    by_sample: ClassVar[int] = 0

    @classmethod
    def of(cls, rule: Multiplicative) -> RemoteMultiplicative:
        """The same updates on the workers that hold the data of ``rule``."""
        data: Any = rule.problem.data
        nothing = InMemory(np.empty((0, 0)))
        return cls(replace(rule, problem=replace(rule.problem, data=nothing)), data)

    @property
    def problem(self) -> RemoteProblem:
        """What is minimised."""
        return RemoteProblem(self.rule.problem, self.data)

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
        parts = self.data.source.client.map(
            _passed, self.data.blocks, V.parts, message=self.data.sent((self.rule, U, U_old)), pure=False
        )
        sums = self.data.added(self.data.each(_sums_of, parts))
        return State(U, replace(V, parts=tuple(parts)), sums)

    def value(self, state: State) -> np.ndarray:
        (value,) = self.data.added(self.problem.mapped(_value, state.U, state.V))
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
        parts = self.problem.mapped(_outliers, state.U, state.V)
        return tuple(self.data.rows(self.data.each(_entry, parts, place), state.batch) for place in range(3))

    def take(self, index: np.ndarray) -> RemoteMultiplicative:
        return replace(self, rule=self.rule.take(index))


# On a worker ---------------------------------------------------------------------------


def _same(message: Any) -> Any:
    return message


def _applied(part: Any, function: Callable[..., Any], more: tuple[Any, ...]) -> Any:
    return function(part, *more)


def _of_part(block: InMemory, part: Any, message: Any, function: Callable[..., Any]) -> Any:
    with np.errstate(over="ignore", invalid="ignore"):
        return function(*message, block, *part[:2])


def _sum(parts: list[tuple[Any, ...]]) -> tuple[Any, ...]:
    return tuple(sum(column[1:], column[0]) for column in zip(*parts, strict=True))


def _in_unit(block: InMemory, unit: float) -> InMemory:
    return replace(block, unit=unit)


def _passed(block: InMemory, part: Any, message: Any) -> tuple[Any, ...]:
    """A block's part of a pass."""
    rule, U, U_old = message
    V, _, kept, _ = part
    with np.errstate(over="ignore", invalid="ignore"):
        on_V = [] if U_old is None else [penalty.halves(V) for penalty in rule.problem.on_V]
        V, XU, kept, *sums = rule.pass_block(block, U, V, None if U_old is None else kept, U_old, on_V)
    return V, XU, kept, tuple(sums)


def _sums_of(part: Any) -> tuple[Any, ...]:
    return part[3]


def _value(problem: Any, U: Array, block: InMemory, V: Array, XU: Array) -> tuple[Array]:
    value = total(problem.fit.row_values(block, U, V, XU), axis=0)
    for penalty in problem.on_V:
        value = value + penalty.value(V)
    return (value,)


def _totalled(
    of_rows: Callable[..., Array], problem: Problem, U: Array, block: InMemory, V: Array, XU: Array
) -> tuple[Array]:
    return (total(of_rows(block, U, V, XU), axis=0),)


def _of_codes(part: Any, function: Callable[[Array], Array]) -> tuple[Array]:
    return (function(part[0]),)


def _outliers(problem: Any, U: Array, block: InMemory, V: Array, XU: Array) -> tuple[Array, ...]:
    squared = problem.fit.squared_residuals(block, U, V, XU)
    return *problem.fit.outlier_part(squared), squared**0.5


def _entry(part: tuple[Any, ...], place: int) -> Any:
    return part[place]


def _scaled(part: Any, scale: Any) -> Any:
    return part[0] * scale, *part[1:]


def _taken(part: Any, index: np.ndarray) -> Any:
    V, XU, kept, sums = part
    return V[:, index], XU[:, index], kept[:, index], tuple(s[:, index] for s in sums)


def _joined(*parts: Any) -> Any:
    *arrays, sums = zip(*parts, strict=True)
    sums = tuple(np.concatenate(column, axis=1) for column in zip(*sums, strict=True))
    return *(np.concatenate(column, axis=1) for column in arrays), sums


def _codes_of(part: Any, setting: int) -> np.ndarray:
    return np.ascontiguousarray(part[0][:, setting, :])
