"""The one way to fit: start → rule → iterate → finish, for a batch of settings of one model.

``fit`` is a batch of one setting, a grid a batch of settings and seeds. Each setting has ``n_init`` starts,
and the one with the lowest objective wins.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp
from sklearn.utils import check_random_state

from lognmf.core import starts
from lognmf.core.arrays import Array, like, namespace, to_numpy
from lognmf.core.blocks import AsMatrix, Blocks
from lognmf.core.data import Data, in_memory
from lognmf.core.loop import OnEval, OnState, iterate
from lognmf.core.parallel import threads_for
from lognmf.core.rule import Solution, State
from lognmf.core.terms.protocol import degree_of
from lognmf.graph import Graphs
from lognmf.models.checkpoint import Checkpoint, without_work
from lognmf.models.large_samples import Limited
from lognmf.models.on_workers import Remote, RemoteMultiplicative
from lognmf.models.remote_starts import draw_remote
from lognmf.models.starts import NEIGHBOURS, POWERS_OF_UNIT, spectral
from lognmf.models.weights import Ended, Found, Weights
from lognmf.progress import stage

if TYPE_CHECKING:
    from lognmf.models.base import FactorModel

Factors = tuple[Array, Array]


@dataclass(frozen=True, eq=False)
class Fits:
    """Finished fits of one model, one per setting: the winner among each setting's starts.

    What it gives is in the units of X; rule, state and solution are of ``X / unit``.
    """

    rule: Any
    state: State
    graph: sp.csr_array | None
    solution: Solution
    winners: np.ndarray
    weights: dict[str, np.ndarray]  # (B,) each, numbers also where the model says "auto"
    unit: float
    basis_has_unit: bool
    _objective: np.ndarray

    def light(self) -> Fits:
        """The same without what only further steps would need."""
        solution = without_work(self.rule, replace(self.solution, state=self.state))
        return replace(self, state=solution.state, solution=solution)

    @property
    def objective(self) -> np.ndarray:
        """Objective of every setting."""
        return self._objective * self.unit ** degree_of(self.rule)

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
        history = self.solution.history_of(int(self.winners[setting]))
        return history | {"objective": history["objective"] * self.unit ** degree_of(self.rule)}

    @property
    def factors(self) -> Factors:
        """U (p, B, k) and V (n, B, k)."""
        U, V = self.rule.factors(self.state)[:2]
        if self.unit == 1:
            return U, V
        return (U * self.unit, V) if self.basis_has_unit else (U, V * self.unit)

    @property
    @np.errstate(over="ignore", invalid="ignore")  # squares of parts, in float32 and with huge weights
    def reconstruction_err(self) -> np.ndarray:
        """``‖X − V Uᵀ‖_F`` of every setting."""
        return self.unit * np.sqrt(to_numpy(self.rule.squared_error(self.state)))

    @np.errstate(over="ignore", invalid="ignore")
    def outlier_part(self) -> tuple[Array, Array, Array] | None:
        """Share, norm and residual norm of every sample, each (n, B); None for models without outliers."""
        if isinstance(self.rule, RemoteMultiplicative):
            parts = self.rule.outlier_part(self.state)
            return parts and (parts[0], self.unit * parts[1], self.unit * parts[2])
        problem = getattr(self.rule, "problem", None)
        if problem is None or not hasattr(problem.fit, "outlier_part"):
            return None
        squared = Ended(self.rule, self.state, self.solution).squared_residuals()
        share, norm = problem.fit.outlier_part(squared)
        return share, self.unit * norm, self.unit * squared**0.5


def draw(
    model: FactorModel,
    data: Data,
    graphs: Graphs,
    seed: Any,
    given: Sequence[Array | None] = (None, None),
) -> Factors:
    """First factors of all restarts, as a batch; ``given`` factors, a batch of one, are not drawn."""
    if all(F is not None for F in given) and not isinstance(data, Remote):
        return given[0], given[1]
    with stage(f"computing the start ({model.init})"):
        if isinstance(data, Remote):
            return draw_remote(data, model, given, check_random_state(seed))
        return _drawn(model, data, graphs, seed, given)


def _drawn(
    model: FactorModel, data: Data, graphs: Graphs, seed: Any, given: Sequence[Array | None]
) -> Factors:
    """First factors of which at least one is drawn, in this process."""
    start = model._starts[model.init]
    if start is spectral:
        start = functools.partial(spectral, W=_start_graph(model, graphs))
    limit = model._limited(data) if model._starts[model.init] in POWERS_OF_UNIT else None
    even = data if limit is None else limit.data
    X = AsMatrix(replace(even, unit=1.0)) if isinstance(even, Blocks) else in_memory(even).X
    drawn = starts.batch(start, X, model.n_components, model.n_init, check_random_state(seed))
    first = []
    powers = POWERS_OF_UNIT.get(model._starts[model.init], (0.0, 0.0))
    for F, own, power in zip(drawn, given, powers, strict=True):
        F = like(F / data.unit**power, data.pattern)
        xp = namespace(F)
        first.append(F if own is None else xp.asarray(xp.broadcast_to(own, F.shape), copy=True))
    if limit is not None and given[1] is None:
        first[1] = limit.up(first[1])
    return first[0], first[1]


def _start_graph(model: FactorModel, graphs: Graphs) -> sp.csr_array:
    """The graph that the spectral start clusters: a given one, or that of `NEIGHBOURS` neighbours."""
    graph = getattr(model, "graph", None)
    graph = "knn" if graph is None else graph
    if isinstance(graph, str) and getattr(model, "lam", False) and model.n_neighbors > NEIGHBOURS:
        graphs.knn(model.n_neighbors, graph)  # the model needs it, and one search serves both
    return graphs.knn(NEIGHBOURS, graph)


def fit_batch(
    model: FactorModel,
    data: Data,
    graphs: Graphs,
    start: Factors,
    *,
    unit: float,
    max_iter: int,
    settings: int = 1,
    weights: Mapping[str, Sequence[float | str]] | None = None,
    wrap: Callable[[Any], Any] | None = None,
    on_eval: OnEval | None = None,
    on_state: OnState | None = None,
    checkpoints: Collection[int] = (),
    on_checkpoint: Callable[[int, Fits], None] | None = None,
    kept: Checkpoint | None = None,
) -> Fits:
    """Fit ``model`` for every setting of its ``weights``; ``start`` holds the starts of each, side by side.

    ``data`` are those of the user divided by ``unit``. Weights that are not given are the model's own; one
    that is "auto" is so for all settings. ``wrap`` may put a rule around the model's own that carries
    more in its state. ``on_checkpoint`` is given what a fit with that ``max_iter`` would return, if no
    weight is "auto" and the number is one of evaluations. ``kept`` are the fits so far, if an earlier process
    began them, and what this one makes.
    """
    first = [State(*model._prepare(*start))]  # handed over below, like all first factors: memory is needed
    del start
    batch, k = first[0].batch, first[0].V.shape[2]
    restarts = batch // settings
    own = {name: [getattr(model, name)] * settings for name in model._weights}
    chosen = Weights.of(own | dict(weights or {}))
    limit = model._limited(data) if "gamma" in chosen.auto and max_iter > 0 else None
    if limit is not None:  # all fits but the last are of limited samples
        first = [State(first[0].U, limit.down(first[0].V))]
    run = _Run(model, limit.data if limit else data, graphs, unit, max_iter, on_eval, kept)

    def finished(ended: Ended, winners: np.ndarray) -> Fits:
        state = model._finish(ended.state)
        objective = ended.solution.objective[winners]
        objective = objective if state is ended.state else to_numpy(ended.rule.value(state))
        own = (chosen.values, unit, model._basis_has_unit, objective)
        return Fits(ended.rule, state, run.graph, ended.solution, winners, *own)

    def look(iteration: int, ended: Ended) -> None:
        if on_checkpoint is not None:
            on_checkpoint(iteration, finished(*ended.best(restarts)))

    # The loop refuses objectives that are not finite, in words.
    with threads_for(data.stand_in, batch * k), np.errstate(over="ignore", invalid="ignore"):
        every = run.fit(first.pop(), chosen.repeated(restarts), model.tol, wrap, on_state, checkpoints, look)
        ended, winners = every.best(restarts)
        del every
        if chosen.auto and max_iter > 0 and not (run.stopped and limit is None):
            problem, found = ended.rule.problem, ended.found(residuals="gamma" in chosen.auto)
            del ended
            near, chosen = run.chosen(chosen, problem, found, limit)
            del found, problem
            ended, winners = run.fit(near, chosen.values, model.tol, wrap, on_state).best(1)
        return finished(ended, winners)


@dataclass
class _Run:
    """Fits of a batch from given factors with given weights, one after another; a callback ends them all."""

    model: FactorModel
    data: Data
    graphs: Graphs
    unit: float
    max_iter: int
    on_eval: OnEval | None
    kept: Checkpoint | None = None
    graph: sp.csr_array | None = None
    stopped: bool = False

    def fit(
        self,
        first: State,
        weights: Mapping[str, np.ndarray],
        tol: float,
        wrap: Callable[[Any], Any] | None = None,
        on_state: OnState | None = None,
        checkpoints: Collection[int] = (),
        look: Callable[[int, Ended], None] | None = None,
    ) -> Ended:
        """One fit."""
        ended_before = self.stopped
        batch = {name: like(values, first.U) for name, values in weights.items()}
        self.graph = self.model._graph(self.graphs, batch)
        rule = self.model._rule(self.data, self.graph, batch)
        stepping = rule if wrap is None else wrap(rule)
        keep = None if self.kept is None else self.kept.next_fit(self.data)
        since, finished = (keep and keep.read()) or (None, False)
        if since is not None and finished:
            return Ended(rule, since.state, since)
        state = [stepping.start(first.U, first.V) if since is None else since.state]
        del first
        solution = iterate(
            stepping,
            state.pop(),
            max_iter=0 if ended_before else self.max_iter,
            tol=tol,
            eval_every=self.model.eval_every,
            on_eval=functools.partial(self._watched, self.unit ** degree_of(rule)),
            on_state=on_state,
            checkpoints=checkpoints,
            on_checkpoint=look
            and (lambda iteration, found: look(iteration, Ended(rule, found.state, found))),
            keep=keep,
            since=since,
        )
        if keep is not None and not self.stopped:
            solution = without_work(rule, solution)
            solution = replace(solution, state=keep.write(solution, finished=True))
        if ended_before:
            solution = replace(solution, reason=["callback"] * len(solution.reason))
        return Ended(rule, solution.state, solution)

    def chosen(
        self, weights: Weights, problem: Any, found: Found, limit: Limited | None
    ) -> tuple[State, Weights]:
        """First factors and weights for the last fit, which is of all the data: none are limited any more."""
        if self.stopped:
            near = found.handed_over()
        else:
            near, weights = weights.chosen(self.model, problem, self.fit, found)
        if limit is not None:
            self.data, near = limit.whole, State(near.U, limit.up(near.V))
        return near, weights

    def _watched(self, unit: float, iteration: int, objective: np.ndarray) -> bool:
        """Let the caller look on; ``unit`` is that of the objective."""
        self.stopped = self.on_eval is not None and bool(self.on_eval(iteration, unit * objective))
        return self.stopped
