"""Coordinate descent entry by entry: the compiled loops equal a literal oracle, and fits converge."""

import numpy as np
import pytest
import scipy.sparse as sp

from lognmf.core.data import InMemory
from lognmf.core.loop import iterate
from lognmf.core.problem import Problem
from lognmf.core.solvers import SOLVERS, encode
from lognmf.core.solvers.coordinate.coloured_graph import coloured, without_edges
from lognmf.core.solvers.coordinate.rowwise import Entries, sweeper
from lognmf.core.terms import L1, LOSSES, PENALTIES, KullbackLeibler, graph_penalty, unless_zero
from lognmf.core.threads import threads_for
from lognmf.graph import knn_graph

LOSS_NAMES = tuple(LOSSES)


def values(X, M, Y, squares):
    """The data term of each row."""
    if squares:
        return np.sum(M * (X - Y) ** 2, axis=1)
    logs = np.log(np.where(X > 0, X, 1.0)) - np.log(np.where(X > 0, Y, 1.0))
    return np.sum(M * (X * logs - X + Y), axis=1)


def slow_sweep(penalty, squares, X, M, F, G, order, W, lam, weight, ridge, slow, times):
    """`Entries.sweep` for one setting, from the formulas: F (rows, k), G (columns, k), X and M dense."""
    F, degree = F.astype(float), np.zeros(len(F)) if W is None else W.sum(axis=1)
    for i in order:
        v = F[i].copy()
        others = np.zeros(len(v)) if W is None else lam * (W[i] @ F)
        pull = lam * degree[i]
        for _ in range(times):
            for r, u in enumerate(G.T):
                y, at, up = G @ v, v[r], max(ridge[r], 0)
                if squares:
                    h = np.sum(M[i] * u**2) + pull + up
                    if h <= np.finfo(float).tiny:
                        v[r] = 0.0 if weight else at
                        continue
                    h *= 1 + slow
                    half = np.sum(M[i] * (X[i] - y) * u) + others[r] - (pull + ridge[r]) * at
                    v[r] = max(penalty.minimum(h, h * at + half, weight, at), 0.0)
                    continue
                stored = X[i] > 0
                x, a = (M[i] * X[i])[stored], u[stored]
                linear = M[i] @ u + weight * penalty.slope(at) - 2 * others[r]
                g = np.sum(x * a / y[stored])
                slope = linear - g + 2 * (pull + ridge[r]) * at
                h = (1 + slow) * (np.sum(x * a**2 / y[stored] ** 2) + 2 * (pull + up))
                plain = pull == 0 and ridge[r] == 0 and slow == 0
                if slope < 0:
                    v[r] = max(at - slope / h, at * g / linear if plain else 0.0)
                elif at > 0 and slope > 0:
                    rest = y[stored] - at * a
                    with np.errstate(divide="ignore", invalid="ignore"):
                        at_zero = linear - np.sum(np.where(a > 0, x * a / np.maximum(rest, 0), 0))
                    if slope >= h * at and at_zero >= 0:
                        v[r] = 0.0
                    else:
                        v[r] = min(at**2 * h / (at * h + slope), at * g / linear if plain else np.inf)
        F[i] = v
    return F, values(X, M, F @ G.T, squares)


def numbers(rng, n, p, k, squares, known):
    """Data, weights (None: all known) and factors for a sweep."""
    Y = rng.gamma(0.7, 1.0, (n, k + 1)) @ rng.gamma(0.5, 1.0, (k + 1, p))
    X = np.maximum(Y + 0.3 * rng.standard_normal(Y.shape), 0.05) if squares else rng.poisson(Y).astype(float)
    M = {"all": None, "some": rng.gamma(1.0, 1.0, X.shape), "few": rng.random(X.shape)}[known]
    if M is not None:
        M *= rng.random(X.shape) < (0.8 if known == "some" else 0.3)
        X = np.where(M > 0, X, 0)
    return X, M, 0.1 + rng.random((p, k)), 0.1 + rng.random((n, k))


