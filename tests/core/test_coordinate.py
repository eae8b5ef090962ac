"""Coordinate descent: compiled loops equal their NumPy twins, each part descends, the rest is refused."""

import subprocess
import sys
import textwrap
from dataclasses import dataclass, replace
from math import sqrt

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

import sweeps
from lognmf.core.arrays import gram, product, product_t
from lognmf.core.data import InMemory
from lognmf.core.loop import iterate
from lognmf.core.problem import Problem
from lognmf.core.solvers import SOLVERS, CoordinateDescent
from lognmf.core.solvers.coordinate import compiled, rule
from lognmf.core.solvers.coordinate.coloured_graph import coloured, without_edges
from lognmf.core.solvers.coordinate.costs import Costs, best_scale, newton_scale
from lognmf.core.terms import (
    L1,
    PENALTIES,
    ROW_NORMS,
    Frobenius,
    KullbackLeibler,
    Laplacian,
    Log,
    Robust,
    Weighted,
)
from lognmf.core.terms.robust import kept_share, robust_value
from lognmf.core.threads import threads_for
from lognmf.graph import knn_graph
from lognmf.models.log_sparse import regularised
from problems import factors, fit_of, samples
from second_opinion import Opinion

powers = st.floats(-3, 3).map(lambda x: 10**x)


def term(name):
    return PENALTIES[name](np.ones(1))


def problem(X, fit="frobenius", penalty="log", alpha=0.01, beta=0.01, lam=1.0, gamma=0.5, B=1):
    alpha, beta, lam, gamma = (np.full(B, w, dtype=X.dtype) for w in (alpha, beta, lam, gamma))
    data, weights = InMemory(X), {"alpha": alpha, "beta": beta, "lam": lam}
    return regularised(data, fit_of(fit, gamma), W=knn_graph(X, 3), penalty=penalty, **weights)


def with_twin(rule):
    return replace(rule, costs=replace(rule.costs, work=sweeps))


@pytest.mark.parametrize("work", [compiled, sweeps])
class TestColouring:
    @pytest.fixture(autouse=True)
    def colours(self, work, monkeypatch):
        monkeypatch.setattr(compiled, "greedy_colours", work.greedy_colours)

    def test_no_edge_within_a_colour_and_every_row_once(self, rng, monkeypatch):
        X = samples(rng, 60, 9)
        W = knn_graph(X, 4)
        rows = coloured(W + sp.eye_array(60))
        assert sorted(rows.order) == list(range(60))
        for c in range(len(rows.bounds) - 1):
            of_colour = rows.order[rows.bounds[c] : rows.bounds[c + 1]]
            assert len(of_colour)
            assert W[of_colour][:, of_colour].nnz == 0
        np.testing.assert_allclose(rows.degree, W.sum(axis=1))  # loops do not count
        monkeypatch.setattr(compiled, "greedy_colours", sweeps.greedy_colours)
        np.testing.assert_array_equal(rows.order, coloured(W).order)

    def test_graph_without_edges(self):
        rows, free = coloured(sp.csr_array((5, 5))), without_edges(5)
        assert rows.bounds.tolist() == free.bounds.tolist() == [0, 5]


