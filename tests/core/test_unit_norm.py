"""Unit components: columns of unit norm, and an objective that never rises, in every solver."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lognmf.core.arrays import like, to_numpy
from lognmf.core.data import InMemory
from lognmf.core.loop import iterate
from lognmf.core.solvers import SOLVERS
from lognmf.core.solvers.multiplicative import multiply_on_sphere, unit_columns
from lognmf.core.terms import PENALTIES, ROW_NORMS
from lognmf.graph import knn_graph
from lognmf.models.log_sparse import LogSparseNMF, regularised
from problems import factors, fit_of, samples

powers = st.floats(-3, 3).map(lambda x: 10**x)
FITS = ["frobenius", *ROW_NORMS]


def problem(X, fit, penalty, weights):
    alpha, beta, lam, gamma = (np.array([w], dtype=X.dtype) for w in weights)
    data_fit = fit_of(fit, gamma)
    data, weights = InMemory(X), {"alpha": alpha, "beta": beta, "lam": lam}
    return regularised(data, data_fit, W=knn_graph(X, 3), penalty=penalty, **weights)


def lengths(U):
    norms = np.linalg.norm(U, axis=0)
    return norms[norms > 0]


@pytest.mark.parametrize("solver", SOLVERS)
class TestUnitGauge:
    @given(
        seed=st.integers(0, 2**16),
        fit=st.sampled_from(FITS),
        penalty=st.sampled_from(list(PENALTIES)),
        weights=st.tuples(powers, powers, powers, powers),
        uniform=st.booleans(),
    )
    def test_objective_never_rises(self, solver, seed, fit, penalty, weights, uniform):
        rng = np.random.default_rng(seed)
        X = samples(rng, density=0.6)
        U, V = factors(rng, X, 1, 3)
        if uniform:  # far too large for unit-norm data
            U, V = rng.random(U.shape), rng.random(V.shape)
        rule = SOLVERS[solver].of(problem(X, fit, penalty, weights), unit_components=True)
        solution = iterate(rule, rule.start(U, V), max_iter=40, tol=0, eval_every=1)
        objective = solution.history["objective"][:, 0]
        assert (np.diff(objective) <= 1e-12 * np.abs(objective[:-1]) + 1e-13).all()
        assert (solution.state.V >= 0).all()
        assert (solution.state.U >= 0).all()
        np.testing.assert_allclose(lengths(solution.state.U), 1, rtol=1e-12)

    def test_weights_keep_their_meaning(self, solver, rng):
        """Free, a long fit makes V small and the graph's weight meaningless; with unit norms it cannot."""
        X = samples(rng, 40, 20)
        U, V = factors(rng, X, 1, 4)
        size, rough = {}, {}
        for unit in (False, True):
            rule = SOLVERS[solver].of(
                problem(X, "frobenius", "log", (1e-3, 1e-3, 10.0, 1.0)), unit_components=unit
            )
            state = iterate(rule, rule.start(U, V), max_iter=1500, tol=0, eval_every=500).state
            _, unit_V = unit_columns(state.U, state.V)
            graph = rule.problem.on_V[0]
            size[unit] = np.linalg.norm(state.V)
            rough[unit] = graph.value(unit_V)[0] / np.sum(unit_V**2)
        assert size[False] < 0.2 * size[True]
        assert rough[True] < 0.8 * rough[False]


