"""Weights chosen from the data: the sparsest parts that the error allows, the usual size of residuals.

All of it works on batches of settings, by fits of the engine.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from lognmf.blocks.checkpoint import Checkpoint
from lognmf.core.arrays import to_numpy
from lognmf.core.data import Data
from lognmf.core.loop import OnEval, OnState
from lognmf.core.rule import State
from lognmf.core.threads import threads_for
from lognmf.graph import Graphs
from lognmf.models.engine import Factors, Fit, Setup, Watch, fit
from lognmf.models.outlying import choose_gamma
from lognmf.models.sparsest import choose_sparsity
from lognmf.parameters import check_nonnegative

AUTO = "auto"
"""The word that stands for a weight to be chosen."""


def check_weight(name: str, value: Any, *, auto: bool) -> None:
    """Refuse what is no weight, nor the word for one that is to be chosen (``auto``)."""
    if not (auto and isinstance(value, str)):
        check_nonnegative(name, value)
    elif value != AUTO:
        msg = f'{name} must be "auto" or a finite number >= 0; got {value!r}.'
        raise TypeError(msg)


def check_sparsity(model: Any) -> None:
    """Refuse an error that cannot be allowed, and parts of any norm where their sparsity is to be chosen."""
    check_nonnegative("extra_error", model.extra_error)
    if model.extra_error >= 1:
        msg = f"extra_error must be in [0, 1), a share of the error: 0.05 is 5 %; got {model.extra_error!r}."
        raise ValueError(msg)
    if AUTO in (model.alpha, model.beta) and not model.unit_components:
        msg = (
            'Weights that are "auto" need unit_components=True: else factors get sparser by getting smaller. '
            "Give alpha and beta numbers, or set unit_components=True."
        )
        raise ValueError(msg)


@dataclass(frozen=True)
class Chooser:
    """How a weight that is "auto" is chosen from the data, or several of them together.

    ``choose(setup, fit, names)`` gets a fit in which each of the weights ``names`` is ``without``. It returns
    one with values of these weights, and with factors from which the next fit is to start.
    """

    without: float
    choose: Callable[[Setup, Fit, Sequence[str]], Fit]
    robust: bool = False  # whether it begins anew, and from data whose large samples are scaled down


def fit_batch(
    model: Any,
    data: Data,
    graphs: Graphs,
    start: Factors,
    *,
    unit: float,
    max_iter: int,
    settings: int = 1,
    weights: Mapping[str, Sequence[float | str]] | None = None,
    on_eval: OnEval | None = None,
    on_state: OnState | None = None,
    checkpoints: Collection[int] = (),
    on_checkpoint: Callable[[int, Fit], None] | None = None,
    saved: Checkpoint | None = None,
    before: int = 0,
) -> Fit:
    """Fit ``model`` for every setting of its ``weights``; ``start`` holds the starts of each, side by side.

    ``data`` are those of the user divided by ``unit``. Weights that are not given are the model's own. A
    weight that is "auto" in one setting is chosen in all of them. ``on_state``, ``checkpoints`` and
    ``on_checkpoint`` are those of `engine.fit`, the latter two where no weight is "auto". The last fit is
    written to ``saved``; ``before`` are the iterations that an earlier process has made of it.
    """
    first = State(*model._prepare(*start))
    del start  # its memory is needed
    batch, k = first.batch, first.U.shape[2]
    given = {name: [vars(model)[name]] * settings for name in model.spec.weights} | dict(weights or {})
    auto = [name for name, values in given.items() if AUTO in values and max_iter > 0]
    values = {
        name: np.full(settings, model.spec.auto[name].without)
        if AUTO in column
        else np.asarray(column, float)
        for name, column in given.items()
    }
    setup = Setup(model, data, graphs, unit, max_iter, Watch(on_eval), before)
    limit = model._limited(data) if any(model.spec.auto[name].robust for name in auto) else None
    search = setup if limit is None else replace(setup, data=limit.data)
    if limit is not None:
        first = State(first.U, limit.down(first.V))
    if any(model.spec.auto[name].robust for name in auto):
        search = replace(search, first=first.take(np.arange(settings) * (batch // settings)))

    def finished(found: Fit) -> Fit:
        state = model._finish(found.state)
        if state is found.state:
            return found
        objective = to_numpy(found.rule.value(state))
        return replace(found, solution=replace(found.solution, state=state, objective=objective))

    def look(iteration: int, found: Fit) -> None:
        if on_checkpoint is not None:
            on_checkpoint(iteration, finished(found))

    looks: Any = {"checkpoints": checkpoints, "on_checkpoint": look}
    # The loop refuses objectives that are not finite, in words.
    with threads_for(data.stand_in, batch * k), np.errstate(over="ignore", invalid="ignore"):
        found = fit(
            search,
            first,
            values,
            model.tol,
            restarts=batch // settings,
            on_state=on_state,
            saved=None if auto else saved,
            **looks,
        )
        del first
        if not auto or (setup.watch.stopped and limit is None):
            return finished(found)
        if not setup.watch.stopped:
            found = choose_weights(search, found, auto)
        near, values = State(found.state.U, found.state.V), dict(found.weights)
        del found
        if limit is not None:
            near = State(near.U, limit.up(near.V))
        return finished(fit(setup, near, values, model.tol, on_state=on_state, saved=saved))


def choose_weights(setup: Setup, found: Fit, names: Sequence[str]) -> Fit:
    """Choose the weights ``names``, which ``found`` is without; the last fit is to start from the result.

    Each is chosen by the model's `Chooser`, in the model's order; weights with the same one, together.
    """
    together: dict[Chooser, list[str]] = {}
    for name, chooser in setup.model.spec.auto.items():
        if name in names:
            together.setdefault(chooser, []).append(name)
    for chooser, some in together.items():
        found = chooser.choose(setup, found, some)
    return found


OUTLIERS = Chooser(1e8, choose_gamma, robust=True)
"""How gamma is chosen: residuals of usual size are no outliers."""

SPARSITY = Chooser(0.0, choose_sparsity)
"""How alpha and beta are chosen: the largest weight within the error that is allowed."""
