"""The one way to fit: start → rule → iterate, for a batch of settings of one model.

`fit` minimises with given weights; `lognmf.models.weights` stands above it and chooses those that are "auto".
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp
from sklearn.utils import check_random_state

from lognmf.core import starts
from lognmf.core.arrays import Array, like, namespace, to_numpy
from lognmf.core.blocks import AsMatrix, Blocks
from lognmf.core.data import Data, in_memory
from lognmf.core.loop import OnEval, OnState, iterate
from lognmf.core.rule import Solution, State
from lognmf.core.terms.protocol import degree_of
from lognmf.graph import Graphs
from lognmf.models.checkpoint import Checkpoint, without_work
from lognmf.models.on_workers import Remote, RemoteMultiplicative
from lognmf.models.remote_starts import draw_remote
from lognmf.models.starts import NEIGHBOURS, POWERS_OF_UNIT, spectral
from lognmf.progress import stage

if TYPE_CHECKING:
    from lognmf.models.base import FactorModel

Factors = tuple[Array, Array]


@dataclass(frozen=True, eq=False)
class Fit:
    """Finished fits of a batch of settings of one model.

    ``rule`` and ``solution`` are of ``X / unit``; the properties are in the units of X.
    """

    rule: Any
    solution: Solution
    weights: Mapping[str, np.ndarray]  # (B,) each
    graph: Any
    unit: float
    basis_has_unit: bool

    @property
    def state(self) -> State:
        """The last factors, of ``X / unit``."""
        return self.solution.state

    @property
    def factors(self) -> Factors:
        """U (p, B, k) and V (n, B, k)."""
        U, V = self.rule.factors(self.state)[:2]
        if self.unit == 1:
            return U, V
        return (U * self.unit, V) if self.basis_has_unit else (U, V * self.unit)

    @property
    def objective(self) -> np.ndarray:
        """Objective of every setting."""
        return self.solution.objective * self.unit ** degree_of(self.rule)

    @property
    def n_iter(self) -> np.ndarray:
        """Iterations of every setting."""
        return self.solution.n_iter

    @property
    def stop_reason(self) -> list[str]:
        """Why every setting ended."""
        return self.solution.reason

    def history(self, setting: int) -> dict[str, np.ndarray]:
        """Iteration, seconds and objective of every evaluation of a setting."""
        history = self.solution.history_of(setting)
        return history | {"objective": history["objective"] * self.unit ** degree_of(self.rule)}

    @property
    @np.errstate(over="ignore", invalid="ignore")  # squares of parts, in float32 and with huge weights
    def reconstruction_err(self) -> np.ndarray:
        """``‖X − V Uᵀ‖_F`` of every setting."""
        return self.unit * np.sqrt(to_numpy(self.rule.squared_error(self.state)))

    @property
    def data_term(self) -> np.ndarray:
        """The value of the data term of every setting, of ``X / unit``."""
        problem = self.rule.problem
        return to_numpy(problem.total(problem.fit.row_values, *self.rule.factors(self.state)))

    @property
    def squared_residuals(self) -> Array:
        """``‖x_i − U v_i‖²`` of every sample and setting (n, B), of ``X / unit``."""
        return self.rule.problem.squared_residuals(*self.rule.factors(self.state))

    @np.errstate(over="ignore", invalid="ignore")
    def outlier_part(self) -> tuple[Array, Array, Array] | None:
        """Share, norm and residual norm of every sample, each (n, B); None for models without outliers."""
        if isinstance(self.rule, RemoteMultiplicative):
            parts = self.rule.outlier_part(self.state)
            return parts and (parts[0], self.unit * parts[1], self.unit * parts[2])
        problem = getattr(self.rule, "problem", None)
        if problem is None or not hasattr(problem.fit, "outlier_part"):
            return None
        squared = self.squared_residuals
        share, norm = problem.fit.outlier_part(squared)
        return share, self.unit * norm, self.unit * squared**0.5

    def best(self, restarts: int) -> Fit:
        """The start with the lowest objective of each setting, whose ``restarts`` stand side by side."""
        objective = self.solution.objective.reshape(-1, restarts)
        winners = np.arange(len(objective)) * restarts + np.argmin(objective, axis=1)
        weights = {name: values[winners] for name, values in self.weights.items()}
        return replace(
            self, rule=self.rule.take(winners), solution=self.solution.take(winners), weights=weights
        )

    def moved(self, state: State, weights: Mapping[str, np.ndarray] | None = None) -> Fit:
        """The same with other factors and weights, for another fit to start from."""
        solution = replace(self.solution, state=state)
        return replace(self, solution=solution, weights=self.weights if weights is None else weights)

    def light(self) -> Fit:
        """The same without what only further steps would need."""
        return replace(self, solution=without_work(self.rule, self.solution))


@dataclass
class Watch:
    """Shows every evaluation of some fits to a caller, who may stop them all."""

    on_eval: OnEval | None = None
    stopped: bool = False

    def __call__(self, unit: float, iteration: int, objective: np.ndarray) -> bool:
        """One evaluation; ``unit`` is that of the objective."""
        self.stopped = self.on_eval is not None and bool(self.on_eval(iteration, unit * objective))
        return self.stopped


@dataclass(frozen=True, eq=False)
class Setup:
    """What the fits of one call share: the model, and ``data``, which are those of the user over ``unit``."""

    model: FactorModel
    data: Data
    graphs: Graphs
    unit: float
    max_iter: int
    watch: Watch = field(default_factory=Watch)
    kept: Checkpoint | None = None  # the fits so far, if an earlier process began them


def fit(
    setup: Setup,
    start: State,
    weights: Mapping[str, np.ndarray],
    tol: float,
    *,
    restarts: int = 1,
    wrap: Callable[[Any], Any] | None = None,
    on_state: OnState | None = None,
    checkpoints: Collection[int] = (),
    on_checkpoint: Callable[[int, Fit], None] | None = None,
) -> Fit:
    """Fit every setting of the ``weights`` (B,); ``start`` holds its ``restarts`` side by side.

    After a caller has stopped one of the fits, the others make no iteration. ``wrap`` may put a rule around
    the model's own that carries more in its state. ``on_checkpoint`` is given what a fit with that
    ``max_iter`` would return, if the number is one of evaluations.
    """
    model, stopped = setup.model, setup.watch.stopped
    repeated = {name: np.repeat(values, restarts) for name, values in weights.items()}
    batch = {name: like(values, start.U) for name, values in repeated.items()}
    graph = model._graph(setup.graphs, batch)
    rule = model._rule(setup.data, graph, batch)
    stepping = rule if wrap is None else wrap(rule)

    def fitted(solution: Solution) -> Fit:
        return Fit(rule, solution, repeated, graph, setup.unit, model.spec.basis_has_unit).best(restarts)

    keep = None if setup.kept is None else setup.kept.next_fit(setup.data)
    since, finished = (keep and keep.read()) or (None, False)
    if since is not None and finished:
        return fitted(since)
    solution = iterate(
        stepping,
        stepping.start(start.U, start.V) if since is None else since.state,
        max_iter=0 if stopped else setup.max_iter,
        tol=tol,
        eval_every=model.eval_every,
        on_eval=functools.partial(setup.watch, setup.unit ** degree_of(rule)),
        on_state=on_state,
        checkpoints=checkpoints,
        on_checkpoint=on_checkpoint and (lambda iteration, found: on_checkpoint(iteration, fitted(found))),
        keep=keep,
        since=since,
    )
    if keep is not None and not setup.watch.stopped:
        solution = without_work(rule, solution)
        solution = replace(solution, state=keep.write(solution, finished=True))
    if stopped:
        solution = replace(solution, reason=["callback"] * len(solution.reason))
    return fitted(solution)


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
    start = model.spec.starts[model.init]
    if start is spectral:
        start = functools.partial(spectral, W=_start_graph(model, graphs))
    limit = model._limited(data) if model.spec.starts[model.init] in POWERS_OF_UNIT else None
    even = data if limit is None else limit.data
    X = AsMatrix(replace(even, unit=1.0)) if isinstance(even, Blocks) else in_memory(even).X
    drawn = starts.batch(start, X, model.n_components, model.n_init, check_random_state(seed))
    first = []
    powers = POWERS_OF_UNIT.get(model.spec.starts[model.init], (0.0, 0.0))
    for F, own, power in zip(drawn, given, powers, strict=True):
        F = like(F / data.unit**power, data.pattern)
        xp = namespace(F)
        first.append(F if own is None else xp.asarray(xp.broadcast_to(own, F.shape), copy=True))
    if limit is not None and given[1] is None:
        first[1] = limit.up(first[1])
    return first[0], first[1]


def _start_graph(model: FactorModel, graphs: Graphs) -> sp.csr_array:
    """The graph that the spectral start clusters: a given one, or that of `NEIGHBOURS` neighbours."""
    graph = "knn" if model.graph is None else model.graph
    used = model.spec.graph_weight and getattr(model, model.spec.graph_weight)
    if isinstance(graph, str) and used and model.n_neighbors > NEIGHBOURS:
        graphs.knn(model.n_neighbors, graph)  # the model needs it, and one search serves both
    return graphs.knn(NEIGHBOURS, graph)
