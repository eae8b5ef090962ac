"""Codes for a fixed basis: exact against other solvers, monotone, whatever the parts are like."""

import itertools
from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import nnls

from lognmf import SemiNMF
from lognmf.core.data import InMemory
from lognmf.core.solvers.encode import Codes, _told_apart, encode
from lognmf.core.terms import PENALTIES, ROW_NORMS
from lognmf.core.threads import threads_for
from problems import code_problem

seeds = st.integers(0, 2**32 - 1)


def parts(rng, p, k, likeness):
    """A basis whose parts have ``likeness`` of a common one: near 1 they are all but the same."""
    return (1 - likeness) * rng.random((p, k)) + likeness * rng.random((p, 1))


def solve(X, U, **options):
    """What the codes of the samples cost, and a local minimum."""
    codes = Codes.of(code_problem(X, **options), U)
    return codes, codes.solved(codes.start())


@pytest.mark.parametrize("likeness", [0.0, 0.9, 0.999])
@pytest.mark.parametrize("fits", [True, False])
def test_least_squares_as_scipys(rng, likeness, fits):
    """Sweeps alone would creep where the parts are alike."""
    U = parts(rng, 40, 8, likeness)
    X = rng.random((60, 8)) @ U.T if fits else rng.random((60, 40))
    V = solve(X, U)[1]
    ours = np.linalg.norm(X - V @ U.T, axis=1)
    theirs = np.array([nnls(U, x)[1] for x in X])
    np.testing.assert_array_less(ours, theirs * (1 + 1e-9) + 1e-7)
    assert (V >= 0).all()


def test_least_squares_of_signed_data_as_scipys(rng):
    U, X = rng.normal(size=(30, 10)), rng.normal(size=(50, 30))
    V = solve(X, U)[1]
    np.testing.assert_allclose(V, [nnls(U, x)[0] for x in X], atol=1e-9)


def by_active_sets(X, U):
    """The squared residual of every sample at its best codes."""
    norms = np.linalg.norm(U, axis=0)
    return np.array([nnls(U / np.where(norms > 0, norms, 1), x)[1] ** 2 for x in X])


@pytest.mark.parametrize("signed", [True, False])
@given(seed=seeds, likeness=st.sampled_from([0.0, 0.9, 0.999, 1 - 1e-6, 1 - 1e-10, 1.0]))
@settings(max_examples=40)
def test_parts_of_any_size(signed, seed, likeness):
    """Sizes from 1e-6 to 1e6, parts alike or dependent: the residuals are SciPy's."""
    rng = np.random.default_rng(seed)
    p, k = rng.integers(2, 20), rng.integers(1, 10)
    draw = rng.normal if signed else rng.uniform
    U = (1 - likeness) * draw(size=(p, k)) + likeness * draw(size=(p, 1))
    U *= 10 ** rng.uniform(-6, 6, k)
    X = draw(size=(15, p))
    V = encode(code_problem(X), U)
    assert (V >= 0).all()
    found = ((X - V @ U.T) ** 2).sum(axis=1)
    assert (found <= by_active_sets(X, U) * (1 + 1e-6) + 1e-9 * (X**2).sum(axis=1)).all()


class TestToldApart:
    """Parts of both signs of which two are all but the same: any doubtful code is solved anew."""

    @pytest.fixture
    def given(self, rng):
        a, b, c, d = np.linalg.qr(rng.normal(size=(9, 4)))[0].T
        U = np.stack([a, a + 1e-9 * b, c, d - c], axis=1)
        data = InMemory(0.2 * a[None])
        return Codes.of(code_problem(data.X), U), data, U

    @pytest.mark.parametrize("code", [[0.21, 0, 0, 0], [0.05, 0, 0, 0], [0, 0, 0, 0], [0.2, 0, 0.1, 0]])
    def test_what_is_not_the_best(self, code, given):
        V = _told_apart(*given, np.array([code], dtype=float))
        np.testing.assert_allclose(V @ given[2].T, given[1].X, atol=1e-12)
        assert (V >= 0).all()

    def test_the_best_stays(self, given, monkeypatch):
        monkeypatch.setitem(_told_apart.__globals__, "nnls", None)
        V = np.array([[0.2, 0, 0, 0]])
        np.testing.assert_array_equal(_told_apart(*given, V), V)