@pytest.mark.parametrize("penalty", PENALTIES)
@pytest.mark.parametrize("known", ["all", "some", "few"])
@pytest.mark.parametrize("form", ["dense", "csr"])
@pytest.mark.parametrize("squares", [True, False])
class TestSweep:
    """Settings side by side: with every term, and with none."""

    def sides(self, rng, squares, form, known, dtype=np.float64):
        X, M, U, V = numbers(rng, 21, 13, 4, squares, known)
        dense = M if M is not None else np.ones_like(X)
        V[::3, 1] = V[4] = 0
        V[4, 0] = 1.0
        if form == "csr" and squares and M is None:
            M = dense
        given = [sp.csr_array(F) if form == "csr" and F is not None else F for F in (X, M)]
        entries = Entries.of(InMemory(*(F if F is None else F.astype(dtype) for F in given)))
        entries = entries, entries.turned()
        factors = [np.stack([F, F[:, ::-1]], axis=1).astype(dtype) for F in (U, V)]
        return X, dense, entries, *factors

    @pytest.mark.parametrize("dtype", [np.float64, np.float32])
    def test_as_the_oracle(self, squares, form, known, penalty, dtype, rng):
        X, M, (of_samples, of_features), U, V = self.sides(rng, squares, form, known, dtype)
        W = knn_graph(rng.random((21, 3)), 3)
        term, rows = PENALTIES[penalty](np.ones(1)), coloured(W)
        settings = {"lam": [0.3, 0.0], "weight": [0.2, 0.0], "slow": [0.5, 0.0]}
        lam, weight, slow = (np.array(values) for values in settings.values())
        ridge = np.array([[0.5, -0.1, 0.0, 1.0], [0.0, 0.0, 0.0, 0.0]])
        loops, tolerance = sweeper(term, squares=squares), 1e-9 if dtype == np.float64 else 3e-4
        new_V, fit = of_samples.sweep(loops, V, U, rows, lam, weight, ridge, slow, 2)
        new_U, turned = of_features.sweep(loops, U, V, without_edges(13), 0 * lam, weight, ridge, slow, 1)
        assert new_V.dtype == new_U.dtype == dtype
        for b in range(2):
            terms = (weight[b], ridge[b], slow[b])
            expected = slow_sweep(
                term, squares, X, M, V[:, b], U[:, b], rows.order, W.toarray(), lam[b], *terms, 2
            )
            np.testing.assert_allclose(new_V[:, b], expected[0], rtol=tolerance, atol=tolerance)
            np.testing.assert_allclose(fit[:, b], expected[1], rtol=tolerance, atol=tolerance)
            expected = slow_sweep(term, squares, X.T, M.T, U[:, b], V[:, b], range(13), None, 0, *terms, 1)
            np.testing.assert_allclose(new_U[:, b], expected[0], rtol=tolerance, atol=tolerance)
            np.testing.assert_allclose(turned[:, b], expected[1], rtol=tolerance, atol=tolerance)

    def test_several_threads(self, squares, form, known, penalty, rng, several_threads):
        """They give the same, to the last bit."""
        _, _, (entries, _), U, V = self.sides(rng, squares, form, known)
        weight, none = np.array([0.2, 0.0]), np.zeros(2)
        loops, rows = (
            sweeper(PENALTIES[penalty](np.ones(1)), squares=squares),
            coloured(knn_graph(V[:, 0], 3)),
        )
        arguments = loops, V, U, rows, weight, weight, np.zeros((2, 4)), none, 1
        alone = entries.sweep(*arguments)
        several_threads(2)
        with threads_for(V[:, 0], 1):
            shared = entries.sweep(*arguments)
        for one, other in zip(alone, shared, strict=True):
            np.testing.assert_array_equal(one, other)


