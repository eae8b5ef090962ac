"""The compiled loops that solve codes, against the rule in arrays: the same local minima."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.optimize import nnls

from lognmf.core.solvers import codes
from lognmf.core.solvers.codes import Codes
from lognmf.core.solvers.encode import _iterated, _solved, encode
from lognmf.core.terms import PENALTIES, ROW_NORMS
from lognmf.core.threads import threads_for
from problems import code_problem


@pytest.fixture(autouse=True)
def always(monkeypatch):
    monkeypatch.setattr(codes, "COMPILED_WORK", 0)


def both(X, U, **options):
    """The values of the codes by the compiled loops and by the rule, and those codes."""
    rule, start = Codes.of(code_problem(X, **options), U)
    found, expected = _solved(rule, start), _iterated(rule, start)
    return rule.value(found), rule.value(expected), found.V[0], expected.V[0]


def parts(rng, likeness, p=30, k=8):
    return (1 - likeness) * rng.random((p, k)) + likeness * rng.random((p, 1))


@pytest.mark.parametrize("likeness", [0.0, 0.9])
@pytest.mark.parametrize("beta", [0.0, 0.01, 0.3])
@pytest.mark.parametrize("penalty", PENALTIES)
def test_as_the_rule(penalty, beta, likeness, rng):
    U, X = parts(rng, likeness), rng.random((50, 30))
    ours, theirs, V, expected = both(X, U, penalty=PENALTIES[penalty], beta=beta)
    np.testing.assert_allclose(ours, theirs, rtol=1e-9)
    np.testing.assert_allclose(V, expected, atol=1e-5)
    assert ((V == 0) == (expected == 0)).mean() > 0.99


@pytest.mark.parametrize("signed", [True, False])
def test_plain_codes_as_scipys(signed, rng):
    draw = rng.normal if signed else rng.uniform
    U, X = draw(size=(30, 10)), draw(size=(60, 30))
    V = both(X, U)[2]
    np.testing.assert_allclose(V, [nnls(U, x)[0] for x in X], atol=1e-9)


def test_known_entries_only(rng):
    """Every sample has its own Gram matrix."""
    U, X, M = parts(rng, 0.0), rng.random((40, 30)), (rng.random((40, 30)) < 0.7).astype(float)
    V = both(X * M, U, M=M)[2]
    expected = [nnls(U[m > 0], x[m > 0])[0] for x, m in zip(X, M, strict=True)]
    np.testing.assert_allclose(V, expected, atol=1e-8)


@pytest.mark.parametrize("penalty", PENALTIES)
def test_single_precision(penalty, rng):
    U, X = parts(rng, 0.5).astype(np.float32), rng.random((50, 30), dtype=np.float32)
    ours, theirs, V, _ = both(X, U, penalty=PENALTIES[penalty], beta=0.05)
    assert V.dtype == np.float32
    np.testing.assert_allclose(ours, theirs, rtol=1e-4)


def test_dead_and_equal_parts(rng):
    U, X = parts(rng, 0.0), rng.random((30, 30))
    U[:, 2], U[:, 5] = 0, U[:, 4]
    X[3] = 0
    ours, theirs, V, _ = both(X, U)
    np.testing.assert_allclose(ours, theirs, rtol=1e-9, atol=1e-12)
    assert not V[:, 2].any()
    assert not V[3].any()


@pytest.mark.parametrize("name", ROW_NORMS)
@pytest.mark.parametrize("gamma", [0.05, 0.5, 50.0])
def test_robust_codes_are_no_worse(name, gamma, rng):
    U = parts(rng, 0.3)
    X = rng.random((60, 8)) @ U.T + 0.3 * rng.random((60, 30)) * (rng.random((60, 1)) < 0.5)
    ours, theirs, *_ = both(X, U, row_norm=ROW_NORMS[name](), gamma=gamma)
    assert (ours <= theirs * (1 + 1e-9) + 1e-12).all()


def test_any_number_of_threads(rng, several_threads):
    U, X = parts(rng, 0.0), rng.random((101, 30))
    alone = encode(code_problem(X), U)
    several_threads(3)
    rule, start = Codes.of(code_problem(X), U)
    with threads_for(X, 8):
        shared = _solved(rule, start).V[0]
    np.testing.assert_array_equal(shared, alone)


@pytest.mark.parametrize("size", [1e-140, 1e140])
def test_samples_and_parts_of_any_size(size, rng):
    U, X = parts(rng, 0.0), rng.random((20, 30))
    np.testing.assert_allclose(both(size * X, U)[2] / size, both(X, U)[2], atol=1e-9)
    np.testing.assert_allclose(both(X, size * U)[2] * size, both(X, U)[2], atol=1e-9)


def test_what_is_not_finite_is_left_to_the_loop_that_says_so(rng):
    rule, start = Codes.of(code_problem(rng.random((5, 30))), parts(rng, 0.0))
    assert replace(rule, squared_norms=np.full(5, np.inf)).solved(start, 10, 1e-14) is None


def test_few_samples_do_not_need_numba(rng, monkeypatch):
    monkeypatch.setattr(codes, "COMPILED_WORK", 1 << 18)
    rule, start = Codes.of(code_problem(rng.random((5, 30))), parts(rng, 0.0))
    assert rule.solved(start, 10, 1e-14) is None