@pytest.mark.parametrize("penalty", PENALTIES)
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
class TestTwin:
    """Settings side by side, blocks that are not full, weights of every size."""

    def arrays(self, rng, dtype, n=50, k=5, B=2):
        X = samples(rng, n, 23, density=0.7).astype(dtype)
        U, V = (F.astype(dtype) for F in factors(rng, X, B, k))
        V[::3, :, 1] = 0
        return X, U, V

    @pytest.mark.parametrize("robust", [False, True])
    @pytest.mark.parametrize("scale", [1e-3, 1.0, 100.0])
    def test_sweep(self, penalty, dtype, robust, scale, rng):
        X, U, V = self.arrays(rng, dtype)
        kept = rng.random((50, 2)).astype(dtype) if robust else np.zeros((0, 2))
        weight, lam = scale * np.array([0.1, 0.0]), np.array([0.5, 0.0])
        arguments = V, product(X, U), gram(U, U), kept, coloured(knn_graph(X, 3)), lam, weight
        ours, twin = (w.loops(term(penalty)).sweep(*arguments, 3) for w in (compiled, sweeps))
        assert ours.dtype == dtype
        np.testing.assert_allclose(ours, twin, atol=1e-10 if dtype == np.float64 else 1e-5)
        assert (ours >= 0).all()

    def test_codes_of_a_part_that_died(self, penalty, dtype, rng):
        """A penalty makes them 0; without any they stay, since nothing depends on them."""
        X, U, V = self.arrays(rng, dtype)
        U[:, :, 2] = 0
        arguments = V, product(X, U), gram(U, U), np.zeros((0, 2)), without_edges(50), np.zeros(2)
        for work in (compiled, sweeps):
            swept = work.loops(term(penalty)).sweep(*arguments, np.array([0.1, 0.0]), 1)
            assert (swept[:, 0, 2] == 0).all()
            np.testing.assert_array_equal(swept[:, 1, 2], V[:, 1, 2])

    @pytest.mark.parametrize("B", [1, 3])
    def test_split_sweep(self, penalty, dtype, B, rng, monkeypatch, several_threads):
        """In several threads it is the same, to the last bit."""
        X, U, V = self.arrays(rng, dtype, B=B)
        arguments = V, product(X, U), gram(U, U), rng.random((50, B)).astype(dtype)
        arguments += coloured(knn_graph(X, 3)), np.full(B, 0.5), np.full(B, 0.1)
        alone = compiled.loops(term(penalty)).sweep(*arguments, 2)
        monkeypatch.setattr(compiled, "LANES", 8)
        several_threads(2)
        with threads_for(X, 1):
            shared = compiled.loops(term(penalty)).sweep(*arguments, 2)
        np.testing.assert_array_equal(shared, alone)

    def test_sphere_sweep(self, penalty, dtype, rng):
        X, U, V = self.arrays(rng, dtype)
        for weight in (0.01, 1.0, 1e3):
            arguments = U, product_t(X, V), gram(V, V), np.array([weight, 0.0])
            ours, twin = (w.loops(term(penalty)).sphere_sweep(*arguments, 2) for w in (compiled, sweeps))
            np.testing.assert_allclose(ours, twin, atol=1e-10 if dtype == np.float64 else 1e-5)
            np.testing.assert_allclose(np.linalg.norm(ours, axis=0), 1, rtol=1e-5)

    def test_scales_sums_and_steps(self, penalty, dtype, rng):
        X, U, V = self.arrays(rng, dtype)
        rows, unit = coloured(knn_graph(X, 3)), term(penalty)
        tolerance = {"rtol": 1e-10 if dtype == np.float64 else 1e-5}
        rough = sweeps.roughness(V, *rows[2:5])
        np.testing.assert_allclose(compiled.roughness(V, *rows[2:5]), rough, **tolerance)
        L = np.diag(rows.degree) - sp.csr_array((rows.weights, rows.indices, rows.indptr)).toarray()
        np.testing.assert_allclose(rough, np.einsum("ibk,ij,jbk->bk", V, L, V, dtype=float), rtol=1e-4)
        weights = np.array([0.3, 10.0]), np.array([0.01, 1.0]), np.array([0.0, 2.0])
        costs = Costs(problem(X, penalty=penalty, B=2), rows, compiled)
        ours, twin = (newton_scale(c, U, V, rough, weights, 9) for c in (costs, replace(costs, work=sweeps)))
        np.testing.assert_allclose(ours, twin, **tolerance)
        for F in (U, 1e20 * U, 1e31 * U, 1e-17 * U, 0 * U):
            ours, twin = (w.loops(unit).penalty_sum(F) for w in (compiled, sweeps))
            np.testing.assert_allclose(ours, twin, rtol=1e-10 if dtype == np.float64 else 1e-4)
        momentum = np.array([0.7, 0.0])
        ours, twin = (w.extrapolated(U, 2 * U[::-1], momentum) for w in (compiled, sweeps))
        np.testing.assert_allclose(ours, twin, atol=1e-10 if dtype == np.float64 else 1e-6)
        ours, twin = (w.scaled(U, np.array([[2.0] * 5, [0.5] * 5])) for w in (compiled, sweeps))
        np.testing.assert_allclose(ours, twin, **tolerance)


