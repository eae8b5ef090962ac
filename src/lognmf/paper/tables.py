"""Every table and figure of the paper as a value: its rows or panels, and the cells that they need.

Each has two stages of cells: ``first`` the grids, ``then`` the settings chosen from their rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from lognmf.datasets import PAPER
from lognmf.paper.methods import CONTESTANTS, METHODS, OURS, Contestant
from lognmf.paper.spec import (
    CLEAN,
    PENALTIES,
    Cell,
    Data,
    Noise,
    Preset,
    choice_cell,
    course_cell,
    final_cell,
    paper_cell,
    penalty_cell,
)
from lognmf.paper.store import StudyStore

__all__ = ["DATASETS", "FIGURES", "TABLES", "Entry", "PaperFigure", "PaperTable", "Scope", "targets"]


@dataclass(frozen=True)
class Scope:
    """How much of the paper is wanted: a preset, and data sets by the paper's names."""

    preset: Preset
    data: Mapping[str, Data]

    def has(self, *names: str) -> list[str]:
        """Those of the data sets that are wanted."""
        return [name for name in names if name in self.data]


# Tables ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Entry:
    """A row of a table: a data set with its noise."""

    label: str
    dataset: str  # the paper's name
    level: str  # the paper's name of the noise
    noise: Noise = CLEAN

    @property
    def noises(self) -> tuple[Noise, ...]:
        """The noise, and for a removal with replacement the one that removes its full share."""
        full = replace(self.noise, replacement=False)
        return (self.noise,) if full == self.noise else (self.noise, full)

    @property
    def contestants(self) -> dict[str, Contestant]:
        """The methods that the label-free protocol can run on it."""
        return {name: method for name, method in CONTESTANTS.items() if method.suits(self.noise)}


@dataclass(frozen=True)
class PaperTable:
    """A table of the paper."""

    name: str  # on the command line
    label: str  # in the paper
    title: str
    entries: tuple[Entry, ...]
    corner: str  # what the rows are

    def inside(self, scope: Scope) -> list[Entry]:
        """The rows that are wanted."""
        return [entry for entry in self.entries if entry.dataset in scope.data]

    def of_the_paper(self, scope: Scope) -> Iterator[Cell]:
        """The cells of the paper's protocol."""
        for entry in self.inside(scope):
            yield from _paper_cells(entry, scope)

    def first(self, scope: Scope) -> Iterator[Cell]:
        """The paper's protocol, and the grids that the label-free protocol chooses from."""
        for entry in self.inside(scope):
            yield from _paper_cells(entry, scope)
            data = scope.data[entry.dataset]
            for contestant in entry.contestants.values():
                source = choice_cell(data, entry.noise, contestant, scope.preset)
                if source is not None:
                    yield source

    def then(self, scope: Scope, store: StudyStore) -> Iterator[Cell]:
        """The settings that were chosen without labels."""
        for entry in self.inside(scope):
            for contestant in entry.contestants.values():
                chosen = chosen_cell(entry, contestant, scope, store)
                if chosen is not None:
                    yield chosen


def _paper_cells(entry: Entry, scope: Scope) -> Iterator[Cell]:
    """The paper's protocol on one row of a table."""
    for noise in entry.noises:
        for model in METHODS:
            yield paper_cell(scope.data[entry.dataset], noise, model, scope.preset)


def chosen_cell(entry: Entry, contestant: Contestant, scope: Scope, store: StudyStore) -> Cell | None:
    """The cell of the setting chosen without labels; None while rows of the choice are missing."""
    data = scope.data[entry.dataset]
    source = choice_cell(data, entry.noise, contestant, scope.preset)
    rows = [] if source is None else store.rows(source)
    return final_cell(data, entry.noise, contestant, scope.preset, rows)


# Figures -----------------------------------------------------------------------------------


