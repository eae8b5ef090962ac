"""The contract of a rule: every solver, and the rules of the models that have their own."""

import numpy as np
import pytest

from lognmf import MODELS, knn_graph
from lognmf.core.arrays import product
from lognmf.core.data import InMemory
from lognmf.core.rule import State
from lognmf.core.solvers import SOLVERS
from problems import samples

B, k = 3, 4


def rules():
    for name, cls in MODELS.items():
        for solver in SOLVERS if "solver" in cls().get_params() else [None]:
            yield pytest.param(name, solver, id=name if solver is None else f"{name}-{solver}")


@pytest.fixture
def X(rng):
    return samples(rng, 15, 9)


@pytest.fixture
def rule(request, X):
    name, solver = request.param
    model = MODELS[name](k, **({} if solver is None else {"solver": solver}))
    weights = {weight: np.array([0.0, 0.1, 1.0]) for weight in model.spec.weights}
    return model._rule(InMemory(X), knn_graph(X, 3), weights)


@pytest.fixture
def state(rule, X, rng):
    shapes = {"ConvexRule": (len(X), len(X))}.get(type(rule).__name__, (X.shape[1], len(X)))
    return rule.start(*(0.1 + rng.random((rows, B, k)) for rows in shapes))


@pytest.mark.parametrize(
    "rule", [case.values for case in rules()], ids=[c.id for c in rules()], indirect=True
)
class TestRule:
    def test_aux_has_the_settings_in_axis_1(self, rule, state):
        for at in (state, rule.step(state)):
            assert all(array.shape[1] == B for array in at.aux)

    def test_a_step_leaves_its_state_as_it_was(self, rule, state):
        arrays = (state.U, state.V, *state.aux)
        before = [array.copy() for array in arrays]
        rule.step(state)
        for array, old in zip(arrays, before, strict=True):
            np.testing.assert_array_equal(array, old)

    def test_factors_value_and_error(self, rule, state, X):
        state = rule.step(state)
        U, V, XU = rule.factors(state)
        assert (U.shape, V.shape) == ((X.shape[1], B, k), (len(X), B, k))
        np.testing.assert_allclose(XU, product(X, U), rtol=1e-10, atol=1e-13)
        errors = [np.sum((X - V[:, b] @ U[:, b].T) ** 2) for b in range(B)]
        np.testing.assert_allclose(rule.squared_error(state), errors, rtol=1e-9)
        assert rule.value(state).shape == (B,)
        assert rule.value(state).dtype == np.float64

    @pytest.mark.parametrize("index", [[1], [2, 0]])
    def test_settings_are_independent(self, rule, state, index):
        """Steps of a part of the batch are that part of the batch's steps."""
        index = np.array(index)
        together = rule.step(rule.step(state)).take(index)
        part = rule.take(index)
        alone = part.step(part.step(state.take(index)))
        for one, other in zip((together.U, together.V), (alone.U, alone.V), strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-8, atol=1e-11)
        np.testing.assert_allclose(
            part.value(alone), rule.value(rule.step(rule.step(state)))[index], rtol=1e-9
        )

    def test_batches_can_be_joined(self, rule, state):
        parts = [state.take(np.array([b])) for b in range(B)]
        joined = State.join(parts)
        assert joined.equals(state).all()
        assert rule.step(joined).equals(rule.step(state)).all()


@pytest.mark.parametrize("place", range(4))
def test_states_are_equal_setting_by_setting_to_the_last_bit(place, rng):
    arrays = [rng.random((rows, B, *more)) for rows, *more in ((9, k), (5, k), (5,), (1, 2))]
    changed = [array.copy() for array in arrays]
    changed[place][-1, 1] = np.nextafter(changed[place][-1, 1], 2)
    one, other = (State(U, V, tuple(aux)) for U, V, *aux in (arrays, changed))
    assert one.equals(one).tolist() == [True] * 3
    assert one.equals(other).tolist() == other.equals(one).tolist() == [True, False, True]


@pytest.mark.parametrize("name", SOLVERS)
def test_a_solver_declares_what_it_is(name):
    solver = SOLVERS[name]
    assert callable(solver.refuses)


@pytest.mark.parametrize("index", [[1], [2, 0], [0, 1, 2]])
def test_settings_are_replaced_in_their_places(index, rng):
    old, new = (
        State(*(rng.random((rows, size, k)) for rows in (9, 5)), (rng.random((5, size)),))
        for size in (B, len(index))
    )
    joined = old.replaced(np.array(index), new)
    for found, kept, fresh in zip(
        (joined.U, joined.V, *joined.aux), (old.U, old.V, *old.aux), (new.U, new.V, *new.aux), strict=True
    ):
        expected = kept.copy()
        expected[:, index] = fresh
        np.testing.assert_array_equal(found, expected)