@pytest.mark.parametrize("unit_components", [False, True])
@pytest.mark.parametrize("fit", ["frobenius", *ROW_NORMS])
def test_a_whole_run_equals_its_twin(fit, unit_components, rng):
    X = samples(rng, 30, 14)
    U, V = factors(rng, X, 2, 4)
    rule = CoordinateDescent.of(problem(X, fit, B=2), unit_components)
    runs = [iterate(r, r.start(U, V), max_iter=25, tol=0, eval_every=1) for r in (rule, with_twin(rule))]
    np.testing.assert_allclose(runs[0].state.U, runs[1].state.U, atol=1e-10)
    np.testing.assert_allclose(runs[0].state.V, runs[1].state.V, atol=1e-10)
    np.testing.assert_allclose(runs[0].history["objective"], runs[1].history["objective"], rtol=1e-10)


@pytest.mark.parametrize("row_norm", list(ROW_NORMS))
def test_row_weights_are_slopes_of_the_robust_cost(rng, row_norm):
    """What a residual costs, as a function of its square, has the slope by which its row is weighted."""
    norm, gamma, squared, step = ROW_NORMS[row_norm](), np.array([0.7]), rng.uniform(0.01, 4, (9, 1)), 1e-6
    above, below = (robust_value(norm, (squared + move) ** 0.5, gamma) for move in (step, -step))
    kept = kept_share(norm, squared**0.5, gamma / 2)
    np.testing.assert_allclose((above - below) / (2 * step), kept, rtol=1e-4, atol=1e-7)


@pytest.mark.parametrize("lopsided", [(1e-30, 1e12), (1e12, 1e-30)])
def test_the_best_scale_leaves_room_for_squares(lopsided, rng):
    X = samples(rng).astype(np.float32)
    U, V = (F.astype(np.float32) for F in factors(rng, X, 1, 3))
    alpha, beta = (PENALTIES["log"](np.array([weight])) for weight in lopsided)
    costs = Costs.of(Problem(InMemory(X), Frobenius(), (alpha,), (beta,)))
    scale, inverse = best_scale(costs, U, V, np.zeros((1, 3)), np.ones(1), 200)
    np.testing.assert_allclose(scale * inverse, 1, rtol=1e-6)
    for F in (U * scale, V * inverse):
        assert np.isfinite(np.sum(F.astype(np.float32) ** 2))
        assert F.max() > 0


@pytest.mark.parametrize("penalty", [*PENALTIES, "ratio"])
@given(seed=st.integers(0, 2**16), weights=st.tuples(powers, powers, powers))
def test_newton_scale_never_rises_and_finds_the_minimum(penalty, seed, weights):
    rng = np.random.default_rng(seed)
    X = samples(rng)
    U, V = factors(rng, X, 1, 3)
    rows, unit = coloured(knn_graph(X, 3)), Ratio(np.ones(1)) if penalty == "ratio" else term(penalty)
    weights = [np.array([w]) for w in weights]
    costs = Costs(Problem(InMemory(X), Frobenius(), (unit,), (unit,)), rows, compiled)
    rough = compiled.roughness(V, *rows[2:5])

    def cost(factors):
        alpha, beta, lam = weights
        smooth = lam * (rough / factors**2).sum(axis=1)
        return alpha * unit.value(U * factors) + beta * unit.value(V / factors) + smooth

    values = [cost(newton_scale(costs, U, V, rough, weights, times)) for times in range(40)]
    assert (np.diff(values, axis=0) <= 1e-13 * np.array(values[:-1])).all()
    if penalty == "ratio":  # its minimum is local, and its steps are those of a bound
        return
    best = newton_scale(costs, U, V, rough, weights, 60)
    for factor in (0.9, 1.1):
        assert cost(best) <= cost(best * factor) * (1 + 1e-12)


