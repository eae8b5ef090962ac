"""Samples whose blocks lie on the workers of a Dask cluster.

Blocks and their codes stay there; the basis and small sums travel. Whatever a fit does with some rows is one
task per block, and sums are added up on the way back. All futures are results of tasks, so Dask computes
again what a dead worker held.
"""

from __future__ import annotations

import itertools
import operator
import os
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, fields, is_dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp

from lognmf.blocks.disk import stacked
from lognmf.blocks.rows import RowBlocks, by_block, check_dask, float_type, library
from lognmf.core.arrays import Array, like, to_numpy
from lognmf.core.data import Facts, InBlocks, InMemory, OfRows
from lognmf.core.matrices import to_device
from lognmf.core.rows import Combine, DistributedRows, Rows
from lognmf.parameters import unmasked
from lognmf.reading import reason

FAN = 8
"""How many sums are added by one task."""

SMALL = 100_000
"""Bytes of a message that may travel with every task."""


@dataclass(frozen=True, eq=False)
class WorkerBlocks:
    """Samples in blocks of rows on the workers of a Dask cluster: what `on_workers` makes.

    Attributes
    ----------
    shape : tuple of int
        Number of samples and of features.
    dtype : numpy dtype
        Type in which they are computed with, float32 or float64.
    edges : tuple of int
        First row of every block, and the number of rows.
    client : distributed.Client
        The connection to the cluster.
    device : str or None
        Where torch computes with them; None: NumPy does.
    """

    shape: tuple[int, int]
    dtype: np.dtype
    edges: tuple[int, ...]
    client: Any = field(repr=False)
    blocks: tuple[Any, ...] = field(repr=False)  # a future of every block
    device: str | None = None


def client_of(client: Any) -> Any:
    """The given client, or the one that is active."""
    try:
        from distributed import Client, default_client
    except ImportError as error:
        msg = 'A cluster needs Dask: run pip install "lognmf[dask]".'
        raise ImportError(msg) from error
    if client is None:
        try:
            return default_client()
        except ValueError as error:
            msg = "There is no Dask client: make one, such as distributed.Client(), or give client."
            raise ValueError(msg) from error
    if not isinstance(client, Client):
        msg = f"client must be a distributed.Client; got {type(client).__name__}."
        raise TypeError(msg)
    if client.asynchronous:
        msg = "client is asynchronous: give one that waits for its results."
        raise ValueError(msg)
    return client


