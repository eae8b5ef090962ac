"""Samples are read once, and what users give stays as it is."""

import numpy as np
import pytest
import scipy.sparse as sp

from lognmf import MODELS, LogSparseNMF, RobustLogSparseNMF
from lognmf.models.validation import check_samples, read_samples
from problems import samples


def doubled(X):
    """``X`` as a CSR matrix that stores every entry in two halves."""
    csr = sp.csr_array(X)
    halves = [np.repeat(part, 2) for part in (csr.data / 2, csr.indices)]
    return sp.csr_array((*halves, 2 * csr.indptr), shape=X.shape)


def test_duplicate_entries_are_summed_first(rng):
    """Squares of halves would be too small."""
    X = samples(rng, 20, 9, density=0.5)
    twice = doubled(X)
    assert twice.nnz == 2 * sp.csr_array(X).nnz
    before = twice.copy()
    for cls in (LogSparseNMF, RobustLogSparseNMF):
        for init in ("scaled", "nndsvda", "spectral"):
            options = {"init": init, "max_iter": 10, "random_state": 0}
            ours, plain = cls(3, **options).fit(twice), cls(3, **options).fit(sp.csr_array(X))
            np.testing.assert_allclose(ours.reconstruction_err_, plain.reconstruction_err_, rtol=1e-9)
            np.testing.assert_allclose(ours.components_, plain.components_, rtol=1e-6, atol=1e-9)
    for part in ("data", "indices", "indptr"):
        np.testing.assert_array_equal(getattr(twice, part), getattr(before, part))


@pytest.mark.parametrize("name", MODELS)
def test_samples_are_not_read_again(name, rng, monkeypatch):
    X = samples(rng, 12, 6)
    read = read_samples(X)
    monkeypatch.setattr("lognmf.models.validation.read_samples", lambda *_, **__: pytest.fail("read again"))
    model = MODELS[name](2)
    data = check_samples(model, read, reset=True)
    assert data is read.data
    assert model.n_features_in_ == 6