@pytest.mark.parametrize("fit", ["frobenius", *ROW_NORMS])
@pytest.mark.parametrize("penalty", PENALTIES)
@pytest.mark.parametrize("unit_components", [False, True])
def test_value_is_that_of_the_problem(fit, penalty, unit_components, rng):
    X = samples(rng, 25, 14)
    U, V = factors(rng, X, 3, 4)
    rule = CoordinateDescent.of(problem(X, fit, penalty, B=3), unit_components)
    state = rule.start(U, V)
    for _ in range(30):
        expected = rule.problem.value(state.U, state.V, product(X, state.U))
        np.testing.assert_allclose(rule.value(state), expected, rtol=1e-11)
        state = rule.step(state)
    np.testing.assert_allclose(state.aux[0], product(X, state.U), atol=1e-12)


def test_exact_zeros_in_both_factors(rng):
    X = samples(rng, 40, 30, density=0.5)
    U, V = factors(rng, X, 1, 5)
    rule = CoordinateDescent.of(problem(X, alpha=0.05, beta=0.05, lam=0.1))
    state = iterate(rule, rule.start(U, V), max_iter=100, tol=1e-7).state
    assert 0 < (state.U == 0).mean() < 1
    assert 0 < (state.V == 0).mean() < 1


def test_close_fit_goes_on_falling(rng):
    """Where the data term is a difference of nearly equal numbers, it is measured otherwise."""
    X = rng.random((30, 3)) @ rng.random((3, 20))
    rule = CoordinateDescent.of(problem(X, alpha=0.0, beta=0.0, lam=0.0))
    U, V = factors(rng, X, 1, 3)
    solution = iterate(rule, rule.start(U, V), max_iter=600, tol=0, eval_every=1)
    objective = solution.history["objective"][:, 0]
    assert (np.diff(objective) <= 0).all()
    assert objective[-1] < 1e-9 * objective[0]


@pytest.mark.parametrize(("noise", "ends_sooner"), [(0.0, True), (1e-2, False)])
def test_a_nearly_exact_fit_has_converged(noise, ends_sooner, monkeypatch):
    """Else the objective falls by the same share for ever; fits with an error are as they were."""
    rng = np.random.default_rng(0)
    X = rng.random((80, 4)) @ (rng.random((4, 20)) * (rng.random((4, 20)) < 0.5))
    X += noise * rng.random(X.shape)
    problem, share = Problem(InMemory(X), Frobenius()), rule.NEARLY_EXACT
    solution, before = (_run(problem, X, share, monkeypatch) for share in (share, 0.0))
    assert solution.reason == ["converged"]
    assert (solution.n_iter < before.n_iter).all() == ends_sooner
    if ends_sooner:
        assert before.reason == ["max_iter"]
        assert solution.objective[0] < share * np.sum(X**2)
    else:
        np.testing.assert_array_equal(solution.state.U, before.state.U)


def _run(problem, X, share, monkeypatch):
    monkeypatch.setattr(rule, "NEARLY_EXACT", share)
    rng = np.random.default_rng(1)
    cd = CoordinateDescent.of(problem, unit_components=True)
    start = cd.start(rng.random((X.shape[1], 1, 4)), rng.random((X.shape[0], 1, 4)))
    return iterate(cd, start, max_iter=1500, tol=1e-5)


def test_zero_is_found_where_it_is_best(rng):
    X = samples(rng, 20, 12)
    U, V = factors(rng, X, 1, 3)
    rule = CoordinateDescent.of(problem(X, alpha=100.0, beta=100.0))
    solution = iterate(rule, rule.start(U, V), max_iter=200, tol=1e-6)
    np.testing.assert_allclose(solution.objective, 20)
    assert not solution.state.U.any()
    assert not solution.state.V.any()


