"""The only loop: steps, evaluation, stopping, history, callbacks."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection
from typing import Any

import numpy as np

from lognmf.core.arrays import Array, to_numpy
from lognmf.core.rule import Solution, State, Steps

OnEval = Callable[[int, np.ndarray], bool | None]
"""Called with the iteration and the objectives of the settings still running; True stops."""

OnState = Callable[[int, Steps, State], None]
"""Called with the iteration, and rule and state of the settings that still move; its time is not counted."""

OnCheckpoint = Callable[[int, Solution], None]
"""Called with the iteration, and all settings as they are or ended before; its time is not counted."""

Keep = Callable[[Callable[[], Solution]], None]
"""Called after every evaluation with a function that gives the solution so far; its time is not counted."""

NOT_FINITE = (
    "The objective is no longer finite after {} iterations: the data, the start or the weights are too large "
    "for the data type. Scale the data (unit-norm samples are usual), choose smaller weights, or use float64."
)


def iterate(
    rule: Steps,
    state: State,
    *,
    max_iter: int,
    tol: float,
    eval_every: int = 10,
    on_eval: OnEval | None = None,
    on_state: OnState | None = None,
    checkpoints: Collection[int] = (),
    on_checkpoint: OnCheckpoint | None = None,
    keep: Keep | None = None,
    before: int = 0,
) -> Solution:
    """Repeat ``rule`` until every setting has converged or ``max_iter`` is reached.

    The objective is evaluated every ``eval_every`` steps. A setting has converged when
    its objective fell by at most ``tol`` times its value per step since the last
    evaluation, or when its rule says it has settled; it then leaves the batch, so a
    setting's result does not depend on its company. ``tol=0`` makes exactly ``max_iter``
    steps; settings that a step leaves as they are, such as those that collapsed to zero, are
    then counted on without being computed.

    At every one of ``checkpoints``, up to ``max_iter`` and each after an evaluation or after the end, the
    solution is what a loop with that ``max_iter`` would return. Iterations are counted from ``before``, those
    that another loop has made.
    """
    batch = state.batch
    n_iter, reason, log = np.full(batch, before), ["max_iter"] * batch, _Log(batch)
    running = np.arange(batch)
    moving = running  # those of them that the batch still holds
    ended: list[tuple[np.ndarray, State]] = []
    current = log.record(before, running, moving, rule.value(state))
    log.show(on_state, before, rule, state)
    waiting = sorted(checkpoints)

    def solution() -> Solution:
        return Solution(
            _joined(ended, moving, state), log.last.copy(), log.history(), n_iter.copy(), [*reason]
        )

    def show_checkpoints(until: float) -> None:
        while on_checkpoint is not None and waiting and waiting[0] <= until:
            log.pause(on_checkpoint, waiting.pop(0), solution())

    done = before
    show_checkpoints(done)
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
        leaving = _leaving(rule, state, tol, steps, previous, current)
        if leaving.any():
            ended.append((moving[leaving], state.take(np.flatnonzero(leaving))))
            stay = np.flatnonzero(~leaving)
            if tol > 0:
                for b in moving[leaving]:
                    reason[b] = "converged"
                running = moving[stay]
            moving, current = moving[stay], current[stay]
            state, rule = state.take(stay), rule.take(stay)
        show_checkpoints(done)
        if keep is not None:
            log.pause(keep, solution)

    show_checkpoints(np.inf)
    return solution()


def _joined(ended: list[tuple[np.ndarray, State]], moving: np.ndarray, state: State) -> State:
    """The settings that have ended and those that are ``moving``, in the order of their places."""
    parts = [*ended, (moving, state)] if moving.size else ended
    final = State.join([part for _, part in parts])
    return final.take(np.argsort(np.concatenate([index for index, _ in parts]))) if len(parts) > 1 else final


def _leaving(
    rule: Steps, state: State, tol: float, steps: int, previous: np.ndarray, current: np.ndarray
) -> np.ndarray:
    """Which settings have converged or, without a tolerance, come to rest, (B,)."""
    if tol == 0:
        return _at_rest(rule, state, current == previous)
    if hasattr(rule, "settled"):
        return to_numpy(rule.settled(state, tol))
    return previous - current <= tol * steps * np.abs(previous)


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
            raise FloatingPointError(NOT_FINITE.format(iteration))
        self.last[moving] = current
        row = np.full(self.last.shape, np.nan)
        row[running] = self.last[running]
        self.rows.append((iteration, time.perf_counter() - self.start, row))
        return current

    def show(self, on_state: OnState | None, iteration: int, rule: Steps, state: State) -> None:
        """Let a caller look at the state, off the clock."""
        if on_state is not None and state.batch:
            self.pause(on_state, iteration, rule, state)

    def pause(self, look: Callable[..., Any], *seen: Any) -> Any:
        """``look(*seen)``, off the clock."""
        began = time.perf_counter()
        found = look(*seen)
        self.start += time.perf_counter() - began
        return found

    def history(self) -> dict[str, np.ndarray]:
        iteration, seconds, objective = zip(*self.rows, strict=True)
        return {
            "iteration": np.array(iteration),
            "seconds": np.array(seconds),
            "objective": np.stack(objective),
        }
