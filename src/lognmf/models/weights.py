"""Weights chosen from the data: the sparsest parts that the error allows, the usual size of residuals.

All of it works on batches of settings.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from scipy.stats import gaussian_kde

from lognmf.core.arrays import Array, Elsewhere, like, namespace, to_numpy, total
from lognmf.core.rule import Solution, State
from lognmf.core.terms import PENALTIES, ROW_NORMS
from lognmf.core.terms.protocol import degree_of
from lognmf.core.terms.robust import kept_share
from lognmf.models.large_samples import limited
from lognmf.models.sparsest import TRIALS, Search, share_of_zeros
from lognmf.parameters import check_nonnegative
from lognmf.progress import stage

AUTO = "auto"
"""The word that stands for a weight to be chosen."""

WITHOUT = {"alpha": 0.0, "beta": 0.0, "gamma": 1e8}
"""What a weight is while it is yet to be chosen: no sparsity, no outliers."""

LOOSE, USUAL_TOL = 10.0, 1e-5
"""Fits on the way to a weight stop at this multiple of ``tol``, which has the usual value where it is 0."""

DISTORTED = 0.8
"""Outliers have distorted a fit by much if without them gamma is less than this share of what it was."""

DENSE = 0.05
"""Parts with a smaller share of zeros are dense."""

SPREADS = 3.0
"""Residuals are usual up to this many spreads above their median."""

NEVER = 0.1
"""Residuals below this share of the typical norm are never unusual: 99 % of the square is explained."""

VALLEY_FROM, VALLEY_DEPTH = 0.6, 0.5
"""A valley in the density of residuals: above this quantile, at most this share of the peak beyond it."""

BANDWIDTH = 0.5
"""Of the density, in units of Silverman's; the usual one smooths small groups away."""

FEWEST = 20
"""Residuals needed to look for a valley."""


def check_weight(name: str, value: Any, *, auto: bool) -> None:
    """Refuse what is no weight, nor the word for one that is to be chosen (``auto``)."""
    if not (auto and isinstance(value, str)):
        check_nonnegative(name, value)
    elif value != AUTO:
        msg = f'{name} must be "auto" or a finite number >= 0; got {value!r}.'
        raise TypeError(msg)


class ChosenSparsity:
    """Fitted attributes of a model that can choose its sparsity."""

    alpha_: float
    beta_: float


def check_sparsity(model: Any) -> None:
    """Refuse an error that cannot be allowed, and parts of any norm where their sparsity is to be chosen."""
    check_nonnegative("extra_error", model.extra_error)
    if AUTO in (model.alpha, model.beta) and not model.unit_components:
        msg = (
            'Weights that are "auto" need unit_components=True: else factors get sparser by getting smaller. '
            "Give alpha and beta numbers, or set unit_components=True."
        )
        raise ValueError(msg)


@dataclass(frozen=True, eq=False)
class Ended:
    """A finished fit of a batch."""

    rule: Any
    state: State
    solution: Solution

    def best(self, restarts: int) -> tuple[Ended, np.ndarray]:
        """The best of each setting's ``restarts``, which stand side by side, and their places."""
        best = np.argmin(self.solution.objective.reshape(-1, restarts), axis=1)
        winners = np.arange(len(best)) * restarts + best
        return Ended(self.rule.take(winners), self.state.take(winners), self.solution), winners

    def found(self, *, residuals: bool = False) -> Found:
        """What the choice of weights needs of it; the rest can be forgotten."""
        problem, factors = self.rule.problem, self.rule.factors(self.state)
        value = to_numpy(problem.total(problem.fit.row_values, *factors))
        norms = to_numpy(self.squared_residuals()) ** 0.5 if residuals else np.zeros((0, len(value)))
        return Found(State(*factors[:2]), value, norms)

    def squared_residuals(self) -> Array:
        """``‖x_i − U v_i‖²`` of every sample and setting, (n, B)."""
        return self.rule.problem.squared_residuals(*self.rule.factors(self.state))


@dataclass(eq=False)
class Found:
    """Factors of a batch, the value (B,) of their data term, and the residuals (n, B) if they are needed."""

    factors: State
    data_term: np.ndarray
    residuals: np.ndarray

    def handed_over(self) -> State:
        """The factors, which are no longer kept here: their memory is needed."""
        return vars(self).pop("factors")


