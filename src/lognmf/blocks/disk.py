"""Data in several blocks of rows, each read when its entries are needed and forgotten after that."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, ClassVar

import array_api_compat
import numpy as np
import scipy.sparse as sp

from lognmf.blocks.rows import by_block
from lognmf.core.arrays import Array, like, namespace
from lognmf.core.data import Facts, InBlocks, InMemory, OfRows
from lognmf.core.terms.protocol import of_rows


@dataclass(frozen=True, eq=False)
class OnDisk(InBlocks):
    """Samples in blocks of rows; row ``edges[i]`` is the first of block i, the last edge is n.

    ``read`` gives rows as data in memory. Between passes only ``facts`` are kept, n numbers.
    """

    read: Callable[[slice], InMemory]
    edges: tuple[int, ...]
    width: int
    pattern: Array
    facts: Facts
    weights: bool = False  # whether entries have weights
    unit: float = 1.0
    share: np.ndarray | None = field(default=None, repr=False)  # by which samples are multiplied, (n,)

    distributed: ClassVar[bool] = False
    device: ClassVar[None] = None

    @property
    def shape(self) -> tuple[int, int]:
        """Number of samples and of features."""
        return self.edges[-1], self.width

    @property
    def places(self) -> list[slice]:
        """The rows of every block."""
        return [slice(*ends) for ends in itertools.pairwise(self.edges)]

    def blocks(self) -> Iterator[tuple[slice, Any]]:
        """Blocks of rows, each with its place among all rows."""
        for rows in self.places:
            yield rows, Block(rows, self, None if self.weights else self.squared_norms[rows])

    def map_rows(
        self, function: OfRows, *rows: Any, shared: Sequence[Any] = ()
    ) -> tuple[tuple[Array, ...], tuple[Array, ...]]:
        """One call per block; see `Data.map_rows`."""
        whole: list[Array] = []
        sums: tuple[Array, ...] | None = None
        for place, block in self.blocks():
            parts = [of_rows(F, place) if callable(F) else F[place, ...] for F in rows]
            arrays, added = function(block, *parts, *shared)
            whole = whole or [_room(F, self.shape[0]) if F.shape[0] else F for F in arrays]
            for F, part in zip(whole, arrays, strict=True):
                if part.shape[0]:
                    F[place, ...] = part
            sums = added if sums is None else tuple(a + b for a, b in zip(sums, added, strict=True))
        return tuple(whole), sums or ()

    def loaded(self, rows: slice) -> InMemory:
        """Some rows in memory; those of a block where no entry is missing have weights too."""
        data = self.read(rows)
        M = np.ones_like(data.X) if self.weights and data.M is None else data.M
        data = InMemory(data.X, M, self.unit)
        return data if self.share is None else data.scaled_rows(self.share[rows])

    def in_unit(self, unit: float) -> OnDisk:
        """The data as ``X / unit``."""
        return replace(self, unit=unit)

    def scaled_rows(self, share: np.ndarray) -> OnDisk:
        """The data with every sample multiplied by its ``share`` (n,)."""
        return replace(self, share=share, facts=replace(self.facts, squares=self.facts.squares * share**2))

    def take_rows(self, index: np.ndarray) -> InMemory:
        """The samples ``index``, in order; of every block only the rows between them are read."""
        parts = []
        for rows, of_block in zip(self.places, by_block(index, self.edges), strict=True):
            if len(of_block):
                first, last = int(of_block[0]), int(of_block[-1])
                between = slice(rows.start + first, rows.start + last + 1)
                parts.append(self.loaded(between).take_rows(of_block - first))
        return stacked(parts)

    def uniform(self, k: int, rng: np.random.RandomState) -> np.ndarray:
        """Random numbers (n, k) from [0, 1)."""
        return rng.uniform(size=(self.shape[0], k))

    @cached_property
    def stand_in(self) -> np.ndarray:
        """An array with as many entries as the largest block, which takes no memory."""
        rows = max(stop - start for start, stop in itertools.pairwise(self.edges))
        return np.broadcast_to(np.zeros((), self.pattern.dtype), (rows, -(-self.facts.entries // rows)))

    @cached_property
    def squared_norms(self) -> Array:
        """``‖x_i‖²`` of every sample, (n,), weighted as the entries are."""
        return like(self.facts.squares * (self.facts.size / self.unit) ** 2, self.pattern)


@dataclass(frozen=True, eq=False)
class Block:
    """Some rows of `OnDisk`: what `InMemory` offers, but X is read on its first use.

    Values and residuals mostly need the norms of the samples only, and those are known.
    """

    place: slice
    whole: OnDisk
    norms: Array | None

    @property
    def shape(self) -> tuple[int, int]:
        """Number of samples and of features."""
        return self.place.stop - self.place.start, self.whole.width

    @property
    def pattern(self) -> Array:
        """An array in whose library, dtype and device the factors live."""
        return self.whole.pattern

    @cached_property
    def loaded(self) -> InMemory:
        """The rows in memory."""
        return self.whole.loaded(self.place)

    @cached_property
    def squared_norms(self) -> Array:
        """``‖x_i‖²`` of every sample of the block."""
        return self.loaded.squared_norms if self.norms is None else self.norms

    def __getattr__(self, name: str) -> Any:
        """All else is that of the rows in memory."""
        if name.startswith("__"):
            raise AttributeError(name)
        return getattr(self.loaded, name)


def stacked(parts: Sequence[InMemory]) -> InMemory:
    """Several blocks as one."""

    def joined(matrices: list[Any]) -> Any:
        if sp.issparse(matrices[0]):
            return sp.vstack(matrices, format="csr")
        return namespace(matrices[0]).concat(matrices)

    M = None if parts[0].M is None else joined([part.M for part in parts])
    return InMemory(joined([part.X for part in parts]), M, parts[0].unit)


def _room(F: Array, n: int) -> Array:
    """An array like ``F`` with ``n`` rows, to be filled."""
    return namespace(F).empty((n, *F.shape[1:]), dtype=F.dtype, device=array_api_compat.device(F))
