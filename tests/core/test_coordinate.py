"""Coordinate descent: compiled work equals its NumPy twin, each part goes down, what it cannot do it says."""

import subprocess
import sys

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

from lognmf.core.arrays import SHARED_PRODUCTS, gram, product, product_t
from lognmf.core.loop import iterate
from lognmf.core.solvers import CoordinateDescent
from lognmf.core.solvers.coordinate import kernels, sweeps
from lognmf.core.solvers.coordinate.coloured_graph import independent, visit
from lognmf.core.solvers.coordinate.costs import Costs
from lognmf.core.terms import L1, PENALTIES, ROW_NORMS, Frobenius, Log, Robust, Weighted
from lognmf.graph import knn_graph
from lognmf.models.log_sparse import regularised
from problems import factors, samples

compiled = pytest.importorskip("lognmf.core.solvers.coordinate.compiled", reason="numba is an extra")
powers = st.floats(-3, 3).map(lambda x: 10**x)
CONCAVE = {"log": True, "l1": False}


def problem(X, fit="frobenius", penalty="log", alpha=0.01, beta=0.01, lam=1.0, gamma=0.5, B=1):
    alpha, beta, lam, gamma = (np.full(B, w, dtype=X.dtype) for w in (alpha, beta, lam, gamma))
    data_fit = Frobenius.of(X) if fit == "frobenius" else Robust.of(X, ROW_NORMS[fit](), gamma)
    return regularised(data_fit, W=knn_graph(X, 3), alpha=alpha, beta=beta, lam=lam, penalty=penalty)


def with_twin(rule):
    return CoordinateDescent(Costs(rule.problem, rule.costs.rows_of_V, sweeps), rule.unit_components)


@pytest.mark.parametrize("work", [compiled, sweeps])
class TestColouring:
    def test_no_edge_within_a_colour_and_every_row_once(self, work, rng):
        X = samples(rng, 60, 9)
        W = knn_graph(X, 4)
        rows = visit(W + sp.eye_array(60), work)
        assert sorted(rows.order) == list(range(60))
        for c in range(len(rows.bounds) - 1):
            of_colour = rows.order[rows.bounds[c] : rows.bounds[c + 1]]
            assert len(of_colour)
            assert W[of_colour][:, of_colour].nnz == 0
        np.testing.assert_allclose(rows.degree, W.sum(axis=1))  # loops do not count
        np.testing.assert_array_equal(rows.order, visit(W, sweeps).order)

    def test_graph_without_edges(self, work):
        rows, free = visit(sp.csr_array((5, 5)), work), independent(5)
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
        arguments = V, product(X, U), gram(U, U), kept, visit(knn_graph(X, 3), sweeps), lam, weight
        ours, twin = (w.sweep(*arguments, CONCAVE[penalty], 3) for w in (compiled, sweeps))
        assert ours.dtype == dtype
        np.testing.assert_allclose(ours, twin, atol=1e-10 if dtype == np.float64 else 1e-5)
        assert (ours >= 0).all()

    @pytest.mark.parametrize("B", [1, 3])
    def test_shared_sweep(self, penalty, dtype, B, rng, monkeypatch):
        """In several threads it is the same, to the last bit."""
        X, U, V = self.arrays(rng, dtype, B=B)
        arguments = V, product(X, U), gram(U, U), rng.random((50, B)).astype(dtype)
        arguments += visit(knn_graph(X, 3), compiled), np.full(B, 0.5), np.full(B, 0.1)
        alone = compiled.sweep(*arguments, CONCAVE[penalty], 2)
        monkeypatch.setattr(compiled, "SHARED_WORK", 0)
        monkeypatch.setattr("lognmf.core.arrays.own_threads", lambda: 2)
        token = SHARED_PRODUCTS.set(True)
        try:
            shared = compiled.sweep(*arguments, CONCAVE[penalty], 2)
        finally:
            SHARED_PRODUCTS.reset(token)
        np.testing.assert_array_equal(shared, alone)

    def test_sphere_sweep(self, penalty, dtype, rng):
        X, U, V = self.arrays(rng, dtype)
        for weight in (0.01, 1.0, 1e3):
            arguments = U, product_t(X, V), gram(V, V), np.array([weight, 0.0])
            ours, twin = (w.sphere_sweep(*arguments, CONCAVE[penalty], 2) for w in (compiled, sweeps))
            np.testing.assert_allclose(ours, twin, atol=1e-10 if dtype == np.float64 else 1e-5)
            np.testing.assert_allclose(np.linalg.norm(ours, axis=0), 1, rtol=1e-5)

    def test_scales_sums_and_steps(self, penalty, dtype, rng):
        X, U, V = self.arrays(rng, dtype)
        rows, concave = visit(knn_graph(X, 3), sweeps), CONCAVE[penalty]
        tolerance = {"rtol": 1e-10 if dtype == np.float64 else 1e-5}
        rough = sweeps.roughness(V, rows)
        np.testing.assert_allclose(compiled.roughness(V, rows), rough, **tolerance)
        L = np.diag(rows.degree) - sp.csr_array((rows.weights, rows.indices, rows.indptr)).toarray()
        np.testing.assert_allclose(rough, np.einsum("ibk,ij,jbk->bk", V, L, V, dtype=float), rtol=1e-4)
        weights = np.array([0.3, 10.0]), np.array([0.01, 1.0]), np.array([0.0, 2.0])
        ours, twin = (w.newton_scale(U, V, rough, *weights, concave, 9) for w in (compiled, sweeps))
        np.testing.assert_allclose(ours, twin, **tolerance)
        for F in (U, 1e20 * U, 0 * U):
            ours, twin = (w.penalty_sum(F, concave) for w in (compiled, sweeps))
            np.testing.assert_allclose(ours, twin, rtol=1e-10 if dtype == np.float64 else 1e-4)
        momentum = np.array([0.7, 0.0])
        ours, twin = (w.beyond(U, 2 * U[::-1], momentum) for w in (compiled, sweeps))
        np.testing.assert_allclose(ours, twin, atol=1e-10 if dtype == np.float64 else 1e-6)
        ours, twin = (w.scaled(U, np.array([[2.0], [0.5]])) for w in (compiled, sweeps))
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


