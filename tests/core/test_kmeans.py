"""Batched k-means: its labels depend on an embedding and its seed, on nothing else."""

import tracemalloc
import warnings

import numpy as np
import pytest
from sklearn.cluster import KMeans
from sklearn.exceptions import ConvergenceWarning
from test_libraries import pattern

from lognmf.core.arrays import like, to_numpy
from lognmf.core.kmeans import kmeans

LIBRARIES = ["numpy", "array-api-strict", "torch-cpu", "torch-cuda"]
N, K = 90, 7


def inertia(V, labels):
    """Sum of squared distances to the means of the labels, (B,)."""
    return np.array(
        [
            sum(((rows - rows.mean(axis=0)) ** 2).sum() for c in np.unique(names) for rows in [Z[names == c]])
            for Z, names in zip(V.transpose(1, 0, 2), labels.T, strict=True)
        ]
    )


def embeddings(rng):
    """Noise, blobs, and everything that is prone to ties."""
    noise = [rng.gamma(0.5, size=(N, 4)) for _ in range(5)]
    blobs = [rng.normal(size=(K, 4))[rng.integers(0, K, N)] * 3 + rng.normal(size=(N, 4)) for _ in range(4)]
    lone = np.zeros((N, 4))
    lone[5] = 1
    tied = [
        np.zeros((N, 4)),
        np.full((N, 4), 0.1),
        lone,
        rng.integers(0, 2, (N, 4)) / 3,  # corners of a cube: symmetric, and many equal rows
        noise[0][rng.integers(0, 3, N)],  # fewer distinct rows than clusters
        np.round(noise[1]),
        np.arange(4.0 * N).reshape(N, 4) % 9,
    ]
    scaled = [noise[0] * 1e-200, noise[1] * 1e200, noise[2] * 1e-5 + 1e3]
    return np.stack([*noise, *blobs, *tied, *scaled], axis=1)


@pytest.fixture
def V(rng):
    return embeddings(rng)


class TestCompany:
    """Alone, in a batch, elsewhere in it, in chunks, on another library: the same labels."""

    @pytest.fixture(params=["float64", "float32"])
    def V(self, request, rng):
        V = embeddings(rng)
        return V if request.param == "float64" else V[:, :-3].astype(np.float32)

    def test_alone_and_in_a_batch(self, V):
        seeds = np.arange(V.shape[1])
        together = kmeans(V, K, seed=seeds)
        for b, seed in enumerate(seeds):
            np.testing.assert_array_equal(kmeans(V[:, b : b + 1], K, seed=int(seed))[:, 0], together[:, b])

    def test_another_position(self, V, rng):
        seeds, order = np.arange(V.shape[1]), rng.permutation(V.shape[1])
        np.testing.assert_array_equal(
            kmeans(V[:, order], K, seed=seeds[order]), kmeans(V, K, seed=seeds)[:, order]
        )

    @pytest.mark.parametrize("memory", [1, 10**5, 10**6, 10**9])
    def test_chunks(self, V, memory):
        np.testing.assert_array_equal(kmeans(V, K, seed=3, memory=memory), kmeans(V, K, seed=3))

    @pytest.mark.parametrize("library", LIBRARIES)
    @pytest.mark.parametrize("n_clusters", [1, 2, K, N])
    def test_libraries(self, V, library, n_clusters):
        home = pattern(library)
        tensor = like(V, like(np.zeros(1, V.dtype), home) if V.dtype == np.float64 else single(home))
        labels = kmeans(tensor, n_clusters, seed=1, n_init=3)
        assert type(labels) is type(home)
        assert labels.device == home.device
        assert to_numpy(labels).dtype == np.int64
        np.testing.assert_array_equal(to_numpy(labels), kmeans(V, n_clusters, seed=1, n_init=3))


def single(home):
    """A float32 pattern."""
    return home.float() if hasattr(home, "float") else home.__array_namespace__().astype(home, "float32")
