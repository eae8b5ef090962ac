"""What a numpy.ma array masks is missing, wherever X is taken."""

import numpy as np
import pytest

import lognmf
from lognmf import LogSparseNMF, NMFClustering, PlainNMF, WeightedNMF, in_blocks, normalize
from lognmf.parameters import unmasked


@pytest.fixture
def whole(rng):
    return rng.random((40, 3)) @ rng.random((3, 8))


@pytest.fixture
def bad(rng, whole):
    return rng.random(whole.shape) < 0.1


@pytest.fixture
def garbage(whole, bad):
    return np.ma.masked_array(np.where(bad, 1e6, whole), bad)


@pytest.fixture
def holes(whole, bad):
    return np.where(bad, np.nan, whole)


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.int16, np.bool_, object])
def test_masked_entries_become_nan(dtype):
    found = unmasked(np.ma.masked_array(np.array([[1, 0]], dtype=dtype), [[False, True]]))
    assert type(found) is np.ndarray
    assert found[0, 0] == 1
    assert np.isnan(found[0, 1])
    if np.dtype(dtype).kind == "f":
        assert found.dtype == dtype


def test_without_masked_entries_it_is_an_ordinary_array():
    X = np.arange(4).reshape(2, 2)
    for given in (np.ma.masked_array(X), np.ma.masked_array(X, np.zeros((2, 2), bool))):
        assert type(unmasked(given)) is np.ndarray
        assert unmasked(given).dtype == X.dtype
    assert unmasked(X) is X


def test_fit_transform_and_impute(garbage, holes):
    for model in (WeightedNMF(3, random_state=0, max_iter=20), LogSparseNMF(3, alpha=0.0, beta=0.0)):
        codes = model.fit(holes).transform(holes)
        filled, parts = model.impute(holes), model.components_
        np.testing.assert_allclose(model.fit(garbage).components_, parts, rtol=1e-6)
        np.testing.assert_allclose(model.transform(garbage), codes, rtol=1e-6)
        np.testing.assert_allclose(model.impute(garbage), filled, rtol=1e-6)


def test_integers(rng):
    counts = rng.integers(0, 9, (30, 6))
    bad = rng.random(counts.shape) < 0.1
    model = WeightedNMF(2, random_state=0, max_iter=10)
    parts = model.fit(np.where(bad, np.nan, counts)).components_
    np.testing.assert_allclose(model.fit(np.ma.masked_array(counts, bad)).components_, parts, rtol=1e-6)


def test_grids_choices_and_normalize(garbage, holes):
    np.testing.assert_array_equal(normalize(garbage), normalize(holes))
    model = WeightedNMF(2, max_iter=10)
    rows = [lognmf.fit_grid(model, X, {"n_components": [2]}, seeds=[0]).rows for X in (garbage, holes)]
    assert rows[0][0]["objective"] == rows[1][0]["objective"]
    found = [lognmf.choose_components(X, [1, 2, 3, 4], random_state=0).best for X in (garbage, holes)]
    assert found[0] == found[1]


def test_models_that_take_no_missing_entries_refuse(garbage):
    for refuse in (
        PlainNMF(2).fit,
        NMFClustering(2).fit,
        lambda X: lognmf.tune(X, 2, model="RLS-NMF"),
        lambda X: lognmf.compare(X, 2, models=["NMF"]),
        lognmf.knn_graph,
        lambda X: lognmf.noise.gaussian(X, 0.1, rng=0),
    ):
        with pytest.raises(ValueError, match="NaN"):
            refuse(garbage)


def test_blocks_of_rows(garbage, holes):
    da = pytest.importorskip("dask.array", reason="Dask is not installed")
    model = WeightedNMF(3, solver="mu", random_state=0, max_iter=5)
    parts = model.fit(in_blocks(holes, rows=15)).components_
    for given in (
        in_blocks(garbage, rows=15),
        da.ma.masked_array(garbage.data, garbage.mask).rechunk((15, 8)),
    ):
        np.testing.assert_allclose(model.fit(given).components_, parts, rtol=1e-9)
