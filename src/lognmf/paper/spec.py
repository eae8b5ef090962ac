"""What a study computes: cells, the pieces they are cut into, and the cells of each protocol.

A *cell* is one model on one data set, with every setting of a grid from every seed. A *piece* is a
part of a cell that is computed and stored as a whole. The paper's protocol chooses settings by the
true labels; the label-free protocol chooses them without, and runs the choice from other seeds.
"""

from __future__ import annotations

import hashlib
import itertools
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any

from lognmf import select
from lognmf.paper.methods import PAPER_OPTIONS, RIVALS, WEIGHTS, Contestant, all_parameters, weights

Named = tuple[tuple[str, Any], ...]
"""Values by name, as a tuple of pairs: frozen, and in a fixed order."""

Rows = Sequence[Mapping[str, Any]]


@dataclass(frozen=True)
class Data:
    """A data set by the name that `lognmf.datasets.load` knows, or only its first samples."""

    name: str
    head: int | None = None


@dataclass(frozen=True)
class Noise:
    """What is done to the samples of unit norm, before the graph is built."""

    kind: str = "none"  # "removal" sets entries to zero, "gaussian" adds noise and shifts to nonnegative
    level: float = 0.0  # share of the entries that are drawn, or standard deviation
    replacement: bool = False  # drawn with replacement, fewer entries than ``level`` are removed
    seed: int = 0


CLEAN = Noise()


@dataclass(frozen=True)
class Cell:
    """One model on one data set: every setting of a grid from every seed.

    Equal cells have the same key on every machine. Where and with what precision a cell was
    computed is stored with its rows, not in its key.
    """

    data: Data
    noise: Noise
    model: str  # a name in METHODS or RIVALS
    options: Named = ()  # fixed parameters, by name; mask=True tells WNMF which entries were removed
    grid: Named = ()  # values of the parameters that vary, by name
    seeds: tuple[int, ...] = (0,)
    work: str = "grid"  # "grid", "sparseness" (a grid of max_iter that is no score) or "curve" (one fit)

    @cached_property
    def key(self) -> str:
        """A hash of all of it, with the model's defaults: rows of other defaults are other rows."""
        parameters = all_parameters(self.model, dict(self.options))
        fixed = sorted((name, value) for name, value in parameters.items() if name not in dict(self.grid))
        text = json.dumps({**self.to_dict(), "options": fixed}, sort_keys=True, allow_nan=False)
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
        """A fixed parameter, as given."""
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
    """A cell from mappings, sorted so that equal ones are equal."""
    fixed = tuple(sorted((options or {}).items()))
    varied = tuple(sorted((name, tuple(values)) for name, values in (grid or {}).items()))
    return Cell(data, noise, model, fixed, varied, tuple(seeds), work)


@dataclass(frozen=True)
class Piece:
    """A part of a cell that is computed, and stored, as a whole."""

    cell: Cell
    number: int  # among the pieces of the cell
    settings: range  # indices of its settings in the cell's grid
    seeds: tuple[int, ...]

    @property
    def fits(self) -> int:
        """How many fits it has."""
        return len(self.settings) * len(self.seeds)


