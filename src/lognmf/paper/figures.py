"""The paper's figures drawn from a store: which rows each one takes, and the plot that shows them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from lognmf.models import MODELS
from lognmf.paper.protocol import best, paper_cell
from lognmf.paper.recipes import PENALTIES, PaperFigure, Scope, course_of, penalty_cell
from lognmf.paper.samples import prepare
from lognmf.paper.spec import CLEAN
from lognmf.paper.store import StudyStore
from lognmf.paper.tables import TABLES
from lognmf.paper.work import unpack

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["DRAW", "draw"]

Drawings = dict[str, "Figure"]
"""Figures by what they show; "" where there is one alone."""


def draw(figure: PaperFigure, scope: Scope, store: StudyStore) -> Drawings:
    """A figure of the paper from what a store holds; nothing where it holds nothing for it.

    Parameters
    ----------
    figure : PaperFigure
        Which one.
    scope : Scope
        Preset and data sets.
    store : StudyStore
        The rows.

    Returns
    -------
    dict of str to matplotlib.figure.Figure
    """
    return DRAW[figure.name](figure, scope, store)


def _data(figure: PaperFigure, scope: Scope, store: StudyStore) -> Drawings:
    from lognmf.plots import samples_of_sets

    found = {name: prepare(scope.data[name], CLEAN) for name in scope.has(*figure.datasets)}
    sets = {name: (s.X, s.image_shape) for name, s in found.items() if s.image_shape is not None}
    return {"": samples_of_sets(sets)} if sets else {}


def _noise(figure: PaperFigure, scope: Scope, store: StudyStore) -> Drawings:
    from lognmf.plots import noise_levels

    kind = "removal" if figure.name == "fig-removed" else "gaussian"
    sets: dict[str, Any] = {}
    for name in scope.has(*figure.datasets):
        entries = [
            entry
            for table in TABLES.values()
            for entry in table.entries
            if entry.dataset == name and entry.noise.kind == kind
        ]
        found = {entry.label: prepare(scope.data[name], entry.noise) for entry in entries}
        shape = next(iter(found.values())).image_shape
        if shape is not None:
            sets[name] = ({label: s.X for label, s in found.items()}, shape)
    return {"": noise_levels(sets)} if sets else {}


def _near_best(name: str, free: tuple[str, ...], scope: Scope, store: StudyStore) -> list[dict[str, Any]]:
    """The rows of RLS-NMF that differ from the best one in the free weights only."""
    rows = store.rows(paper_cell(scope.data[name], CLEAN, "RLS-NMF", scope.preset))
    found = best(rows)
    if found is None:
        return []
    fixed = [weight for weight in MODELS["RLS-NMF"]._weights if weight not in free]
    return [row for row in rows if all(row[weight] == found[weight] for weight in fixed)]


def _gamma(figure: PaperFigure, scope: Scope, store: StudyStore) -> Drawings:
    from lognmf.plots import scores_by_weight

    sets = _known({name: _near_best(name, ("gamma",), scope, store) for name in scope.has(*figure.datasets)})
    return {"": scores_by_weight(sets, "gamma")} if sets else {}


def _alpha_beta(figure: PaperFigure, scope: Scope, store: StudyStore) -> Drawings:
    from lognmf.plots import score_maps

    free = ("alpha", "beta")
    sets = _known({name: _near_best(name, free, scope, store) for name in scope.has(*figure.datasets)})
    return {"": score_maps(sets, free)} if sets else {}


def _rows(figure: PaperFigure, scope: Scope, store: StudyStore) -> dict[str, dict[str, dict[str, Any]]]:
    """The followed fits, by data set and model."""
    found: dict[str, dict[str, dict[str, Any]]] = {}
    for name, models in figure.courses:
        for model in models if name in scope.data else ():
            cell = figure.course(name, model, scope, store)
            rows = [] if cell is None else store.rows(cell)
            if rows:
                found.setdefault(name, {})[model] = rows[0]
    return found


def _history(row: Mapping[str, Any]) -> dict[str, Any]:
    return {"iteration": row["iterations"], "objective": row["objectives"]}


def _convergence(figure: PaperFigure, scope: Scope, store: StudyStore) -> Drawings:
    from lognmf.plots import convergence_curves

    found = _rows(figure, scope, store)
    ours = ("LS-NMF", "RLS-NMF")
    complete = {name: rows for name, rows in found.items() if set(ours) <= rows.keys()}
    if not complete:
        return {}
    return {
        "": convergence_curves(
            {m: {name: _history(rows[m]) for name, rows in complete.items()} for m in ours}
        )
    }


def _rates(figure: PaperFigure, scope: Scope, store: StudyStore) -> Drawings:
    from lognmf.plots import convergence_rates

    found = _rows(figure, scope, store)
    groups = {
        model: {name: _history(rows[model]) for name, rows in found.items() if model in rows}
        for model in ("LS-NMF", "RLS-NMF")
    }
    for name in ("EYaleB", "Semeion"):
        groups[f"all methods on {name}"] = {m: _history(row) for m, row in found.get(name, {}).items()}
    groups = _known(groups)
    return {"": convergence_rates(groups)} if groups else {}


def _time(figure: PaperFigure, scope: Scope, store: StudyStore) -> Drawings:
    from lognmf.plots import fit_times

    found = _rows(figure, scope, store)
    seconds = {name: {model: row["seconds"] for model, row in rows.items()} for name, rows in found.items()}
    return {"": fit_times(seconds)} if seconds else {}


def _basis(figure: PaperFigure, scope: Scope, store: StudyStore) -> Drawings:
    from lognmf.plots import parts_of_models

    drawings = {}
    for name, models in figure.courses:
        parts = {}
        for model in models if name in scope.data else ():
            cell = figure.course(name, model, scope, store)
            blobs = [] if cell is None else store.arrays(cell)
            if blobs:
                parts[model] = unpack(blobs[0])["U"].T
        shape = prepare(scope.data[name], CLEAN).image_shape if parts else None
        if shape is not None:
            drawings[""] = parts_of_models(parts, shape)
    return drawings


def _sparseness(figure: PaperFigure, scope: Scope, store: StudyStore) -> Drawings:
    from lognmf.plots import sparseness_curves

    sets: dict[str, dict[str, Any]] = {}
    for name in scope.has(*figure.datasets):
        for penalty in PENALTIES:
            cell = course_of(penalty_cell(scope.data[name], penalty, scope.preset), store, figure.every)
            rows = [] if cell is None else store.rows(cell)
            if rows:
                looks = rows[0]["sparseness"]
                sets.setdefault(name, {})[penalty] = {
                    "iteration": np.array([look["iteration"] for look in looks]),
                    "sparseness_U": np.array([look["U"] for look in looks]),
                    "sparseness_V": np.array([look["V"] for look in looks]),
                }
    return {"": sparseness_curves(sets)} if sets else {}


def _reconstruction(figure: PaperFigure, scope: Scope, store: StudyStore) -> Drawings:
    from lognmf.plots import reconstructions

    drawings = {}
    for name, (model,) in figure.courses:
        cell = figure.course(name, model, scope, store) if name in scope.data else None
        blobs = [] if cell is None else store.arrays(cell)
        if not blobs:
            continue
        samples, arrays = prepare(scope.data[name], CLEAN), unpack(blobs[0])
        if samples.image_shape is not None:
            rebuilt = arrays["V"] @ arrays["U"].T
            outliers = arrays["share"][:, None] * (samples.X - rebuilt)
            drawings[name] = reconstructions(samples.X, rebuilt, samples.image_shape, outliers=outliers)
    return drawings


def _known(groups: Mapping[str, Any]) -> dict[str, Any]:
    return {name: group for name, group in groups.items() if group}


DRAW: dict[str, Callable[[PaperFigure, Scope, StudyStore], Drawings]] = {
    "fig-data": _data,
    "fig-removed": _noise,
    "fig-gaussian": _noise,
    "fig-gamma": _gamma,
    "fig-alpha-beta": _alpha_beta,
    "fig-convergence": _convergence,
    "fig-rates": _rates,
    "fig-time": _time,
    "fig-basis": _basis,
    "fig-sparseness": _sparseness,
    "fig-reconstruction": _reconstruction,
}
"""How each figure of the paper is drawn, by its name."""
