"""The contract of the solvers: never up, never negative, a batch is its single runs."""

import dataclasses

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from lognmf.core.data import InMemory
from lognmf.core.loop import iterate
from lognmf.core.solvers import SOLVERS
from lognmf.core.terms import LOSSES, PENALTIES, ROW_NORMS
from lognmf.graph import knn_graph
from lognmf.models.log_sparse import regularised
from problems import cut, factors, fit_of, samples

powers = st.floats(-3, 3).map(lambda x: 10**x)
FITS = ["frobenius", *ROW_NORMS]


def problem(X, fit, penalty, alpha, beta, lam, gamma):
    alpha, beta, lam, gamma = (np.atleast_1d(np.asarray(w, dtype=X.dtype)) for w in (alpha, beta, lam, gamma))
    data_fit = fit_of(fit, gamma)
    data, weights = InMemory(X), {"alpha": alpha, "beta": beta, "lam": lam}
    return regularised(data, data_fit, W=knn_graph(X, 3), penalty=penalty, **weights)


@pytest.mark.parametrize("solver", SOLVERS)
class TestSolver:
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
        if uniform:  # the paper's start, far too large for unit-norm data
            U, V = rng.random(U.shape), rng.random(V.shape)
        rule = SOLVERS[solver].of(problem(X, fit, penalty, *weights))
        solution = iterate(rule, rule.start(U, V), max_iter=40, tol=0, eval_every=1)
        objective = solution.history["objective"][:, 0]
        assert len(objective) == 41
        assert (np.diff(objective) <= 1e-12 * np.abs(objective[:-1]) + 1e-13).all()
        assert (solution.state.U >= 0).all()
        assert (solution.state.V >= 0).all()

    @pytest.mark.parametrize("fit", FITS)
    @pytest.mark.parametrize("sparse", [False, True])
    def test_batch_is_its_single_runs(self, solver, fit, sparse, rng):
        """Also where settings converge, and leave, at different times."""
        X = samples(rng, 20, 12, density=0.5)
        data = sp.csr_array(X) if sparse else X
        B = 5
        U, V = factors(rng, X, B, 3)
        weights = 10.0 ** rng.uniform(-3, 1, size=(4, B))
        weights[:, 0] = 0
        rule = SOLVERS[solver].of(problem(data, fit, "log", *weights))
        options = {"max_iter": 300, "tol": 1e-4, "eval_every": 10}
        together = iterate(rule, rule.start(U, V), **options)
        assert len(set(together.n_iter)) > 1, "the settings should end at different times"
        for b in range(B):
            one = rule.take(np.array([b]))
            alone = iterate(one, one.start(U[:, [b]], V[:, [b]]), **options)
            np.testing.assert_allclose(together.state.U[:, b], alone.state.U[:, 0], atol=1e-10)
            np.testing.assert_allclose(together.state.V[:, b], alone.state.V[:, 0], atol=1e-10)
            assert together.n_iter[b] == alone.n_iter[0]
            assert together.reason[b] == alone.reason[0]
            np.testing.assert_allclose(
                together.history_of(b)["objective"], alone.history_of(0)["objective"], rtol=1e-10
            )

    @pytest.mark.parametrize("fit", FITS)
    def test_blocks_of_rows_do_not_matter(self, solver, fit, rng, monkeypatch):
        """A large batch is updated in blocks, on several threads."""
        X = samples(rng, 50, 40)
        U, V = factors(rng, X, 4, 3)
        weights = 10.0 ** rng.uniform(-2, 1, size=(4, 4))
        rule = SOLVERS[solver].of(problem(X, fit, "log", *weights))
        whole = iterate(rule, rule.start(U, V), max_iter=20, tol=0)
        monkeypatch.setattr("lognmf.core.threads.BLOCK_NUMBERS", 7 * 4 * 3)
        blocks = iterate(rule, rule.start(U, V), max_iter=20, tol=0)
        # Products of other shapes round otherwise, and iterations carry that on; a row in a wrong place
        # would change the first digits.
        np.testing.assert_allclose(blocks.state.U, whole.state.U, rtol=1e-8, atol=1e-10)
        np.testing.assert_allclose(blocks.state.V, whole.state.V, rtol=1e-8, atol=1e-10)
        np.testing.assert_allclose(blocks.objective, whole.objective, rtol=1e-10)

    def test_start_is_not_changed(self, solver, rng):
        X = samples(rng)
        U, V = factors(rng, X, 2, 3)
        before = U.copy(), V.copy()
        rule = SOLVERS[solver].of(problem(X, "l2log", "log", [0.1] * 2, [0.1] * 2, [1.0] * 2, [1.0] * 2))
        rule.step(rule.start(U, V))
        np.testing.assert_array_equal(U, before[0])
        np.testing.assert_array_equal(V, before[1])

    def test_no_subnormal_numbers(self, solver, rng):
        X = samples(rng, 20, 12)
        U, V = factors(rng, X, 1, 6)
        rule = SOLVERS[solver].of(problem(X, "frobenius", "log", 1.0, 1.0, 1.0, 1.0))
        state = iterate(rule, rule.start(U, V), max_iter=2000, tol=0, eval_every=500).state
        tiny = np.finfo(np.float64).smallest_normal
        for F in (state.U, state.V):
            assert ((tiny <= F) | (F == 0)).all()
        assert (state.U == 0).any()


