"""Features by name, and AnnData in."""

import anndata
import numpy as np
import pandas
import pytest
import scipy.sparse as sp
from sklearn.exceptions import NotFittedError

from lognmf import LogSparseNMF, NMFClustering, PlainNMF, SemiNMF, load_model, save_model

NAMES = ["w", "x", "y", "z"]


@pytest.fixture
def X(rng):
    return np.repeat(np.eye(2), 2, axis=1)[np.arange(20) % 2] * [4, 3, 2, 1] + 0.01 * rng.random((20, 4))


@pytest.mark.parametrize("model", [LogSparseNMF(2, random_state=0), NMFClustering(2, random_state=0)])
def test_the_largest_features_of_every_part(X, model):
    top = model.fit(pandas.DataFrame(X, columns=NAMES)).top_features(2)
    assert sorted(top) == [["w", "x"], ["y", "z"]]
    assert sorted(model.fit(X).top_features(1)) == [["0"], ["2"]]


def test_features_without_weight_are_left_out(X):
    model = PlainNMF(2, max_iter=5, random_state=0).fit(X)
    model.components_ = np.array([[0, 2.0, 0, 1.0], [0, 0, 0, 0]])
    assert model.top_features() == [["1", "3"], []]
    signed = SemiNMF(2, max_iter=5, random_state=0).fit(X)
    signed.components_ = np.array([[1.0, -2.0, 0, 0], [0, 0, 3.0, 0]])
    assert signed.top_features() == [["1", "0"], ["2"]]


def test_refusals(X):
    with pytest.raises(NotFittedError):
        PlainNMF(2).top_features()
    with pytest.raises(ValueError, match="n must be an integer >= 1; got 0"):
        PlainNMF(2, max_iter=1).fit(X).top_features(0)


@pytest.mark.parametrize("form", [np.asarray, sp.csr_matrix, sp.csc_matrix])
def test_anndata(X, form):
    cells = anndata.AnnData(form(X), var=pandas.DataFrame(index=NAMES))
    model = LogSparseNMF(2, random_state=0).fit(cells)
    plain = LogSparseNMF(2, random_state=0).fit(sp.csr_array(X) if form is not np.asarray else X)
    np.testing.assert_array_equal(model.components_, plain.components_)
    assert model.feature_names_in_.tolist() == NAMES
    assert model.n_features_in_ == 4
    np.testing.assert_allclose(model.transform(cells), plain.transform(X), rtol=1e-12)
    other = anndata.AnnData(X, var=pandas.DataFrame(index=NAMES[::-1]))
    with pytest.raises(ValueError, match="feature names should match"):
        model.transform(other)
    assert NMFClustering(2, random_state=0).fit(cells).feature_names_in_.tolist() == NAMES


def test_anndata_on_disk_or_empty(X, tmp_path):
    anndata.AnnData(X).write_h5ad(tmp_path / "cells.h5ad")
    backed = anndata.read_h5ad(tmp_path / "cells.h5ad", backed="r")
    with pytest.raises(TypeError, match=r"on disk: give lognmf.in_blocks\(.*cells\.h5ad"):
        PlainNMF(2).fit(backed)
    backed.file.close()
    with pytest.raises(ValueError, match="without a matrix X: give one of its layers"):
        PlainNMF(2).fit(anndata.AnnData(obs=pandas.DataFrame(index=list("abc"))))


@pytest.mark.parametrize("model", [LogSparseNMF(2, random_state=0), NMFClustering(2, random_state=0)])
def test_labels_of_columns_that_are_numbers(X, model, tmp_path):
    """They look like places, and are not: 7 is no place of four."""
    top = model.fit(pandas.DataFrame(X, columns=[7, 3, 2, 11])).top_features(2)
    assert sorted(top) == [["2", "11"], ["7", "3"]]
    assert load_model(save_model(model, tmp_path / "model")).top_features(2) == top
    assert sorted(model.fit(X).top_features(1)) == [["0"], ["2"]]


def test_features_that_are_specific_to_a_part():
    """One feature is the largest in both parts; another is in one part alone."""
    model = PlainNMF(2)
    model.components_ = np.array([[5.0, 3.0, 0.0, 1.0], [5.0, 0.0, 4.0, 1.0]])
    assert model.top_features(1) == [["0"], ["0"]]
    assert [top[0] for top in model.top_features(2, by="specific")] == ["1", "2"]
    with pytest.raises(ValueError, match="by must be one of"):
        model.top_features(by="size")