def test_sphere_minimum_of_the_bound(rng):
    """Against a search: no unit vector has a lower bound than the one found."""
    F, _ = unit_columns(0.1 + rng.random((6, 1, 2)), np.ones((1, 1, 2)))
    neg, pos = rng.random(F.shape), rng.random(F.shape) * 10 ** rng.uniform(-3, 3, size=F.shape)
    neg[2, :, 0] = 0
    x = multiply_on_sphere(F, [lambda rows: (neg, pos)])

    def bound(x):
        return (pos / F * x**2 - 2 * neg * x).sum(axis=0)

    np.testing.assert_allclose(np.linalg.norm(x, axis=0), 1, rtol=1e-12)
    for _ in range(2000):
        near = np.abs(x + 10 ** rng.uniform(-4, 0) * rng.standard_normal(x.shape))
        near /= np.linalg.norm(near, axis=0)
        assert (bound(x) <= bound(near) + 1e-9 * np.abs(bound(near))).all()


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_entries_that_cost_nothing_take_what_is_left(dtype):
    """However many there are: the others get what they want."""
    F, _ = unit_columns(np.ones((50, 1, 1), dtype=dtype), np.ones((1, 1, 1), dtype=dtype))
    neg, pos = np.zeros_like(F), np.zeros_like(F)
    neg[:2], pos[:2] = 0.1, F[:2]
    x = multiply_on_sphere(F, [lambda rows: (neg.copy(), pos.copy())])[:, 0, 0]
    np.testing.assert_allclose(x[:2], 0.1, rtol=1e-5)
    np.testing.assert_allclose(x[2:], np.sqrt((1 - 2 * 0.1**2) / 48), rtol=1e-5)


@pytest.mark.filterwarnings("ignore:X has features without a known entry")
def test_features_without_data_never_rise(rng):
    X = rng.random((1, 13))
    X[:, 3:9] = np.nan
    model = LogSparseNMF(1, alpha=0, beta=0.1, lam=0, init="random", max_iter=30, tol=0, eval_every=1)
    model.set_params(random_state=0).fit(X)
    objective = model.history_["objective"]
    assert (np.diff(objective) <= 1e-12 * objective[:-1]).all()


def test_empty_column_stays_empty(rng):
    F, _ = unit_columns(rng.random((6, 1, 2)), np.ones((1, 1, 2)))
    F[:, :, 1] = 0
    x = multiply_on_sphere(F, [lambda rows: (np.ones_like(F), np.ones_like(F))])
    assert not x[:, :, 1].any()
    np.testing.assert_allclose(np.linalg.norm(x[:, 0, 0]), 1)


@pytest.mark.parametrize("library", ["array_api_strict", "torch"])
@pytest.mark.parametrize("fit", FITS)
def test_every_library_gives_the_same(library, fit, rng):
    home = pytest.importorskip(library, reason=f"{library} is not installed").asarray(np.zeros(1))
    X = samples(rng, 15, 10)
    U, V = factors(rng, X, 1, 4)

    def solve(home):
        alpha, beta, lam, gamma = (like([w], home) for w in (0.01, 0.1, 1.0, 0.5))
        data = like(X, home)
        data_fit = fit_of(fit, gamma)
        weights = {"alpha": alpha, "beta": beta, "lam": lam}
        terms = regularised(InMemory(data), data_fit, W=knn_graph(X, 3), penalty="log", **weights)
        rule = SOLVERS["mu"].of(terms, unit_components=True)
        return iterate(rule, rule.start(like(U, home), like(V, home)), max_iter=30, tol=0)

    ours, reference = solve(home), solve(np.empty(0))
    assert type(ours.state.U) is type(home)
    np.testing.assert_allclose(to_numpy(ours.state.U), reference.state.U, atol=1e-10)
    np.testing.assert_allclose(ours.objective, reference.objective, rtol=1e-10)


@pytest.mark.parametrize("scale", [1e-200, 1e-30, 1e30, 1e200])
def test_unit_columns_of_any_scale(scale, rng):
    """Norms whose squares would vanish or overflow."""
    U, V = rng.random((9, 2, 3)), rng.random((5, 2, 3))
    unit, scaled = unit_columns(scale * U, V)
    np.testing.assert_allclose(np.linalg.norm(unit, axis=0), 1, rtol=1e-14)
    np.testing.assert_allclose(scaled, V * scale * np.linalg.norm(U, axis=0), rtol=1e-13)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_zeros_and_tiny_data_never_rise(dtype, rng):
    for X in (np.zeros((10, 5)), 1e-21 * samples(rng, 20, 8)):
        for seed in range(5):
            model = LogSparseNMF(2, alpha=0, beta=0, lam=1.0, random_state=seed, eval_every=1, max_iter=5)
            objective = model.fit(X.astype(dtype)).history_["objective"]
            assert (np.diff(objective) <= 1e-6 * objective[:-1]).all()
