"""First factors: positive, reproducible, and NNDSVD what it says."""

import numpy as np
import pytest
import scipy.sparse as sp

from lognmf.core import starts
from lognmf.core.arrays import to_numpy
from lognmf.core.data import InMemory
from lognmf.core.matrices import to_device
from lognmf.core.starts import STARTS, batch
from problems import cut


def drawn(name, X, k, rng):
    """First factors of that name for a matrix, or for data."""
    return STARTS[name](X if hasattr(X, "map_rows") else InMemory(X), k, rng)


@pytest.mark.parametrize("name", STARTS)
@pytest.mark.parametrize("shape_k", [((15, 9), 3), ((6, 20), 8), ((9, 5), 12)])
@pytest.mark.parametrize("sparse", [False, True])
def test_positive_and_of_the_right_shape(name, shape_k, sparse, rng):
    shape, k = shape_k
    X = rng.random(shape) * (rng.random(shape) < 0.7)
    U, V = drawn(name, sp.csr_array(X) if sparse else X, k, np.random.RandomState(0))
    assert U.shape == (shape[1], k)
    assert V.shape == (shape[0], k)
    assert (U > 0).all()
    assert (V > 0).all()


@pytest.mark.parametrize("name", ["nndsvda", "nndsvdar"])
def test_nndsvd_is_scikit_learns_but_for_the_zeros(name, rng):
    from sklearn.decomposition._nmf import _initialize_nmf

    X = rng.random((30, 20))
    U, V = drawn(name, X, 4, np.random.RandomState(0))
    V_theirs, Ut_theirs = _initialize_nmf(X, 4, init="nndsvd", random_state=0)
    for ours, theirs in ((U, Ut_theirs.T), (V, V_theirs)):
        assert (theirs == 0).any()
        np.testing.assert_allclose(ours[theirs > 0], theirs[theirs > 0], atol=1e-3)  # randomised SVD


def test_nndsvd_scales_with_the_data(rng):
    X = rng.random((30, 20))
    plain = drawn("nndsvda", X, 4, np.random.RandomState(0))
    for root in (1e3, 1e-20):
        scaled = drawn("nndsvda", root**2 * X, 4, np.random.RandomState(0))
        for F, G in zip(plain, scaled, strict=True):
            np.testing.assert_allclose(root * F, G, rtol=1e-6)


@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
def test_scaled_is_the_best_multiple_of_the_random_start(form, rng):
    X = rng.random((9, 6))
    (U, V), (U_random, V_random) = (
        drawn(name, form(X), 3, np.random.RandomState(4)) for name in ("scaled", "random")
    )
    np.testing.assert_array_equal(V, V_random)
    Y = V @ U_random.T
    np.testing.assert_allclose(U, U_random * (np.sum(X * Y) / np.sum(Y * Y)), rtol=1e-12)


def test_nndsvdar_fills_with_little(rng):
    """Every zero becomes a number above 0 and up to a hundredth of the factor's mean."""
    X = rng.random((60, 40)) * (rng.random((60, 40)) < 0.3)
    bare = starts._nndsvd(InMemory(X), 4, np.random.RandomState(0))[:2]
    filled = drawn("nndsvdar", X, 4, np.random.RandomState(0))
    for before, after in zip(bare, filled, strict=True):
        fresh, most = after[before == 0], before.mean() / 100
        assert len(fresh) > 20
        assert (fresh > 0).all()
        assert 0.8 * most < fresh.max() <= most
        assert fresh.min() < 0.2 * most
        np.testing.assert_array_equal(after[before > 0], before[before > 0])


def test_nndsvdar_starts_near_the_data(rng):
    X = rng.random((30, 3)) @ rng.random((3, 20))
    U, V = drawn("nndsvdar", X, 3, np.random.RandomState(0))
    assert np.linalg.norm(X - V @ U.T) < 0.3 * np.linalg.norm(X)


def test_first_component_is_the_first_singular_pair(rng):
    X = rng.random((12, 8))
    U, V = drawn("nndsvdar", X, 2, np.random.RandomState(0))
    left, values, right = np.linalg.svd(X)
    np.testing.assert_allclose(
        np.outer(V[:, 0], U[:, 0]), values[0] * np.outer(left[:, 0], right[0]), rtol=1e-6
    )


