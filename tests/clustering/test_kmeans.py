"""Batched k-means: its labels depend on an embedding and its seed, on nothing else."""

import tracemalloc
import warnings

import numpy as np
import pytest
from sklearn.cluster import KMeans
from sklearn.exceptions import ConvergenceWarning

from lognmf import fit_grid
from lognmf.clustering import lloyd, scores
from lognmf.clustering.kmeans import kmeans
from lognmf.core.arrays import namespace, to_numpy
from problems import pattern

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
        xp = namespace(home)
        labels = kmeans(xp.asarray(V, device=home.device), n_clusters, seed=1, n_init=3)
        assert type(labels) is type(home)
        assert labels.device == home.device
        assert to_numpy(labels).dtype == np.int64
        np.testing.assert_array_equal(to_numpy(labels), kmeans(V, n_clusters, seed=1, n_init=3))

    def test_gradients_are_left_out(self, V):
        torch = pytest.importorskip("torch", reason="torch is an extra")
        labels = kmeans(torch.as_tensor(V).requires_grad_(), K, seed=0, n_init=1)
        np.testing.assert_array_equal(labels.numpy(), kmeans(V, K, seed=0, n_init=1))


class TestClusters:
    @pytest.mark.parametrize("tol", [1e-4, 0.02, 0.2])  # the larger ones end while labels still change
    def test_scikit_learn_finds_the_same(self, rng, tol):
        V = np.stack([rng.gamma(0.5, size=(200, 5)) for _ in range(4)], axis=1)
        for n_clusters in (2, 5, 12):
            ours = kmeans(V, n_clusters, seed=7, n_init=4, tol=tol)
            for b in range(4):
                theirs = KMeans(n_clusters, n_init=4, random_state=7, tol=tol).fit_predict(V[:, b])
                np.testing.assert_array_equal(ours[:, b], theirs)

    def test_inertia_is_as_low_as_scikit_learns(self, V):
        ours = inertia(V[:, :16], kmeans(V[:, :16], K, seed=0))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)  # fewer distinct rows than clusters
            theirs = [KMeans(K, n_init=10, random_state=1).fit(Z).inertia_ for Z in V[:, :16].swapaxes(0, 1)]
        np.testing.assert_allclose(ours.mean(), np.mean(theirs), rtol=0.01)

    def test_well_separated_blobs(self, rng):
        y = rng.permutation(np.arange(N) % K)
        centres = 20 * np.eye(K) + rng.normal(size=(30, K, K))
        V = centres[:, y].swapaxes(0, 1) + 0.5 * rng.normal(size=(N, 30, K))
        labels = kmeans(V, K, seed=np.arange(30), n_init=2)
        assert (scores.accuracy(scores.contingency(y, labels)) == 1).all()

    def test_inertia_never_rises(self, V):
        V = V[:, :16]
        course = [inertia(V, kmeans(V, K, seed=2, n_init=1, tol=0, max_iter=steps)) for steps in range(12)]
        assert (np.diff(course, axis=0) <= 1e-9 * course[0]).all()
        assert (course[-1][:5] < course[0][:5]).all()

    def test_more_restarts_are_no_worse(self, V):
        # The first restarts are the same ones.
        few, many = (inertia(V[:, :9], kmeans(V[:, :9], K, seed=0, n_init=n_init)) for n_init in (2, 8))
        assert (many <= few * (1 + 1e-9)).all()

    def test_restarts_differ(self, V):
        found = [kmeans(V[:, :9], K, seed=seed, n_init=1) for seed in (0, 1)]
        assert (found[0] != found[1]).any()

    def test_many_clusters(self, rng):
        V = rng.random((300, 2, 3))
        labels = kmeans(V, 280, seed=0, n_init=1)
        assert [len(np.unique(column)) for column in labels.T] == [280, 280]