def test_empty_components_are_revived(rng):
    """From a start in which all but one component are dead, the others come back."""
    X = np.repeat(np.eye(4), 10, axis=0)
    U, V = factors(rng, X, 1, 4)
    U[:, :, 1:], V[:, :, 1:] = 0, 0
    rule = CoordinateDescent.of(problem(X, alpha=0.01, beta=0.01, lam=0.0))
    solution = iterate(rule, rule.start(U, V), max_iter=200, tol=1e-7)
    assert (solution.state.V > 0).any(axis=0).all()
    assert solution.objective[0] < 5


@pytest.mark.parametrize("unit_components", [False, True])
@pytest.mark.parametrize("penalty", PENALTIES)
@pytest.mark.parametrize("seed", range(25))
def test_converged_is_stationary(penalty, unit_components, seed):
    """Also where the best point was left to refill an empty component, and nothing better was found."""
    rng = np.random.default_rng(seed)
    n, p, k = (int(rng.integers(low, high)) for low, high in ((6, 21), (4, 13), (2, 6)))
    weights = {name: 10 ** rng.uniform(-3, 0.5) for name in ("alpha", "beta", "lam")}
    X = samples(rng, n, p)
    U, V = rng.random((p, 1, k)), rng.random((n, 1, k))
    rule = CoordinateDescent.of(problem(X, penalty=penalty, **weights), unit_components)
    solution = iterate(rule, rule.start(U, V), max_iter=2000, tol=1e-9)
    assert solution.reason == ["converged"]
    opinion = Opinion(X, knn_graph(X, 3).toarray(), **weights, penalty=penalty, unit=unit_components)
    gains = opinion.step_gains(solution.state.U[:, 0], solution.state.V[:, 0])
    assert sum(gains) <= 10 * 1e-9 * solution.objective[0]


# A user's own terms ---------------------------------------------------------------------


@dataclass(frozen=True)
class Root:
    """``weight · Σ 2 (√(1 + F) − 1)``, as a user could write it."""

    weight: np.ndarray

    def value(self, F):
        return self.weight * np.sum(2 * F / (np.sqrt(1 + F) + 1), axis=(0, 2), dtype=np.float64)

    def halves(self, F):
        return lambda rows: (None, self.weight[:, None] / 2 / np.sqrt(1 + F[rows]))

    def minimise(self, curvature, slope, weight, at):
        return np.vectorize(self.minimum)(curvature, slope, weight, at)

    def take(self, index):
        return Root(self.weight[index])

    @staticmethod
    def cost(x):
        return 2.0 * x / (sqrt(1.0 + x) + 1.0)

    @staticmethod
    def slope(x):
        return 1.0 / sqrt(1.0 + x)

    @staticmethod
    def bend(x):
        return x * (1.0 + 0.5 * x) / (1.0 + x) ** 1.5

    @staticmethod
    def minimum(curvature, slope, weight, at):
        # The tangent of a concave function lies above it: each minimum is a step down.
        for _ in range(20):
            at = max((slope - 0.5 * weight / sqrt(1.0 + at)) / curvature, 0.0)
        return at


@dataclass(frozen=True)
class Ratio:
    """``weight · Σ F / (1 + F)``: concave, but not convex in log F, so that it has no `bend`."""

    weight: np.ndarray

    def value(self, F):
        return self.weight * np.sum(F / (1 + F), axis=(0, 2), dtype=np.float64)

    def halves(self, F):
        return lambda rows: (None, self.weight[:, None] / 2 / (1 + F[rows]) ** 2)

    def minimise(self, curvature, slope, weight, at):
        return np.vectorize(self.minimum)(curvature, slope, weight, at)

    def take(self, index):
        return Ratio(self.weight[index])

    @staticmethod
    def cost(x):
        return x / (1.0 + x)

    @staticmethod
    def slope(x):
        return 1.0 / ((1.0 + x) * (1.0 + x))

    @staticmethod
    def minimum(curvature, slope, weight, at):
        for _ in range(20):
            at = max((slope - 0.5 * weight / ((1.0 + at) * (1.0 + at))) / curvature, 0.0)
        return at


