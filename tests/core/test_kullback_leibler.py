"""The Kullback-Leibler fit against scikit-learn, dense, sparse, masked, and its codes of new samples."""

import dataclasses

import numpy as np
import pytest
import scipy.optimize
import scipy.sparse as sp
import scipy.special
from sklearn.decomposition import NMF, non_negative_factorization

from lognmf.core.arrays import like, to_numpy
from lognmf.core.data import InMemory
from lognmf.core.loop import iterate
from lognmf.core.problem import Problem
from lognmf.core.solvers import SOLVERS, encode
from lognmf.core.terms import L1, KullbackLeibler, Log
from problems import pattern, peak_numbers


@pytest.fixture
def counts(rng):
    """Counts with many zeros, but no empty row or column."""
    X = rng.poisson(rng.gamma(0.5, 2.0, (30, 3)) @ rng.gamma(0.5, 2.0, (3, 20))).astype(float)
    X[np.arange(30), np.arange(30) % 20] += 1
    return X


@pytest.fixture
def start(rng):
    return 0.1 + rng.random((20, 3)), 0.1 + rng.random((30, 3))


def solve(X, U, V, steps, M=None, **terms):
    rule = SOLVERS["mu"].of(Problem(InMemory(X, M), KullbackLeibler(), **terms))
    return iterate(rule, rule.start(U[:, None], V[:, None]), max_iter=steps, tol=0, eval_every=1)


def divergence(X, Y, M=1.0):
    return np.sum(M * (scipy.special.rel_entr(X, Y) - X + Y))


@pytest.mark.filterwarnings("ignore:Maximum number of iterations")
@pytest.mark.parametrize("steps", [1, 10, 200])
@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
def test_as_scikit_learns(counts, start, steps, form):
    """scikit-learn updates the codes first, we the basis: so its data are the transpose."""
    U, V = start
    solution = solve(form(counts), U, V, steps)
    W, H, _ = non_negative_factorization(
        counts.T.copy(),
        W=U.copy(),
        H=V.T.copy(),
        n_components=3,
        init="custom",
        solver="mu",
        beta_loss="kullback-leibler",
        tol=0,
        max_iter=steps,
    )
    np.testing.assert_allclose(solution.state.U[:, 0], W, rtol=1e-8, atol=1e-12)
    np.testing.assert_allclose(solution.state.V[:, 0], H.T, rtol=1e-8, atol=1e-12)
    np.testing.assert_allclose(solution.objective[0], divergence(counts, H.T @ W.T), rtol=1e-8)


def test_penalties_as_scikit_learns(counts, start):
    """Its penalties are multiplied by the sizes; the divergence is not halved."""
    U, V = start
    n, p = counts.shape
    penalties = {"on_U": (L1(np.array([0.7])),), "on_V": (L1(np.array([0.3])),)}
    ours = solve(counts, U, V, 300, **penalties)
    model = NMF(
        3,
        init="custom",
        solver="mu",
        beta_loss="kullback-leibler",
        l1_ratio=1,
        alpha_W=0.7 / n,
        alpha_H=0.3 / p,
        tol=0,
        max_iter=300,
    )
    W = model.fit_transform(counts.T.copy(), W=U.copy(), H=V.T.copy())
    np.testing.assert_allclose(ours.state.U[:, 0], W, rtol=1e-8, atol=1e-12)


@pytest.mark.parametrize("unit", [False, True])
def test_ends_at_a_stationary_point(counts, start, unit):
    """At the end the projected gradient vanishes on positive entries, on the sphere its tangent part."""
    U, V = start
    rule = SOLVERS["mu"].of(Problem(InMemory(counts), KullbackLeibler()), unit_components=unit)
    state = iterate(rule, rule.start(U[:, None], V[:, None]), max_iter=20000, tol=0, eval_every=1000).state
    U, V = state.U[:, 0], state.V[:, 0]
    pull = 1 - counts / np.maximum(V @ U.T, 1e-300)
    assert np.abs((pull @ U) * V).max() < 1e-6
    if unit:
        np.testing.assert_allclose(np.linalg.norm(U, axis=0), 1, rtol=1e-10)
    assert np.abs((pull.T @ V) * U).max() < 1e-5


@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
def test_weights_of_entries(counts, start, form, rng):
    U, V = start
    M = (rng.random(counts.shape) < 0.7) * rng.random(counts.shape)
    solution = solve(form(counts * (M > 0)), U, V, 30, M=form(M))
    Y = solution.state.V[:, 0] @ solution.state.U[:, 0].T
    np.testing.assert_allclose(solution.objective[0], divergence(counts, Y, M), rtol=1e-10)
    assert (np.diff(solution.history["objective"][:, 0]) <= 1e-10).all()
    ones = solve(counts, U, V, 30, M=np.ones_like(counts))
    np.testing.assert_allclose(ones.state.U, solve(counts, U, V, 30).state.U, rtol=1e-10)


def test_sparse_data_stay_sparse(rng):
    """No array of the size of X is made."""
    from lognmf import PlainNMF

    X = sp.random_array((2000, 3000), density=0.002, rng=rng, format="csr")
    X.data = 1.0 + np.floor(5 * X.data)
    model = PlainNMF(4, loss="kullback-leibler", max_iter=3, random_state=0)
    assert peak_numbers(model, X) < 0.1 * X.shape[0] * X.shape[1]


