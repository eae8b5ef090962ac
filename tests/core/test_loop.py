"""Stopping, history and callbacks of the one loop."""

import numpy as np
import pytest

from lognmf.core.loop import iterate
from lognmf.core.state import State


class Halving:
    """A rule whose objective halves its distance to 1 at every step."""

    def __init__(self, rate):
        self.rate = np.asarray(rate, dtype=float)

    def step(self, state):
        return State(state.U, 1 + (state.V - 1) * self.rate[None, :, None])

    def value(self, state):
        return state.V[0, :, 0]

    def take(self, index):
        return Halving(self.rate[index])


def start(B=1, value=9.0):
    return State(np.zeros((1, B, 1)), np.full((1, B, 1), value))


def test_tol_zero_makes_exactly_max_iter_steps():
    solution = iterate(Halving([0.5]), start(), max_iter=23, tol=0, eval_every=10)
    assert solution.n_iter.tolist() == [23]
    assert solution.reason == ["max_iter"]
    assert solution.history["iteration"].tolist() == [0, 10, 20, 23]
    np.testing.assert_allclose(solution.history_of(0)["objective"][-1], 1 + 8 * 0.5**23)
    assert (np.diff(solution.history["seconds"]) >= 0).all()


def test_no_steps():
    solution = iterate(Halving([0.5]), start(), max_iter=0, tol=1e-5)
    assert solution.n_iter.tolist() == [0]
    assert solution.objective.tolist() == [9.0]


@pytest.mark.parametrize("every", [1, 5])
def test_settings_leave_in_their_own_time_and_keep_their_place(every):
    rates = [0.9, 0.1, 0.5]
    solution = iterate(Halving(rates), start(3), max_iter=1000, tol=1e-3, eval_every=every)
    assert solution.reason == ["converged"] * 3
    assert solution.n_iter[1] < solution.n_iter[2] < solution.n_iter[0]
    for b, rate in enumerate(rates):
        expected = 1 + 8 * rate ** solution.n_iter[b]
        np.testing.assert_allclose(solution.state.V[0, b, 0], expected)
        np.testing.assert_allclose(solution.objective[b], expected)
        assert solution.history_of(b)["iteration"][-1] == solution.n_iter[b]


def test_tolerance_is_per_step():
    """The same tolerance stops at about the same place however rarely one looks."""
    ends = [
        iterate(Halving([0.9]), start(), max_iter=1000, tol=1e-3, eval_every=e).n_iter[0] for e in (1, 10)
    ]
    assert abs(ends[0] - ends[1]) <= 10


def test_callback_sees_and_stops():
    seen = []

    def watch(iteration, objective):
        seen.append((iteration, objective.copy()))
        return iteration >= 20

    solution = iterate(Halving([0.5, 0.9]), start(2), max_iter=100, tol=0, eval_every=10, on_eval=watch)
    assert [iteration for iteration, _ in seen] == [10, 20]
    assert solution.reason == ["callback", "callback"]
    assert solution.n_iter.tolist() == [20, 20]


def test_a_number_that_is_none_is_refused():
    with pytest.raises(FloatingPointError, match="no longer finite after 0 iterations"):
        iterate(Halving([0.5]), start(value=np.inf), max_iter=5, tol=0)