@dataclass(frozen=True)
class PaperFigure:
    """A figure of the paper."""

    name: str  # on the command line
    label: str  # in the paper
    title: str
    caption: str
    datasets: tuple[str, ...]
    courses: tuple[tuple[str, tuple[str, ...]], ...] = ()  # data sets and models whose best fits are followed
    every: int = 1  # iterations between evaluations of the objective; 0: only at the end, for clean timings
    grids: tuple[str, ...] = ()  # models whose grids it shows
    penalties: bool = False  # whether it compares the two penalties of LS-NMF without a graph

    def first(self, scope: Scope) -> Iterator[Cell]:
        """The grids that it shows, or whose best settings are followed."""
        for name in scope.has(*self.datasets):
            for model in dict.fromkeys((*self.grids, *dict(self.courses).get(name, ()))):
                yield paper_cell(scope.data[name], CLEAN, model, scope.preset)
            if self.penalties:
                for penalty in PENALTIES:
                    yield penalty_cell(scope.data[name], penalty, scope.preset)

    def then(self, scope: Scope, store: StudyStore) -> Iterator[Cell]:
        """The fits that are followed, as far as their grids are complete."""
        for _, _, course in self.followed(scope, store):
            yield course

    def followed(self, scope: Scope, store: StudyStore) -> Iterator[tuple[str, str, Cell]]:
        """The followed fits with their data set and model, or penalty."""
        sources = [
            (name, model, paper_cell(scope.data[name], CLEAN, model, scope.preset))
            for name, models in self.courses
            for model in (models if name in scope.data else ())
        ]
        for name in scope.has(*self.datasets) if self.penalties else ():
            sources += [(name, p, penalty_cell(scope.data[name], p, scope.preset)) for p in PENALTIES]
        for name, model, source in sources:
            course = course_cell(source, store.rows(source), self.every)
            if course is not None:
                yield name, model, course


# The paper's own ---------------------------------------------------------------------------

DATASETS = {spelled: Data(name) for name, spelled in PAPER.items()}
"""The paper's data sets by its names, in its order: Jaffe is the 26×26 set, AR 50 persons of 26 pictures."""

_REMOVED = {
    f"{level} %": (f"removed {level}%", Noise("removal", level / 100, replacement=True))
    for level in (20, 40, 60)
}
_GAUSSIAN = {
    level: (f"gaussian std {level}", Noise("gaussian", float(level))) for level in ("0.005", "0.010", "0.015")
}
_CLEAN = tuple(Entry(name, name, "clean") for name in DATASETS)


def _noisy(name: str, dataset: str, label: str, *, removed: bool) -> PaperTable:
    """A table of one data set at three levels of noise."""
    what, corner = ("entries removed", "removed") if removed else ("Gaussian noise", "std")
    levels = _REMOVED if removed else _GAUSSIAN
    entries = tuple(Entry(level, dataset, *noise) for level, noise in levels.items())
    return PaperTable(name, label, f"{dataset} with {what}", entries, corner)


_TABLES = (
    PaperTable("table1", "tab_all", "Clustering on eight data sets", _CLEAN, "data set"),
    _noisy("table2", "Jaffe", "tab_per_noisy_jaffe", removed=True),
    _noisy("table3", "Yale", "tab_per_noisy_yale", removed=True),
    _noisy("table4", "COIL20", "tab_per_noisy_COIL20", removed=True),
    _noisy("table5", "ORL", "tab_per_gaussian_ORL", removed=False),
    _noisy("table6", "Yale", "tab_per_gaussian_Yale", removed=False),
    _noisy("table7", "COIL20", "tab_per_gaussian_COIL20", removed=False),
)
TABLES = {table.name: table for table in _TABLES}
"""The paper's tables by name, in its order."""


