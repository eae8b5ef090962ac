"""Data in several blocks of rows, each read when its entries are needed and forgotten after that."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from lognmf.core.arrays import Array, Matrix, like
from lognmf.core.data import InMemory


@dataclass(frozen=True, eq=False)
class Facts:
    """What a first pass over the blocks has found."""

    smallest: float
    largest: float
    squares: np.ndarray  # squared norms (n,) of the samples of ``X / size``, weighted as the entries are
    size: float
    known: float  # mean weight of an entry
    entries: int  # stored entries of the largest block


@dataclass(frozen=True, eq=False)
class Blocks:
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

    @property
    def shape(self) -> tuple[int, int]:
        """Number of samples and of features."""
        return self.edges[-1], self.width

    @property
    def places(self) -> list[slice]:
        """The rows of every block."""
        return [slice(*ends) for ends in itertools.pairwise(self.edges)]

    def blocks(self) -> Iterator[tuple[slice, InMemory]]:
        """Blocks of rows, each with its place among all rows."""
        for rows in self.places:
            yield rows, self._block(rows)

    def _block(self, rows: slice) -> Any:
        norms = None if self.weights else self.squared_norms[rows]
        return Block(rows, self, norms)

    def loaded(self, rows: slice) -> InMemory:
        """Some rows in memory; those of a block where no entry is missing have weights too."""
        data = self.read(rows)
        M = np.ones_like(data.X) if self.weights and data.M is None else data.M
        return InMemory(data.X, M, self.unit)

    @cached_property
    def stand_in(self) -> np.ndarray:
        """An array with as many entries as the largest block, which takes no memory."""
        rows = max(stop - start for start, stop in itertools.pairwise(self.edges))
        return np.broadcast_to(np.zeros((), self.pattern.dtype), (rows, -(-self.facts.entries // rows)))

    @cached_property
    def squared_norms(self) -> Array:
        """``‖x_i‖²`` of every sample, (n,), weighted as the entries are."""
        return like(self.facts.squares * (self.facts.size / self.unit) ** 2, self.pattern)

    def times(self, U: Array) -> Array:
        """``X @ U_b`` for every setting, in one pass: (p, B, k) → (n, B, k)."""
        out = np.empty((self.shape[0], *U.shape[1:]), dtype=self.pattern.dtype)
        for rows, block in self.blocks():
            out[rows] = block.times(U)
        return out

    def t_times(self, F: Array) -> Array:
        """``Xᵀ @ F_b`` for every setting, in one pass: (n, B, k) → (p, B, k)."""
        return added(block.t_times(F[rows]) for rows, block in self.blocks())

    def dense_rows(self, some: slice) -> Array:
        """A few rows as a dense array; only these are read where the source can do it."""
        return self.loaded(some).dense_rows(slice(None))


@dataclass(frozen=True, eq=False)
class Block:
    """Some rows of `Blocks`: what `InMemory` offers, but X is read on its first use.

    Values and residuals mostly need the norms of the samples only, and those are known.
    """

    place: slice
    whole: Blocks
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


@dataclass(frozen=True, eq=False)
class AsMatrix:
    """Blocks as a matrix, as starts use it: ``X @ F`` and ``Xᵀ X``."""

    data: Blocks

    @property
    def shape(self) -> tuple[int, int]:
        """Number of samples and of features."""
        return self.data.shape

    @property
    def dtype(self) -> Any:
        """Type of the numbers."""
        return self.data.pattern.dtype

    def max(self) -> float:
        """The largest entry."""
        return self.data.facts.largest

    def __matmul__(self, F: np.ndarray) -> np.ndarray:
        return self.data.times(F[:, None, :])[:, 0, :]

    def gram(self, largest: float) -> np.ndarray:
        """``Xᵀ X`` (p, p) in one pass, divided by the square of the largest entry where that is tiny."""
        tiny = largest < np.finfo(self.dtype).tiny ** 0.25
        matrices = (block.X / largest if tiny else block.X for _, block in self.data.blocks())
        return added(_dense(X.T @ X) for X in matrices)

    def gram_times(self, F: np.ndarray) -> np.ndarray:
        """``Xᵀ X F`` (p, k) in one pass."""
        wide = F.reshape(F.shape[0], 1, -1)
        parts = added(block.t_times(block.times(wide)) for _, block in self.data.blocks())
        return parts.reshape(F.shape)

    def gram_fits(self) -> bool:
        """Whether ``Xᵀ X`` is no larger than a block."""
        return self.data.width**2 <= max(self.data.facts.entries, 1 << 20)


def added(parts: Iterator[Array]) -> Array:
    """The sum of arrays that come one after another."""
    first = next(parts)
    for part in parts:
        first += part
    return first


def _dense(M: Matrix) -> np.ndarray:
    return M if isinstance(M, np.ndarray) else M.toarray()
