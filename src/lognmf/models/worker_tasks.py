"""What a worker does for a fit whose blocks lie on workers: one small function for every kind of task.

A part of the codes is ``(V, XU, kept, sums)``: of one block its codes, ``X @ U``, its inlier weights and what
it adds to the sums of a pass. The first three stay in the library of the block, which may be torch; messages
and sums are NumPy.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import fields, is_dataclass, replace
from functools import partial
from pathlib import Path
from types import MethodType
from typing import Any

import numpy as np
import scipy.sparse as sp

from lognmf.core.arrays import Array, join, like, take, to_numpy, total
from lognmf.core.data import InMemory
from lognmf.core.matrices import to_device
from lognmf.core.problem import Problem
from lognmf.models.validation import converted
from lognmf.parameters import unmasked

Part = tuple[Any, ...]


class WorkerBlock(InMemory):
    """A block on its worker; it says how large it is, and is sent without what was computed from it."""

    def __sizeof__(self) -> int:
        """Bytes; Dask decides by them what to move."""
        X, M = self.X, self.M
        own = X.data.nbytes + X.indices.nbytes + X.indptr.nbytes if sp.issparse(X) else X.nbytes
        return int(own if M is None else own + M.nbytes)

    def __reduce__(self) -> Any:
        return WorkerBlock, (self.X, self.M, self.unit)


def block_of(
    X: Any, dtype: Any, device: str | None = None, unit: float = 1.0, *, weights: bool = False
) -> WorkerBlock:
    """Rows as they were read, as a block: of this type, on this device, with ``weights`` of its entries."""
    X = sp.csr_array(X) if sp.issparse(X) else np.asarray(unmasked(X))
    data = converted(X if X.dtype == dtype else X.astype(dtype))
    M = np.ones_like(data.X) if weights and data.M is None else data.M
    X, M = (F if F is None or device is None else to_device(F, device, str(dtype)) for F in (data.X, M))
    return WorkerBlock(X, M, unit)


def some_rows(block: InMemory, index: np.ndarray) -> InMemory:
    """Some rows of a block, in NumPy."""
    X, M, unit = block.X, block.M, block.unit
    if not sp.issparse(X):
        X, M = to_numpy(X), None if M is None else to_numpy(M)
    return InMemory(X, M, unit).take_rows(index)


def same(message: Any) -> Any:
    """A message, once it has arrived."""
    return message


def applied(part: Any, function: Callable[..., Any], more: tuple[Any, ...]) -> Any:
    """A function of a part and of what was sent."""
    return function(part, *more)


def placed(value: Any, pattern: Array) -> Any:
    """Arrays, also those in tuples, terms and their methods, in the library of ``pattern``."""
    if isinstance(pattern, np.ndarray):
        return value
    if isinstance(value, np.ndarray):
        return like(value, pattern)
    if isinstance(value, tuple):
        return tuple(placed(item, pattern) for item in value)
    if isinstance(value, MethodType):
        return getattr(placed(value.__self__, pattern), value.__name__)
    if isinstance(value, partial):
        return partial(placed(value.func, pattern), *placed(value.args, pattern), **value.keywords)
    if is_dataclass(value) and not isinstance(value, type):
        changed = {field.name: placed(getattr(value, field.name), pattern) for field in fields(value)}
        return replace(value, **changed)
    return value


def with_graph(problem: Any, graph: Any) -> Any:
    """The problem of a block with its part of the graph term, if there is one."""
    return problem if graph is None else replace(problem, on_V=(graph, *problem.on_V))


def of_part(
    block: InMemory, part: Part, graph: Any, message: tuple[Any, Array], function: Callable[..., Any]
) -> Any:
    """``function(problem, U, block, V, XU)``, where the message is the problem and U."""
    problem, U, function = placed((*message, function), block.pattern)
    with np.errstate(over="ignore", invalid="ignore"):
        found = function(with_graph(problem, graph), U, block, *part[:2])
    return tuple(map(to_numpy, found))


def passed(block: InMemory, part: Part, graph: Any, message: tuple[Any, ...]) -> Part:
    """A block's part of a pass."""
    rule, U, U_old = placed(message, block.pattern)
    rule = replace(rule, problem=with_graph(rule.problem, graph))
    V, _, kept, _ = part
    with np.errstate(over="ignore", invalid="ignore"):
        on_V = [] if U_old is None else [penalty.halves(V) for penalty in rule.problem.on_V]
        V, XU, kept, *sums = rule.pass_block(block, U, V, None if U_old is None else kept, U_old, on_V)
    return V, XU, kept, tuple(map(to_numpy, sums))