Fit = Callable[[State, Mapping[str, np.ndarray], float], Ended]
"""``(first factors, weights (B,) by name, tol)``."""


@dataclass(frozen=True, eq=False)
class Weights:
    """Weights of a batch of settings by name, (B,) each; those in ``auto`` are yet to be chosen."""

    values: dict[str, np.ndarray]
    auto: frozenset[str] = frozenset()

    @classmethod
    def of(cls, given: Mapping[str, Sequence[float | str]]) -> Weights:
        """The ``given`` values; an "auto" in one setting of a weight stands for all of them."""
        auto = frozenset(name for name, values in given.items() if AUTO in values)
        values = {
            name: np.full(len(values), WITHOUT[name]) if name in auto else np.asarray(values, dtype=float)
            for name, values in given.items()
        }
        return cls(values, auto)

    def repeated(self, restarts: int) -> dict[str, np.ndarray]:
        """The values for every restart of every setting."""
        return {name: np.repeat(values, restarts) for name, values in self.values.items()}

    def chosen(self, model: Any, problem: Any, fit: Fit, found: Found) -> tuple[State, Weights]:
        """First factors and values for the last fit, from a fit without the weights that are ``auto``."""
        values = dict(self.values)
        loose = LOOSE * (model.tol or USUAL_TOL)
        if "gamma" in self.auto:
            with stage("choosing gamma"):
                problem, found = self._robust(problem, fit, found, values, loose)
        sides: list[str] = [name for name in ("alpha", "beta") if name in self.auto]
        if not sides:
            return found.handed_over(), Weights(values)
        state = self._sparse(model, problem, fit, found, values, sides, loose)
        if "gamma" in self.auto:  # sparse factors have larger residuals
            found = fit(state, values, loose).found(residuals=True)
            state, values["gamma"] = found.handed_over(), outlier_weights(problem, found.residuals)
        return state, Weights(values)

    @staticmethod
    def _robust(
        problem: Any, fit: Fit, found: Found, values: dict[str, np.ndarray], loose: float
    ) -> tuple[Any, Found]:
        """Put gamma into ``values``; the problem with it and a fit, which outliers no longer distort.

        Where they did by much, the residuals of that fit tell what is usual. The others go on as well, which
        is over soon: what becomes of a setting must not depend on those beside it.
        """
        first = values["gamma"] = outlier_weights(problem, found.residuals)
        found = fit(found.handed_over(), values, loose).found(residuals=True)
        again = outlier_weights(problem, found.residuals)
        values["gamma"] = np.where(again < DISTORTED * first, again, first)
        ended = fit(found.handed_over(), values, loose)
        return ended.rule.problem, ended.found()

    @staticmethod
    def _sparse(
        model: Any,
        problem: Any,
        fit: Fit,
        found: Found,
        values: dict[str, np.ndarray],
        sides: list[str],
        loose: float,
    ) -> State:
        """Put alpha and beta, as far as they are in ``sides``, into ``values``; factors near their fit."""
        U = found.factors.U
        costs = {name: _cost(model.penalty, F, U) for name, F in (("alpha", U), ("beta", found.factors.V))}
        # With missing entries both are penalised: a sparse part may hardly touch what is known of a sample,
        # and its code, free of charge, would grow without bound.
        either = len(sides) == 2 and not problem.data.weights
        chosen = sides_of(U) if either else dict.fromkeys(sides, np.ones(len(found.data_term)))
        sparsity = np.sum([chosen[name] * costs[name] for name in chosen], axis=0)
        # Where the parts explain little, as in texts, a small share of the error is all that they explain.
        explained = np.maximum(_without_parts(problem, U, found.factors.V) - found.data_term, 0)
        share = (1 + model.extra_error) ** degree_of(problem.fit) - 1
        spare = share * np.minimum(found.data_term, explained)
        with stage(f"choosing {' and '.join(sides)}", 2 * TRIALS + 1, "fits", at_most=True) as shown:
            search = Search(fit, values, chosen, found.data_term, spare, explained, shown.move)
            state, weight = search.sparsest(found.handed_over(), sparsity, loose, loose / LOOSE)
        values |= {name: side * weight for name, side in chosen.items()}
        return state