@pytest.mark.parametrize("penalty", [None, Log, L1])
def test_codes_of_new_samples(counts, rng, penalty):
    """Each against SciPy's minimiser."""
    U = 0.05 + rng.random((20, 3))
    on_V = () if penalty is None else (penalty(np.full(30, 0.5)),)
    V = encode(Problem(InMemory(counts), KullbackLeibler(), on_V=on_V), U)
    cost = {None: lambda v: 0.0, Log: lambda v: 0.5 * np.log1p(v).sum(), L1: lambda v: 0.5 * v.sum()}[penalty]
    for x, v in zip(counts[:8], V[:8], strict=True):
        best = scipy.optimize.minimize(
            lambda v, x=x: divergence(x, U @ v) + cost(v), v + 0.1, bounds=[(0, None)] * 3, tol=1e-12
        )
        assert divergence(x, U @ v) + cost(v) <= best.fun + 1e-5 * abs(best.fun)


@pytest.mark.parametrize("library", ["array-api-strict", "torch-cpu", "torch-cuda"])
def test_codes_in_every_library(counts, rng, library):
    U = rng.random((counts.shape[1], 3))
    here = encode(Problem(InMemory(counts), KullbackLeibler()), U)
    X, U = (like(F, pattern(library)) for F in (counts, U))
    there = encode(Problem(InMemory(X), KullbackLeibler()), U)
    np.testing.assert_allclose(to_numpy(there), here, atol=5e-3)  # by multiplicative updates


def test_codes_that_cannot_be_solved_are_refused(rng):
    from lognmf.core.terms import ROW_NORMS
    from problems import code_problem

    problem = code_problem(rng.random((5, 4)), penalty=L1, beta=0.1, row_norm=ROW_NORMS["l21"](), gamma=0.5)
    twice = dataclasses.replace(problem, on_V=problem.on_V * 2)
    with pytest.raises(ValueError, match="transform of a robust fit takes at most one penalty"):
        encode(twice, rng.random((4, 2)))


def test_two_penalties_are_one_of_their_sum(rng):
    from problems import code_problem

    X, U = rng.random((12, 9)), rng.random((9, 3))
    one, half = (code_problem(X, penalty=L1, beta=beta) for beta in (0.2, 0.1))
    twice = encode(dataclasses.replace(half, on_V=half.on_V * 2), U)
    np.testing.assert_allclose(twice, encode(one, U), atol=1e-3)


class TestZeros:
    """Zeros of data and factors, where a ratio or a logarithm could overflow."""

    @pytest.mark.parametrize("scale", [1.0, 10.0, 1e6])
    def test_an_empty_sample_with_a_graph(self, counts, scale):
        from lognmf import LogSparseNMF

        counts[7] = 0
        model = LogSparseNMF(
            3, init="random", loss="kullback-leibler", max_iter=60, eval_every=1, random_state=0
        )
        model.fit(scale * counts)
        assert np.isfinite(model.embedding_).all()
        assert (np.diff(model.history_["objective"]) <= 1e-9 * scale).all()

    def test_zeros_of_a_start_stay(self, counts, start):
        from lognmf import GraphNMF

        U, V = start
        V[0, 0] = 0
        model = GraphNMF(3, loss="kullback-leibler", random_state=0).fit(counts + 1, U0=U, V0=V)
        assert model.embedding_[0, 0] == 0
        assert np.isfinite(model.objective_)

    @pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
    @pytest.mark.parametrize("dtype", [np.float64, np.float32])
    def test_what_the_parts_cannot_reach(self, counts, form, dtype):
        """A word that the training texts do not have says nothing about the codes."""
        from lognmf import PlainNMF

        counts[:, 2] = 0
        model = PlainNMF(3, loss="kullback-leibler", random_state=0).fit(form(counts.astype(dtype)))
        new = counts[:4].copy()
        expected = model.transform(form(new.astype(dtype)))
        new[:, 2] = [0, 1, 5, 1e6]
        codes = model.transform(form(new.astype(dtype)))
        np.testing.assert_allclose(codes, expected, rtol=1e-3, atol=1e-4)

    def test_a_zero_row_of_the_first_parts(self, counts, start):
        U, V = start
        U[3] = 0
        solution = solve(counts, U, V, 20)
        assert np.isfinite(solution.state.V).all()
        assert (solution.state.U[3] == 0).all()
        assert np.isfinite(solution.objective).all()

    def test_codes_of_a_model_of_nothing(self):
        from lognmf import PlainNMF

        model = PlainNMF(2, loss="kullback-leibler", random_state=0, max_iter=5).fit(np.zeros((6, 4)))
        assert np.isfinite(model.transform(np.ones((3, 4)))).all()


def test_sparse_is_dense_also_where_data_cannot_be_reached(rng):
    """With V Uᵀ = 0 the ratios are huge; they are finite, positive and those of the dense formulas."""
    X = 10.0 ** rng.uniform(-110, 100, (7, 5)) * (rng.random((7, 5)) < 0.7)
    X[3], X[4] = 1e-110, 1e100
    U, V = 0.1 + rng.random((5, 1, 2)), 0.1 + rng.random((7, 1, 2))
    V[3:5], U[2] = 0, 0
    fit, found = KullbackLeibler(), []
    for form in (np.asarray, sp.csr_array):
        data = InMemory(form(X))
        with np.errstate(over="raise", divide="raise", invalid="raise"):
            halves = fit.halves_V(data, U, V, U[:0], V[:0, :, 0], U)(slice(None))
            rest = fit.sums(data, U, V, V[:0, :, 0]), fit.row_values(data, U, V, U[:0])
        found.append((*halves, *rest[0], rest[1]))
    for dense, sparse in zip(*found, strict=True):
        assert np.isfinite(dense).all()
        np.testing.assert_allclose(sparse, dense, rtol=1e-10)
    assert (found[0][0] > 0).all()