def sums_of(part: Part) -> tuple[Any, ...]:
    """What a block adds to the sums."""
    return part[3]


def added(parts: Sequence[tuple[Any, ...]]) -> tuple[Any, ...]:
    """The sum of tuples of arrays."""
    return tuple(sum(column[1:], column[0]) for column in zip(*parts, strict=True))


def value(problem: Any, U: Array, block: InMemory, V: Array, XU: Array) -> tuple[Array]:
    """A block's part of the objective, without the penalties on U."""
    value = total(problem.fit.row_values(block, U, V, XU), axis=0)
    for penalty in problem.on_V:
        value = value + penalty.value(V)
    return (value,)


def totalled(
    of_rows: Callable[..., Array], problem: Problem, U: Array, block: InMemory, V: Array, XU: Array
) -> tuple[Array]:
    """The sum over the rows of a block of a function of them."""
    return (total(of_rows(block, U, V, XU), axis=0),)


def residuals(every: int, problem: Any, U: Array, block: InMemory, V: Array, XU: Array) -> tuple[Array]:
    """Squared residual norms of one in ``every`` samples."""
    return (problem.fit.squared_residuals(block, U, V, XU)[::every, ...],)


def outliers(problem: Any, U: Array, block: InMemory, V: Array, XU: Array) -> tuple[Array, ...]:
    """Share, norm and residual norm of every sample."""
    squared = problem.fit.squared_residuals(block, U, V, XU)
    return *problem.fit.outlier_part(squared), squared**0.5


def entry(part: tuple[Any, ...], place: int) -> Any:
    """One of several results."""
    return part[place]


# Codes -----------------------------------------------------------------------------------


def first_part(block: InMemory, *codes: Any) -> Part:
    """The codes of a block for all starts, as a part of a state that has made no pass yet."""
    V = like(np.stack([np.asarray(V) for V in codes], axis=1), block.pattern)
    return V, V, V[:0, :, 0], ()


def of_codes(part: Part, function: Callable[[Array], Array]) -> tuple[Array]:
    """A function of the codes of a block."""
    return (to_numpy(placed(function, part[0])(part[0])),)


def scaled(part: Part, scale: Array) -> Part:
    """Codes times a scale."""
    return part[0] * (like(scale, part[0]) if hasattr(scale, "shape") else scale), *part[1:]


def taken(part: Part, index: np.ndarray) -> Part:
    """Some settings."""
    return *(take(F, index) for F in part[:3]), tuple(take(F, index) for F in part[3])


def joined(*parts: Part) -> Part:
    """Batches side by side."""
    *arrays, sums = zip(*parts, strict=True)
    return *(join(list(column)) for column in arrays), tuple(
        join(list(column)) for column in zip(*sums, strict=True)
    )


def codes_of(part: Part, setting: int) -> np.ndarray:
    """The codes of one setting."""
    return np.ascontiguousarray(to_numpy(part[0])[:, setting, :])


def written(part: Part, path: Path) -> Path:
    """A part in a file, which appears when it is complete."""
    path.parent.mkdir(parents=True, exist_ok=True)
    fresh = path.with_name(f".{os.getpid()}-{path.name}")
    sums = {f"sum {i}": F for i, F in enumerate(part[3])}
    np.savez(fresh, V=to_numpy(part[0]), XU=to_numpy(part[1]), kept=to_numpy(part[2]), **sums)
    fresh.replace(path)
    return path


def read(path: Path, block: InMemory) -> Part:
    """A part that was written."""
    with np.load(path, allow_pickle=False) as file:
        V, XU, kept = (like(file[name], block.pattern) for name in ("V", "XU", "kept"))
        return V, XU, kept, tuple(file[f"sum {i}"] for i in range(len(file.files) - 3))
