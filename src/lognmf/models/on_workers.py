"""Fits on a Dask cluster: blocks and their codes lie on workers, the basis and small sums travel.

An iteration is one round of tasks: the new basis goes out, every block makes its part of the pass
(`Multiplicative.pass_block`), and its sums come back, added up on the way. All futures are results of tasks,
so Dask computes again what a dead worker held.
"""

from __future__ import annotations

import copy
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp
from sklearn.base import clone

from lognmf.core import starts
from lognmf.core.arrays import Array, Elsewhere, total
from lognmf.core.blocks import Facts
from lognmf.core.data import InMemory
from lognmf.core.rule import State
from lognmf.core.solvers.multiplicative import Multiplicative, unit_columns
from lognmf.models.scale import known_share, row_squares
from lognmf.models.validation import check_accepted, check_features, converted, read_samples
from lognmf.reading import reason
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

    def _mapped(self, function: Callable[..., Any], state: State) -> list[Any]:
        """Futures of ``function(problem, U, block, V, XU)``."""
        message = self.data.sent((self.rule.problem, state.U))
        return self.data.source.client.map(
            _of_part, self.data.blocks, state.V.parts, message=message, function=function, pure=False
        )

    def value(self, state: State) -> np.ndarray:
        (value,) = self.data.added(self._mapped(_value, state))
        for penalty in self.rule.problem.on_U:
            value = value + penalty.value(state.U)
        return value

    def squared_error(self, state: State) -> np.ndarray:
        """``‖X − V Uᵀ‖²_F`` of every setting, (B,)."""
        return self.data.added(self._mapped(_squared_error, state))[0]

    def factors(self, state: State) -> tuple[Any, Any, Any]:
        """U and V of a state; ``X @ U`` stays where it is."""
        return state.U, state.V, None

    def outlier_part(self, state: State) -> tuple[Any, Any, Any] | None:
        """Share, norm and residual norm of every sample, Dask arrays (n, B); None without outliers."""
        if not hasattr(self.rule.problem.fit, "outlier_part"):
            return None
        parts = self._mapped(_outliers, state)
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


def _squared_error(problem: Any, U: Array, block: InMemory, V: Array, XU: Array) -> tuple[Array]:
    return (total(problem.fit.squared_residuals(block, U, V, XU), axis=0),)


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


# The border ----------------------------------------------------------------------------


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
    auto = [name for name in model._auto if isinstance(getattr(model, name), str)]
    if auto:
        return f"Blocks on workers need numbers for {', '.join(auto)}: give them, or use in_blocks."
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
