"""One thread of BLAS for small problems, and the old number afterwards."""

import numpy as np
import pytest
import scipy.sparse as sp
from threadpoolctl import ThreadpoolController

from lognmf.core import parallel
from lognmf.core.arrays import gram, product, product_t
from lognmf.core.parallel import SHARED_PRODUCTS, by_rows, threads_for


def numbers():
    return [library.num_threads for library in ThreadpoolController().select(user_api="blas").lib_controllers]


@pytest.fixture(autouse=True)
def two_threads(monkeypatch):
    monkeypatch.setattr(parallel, "cores", lambda: 2)
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    libraries = ThreadpoolController().select(user_api="blas").lib_controllers
    before = numbers()
    for library in libraries:
        library.set_num_threads(2)
    if set(numbers()) != {2}:
        pytest.skip("this BLAS cannot be given two threads")
    yield
    for library, number in zip(libraries, before, strict=True):
        library.set_num_threads(number)


SMALL = np.ones((1 << 11, 1 << 11)), 1
MIDDLE = np.ones((1 << 11, 1 << 11)), 2
WIDE = np.ones((1 << 11, 1 << 11)), 32


def test_small_problems_have_one():
    with threads_for(*SMALL):
        assert set(numbers()) == {1}
        assert not SHARED_PRODUCTS.get()
    assert set(numbers()) == {2}


@pytest.mark.parametrize(
    ("X", "columns", "share"), [(*MIDDLE, True), (*WIDE, False), (sp.csr_array(WIDE[0]), 32, True)]
)
def test_others_keep_theirs(X, columns, share):
    with threads_for(X, columns, share=share):
        assert set(numbers()) == {2}
        assert not SHARED_PRODUCTS.get()


def test_wide_products_are_shared_out(rng):
    """By us: BLAS has one thread. The same numbers, and in our threads nothing is shared out again."""
    F, G = rng.random((1 << 11, 4, 8)), rng.random((1 << 11, 4, 8))
    X = rng.random((1 << 11, 1 << 11))
    expected = product(X, F), product_t(X, G), gram(F, G)
    with threads_for(X, 32):
        assert SHARED_PRODUCTS.get()
        assert set(numbers()) == {1}
        found = product(X, F), product_t(X, G)
        found += (gram(F, G),)
        many = np.ones((1 << 14, 4, 8))
        inside = by_rows(lambda rows: np.full_like(many[rows], SHARED_PRODUCTS.get()), many)
    assert not SHARED_PRODUCTS.get()
    assert not inside[-1].any()
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-12)


@pytest.mark.parametrize(
    ("allowed", "used"), [("1", 1), ("2", 2), ("9", 2), ("0", 1), ("", 2), ("two", 2), (None, 2)]
)
def test_our_threads_heed_what_blas_does(monkeypatch, allowed, used):
    if allowed is not None:
        monkeypatch.setenv("OMP_NUM_THREADS", allowed)
    assert parallel.own_threads() == used
    with threads_for(*WIDE):
        assert SHARED_PRODUCTS.get() == (used > 1)


def test_tensors_are_left_alone():
    torch = pytest.importorskip("torch")
    with threads_for(torch.ones((4, 4)), 1):
        assert set(numbers()) == {2}


def test_an_error_gives_them_back():
    with pytest.raises(KeyError), threads_for(*WIDE):
        raise KeyError
    assert set(numbers()) == {2}
    assert not SHARED_PRODUCTS.get()
