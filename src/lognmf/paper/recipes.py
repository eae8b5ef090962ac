"""What tables and figures of the paper are made of: which cells each needs, first and then."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from lognmf.models import MODELS
from lognmf.paper.protocol import (
    CONTESTANTS,
    Contestant,
    Preset,
    best,
    choice_cell,
    final_cell,
    paper_cell,
)
from lognmf.paper.spec import CLEAN, Cell, Data, Noise, cell
from lognmf.paper.store import StudyStore

__all__ = [
    "PENALTIES",
    "Entry",
    "PaperFigure",
    "PaperTable",
    "Scope",
    "course_of",
    "honest_cell",
    "penalty_cell",
]


@dataclass(frozen=True)
class Scope:
    """What of the paper is wanted.

    Parameters
    ----------
    preset : Preset
        How much is tried.
    data : mapping of str to Data
        The data sets by the paper's names; default all.
    """

    preset: Preset
    data: Mapping[str, Data]

    def has(self, *names: str) -> list[str]:
        """Those of the data sets that are wanted."""
        return [name for name in names if name in self.data]


# Tables ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Entry:
    """A row of a table: a data set with its noise.

    Parameters
    ----------
    label : str
        What stands before the row.
    dataset, level : str
        The paper's name of the data set, and of the noise.
    noise : Noise
        The noise.
    """

    label: str
    dataset: str
    level: str
    noise: Noise = CLEAN

    @property
    def other_draw(self) -> Noise | None:
        """The removal that removes as much as it says, where the paper's removes less."""
        return replace(self.noise, replacement=False) if self.noise.replacement else None


@dataclass(frozen=True)
class PaperTable:
    """A table of the paper.

    Parameters
    ----------
    name, label : str
        What the command line and the paper call it.
    title : str
        Its heading.
    entries : tuple of Entry
        Its rows.
    corner : str
        What the rows are.
    """

    name: str
    label: str
    title: str
    entries: tuple[Entry, ...]
    corner: str

    def inside(self, scope: Scope) -> list[Entry]:
        """The rows that are wanted."""
        return [entry for entry in self.entries if entry.dataset in scope.data]

    def of_the_paper(self, scope: Scope) -> Iterator[Cell]:
        """The paper's protocol."""
        for entry in self.inside(scope):
            yield from _of_the_paper(entry, scope)

    def first(self, scope: Scope) -> Iterator[Cell]:
        """The paper's protocol, and what the honest one chooses from."""
        for entry in self.inside(scope):
            yield from _of_the_paper(entry, scope)
            data = scope.data[entry.dataset]
            for contestant in contestants(entry):
                source = choice_cell(data, entry.noise, contestant, scope.preset)
                if source is not None:
                    yield source

    def then(self, scope: Scope, store: StudyStore) -> Iterator[Cell]:
        """What the honest protocol chose, from its seeds."""
        for entry in self.inside(scope):
            for contestant in contestants(entry):
                chosen = honest_cell(entry, contestant, scope, store)
                if chosen is not None:
                    yield chosen


def _of_the_paper(entry: Entry, scope: Scope) -> Iterator[Cell]:
    for noise in filter(None, (entry.noise, entry.other_draw)):
        for model in MODELS:
            yield paper_cell(scope.data[entry.dataset], noise, model, scope.preset)


def contestants(entry: Entry) -> list[Contestant]:
    """The methods that can be run on an entry."""
    return [contestant for contestant in CONTESTANTS.values() if contestant.suits(entry.noise)]


def honest_cell(entry: Entry, contestant: Contestant, scope: Scope, store: StudyStore) -> Cell | None:
    """The cell of a contestant's chosen setting, once it can be chosen."""
    data = scope.data[entry.dataset]
    source = choice_cell(data, entry.noise, contestant, scope.preset)
    rows = [] if source is None else store.rows(source)
    return final_cell(data, entry.noise, contestant, scope.preset, rows)


# Figures -----------------------------------------------------------------------------------


@dataclass(frozen=True)
class PaperFigure:
    """A figure of the paper.

    Parameters
    ----------
    name, label : str
        What the command line and the paper call it.
    title, caption : str
        Its heading, and what it shows.
    datasets : tuple of str
        What it shows it on.
    courses : tuple of (str, tuple of str)
        Data sets whose fits are followed, each with the models; ``datasets`` alone where only
        grids or pictures are shown.
    grids : tuple of str
        Models whose grids it shows or needs for the best setting.
    every : int, default=1
        Iterations between looks at the objective; 0 looks at the end only, for clean timings.
    penalties : bool, default=False
        Whether it compares the two penalties of LS-NMF without a graph.
    """

    name: str
    label: str
    title: str
    caption: str
    datasets: tuple[str, ...]
    courses: tuple[tuple[str, tuple[str, ...]], ...] = ()
    every: int = 1
    grids: tuple[str, ...] = ()
    penalties: bool = False

    def first(self, scope: Scope) -> Iterator[Cell]:
        """The grids that it shows, or whose best settings are followed."""
        for name in scope.has(*self.datasets):
            for model in dict.fromkeys((*self.grids, *dict(self.courses).get(name, ()))):
                yield paper_cell(scope.data[name], CLEAN, model, scope.preset)
            if self.penalties:
                for penalty in PENALTIES:
                    yield penalty_cell(scope.data[name], penalty, scope.preset)

    def then(self, scope: Scope, store: StudyStore) -> Iterator[Cell]:
        """The fits that are followed."""
        for name, models in self.courses:
            for model in models if name in scope.data else ():
                if (found := self.course(name, model, scope, store)) is not None:
                    yield found
        if self.penalties:
            for name in scope.has(*self.datasets):
                for penalty in PENALTIES:
                    source = penalty_cell(scope.data[name], penalty, scope.preset)
                    if (found := course_of(source, store, self.every)) is not None:
                        yield found

    def course(self, name: str, model: str, scope: Scope, store: StudyStore) -> Cell | None:
        """The best setting of a model on a data set, followed; None while the grid is missing."""
        return course_of(paper_cell(scope.data[name], CLEAN, model, scope.preset), store, self.every)


PENALTIES = {"LS-NMF": "log", "ℓ1": "l1"}
"""The two ways to sparseness, without a graph (``eq_obj_log2``)."""


def penalty_cell(data: Data, penalty: str, preset: Preset) -> Cell:
    """The grid of alpha and beta for one penalty, without a graph."""
    options = {**preset.loop, "init": "random", "lam": 0.0, "penalty": PENALTIES[penalty]}
    grid = {weight: preset.values[weight] for weight in ("alpha", "beta")}
    return cell(data, CLEAN, "LS-NMF", options=options, grid=grid, seeds=(preset.seed,))


def course_of(source: Cell, store: StudyStore, every: int) -> Cell | None:
    """The best setting of a grid, fitted once more and followed."""
    rows = store.rows(source)
    found = best(rows) if len(rows) == len(source.settings()) * len(source.seeds) else None
    if found is None:
        return None
    options = dict(source.options)
    options["eval_every"] = every or options["max_iter"]
    setting = {name: (found[name],) for name, _ in source.grid}
    return cell(
        source.data,
        source.noise,
        source.model,
        options=options,
        grid=setting,
        seeds=source.seeds,
        work="curve",
    )
