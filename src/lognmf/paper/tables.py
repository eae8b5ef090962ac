"""Every table and figure of the paper as a value: its rows or panels, and the cells that they need.

Each has two stages of cells: ``first`` the grids, ``then`` the settings chosen from their rows, as far as
these are complete.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from lognmf import datasets
from lognmf.paper.methods import CONTESTANTS, METHODS, OURS, Contestant
from lognmf.paper.spec import (
    CLEAN,
    PENALTIES,
    Cell,
    Data,
    Noise,
    Preset,
    choice_cell,
    final_cell,
    followed_cell,
    paper_cell,
    penalty_cell,
)
from lognmf.paper.store import StudyStore


@dataclass(frozen=True)
class Study:
    """A run of the paper's experiments: how much is tried, on which data, and the results so far."""

    preset: Preset
    data: Mapping[str, Data]  # by the paper's names
    store: StudyStore


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

    def inside(self, data: Mapping[str, Data]) -> list[Entry]:
        """The rows that are wanted."""
        return [entry for entry in self.entries if entry.dataset in data]

    def grids(self, study: Study) -> Iterator[tuple[str, Cell]]:
        """The grids of the protocols: "paper", and the "choice" that the label-free one is made from."""
        for entry in self.inside(study.data):
            data = study.data[entry.dataset]
            for noise in entry.noises:
                for model in METHODS:
                    yield "paper", paper_cell(data, noise, model, study.preset)
            for contestant in entry.contestants.values():
                source = choice_cell(data, entry.noise, contestant, study.preset)
                if source is not None:
                    yield "choice", source

    def first(self, study: Study) -> Iterator[Cell]:
        """The grids of both protocols."""
        return (cell for _, cell in self.grids(study))

    def then(self, study: Study) -> Iterator[tuple[Entry, str, Cell]]:
        """The settings chosen without labels, with their rows of the table and their methods."""
        for entry in self.inside(study.data):
            data = study.data[entry.dataset]
            for name, contestant in entry.contestants.items():
                source = choice_cell(data, entry.noise, contestant, study.preset)
                rows = [] if source is None else study.store.rows(source)
                chosen = final_cell(data, entry.noise, contestant, study.preset, rows)
                if chosen is not None:
                    yield entry, name, chosen


# Figures -----------------------------------------------------------------------------------


@dataclass(frozen=True)
class PaperFigure:
    """A figure of the paper."""

    name: str  # on the command line
    label: str  # in the paper
    title: str
    caption: str
    models: Mapping[str, Sequence[str]]  # by data set, those whose grids or best fits it shows
    every: int | None = None  # the best fits are evaluated so often; 0: at the end, for clean timings
    penalties: bool = False  # whether it compares the two penalties of LS-NMF, without a graph, by sparseness

    def inside(self, data: Mapping[str, Data]) -> list[str]:
        """The data sets that are wanted."""
        return [name for name in self.models if name in data]

    def grid(self, name: str, model: str, study: Study) -> Cell:
        """The grid of a model on a data set."""
        if self.penalties:
            return penalty_cell(study.data[name], model, study.preset)
        return paper_cell(study.data[name], CLEAN, model, study.preset)

    def first(self, study: Study) -> Iterator[Cell]:
        """The grids that it shows, or whose best settings are followed."""
        for name in self.inside(study.data):
            for model in self.models[name]:
                yield self.grid(name, model, study)

    def then(self, study: Study) -> Iterator[tuple[str, str, Cell]]:
        """The best fits, followed, with their data sets and models."""
        for name in self.inside(study.data) if self.every is not None else ():
            for model in self.models[name]:
                source = self.grid(name, model, study)
                every, rows = self.every or source.option("max_iter"), study.store.rows(source)
                followed = followed_cell(source, rows, every, sparseness=self.penalties)
                if followed is not None:
                    yield name, model, followed


# The paper's own ---------------------------------------------------------------------------

DATASETS = {spelled: Data(name) for name, spelled in datasets.PAPER.items()}
"""The paper's data sets by its names, in its order: Jaffe is the 26×26 set, AR 50 persons of 26 pictures."""

REMOVED = {
    f"{level} %": (f"removed {level}%", Noise("removal", level / 100, replacement=True))
    for level in (20, 40, 60)
}
GAUSSIAN = {
    level: (f"gaussian std {level}", Noise("gaussian", float(level))) for level in ("0.005", "0.010", "0.015")
}
"""Noise by the label of its row, with the paper's name of the level."""

_CLEAN = tuple(Entry(name, name, "clean") for name in DATASETS)


