"""What a study is made of: cells of one data set, noise, model, grid and seeds, all frozen."""

from __future__ import annotations

import hashlib
import itertools
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any

__all__ = ["Cell", "Data", "Noise", "Piece", "cell", "pieces"]

Named = tuple[tuple[str, Any], ...]
"""Values by name, as a tuple of pairs: frozen, and in a fixed order."""


@dataclass(frozen=True)
class Data:
    """A data set, its samples scaled to unit norm.

    Parameters
    ----------
    name : str
        As `lognmf.datasets.load` knows it.
    head : int, optional
        Only its first samples.
    """

    name: str
    head: int | None = None


@dataclass(frozen=True)
class Noise:
    """What is done to the samples of unit norm, before the graph is built.

    Parameters
    ----------
    kind : {"none", "removal", "gaussian"}, default="none"
        Entries set to zero, or noise added and all shifted to be nonnegative.
    level : float, default=0
        Share of the entries that are drawn, or standard deviation.
    replacement : bool, default=False
        Whether entries are drawn with replacement, so that fewer than ``level`` are hit.
    seed : int, default=0
        Of the draw.
    """

    kind: str = "none"
    level: float = 0.0
    replacement: bool = False
    seed: int = 0


CLEAN = Noise()


@dataclass(frozen=True)
class Cell:
    """One model on one data set: every setting of a grid from every seed.

    Two cells that are equal have the same key, on every machine; where and with what precision a
    cell was computed is no part of it, but kept with its rows.

    Parameters
    ----------
    data : Data
        The samples.
    noise : Noise
        What is done to them.
    model : str
        A name in `MODELS`, or a rival: "k-means", "spectral clustering".
    options : tuple of (str, value)
        Parameters of the model that stay, sorted by name. ``mask`` = True tells WNMF which
        entries were removed.
    grid : tuple of (str, tuple)
        Values of the parameters that vary, sorted by name.
    seeds : tuple of int
        Starts.
    work : {"grid", "curve"}, default="grid"
        Scores of every setting, or the course of a fit.
    """

    data: Data
    noise: Noise
    model: str
    options: Named = ()
    grid: Named = ()
    seeds: tuple[int, ...] = (0,)
    work: str = "grid"

    @cached_property
    def key(self) -> str:
        """A hash of all of it."""
        text = json.dumps(self.to_dict(), sort_keys=True, allow_nan=False)
        return hashlib.sha256(text.encode()).hexdigest()[:24]

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON values."""
        return json.loads(json.dumps(asdict(self)))

    def settings(self) -> list[dict[str, Any]]:
        """Every setting of the grid; one, without parameters, if there is no grid."""
        names = [name for name, _ in self.grid]
        return [
            dict(zip(names, values, strict=True)) for values in itertools.product(*(v for _, v in self.grid))
        ]

    def option(self, name: str, otherwise: Any = None) -> Any:
        """A parameter that stays."""
        return dict(self.options).get(name, otherwise)


def cell(
    data: Data,
    noise: Noise,
    model: str,
    *,
    options: Mapping[str, Any] | None = None,
    grid: Mapping[str, Sequence[Any]] | None = None,
    seeds: Sequence[int] = (0,),
    work: str = "grid",
) -> Cell:
    """A cell from mappings, in the order that makes equal ones equal."""
    return Cell(
        data,
        noise,
        model,
        tuple(sorted((options or {}).items())),
        tuple(sorted((name, tuple(values)) for name, values in (grid or {}).items())),
        tuple(seeds),
        work,
    )


@dataclass(frozen=True)
class Piece:
    """A part of a cell that is computed, and kept, as a whole.

    Parameters
    ----------
    cell : Cell
        What it belongs to.
    number : int
        Its place among the pieces of the cell.
    settings : range
        Places of its settings in the cell's grid.
    seeds : tuple of int
        Its seeds.
    """

    cell: Cell
    number: int
    settings: range
    seeds: tuple[int, ...]

    @property
    def fits(self) -> int:
        """How many fits it has."""
        return len(self.settings) * len(self.seeds)


def pieces(cell: Cell, size: int) -> Iterator[Piece]:
    """The pieces of a cell, of at most ``size`` settings with all seeds, or of some seeds of one setting.

    They depend on nothing but the cell and the size, since rounding makes the results of a
    batch depend, in the last digits, on its company.
    """
    count = len(cell.settings())
    by_setting = max(1, size // len(cell.seeds))
    by_seed = min(len(cell.seeds), max(1, size))
    parts = itertools.product(range(0, count, by_setting), range(0, len(cell.seeds), by_seed))
    for number, (first, start) in enumerate(parts):
        settings = range(first, min(first + by_setting, count))
        yield Piece(cell, number, settings, cell.seeds[start : start + by_seed])