def make_problem(seed):
    """A random problem of any kind, and whether its components have unit norm."""
    rng = np.random.default_rng(seed)
    n, p, k = rng.integers(6, 30), rng.integers(5, 25), rng.integers(1, 6)
    squares, known = bool(seed % 2), ("some", "few", "all")[seed // 2 % 3]
    X, M, U, V = numbers(rng, n, p, k, squares, "some" if squares and known == "all" else known)
    X[0] += 0.1 if M is None else 0.1 * (M[0] > 0)
    W = knn_graph(X, 3)
    if seed // 6 % 2:
        X, M = sp.csr_array(X), None if M is None else sp.csr_array(M)
    data, one = InMemory(X, M), np.array([1.0, 0.1])
    # What is sparse on one side alone grows without bound where too little is known.
    alpha, beta = [(0.0, 0.0), (0.1, 0.2), (0.0, 0.1)][seed // 12 % 3]
    lam = 0.1 * (alpha > 0) * rng.integers(2)
    make = PENALTIES[("log", "l1")[seed // 3 % 2]]
    on_V = unless_zero(beta * one, make) + graph_penalty(W, lam * one)
    fit = LOSSES[LOSS_NAMES[0 if squares else 1]](data)
    unit = bool(alpha == 0 and beta > 0) or bool(rng.integers(2))
    factors = (np.stack([F, F[::-1]], axis=1) for F in (U, V))
    return Problem(data, fit, unless_zero(alpha * one, make), on_V), unit, *factors


def unsettled(problem, U, V, unit):
    """How far U and V are from a stationary point, in the units of the objective."""
    fit, block = problem.fit, problem.data
    XU = fit.project(block, U)
    sums = fit.sums(block, U, V, V[:0, :, 0])
    worst = 0.0
    for side, (F, halves, penalties) in enumerate(
        (
            (U, fit.halves_U(U, sums), problem.on_U),
            (V, fit.halves_V(block, U, V, XU, V[:0, :, 0], U), problem.on_V),
        )
    ):
        parts = [h(slice(None)) for h in (halves, *(penalty.halves(F) for penalty in penalties))]
        gradient = sum(2 * (pos - (0 if neg is None else neg)) for neg, pos in parts)
        if unit and side == 0:
            gradient = gradient - np.sum(gradient * F, axis=0) * F
        distance = np.where(F > 0, np.abs(gradient) * F, np.maximum(-gradient, 0) * F.max(axis=0))
        worst = max(worst, float(distance.max()))
    return worst


@pytest.mark.parametrize("seed", range(36))
def test_fits_never_rise_and_converge(seed):
    problem, unit, U, V = make_problem(seed)
    rule = SOLVERS["cd"].of(problem, unit)
    state = rule.start(U, V)
    first = unsettled(problem, state.U, state.V, unit)

    def value(state):
        return problem.value(state.U, state.V, problem.fit.project(problem.data, state.U))

    before = value(state)
    size = before.max()
    for _ in range(150):
        state = rule.step(state)
        after = value(state)
        assert (after <= before + 1e-11 * size).all()
        np.testing.assert_allclose(rule.value(state), after, rtol=1e-9, atol=1e-11 * size)
        before = after
    assert np.isfinite(state.U).all()
    assert np.isfinite(state.V).all()
    if unit:
        np.testing.assert_allclose(np.linalg.norm(state.U, axis=0), 1.0, rtol=1e-12)
    state = iterate(rule, state, max_iter=5000, tol=1e-13, eval_every=50).state
    assert unsettled(problem, state.U, state.V, unit) <= 1e-4 * first


@pytest.mark.parametrize("seed", [14, 15, 24, 25])
def test_a_batch_is_its_single_fits(seed):
    problem, unit, U, V = make_problem(seed)
    rule = SOLVERS["cd"].of(problem, unit)
    together = iterate(rule, rule.start(U, V), max_iter=200, tol=1e-5)
    for b in range(2):
        one = rule.take(np.array([b]))
        alone = iterate(one, one.start(U[:, [b]], V[:, [b]]), max_iter=200, tol=1e-5)
        np.testing.assert_allclose(together.state.U[:, [b]], alone.state.U, rtol=1e-8, atol=1e-10)
        np.testing.assert_allclose(together.state.V[:, [b]], alone.state.V, rtol=1e-8, atol=1e-10)
        assert (together.n_iter[b], together.reason[b]) == (alone.n_iter[0], alone.reason[0])


def test_single_precision(rng):
    X = rng.poisson(rng.gamma(0.7, 1.0, (30, 4)) @ rng.gamma(0.5, 3.0, (4, 20)))
    U, V = 0.1 + rng.random((20, 1, 3)), 0.1 + rng.random((30, 1, 3))
    ends = []
    for dtype in (np.float64, np.float32):
        rule = SOLVERS["cd"].of(Problem(InMemory(X.astype(dtype)), KullbackLeibler()))
        ends.append(iterate(rule, rule.start(U.astype(dtype), V.astype(dtype)), max_iter=300, tol=1e-7))
    assert ends[1].state.U.dtype == np.float32
    np.testing.assert_allclose(ends[1].objective, ends[0].objective, rtol=1e-4)


def test_better_than_multiplicative_updates_with_exact_zeros(rng):
    X = rng.poisson(rng.gamma(0.3, 1.0, (60, 5)) @ rng.gamma(0.3, 4.0, (5, 40))).astype(float)
    U, V = 0.1 + rng.random((40, 1, 5)), 0.1 + rng.random((60, 1, 5))
    problem = Problem(InMemory(X), KullbackLeibler())
    cd, mu = (
        iterate(rule, rule.start(U, V), max_iter=steps, tol=0, eval_every=steps)
        for rule, steps in ((SOLVERS["cd"].of(problem), 60), (SOLVERS["mu"].of(problem), 2000))
    )
    assert cd.objective[0] < mu.objective[0]
    assert (cd.state.U == 0).any()
    assert (cd.state.V == 0).any()


def test_counts_that_no_part_reaches_yet(rng):
    """A start may be zero where X is not: the fit leaves it, and nothing is NaN."""
    X = rng.poisson(2.0, (12, 9)).astype(float)
    U, V = 0.1 + rng.random((9, 1, 2)), 0.1 + rng.random((12, 1, 2))
    V[3] = 0
    U[5, :, 1] = 0
    rule = SOLVERS["cd"].of(Problem(InMemory(X), KullbackLeibler(), (L1(np.ones(1)),), (L1(np.ones(1)),)))
    solution = iterate(rule, rule.start(U, V), max_iter=200, tol=1e-8)
    assert np.isfinite(solution.objective).all()
    assert solution.state.V[3].any() == bool(X[3].any())


@pytest.mark.parametrize("form", ["dense", "csr", "some", "few"])
@pytest.mark.parametrize("weight", [0.0, 0.5])
def test_codes_of_new_samples_are_solved(form, weight, rng):
    """No direction along a coordinate leads down, also for parts that are nearly the same."""
    X, M, U, _ = numbers(rng, 60, 25, 5, False, form if form in ("some", "few") else "all")
    U[:, 4] = U[:, 3] + 1e-3 * rng.random(25)
    X[7] = 0
    data = InMemory(sp.csr_array(X) if form == "csr" else X, M)
    fit = LOSSES["kullback-leibler"](data)
    problem = Problem(data, fit, on_V=unless_zero(np.full(60, weight), L1))
    V = encode(problem, U)
    weights = np.ones_like(X) if M is None else M
    Y = V @ U.T
    slope = weights @ U + weight - (weights * X / np.where(X > 0, Y, 1)) @ U
    size = (weights * X).sum(axis=1, keepdims=True) + 1
    assert (slope > -1e-6 * size).all()
    assert (np.abs(slope) * V < 1e-6 * size).all()
    assert (V == 0).any()
    assert not V[7].any()


@pytest.mark.parametrize("unit", [1e-145, 1e100])
def test_counts_in_any_unit(unit, rng):
    X = rng.poisson(2.0, (20, 12)).astype(float)
    U, V = 0.1 + rng.random((12, 1, 3)), 0.1 + rng.random((20, 1, 3))
    values = []
    for c in (1.0, unit):
        rule = SOLVERS["cd"].of(Problem(InMemory(c * X), KullbackLeibler()))
        values.append(iterate(rule, rule.start(c * U, V), max_iter=50, tol=0).objective / c)
    np.testing.assert_allclose(values[1], values[0], rtol=1e-8)