def in_long_double(X, W, U, V, *, alpha, beta, lam):
    """The objective with log penalties by its definition, for one setting."""
    X, W, U, V = (np.asarray(F, dtype=np.longdouble) for F in (X, W, U, V))
    i, j = np.nonzero(W)
    rough = (W[i, j][:, None] * (V[i] - V[j]) ** 2).sum() / 2
    sparse = alpha * np.log1p(U).sum() + beta * np.log1p(V).sum()
    return float(((X - V @ U.T) ** 2).sum() + lam * rough + sparse)


@settings(max_examples=40)
@given(
    seed=st.integers(0, 2**16),
    lam=st.sampled_from([0.0, *10.0 ** np.arange(-2, 13)]),
    size=st.sampled_from([1e-3, 1.0, 1e3]),
    fits=st.booleans(),
    unit=st.booleans(),
    sparsity=st.sampled_from([0.0, 1e-3, 10.0]),
)
def test_the_objective_is_exact_and_never_rises_however_large_the_graphs_weight(
    seed, lam, size, fits, unit, sparsity
):
    rng = np.random.default_rng(seed)
    X = size * (rng.random((14, 3)) @ rng.random((3, 9)) if fits else samples(rng, 14, 9))
    W = knn_graph(X, 3)
    weights = {"alpha": np.array([sparsity]), "beta": np.array([sparsity]), "lam": np.array([lam])}
    terms = regularised(InMemory(X), fit_of("frobenius", np.ones(1)), W=W, penalty="log", **weights)
    rule = SOLVERS["mu"].of(terms, unit)
    state, previous = rule.start(rng.random((9, 1, 3)), rng.random((14, 1, 3))), np.inf
    rounding = 1e-25 * np.sum(X**2)  # of a fit that is as close as float64 allows
    for step in range(400):
        if step < 50 or step % 10 == 0:
            value, V, U = rule.value(state)[0], state.V[:, 0], state.U[:, 0]
            plain = {name: weight[0] for name, weight in weights.items()}
            exact = in_long_double(X, W.toarray(), U, V, **plain)
            assert abs(value - exact) <= 1e-9 * exact + rounding
            assert value <= previous * (1 + 1e-10) + rounding
            previous = value
        state = rule.step(state)


@pytest.mark.parametrize("fit", [*LOSSES, *ROW_NORMS])
@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("unit", [False, True])
def test_multiplicative_updates_read_x_in_blocks(fit, sparse, unit, rng):
    """One pass over blocks of rows per iteration, anywhere the blocks are cut: the same numbers."""
    X = samples(rng, 20, 12, density=0.6)
    U, V = factors(rng, X, 2, 3)
    whole = problem(X, fit, "log", *(10.0 ** rng.uniform(-2, 0, size=(4, 2))))
    blocks = cut(sp.csr_array(X) if sparse else X, [3, 4, 15])
    ends = []
    for one in (whole, dataclasses.replace(whole, data=blocks)):
        rule = SOLVERS["mu"].of(one, unit_components=unit)
        ends.append(iterate(rule, rule.start(U, V), max_iter=15, tol=0))
    np.testing.assert_allclose(ends[1].state.U, ends[0].state.U, rtol=1e-8, atol=1e-12)
    np.testing.assert_allclose(ends[1].state.V, ends[0].state.V, rtol=1e-8, atol=1e-12)
    np.testing.assert_allclose(ends[1].objective, ends[0].objective, rtol=1e-10)


@given(
    seed=st.integers(0, 2**16),
    penalty=st.sampled_from(list(PENALTIES)),
    weights=st.tuples(powers, powers, powers),
    unit=st.booleans(),
)
def test_kullback_leibler_never_rises(seed, penalty, weights, unit):
    """Also with a graph, whose quadratic bound is not that of the divergence."""
    rng = np.random.default_rng(seed)
    X = samples(rng, density=0.6)
    U, V = rng.random((9, 1, 3)), rng.random((12, 1, 3))
    rule = SOLVERS["mu"].of(problem(X, "kullback-leibler", penalty, *weights, 1.0), unit_components=unit)
    solution = iterate(rule, rule.start(U, V), max_iter=40, tol=0, eval_every=1)
    objective = solution.history["objective"][:, 0]
    assert (np.diff(objective) <= 1e-12 * np.abs(objective[:-1]) + 1e-13).all()
    for F in (solution.state.U, solution.state.V):
        assert np.isfinite(F).all()
        assert (F >= 0).all()


def test_workers_survive_a_fork(rng, monkeypatch):
    """A child process has none of its parent's threads; it must not wait for them."""
    import multiprocessing
    import warnings

    monkeypatch.setattr("lognmf.core.threads.BLOCK_NUMBERS", 16)
    X = samples(rng, 30, 20)
    U, V = factors(rng, X, 2, 3)
    rule = SOLVERS["mu"].of(problem(X, "l2log", "log", *np.ones((4, 2))))
    state = rule.start(U, V)
    expected = rule.step(state).V
    context = multiprocessing.get_context("fork")
    queue = context.SimpleQueue()
    child = context.Process(target=lambda: queue.put(rule.step(state).V), daemon=True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # newer Pythons warn of any fork beside threads
        child.start()
    child.join(60)
    assert child.exitcode == 0
    np.testing.assert_array_equal(queue.get(), expected)
