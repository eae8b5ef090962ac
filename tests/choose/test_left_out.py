"""Least squares with entries left out."""

import numpy as np
import pytest
import scipy.sparse as sp

from lognmf.choose.left_out import Gaps, LeftOut, balanced, outlying, sweep, without_one
from lognmf.core.data import InMemory
from lognmf.core.loop import iterate
from lognmf.core.rule import State

N, P, K, B = 20, 12, 3, 4


def problem(seed=0, *, sparse=False, ridge=0.1):
    """A rule with other entries left out in every setting, a state, X, and masks of known entries."""
    rng = np.random.default_rng(seed)
    X = rng.random((N, P)) * (rng.random((N, P)) < 0.6)
    known = rng.random((B, N, P)) > 0.1
    gaps = [sp.csr_array((X[~own], np.nonzero(~own)), shape=X.shape) for own in known]
    rule = LeftOut(InMemory(sp.csr_array(X) if sparse else X), Gaps.of(gaps), np.full(B, ridge))
    return rule, State(rng.random((P, B, K)), rng.random((N, B, K))), X, known


def objective(X, known, U, V, ridge):
    """By its definition, for one setting."""
    return np.sum(known * (X - V @ U.T) ** 2) + ridge * (np.sum(U**2) + np.sum(V**2))


@pytest.mark.parametrize("sparse", [False, True])
def test_value_is_the_definition(sparse):
    rule, state, X, known = problem(sparse=sparse)
    literal = [objective(X, known[b], state.U[:, b], state.V[:, b], 0.1) for b in range(B)]
    np.testing.assert_allclose(rule.value(state), literal, rtol=1e-12)


@pytest.mark.parametrize("sparse", [False, True])
def test_no_step_raises_the_objective(sparse):
    rule, state, *_ = problem(sparse=sparse)
    before = rule.value(state)
    for _ in range(30):
        state = rule.step(state)
        after = rule.value(state)
        assert (after <= before * (1 + 1e-12)).all()
        before = after


def test_left_out_values_do_not_matter():
    """What a setting does not know has no influence on its fit."""
    rule, state, X, known = problem()
    changed = np.where(known[1], X, 7.0)
    gaps = sp.csr_array((changed[~known[1]], np.nonzero(~known[1])), shape=X.shape)
    other = LeftOut(InMemory(changed), Gaps.of([gaps]), rule.ridge[:1])
    mine = iterate(rule, state, max_iter=20, tol=0).state.take(np.array([1]))
    theirs = iterate(other, state.take(np.array([1])), max_iter=20, tol=0).state
    np.testing.assert_allclose(mine.U, theirs.U, atol=1e-10)
    np.testing.assert_allclose(mine.V, theirs.V, atol=1e-10)


def test_settings_do_not_depend_on_their_company():
    rule, state, *_ = problem()
    index = np.array([2, 0])
    alone, together = rule.take(index).step(state.take(index)), rule.step(state).take(index)
    np.testing.assert_allclose(alone.U, together.U, rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(rule.take(index).value(alone), rule.value(rule.step(state))[index], rtol=1e-12)


def test_sweep_ends_in_nonnegative_least_squares():
    from scipy.optimize import nnls

    rng = np.random.default_rng(0)
    X, U = rng.random((5, P)), rng.random((P, K))
    V = rng.random((5, 1, K))
    for _ in range(3000):
        V = sweep(V, (X @ U)[:, None, :], (U.T @ U)[None], np.zeros(1))
    np.testing.assert_allclose(V[:, 0], [nnls(U, x)[0] for x in X], atol=1e-8)


def test_balanced_keeps_the_product():
    rng = np.random.default_rng(0)
    U, V = 100 * rng.random((P, B, K)), rng.random((N, B, K))
    V[:, 0, 1] = 0
    new_U, new_V = balanced(U, V)
    np.testing.assert_allclose(np.einsum("ibk,jbk->bij", new_V, new_U), np.einsum("ibk,jbk->bij", V, U))
    np.testing.assert_allclose(np.linalg.norm(new_U, axis=0), np.linalg.norm(new_V, axis=0))


def test_one_of_two_equal_parts_goes_first():
    """However large they are: the other one takes its place."""
    rng = np.random.default_rng(0)
    U, V = rng.random((P, 1, K)), rng.random((N, 1, K))
    U[:, :, 2], V[:, :, :2] = U[:, :, 0], 10 * V[:, :, :2]
    V[:, :, 2] = 0.7 * V[:, :, 0]
    product = V[:, 0] @ U[:, 0].T
    U, V = without_one(U, V)
    assert U.shape == (P, 1, K - 1)
    np.testing.assert_allclose(V[:, 0] @ U[:, 0].T, product, rtol=1e-6)


def test_outlying_entries_are_found():
    rng = np.random.default_rng(0)
    X = rng.random((60, 3)) @ rng.random((3, 40)) + 0.02 * rng.random((60, 40))
    strange = np.zeros(X.shape, dtype=bool)
    strange.flat[rng.choice(X.size, 40, replace=False)] = True
    X[strange] += 3
    known = np.ones(X.shape, dtype=bool)
    known[0, :5] = False
    X[0, :5] = 0
    found = outlying(X, known, rng.random((40, 4)), rng.random((60, 4)), 0.2)
    assert not found[~known].any()
    assert found[strange & known].all()
    assert found[~strange].mean() < 0.02
