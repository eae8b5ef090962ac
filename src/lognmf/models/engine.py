"""The one way to fit: start → rule → iterate → finish, for a batch of settings of one model.

``fit`` is a batch of one setting, a grid a batch of settings and seeds. Each setting has ``n_init`` starts,
and the one with the lowest objective wins.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp
from sklearn.utils import check_random_state

from lognmf.core import starts
from lognmf.core.arrays import Array, like, namespace, to_numpy
from lognmf.core.data import InMemory
from lognmf.core.loop import OnEval, OnState, iterate
from lognmf.core.parallel import threads_for
from lognmf.core.rule import Solution, State
from lognmf.graph import Graphs
from lognmf.models.starts import NEIGHBOURS, spectral

if TYPE_CHECKING:
    from lognmf.models.base import FactorModel

Factors = tuple[Array, Array]


@dataclass(frozen=True, eq=False)
class Fits:
    """Finished fits of one model, one per setting: the winner among each setting's starts."""

    rule: Any
    state: State
    objective: np.ndarray
    graph: sp.csr_array | None
    solution: Solution
    winners: np.ndarray

    @property
    def n_iter(self) -> np.ndarray:
        """Iterations of every setting."""
        return self.solution.n_iter[self.winners]

    @property
    def stop_reason(self) -> list[str]:
        """Why every setting ended."""
        return [self.solution.reason[b] for b in self.winners]

    def history(self, setting: int) -> dict[str, np.ndarray]:
        """Iteration, seconds and objective of every evaluation of a setting."""
        return self.solution.history_of(int(self.winners[setting]))

    @property
    def factors(self) -> Factors:
        """U (p, B, k) and V (n, B, k)."""
        return self.rule.factors(self.state)[:2]

    @property
    @np.errstate(over="ignore", invalid="ignore")  # squares of parts, in float32 and with huge weights
    def reconstruction_err(self) -> np.ndarray:
        """``‖X − V Uᵀ‖_F`` of every setting."""
        return np.sqrt(to_numpy(self.rule.squared_error(self.state)))

    @np.errstate(over="ignore", invalid="ignore")
    def outlier_part(self) -> tuple[Array, Array, Array] | None:
        """Share, norm and residual norm of every sample, each (n, B); None for models without outliers."""
        problem = getattr(self.rule, "problem", None)
        if problem is None or not hasattr(problem.fit, "outlier_part"):
            return None
        U, V, XU = self.rule.factors(self.state)
        blocks = [
            problem.fit.squared_residuals(block, U, V[rows, ...], XU[rows, ...])
            for rows, block in problem.data.blocks()
        ]
        squared = namespace(U).concat(blocks, axis=0)
        return (*problem.fit.outlier_part(squared), squared**0.5)


def draw(
    model: FactorModel,
    data: InMemory,
    graphs: Graphs,
    seed: Any,
    given: Sequence[Array | None] = (None, None),
) -> Factors:
    """First factors of all restarts, as a batch; ``given`` factors, a batch of one, are not drawn."""
    if all(F is not None for F in given):
        return given[0], given[1]
    start = model._starts[model.init]
    if start is spectral:
        start = functools.partial(spectral, W=graphs.knn(NEIGHBOURS))
    drawn = starts.batch(start, data.X, model.n_components, model.n_init, check_random_state(seed))
    first = []
    for F, own in zip(drawn, given, strict=True):
        F = like(F, data.pattern)
        xp = namespace(F)
        first.append(F if own is None else xp.asarray(xp.broadcast_to(own, F.shape), copy=True))
    return first[0], first[1]


@np.errstate(over="ignore", invalid="ignore")  # the loop refuses objectives that are not finite, in words
def fit_batch(
    model: FactorModel,
    data: InMemory,
    graphs: Graphs,
    first: Factors,
    *,
    max_iter: int,
    settings: int = 1,
    weights: Mapping[str, Sequence[float]] | None = None,
    wrap: Callable[[Any], Any] | None = None,
    on_eval: OnEval | None = None,
    on_state: OnState | None = None,
) -> Fits:
    """Fit ``model`` for every setting of its ``weights``; ``first`` holds the starts of each, side by side.

    Weights that are not given are the model's own. ``wrap`` may put a rule around the model's own that
    carries more in its state.
    """
    U, V = model._prepare(*first)
    restarts = V.shape[1] // settings
    own = {name: [getattr(model, name)] * settings for name in model._weights}
    batch = {
        name: like(np.repeat(np.asarray(values, dtype=float), restarts), V)
        for name, values in (own | dict(weights or {})).items()
    }
    W = model._graph(graphs, batch)
    rule = model._rule(data, W, batch)
    stepping = rule if wrap is None else wrap(rule)
    with threads_for(data.X, V.shape[1] * V.shape[2]):
        solution = iterate(
            stepping,
            stepping.start(U, V),
            max_iter=max_iter,
            tol=model.tol,
            eval_every=model.eval_every,
            on_eval=on_eval,
            on_state=on_state,
        )
        best = np.argmin(solution.objective.reshape(settings, restarts), axis=1)
        winners = np.arange(settings) * restarts + best
        rule, ended = rule.take(winners), solution.state.take(winners)
        state = model._finish(ended)
        objective = solution.objective[winners] if state is ended else to_numpy(rule.value(state))
    return Fits(rule, state, objective, W, solution, winners)