def usual_residual(r: np.ndarray, norm: float) -> float:
    """The largest usual residual among ``r`` (n,) of samples whose typical norm is ``norm``.

    Three spreads above the median, or less: where a smaller group of samples lies apart from the others, as
    damaged ones do, the valley between the two is the limit.
    """
    median = float(np.median(r))
    spread = 1.4826 * float(np.median(np.abs(r - median)))
    limit = max(median + SPREADS * spread, NEVER * norm)
    if len(r) < FEWEST or r.max() - median <= NEVER * norm or spread == 0:
        return limit
    density = gaussian_kde(r, lambda kde: BANDWIDTH * kde.silverman_factor())
    places = np.linspace(np.quantile(r, VALLEY_FROM), r.max(), 256)
    heights = density(places)
    beyond = np.maximum.accumulate(heights[::-1])[::-1]
    lowest = int(np.argmin(heights / beyond))
    deep = heights[lowest] <= VALLEY_DEPTH * beyond[lowest]
    return min(limit, max(float(places[lowest]), NEVER * norm)) if deep else limit


def outlier_weights(problem: Any, residuals: np.ndarray) -> np.ndarray:
    """Gamma (B,) such that usual ones among the ``residuals`` (n, B) are no outliers."""
    norm = float(np.sqrt(np.mean(to_numpy(problem.data.squared_norms))))
    limits = [usual_residual(r, norm) for r in residuals.T]
    return np.array([outlier_weight(problem.fit.row_norm, limit) for limit in limits])


def usual_gamma(model: Any, data: Any) -> float:
    """Gamma at which usual residuals of a robust ``model``, fitted to ``data``, are no outliers."""
    large = limited(data)
    norms = to_numpy((data if large is None else large.data).squared_norms)
    norm = float(np.sqrt(np.mean(norms))) / model.scale_
    limit = usual_residual(to_numpy(model.residual_norm_) / model.scale_, norm)
    return outlier_weight(ROW_NORMS[model.row_norm](), limit)


def outlier_weight(row_norm: Any, limit: float) -> float:
    """The least gamma at which a residual of norm ``limit`` (``> 0``) is no outlier."""
    low, high = limit, (1 + limit) ** 2
    for _ in range(60):
        middle = (low + high) / 2
        kept = kept_share(row_norm, np.array([[limit]]), np.array([middle / 2]))
        low, high = (low, middle) if kept[0, 0] == 1 else (middle, high)
    return high


def sides_of(U: Array) -> dict[str, np.ndarray]:
    """Which factor is to be sparse, (B,) of 0 and 1 each: U (alpha), or V (beta) where U is dense by nature.

    Parts of pictures, texts and counts have zeros without any penalty. Spectra have none: there
    sparse codes, few substances in each sample, make the parts pure.
    """
    parts = share_of_zeros(U) >= DENSE
    return {"alpha": parts.astype(float), "beta": 1.0 - parts}


def _without_parts(problem: Any, U: Array, V: Array) -> np.ndarray:
    """The data term (B,) of no parts at all or, where that is infinite, of one: sums of rows and columns."""
    if problem.fit.quadratic:
        U, V = 0 * U, V * 0
    else:
        ones = namespace(V).ones_like
        U, V = problem.data.t_times(ones(V[:, :, :1])), problem.data.times(ones(U[:, :, :1]))
        V = V / float(total(V[:, 0, 0], axis=0))

    return to_numpy(problem.total(partial(_projected_values, problem.fit), U, V, V))


def _projected_values(fit: Any, block: Any, U: Array, V: Array, _: Array) -> Array:
    return fit.row_values(block, U, V, fit.project(block, U))


def _cost(penalty: str, F: Array, pattern: Array) -> np.ndarray:
    """The penalty of a factor of every setting, with weight 1."""
    value = PENALTIES[penalty](like(np.ones(F.shape[1]), pattern)).value
    return F.total(value) if isinstance(F, Elsewhere) else to_numpy(value(F))