@given(seed=seeds, init=st.sampled_from(["kmeans", "random"]), max_iter=st.sampled_from([0, 5, 300]))
@settings(max_examples=40)
def test_samples_of_very_different_size(seed, init, max_iter):
    """Every part of Semi-NMF is then almost the largest sample: the others are in their differences."""
    rng = np.random.default_rng(seed)
    n, p = rng.integers(3, 20), rng.integers(2, 12)
    k = rng.integers(1, min(9, max(n, p) + 1))
    X = rng.normal(size=(n, p)) * 10 ** rng.uniform(-4, 4, (n, 1))
    model = SemiNMF(int(k), init=init, max_iter=max_iter, random_state=0).fit(X)
    U, V = model.components_.T, model.transform(X)
    found = ((X - V @ U.T) ** 2).sum(axis=1)
    assert (found <= by_active_sets(X, U) * (1 + 1e-6) + 1e-9 * (X**2).sum(axis=1)).all()


@pytest.mark.parametrize("penalty", PENALTIES)
@pytest.mark.parametrize("row_norm", [None, *ROW_NORMS])
@settings(max_examples=25)
@given(seed=seeds, likeness=st.sampled_from([0.0, 0.9, 0.999]), beta=st.sampled_from([0.0, 1e-3, 0.1, 10.0]))
def test_no_step_raises_the_objective_and_nothing_near_the_end_is_better(
    penalty, row_norm, seed, likeness, beta
):
    rng = np.random.default_rng(seed)
    U, X = parts(rng, 12, 5, likeness), rng.random((20, 12))
    options = {"penalty": PENALTIES[penalty], "beta": beta}
    if row_norm:
        options |= {"row_norm": ROW_NORMS[row_norm](), "gamma": 10 ** rng.uniform(-2, 1)}
    codes = Codes.of(code_problem(X, **options), U)
    V = codes.start()
    value = codes.value(V)
    for _ in range(15):
        V = codes.descended(V, codes.kept(V), 1)
        value, previous = codes.value(V), value
        assert (value <= previous + 1e-13 * (X**2).sum(axis=1)).all()
        assert (V >= 0).all()
    V = codes.solved(codes.start())
    value = codes.value(V)
    for size in (1e-2, 1e-4):
        for _ in range(20):
            moved = np.maximum(V + size * rng.normal(size=V.shape), 0)
            assert (codes.value(moved) >= value - 1e-6 * size).all()


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("penalty", [None, *PENALTIES])
@pytest.mark.parametrize("row_norm", [None, *ROW_NORMS])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_dead_and_equal_parts(rng, penalty, row_norm, dtype):
    """Parts that have died, the same part twice: finite, nonnegative, silent."""
    U, X = rng.random((12, 6)), rng.random((20, 12)).astype(dtype)
    U[:, 1], U[:, 2], U[:, 4] = 0, 1e-30, U[:, 3]
    options = {} if penalty is None else {"penalty": PENALTIES[penalty], "beta": 10.0}
    if row_norm:
        options |= {"row_norm": ROW_NORMS[row_norm](), "gamma": 0.5}
    V = encode(code_problem(X, **options), U.astype(dtype))
    assert np.isfinite(V).all()
    assert (V >= 0).all()
    assert V.dtype == dtype
    assert not V[:, 1].any()


@pytest.mark.parametrize("known", [None, 0.6])
def test_codes_start_as_the_best_multiple_of_ones(known, rng):
    U, X = rng.random((9, 4)), rng.random((6, 9))
    M = None if known is None else (rng.random(X.shape) < known).astype(float)
    V = Codes.of(code_problem(X if M is None else M * X, M=M), U).start()
    for x, m, v in zip(X, np.ones_like(X) if M is None else M, V, strict=True):
        of_ones = m * U.sum(axis=1)
        np.testing.assert_allclose(v, np.full(4, x @ of_ones / (of_ones @ of_ones)), rtol=1e-12)


