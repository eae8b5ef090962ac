"""Exact search among sparse samples."""

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.spatial.distance import cdist

from lognmf.graph import inverted


def counts(rng, n=150, p=40):
    """Counts with frequent and rare features, a sample of zeros, and many ties."""
    X = rng.poisson(np.geomspace(3, 0.01, p), size=(n, p)).astype(float)
    X[7] = 0
    return X


@pytest.mark.parametrize("frequent", [2.0, 1 / 8, 0.0])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("weighted", [False, True])
def test_the_nearest_are_found_and_ties_go_to_the_first(rng, frequent, dtype, weighted, monkeypatch):
    monkeypatch.setattr(inverted, "_FREQUENT", frequent)
    X = counts(rng)
    X = (X * rng.random(X.shape) if weighted else X).astype(dtype)
    squared = cdist(X, X, "sqeuclidean")
    np.fill_diagonal(squared, np.inf)
    S = sp.csr_array(X)
    nearest, found = inverted.nearest_sparse(S, S, 6, but_itself=True)
    np.testing.assert_array_equal(nearest, np.argsort(squared, axis=1, kind="stable")[:, :6])
    np.testing.assert_allclose(found, np.sort(squared, axis=1)[:, :6], rtol=1e-12)


def test_blocks_do_not_matter(rng, monkeypatch):
    S = sp.csr_array(counts(rng))
    whole = inverted.nearest_sparse(S, S, 4, but_itself=True)
    monkeypatch.setattr(inverted, "_PRODUCTS", 1)
    for one, other in zip(inverted.nearest_sparse(S, S, 4, but_itself=True), whole, strict=True):
        np.testing.assert_array_equal(one, other)


def test_frequent_features_fill_no_more_than_their_share(rng, monkeypatch):
    S = sp.csc_array(counts(rng))
    monkeypatch.setattr(inverted, "_DENSE", 3 * S.shape[0])
    np.testing.assert_array_equal(
        inverted._frequent(S), np.sort(np.argsort(-np.diff(S.indptr), kind="stable")[:3])
    )