def _noisy(name: str, dataset: str, label: str, levels: Mapping[str, tuple[str, Noise]]) -> PaperTable:
    """A table of one data set at three levels of noise."""
    what, corner = ("entries removed", "removed") if levels is REMOVED else ("Gaussian noise", "std")
    entries = tuple(Entry(level, dataset, *noise) for level, noise in levels.items())
    return PaperTable(name, label, f"{dataset} with {what}", entries, corner)


_TABLES = (
    PaperTable("table1", "tab_all", "Clustering on eight data sets", _CLEAN, "data set"),
    _noisy("table2", "Jaffe", "tab_per_noisy_jaffe", REMOVED),
    _noisy("table3", "Yale", "tab_per_noisy_yale", REMOVED),
    _noisy("table4", "COIL20", "tab_per_noisy_COIL20", REMOVED),
    _noisy("table5", "ORL", "tab_per_gaussian_ORL", GAUSSIAN),
    _noisy("table6", "Yale", "tab_per_gaussian_Yale", GAUSSIAN),
    _noisy("table7", "COIL20", "tab_per_gaussian_COIL20", GAUSSIAN),
)
TABLES = {table.name: table for table in _TABLES}
"""The paper's tables by name, in its order."""


_FIGURES: tuple[PaperFigure, ...] = (
    PaperFigure(
        "fig-data",
        "fig_imgs",
        "The data sets",
        "Samples of the data sets. The paper leaves out Pendigits, whose samples are lines of eight points.",
        dict.fromkeys(DATASETS, ()),
    ),
    PaperFigure(
        "fig-removed",
        "fig_noisy_img",
        "Entries removed",
        "The same samples with 20, 40 and 60 % of the entries drawn with replacement and removed.",
        dict.fromkeys(("Jaffe", "Yale"), ()),
    ),
    PaperFigure(
        "fig-gaussian",
        "fig_noisy_img_gaussian",
        "Gaussian noise",
        "The same samples, of unit norm, with noise of standard deviation 0.005, 0.010 and 0.015.",
        dict.fromkeys(("ORL", "COIL20"), ()),
    ),
    PaperFigure(
        "fig-gamma",
        "fig_gamma",
        "Sensitivity to γ",
        "RLS-NMF over γ, the other weights as in its best setting.",
        dict.fromkeys(("COIL20", "Jaffe", "ORL", "Semeion"), ("RLS-NMF",)),
    ),
    PaperFigure(
        "fig-alpha-beta",
        "fig_paras",
        "Sensitivity to α and β",
        "Scores of RLS-NMF over α and β, γ and λ as in its best setting.",
        dict.fromkeys(("COIL20", "Jaffe", "ORL", "Semeion"), ("RLS-NMF",)),
    ),
    PaperFigure(
        "fig-convergence",
        "fig_conv",
        "Convergence",
        "Objective of LS-NMF (top) and RLS-NMF (bottom) over the first 200 iterations, at the best settings.",
        dict.fromkeys(("Yale", "Semeion", "Jaffe", "EYaleB"), OURS),
        every=1,
    ),
    PaperFigure(
        "fig-rates",
        "fig_convrate",
        "Convergence rates",
        "|f(t+1) − f*| / |f(t) − f*| with f* the objective at the last iteration.",
        dict.fromkeys(DATASETS, OURS) | dict.fromkeys(("EYaleB", "Semeion"), METHODS),
        every=1,
    ),
    PaperFigure(
        "fig-time",
        "fig_time",
        "Time",
        "Seconds of one fit at its best setting, on one core in float64, without graph and k-means. "
        "Other fits ran on the other cores.",
        dict.fromkeys(DATASETS, METHODS),
        every=0,
    ),
    PaperFigure(
        "fig-basis",
        "fig_basis",
        "Parts of faces",
        "Parts that the nine methods find on ORL, each at its best setting.",
        {"ORL": METHODS},
        every=1,
    ),
    PaperFigure(
        "fig-sparseness",
        "fig_sparseness",
        "Sparseness",
        "Hoyer's sparseness of U and V along the fits of LS-NMF and of the ℓ1 approach, both without a "
        "graph, each at the α and β of its highest accuracy.",
        dict.fromkeys(("AR", "EYaleB", "Yale", "ORL"), tuple(PENALTIES)),
        every=10,
        penalties=True,
    ),
    PaperFigure(
        "fig-reconstruction",
        "fig_reconstruction",
        "Reconstructions",
        "Samples, and what RLS-NMF at its best setting makes of them.",
        dict.fromkeys(("Yale", "ORL"), ("RLS-NMF",)),
        every=1,
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
