"""One thread of BLAS for small problems, and the old number afterwards."""

import pytest
from threadpoolctl import ThreadpoolController

from lognmf.core.threads import SMALL_PRODUCT, threads_for


def numbers():
    return [library.num_threads for library in ThreadpoolController().select(user_api="blas").lib_controllers]


@pytest.fixture(autouse=True)
def two_threads():
    libraries = ThreadpoolController().select(user_api="blas").lib_controllers
    before = numbers()
    for library in libraries:
        library.set_num_threads(2)
    if set(numbers()) != {2}:
        pytest.skip("this BLAS cannot be given two threads")
    yield
    for library, number in zip(libraries, before, strict=True):
        library.set_num_threads(number)


def test_small_problems_have_one():
    with threads_for(SMALL_PRODUCT):
        assert set(numbers()) == {1}
    assert set(numbers()) == {2}


def test_large_problems_keep_theirs():
    with threads_for(SMALL_PRODUCT + 1):
        assert set(numbers()) == {2}


def test_an_error_gives_them_back():
    with pytest.raises(KeyError), threads_for(1):
        raise KeyError
    assert set(numbers()) == {2}