def pieces(cell: Cell, size: int) -> Iterator[Piece]:
    """The pieces of a cell, of at most ``size`` settings with all seeds, or of some seeds of one setting.

    They depend on the cell and the size alone, because rounding makes the last digits of a result
    depend on the other fits of its batch.
    """
    count = len(cell.settings())
    by_setting = max(1, size // len(cell.seeds))
    by_seed = min(len(cell.seeds), max(1, size))
    parts = itertools.product(range(0, count, by_setting), range(0, len(cell.seeds), by_seed))
    for number, (first, start) in enumerate(parts):
        settings = range(first, min(first + by_setting, count))
        yield Piece(cell, number, settings, cell.seeds[start : start + by_seed])


# Protocols ---------------------------------------------------------------------------------

VALUES = (0.001, 0.01, 0.1, 1.0, 10.0, 100.0, 1000.0)
"""What the paper tries for every weight."""

PENALTIES = {"LS-NMF": "log", "ℓ1": "l1"}
"""The two penalties that the paper compares without a graph (``eq_obj_log2``)."""


@dataclass(frozen=True)
class Preset:
    """How much is tried, and for how many iterations."""

    values: Mapping[str, tuple[float, ...]]  # tried for each weight; the label-free protocol varies lam alone
    max_iter: int
    seed: int = 0  # of the paper's protocol and of every choice
    seeds: tuple[int, ...] = (1, 2, 3, 4, 5)  # of the label-free protocol's results

    @property
    def loop(self) -> dict[str, Any]:
        """Parameters of all models: a fixed number of iterations, the objective evaluated rarely."""
        return {"max_iter": self.max_iter, "tol": 0.0, "eval_every": 50}


PRESETS = {
    "paper": Preset(dict.fromkeys(WEIGHTS, VALUES), 500),
    "quick": Preset(
        {"alpha": (0.01, 1.0), "beta": (0.001, 0.01), "gamma": (1.0, 1000.0), "lam": (0.01, 0.1, 1.0, 100.0)},
        250,
    ),
}
"""Presets by name."""


def paper_cell(data: Data, noise: Noise, model: str, preset: Preset) -> Cell:
    """The paper's protocol: the whole grid of a method from one seed."""
    options = {**preset.loop, **PAPER_OPTIONS.get(model, {})}
    grid = {weight: preset.values[weight] for weight in weights(model)}
    return cell(data, noise, model, options=options, grid=grid, seeds=(preset.seed,))


def penalty_cell(data: Data, penalty: str, preset: Preset) -> Cell:
    """The grid of alpha and beta for one penalty, without a graph."""
    options = {**preset.loop, "init": "random", "lam": 0.0, "penalty": PENALTIES[penalty]}
    grid = {weight: preset.values[weight] for weight in ("alpha", "beta")}
    return cell(data, CLEAN, "LS-NMF", options=options, grid=grid, seeds=(preset.seed,))


def best(rows: Rows) -> Mapping[str, Any] | None:
    """The row of highest accuracy, then of highest NMI, then the first: chosen by the true labels."""
    return max(rows, key=lambda row: (row["accuracy"], row["nmi"]), default=None)


def best_of_each(rows: Rows, metric: str) -> float | None:
    """The highest value of a metric, from whatever setting."""
    return max((row[metric] for row in rows), default=None)


def followed_cell(source: Cell, rows: Rows, every: int, *, sparseness: bool = False) -> Cell | None:
    """The best setting of a grid, fitted once more and followed; None while rows are missing.

    The objective is evaluated every few iterations. With ``sparseness`` the fit is a grid of as many
    numbers of iterations instead, whose rows have the sparseness of the factors.
    """
    top = best(rows)
    if top is None or len(rows) < len(source.settings()):
        return None
    options = {**dict(source.options), "eval_every": every}
    grid: dict[str, Sequence[Any]] = {name: (top[name],) for name, _ in source.grid}
    if sparseness:
        last = options.pop("max_iter")
        grid["max_iter"] = (*range(every, last, every), last)
    work = "sparseness" if sparseness else "curve"
    return cell(
        source.data, source.noise, source.model, options=options, grid=grid, seeds=source.seeds, work=work
    )


def choice_cell(data: Data, noise: Noise, contestant: Contestant, preset: Preset) -> Cell | None:
    """The grid that the label-free protocol chooses from, or None where there is no weight to choose."""
    if not contestant.chosen:
        return None
    same_fits = weights(contestant.model) == (contestant.chosen,) and not contestant.options
    if contestant.chosen == "all" or same_fits:
        return paper_cell(data, noise, contestant.model, preset)
    options = {**preset.loop, **contestant.options}
    grid = {contestant.chosen: preset.values[contestant.chosen]}
    return cell(data, noise, contestant.model, options=options, grid=grid, seeds=(preset.seed,))


def final_cell(data: Data, noise: Noise, contestant: Contestant, preset: Preset, rows: Rows) -> Cell | None:
    """The setting that was chosen without labels, from all seeds; None while rows are missing."""
    if contestant.model in RIVALS:
        return cell(data, noise, contestant.model, seeds=preset.seeds)
    setting: Mapping[str, Any] = {}
    source = choice_cell(data, noise, contestant, preset)
    if source is not None:
        if len(rows) < len(source.settings()):
            return None
        setting = select(rows, contestant.by).setting
    options = {**preset.loop, **contestant.options}
    grid = {name: (value,) for name, value in setting.items()}
    return cell(data, noise, contestant.model, options=options, grid=grid, seeds=preset.seeds)