def on_cluster(X: Any, source: RowBlocks | None, client: Any, device: str | None) -> WorkerBlocks:
    """The chunks of a Dask array, or the blocks of another source, as they come to lie on workers."""
    if library(X) == "dask":
        heights = check_dask(X)
        edges = tuple(np.cumsum([0, *heights]).tolist())
        blocks = tuple(client.compute([*X.to_delayed().ravel()]))
        return WorkerBlocks(X.shape, float_type(X.dtype), edges, client, blocks, device)
    if source is None:
        msg = f"X must be a Dask array or what in_blocks takes; got {type(X).__name__}."
        raise TypeError(msg)
    if library(X) == "h5py":
        msg = "An HDF5 dataset that is open here cannot be sent to workers: give the path of its file."
        raise TypeError(msg)
    places = [slice(*ends) for ends in zip(source.edges, source.edges[1:], strict=False)]
    blocks = tuple(client.map(source.read, places, pure=False))
    return WorkerBlocks(source.shape, source.dtype, source.edges, client, blocks, device)


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
class OnWorkers(InBlocks):
    """Data whose blocks are on workers, as a fit sees them."""

    source: WorkerBlocks
    facts: Facts
    weights: bool = False  # whether entries are missing, and the others have a weight of 1
    unit: float = 1.0
    share: np.ndarray | None = field(default=None, repr=False)  # by which samples are multiplied, (n,)

    distributed: ClassVar[bool] = True

    @property
    def shape(self) -> tuple[int, int]:
        """Number of samples and of features."""
        return self.source.shape

    @property
    def edges(self) -> tuple[int, ...]:
        """First row of every block, and the number of rows."""
        return self.source.edges

    @property
    def device(self) -> str | None:
        """Where torch computes; None: NumPy does."""
        return self.source.device

    @property
    def pattern(self) -> Array:
        """An array of the library and dtype of the factors here."""
        return np.empty(0, self.source.dtype)

    @property
    def stand_in(self) -> np.ndarray:
        """Products are taken elsewhere: nothing is large here."""
        return np.empty((1, 1), self.source.dtype)

    @cached_property
    def squared_norms(self) -> np.ndarray:
        """``‖x_i‖²`` of every sample, (n,)."""
        return like(self.facts.squares * (self.facts.size / self.unit) ** 2, self.pattern)

    @cached_property
    def blocks(self) -> list[Any]:
        """Futures of the blocks as data in memory in this unit."""
        source = self.source
        options = {"dtype": source.dtype, "device": source.device, "unit": self.unit, "weights": self.weights}
        shares = [None] * (len(self.edges) - 1) if self.share is None else self._cut(self.share)
        return source.client.map(block_of, source.blocks, shares, **options, pure=False)

    def in_unit(self, unit: float) -> OnWorkers:
        """The data as ``X / unit``."""
        return replace(self, unit=unit)

    def scaled_rows(self, share: np.ndarray) -> OnWorkers:
        """The data with every sample multiplied by its ``share`` (n,)."""
        return replace(self, share=share, facts=replace(self.facts, squares=self.facts.squares * share**2))

    def take_rows(self, index: np.ndarray) -> InMemory:
        """The samples ``index``, in order, in this process."""
        wanted = [
            (block, rows)
            for block, rows in zip(self.blocks, by_block(index, self.edges), strict=True)
            if len(rows)
        ]
        futures = self.source.client.map(_some_rows, *zip(*wanted, strict=True), pure=False)
        with naming_the_block(self.source, futures):
            return stacked(self.source.client.gather(futures))

    def uniform(self, k: int, rng: np.random.RandomState) -> WorkerRows:
        """Random numbers (n, k) from [0, 1), drawn where the blocks are: every block has its own seed."""
        heights = np.diff(self.edges).tolist()
        seeds = rng.randint(2**31 - 1, size=len(heights)).tolist()
        return WorkerRows(self, self.source.client.map(_uniform, heights, seeds, k=k, pure=False))

    def map_rows(
        self, function: OfRows, *rows: Rows, shared: Sequence[Any] = ()
    ) -> tuple[tuple[WorkerRows, ...], tuple[np.ndarray, ...]]:
        """One task per block; see `Data.map_rows`."""
        return Mapped(self, self._mapped("map_rows", self.blocks, function, rows, shared))  # type: ignore[return-value]

    def called(self, kind: str, function: Any, rows: Sequence[Rows], shared: Sequence[Any]) -> list[Any]:
        """Futures of a function of some rows that does not need the entries of X."""
        return self._mapped(kind, [None] * (len(self.edges) - 1), function, rows, shared)

    def combined(self, parts: Sequence[Any], combine: Combine) -> tuple[tuple[np.ndarray, ...], int]:
        """The sums of all parts, added up as a tree on the workers, and how many arrays a part has."""
        client, first = self.source.client, parts
        while True:
            groups = [[*parts[i : i + FAN]] for i in range(0, len(parts), FAN)]
            parts = [client.submit(_combined, group, combine, first is parts, pure=False) for group in groups]
            if len(parts) == 1:
                break
        with naming_the_block(self.source, first):
            count, *sums = parts[0].result()
        return tuple(sums), count

    def sent(self, message: Any) -> Any:
        """A future of ``message``: it leaves this process once, and workers hand it on."""
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message="Sending large graph")
            return self.source.client.submit(_same, message, pure=False)

    def rows_of(self, array: Any) -> WorkerRows:
        """An array of n rows, or a Dask array, on the workers."""
        client, heights = self.source.client, np.diff(self.edges).tolist()
        if library(array) == "dask":
            chunks = array.rechunk((tuple(heights), *array.shape[1:])).to_delayed().ravel()
            return WorkerRows(self, client.map(_as_part, client.compute([*chunks]), pure=False))
        return WorkerRows(self, client.map(_as_part, self._cut(to_numpy(array)), pure=False))

    def dask_array(self, futures: Sequence[Any], *shape: int) -> Any:
        """A Dask array of n rows from a future of every block."""
        import dask.array as da

        heights, dtype = np.diff(self.edges).tolist(), self.source.dtype
        parts = [
            da.from_delayed(future, (height, *shape), dtype=dtype)
            for future, height in zip(futures, heights, strict=True)
        ]
        return da.concatenate(parts)

    def _cut(self, array: np.ndarray) -> list[Any]:
        """Futures of the rows of every block."""
        return [self.sent(array[start:stop]) for start, stop in itertools.pairwise(self.edges)]

    def _mapped(
        self, kind: str, blocks: Sequence[Any], function: Any, rows: Sequence[Rows], shared: Sequence[Any]
    ) -> list[Any]:
        arguments = [self._by_block(F) for F in rows]
        of_blocks = [[*own] for own in zip(*arguments, strict=True)] if arguments else [[] for _ in blocks]
        message: Any = (function, tuple(shared))
        if sum(getattr(F, "nbytes", 0) for F in shared) > SMALL:
            message = self.sent(message)
        return self.source.client.map(_called, blocks, of_blocks, message=message, kind=kind, pure=False)

    def _by_block(self, F: Rows) -> list[Any]:
        """An argument of a function of some rows for every block, as `_resolved` takes it."""
        if isinstance(F, WorkerRows):
            return [["rows", part, F.place] for part in F.parts]
        if isinstance(F, PenaltyHalves):
            terms = terms_of(F.penalty, F.V)
            return [["halves", part, F.V.place, term] for part, term in zip(F.V.parts, terms, strict=True)]
        if isinstance(F, PerBlock):
            return [["value", value] for value in F.values]
        return self._by_block(self.rows_of(F))


