"""The paper's figures drawn from a store: the rows that each one needs, and the plot that shows them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from lognmf import plots
from lognmf.models import MODELS
from lognmf.paper.methods import OURS
from lognmf.paper.samples import prepare
from lognmf.paper.spec import CLEAN, best, paper_cell
from lognmf.paper.store import StudyStore
from lognmf.paper.tables import TABLES, PaperFigure, Scope
from lognmf.paper.work import unpack

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["DRAW", "draw"]

Drawings = dict[str, "Figure"]
"""Figures by what they show; "" where there is one alone."""


def draw(figure: PaperFigure, scope: Scope, store: StudyStore) -> Drawings:
    """A figure of the paper from the rows of a store; empty where they are missing."""
    return DRAW[figure.name](figure, scope, store)


def _one(plot: Callable[..., Figure], content: Mapping[str, Any], *options: Any) -> Drawings:
    """One drawing of all groups that are not empty; none where all are."""
    content = {name: group for name, group in content.items() if group}
    return {"": plot(content, *options)} if content else {}


def _data(figure: PaperFigure, scope: Scope, store: StudyStore) -> Drawings:
    """Samples of the data sets whose samples are pictures."""
    samples = {name: prepare(scope.data[name], CLEAN) for name in scope.has(*figure.datasets)}
    sets = {name: (s.X, s.image_shape) for name, s in samples.items() if s.image_shape is not None}
    return _one(plots.samples_of_sets, sets)


def _noise(figure: PaperFigure, scope: Scope, store: StudyStore) -> Drawings:
    """Samples at all levels of one kind of noise."""
    kind = "removal" if figure.name == "fig-removed" else "gaussian"
    sets: dict[str, Any] = {}
    for name in scope.has(*figure.datasets):
        entries = [
            entry
            for table in TABLES.values()
            for entry in table.entries
            if entry.dataset == name and entry.noise.kind == kind
        ]
        samples = {entry.label: prepare(scope.data[name], entry.noise) for entry in entries}
        shape = next(iter(samples.values())).image_shape
        if shape is not None:
            sets[name] = ({label: s.X for label, s in samples.items()}, shape)
    return _one(plots.noise_levels, sets)


def _near_best(figure: PaperFigure, free: tuple[str, ...], scope: Scope, store: StudyStore) -> dict[str, Any]:
    """By data set, the rows of RLS-NMF that differ from the best one in the free weights only."""
    fixed = [weight for weight in MODELS["RLS-NMF"]._weights if weight not in free]
    sets = {}
    for name in scope.has(*figure.datasets):
        rows = store.rows(paper_cell(scope.data[name], CLEAN, "RLS-NMF", scope.preset))
        top = best(rows) or {}
        sets[name] = [row for row in rows if all(row[weight] == top[weight] for weight in fixed)]
    return sets


def _gamma(figure: PaperFigure, scope: Scope, store: StudyStore) -> Drawings:
    """Scores over gamma."""
    return _one(plots.scores_by_weight, _near_best(figure, ("gamma",), scope, store), "gamma")


def _alpha_beta(figure: PaperFigure, scope: Scope, store: StudyStore) -> Drawings:
    """Scores over alpha and beta."""
    free = ("alpha", "beta")
    return _one(plots.score_maps, _near_best(figure, free, scope, store), free)


def _rows(figure: PaperFigure, scope: Scope, store: StudyStore) -> dict[str, dict[str, dict[str, Any]]]:
    """The rows of the followed fits, by data set and model."""
    by_set: dict[str, dict[str, dict[str, Any]]] = {}
    for name, model, cell in figure.followed(scope, store):
        if rows := store.rows(cell):
            by_set.setdefault(name, {})[model] = rows[0]
    return by_set


def _history(row: Mapping[str, Any]) -> dict[str, Any]:
    """The objectives of a followed fit, named as in ``history_``."""
    return {"iteration": row["iterations"], "objective": row["objectives"]}


def _convergence(figure: PaperFigure, scope: Scope, store: StudyStore) -> Drawings:
    """Objectives of the two models, on the data sets where both are there."""
    by_set = {n: rows for n, rows in _rows(figure, scope, store).items() if set(OURS) <= rows.keys()}
    models = {m: {name: _history(rows[m]) for name, rows in by_set.items()} for m in OURS}
    return _one(plots.convergence_curves, models)


def _rates(figure: PaperFigure, scope: Scope, store: StudyStore) -> Drawings:
    """Convergence rates of the two models on all data sets, and of all models on two."""
    by_set = _rows(figure, scope, store)
    groups = {m: {n: _history(rows[m]) for n, rows in by_set.items() if m in rows} for m in OURS}
    for name in ("EYaleB", "Semeion"):
        groups[f"all methods on {name}"] = {m: _history(row) for m, row in by_set.get(name, {}).items()}
    return _one(plots.convergence_rates, groups)


def _time(figure: PaperFigure, scope: Scope, store: StudyStore) -> Drawings:
    """Seconds of the fits."""
    by_set = _rows(figure, scope, store)
    seconds = {n: {m: row["seconds"] for m, row in rows.items()} for n, rows in by_set.items()}
    return _one(plots.fit_times, seconds)


def _sparseness(figure: PaperFigure, scope: Scope, store: StudyStore) -> Drawings:
    """Sparseness along the fits with either penalty."""
    by_set = _rows(figure, scope, store)
    curves = {n: {p: _sparseness_curve(row) for p, row in rows.items()} for n, rows in by_set.items()}
    return _one(plots.sparseness_curves, curves)


def _sparseness_curve(row: Mapping[str, Any]) -> dict[str, np.ndarray]:
    """The sparseness along one followed fit, as arrays."""
    names = {"iteration": "iteration", "sparseness_U": "U", "sparseness_V": "V"}
    return {name: np.array([look[key] for look in row["sparseness"]]) for name, key in names.items()}


def _factors(figure: PaperFigure, scope: Scope, store: StudyStore) -> Iterator[tuple[str, Any, Any, Any]]:
    """Data sets of pictures with samples, shape, and the arrays of the followed fits by model."""
    for name in scope.has(*figure.datasets):
        samples = prepare(scope.data[name], CLEAN)
        blobs = {m: store.arrays(cell) for n, m, cell in figure.followed(scope, store) if n == name}
        models = {model: unpack(kept[0]) for model, kept in blobs.items() if kept}
        if models and samples.image_shape is not None:
            yield name, samples.X, samples.image_shape, models


def _basis(figure: PaperFigure, scope: Scope, store: StudyStore) -> Drawings:
    """The parts of all models."""
    drawings = {}
    for _, _, shape, models in _factors(figure, scope, store):
        drawings[""] = plots.parts_of_models({m: arrays["U"].T for m, arrays in models.items()}, shape)
    return drawings


def _reconstruction(figure: PaperFigure, scope: Scope, store: StudyStore) -> Drawings:
    """Samples, their reconstructions and outlier parts, a drawing for each data set."""
    drawings = {}
    for name, X, shape, models in _factors(figure, scope, store):
        arrays = models["RLS-NMF"]
        rebuilt = arrays["V"] @ arrays["U"].T
        outliers = arrays["share"][:, None] * (X - rebuilt)
        drawings[name] = plots.reconstructions(X, rebuilt, shape, outliers=outliers)
    return drawings


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
