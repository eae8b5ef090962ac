"""Sparse products: the numbers of SciPy, to the bit, whatever the number of threads."""

import numpy as np
import pytest
import scipy.sparse as sp

from lognmf import PlainNMF
from lognmf.core import sparse_products
from lognmf.core.data import InMemory
from lognmf.core.starts import nndsvda
from lognmf.core.threads import threads_for


def draw(n, p, density, dtype=np.float64, seed=0):
    rng = np.random.default_rng(seed)
    X = sp.random_array((n, p), density=density, format="csr", dtype=dtype, rng=rng)
    return X, rng.random((p, 3, 4)).astype(dtype), rng.random((n, 3, 4)).astype(dtype)


@pytest.fixture(params=[1, 2, 5])
def threads(request, monkeypatch, several_threads):
    several_threads(request.param)
    monkeypatch.setattr(sparse_products, "LARGE", 0)
    monkeypatch.setattr(sparse_products, "LEAST_BYTES", 0)
    monkeypatch.setattr(sparse_products, "BLOCK_ROWS", 16)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(
    ("n", "p", "density"), [(200, 30, 0.3), (30, 200, 0.3), (200, 30, 0.001), (70, 9, 1.0), (1, 5, 0.5)]
)
def test_products_are_those_of_scipy(n, p, density, dtype, threads):
    X, U, V = draw(n, p, density, dtype)
    data = InMemory(X, unit=2.0)
    with threads_for(X, 12):
        XU, XtV, Xu = data.times(U), data.t_times(V), data.times(U[:, :1, :1])
    assert XU.dtype == XtV.dtype == dtype
    np.testing.assert_array_equal(2 * XU.reshape(n, 12), X @ U.reshape(p, 12))
    np.testing.assert_array_equal(2 * XtV.reshape(p, 12), X.T @ V.reshape(n, 12))
    np.testing.assert_array_equal(2 * Xu[:, 0], X @ U[:, 0, :1])


def test_factors_in_any_layout_and_wide_indices(threads):
    X, U, V = draw(90, 20, 0.2)
    X.indices, X.indptr = X.indices.astype(np.int64), X.indptr.astype(np.int64)
    U, V = np.asfortranarray(U), V[:, ::-1]
    with threads_for(X, 12):
        np.testing.assert_array_equal(InMemory(X).times(U)[:, 1], X @ np.ascontiguousarray(U[:, 1]))
        np.testing.assert_array_equal(InMemory(X).t_times(V)[:, 1], X.T @ np.ascontiguousarray(V[:, 1]))


def test_whole_fits_do_not_depend_on_the_threads(threads, monkeypatch, several_threads):
    X, *_ = draw(150, 40, 0.2)
    fit = PlainNMF(3, solver="cd", init="nndsvda", max_iter=5, tol=0, random_state=0).fit(X)
    several_threads(1)
    monkeypatch.setattr(sparse_products, "LARGE", 1 << 40)  # by SciPy
    alone = PlainNMF(3, solver="cd", init="nndsvda", max_iter=5, tol=0, random_state=0).fit(X)
    np.testing.assert_array_equal(fit.components_, alone.components_)
    np.testing.assert_array_equal(fit.embedding_, alone.embedding_)


def test_blocks_of_the_transpose(monkeypatch):
    """As many as the rows fill, but fewer where each row would have hardly an entry."""
    monkeypatch.setattr(sparse_products, "LEAST_BYTES", 0)
    X, *_ = draw(9 * sparse_products.BLOCK_ROWS, 10, 0.1)
    assert len(sparse_products.transposed(X).parts) == 9
    X, *_ = draw(9 * sparse_products.BLOCK_ROWS, 4000, 4e-4)
    assert len(sparse_products.transposed(X).parts) == 3


def test_no_copy_beyond_the_memory(monkeypatch, threads):
    X, _, V = draw(60, 20, 0.3)
    monkeypatch.setattr(sparse_products, "_memory", lambda: 8.0 * (X.data.nbytes + X.indices.nbytes) - 1)
    data = InMemory(X)
    np.testing.assert_array_equal(data.t_times(V)[:, 0], X.T @ np.ascontiguousarray(V[:, 0]))
    assert data._transposed is None


def test_small_data_have_no_copy(monkeypatch):
    X, _, V = draw(60, 20, 0.3)
    monkeypatch.setattr(sparse_products, "LARGE", 0)
    data = InMemory(X)
    np.testing.assert_array_equal(data.t_times(V)[:, 0], X.T @ np.ascontiguousarray(V[:, 0]))
    assert data._transposed is None


@pytest.mark.parametrize("shape", [(120, 30), (30, 120)])
def test_the_start_is_the_same(shape, threads):
    X, *_ = draw(*shape, 0.2)
    with threads_for(X, 3):
        U, V = nndsvda(InMemory(X), 3, np.random.RandomState(0))
    dense = nndsvda(InMemory(X.toarray()), 3, np.random.RandomState(0))
    np.testing.assert_allclose(U, dense[0], atol=1e-8)
    np.testing.assert_allclose(V, dense[1], atol=1e-8)