def test_an_exchange_sees_what_a_better_fit_would_keep(rng):
    """At zero all of the residual counts as an outlier's, and no entry would be worth its penalty."""
    U = rng.random((9, 3))
    X = 5 * U[:, 1][None]
    options = {"penalty": PENALTIES["log"], "beta": 0.1, "row_norm": ROW_NORMS["l2log"](), "gamma": 0.5}
    found = Codes.of(code_problem(X, **options), U).exchanged(np.zeros((1, 3)))[0]
    assert found[[0, 2]].tolist() == [0, 0]
    np.testing.assert_allclose(found[1], 5, rtol=0.01)


@dataclass(frozen=True)
class Near:
    """``weight · Σ (F − 1/2)²``, whose gradient has a negative half."""

    weight: np.ndarray

    def value(self, F):
        return self.weight * np.sum((F - 0.5) ** 2, axis=(0, 2))

    def halves(self, F):
        wide = self.weight[:, None]
        return lambda rows: (wide / 2 + 0 * F[rows], wide * F[rows])

    def take(self, index):
        return type(self)(self.weight[index])


class NearAlone(Near):
    """The same with functions of one number."""

    @staticmethod
    def cost(x):
        return (x - 0.5) ** 2

    @staticmethod
    def slope(x):
        return 2.0 * x - 1.0

    @staticmethod
    def minimum(curvature, slope, weight, _at):
        return (slope + weight / 2) / (curvature + weight)

    @staticmethod
    def minimise(curvature, slope, weight, at):
        return np.maximum((slope + weight / 2) / (curvature + weight), 0) + 0 * at


@pytest.mark.parametrize("penalty", [Near, NearAlone])
@pytest.mark.parametrize(("weight", "size"), [(0.01, 1.0), (100.0, 0.1)])
def test_ones_own_penalty_with_a_negative_half(penalty, weight, size, rng):
    """Against least squares with further rows: √weight · (v − 1/2)."""
    U, X = rng.random((12, 5)), size * rng.random((30, 12))
    stacked = np.concatenate([U, weight**0.5 * np.eye(5)])
    exact = np.array([nnls(stacked, np.concatenate([x, weight**0.5 * np.full(5, 0.5)]))[0] for x in X])
    V = encode(code_problem(X, penalty=penalty, beta=weight), U)
    np.testing.assert_allclose(V, exact, atol=1e-5 if penalty is NearAlone else 1e-2)


def test_a_robust_fit_refuses_other_penalties_in_a_sentence(rng):
    options = {"penalty": Near, "beta": 0.1, "row_norm": ROW_NORMS["l21"](), "gamma": 1.0}
    with pytest.raises(ValueError, match="static methods cost, slope, minimum"):
        encode(code_problem(rng.random((3, 9)), **options), rng.random((9, 2)))


def test_known_entries_only(rng):
    """Every sample has its own Gram matrix."""
    U, X, M = parts(rng, 30, 8, 0.0), rng.random((40, 30)), (rng.random((40, 30)) < 0.7).astype(float)
    V = encode(code_problem(X * M, M=M), U)
    expected = [nnls(U[m > 0], x[m > 0])[0] for x, m in zip(X, M, strict=True)]
    np.testing.assert_allclose(V, expected, atol=1e-8)


def test_any_number_of_threads(rng, several_threads):
    U, X = parts(rng, 30, 8, 0.0), rng.random((101, 30))
    alone = encode(code_problem(X), U)
    several_threads(3)
    with threads_for(X, 8):
        shared = encode(code_problem(X), U)
    np.testing.assert_array_equal(shared, alone)


@pytest.mark.parametrize("size", [1e-140, 1e140])
def test_samples_and_parts_of_any_size(size, rng):
    U, X = parts(rng, 30, 8, 0.0), rng.random((20, 30))
    expected = encode(code_problem(X), U)
    np.testing.assert_allclose(encode(code_problem(size * X), U) / size, expected, atol=1e-9)
    np.testing.assert_allclose(encode(code_problem(X), size * U) * size, expected, atol=1e-9)


