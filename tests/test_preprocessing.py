"""Samples of unit norm, also where entries are missing, and of any size."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.preprocessing import normalize as sklearn_normalize

from lognmf import LogSparseNMF, normalize


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("scale", [1e-36, 1e-30, 1.0, 1e30])
def test_complete_samples_are_those_of_scikit_learn(dtype, scale):
    X = np.random.default_rng(0).random((5, 4)).astype(dtype)
    X[2] = 0
    for given in (scale * X, sp.csr_array(dtype(scale) * X)):
        found = normalize(given)
        assert found.dtype == dtype
        found = found.toarray() if sp.issparse(found) else found
        np.testing.assert_allclose(found, sklearn_normalize(X), rtol=1e-6)


def test_missing_entries_stay_missing_and_count_as_the_known_ones():
    X = np.array([[1.0, np.nan, 1.0, 1.0], [np.nan, np.nan, np.nan, np.nan], [0.0, 0.0, np.nan, 0.0]])
    found = normalize(X)
    np.testing.assert_array_equal(np.isnan(found), np.isnan(X))
    np.testing.assert_allclose(found[0, [0, 2, 3]], 0.5)
    assert (found[2, [0, 1, 3]] == 0).all()
    assert X[0, 0] == 1, "the input is left alone"


def test_torch_tensors_stay_tensors():
    torch = pytest.importorskip("torch")
    X = torch.tensor([[3.0, 4.0], [1.0, float("nan")]], dtype=torch.float64)
    found = normalize(X)
    assert isinstance(found, torch.Tensor)
    np.testing.assert_allclose(found.numpy(), [[0.6, 0.8], [np.sqrt(0.5), np.nan]])


def test_infinity_and_words_are_refused():
    with pytest.raises(ValueError, match="infinity"):
        normalize([[np.inf, 1.0]])
    with pytest.raises(ValueError, match=r"could not convert|must hold|numeric"):
        normalize([["a", "b"]])
    with pytest.raises(ValueError, match="NaN"):
        normalize(sp.csr_array([[np.nan, 1.0]]))


@pytest.fixture
def frame(rng):
    pandas = pytest.importorskip("pandas")
    X = rng.random((12, 4)).astype(np.float32)
    X[3, 1] = np.nan
    return pandas.DataFrame(X, columns=list("dbca"), index=[f"row {i}" for i in range(12)])


def test_data_frames_of_pandas_keep_names(frame):
    found = normalize(frame)
    assert type(found) is type(frame)
    assert found.columns.equals(frame.columns)
    assert found.index.equals(frame.index)
    np.testing.assert_array_equal(found, normalize(frame.to_numpy()))
    assert (found.dtypes == np.float32).all()
    model = LogSparseNMF(2, max_iter=5).fit(found)
    assert {name for part in model.top_features(4) for name in part} == set("abcd")


def test_sparse_data_frames_stay_sparse(frame):
    from pandas import DataFrame

    X = sp.csr_array(np.eye(3, 4) * 5)
    given = DataFrame.sparse.from_spmatrix(X, columns=frame.columns, index=["x", "y", "z"])
    found = normalize(given)
    assert list(found.columns) == list("dbca")
    assert list(found.index) == ["x", "y", "z"]
    np.testing.assert_array_equal(found.sparse.to_coo().toarray(), np.eye(3, 4))


def test_a_square_frame_of_polars_is_not_turned(rng):
    polars = pytest.importorskip("polars")
    X = rng.random((3, 3))
    found = normalize(polars.DataFrame(dict(zip("abc", X.T, strict=True))))
    np.testing.assert_allclose(found.to_numpy(), normalize(X))


def test_data_frames_of_polars_keep_names(frame):
    polars = pytest.importorskip("polars")
    given = polars.DataFrame({name: frame[name].to_numpy() for name in frame})
    found = normalize(given)
    assert isinstance(found, polars.DataFrame)
    assert found.columns == given.columns
    np.testing.assert_allclose(found.to_numpy(), normalize(frame.to_numpy()), rtol=1e-6)


@pytest.mark.parametrize("kind", [np.asarray, sp.csr_matrix])
def test_anndata_keeps_all_it_holds(frame, kind):
    anndata = pytest.importorskip("anndata")
    X = frame.fillna(0).to_numpy()
    cells = anndata.AnnData(kind(X), obs={"batch": ["a"] * 12}, layers={"raw": X.copy()})
    cells.var_names = frame.columns
    found = normalize(cells)
    assert list(found.var_names) == list("dbca")
    assert list(found.obs["batch"]) == ["a"] * 12
    np.testing.assert_array_equal(found.layers["raw"], X)
    values = [each.toarray() if sp.issparse(each) else each for each in (found.X, cells.X)]
    np.testing.assert_allclose(values[0], sklearn_normalize(X), rtol=1e-6)
    np.testing.assert_array_equal(values[1], X)


@pytest.mark.parametrize("form", [np.asarray, sp.csr_array, sp.csc_matrix])
def test_numbers_next_to_zero(form):
    """The inverse of such a norm is infinite."""
    found = normalize(form(np.array([[3e-310, 4e-310], [0.0, 0.0]])))
    found = found.toarray() if sp.issparse(found) else found
    np.testing.assert_allclose(found, [[0.6, 0.8], [0.0, 0.0]], rtol=1e-6)
