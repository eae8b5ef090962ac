"""The paper's figures drawn from a store: the rows that each one needs, and the plot that shows them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from lognmf import plots
from lognmf.paper import drawings
from lognmf.paper.methods import OURS, weights
from lognmf.paper.spec import CLEAN, Cell, best
from lognmf.paper.tables import GAUSSIAN, REMOVED, PaperFigure, Study
from lognmf.paper.work import prepare

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Drawings = dict[str, "Figure"]
"""Figures by what they show; "" where there is one alone."""


def draw(figure: PaperFigure, study: Study) -> Drawings:
    """A figure of the paper from the rows of a store; empty where they are missing."""
    return DRAW[figure.name](figure, study)


def _one(plot: Callable[..., Figure], content: Mapping[str, Any], *options: Any) -> Drawings:
    """One drawing of all groups that are not empty; none where all are."""
    content = {name: group for name, group in content.items() if group}
    return {"": plot(content, *options)} if content else {}


_SAMPLES = {"fig-data": 12, "fig-removed": 3, "fig-gaussian": 3, "fig-reconstruction": 10}
"""How many samples of each data set are drawn."""


def _spread(n: int, count: int) -> np.ndarray:
    """At most ``count`` of n places, evenly spaced, from the first to the last."""
    return np.unique(np.linspace(0, n - 1, min(n, count)).round().astype(int))


def _data(figure: PaperFigure, study: Study) -> Drawings:
    """Samples of the data sets whose samples are pictures."""
    rows = {}
    for name in figure.inside(study.data):
        samples = prepare(study.data[name], CLEAN)
        if samples.image_shape is not None:
            chosen = _spread(len(samples.X), _SAMPLES[figure.name])
            rows[name] = samples.X[chosen].reshape(-1, *samples.image_shape)
    return {"": plots.pictures(rows)} if rows else {}


def _noise(figure: PaperFigure, study: Study) -> Drawings:
    """Samples at all levels of one kind of noise, the levels of one sample side by side."""
    levels = REMOVED if figure.name == "fig-removed" else GAUSSIAN
    rows, count = {}, _SAMPLES[figure.name]
    for name in figure.inside(study.data):
        copies = [prepare(study.data[name], noise) for _, noise in levels.values()]
        shape = copies[0].image_shape
        if shape is not None:
            chosen = _spread(len(copies[0].X), count)
            rows[name] = [copy.X[i].reshape(shape) for i in chosen for copy in copies]
    return {"": plots.pictures(rows, heads=list(levels) * count, group=len(levels))} if rows else {}


def _near_best(figure: PaperFigure, free: tuple[str, ...], study: Study) -> dict[str, Any]:
    """By data set, the rows of RLS-NMF that differ from the best one in the free weights only."""
    fixed = [weight for weight in weights("RLS-NMF") if weight not in free]
    sets = {}
    for name in figure.inside(study.data):
        rows = study.store.rows(figure.grid(name, "RLS-NMF", study))
        top = best(rows) or {}
        sets[name] = [row for row in rows if all(row[weight] == top[weight] for weight in fixed)]
    return sets


def _gamma(figure: PaperFigure, study: Study) -> Drawings:
    """Scores over gamma."""
    return _one(drawings.scores_by_weight, _near_best(figure, ("gamma",), study), "gamma")


def _alpha_beta(figure: PaperFigure, study: Study) -> Drawings:
    """Scores over alpha and beta."""
    free = ("alpha", "beta")
    return _one(drawings.score_maps, _near_best(figure, free, study), free)


def _followed(
    figure: PaperFigure, study: Study, read: Callable[[Cell], list[Any]]
) -> dict[str, dict[str, list[Any]]]:
    """What was stored of the followed fits, by data set and model: their rows, or their arrays."""
    by_set: dict[str, dict[str, list[Any]]] = {}
    for name, model, cell in figure.then(study):
        if stored := read(cell):
            by_set.setdefault(name, {})[model] = stored
    return by_set


def _histories(figure: PaperFigure, study: Study) -> dict[str, dict[str, Any]]:
    """The objectives of the followed fits, named as in ``history_``, by data set and model."""
    return {
        name: {m: {"iteration": r["iterations"], "objective": r["objectives"]} for m, (r,) in rows.items()}
        for name, rows in _followed(figure, study, study.store.rows).items()
    }


def _convergence(figure: PaperFigure, study: Study) -> Drawings:
    """Objectives of the two models, on the data sets where both are there."""
    by_set = {n: fits for n, fits in _histories(figure, study).items() if set(OURS) <= fits.keys()}
    models = {model: {name: fits[model] for name, fits in by_set.items()} for model in OURS}
    return _one(drawings.convergence_curves, models)


def _rates(figure: PaperFigure, study: Study) -> Drawings:
    """Convergence rates of the two models on all data sets, and of all models on two."""
    by_set = _histories(figure, study)
    groups = {m: {name: fits[m] for name, fits in by_set.items() if m in fits} for m in OURS}
    groups |= {f"all methods on {name}": by_set.get(name, {}) for name in ("EYaleB", "Semeion")}
    return _one(drawings.convergence_rates, groups)


def _time(figure: PaperFigure, study: Study) -> Drawings:
    """Seconds of the fits."""
    by_set = _followed(figure, study, study.store.rows)
    seconds = {n: {m: row["seconds"] for m, (row,) in rows.items()} for n, rows in by_set.items()}
    return _one(drawings.fit_times, seconds)


def _sparseness(figure: PaperFigure, study: Study) -> Drawings:
    """Sparseness along the fits with either penalty."""
    columns = {"iteration": "max_iter", "sparseness_U": "sparseness_U", "sparseness_V": "sparseness_V"}
    curves = {
        name: {
            penalty: {to: [row[column] for row in fits] for to, column in columns.items()}
            for penalty, fits in by_penalty.items()
        }
        for name, by_penalty in _followed(figure, study, study.store.rows).items()
    }
    return _one(drawings.sparseness_curves, curves)


def _factors(figure: PaperFigure, study: Study) -> Iterator[tuple[str, Any, Any, Any]]:
    """Data sets of pictures with samples, shape, and the arrays of the followed fits by model."""
    for name, stored in _followed(figure, study, study.store.arrays).items():
        samples = prepare(study.data[name], CLEAN)
        if samples.image_shape is not None:
            yield name, samples.X, samples.image_shape, {model: arrays for model, (arrays,) in stored.items()}


def _basis(figure: PaperFigure, study: Study) -> Drawings:
    """The parts of all models."""
    for _, _, shape, models in _factors(figure, study):  # of one data set at most
        parts = {model: arrays["U"].T for model, arrays in models.items()}
        return {"": plots.parts_of_models(parts, shape)}
    return {}


def _reconstruction(figure: PaperFigure, study: Study) -> Drawings:
    """Samples, their reconstructions and outlier parts, a drawing for each data set."""
    drawn = {}
    for name, X, shape, models in _factors(figure, study):
        arrays = models["RLS-NMF"]
        rebuilt = arrays["V"] @ arrays["U"].T
        outliers = arrays["share"][:, None] * (X - rebuilt)
        rows = {"as given": X, "reconstruction": rebuilt, "outlier part": outliers}
        chosen = _spread(len(X), _SAMPLES[figure.name])
        pictures = {label: part[chosen].reshape(-1, *shape) for label, part in rows.items()}
        drawn[name] = plots.pictures(pictures, heads=list(map(str, chosen)), signed=["outlier part"])
    return drawn


DRAW: dict[str, Callable[[PaperFigure, Study], Drawings]] = {
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
