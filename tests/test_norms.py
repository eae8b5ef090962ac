"""The norms and shrinkages: definitions, optimality against searches, and the border."""

import math

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

import oracle
from lognmf import l2_log_norm, l21_norm, log_norm, shrink_l2_log, shrink_l21

NORMS = {"l2log": l2_log_norm, "l21": l21_norm}
SHRINKS = {"l2log": shrink_l2_log, "l21": shrink_l21}
PHI = {"l2log": np.log1p, "l21": lambda s: s}

both = pytest.mark.parametrize("name", SHRINKS)
property_test = settings(max_examples=150)

taus = st.one_of(st.just(0.0), st.floats(-9, 3).map(lambda e: 10.0**e), st.floats(0, 1e3))
row_norms = st.floats(-6, 6).map(lambda e: 10.0**e)
seeds = st.integers(0, 2**32 - 1)


def row_of_norm(r, seed, p=4):
    """One sample of norm ``r`` in a random direction, as a matrix of one row."""
    direction = np.random.default_rng(seed).normal(size=(1, p))
    return r * direction / np.linalg.norm(direction)


def rows_of_all_sizes(seed, n=60, p=5):
    """Samples of norms from 1e-6 to 1e6, a zero one among them."""
    rng = np.random.default_rng(seed)
    Y = rng.normal(size=(n, p)) * 10.0 ** rng.uniform(-6, 6, size=(n, 1))
    Y[n // 2] = 0
    return Y


def value(Y, W, tau, name):
    """``‖Y − W‖²_F / 2 + tau ‖W‖`` by its definition, row by row."""
    return 0.5 * ((Y - W) ** 2).sum(axis=1) + tau * PHI[name](np.sqrt((W**2).sum(axis=1)))


def rounding(Y, values):
    """What double precision may add to ``values`` of `value` for the rows of ``Y``."""
    return 1e-9 * values + 1e-28 * (Y**2).sum(axis=1)


# Definitions ---------------------------------------------------------------------------


@pytest.mark.parametrize("M", [[[0.0, -2.0], [3.5, 1e-9]], [[-1e6, 1e6]], [[0.0]], np.zeros((3, 0))])
def test_norms_are_their_definitions(M):
    rows = np.atleast_2d(np.asarray(M)).tolist()
    lengths = [math.hypot(*row) for row in rows]
    assert log_norm(M) == pytest.approx(sum(math.log1p(abs(m)) for row in rows for m in row), rel=1e-14)
    assert l2_log_norm(M) == pytest.approx(sum(map(math.log1p, lengths)), rel=1e-14)
    assert l21_norm(M) == pytest.approx(sum(lengths), rel=1e-14)


def test_norms_know_their_special_cases():
    column = [[3.0], [-0.5], [0.0]]
    assert l2_log_norm(column) == log_norm(column) == pytest.approx(math.log(4) + math.log(1.5))
    assert l21_norm([[3, 4], [0, 0], [5, 12]]) == 18
    assert log_norm(7) == pytest.approx(math.log(8))
    assert log_norm(np.ones((2, 3, 4))) == pytest.approx(24 * math.log(2))


def test_norms_are_summed_in_double_precision():
    ones = np.full((1 << 18, 1), 0.1, dtype=np.float32)
    assert l21_norm(ones) == pytest.approx(len(ones) * float(np.float32(0.1)), rel=1e-12)
    assert isinstance(log_norm(ones), float)


# The shrinkages minimise ---------------------------------------------------------------


@both
@property_test
@given(r=row_norms, tau=taus, seed=seeds)
def test_shrinkage_beats_every_norm_on_a_grid(name, r, tau, seed):
    Y = row_of_norm(r, seed)
    found = value(Y, SHRINKS[name](Y, tau), tau, name)
    near = r - min(tau, r) * np.logspace(-12, 0, 400)  # from r down to r − tau, dense at r
    norms = np.concatenate([np.linspace(0, 1.5 * r, 2001), r * np.logspace(-12, 0, 400), near])
    grid = 0.5 * (norms - r) ** 2 + tau * PHI[name](norms)
    assert found <= grid.min() + rounding(Y, found)


@both
@property_test
@given(tau=taus, seed=seeds)
def test_shrinkage_beats_every_perturbation(name, tau, seed):
    rng = np.random.default_rng(seed)
    Y = rows_of_all_sizes(seed)
    W = SHRINKS[name](Y, tau)
    found = value(Y, W, tau, name)
    lengths = np.linalg.norm(Y, axis=1, keepdims=True)
    for scale in 10.0 ** np.arange(-8.0, 2):
        for other in (W + scale * lengths * rng.normal(size=Y.shape), W * (1 + scale), W * (1 - scale)):
            assert (found <= value(Y, other, tau, name) + rounding(Y, found)).all()


@both
@property_test
@given(tau=taus, seed=seeds)
def test_rows_are_shrunk_towards_zero_and_not_turned(name, tau, seed):
    Y = rows_of_all_sizes(seed)
    W = SHRINKS[name](Y, tau)
    used = np.abs(Y).argmax(axis=1)[:, None]
    size, kept = np.take_along_axis(Y, used, 1), np.take_along_axis(W, used, 1)
    share = np.divide(kept, size, out=np.zeros_like(size), where=size != 0)
    assert ((share >= 0) & (share <= 1)).all()
    np.testing.assert_allclose(W, share * Y, rtol=1e-14, atol=0)
    assert (W[(Y == 0).all(axis=1)] == 0).all()


@both
@property_test
@given(tau=taus, seed=seeds)
def test_shrinkage_is_the_papers(name, tau, seed):
    Y = rows_of_all_sizes(seed)
    literal = oracle.shrink(Y.T, tau, name).T
    lengths = np.linalg.norm(Y, axis=1, keepdims=True)
    # The literal form cancels for ξ ≪ 1; its error is of the size of a rounded 1.
    assert (np.abs(SHRINKS[name](Y, tau) - literal) <= 1e-13 * lengths + 4e-16 * (lengths < 1)).all()


@both
@property_test
@given(tau=taus, more=st.floats(1, 10), seed=seeds)
def test_larger_tau_leaves_less(name, tau, more, seed):
    Y = rows_of_all_sizes(seed)
    less = np.linalg.norm(SHRINKS[name](Y, tau * more), axis=1)
    much = np.linalg.norm(SHRINKS[name](Y, tau), axis=1)
    assert (much[less > 0] > 0).all()
    assert (less <= much * (1 + 1e-14)).all()


def test_l2_log_jumps_where_both_minima_are_equal():
    """Above r = 1 the shrinkage leaves zero by a jump; on either side the better minimum is taken."""
    tau = 4.0
    r = np.linspace(1, 6, 5001)[:, None]
    xi = shrink_l2_log(r, tau)[:, 0]
    jump = np.flatnonzero(xi)[0]
    assert (xi[:jump] == 0).all()
    assert (xi[jump:] > 1).all()
    stationary = xi[jump:] - r[jump:, 0] + tau / (1 + xi[jump:])
    np.testing.assert_allclose(stationary, 0, atol=1e-14)
    assert 0.5 * (xi[jump] - r[jump, 0]) ** 2 + tau * math.log1p(xi[jump]) <= 0.5 * r[jump, 0] ** 2


@both
def test_small_results_keep_their_digits(name):
    """For r just above a small tau: l2,log's root solves ξ² + (1 − r)ξ + τ − r = 0."""
    r, tau = 1e-6, 0.999999e-6
    gap = r - tau
    expected = gap if name == "l21" else 2 * gap / ((1 - r) + math.sqrt((1 + r) ** 2 - 4 * tau))
    assert SHRINKS[name]([[r]], tau)[0, 0] == pytest.approx(expected, rel=1e-9)


@both
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_tau_zero_returns_the_input(name, dtype):
    Y = rows_of_all_sizes(0).astype(dtype)
    np.testing.assert_array_equal(SHRINKS[name](Y, 0), Y)
    np.testing.assert_array_equal(SHRINKS[name](Y, 0.0), Y)


@both
@pytest.mark.parametrize("size", [1e-250, 1e-170, 1e160, 1e250])
def test_extreme_rows_neither_overflow_nor_vanish(name, size):
    """Squares of such entries leave the range of float64; rows and norms don't."""
    Y = size * np.array([[0.6, 0.8]])
    np.testing.assert_array_equal(SHRINKS[name](Y, 0), Y)
    np.testing.assert_allclose(SHRINKS[name](Y, 1.0), Y if size > 1 else 0 * Y, rtol=1e-15)
    assert NORMS[name](Y) == pytest.approx(PHI[name](size), rel=1e-14)


# Arrays in, arrays out -----------------------------------------------------------------


@both
def test_float32_stays_and_is_right(name):
    Y = rows_of_all_sizes(1)
    for tau in (1e-3, 1.0, 1e3):
        short = SHRINKS[name](Y.astype(np.float32), tau)
        assert short.dtype == np.float32
        lengths = np.linalg.norm(Y, axis=1, keepdims=True)
        assert (np.abs(short - SHRINKS[name](Y, tau)) <= 2e-6 * lengths).all()
    assert NORMS[name](Y.astype(np.float32)) == pytest.approx(NORMS[name](Y), rel=1e-6)


@both
@pytest.mark.parametrize("given_as", ["list", "int", "bool", "fortran", "sliced"])
def test_anything_else_is_computed_in_float64(name, given_as):
    Y = np.array([[3, 4], [0, 1], [0, 0]])
    forms = {
        "list": Y.tolist(),
        "int": Y,
        "bool": Y > 0,
        "fortran": np.asfortranarray(Y, dtype=float),
        "sliced": np.repeat(Y, 2, axis=1)[:, ::2],
    }
    W = SHRINKS[name](forms[given_as], 0.5)
    assert W.dtype == np.float64
    np.testing.assert_array_equal(W, SHRINKS[name](np.array(forms[given_as], dtype=float), 0.5))


@both
def test_the_input_is_left_alone(name):
    Y = rows_of_all_sizes(2)
    before = Y.copy()
    W = SHRINKS[name](Y, 0)
    W += 1
    np.testing.assert_array_equal(Y, before)


@both
@pytest.mark.parametrize("dtype", ["float32", "float64", "int64"])
def test_torch_in_torch_out(name, dtype):
    torch = pytest.importorskip("torch")
    Y = np.array([[3.0, -4.0], [0.1, 0.0], [0.0, 0.0], [30.0, 1.0]])
    T = torch.tensor(Y).to(getattr(torch, dtype))
    W = SHRINKS[name](T, 1.5)
    assert isinstance(W, torch.Tensor)
    assert W.dtype == (torch.float32 if dtype == "float32" else torch.float64)
    expected = SHRINKS[name](T.numpy().astype(float), 1.5)
    tolerance = 1e-6 if dtype == "float32" else 1e-14
    np.testing.assert_allclose(W.numpy(), expected, rtol=tolerance)
    for norm in (log_norm, NORMS[name]):
        assert norm(T) == pytest.approx(norm(T.numpy().astype(float)), rel=tolerance)
        assert isinstance(norm(T), float)


# What is refused -----------------------------------------------------------------------

FUNCTIONS = [log_norm, l2_log_norm, l21_norm, lambda Y: shrink_l2_log(Y, 1), lambda Y: shrink_l21(Y, 1)]


@both
@pytest.mark.parametrize("tau", [-1, -1e-300, math.nan, math.inf, "1", None, True, [1.0], np.ones(2), 1j])
def test_bad_tau_is_refused_in_words(name, tau):
    with pytest.raises((ValueError, TypeError), match=r"tau must be a finite number >= 0; got"):
        SHRINKS[name]([[1.0, 2.0]], tau)


@pytest.mark.parametrize("shape", [(), (3,), (2, 3, 4)])
def test_bad_shapes_are_refused_in_words(shape):
    M = np.ones(shape)
    for function in FUNCTIONS[1:]:
        with pytest.raises(ValueError, match=r"must have 2 dimensions, one sample per row; got shape \("):
            function(M)


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
@pytest.mark.parametrize("library", ["numpy", "torch"])
def test_nan_and_infinity_are_refused_in_words(bad, library):
    M = np.array([[1.0, bad]])
    if library == "torch":
        M = pytest.importorskip("torch").tensor(M)
    for function in (
        log_norm,
        l2_log_norm,
        l21_norm,
        lambda Y: shrink_l2_log(Y, 1),
        lambda Y: shrink_l21(Y, 1),
    ):
        with pytest.raises(ValueError, match="must be finite; it holds NaN or infinity"):
            function(M)


@pytest.mark.parametrize("library", ["numpy", "torch"])
def test_complex_input_is_refused(library):
    M = np.array([[1 + 2j, 0]])
    if library == "torch":
        M = pytest.importorskip("torch").tensor(M)
    for function in FUNCTIONS:
        with pytest.raises((ValueError, TypeError)):
            function(M)


@pytest.mark.parametrize(
    "function", [log_norm, *NORMS.values(), *(lambda Y, s=s: s(Y, 1.0) for s in SHRINKS.values())]
)
def test_sparse_matrices_are_refused_in_words(function):
    with pytest.raises(TypeError, match=r"must be dense; got a sparse matrix. Use [MY]\.toarray\(\)"):
        function(sp.csr_array(np.eye(3)))