@pytest.mark.parametrize("name", STARTS)
def test_zero_data(name):
    U, V = drawn(name, np.zeros((6, 4)), 2, np.random.RandomState(0))
    assert np.isfinite(U).all()
    assert np.isfinite(V).all()


def test_a_batch_begins_with_the_single_draw(rng):
    X = rng.random((6, 4))
    single = batch(STARTS["random"], InMemory(X), 2, 1, np.random.RandomState(3))
    three = batch(STARTS["random"], InMemory(X), 2, 3, np.random.RandomState(3))
    for one, many in zip(single, three, strict=True):
        np.testing.assert_array_equal(one[:, 0], many[:, 0])
        assert not np.array_equal(many[:, 0], many[:, 1])
        assert ((many >= 0) & (many < 1)).all()


@pytest.mark.parametrize("name", ["nndsvda", "nndsvdar"])
def test_rounding_does_not_decide_what_is_filled(name, rng):
    """Features without entries have no part in the singular vectors, but for rounding."""
    X = np.pad(rng.random((60, 30)), ((0, 8), (0, 8)))
    for seed in range(5):
        for F in drawn(name, X, 4, np.random.RandomState(seed)):
            assert F.min() > 1e-5 * F.mean()


@pytest.mark.parametrize("shape", [(60, 30), (30, 60), (12, 6)])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_components_beyond_the_rank_are_filled(shape, dtype, rng):
    X = (rng.random((shape[0], 2)) @ rng.random((2, shape[1]))).astype(dtype)
    for F in drawn("nndsvda", X, 5, np.random.RandomState(0)):
        assert (F[:, 2:] == F[0, 2]).all()
        assert (F[:, :2].std(axis=0) > 0).all()


def sparse_tensor(X):
    return to_device(sp.csr_array(to_numpy(X)), "cpu")


class TestKrylov:
    """Singular triplets by a few products, as on a GPU."""

    def check(self, X, k, form=lambda X: X, rel=1e-6):
        torch = pytest.importorskip("torch", reason="torch is an extra")
        left, values, right = np.linalg.svd(X, full_matrices=False)
        best = left[:, :k] * values[:k] @ right[:k]
        left, found, right = starts.krylov_svd(
            InMemory(form(torch.as_tensor(X))), k, np.random.RandomState(0), X.max()
        )
        np.testing.assert_allclose(found, values[:k], rtol=rel, atol=rel * values[0])
        np.testing.assert_allclose(left * found @ right, best, atol=rel * values[0])

    @pytest.mark.parametrize("shape", [(300, 200), (200, 300), (12, 9)])
    @pytest.mark.parametrize("scale", [1.0, 1e-120, 1e120])
    def test_are_those_of_the_svd(self, shape, scale, rng):
        X = rng.random(shape) * (rng.random(shape) < 0.5)
        left, values, right = np.linalg.svd(X, full_matrices=False)
        decaying = (left * 0.7 ** np.arange(len(values))) @ right
        self.check(scale * np.abs(decaying), 4)

    def test_sparse(self, rng):
        X = rng.random((60, 30)) * (rng.random((60, 30)) < 0.2)
        self.check(X, 3, sparse_tensor)

    def test_nearly_where_values_lie_close(self, rng):
        """Random matrices are the worst case: there is hardly a gap between singular values."""
        X = rng.random((400, 300)) * (rng.random((400, 300)) < 0.2)
        self.check(X, 3, sparse_tensor, rel=2e-2)

    def test_of_low_rank(self, rng):
        X = rng.random((60, 2)) @ rng.random((2, 30))
        self.check(X, 4)
        self.check(np.zeros((6, 5)) + 2.0, 3)


@pytest.mark.parametrize("k", [2, 4, 8])
def test_nndsvd_of_blocks(k, rng):
    """The same whether few or most of the singular vectors are needed."""
    X = rng.random((30, 9))
    found, whole = (drawn("nndsvda", of, k, np.random.RandomState(0)) for of in (cut(X, [7, 23]), X))
    for ours, theirs in zip(found, whole, strict=True):
        np.testing.assert_allclose(ours, theirs, atol=1e-8)
