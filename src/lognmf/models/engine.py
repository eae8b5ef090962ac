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

from lognmf.blocks.checkpoint import Checkpoint, Resumed
from lognmf.core import starts
from lognmf.core.arrays import Array, like, namespace, to_numpy
from lognmf.core.data import Data
from lognmf.core.loop import OnEval, OnState, iterate
from lognmf.core.problem import row_values
from lognmf.core.rows import Rows, each
from lognmf.core.rule import Solution, State
from lognmf.core.terms.protocol import degree_of
from lognmf.graph import Graphs
from lognmf.models.starts import NEIGHBOURS
from lognmf.progress import stage

if TYPE_CHECKING:
    from lognmf.models.base import FactorModel

Factors = tuple[Array, Rows]


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
        return to_numpy(problem.total(row_values, *self.rule.factors(self.state)))

    @property
    def squared_residuals(self) -> Rows:
        """``‖x_i − U v_i‖²`` of every sample and setting (n, B), of ``X / unit``."""
        return self.rule.problem.squared_residuals(*self.rule.factors(self.state))

    @np.errstate(over="ignore", invalid="ignore")
    def outlier_part(self) -> tuple[Rows, Rows, Rows] | None:
        """Share, norm and residual norm of every sample, each (n, B); None for models without outliers."""
        problem = getattr(self.rule, "problem", None)
        if problem is None or not hasattr(problem.fit, "outlier_part"):
            return None
        squared = self.squared_residuals
        share = each(_outlier_share, squared, shared=(problem.fit,))
        norm = each(_outlier_norm, squared, shared=(problem.fit,))
        return share, norm * self.unit, squared**0.5 * self.unit

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
        if not hasattr(self.rule, "problem"):
            return self
        return self.moved(State(self.state.U, self.state.V, self.state.aux[:1]))


def _outlier_share(squared: Array, fit: Any) -> Array:
    return fit.outlier_part(squared)[0]


def _outlier_norm(squared: Array, fit: Any) -> Array:
    return fit.outlier_part(squared)[1]


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
    before: int = 0  # iterations that an earlier process has made
    first: State | None = None  # where the first fit of every setting began, if a chooser begins there again


def fit(
    setup: Setup,
    start: State,
    weights: Mapping[str, np.ndarray],
    tol: float,
    *,
    restarts: int = 1,
    on_state: OnState | None = None,
    checkpoints: Collection[int] = (),
    on_checkpoint: Callable[[int, Fit], None] | None = None,
    saved: Checkpoint | None = None,
) -> Fit:
    """Fit every setting of the ``weights`` (B,); ``start`` holds its ``restarts`` side by side.

    After a caller has stopped one of the fits, the others make no iteration. ``on_checkpoint`` is given what
    a fit with that ``max_iter`` would return, if the number is one of evaluations. The fit so far is written
    to ``saved``.
    """
    model, stopped = setup.model, setup.watch.stopped
    repeated = {name: np.repeat(values, restarts) for name, values in weights.items()}
    batch = {name: like(values, start.U) for name, values in repeated.items()}
    graph = model._graph(setup.graphs, batch)
    rule = model._rule(setup.data, graph, batch)

    def fitted(solution: Solution) -> Fit:
        return Fit(rule, solution, repeated, graph, setup.unit, model.spec.basis_has_unit).best(restarts)

    def keep(solution: Callable[[], Solution]) -> None:
        if saved is not None and saved.due:
            found = fitted(solution())
            chosen = {name: float(values[0]) for name, values in found.weights.items()}
            saved.write(Resumed(found.state.U, found.state.V, chosen, int(found.n_iter[0])))

    solution = iterate(
        rule,
        rule.start(start.U, start.V),
        max_iter=0 if stopped else setup.max_iter,
        tol=tol,
        eval_every=model.eval_every,
        on_eval=functools.partial(setup.watch, setup.unit ** degree_of(rule)),
        on_state=on_state,
        checkpoints=checkpoints,
        on_checkpoint=on_checkpoint and (lambda iteration, found: on_checkpoint(iteration, fitted(found))),
        keep=None if saved is None else keep,
        before=setup.before,
    )
    if stopped:
        solution = replace(solution, reason=["callback"] * len(solution.reason))
    return fitted(solution)


def draw(
    model: FactorModel,
    data: Data,
    graphs: Graphs,
    seed: Any,
    given: Sequence[Rows | None] = (None, None),
) -> Factors:
    """First factors of all restarts, as a batch; ``given`` factors, a batch of one, are not drawn."""
    if all(F is not None for F in given):
        return given[0], given[1]
    start = model.spec.starts[model.init]
    with stage(f"computing the start ({model.init})"):
        options = {"W": _start_graph(model, graphs)} if start.of_graph else {}
        limit = model._limited(data) if any(start.powers) else None
        even = data if limit is None else limit.data
        rng = check_random_state(seed)
        U, V = starts.batch(start, even, model.n_components, model.n_init, rng, **options)
        if limit is not None:
            V = limit.up(V)
        U0, V0 = (F if F is None else each(_repeated, F, shared=(model.n_init,)) for F in given)
        return U if U0 is None else U0, V if V0 is None else V0


def _repeated(F: Array, times: int) -> Array:
    """A batch of one, so many times."""
    return namespace(F).concat([F] * times, axis=1)


def _start_graph(model: FactorModel, graphs: Graphs) -> sp.csr_array:
    """The graph that the spectral start clusters: a given one, or that of `NEIGHBOURS` neighbours."""
    graph = "knn" if model.graph is None else model.graph
    used = model.spec.graph_weight and vars(model)[model.spec.graph_weight]
    if isinstance(graph, str) and used and model.n_neighbors > NEIGHBOURS:
        graphs.knn(model.n_neighbors, graph)  # the model needs it, and one search serves both
    return graphs.knn(NEIGHBOURS, graph)
