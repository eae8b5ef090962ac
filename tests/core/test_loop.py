"""Stopping, history and callbacks of the one loop."""

import numpy as np
import pytest

from lognmf.core.data import InMemory
from lognmf.core.loop import iterate
from lognmf.core.problem import Problem
from lognmf.core.rule import State
from lognmf.core.solvers import Multiplicative
from lognmf.core.terms import Frobenius


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
    solution = iterate(Halving([0.5]), start(), max_iter=23, tol=0)
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


def test_two_settings_that_leave_in_the_other_order_keep_their_places():
    solution = iterate(Halving([0.9, 0.1]), start(2), max_iter=1000, tol=1e-3, eval_every=1)
    assert solution.n_iter[1] < solution.n_iter[0]
    np.testing.assert_array_equal(solution.state.V[0, :, 0], solution.objective)


def test_tolerance_is_per_step():
    """The same tolerance stops at about the same place however rarely one looks."""
    ends = [
        iterate(Halving([0.9]), start(), max_iter=1000, tol=1e-3, eval_every=e).n_iter[0] for e in (1, 10)
    ]
    assert abs(ends[0] - ends[1]) <= 10


@pytest.mark.parametrize("every", [1, 7])
@pytest.mark.parametrize("height", [0.0, 300.0, -300.0])
def test_where_it_ends_by_definition(height, every):
    """The first evaluation since the last of which the fall per step is at most tol times the value."""

    class Raised(Halving):
        def value(self, state):
            return super().value(state) + height

    solution = iterate(Raised([0.9]), start(), max_iter=1000, tol=1e-4, eval_every=every)
    values = height + 1 + 8 * 0.9 ** np.arange(1000)
    falls = (values[:-every:every] - values[every::every]) / every
    first = int(np.argmax(falls <= 1e-4 * np.abs(values[:-every:every])))
    assert solution.n_iter.tolist() == [(first + 1) * every]


def test_an_objective_of_zero_has_converged():
    solution = iterate(Halving([1.0]), start(value=0.0), max_iter=50, tol=1e-3, eval_every=5)
    assert solution.reason == ["converged"]
    assert solution.n_iter.tolist() == [5]


def test_a_rule_may_say_itself_that_it_has_settled():
    class Settling(Halving):
        def settled(self, state, tol):
            assert tol == 1e-9
            return state.V[0, :, 0] < 2

        def take(self, index):
            return Settling(self.rate[index])

    solution = iterate(Settling([0.5, 0.9, 1.0]), start(3), max_iter=50, tol=1e-9, eval_every=1)
    assert solution.n_iter.tolist() == [4, 20, 50]  # 8 · 0.5⁴ = 0.5, 8 · 0.9²⁰ = 0.97
    assert solution.reason == ["converged", "converged", "max_iter"]


def test_a_state_is_shown_at_every_evaluation_and_off_the_clock(monkeypatch):
    now, shown = [1.0], []
    monkeypatch.setattr("lognmf.core.loop.time.perf_counter", lambda: now[0])

    class Timed(Halving):
        def step(self, state):
            now[0] += 1
            return super().step(state)

        def take(self, index):
            return Timed(self.rate[index])

    def show(iteration, rule, state):
        now[0] += 50 * iteration
        shown.append((iteration, rule.rate.tolist(), state.V[0, :, 0].tolist()))

    solution = iterate(Timed([0.5, 0.0]), start(2), max_iter=6, tol=0, eval_every=2, on_state=show)
    # The second setting is at 1 from the first step on; that it rests is found at the second evaluation.
    assert shown == [
        (0, [0.5, 0.0], [9, 9]),
        (2, [0.5, 0.0], [3, 1]),
        (4, [0.5, 0.0], [1.5, 1]),
        (6, [0.5], [1.125]),
    ]
    assert solution.history["seconds"].tolist() == [0, 2, 4, 7]  # with the step that showed the rest


def test_nothing_is_shown_once_all_settings_rest():
    shown = []
    iterate(Halving([0.0]), start(), max_iter=9, tol=0, eval_every=1, on_state=lambda i, *_: shown.append(i))
    assert shown == [0, 1, 2]


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


class Falling:
    """A rule that counts down to zero and stays there; remembers how many settings it moved."""

    def __init__(self, moved):
        self.moved = moved

    def step(self, state):
        self.moved.append(state.batch)
        return State(state.U, np.maximum(state.V - 1, 0))

    def value(self, state):
        return 5 + state.V[0, :, 0]

    def take(self, index):
        return Falling(self.moved)


class TestSettingsAtRest:
    """With tol=0 a setting that no step changes leaves the batch, and nobody can tell."""

    @staticmethod
    def solve(heights, **options):
        moved = []
        state = State(np.zeros((1, len(heights), 1)), np.array(heights, dtype=float)[None, :, None])
        return iterate(Falling(moved), state, max_iter=35, tol=0, eval_every=5, **options), moved

    def test_as_if_it_had_stayed(self):
        solution, moved = self.solve([3, 100, 12, 0])
        for b, height in enumerate([3, 100, 12, 0]):
            alone, _ = self.solve([height])
            assert solution.n_iter[b] == alone.n_iter[0] == 35
            assert solution.reason[b] == alone.reason[0] == "max_iter"
            assert solution.objective[b] == alone.objective[0] == 5 + max(height - 35, 0)
            np.testing.assert_array_equal(solution.state.V[:, b], alone.state.V[:, 0])
            for name in ("iteration", "objective"):
                np.testing.assert_array_equal(solution.history_of(b)[name], alone.history_of(0)[name])
        assert moved[:5] == [4] * 5  # until the first evaluation
        assert moved[-5:] == [1] * 5  # only the one that still falls

    def test_all_at_rest(self):
        solution, moved = self.solve([1, 2])
        assert solution.n_iter.tolist() == [35, 35]
        assert solution.history["iteration"].tolist() == [0, 5, 10, 15, 20, 25, 30, 35]
        assert len(moved) == 11  # ten steps and the one that showed that nothing moves

    def test_callbacks_see_them(self):
        seen = []
        solution, _ = self.solve([1, 100], on_eval=lambda i, values: seen.append(values.copy()) or i >= 20)
        assert [values.tolist() for values in seen[2:]] == [[5, 90], [5, 85]]
        assert solution.reason == ["callback"] * 2
        assert solution.n_iter.tolist() == [20, 20]


@pytest.mark.parametrize("tol", [0.0, 1e-3])
def test_checkpoints_are_what_a_shorter_loop_returns(tol, rng):
    X = rng.random((20, 8))
    rule = Multiplicative.of(Problem(InMemory(X), Frobenius()))
    first = rule.start(rng.random((8, 3, 2)), rng.random((20, 3, 2)))
    seen = {}
    options = {"tol": tol, "eval_every": 5}
    last = iterate(
        rule, first, max_iter=200, checkpoints=[0, 10, 200, 40], on_checkpoint=seen.__setitem__, **options
    )
    assert sorted(seen) == [0, 10, 40, 200]
    for limit, found in seen.items():
        expected = iterate(rule, first, max_iter=limit, **options)
        assert found.state.equals(expected.state).all()
        np.testing.assert_array_equal(found.objective, expected.objective)
        np.testing.assert_array_equal(found.n_iter, expected.n_iter)
        np.testing.assert_array_equal(found.history["objective"], expected.history["objective"])
        assert found.reason == expected.reason
    assert last.reason == seen[200].reason
    assert (tol == 0) == (set(last.reason) == {"max_iter"})
