"""Leading eigenvectors: against all of them, where eigenvalues repeat, and where the iterations end early."""

import numpy as np
import pytest
import scipy.linalg

from lognmf.core.lanczos import leading_eigenvectors


def symmetric(rng, values):
    Q = np.linalg.qr(rng.normal(size=(len(values), len(values))))[0]
    return (Q * values) @ Q.T


def leading(A, k, **options):
    rng = np.random.RandomState(0)
    return leading_eigenvectors(A.dot, rng.uniform(-1, 1, len(A)).astype(A.dtype), k, rng, **options)


@pytest.mark.parametrize(
    "values",
    [
        np.linspace(-1, 1, 200),
        np.geomspace(1e-12, 1, 60),
        np.r_[np.zeros(100), 1, 2, 3],
        np.r_[np.zeros(100), 1, 2, 3, 4],
        np.r_[np.full(50, 0.5), 1, 1, 1, 0.9],
        np.ones(40),
        np.arange(5.0),
        np.r_[-100, np.arange(30.0)],
    ],
)
@pytest.mark.parametrize("scale", [1.0, 1e-150, 1e150])
def test_against_all_eigenvectors(values, scale, rng):
    A, k = scale * symmetric(rng, values), 3
    Q = leading(A, k)
    assert Q.shape == (len(A), k)
    np.testing.assert_allclose(Q.T @ Q, np.eye(k), atol=1e-13)
    size = scale * np.abs(values).max()
    np.testing.assert_allclose(Q.T @ A @ Q, scale * np.diag(np.sort(values)[::-1][:k]), atol=1e-13 * size)
    np.testing.assert_allclose(A @ Q, Q * np.diag(Q.T @ A @ Q), atol=1e-12 * size)


def test_no_operator_at_all():
    Q = leading(np.zeros((30, 30)), 4)
    np.testing.assert_allclose(Q.T @ Q, np.eye(4), atol=1e-14)


def test_float32(rng):
    A = symmetric(rng, np.r_[np.zeros(60), 1, 2, 3, 4]).astype(np.float32)
    Q = leading(A, 3)
    assert Q.dtype == np.float32
    exact = np.linalg.eigh(A.astype(float))[1][:, -3:]
    assert scipy.linalg.subspace_angles(Q, exact).max() < 1e-5


def test_only_what_has_converged(rng):
    """Of eigenvalues almost alike nothing is known after one round."""
    A = symmetric(rng, np.r_[np.linspace(0, 1e-3, 500), 1.0])
    Q = leading(A, 4, restarts=1)
    assert Q.shape == (501, 1)
    np.testing.assert_allclose(A @ Q, Q, atol=1e-12)