class TestDegenerate:
    def test_equal_rows_share_a_label(self, V):
        for n_clusters in (2, K, N):
            labels = kmeans(V, n_clusters, seed=0, n_init=2)
            assert ((labels >= 0) & (labels < n_clusters)).all()
            for Z, names in zip(V.swapaxes(0, 1), labels.T, strict=True):
                _, row = np.unique(Z, axis=0, return_inverse=True)
                pairs = np.unique(np.stack([row.reshape(-1), names]), axis=1)
                assert pairs.shape[1] == row.max() + 1

    def test_no_cluster_is_wasted(self, V):
        labels = kmeans(V, K, seed=0)
        used = [len(np.unique(column)) for column in labels.T]
        distinct = [len(np.unique(Z, axis=0)) for Z in V.swapaxes(0, 1)]
        assert used == [min(K, d) for d in distinct]

    def test_empty_clusters_take_the_farthest_samples(self):
        # All centres at the origin: only the first cluster has members.
        V = np.zeros((6, 1, 1))
        V[:, 0, 0] = [0, 0, 0, 1, 5, -3]
        points = lloyd.Points.of(V)
        centres = np.zeros((1, 1, 3, 1)) + points.rows[0, 0, 0]
        labels, moved = lloyd._step(points, centres)
        np.testing.assert_array_equal(labels[0, 0], [0, 0, 0, 0, 1, 2])
        np.testing.assert_allclose(moved[0, 0, 1:, 0], points.rows[0, 0, 4:])
        np.testing.assert_allclose(moved[0, 0, 0, 0], points.rows[0, 0, :4].mean())

    def test_empty_clusters_of_several_embeddings_and_restarts(self):
        V = np.array([[0, 0, 0, 1, 5, -3], [7, 0, 0, 0, 2, 0], [0, 4, 9, 0, 0, 0.0]]).T[:, :, None]
        points = lloyd.Points.of(V)
        origin = points.rows[np.arange(3), 0, [0, 1, 0]]
        labels, _ = lloyd._step(points, np.zeros((3, 2, 3, 1)) + origin[:, None, None, None])
        for expected, found in zip(
            [[0, 0, 0, 0, 1, 2], [1, 0, 0, 0, 2, 0], [0, 2, 1, 0, 0, 0]], labels, strict=True
        ):
            np.testing.assert_array_equal(found, [expected] * 2)

    def test_lone_members_are_not_taken(self):
        # The farthest sample is the second cluster's only one: the third takes the next.
        V = np.zeros((5, 1, 1))
        V[:, 0, 0] = [0, 1, 2, 4, 20]
        points = lloyd.Points.of(V)
        centres = points.rows[0, 0, 0] + np.array([0, 14, -1000]).reshape(1, 1, 3, 1) / 20
        labels, _ = lloyd._step(points, centres)
        np.testing.assert_array_equal(labels[0, 0], [0, 0, 0, 2, 1])


def test_temporaries_fit_into_memory(rng):
    for shape, n_clusters, n_init in [
        ((400, 40, 5), 9, 10),
        ((300, 60, 40), 3, 1),
        ((300, 20, 30), 30, 5),
        ((4000, 2, 5), 9, 10),  # not all restarts of one embedding at once
    ]:
        V = rng.random(shape)
        for memory in (2**22, 2**24):
            tracemalloc.start()
            kmeans(V, n_clusters, seed=0, n_init=n_init, max_iter=5, memory=memory)
            _, peak = tracemalloc.get_traced_memory()
            tracemalloc.stop()
            assert peak <= memory


def test_bad_arguments(rng):
    """`fit_grid` checks numbers of clusters and seeds; `kmeans` trusts it, but not the codes."""
    X = rng.random((5, 3))
    for bad, error in ((0, ValueError), (6, ValueError), (2.0, TypeError), (True, TypeError)):
        with pytest.raises(error, match="n_clusters must be"):
            fit_grid("NMF", X, {"n_components": [2]}, n_clusters=bad)
    for bad, error in ((-1, ValueError), (2**32, ValueError), (0.5, TypeError), (None, TypeError)):
        with pytest.raises(error, match=r"must be an integer|between 0 and 2\*\*32 - 1"):
            fit_grid("NMF", X, {"n_components": [2]}, n_clusters=2, seeds=[bad])
    V = rng.random((5, 3, 2))
    for bad in (np.nan, np.inf):
        V[1, 1, 1] = bad
        with pytest.raises(ValueError, match="V must be finite"):
            kmeans(V, 2, seed=0)


def test_distances_within_rounding_are_zero(rng):
    points = lloyd.Points.of(rng.random((6, 1, 3)))
    least = lloyd.SLACK * points.square
    distance = np.concatenate([-least, 0.5 * least, least, 2 * least], axis=1)
    snapped = points.snap(distance)
    np.testing.assert_array_equal(snapped[:, :3], 0)
    np.testing.assert_array_equal(snapped[:, 3], distance[:, 3])
