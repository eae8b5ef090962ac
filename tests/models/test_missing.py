"""Missing entries are filled by the model; known ones stay."""

import numpy as np
import pandas
import pytest
import scipy.sparse as sp
from sklearn.datasets import load_digits
from sklearn.exceptions import NotFittedError

from lognmf import GraphNMF, LogSparseNMF, PlainNMF, RobustLogSparseNMF, WeightedNMF

MODELS = [
    WeightedNMF(3, max_iter=3000, tol=1e-9, random_state=0),
    LogSparseNMF(3, alpha=0.0, beta=0.0, max_iter=3000, tol=1e-9),
    PlainNMF(3, loss="kullback-leibler", solver="mu", max_iter=3000, tol=1e-9, random_state=0),
    GraphNMF(3, loss="kullback-leibler", lam=0.0, max_iter=3000, tol=1e-9, random_state=0),
]


@pytest.fixture
def whole(rng):
    return rng.random((60, 3)) @ rng.random((3, 15))


@pytest.fixture
def holes(rng, whole):
    return np.where(rng.random(whole.shape) < 0.15, np.nan, whole)


@pytest.mark.parametrize("model", MODELS, ids=lambda model: type(model).__name__)
def test_entries_of_the_fit_and_of_new_samples(model, whole, holes):
    missing = np.isnan(holes)
    model.fit(holes[:45])
    for rows in (slice(0, 45), slice(45, 60)):
        before = holes[rows].copy()
        filled = model.impute(holes[rows])
        np.testing.assert_array_equal(holes[rows], before)
        np.testing.assert_array_equal(filled[~missing[rows]], whole[rows][~missing[rows]])
        np.testing.assert_allclose(filled, whole[rows], atol=0.05)


def test_nothing_is_missing(whole, holes):
    model = WeightedNMF(3, max_iter=5).fit(holes)
    filled = model.impute(whole)
    np.testing.assert_array_equal(filled, whole)
    assert filled is not whole
    np.testing.assert_array_equal(model.impute(whole.tolist()), whole)


def test_data_frames_keep_names_and_integers(holes):
    frame = pandas.DataFrame(holes, columns=[f"c{j}" for j in range(15)], index=[f"r{i}" for i in range(60)])
    frame["c3"] = np.arange(60)
    filled = WeightedNMF(3, random_state=0).fit(frame).impute(frame)
    assert filled.notna().all(axis=None)
    assert filled.index.equals(frame.index)
    assert filled.columns.equals(frame.columns)
    assert filled["c3"].dtype == frame["c3"].dtype
    pandas.testing.assert_frame_equal(filled.where(frame.notna()), frame, check_dtype=False)


def test_torch(holes):
    torch = pytest.importorskip("torch", reason="torch is not installed")
    model = WeightedNMF(3, random_state=0).fit(holes)
    filled = model.impute(torch.tensor(holes))
    assert isinstance(filled, torch.Tensor)
    np.testing.assert_allclose(filled.numpy(), model.impute(holes), rtol=1e-6)
    same = torch.nan_to_num(torch.tensor(holes))
    assert (model.impute(same) == same).all()


def test_refusals(whole, holes):
    with pytest.raises(NotFittedError):
        WeightedNMF(3).impute(holes)
    for model in (RobustLogSparseNMF(3, max_iter=5), PlainNMF(3, max_iter=5)):
        with pytest.raises(TypeError, match="takes no missing entries, so it can fill none: use WeightedNMF"):
            model.fit(whole).impute(holes)
    model = WeightedNMF(3, max_iter=5).fit(holes)
    with pytest.raises(TypeError, match="sparse X does not store are zeros"):
        model.impute(sp.csr_array(whole))
    holes[7] = np.nan
    with pytest.raises(
        ValueError, match=r"samples without a known entry \(1, the first is row 7\).*drop them"
    ):
        model.impute(holes)
    with pytest.raises(ValueError, match="14 features"):
        model.impute(holes[:, 1:])


def test_features_of_which_nothing_is_known_are_told(holes):
    holes[:, [4, 6]] = np.nan
    for model in (WeightedNMF(2, max_iter=5), LogSparseNMF(2, max_iter=5)):
        with pytest.warns(
            UserWarning, match=r"without a known entry \(2, the first is column 4\): drop them"
        ):
            model.fit(holes)


def digits_error(model, share=0.15):
    """Error of the filled entries of the digits, over their standard deviation."""
    X = load_digits().data[:300] / 16
    missing = np.random.default_rng(0).random(X.shape) < share
    filled = model.fit(np.where(missing, np.nan, X)).impute(np.where(missing, np.nan, X))
    return np.sqrt(np.mean((filled - X)[missing] ** 2)) / X[missing].std()


@pytest.mark.filterwarnings("ignore:X has features without")
def test_no_absurd_values():
    """Codes of `transform` suit known entries of almost no weight: some were off by far."""
    assert digits_error(LogSparseNMF(16, max_iter=100)) < 0.8
    assert digits_error(WeightedNMF(16, random_state=0, max_iter=300)) < 0.65


def test_codes_of_which_most_are_zero(rng):
    """Each sample has one of ten parts: the median of every code is zero."""
    parts = rng.random((10, 40)) * (rng.random((10, 40)) < 0.5)
    X = parts[np.arange(200) % 10] * rng.uniform(1, 2, (200, 1))
    holes = np.where(rng.random(X.shape) < 0.3, np.nan, X)
    filled = LogSparseNMF(10, alpha=0.0, beta=0.0).fit(holes).impute(holes)
    assert np.linalg.norm(filled - X) < 0.1 * np.linalg.norm(X)


def test_a_sample_that_says_nothing_of_a_part():
    """Its code is the median of the fit's, not what a weight of almost zero makes of the known entries."""
    U = np.array([[1.0, 1.0, 0, 1e-9], [0, 0, 1.0, 1.0]])
    model = WeightedNMF(2, solver="mu", max_iter=0).fit(
        [[1.0, 1, 1, 1]] * 3, U0=U.T, V0=[[2.0, 1], [3.0, 1], [4.0, 1]]
    )
    filled = model.impute([[np.nan, np.nan, 5.0, 5.1]])
    np.testing.assert_allclose(filled, [[3, 3, 5, 5.1]], rtol=0.01)
    assert model.inverse_transform(model.transform([[np.nan, np.nan, 5.0, 5.1]]))[0, 0] > 1e6
    assert np.isfinite(model.impute([[0.0, np.nan, 0, 0]])).all()


@pytest.mark.parametrize("missing", [True, False])
def test_a_list_becomes_an_array(missing):
    X = [[1.0, 2.0, 1.0], [2.0, 4.0, 2.0], [3.0, 6.0, 3.0]]
    model = WeightedNMF(1, random_state=0).fit(X)
    if missing:
        X[2][1] = float("nan")
    filled = model.impute(X)
    assert isinstance(filled, np.ndarray)
    np.testing.assert_allclose(filled[2], [3.0, 6.0, 3.0], atol=0.05)


def test_nullable_integers_of_pandas():
    X = pandas.DataFrame({"a": [1, 2, 3, 4], "b": [1, 2, 3, 4], "c": [2, 4, None, 8]}, dtype="Int64")
    filled = WeightedNMF(1, random_state=0).fit(X).impute(X)
    assert filled.dtypes.astype(str).tolist() == ["Int64", "Int64", "float64"]
    np.testing.assert_allclose(filled.to_numpy(dtype=float)[:, 2], [2, 4, 6, 8], atol=0.05)
    assert X.isna().to_numpy().sum() == 1