_FIGURES: tuple[PaperFigure, ...] = (
    PaperFigure(
        "fig-data",
        "fig_imgs",
        "The data sets",
        "Samples of the data sets. The paper leaves out Pendigits, whose samples are lines of eight points.",
        tuple(DATASETS),
    ),
    PaperFigure(
        "fig-removed",
        "fig_noisy_img",
        "Entries removed",
        "Jaffe (top) and Yale (bottom): 20, 40 and 60 % of the entries drawn with replacement.",
        ("Jaffe", "Yale"),
    ),
    PaperFigure(
        "fig-gaussian",
        "fig_noisy_img_gaussian",
        "Gaussian noise",
        "ORL (top) and COIL20 (bottom): noise of standard deviation 0.005, 0.010 and 0.015 on unit-norm "
        "samples.",
        ("ORL", "COIL20"),
    ),
    PaperFigure(
        "fig-gamma",
        "fig_gamma",
        "Sensitivity to γ",
        "RLS-NMF over γ, the other weights as in its best setting.",
        ("COIL20", "Jaffe", "ORL", "Semeion"),
        grids=("RLS-NMF",),
    ),
    PaperFigure(
        "fig-alpha-beta",
        "fig_paras",
        "Sensitivity to α and β",
        "Scores of RLS-NMF over α and β, γ and λ as in its best setting.",
        ("COIL20", "Jaffe", "ORL", "Semeion"),
        grids=("RLS-NMF",),
    ),
    PaperFigure(
        "fig-convergence",
        "fig_conv",
        "Convergence",
        "Objective of LS-NMF (top) and RLS-NMF (bottom) over the first 200 iterations, at the best settings.",
        ("Yale", "Semeion", "Jaffe", "EYaleB"),
        courses=tuple((name, OURS) for name in ("Yale", "Semeion", "Jaffe", "EYaleB")),
    ),
    PaperFigure(
        "fig-rates",
        "fig_convrate",
        "Convergence rates",
        "|f(t+1) − f*| / |f(t) − f*| with f* the objective at the last iteration: LS-NMF and RLS-NMF on "
        "all data sets, all methods on EYaleB and Semeion.",
        tuple(DATASETS),
        courses=tuple((name, METHODS if name in ("EYaleB", "Semeion") else OURS) for name in DATASETS),
    ),
    PaperFigure(
        "fig-time",
        "fig_time",
        "Time",
        "Seconds of one fit at its best setting, on one core in float64, without graph and k-means. "
        "Other fits ran on the other cores.",
        tuple(DATASETS),
        courses=tuple((name, METHODS) for name in DATASETS),
        every=0,
    ),
    PaperFigure(
        "fig-basis",
        "fig_basis",
        "Parts of faces",
        "Parts that the nine methods find on ORL, each at its best setting.",
        ("ORL",),
        courses=(("ORL", METHODS),),
    ),
    PaperFigure(
        "fig-sparseness",
        "fig_sparseness",
        "Sparseness",
        "Hoyer's sparseness of U and V along the fits of LS-NMF and of the ℓ1 approach, both without a "
        "graph, each at the α and β of its highest accuracy.",
        ("AR", "EYaleB", "Yale", "ORL"),
        penalties=True,
    ),
    PaperFigure(
        "fig-reconstruction",
        "fig_reconstruction",
        "Reconstructions",
        "Samples of Yale and ORL, and what RLS-NMF at its best setting makes of them.",
        ("Yale", "ORL"),
        courses=(("Yale", ("RLS-NMF",)), ("ORL", ("RLS-NMF",))),
    ),
)
FIGURES = {figure.name: figure for figure in _FIGURES}
"""The paper's figures by name, in its order."""


def targets(names: Sequence[str]) -> list[Any]:
    """The tables and figures of these names, or of "all", "tables" and "figures", each once."""
    groups = {"all": [*TABLES, *FIGURES], "tables": list(TABLES), "figures": list(FIGURES)}
    by_name: dict[str, Any] = {**TABLES, **FIGURES}
    wanted = [target for name in names for target in groups.get(name, [name])]
    unknown = [name for name in wanted if name not in by_name]
    if unknown:
        msg = f"There is no {unknown[0]!r} to reproduce: choose among {', '.join([*groups, *by_name])}."
        raise ValueError(msg)
    return [by_name[name] for name in dict.fromkeys(wanted)]