class WithoutScalars:
    """`Root` with the array formulas only."""

    weight = np.ones(1)
    value, halves, minimise, take = Root.value, Root.halves, Root.minimise, Root.take


@pytest.mark.parametrize("unit_components", [False, True])
@pytest.mark.parametrize("on_U", [Root, Ratio, *PENALTIES.values()])
def test_ones_own_penalty_and_different_ones_on_U_and_V(on_U, unit_components, rng):
    """Its objective is the problem's, never rises, and is well below that of the multiplicative updates."""
    X = samples(rng, 30, 20)
    U, V = factors(rng, X, 2, 4)
    graph = Laplacian.of(knn_graph(X, 3), np.array([0.0, 0.1]))
    terms = Problem(
        InMemory(X), Frobenius(), (on_U(np.array([0.02, 0.1])),), (graph, Root(np.array([0.02, 0.1])))
    )
    rules = [SOLVERS[name].of(terms, unit_components=unit_components) for name in ("cd", "mu")]
    ours, theirs = (iterate(r, r.start(U, V), max_iter=300, tol=0, eval_every=1) for r in rules)
    objective = ours.history["objective"]
    assert (np.diff(objective, axis=0) <= 1e-12 * objective[:-1]).all()
    state = ours.state
    np.testing.assert_allclose(ours.objective, terms.value(state.U, state.V, product(X, state.U)), rtol=1e-11)
    assert (ours.objective <= theirs.objective * (1 + 1e-3)).all()
    assert (state.V == 0).any()


def test_each_penalty_gets_its_own_loops(rng):
    """Not those of another one: a coordinate sweep descends on the term it is given."""
    F, A, G = rng.random((9, 1, 3)), rng.random((9, 1, 3)), np.eye(3)[None] + 0.1
    nothing, found = np.zeros((0, 1)), {}
    for make in (Root, *PENALTIES.values()):
        arguments = F, A, G, nothing, without_edges(9), np.zeros(1), np.ones(1), 50
        ours, twin = (work.loops(make(np.ones(1))).sweep(*arguments) for work in (compiled, sweeps))
        np.testing.assert_allclose(ours, twin, atol=1e-9)
        found[make] = ours
    assert np.abs(found[Root] - found[L1]).max() > 1e-3
    assert np.abs(found[Root] - found[Log]).max() > 1e-3


