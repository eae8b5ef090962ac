"""How cells are made of a data set: the paper's protocol, and the honest one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from lognmf.grid.select import select
from lognmf.models import MODELS
from lognmf.paper.rivals import RIVALS
from lognmf.paper.spec import Cell, Data, Noise, cell

__all__ = [
    "CONTESTANTS",
    "PINNED",
    "PRESETS",
    "WEIGHTS",
    "Contestant",
    "Preset",
    "best",
    "best_of_each",
    "choice_cell",
    "final_cell",
]

VALUES = (0.001, 0.01, 0.1, 1.0, 10.0, 100.0, 1000.0)
"""What the paper tries for every weight."""


@dataclass(frozen=True)
class Preset:
    """How much is tried, and for how long.

    Parameters
    ----------
    values : mapping of str to tuple of float
        What is tried for each weight in the paper's protocol. The honest protocol chooses lam alone,
        among the same values.
    max_iter : int
        Iterations of every fit.
    seed : int
        Of the paper's protocol and of the choice; fixed before anything was seen.
    seeds : tuple of int
        Of the honest protocol: others than the one that chose.
    """

    values: Mapping[str, tuple[float, ...]]
    max_iter: int
    seed: int = 0
    seeds: tuple[int, ...] = (1, 2, 3, 4, 5)

    @property
    def loop(self) -> dict[str, Any]:
        """Parameters of all models: so many iterations, and the objective looked at now and then."""
        return {"max_iter": self.max_iter, "tol": 0.0, "eval_every": 50}


WEIGHTS = ("alpha", "beta", "gamma", "lam")
"""The paper's α, β, γ and λ."""

PRESETS = {
    "paper": Preset(dict.fromkeys(WEIGHTS, VALUES), 500),
    "quick": Preset(
        {"alpha": (0.01, 1.0), "beta": (0.001, 0.01), "gamma": (1.0, 1000.0), "lam": (0.01, 0.1, 1.0, 100.0)},
        250,
    ),
}
"""Presets by name."""

PINNED: dict[str, dict[str, Any]] = {
    name: {"init": init, "solver": "mu", "unit_components": False, "max_iter": 500}
    for name, init in (("LS-NMF", "random"), ("RLS-NMF", "scaled"))
}
"""What both protocols mean by LS-NMF and RLS-NMF where they say nothing: multiplicative updates and
the paper's free scale, whatever the package's defaults are."""

PAPER_OPTIONS: dict[str, dict[str, Any]] = {
    name: {"init": "random"} for name in ("NMF", "GNMF", "WNMF", "LS-NMF", "RLS-NMF")
}
"""Starts in the paper's protocol: uniform on [0, 1); the other four have their own, by k-means."""


def paper_cell(data: Data, noise: Noise, model: str, preset: Preset) -> Cell:
    """The whole grid of a method from one seed."""
    weights: Sequence[str] = MODELS[model]._weights
    return cell(
        data,
        noise,
        model,
        options={**preset.loop, **PAPER_OPTIONS.get(model, {})},
        grid={weight: preset.values[weight] for weight in weights},
        seeds=(preset.seed,),
    )


def best(rows: Sequence[Mapping[str, Any]]) -> Mapping[str, Any] | None:
    """The row of highest accuracy; of equal ones that of the higher NMI, then the first: labels choose."""
    return max(rows, key=lambda row: (row["accuracy"], row["nmi"]), default=None)


def best_of_each(rows: Sequence[Mapping[str, Any]], metric: str) -> float | None:
    """The highest value of a metric, whatever setting it comes from."""
    return max((row[metric] for row in rows), default=None)


@dataclass(frozen=True)
class Contestant:
    """A method in the honest protocol.

    Parameters
    ----------
    model : str
        A name in `MODELS` or `RIVALS`.
    options : mapping
        Parameters that stay; else those of `PINNED` and the package's defaults.
    chosen : str, default=""
        The weight that is chosen without labels; "all" is the paper's whole grid.
    by : str, default="normalized_cut"
        Criterion of the choice.
    note : str, default=""
        What is special about it.
    """

    model: str
    options: Mapping[str, Any] = field(default_factory=dict)
    chosen: str = ""
    by: str = "normalized_cut"
    note: str = ""

    def suits(self, noise: Noise) -> bool:
        """Whether it can be run: a mask needs entries that were removed."""
        return not self.options.get("mask") or noise.kind == "removal"


CONTESTANTS = {
    **{
        name: Contestant(name, chosen="lam" if "lam" in model._weights else "")
        for name, model in MODELS.items()
    },
    **{name: Contestant(name) for name in RIVALS},
    "WNMF, mask": Contestant("WNMF", {"mask": True}, note="WNMF is told which entries were removed"),
    "LS-NMF, all": Contestant("LS-NMF", {"init": "random"}, "all", note="chosen from the paper's whole grid"),
    "RLS-NMF, all": Contestant(
        "RLS-NMF", {"init": "random"}, "all", note="chosen from the paper's whole grid"
    ),
    "LS-NMF, spectral": Contestant(
        "LS-NMF",
        {"init": "spectral", "max_iter": 100},
        "lam",
        "balanced_cut",
        "from a spectral start, 100 iterations",
    ),
}
"""Methods of the honest protocol by name: the paper's nine, what a user would pick instead, and variants."""


def choice_cell(data: Data, noise: Noise, contestant: Contestant, preset: Preset) -> Cell | None:
    """What a contestant is chosen from, or None where it has no weight."""
    if contestant.chosen == "all":
        return paper_cell(data, noise, contestant.model, preset)
    if not contestant.chosen:
        return None
    same = MODELS[contestant.model]._weights == (contestant.chosen,) and not contestant.options
    if same:
        return paper_cell(data, noise, contestant.model, preset)  # the same fits: not twice
    return cell(
        data,
        noise,
        contestant.model,
        options={**preset.loop, **contestant.options},
        grid={contestant.chosen: preset.values[contestant.chosen]},
        seeds=(preset.seed,),
    )


def final_cell(
    data: Data, noise: Noise, contestant: Contestant, preset: Preset, rows: Sequence[Mapping[str, Any]]
) -> Cell | None:
    """The chosen setting from all seeds; None while the rows that it is chosen from are missing."""
    if contestant.model in RIVALS:
        return cell(data, noise, contestant.model, seeds=preset.seeds)
    setting: Mapping[str, Any] = {}
    if contestant.chosen:
        source = choice_cell(data, noise, contestant, preset)
        if source is None or len(rows) < len(source.settings()):
            return None
        setting = select(rows, contestant.by).setting
    return cell(
        data,
        noise,
        contestant.model,
        options={**preset.loop, **contestant.options},
        grid={name: (value,) for name, value in setting.items()},
        seeds=preset.seeds,
    )
