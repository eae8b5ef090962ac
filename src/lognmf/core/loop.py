"""The only loop: steps, evaluation, stopping, history, callbacks."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Protocol

import numpy as np

from lognmf.core.arrays import Array, to_numpy
from lognmf.core.state import Solution, State


class Rule(Protocol):
    """One iteration of a method, for a whole batch at once.

    A rule whose objective may rise on its way has a further method,
    ``settled(state, tol)`` (B,), that says which settings have converged.
    """

    def step(self, state: State) -> State:
        """Make one iteration; the given state stays as it is."""

    def value(self, state: State) -> Array:
        """Objective of every setting, shape (B,)."""

    def take(self, index: np.ndarray) -> Rule:
        """The rule for the settings ``index`` of the batch."""


OnEval = Callable[[int, np.ndarray], bool | None]
"""Called with the iteration and the objectives of the settings still running; True stops."""


def iterate(
    rule: Rule,
    state: State,
    *,
    max_iter: int,
    tol: float,
    eval_every: int = 10,
    on_eval: OnEval | None = None,
) -> Solution:
    """Repeat ``rule`` until every setting has converged or ``max_iter`` is reached.

    The objective is evaluated every ``eval_every`` steps. A setting has converged when
    its objective fell by at most ``tol`` times its value per step since the last
    evaluation, or when its rule says it has settled; it then leaves the batch, so a
    setting's result does not depend on its company. ``tol=0`` makes exactly ``max_iter``
    steps.
    """
    running = np.arange(state.batch)
    n_iter = np.zeros(state.batch, dtype=int)
    reason = ["max_iter"] * state.batch
    ended: list[tuple[np.ndarray, State]] = []
    log = _Log(state.batch)
    current = log.record(0, running, rule.value(state))

    done = 0
    while done < max_iter and running.size:
        steps = min(eval_every, max_iter - done)
        for _ in range(steps):
            state = rule.step(state)
        done += steps
        previous, current = current, log.record(done, running, rule.value(state))
        n_iter[running] = done
        if on_eval is not None and on_eval(done, current):
            for b in running:
                reason[b] = "callback"
            break
        if tol == 0:
            continue
        if hasattr(rule, "settled"):
            converged = to_numpy(rule.settled(state, tol))
        else:
            converged = previous - current <= tol * steps * np.abs(previous)
        if converged.any():
            for b in running[converged]:
                reason[b] = "converged"
            ended.append((running[converged], state.take(np.flatnonzero(converged))))
            stay = np.flatnonzero(~converged)
            running, current = running[stay], current[stay]
            state, rule = state.take(stay), rule.take(stay)

    if running.size:
        ended.append((running, state))
    order = np.concatenate([index for index, _ in ended])
    final = State.join([part for _, part in ended])
    if len(ended) > 1:
        final = final.take(np.argsort(order))
    return Solution(final, log.last, log.history(), n_iter, reason)


class _Log:
    """Objectives as they come in; refuses what is not a number."""

    def __init__(self, batch: int) -> None:
        self.start = time.perf_counter()
        self.last = np.full(batch, np.nan)
        self.rows: list[tuple[int, float, np.ndarray]] = []

    def record(self, iteration: int, running: np.ndarray, value: Array) -> np.ndarray:
        current = np.array(to_numpy(value), dtype=np.float64)
        if not np.isfinite(current).all():
            msg = (
                f"The objective is no longer finite after {iteration} iterations: the data, the "
                "start or the weights are too large for the data type. Scale the data (unit-norm "
                "samples are usual), choose smaller weights, or use float64."
            )
            raise FloatingPointError(msg)
        self.last[running] = current
        row = np.full(self.last.shape, np.nan)
        row[running] = current
        self.rows.append((iteration, time.perf_counter() - self.start, row))
        return current

    def history(self) -> dict[str, np.ndarray]:
        iteration, seconds, objective = zip(*self.rows, strict=True)
        return {
            "iteration": np.array(iteration),
            "seconds": np.array(seconds),
            "objective": np.stack(objective),
        }