class TestRefusals:
    """One sentence each, from `refuses` and as a ValueError from `of`."""

    def check(self, terms, sentence):
        assert CoordinateDescent.refuses(terms) == sentence
        with pytest.raises(ValueError, match="solver=") as error:
            CoordinateDescent.of(terms)
        assert str(error.value) == sentence

    def test_libraries(self):
        strict = pytest.importorskip("array_api_strict", reason="array_api_strict is for tests")
        self.check(
            Problem(InMemory(strict.ones((6, 4))), Frobenius()),
            'solver="cd" works on NumPy arrays, SciPy sparse matrices and torch tensors; X is of type Array: '
            'use solver="mu".',
        )

    def test_weighted_entries_of_a_robust_fit(self, rng):
        X = rng.random((6, 4))
        self.check(
            Problem(InMemory(X, X), Robust(ROW_NORMS["l21"](), np.ones(1))),
            'solver="cd" takes no weighted or missing entries in a robust fit: use solver="mu", or fill them '
            "first.",
        )

    def test_entries_of_tensors(self, rng):
        torch = pytest.importorskip("torch", reason="torch is an extra")
        self.check(
            Problem(InMemory(torch.ones((6, 4))), KullbackLeibler()),
            'solver="cd" takes weighted or missing entries and loss="kullback-leibler" only where X is a '
            'NumPy array or a SciPy sparse matrix in memory: use solver="mu".',
        )

    def test_other_data_fits(self, rng):
        fit = type("Absolute", (), {"quadratic": False})()
        self.check(
            Problem(InMemory(rng.random((6, 4))), fit),
            'solver="cd" minimises squared errors and the Kullback-Leibler divergence only; got Absolute: '
            'use solver="mu".',
        )

    @pytest.mark.parametrize("factor", ["U", "V"])
    def test_penalties_without_scalar_functions(self, factor, rng):
        self.check(
            Problem(InMemory(rng.random((6, 4))), Frobenius(), **{f"on_{factor}": (WithoutScalars(),)}),
            'solver="cd" needs the static methods cost, slope, minimum of a penalty; WithoutScalars, '
            f'on {factor}, lacks cost, slope, minimum: add them, or use solver="mu".',
        )

    def test_methods_in_place_of_static_methods(self, rng):
        bound = type("Bound", (Root,), {"slope": lambda self, x: 1.0})(np.ones(1))
        sentence = CoordinateDescent.refuses(Problem(InMemory(rng.random((6, 4))), Frobenius(), (bound,)))
        assert sentence.startswith('solver="cd" needs the static methods')
        assert "Bound, on U, lacks slope:" in sentence

    def test_several_penalties_on_a_factor(self, rng):
        X, one = rng.random((6, 4)), np.ones(1)
        several = 'solver="cd" takes at most one penalty on U, one on V and one graph; got '
        graph = Laplacian.of(knn_graph(X, 2), one)
        fit = (InMemory(X), Frobenius())
        self.check(Problem(*fit, (Log(one), L1(one))), several + 'Log, L1: use solver="mu".')
        self.check(Problem(*fit, (), (Log(one), L1(one))), several + 'Log, L1: use solver="mu".')
        self.check(Problem(*fit, (), (graph, graph)), several + 'Laplacian, Laplacian: use solver="mu".')
        assert "Laplacian, on U, lacks cost" in CoordinateDescent.refuses(Problem(*fit, (graph,)))

    def test_what_is_left_is_taken(self, rng):
        X, one = rng.random((6, 4)), np.ones(1)
        graph = Laplacian.of(knn_graph(X, 2), one)
        for data, fit in (
            (InMemory(X), Frobenius()),
            (InMemory(X), Robust(ROW_NORMS["l21"](), one)),
            (InMemory(X), KullbackLeibler()),
            (InMemory(X, X), Weighted()),
        ):
            assert CoordinateDescent.refuses(Problem(data, fit, (Log(one),), (graph, L1(one)))) is None


def run(program):
    command = [sys.executable, "-c", textwrap.dedent(program)]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def test_numba_is_loaded_late():
    run("import sys, lognmf, lognmf.models, lognmf.core.solvers; assert 'numba' not in sys.modules")


def test_another_process_finds_the_compiled_loops_on_disk():
    program = """
        import numpy as np
        from lognmf.core.solvers.coordinate import compiled, rule
        from lognmf.core.terms import Log
        penalty_sum = compiled.loops(Log).penalty_sum
        print(penalty_sum(np.ones((3, 1, 2))))
        print(dict(penalty_sum.args[0].stats.cache_misses))
    """
    run(program)
    assert run(program).splitlines()[1] == "{}"


def test_a_changed_formula_is_compiled_anew(tmp_path):
    """Also where only a constant of its module has changed, which numba's own cache does not see."""
    formula = """
        SCALE = {}
        class Scaled:
            weight = None
            @staticmethod
            def cost(x):
                return SCALE * x
            slope = minimum = cost
    """
    program = f"""
        import sys
        sys.path.insert(0, {str(tmp_path)!r})
        sys.dont_write_bytecode = True
        import numpy as np
        from lognmf.core.solvers.coordinate import compiled, rule
        from own_penalty import Scaled
        print(compiled.loops(Scaled).penalty_sum(np.ones((3, 1, 2)))[0])
    """
    for scale in (2.0, 3.0):
        (tmp_path / "own_penalty.py").write_text(textwrap.dedent(formula.format(scale)))
        assert float(run(program)) == 6 * scale
