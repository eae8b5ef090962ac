"""One update of a factor, by its definition."""

import numpy as np
import pytest

from lognmf.core.data import InMemory
from lognmf.core.problem import Problem
from lognmf.core.solvers.multiplicative import (
    Multiplicative,
    MultiplicativeCodes,
    multiply,
    multiply_mixed,
    multiply_on_sphere,
    unit_columns,
)
from lognmf.core.terms import KullbackLeibler, L2Log, Log, Robust
from problems import cut, factors, samples

SHAPE = (7, 2, 3)


def halves(rng, shape=SHAPE, decades=3):
    """A term with random halves, its rows, and both halves."""
    neg, pos = (10 ** rng.uniform(-decades, decades, shape) for _ in range(2))
    return lambda rows: (neg[rows], pos[rows].copy()), neg, pos


@pytest.fixture
def F(rng):
    F = 0.1 + rng.random(SHAPE)
    F[2, 0, 1] = 0
    return F


def test_the_update_is_its_formula(F, rng):
    (one, neg1, pos1), (two, neg2, pos2) = halves(rng), halves(rng)
    found = multiply(F, [one, two, lambda rows: (None, np.ones_like(F[rows]))])
    np.testing.assert_allclose(found, F * (neg1 + neg2) / (pos1 + pos2 + 1), rtol=1e-14)


def test_what_has_no_halves_becomes_zero(F):
    zeros = np.zeros_like(F)
    assert (multiply(F, [lambda rows: (zeros[rows], zeros[rows].copy())]) == 0).all()
    np.testing.assert_allclose(multiply(F, [lambda rows: (F[rows], F[rows].copy())]), F, rtol=1e-15)


def test_the_mixed_update_solves_its_equation(F, rng):
    """pos₂ t² + (pos₁ − neg₂) t = neg₁, with more on either side; 0 stays 0."""
    (linear, neg1, pos1), (quadratic, neg2, pos2) = halves(rng), halves(rng)
    found = multiply_mixed(F, [linear], [quadratic])
    t = np.divide(found, F, out=np.zeros_like(F), where=F > 0)
    assert (found[F == 0] == 0).all()
    assert (t[F > 0] > 0).all()
    back = pos1 - neg2
    assert 0.2 < (back > 0).mean() < 0.8
    left, right = pos2 * t**2 + np.maximum(back, 0) * t, neg1 + np.maximum(-back, 0) * t
    np.testing.assert_allclose(left[F > 0], right[F > 0], rtol=1e-12)


def test_the_mixed_update_of_one_kind_is_that_kinds(F, rng):
    (term, neg, pos), zeros = halves(rng), np.zeros(SHAPE)

    def nothing(rows):
        return zeros[rows], zeros[rows].copy()

    for terms in (([term], [nothing]), ([nothing], [term])):
        np.testing.assert_allclose(multiply_mixed(F, *terms), F * neg / pos, rtol=1e-12)


def test_the_mixed_update_where_linear_and_quadratic_pulls_cancel(F, rng):
    """pos₂ t² = neg₁."""
    (_, neg, pos), both = halves(rng), np.ones(SHAPE)
    found = multiply_mixed(
        F, [lambda rows: (neg[rows], both[rows].copy())], [lambda rows: (both[rows], pos[rows].copy())]
    )
    np.testing.assert_allclose(found, F * np.sqrt(neg / pos), rtol=1e-12)


@pytest.mark.parametrize("linear", [False, True])
@pytest.mark.parametrize("decades", [0.3, 1, 4, 40])
class TestOnTheSphere:
    def test_the_multiplier(self, linear, decades, monkeypatch):
        """x = (e / (d + μ))^power with one μ for all entries of a column, norm 1, in few steps."""
        monkeypatch.setattr("lognmf.core.solvers.multiplicative.NEWTON_STEPS", 25)
        for seed in range(20):
            rng = np.random.default_rng(seed)
            F, _ = unit_columns(0.1 + rng.random(SHAPE), np.ones(SHAPE))
            term, neg, pos = halves(rng, decades=decades)
            x = multiply_on_sphere(F, [term], linear=linear)
            np.testing.assert_allclose(np.linalg.norm(x, axis=0), 1, rtol=1e-13)
            e, d = (neg * F, pos / F) if linear else (neg, pos / F)
            pull = e / np.where(x > 0, x, 1) ** (2 if linear else 1)  # d + μ
            scale = np.maximum(pull, d).max(axis=0)
            mu = np.where(x > 0, pull - d, 0).sum(axis=0) / (x > 0).sum(axis=0)
            counted = x > 1e-8
            assert (np.abs(np.where(counted, pull - d - mu, 0)) <= 1e-7 * scale).all()
            assert counted.any(axis=0).all()

    def test_where_nothing_pulls_it_stays(self, linear, decades, rng):
        """At a stationary point of the bound: neg = pos + μ F."""
        F, _ = unit_columns(0.1 + rng.random(SHAPE), np.ones(SHAPE))
        pos = 10 ** rng.uniform(-min(decades, 4), min(decades, 4), SHAPE)
        x = multiply_on_sphere(F, [lambda rows: (pos + 0.3 * F, pos.copy())], linear=linear)
        np.testing.assert_allclose(x, F, rtol=1e-9)


def test_columns_over_their_norms(rng):
    U, F = rng.random((9, 2, 3)), rng.random((5, 2, 3))
    U[:, 1, 2] = 0
    norms = np.linalg.norm(U, axis=0)
    unit, over = unit_columns(U, F, inverse=True)
    norms[1, 2] = 1  # an empty column stays, and its partner too
    np.testing.assert_allclose(unit, U / norms, rtol=1e-14)
    np.testing.assert_allclose(over, F / norms, rtol=1e-14)
    np.testing.assert_allclose(unit_columns(U, F)[1], F * norms, rtol=1e-14)


def test_first_codes_have_the_sums_of_their_samples(rng):
    X, U = rng.random((6, 5)), rng.random((5, 1, 3))
    state = MultiplicativeCodes(InMemory(X), KullbackLeibler(), U).start()
    V = state.V[0]
    np.testing.assert_allclose((V @ U[:, 0].T).sum(axis=1), X.sum(axis=1), rtol=1e-13)
    assert (V[:, :1] == V).all()
    empty = MultiplicativeCodes(InMemory(X), KullbackLeibler(), 0 * U).start()
    assert np.isfinite(empty.V).all()


@pytest.mark.parametrize("edges", [[4], [1, 2, 8]])
def test_a_state_of_blocks_is_that_of_the_whole(edges, rng):
    X, weights = samples(rng, 11, 7), np.array([0.1, 1.0])
    first = factors(rng, X, 2, 3)
    states = []
    for data in (InMemory(X), cut(X, edges)):
        rule = Multiplicative(Problem(data, Robust(L2Log(), weights), on_U=(Log(weights),)))
        states.append(rule.step(rule.start(*first)))
    for whole, blocks in zip(*((state.U, state.V, *state.aux) for state in states), strict=True):
        np.testing.assert_allclose(blocks, whole, rtol=1e-12)