def test_what_is_not_finite_is_refused_in_words(rng):
    with pytest.raises(FloatingPointError, match="no longer finite after 0 iterations"):
        encode(code_problem(1e200 * rng.random((5, 30))), parts(rng, 30, 8, 0.0))


class TestBestCodes:
    """Concave penalties and robust fits have several local minima."""

    def problem(self, seed):
        """30 samples and their basis, parts more or less alike, weights of every size."""
        rng = np.random.default_rng(seed)
        U = parts(rng, int(rng.integers(4, 21)), int(rng.integers(2, 9)), rng.choice([0, 0.5, 0.9]))
        X = rng.random((30, len(U))) * 10 ** rng.uniform(-0.5, 0.7)
        options = {"penalty": PENALTIES["log"], "beta": 10 ** rng.uniform(-3, 0.5)}
        row_norm = [None, *ROW_NORMS][rng.integers(3)]
        if row_norm:
            options |= {"row_norm": ROW_NORMS[row_norm](), "gamma": 10 ** rng.uniform(-2, 0.7)}
        return rng, Codes.of(code_problem(X, **options), U)

    def test_an_exchange_is_the_best_of_all(self):
        """Plain fit: no entry set to 0 with another one anywhere on a grid is lower."""
        for seed in (0, 1, 2):
            rng = np.random.default_rng(seed)
            U, X = parts(rng, 6, 4, 0.5), rng.random((5, 6))
            codes = Codes.of(code_problem(X, penalty=PENALTIES["log"], beta=0.3), U)
            V = codes.descended(codes.start(), np.ones(5), 1)
            lowest = codes.value(V)
            for stay, j, entry in itertools.product(1 - np.eye(5, 4), range(4), np.linspace(0, 3, 301)):
                moved = V * stay
                moved[:, j] = entry
                lowest = np.minimum(lowest, codes.value(moved))
            found = codes.value(codes.exchanged(V))
            assert (found <= lowest * (1 + 1e-12)).all()
            assert (found > lowest - 1e-3).all()

    @pytest.mark.parametrize("seed", range(12))
    def test_the_values_of_an_exchange_are_objectives(self, seed):
        _, codes = self.problem(seed)
        V = codes.start()
        pull, squared = codes.pull - V @ codes.gram[0], codes.residuals(V) ** 2
        share, costs = np.ones(len(V)), codes._penalties(V)
        entries, values = codes.set_anew(V, pull, squared, costs, share)
        for j in range(V.shape[1]):
            moved = V.copy()
            moved[:, j] = entries[:, j]
            np.testing.assert_allclose(values[:, j], codes.value(moved), rtol=1e-9, atol=1e-12)

    def test_as_good_as_the_best_of_twelve_random_starts(self):
        worse = []
        for seed in range(36):
            rng, codes = self.problem(seed)
            ours = codes.value(codes.best())
            largest = codes.pull / np.diag(codes.gram[0])
            best = np.full(len(ours), np.inf)
            for _ in range(12):
                V = rng.random(largest.shape) * largest * (rng.random(largest.shape) < rng.random())
                best = np.minimum(best, codes.value(codes.solved(V)))
            worse.append(ours / best - 1)
        worse = np.concatenate(worse)
        assert len(worse) >= 1000
        assert np.mean(worse > 1e-4) <= 0.005
        assert worse.max() <= 0.01

    def test_what_is_surely_best_is_not_searched_and_nothing_found_is_better(self, monkeypatch):
        sure, searched = 0, []
        for seed in range(20):
            _, codes = self.problem(seed)
            solved = codes.solved(codes.start())
            surely = codes.surely_best(solved)
            sure += surely.sum()
            with monkeypatch.context() as patch:
                patch.setattr(Codes, "surely_best", lambda _, V: np.zeros(len(V), dtype=bool))
                searched.append((codes.value(codes.best()) / codes.value(solved))[surely])
        assert sure >= 100
        np.testing.assert_allclose(np.concatenate(searched), 1, rtol=1e-6)