@pytest.mark.parametrize("penalty", PENALTIES)
@given(seed=st.integers(0, 2**16), weights=st.tuples(powers, powers, powers))
def test_newton_scale_never_rises_and_finds_the_minimum(penalty, seed, weights):
    rng = np.random.default_rng(seed)
    X = samples(rng)
    U, V = factors(rng, X, 1, 3)
    rows, concave = visit(knn_graph(X, 3), sweeps), CONCAVE[penalty]
    alpha, beta, lam = (np.array([w]) for w in weights)
    rough = sweeps.roughness(V, rows)

    def cost(factors):
        term = (Log if concave else L1)(np.ones(1))
        return (
            alpha * term.value(U * factors)
            + beta * term.value(V / factors)
            + lam * (rough / factors**2).sum(axis=1)
        )

    costs = [
        cost(compiled.newton_scale(U, V, rough, alpha, beta, lam, concave, times)) for times in range(40)
    ]
    assert (np.diff(costs, axis=0) <= 1e-13 * np.array(costs[:-1])).all()
    best = compiled.newton_scale(U, V, rough, alpha, beta, lam, concave, 60)
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


def test_refusals(rng):
    torch = pytest.importorskip("torch", reason="torch is an extra")
    X = torch.rand(6, 4, dtype=torch.float64)
    from lognmf.core.problem import Problem

    with pytest.raises(ValueError, match=r"works on NumPy arrays and SciPy sparse matrices; got a Tensor"):
        CoordinateDescent.of(Problem(Frobenius.of(X)))
    with pytest.raises(ValueError, match="no missing or weighted entries"):
        CoordinateDescent.of(Problem(Weighted.of(X.numpy(), X.numpy())))


def test_without_numba_the_twin_serves_and_says_so():
    program = """
        import sys, warnings
        sys.modules["numba"] = None
        import numpy as np
        from lognmf import LogSparseNMF
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            X = np.random.default_rng(0).random((12, 8))
            models = [LogSparseNMF(2, solver="cd", random_state=0, max_iter=20).fit(X) for _ in range(2)]
        words = [str(w.message) for w in told]
        assert len(words) == 1 and "without numba" in words[0] and "lognmf[cd]" in words[0], words
        print(models[0].objective_)
    """
    import textwrap

    from lognmf import LogSparseNMF

    command = [sys.executable, "-c", textwrap.dedent(program)]
    found = float(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
    X = np.random.default_rng(0).random((12, 8))
    model = LogSparseNMF(2, solver="cd", random_state=0, max_iter=20).fit(X)
    np.testing.assert_allclose(found, model.objective_, rtol=1e-10)


def test_numba_is_loaded_late():
    program = "import sys, lognmf, lognmf.models; assert 'numba' not in sys.modules"
    subprocess.run([sys.executable, "-c", program], check=True)
    assert kernels.kernels() is compiled
