"""The rows of one batch of a grid: its fits, their k-means and scores."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from sklearn.base import clone

from lognmf.clustering import scores
from lognmf.clustering.kmeans import kmeans
from lognmf.core.arrays import Array, join, like, take, to_numpy, total
from lognmf.core.data import InMemory
from lognmf.graph import Graphs
from lognmf.grid.plan import Pair, Watched, fit_key
from lognmf.models.engine import Factors, Fit, draw
from lognmf.models.identity import plain
from lognmf.models.scale import in_units
from lognmf.models.starts import NEIGHBOURS
from lognmf.models.weights import AUTO, fit_batch
from lognmf.progress import stage


@dataclass
class Run:
    """What all batches share."""

    estimator: Any
    data: InMemory
    graphs: Graphs
    classes: np.ndarray | None
    n_clusters: int | None
    _first: dict[tuple[Any, ...], Factors] = field(default_factory=dict)
    _scaled: dict[Any, tuple[InMemory, float]] = field(default_factory=dict)

    def rows(self, pairs: list[Pair], *, watched: bool) -> tuple[list[dict[str, Any]], list[bool]]:
        """Rows of one batch, whose pairs differ in weights, seed and ``max_iter`` alone.

        Pairs that differ in ``max_iter`` alone are one fit, looked at on its way. With ``watched`` also, for
        each pair, whether no sample was ever an outlier.
        """
        start = time.perf_counter()
        model = clone(self.estimator).set_params(**pairs[0][0])
        limits = [setting.get("max_iter", model.max_iter) for setting, _ in pairs]
        place = {key: b for b, key in enumerate(dict.fromkeys(fit_key(pair) for pair in pairs))}
        own = [place[fit_key(pair)] for pair in pairs]
        fitted = [pairs[own.index(b)] for b in range(len(place))]
        data, unit = self._in_units(model)
        drawn = [self._start(model, seed) for _, seed in fitted]
        varied = [name for name in model._weights if name in pairs[0][0]]
        columns: dict[int, dict[str, Any]] = {}

        def look(iteration: int, fits: Fit) -> None:
            columns[iteration] = self._columns(model, fits, [seed for _, seed in fitted], watched=watched)

        with stage(f"{len(fitted)} fits at once", max(limits), "iterations", at_most=True) as batch:
            fits = fit_batch(
                model,
                data,
                self.graphs,
                (join([U for U, _ in drawn]), join([V for _, V in drawn])),
                unit=unit,
                max_iter=max(limits),
                settings=len(fitted),
                weights={name: [setting[name] for setting, _ in fitted] for name in varied},
                wrap=Watched if watched else None,
                on_eval=lambda iteration, _: batch.move(iteration),
                checkpoints=set(limits) - {max(limits)},
                on_checkpoint=look,
            )
        look(max(limits), fits)
        seconds = (time.perf_counter() - start) / len(pairs)
        rows = [
            {**{name: plain(v) for name, v in setting.items()}, "seed": seed, "seconds": seconds}
            | {name: plain(column[b]) for name, column in columns[limit].items() if name != _QUIET}
            for (setting, seed), limit, b in zip(pairs, limits, own, strict=True)
        ]
        return rows, [columns[limit][_QUIET][b] for limit, b in zip(limits, own, strict=True)]

    def _columns(self, model: Any, fits: Fit, seeds: list[int], *, watched: bool) -> dict[str, Any]:
        """What the rows say about every fit, and whether it never had an outlier."""
        U, V = fits.factors
        ever = to_numpy(fits.solution.state.aux[-1]).reshape(len(seeds), -1) if watched else None
        return {
            "objective": fits.objective,
            "n_iter": fits.n_iter,
            "stop_reason": fits.stop_reason,
            "reconstruction_err": fits.reconstruction_err,
            "sparseness_U": scores.hoyer_sparseness(U),
            "sparseness_V": scores.hoyer_sparseness(V),
            "n_outliers": _count_outliers(fits, len(seeds)),
            **{
                f"{name}_": fits.weights[name]
                for name in model._weights
                if name in model._auto and getattr(model, name, None) == AUTO
            },
            **self._scores(V, seeds),
            _QUIET: [False] * len(seeds) if ever is None else [not own.any() for own in ever],
        }

    def largest_residual(self, setting: dict[str, Any], seed: int) -> tuple[Any, float]:
        """The data fit of a setting, and the largest residual of any sample at its start."""
        model = clone(self.estimator).set_params(**setting)
        data, _ = self._in_units(model)
        U, V = model._prepare(*self._start(model, seed))
        weights = {name: like([float(getattr(model, name))] * V.shape[1], V) for name in model._weights}
        rule = model._rule(data, None, weights)
        state = rule.start(U, V)
        squared = rule.problem.fit.squared_residuals(data, *rule.factors(state))
        return rule.problem.fit.take(np.array([0])), math.sqrt(float(to_numpy(squared).max()))

    def _start(self, model: Any, seed: int) -> Factors:
        """First factors of a seed, drawn once."""
        data, unit = self._in_units(model)
        key = (model.n_components, model.init, model.n_init, unit, seed)
        if key not in self._first:
            self._first[key] = draw(model, data, self.graphs, seed)
        return self._first[key]

    def _in_units(self, model: Any) -> tuple[InMemory, float]:
        """The data as the model fits them, and their unit."""
        scale = getattr(model, "scale", None)
        if scale not in self._scaled:
            unit = model._unit(self.data)
            self._scaled[scale] = in_units(self.data, unit), unit
        return self._scaled[scale]

    def _scores(self, V: Array, seeds: list[int]) -> dict[str, Any]:
        if self.n_clusters is None:
            return {}
        first, group = _distinct(V, seeds)
        labels = kmeans(take(V, first), self.n_clusters, seed=np.array(seeds)[first])[:, group]
        clusters, balance = scores.cluster_sizes(labels, self.n_clusters)
        by_graph = scores.graph_scores(self.graphs.knn(NEIGHBOURS), labels)
        without_labels = {**by_graph, "clusters": clusters, "balance": balance}
        if self.classes is None:
            return without_labels
        counts = scores.contingency(self.classes, labels)
        return without_labels | {
            "accuracy": scores.accuracy(counts),
            "nmi": scores.normalized_mutual_info(counts),
            "purity": scores.purity(counts),
        }


_QUIET = "quiet"
"""A column for the grid alone."""


def _distinct(V: Array, seeds: list[int]) -> tuple[np.ndarray, np.ndarray]:
    """The first of all settings with the same codes and seed, and for every setting its place among these.

    Before the first iteration the codes are the same whatever the weights are.
    """
    if not isinstance(V, np.ndarray):
        return np.arange(len(seeds)), np.arange(len(seeds))
    keys = [(seed, V[:, b].tobytes()) for b, seed in enumerate(seeds)]
    place: dict[Any, int] = {}
    group = np.array([place.setdefault(key, len(place)) for key in keys])
    return np.unique(group, return_index=True)[1], group


def _count_outliers(fits: Fit, settings: int) -> list[int | None]:
    """Number of samples with an outlier part, of every setting; None for models without one."""
    parts = fits.outlier_part()
    if parts is None:
        return [None] * settings
    return [int(count) for count in to_numpy(total(like(parts[0] > 0, parts[0]), axis=0))]
