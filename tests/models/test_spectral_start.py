"""The graph-aware start."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.datasets import load_digits
from sklearn.preprocessing import normalize

from lognmf import MODELS, LogSparseNMF, metrics
from lognmf.models.spectral_start import spectral


def unequal(rng, sizes=(60, 20, 20, 20)):
    """Groups of unequal size, samples of unit norm."""
    centres = np.eye(len(sizes), 12)
    X = np.concatenate([centres[g] + 0.35 * rng.random((n, 12)) for g, n in enumerate(sizes)])
    return X / np.linalg.norm(X, axis=1, keepdims=True), np.repeat(range(len(sizes)), sizes)


def test_v_is_an_indicator_and_u_its_parts(rng):
    X, groups = unequal(rng)
    U, V = spectral(X, 4, np.random.RandomState(0))
    assert (U > 0).all()
    np.testing.assert_allclose(np.sort(V, axis=1), [[0.2, 0.2, 0.2, 1.2]] * len(X))
    assert metrics.clustering_accuracy(groups, V.argmax(axis=1)) == 1.0
    exact = np.linalg.lstsq(V, X, rcond=None)[0].T
    np.testing.assert_allclose(U[exact > 0.01], exact[exact > 0.01], rtol=1e-6)


def test_directions_are_clustered_not_lengths():
    """With the lengths of scikit-learn's SpectralClustering digits are merged: accuracy 0.82."""
    X, y = load_digits(return_X_y=True)
    V = spectral(normalize(X), 10, np.random.RandomState(0))[1]
    assert metrics.clustering_accuracy(y, V.argmax(axis=1)) > 0.88


@pytest.mark.parametrize("form", [sp.csr_array, np.asarray, lambda X: X.astype(np.float32)])
def test_equal_seeds_give_equal_starts(rng, form):
    X = form(unequal(rng)[0])
    one, other = (spectral(X, 4, np.random.RandomState(3)) for _ in range(2))
    for a, b in zip(one, other, strict=True):
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize(("n", "k"), [(1, 1), (2, 2), (2, 5), (3, 2), (4, 3), (6, 5), (6, 6)])
def test_few_samples(rng, n, k):
    U, V = spectral(rng.random((n, 4)), k, np.random.RandomState(0))
    assert U.shape == (4, k)
    assert V.shape == (n, k)
    assert np.isfinite(U).all()


def test_more_pieces_than_clusters():
    X = np.eye(9).repeat(8, axis=0)
    model = MODELS["NMF"](4, init="spectral", max_iter=3, random_state=0).fit(X)
    assert np.isfinite(model.embedding_).all()


def test_without_iterations_the_codes_are_the_start(rng):
    X, groups = unequal(rng)
    model = LogSparseNMF(4, init="spectral", max_iter=0, random_state=0).fit(X)
    assert model.n_iter_ == 0
    assert metrics.clustering_accuracy(groups, model.embedding_.argmax(axis=1)) == 1.0
