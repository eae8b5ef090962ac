"""The only loop: steps, evaluation, stopping, history, callbacks."""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np

from lognmf.core.arrays import Array, to_numpy
from lognmf.core.rule import Solution, State, Steps

OnEval = Callable[[int, np.ndarray], bool | None]
"""Called with the iteration and the objectives of the settings still running; True stops."""

OnState = Callable[[int, Steps, State], None]
"""Called with the iteration, and rule and state of the settings that still move; its time is not counted."""


def iterate(
    rule: Steps,
    state: State,
    *,
    max_iter: int,
    tol: float,
    eval_every: int = 10,
    on_eval: OnEval | None = None,
    on_state: OnState | None = None,
) -> Solution:
    """Repeat ``rule`` until every setting has converged or ``max_iter`` is reached.

    The objective is evaluated every ``eval_every`` steps. A setting has converged when
    its objective fell by at most ``tol`` times its value per step since the last
    evaluation, or when its rule says it has settled; it then leaves the batch, so a
    setting's result does not depend on its company. ``tol=0`` makes exactly ``max_iter``
    steps; settings that a step leaves as they are, such as those that collapsed to zero, are
    then counted on without being computed.
    """
    running = np.arange(state.batch)
    moving = running  # those of them that the batch still holds
    n_iter = np.zeros(state.batch, dtype=int)
    reason = ["max_iter"] * state.batch
    ended: list[tuple[np.ndarray, State]] = []
    log = _Log(state.batch)
    current = log.record(0, running, moving, rule.value(state))
    log.show(on_state, 0, rule, state)

    done = 0
    while done < max_iter and running.size:
        steps = min(eval_every, max_iter - done)
        if moving.size:
            for _ in range(steps):
                state = rule.step(state)
            value = rule.value(state)
        else:
            value = current
        done += steps
        previous, current = current, log.record(done, running, moving, value)
        n_iter[running] = done
        log.show(on_state, done, rule, state)
        if on_eval is not None and on_eval(done, log.last[running]):
            for b in running:
                reason[b] = "callback"
            break
        if tol == 0:
            leaving = _at_rest(rule, state, current == previous)
        elif hasattr(rule, "settled"):
            leaving = to_numpy(rule.settled(state, tol))
        else:
            leaving = previous - current <= tol * steps * np.abs(previous)
        if leaving.any():
            ended.append((moving[leaving], state.take(np.flatnonzero(leaving))))
            stay = np.flatnonzero(~leaving)
            if tol > 0:
                for b in moving[leaving]:
                    reason[b] = "converged"
                running = moving[stay]
            moving, current = moving[stay], current[stay]
            state, rule = state.take(stay), rule.take(stay)

    if moving.size:
        ended.append((moving, state))
    order = np.concatenate([index for index, _ in ended])
    final = State.join([part for _, part in ended])
    if len(ended) > 1:
        final = final.take(np.argsort(order))
    return Solution(final, log.last, log.history(), n_iter, reason)


def _at_rest(rule: Steps, state: State, candidates: np.ndarray) -> np.ndarray:
    """Which of the ``candidates`` (B,) a further step leaves as they are, to the last bit."""
    at_rest = np.zeros_like(candidates)
    index = np.flatnonzero(candidates)
    if index.size:
        before = state.take(index)
        at_rest[index] = before.equals(rule.take(index).step(before))
    return at_rest


class _Log:
    """Objectives as they come in; raises an error where one is not finite."""

    def __init__(self, batch: int) -> None:
        self.start = time.perf_counter()
        self.last = np.full(batch, np.nan)
        self.rows: list[tuple[int, float, np.ndarray]] = []

    def record(self, iteration: int, running: np.ndarray, moving: np.ndarray, value: Array) -> np.ndarray:
        """Keep the ``value`` of the ``moving`` settings; those of the other running ones stay."""
        current = np.array(to_numpy(value), dtype=np.float64)
        if not np.isfinite(current).all():
            msg = (
                f"The objective is no longer finite after {iteration} iterations: the data, the "
                "start or the weights are too large for the data type. Scale the data (unit-norm "
                "samples are usual), choose smaller weights, or use float64."
            )
            raise FloatingPointError(msg)
        self.last[moving] = current
        row = np.full(self.last.shape, np.nan)
        row[running] = self.last[running]
        self.rows.append((iteration, time.perf_counter() - self.start, row))
        return current

    def show(self, on_state: OnState | None, iteration: int, rule: Steps, state: State) -> None:
        """Let a caller look at the state, off the clock."""
        if on_state is not None and state.batch:
            began = time.perf_counter()
            on_state(iteration, rule, state)
            self.start += time.perf_counter() - began

    def history(self) -> dict[str, np.ndarray]:
        iteration, seconds, objective = zip(*self.rows, strict=True)
        return {
            "iteration": np.array(iteration),
            "seconds": np.array(seconds),
            "objective": np.stack(objective),
        }
