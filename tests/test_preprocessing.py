"""Samples of unit norm, also where entries are missing, and of any size."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.preprocessing import normalize as sklearn_normalize

from lognmf import normalize


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("scale", [1e-30, 1.0, 1e30])
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
