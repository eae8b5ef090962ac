"""Every table and every figure of the paper, each one value."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from lognmf.models import MODELS
from lognmf.paper.recipes import Entry, PaperFigure, PaperTable
from lognmf.paper.spec import Data, Noise

__all__ = ["DATASETS", "FIGURES", "TABLES", "targets"]

DATASETS = {
    "Semeion": Data("semeion"),
    "EYaleB": Data("eyaleb"),
    "ORL": Data("orl"),
    "AR": Data("ar"),
    "Jaffe": Data("jaffe"),
    "Yale": Data("yale"),
    "COIL20": Data("coil20"),
    "Pendigits": Data("pendigits"),
}
"""The paper's data sets by its names, in its order: Jaffe is the 26×26 set, AR 50 persons of 26 pictures."""


def _removals(dataset: str) -> tuple[Entry, ...]:
    return tuple(
        Entry(f"{level} %", dataset, f"removed {level}%", Noise("removal", level / 100, replacement=True))
        for level in (20, 40, 60)
    )


def _gaussians(dataset: str) -> tuple[Entry, ...]:
    return tuple(
        Entry(level, dataset, f"gaussian std {level}", Noise("gaussian", float(level)))
        for level in ("0.005", "0.010", "0.015")
    )


_ALL = (
    PaperTable(
        "table1",
        "tab_all",
        "Clustering on eight data sets",
        tuple(Entry(name, name, "clean") for name in DATASETS),
        "data set",
    ),
    PaperTable("table2", "tab_per_noisy_jaffe", "Jaffe with entries removed", _removals("Jaffe"), "removed"),
    PaperTable("table3", "tab_per_noisy_yale", "Yale with entries removed", _removals("Yale"), "removed"),
    PaperTable(
        "table4", "tab_per_noisy_COIL20", "COIL20 with entries removed", _removals("COIL20"), "removed"
    ),
    PaperTable("table5", "tab_per_gaussian_ORL", "ORL with Gaussian noise", _gaussians("ORL"), "std"),
    PaperTable("table6", "tab_per_gaussian_Yale", "Yale with Gaussian noise", _gaussians("Yale"), "std"),
    PaperTable(
        "table7", "tab_per_gaussian_COIL20", "COIL20 with Gaussian noise", _gaussians("COIL20"), "std"
    ),
)
TABLES = {table.name: table for table in _ALL}
"""The paper's tables by name, in its order."""


_NINE = tuple(MODELS)
_OURS = ("LS-NMF", "RLS-NMF")

_DRAWN: tuple[PaperFigure, ...] = (
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
        "Accuracy of RLS-NMF over α and β, γ and λ as in its best setting.",
        ("COIL20", "Jaffe", "ORL", "Semeion"),
        grids=("RLS-NMF",),
    ),
    PaperFigure(
        "fig-convergence",
        "fig_conv",
        "Convergence",
        "Objective of LS-NMF (top) and RLS-NMF (bottom) over the first 200 iterations, at the best settings.",
        ("Yale", "Semeion", "Jaffe", "EYaleB"),
        courses=tuple((name, _OURS) for name in ("Yale", "Semeion", "Jaffe", "EYaleB")),
    ),
    PaperFigure(
        "fig-rates",
        "fig_convrate",
        "Convergence rates",
        "|f(t+1) − f*| / |f(t) − f*| with f* the objective at the last iteration: LS-NMF and RLS-NMF on "
        "all data sets, all methods on EYaleB and Semeion.",
        tuple(DATASETS),
        courses=tuple((name, _NINE if name in ("EYaleB", "Semeion") else _OURS) for name in DATASETS),
    ),
    PaperFigure(
        "fig-time",
        "fig_time",
        "Time",
        "Seconds of one fit at its best setting, on one core in float64, without graph and k-means. "
        "Other fits ran on the other cores.",
        tuple(DATASETS),
        courses=tuple((name, _NINE) for name in DATASETS),
        every=0,
    ),
    PaperFigure(
        "fig-basis",
        "fig_basis",
        "Parts of faces",
        "Parts that the nine methods find on ORL, each at its best setting.",
        ("ORL",),
        courses=(("ORL", _NINE),),
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
FIGURES = {figure.name: figure for figure in _DRAWN}
"""The paper's figures by name, in its order."""


def targets(names: Sequence[str]) -> list[Any]:
    """The tables and figures by name; "all", "tables" and "figures" are what they say."""
    groups = {"all": [*TABLES, *FIGURES], "tables": list(TABLES), "figures": list(FIGURES)}
    known: dict[str, Any] = {**TABLES, **FIGURES}
    wanted = [found for name in names for found in groups.get(name, [name])]
    unknown = [name for name in wanted if name not in known]
    if unknown:
        msg = f"There is no {unknown[0]!r} to reproduce: choose among {', '.join([*groups, *known])}."
        raise ValueError(msg)
    return [known[name] for name in dict.fromkeys(wanted)]
