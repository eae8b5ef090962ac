"""Data in several blocks: products, rows, and no reading without need."""

import numpy as np
import pytest
import scipy.sparse as sp

from lognmf.blocks.disk import Block
from lognmf.core.data import InMemory
from problems import cut, samples


@pytest.fixture
def X(rng):
    return samples(rng, 11, 5, density=0.6)


@pytest.mark.parametrize("kind", [np.asarray, sp.csr_array])
@pytest.mark.parametrize("unit", [1.0, 4.0])
def test_products_norms_and_rows(kind, unit, X, rng):
    from dataclasses import replace

    data, whole = replace(cut(kind(X), [3, 4]), unit=unit), InMemory(kind(X), unit=unit)
    U, V = rng.random((5, 2, 3)), rng.random((11, 2, 3))
    assert data.shape == whole.shape
    np.testing.assert_allclose(data.times(U), whole.times(U), rtol=1e-13)
    np.testing.assert_allclose(data.t_times(V), whole.t_times(V), rtol=1e-13)
    np.testing.assert_allclose(data.squared_norms, whole.squared_norms, rtol=1e-13)
    for some in ([0], [2, 3, 5], [3, 10]):
        rows = (of.take_rows(np.array(some)).dense_rows(slice(None)) for of in (data, whole))
        np.testing.assert_array_equal(*rows)


def test_a_block_is_read_on_its_first_use(X):
    data = cut(X, [3, 4])
    read = []
    object.__setattr__(data, "read", lambda rows: (read.append(rows), InMemory(X[rows]))[1])
    for rows, block in data.blocks():
        assert isinstance(block, Block)
        assert block.shape == (rows.stop - rows.start, 5)
        np.testing.assert_allclose(block.squared_norms, (X[rows] ** 2).sum(axis=1))
    assert not read
    assert block.X is block.X
    assert read == [slice(4, 11)]


@pytest.mark.parametrize("kind", [np.asarray, sp.csr_array])
def test_gram_matrices(kind, X, rng):
    data, F = cut(kind(X), [3, 4]), rng.random((5, 2))
    assert data.facts.largest == X.max()
    np.testing.assert_allclose(data.gram(2.0), X.T @ X / 4, rtol=1e-12, atol=1e-15)
    np.testing.assert_allclose(data.gram_times(F), X.T @ X @ F, rtol=1e-12)


def test_the_stand_in_has_the_entries_of_the_largest_block(X):
    assert cut(X, [3, 4]).stand_in.shape == (7, 5)
    sparse = sp.csr_array(X)
    assert cut(sparse, [3, 4]).stand_in.size >= sparse[4:].nnz