class Mapped(Sequence[Any]):
    """What `OnWorkers.map_rows` gives: rows and sums; who takes only one of the rows waits for nothing."""

    def __init__(self, data: OnWorkers, parts: Sequence[Any]) -> None:
        self.data, self.parts = data, parts

    def __len__(self) -> int:
        return 2

    def __getitem__(self, which: Any) -> Any:
        return FirstRows(self) if which == 0 else self._combined[0]

    def __iter__(self) -> Iterator[Any]:
        sums, count = self._combined
        return iter((tuple(WorkerRows(self.data, self.parts, place) for place in range(count)), sums))

    @cached_property
    def _combined(self) -> tuple[tuple[np.ndarray, ...], int]:
        return self.data.combined(self.parts, operator.add)


@dataclass(frozen=True)
class FirstRows:
    """The rows of a `Mapped`, by their number."""

    mapped: Mapped

    def __getitem__(self, place: int) -> WorkerRows:
        return WorkerRows(self.mapped.data, self.mapped.parts, place)


@dataclass(frozen=True, eq=False)
class WorkerRows(DistributedRows):
    """An array with one row per sample on the workers: array number ``place`` of every block's part."""

    data: OnWorkers
    parts: Sequence[Any]  # futures of `Part`
    place: int = 0

    def each(self, function: Callable[..., Any], rows: Sequence[Rows], shared: Sequence[Any]) -> WorkerRows:
        """One task per block; see `lognmf.core.rows.each`."""
        return WorkerRows(self.data, self.data.called("each", function, rows, shared))

    def reduced(
        self, function: Callable[..., Any], rows: Sequence[Rows], shared: Sequence[Any], combine: Combine
    ) -> tuple[np.ndarray, ...]:
        """One task per block, and a tree of sums; see `lognmf.core.rows.reduced`."""
        return self.data.combined(self.data.called("reduced", function, rows, shared), combine)[0]

    def halves(self, penalty: Any) -> PenaltyHalves:
        """The half gradients of a penalty, which workers compute."""
        return PenaltyHalves(penalty, self)

    def penalty_value(self, penalty: Any) -> np.ndarray:
        """The value (B,) of a penalty."""
        terms = PerBlock(terms_of(penalty, self))
        return self.reduced(_penalty_value, (self, terms), (), operator.add)[0]

    def at(self, index: np.ndarray) -> np.ndarray:
        """The rows ``index``, which are in order, in this process."""
        of_blocks = zip(self.parts, by_block(np.asarray(index), self.data.edges), strict=True)
        parts, wanted = zip(*((part, rows) for part, rows in of_blocks if len(rows)), strict=True)
        client = self.data.source.client
        futures = client.map(_rows_at, parts, wanted, place=self.place, pure=False)
        return np.concatenate(client.gather(futures))

    def gathered(self, most: int | None = None) -> np.ndarray:
        """The rows, or evenly spaced ones, as one NumPy array in this process."""
        every = 1 if most is None else -(-self.data.shape[0] // most)
        futures = self._picked(slice(None, None, every))
        with naming_the_block(self.data.source, futures):
            return np.concatenate(self.data.source.client.gather(futures))

    def __getitem__(self, where: tuple[Any, ...]) -> Any:
        """Some columns of all rows, a Dask array."""
        futures = self._picked(where)
        with naming_the_block(self.data.source, futures):
            shape = self.data.source.client.submit(np.shape, futures[0], pure=False).result()
        return self.data.dask_array(futures, *shape[1:])

    def __mul__(self, scale: Any) -> WorkerRows:
        return self.each(operator.mul, (self,), (scale,))

    def __truediv__(self, scale: Any) -> WorkerRows:
        return self.each(operator.truediv, (self,), (scale,))

    def __pow__(self, power: float) -> WorkerRows:
        return self.each(operator.pow, (self,), (power,))

    def written(self, folder: Path) -> None:
        """Write the rows into files of a folder that every worker reaches."""
        client = self.data.source.client
        made = client.map(_written, self.parts, _files(folder, len(self.parts)), place=self.place, pure=False)
        with naming_the_block(self.data.source, made):
            client.gather(made)

    @classmethod
    def read(cls, data: OnWorkers, folder: Path) -> WorkerRows:
        """Rows that were written."""
        files = _files(folder, len(data.edges) - 1)
        return cls(data, data.source.client.map(_read, files, pure=False))

    def _picked(self, where: Any) -> list[Any]:
        client = self.data.source.client
        return client.map(_picked, self.parts, place=self.place, where=where, pure=False)


@dataclass(frozen=True, eq=False)
class PenaltyHalves:
    """The half gradients of a penalty on distributed codes."""

    penalty: Any
    V: WorkerRows


@dataclass(frozen=True, eq=False)
class PerBlock:
    """A value, or a future of one, for every block."""

    values: Sequence[Any]


def terms_of(penalty: Any, V: WorkerRows) -> list[Any]:
    """The penalty on the codes of every block; a graph brings the codes of neighbours in other blocks."""
    return penalty.terms(V) if hasattr(penalty, "terms") else [penalty] * len(V.parts)


def _files(folder: Path, count: int) -> list[Path]:
    return [folder / f"block-{number:06d}.npy" for number in range(count)]


# On a worker -----------------------------------------------------------------------------

Part = tuple[tuple[Array, ...], tuple[np.ndarray, ...]]
"""What a function made of a block: arrays with a row per sample in the library of the block, and sums."""


class WorkerBlock(InMemory):
    """A block on its worker; it says how large it is, and is sent without what was computed from it."""

    def __sizeof__(self) -> int:
        """Bytes; Dask decides by them what to move."""
        X, M = self.X, self.M
        stored = X.data.nbytes + X.indices.nbytes + X.indptr.nbytes if sp.issparse(X) else X.nbytes
        return int(stored if M is None else stored + M.nbytes)

    def __reduce__(self) -> Any:
        return WorkerBlock, (self.X, self.M, self.unit)


def block_of(
    X: Any,
    share: np.ndarray | None = None,
    *,
    dtype: Any,
    device: str | None = None,
    unit: float = 1.0,
    weights: bool = False,
) -> WorkerBlock:
    """Rows that were checked, as a block: of this type, on this device, with ``weights`` where asked for."""
    data = checked_rows(X, dtype, weights=weights)
    if share is not None:
        data = data.scaled_rows(share)
    X, M = (F if F is None or device is None else to_device(F, device, str(dtype)) for F in (data.X, data.M))
    return WorkerBlock(X, M, unit)


def checked_rows(X: Any, dtype: Any, *, weights: bool) -> InMemory:
    """Rows that were checked before as data; with ``weights``, NaN marks a missing entry."""
    X = sp.csr_array(X) if sp.issparse(X) else np.asarray(unmasked(X))
    X = X if X.dtype == dtype else X.astype(dtype)
    if sp.issparse(X) and not X.has_canonical_format:
        X = X.copy()
        X.sum_duplicates()
    if not weights:
        return InMemory(X)
    missing = np.isnan(X)
    return InMemory(np.where(missing, 0, X) if missing.any() else X, (~missing).astype(dtype))


def _called(block: InMemory | None, arguments: list[Any], message: tuple[Any, Any], kind: str) -> Part:
    """A function of some rows."""
    function, shared = message
    rows = [_resolved(argument) for argument in arguments]
    pattern = block.pattern if block is not None else next(F for F in rows if hasattr(F, "dtype"))
    shared = placed(shared, pattern)
    with np.errstate(over="ignore", invalid="ignore"):
        if block is not None:
            arrays, sums = function(block, *rows, *shared)
        else:
            result = function(*rows, *shared)
            arrays, sums = ((result,), ()) if kind == "each" else ((), result)
    return arrays, tuple(map(to_numpy, sums))


def _resolved(argument: list[Any]) -> Any:
    kind, part, *more = argument
    if kind == "value":
        return part
    F = part[0][more[0]]
    return F if kind == "rows" else placed(more[1], F).halves(F)


def placed(value: Any, pattern: Array) -> Any:
    """Real arrays, also those in tuples and terms, in the library of ``pattern``."""
    if isinstance(pattern, np.ndarray):
        return value
    if isinstance(value, np.ndarray) and value.dtype.kind == "f":
        return like(value, pattern)
    if isinstance(value, tuple):
        return tuple(placed(item, pattern) for item in value)
    if is_dataclass(value) and not isinstance(value, type) and type(value).__dataclass_params__.frozen:  # type: ignore[attr-defined]
        changed = {one.name: placed(getattr(value, one.name), pattern) for one in fields(value)}
        return replace(value, **changed)
    return value


def _combined(parts: Sequence[Any], combine: Combine, of_parts: bool) -> tuple[Any, ...]:
    """The number of arrays of a part, and the sums of several parts, or of several such results."""
    results = [(len(arrays), *sums) for arrays, sums in parts] if of_parts else parts
    count, *total = results[0]
    for _, *sums in results[1:]:
        total = [combine(one, other) for one, other in zip(total, sums, strict=True)]
    return (count, *total)


def _penalty_value(V: Array, penalty: Any) -> tuple[Array]:
    return (placed(penalty, V).value(V),)


def _same(message: Any) -> Any:
    """A message, once it has arrived."""
    return message


def _as_part(array: Any) -> Part:
    return (np.asarray(array),), ()


def _uniform(height: int, seed: int, k: int) -> Part:
    return (np.random.RandomState(seed).uniform(size=(height, k)),), ()


def _some_rows(block: InMemory, index: np.ndarray) -> InMemory:
    """Some rows of a block, in NumPy."""
    X, M, unit = block.X, block.M, block.unit
    if not sp.issparse(X):
        X, M = to_numpy(X), None if M is None else to_numpy(M)
    return InMemory(X, M, unit).take_rows(index)


def _picked(part: Part, place: int, where: Any) -> np.ndarray:
    return np.ascontiguousarray(to_numpy(part[0][place])[where])


def _rows_at(part: Part, index: np.ndarray, place: int) -> np.ndarray:
    return to_numpy(part[0][place])[index]


def _written(part: Part, path: Path, place: int) -> None:
    """Rows in a file, which appears when it is complete."""
    path.parent.mkdir(parents=True, exist_ok=True)
    fresh = path.with_name(f".{os.getpid()}-{path.name}")
    np.save(fresh, to_numpy(part[0][place]))
    fresh.replace(path)


def _read(path: Path) -> Part:
    return (np.load(path, allow_pickle=False),), ()
