"""The neighbour graph: against brute force, on awkward data, and in every kind of input."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse.csgraph import connected_components
from scipy.spatial.distance import cdist

from lognmf import knn_graph
from lognmf.graph import WEIGHTINGS, Graphs, check_graph, dense
from lognmf.progress import printed


def squared_distances(X):
    """Between all samples, by differences in float64; infinite to itself."""
    X = np.asarray(X, dtype=np.float64)
    squared = cdist(X, X, "sqeuclidean")
    np.fill_diagonal(squared, np.inf)
    return squared


def sure_and_possible(X, k, slack=1e-12):
    """Edges in every k-nearest-neighbour graph of ``X``, and in at least one.

    Ties leave a choice: j is surely a neighbour of i if it is nearer than the first one
    left out, and possibly if it is no farther than the last one taken.
    """
    squared = squared_distances(X)
    ordered = np.sort(squared, axis=1)
    last_taken, first_left = ordered[:, [k - 1]], ordered[:, [k]]
    sure = squared < np.where(np.isinf(first_left), np.inf, first_left * (1 - slack))
    possible = squared <= last_taken * (1 + slack)
    return sure | sure.T, possible | possible.T


def assert_is_a_graph(W, n):
    assert isinstance(W, sp.csr_array)
    assert W.shape == (n, n)
    assert W.dtype == np.float64
    dense = W.toarray()
    assert np.isfinite(dense).all()
    assert (W.data > 0).all()
    assert (dense == dense.T).all()
    assert (dense.diagonal() == 0).all()


def assert_nearest(W, X, k, slack=1e-12):
    """``W`` is a binary graph of the k nearest neighbours in ``X``, where copies of a sample are one."""
    assert_is_a_graph(W, len(X))
    distinct, group, counts = np.unique(np.asarray(X), axis=0, return_inverse=True, return_counts=True)
    if len(distinct) < len(X):
        W = assert_equal_for_copies(W, group.reshape(-1), counts)
        X, k = distinct, min(k, len(distinct) - 1)
        if not k:
            return
    joined = W.toarray() > 0
    sure, possible = sure_and_possible(X, k, slack)
    assert (W.data == 1).all()
    assert (joined >= sure).all(), "a sure edge is missing"
    assert (joined <= possible).all(), "an impossible edge is there"
    assert (joined.sum(axis=1) >= k).all(), "a sample has too few neighbours"


def assert_equal_for_copies(W, group, counts):
    """Copies share all edges evenly and hang together; returns the graph of the distinct samples."""
    members = np.eye(len(counts))[group]
    reached = W @ members
    np.testing.assert_allclose(reached, (members.T @ reached / counts[:, None])[group], atol=1e-12)
    for own in range(len(counts)):
        copies = np.flatnonzero(group == own)
        assert connected_components(W[copies][:, copies])[0] == 1
    masses = members.T @ reached
    np.fill_diagonal(masses, 0)
    W = sp.csr_array(masses / np.minimum(counts, counts[:, None]))
    np.testing.assert_allclose(W.data, 1)
    W.data[:] = 1
    return W


def same(W, other):
    np.testing.assert_array_equal(W.toarray(), other.toarray())


# Against brute force -------------------------------------------------------------------


@pytest.mark.parametrize(("n", "p"), [(2, 1), (9, 3), (40, 2), (150, 60), (300, 5)])
@pytest.mark.parametrize("k", [1, 5, "n - 1"])
def test_nearest_neighbours_of_random_samples(rng, n, p, k):
    k = min(k, n - 1) if k != "n - 1" else n - 1
    X = rng.normal(size=(n, p))
    W = knn_graph(X, k)
    assert_nearest(W, X, k)
    sure, possible = sure_and_possible(X, k)
    np.testing.assert_array_equal(sure, possible)  # no ties here: the graph is unique


@settings(max_examples=60)
@given(data=st.data())
def test_ties_are_broken_among_the_nearest(data):
    """Small integers: many equal distances and equal samples."""
    n, p = data.draw(st.integers(2, 20)), data.draw(st.integers(1, 3))
    k = data.draw(st.integers(1, n - 1))
    X = np.array(data.draw(st.lists(st.integers(-2, 2), min_size=n * p, max_size=n * p))).reshape(n, p)
    assert_nearest(knn_graph(X.astype(float), k), X, k)


@pytest.mark.parametrize("k", [1, 3, 7])
@pytest.mark.parametrize("copies", [2, 4, 30, "some"])
@pytest.mark.parametrize("sparse", [False, True])
def test_equal_samples_are_one(rng, k, copies, sparse):
    """Also with more copies than neighbours."""
    counts = rng.integers(1, 30, size=10) if copies == "some" else np.full(10, copies)
    X = np.repeat(rng.normal(size=(10, 4)), counts, axis=0)[rng.permutation(counts.sum())]
    assert_nearest(knn_graph(sp.csr_array(X) if sparse else X, k), X, k)


def test_a_data_set_given_twice_has_its_graph_twice(rng):
    X = rng.random((30, 4))
    members = np.tile(np.eye(30), (2, 1))
    masses = members.T @ (knn_graph(np.tile(X, (2, 1)), 3) @ members)
    np.testing.assert_allclose(masses, 2 * knn_graph(X, 3).toarray() + 2 * np.eye(30))


def test_a_crowd_of_equal_samples_does_not_outweigh_the_others(rng):
    X = np.concatenate([rng.random((40, 5)), np.full((590, 5), 0.5)])
    W = knn_graph(X, 5)
    degree = W.sum(axis=1)
    assert degree.max() <= 5 + W[:40, :40].astype(bool).sum(axis=1).max()
    assert degree[40:].min() > 5
    assert connected_components(W)[0] == 1


@pytest.mark.parametrize("value", [0.0, 1.0, 1e8])
@pytest.mark.parametrize("weighting", WEIGHTINGS)
def test_all_samples_equal(value, weighting):
    X = np.full((12, 3), value)
    W = knn_graph(X, 4, weighting)
    if weighting == "cosine" and value == 0:
        assert W.nnz == 0
    else:
        assert_nearest(W, X, 4)


@pytest.mark.parametrize("offset", [1e3, 1e6, 3e7, 1e9])
@pytest.mark.parametrize("noise", [1.0, 1e-3])
@pytest.mark.parametrize("sparse", [False, True])
def test_a_common_offset_costs_no_digits(rng, offset, noise, sparse):
    """Products of such samples hold nothing of their distances; differences do."""
    X = offset + noise * rng.normal(size=(200, 7))
    assert_nearest(knn_graph(sp.csr_array(X) if sparse else X, 4), X, 4)


@pytest.mark.parametrize("spare", [4, 5, 6])
def test_digits_are_kept_also_where_almost_all_samples_are_candidates(spare):
    k = 2
    for seed in range(30):
        X = 1e9 + np.random.default_rng(seed).normal(size=(k + spare, 3))
        assert_nearest(knn_graph(X, k), X, k)


def test_ordinary_samples_need_no_second_search(rng, monkeypatch):
    monkeypatch.setattr(dense, "_settle", None)
    X = rng.normal(size=(150, 20))
    for scale in (1e-6, 1, 1e6):
        assert_nearest(knn_graph(scale * X, 5), X, 5)


@pytest.mark.parametrize("weighting", WEIGHTINGS)
@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
@pytest.mark.parametrize("offset", [0.0, 1e8])
def test_blocks_of_work_do_not_matter(rng, weighting, form, offset, monkeypatch):
    X = form(offset + rng.random((50, 6)))
    whole = knn_graph(X, 5, weighting)
    for numbers in (1, 7, 100):
        for block in ("_BLOCK", "_PRODUCTS", "_SETTLED"):
            monkeypatch.setattr(dense, block, numbers)
        monkeypatch.setattr("lognmf.graph.BLOCK", numbers)
        same(knn_graph(X, 5, weighting), whole)


def test_one_huge_sample_does_not_blind_the_others(rng):
    X = rng.normal(size=(100, 6))
    X[17] = 1e9
    assert_nearest(knn_graph(X, 5), X, 5)


@pytest.mark.parametrize("size", [1e-120, 1e120])
@pytest.mark.parametrize("weighting", WEIGHTINGS)
def test_the_unit_of_the_data_does_not_matter(rng, size, weighting):
    X = rng.random((40, 5))
    scaled, plain = knn_graph(size * X, 5, weighting), knn_graph(X, 5, weighting)
    np.testing.assert_allclose(scaled.toarray(), plain.toarray(), rtol=1e-12)


# Kinds of input ------------------------------------------------------------------------


@pytest.fixture
def counts(rng):
    """Samples of small counts, many zeros, one sample of zeros, two alike."""
    X = rng.poisson(0.7, size=(60, 30))
    X[3], X[11] = 0, X[12]
    return X


@pytest.mark.parametrize("dtype", [np.int64, np.uint8, np.float32, bool])
@pytest.mark.parametrize("form", [np.asarray, sp.csr_array, sp.csc_matrix])
def test_counts_of_any_dtype(counts, dtype, form):
    X = counts.astype(dtype)
    assert_nearest(knn_graph(form(X), 5), X, 5)


def test_unsigned_differences_do_not_wrap():
    W = knn_graph(np.array([[0], [1], [255], [254]], dtype=np.uint8), 1)
    same(W, sp.csr_array(np.kron(np.eye(2), [[0, 1], [1, 0]])))


@pytest.mark.parametrize("offset", [0, 1000])
def test_float32(rng, offset):
    X = (offset + rng.normal(size=(150, 20))).astype(np.float32)
    assert_nearest(knn_graph(X, 5), X, 5, slack=1e-5)


@pytest.mark.parametrize("weighting", WEIGHTINGS)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(
    "kind", [f"{f}_{c}" for f in ("csr", "csc", "coo", "lil") for c in ("array", "matrix")]
)
def test_sparse_is_dense(rng, counts, weighting, dtype, kind):
    X = (counts * rng.random(counts.shape)).astype(dtype)  # no ties
    S = getattr(sp, kind)(X)
    W, dense = knn_graph(S, 5, weighting), knn_graph(X, 5, weighting)
    assert_is_a_graph(W, len(X))
    tolerance = 1e-5 if dtype == np.float32 else 1e-13
    np.testing.assert_allclose(W.toarray(), dense.toarray(), rtol=tolerance, atol=tolerance)
    np.testing.assert_array_equal(S.toarray(), X)


def test_sparse_entries_given_in_pieces_are_summed(rng, counts):
    """A csr matrix may hold an entry as several that add up."""
    whole = sp.csr_array(counts * rng.random(counts.shape))
    parts = np.repeat(whole.data, 2) * np.tile([3, -2], whole.nnz)
    pieces = sp.csr_array((parts, np.repeat(whole.indices, 2), 2 * whole.indptr), shape=whole.shape)
    assert pieces.nnz == 2 * whole.nnz
    for weighting in WEIGHTINGS:
        W, expected = knn_graph(pieces, 5, weighting), knn_graph(whole, 5, weighting)
        np.testing.assert_allclose(W.toarray(), expected.toarray(), rtol=1e-12)
    assert pieces.nnz == 2 * whole.nnz


@pytest.mark.parametrize("library", ["list", "fortran", "torch", "torch32", "pandas", "polars"])
def test_other_libraries(rng, library):
    X = rng.normal(size=(50, 4))
    names = list("abcd")
    if library == "list":
        given_X = X.tolist()
    elif library == "fortran":
        given_X = np.asfortranarray(X)
    elif library.startswith("torch"):
        torch = pytest.importorskip("torch")
        given_X = torch.tensor(X, dtype=torch.float32 if library == "torch32" else None, requires_grad=True)
    elif library == "pandas":
        given_X = pytest.importorskip("pandas").DataFrame(X, columns=names)
    else:
        given_X = pytest.importorskip("polars").DataFrame(X, schema=names)
    same(knn_graph(given_X, 3), knn_graph(X, 3))


# Weights -------------------------------------------------------------------------------


def heat(X, joined):
    """``exp(−d²/t)``, t the mean of d² over the edges."""
    squared = squared_distances(X)
    return np.exp(-squared / squared[joined].mean())


def cosine(X, joined):
    """Cosines, negative ones as 0."""
    lengths = np.linalg.norm(X, axis=1)
    return np.maximum(X @ X.T / np.outer(lengths, lengths), 0)


@pytest.mark.parametrize("weight", [heat, cosine])
@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
@pytest.mark.parametrize("k", [1, 5, 24])
def test_weights_are_their_definitions(rng, weight, form, k):
    X = rng.normal(size=(25, 3)) + 0.5
    joined = knn_graph(X, k).toarray() > 0
    W = knn_graph(form(X), k, weight.__name__)
    np.testing.assert_allclose(W.toarray(), np.where(joined, weight(X, joined), 0), rtol=1e-12, atol=1e-15)


@pytest.mark.parametrize("weighting", WEIGHTINGS)
def test_every_weighting_gives_a_graph_of_the_same_edges(rng, weighting):
    X = rng.random((80, 6))  # positive, so that no cosine vanishes
    W = knn_graph(X, 5, weighting)
    assert_is_a_graph(W, 80)
    same(W != 0, knn_graph(X, 5) != 0)
    assert W.data.max() <= 1


def test_cosine_of_opposite_and_of_zero_samples_is_no_edge():
    W = knn_graph([[1.0, 0.0], [-1.0, 0.0], [0.0, 0.0], [2.0, 0.0]], 3, "cosine").toarray()
    expected = np.zeros((4, 4))
    expected[0, 3] = expected[3, 0] = 1
    np.testing.assert_allclose(W, expected, atol=1e-15)


@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
def test_cosine_of_samples_with_nothing_in_common_is_no_edge(rng, form):
    X = np.kron(np.eye(2), rng.random((6, 5)))
    components, _ = sp.csgraph.connected_components(knn_graph(form(X), 11, "cosine"))
    assert components == 2


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("ratio", [1e2, 1e4, 1e8])
def test_cosine_of_samples_of_unlike_lengths(dtype, ratio):
    directions = np.array([[3.0, 4.0], [4.0, 3.0], [0.0, 1.0]])
    X = (np.array([[1.0], [ratio], [ratio**0.5]]) * directions).astype(dtype)
    expected = np.array([[0, 0.96, 0.8], [0.96, 0, 0.6], [0.8, 0.6, 0]])
    W = knn_graph(X, 2, "cosine").toarray()
    np.testing.assert_allclose(W, expected, rtol=1e-5 if dtype == np.float32 else 1e-12)


# A real set, and what is refused -------------------------------------------------------


def test_semeion(data_home):
    """Binary pictures: squared distances are integers, and ties are everywhere."""
    path = data_home / "semeion" / "semeion.data"
    if not path.is_file():
        pytest.skip(f"{path.name} is not in the data folder")
    X = np.loadtxt(path)[:, :256]
    assert X.shape == (1593, 256)
    assert_nearest(knn_graph(X, 5), X, 5)
    assert_nearest(knn_graph(sp.csr_array(X), 5), X, 5)
    unit = X / np.linalg.norm(X, axis=1, keepdims=True)
    assert_nearest(knn_graph(unit, 5), unit, 5)


@pytest.mark.parametrize(
    ("arguments", "error", "words"),
    [
        ({"n_neighbors": 0}, ValueError, "n_neighbors must .* 1.*got 0"),
        ({"n_neighbors": -1}, ValueError, "n_neighbors must .* 1.*got -1"),
        ({"n_neighbors": 6}, ValueError, r"number of samples less one \(5\); got 6 for 6 samples"),
        ({"n_neighbors": 2.0}, TypeError, "n_neighbors must be an integer.*got 2.0"),
        ({"n_neighbors": True}, TypeError, "n_neighbors must be an integer.*got True"),
        ({"n_neighbors": "5"}, TypeError, "n_neighbors must be an integer.*got '5'"),
        ({"weighting": "gauss"}, ValueError, r"weighting must be one of \['binary', .*got 'gauss'"),
        ({"weighting": None}, ValueError, r"weighting must be one of .*got None"),
        ({"weighting": ["heat"]}, ValueError, r"weighting must be one of .*got \['heat'\]"),
        ({"X": np.arange(6.0)}, ValueError, "2D array"),
        ({"X": np.ones((2, 3, 4))}, ValueError, "dim"),
        ({"X": np.ones((1, 3))}, ValueError, "for 1 samples"),
        ({"X": [[1.0], [np.nan], [2.0]]}, ValueError, "NaN"),
        ({"X": [[1.0], [np.inf], [2.0]]}, ValueError, "infinity"),
        ({"X": np.zeros((0, 3))}, ValueError, "0 sample"),
        ({"X": 1e160 * np.eye(3)}, ValueError, "X is too large for distances in float64.*1e\\+160"),
        ({"X": 1e30 * np.eye(3, dtype=np.float32)}, ValueError, "X is too large for distances in float32"),
    ],
)
def test_refused_in_words(arguments, error, words):
    with pytest.raises(error, match=words):
        knn_graph(**({"X": np.arange(12.0).reshape(6, 2), "n_neighbors": 1} | arguments))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_how_large_samples_may_be(rng, dtype):
    """Up to where 4 times a sum of squares of differences is finite."""
    X = rng.uniform(-1, 1, size=(40, 3))
    X[0, 0], limit = -1, np.sqrt(np.finfo(dtype).max / (16 * 3))
    same(knn_graph((0.999 * limit * X).astype(dtype), 5), knn_graph(X.astype(dtype), 5))
    with pytest.raises(ValueError, match="X is too large for distances"):
        knn_graph((1.001 * limit * X).astype(dtype), 5)


def test_numpy_integers_are_integers(rng):
    X = rng.normal(size=(20, 2))
    same(knn_graph(X, np.int32(3)), knn_graph(X, 3))


# Graphs that are handed on -------------------------------------------------------------


PATH = np.array([[0.0, 2.0, 0.0], [2.0, 0.0, 1.0], [0.0, 1.0, 0.0]])


@pytest.mark.parametrize("form", [np.asarray, sp.csr_array, sp.coo_array, sp.csc_matrix])
def test_a_given_graph_is_taken_as_it_is(form):
    W = check_graph(form(PATH), 3)
    assert isinstance(W, sp.csr_array)
    same(W, sp.csr_array(PATH))
    assert check_graph(form(PATH.astype(int)), 3).dtype == np.float64


def test_a_given_graph_may_hold_zeros_or_no_edge_and_differ_in_rounding():
    zeros = sp.csr_array((np.array([0.0, 0.0, 1.0, 1.0]), ([0, 1, 1, 2], [1, 0, 2, 1])), shape=(3, 3))
    same(check_graph(zeros, 3), zeros)
    assert check_graph(sp.csr_array((3, 3)), 3).nnz == 0
    for size in (1e-20, 1, 1e20):
        nearly = size * (PATH + np.triu(np.full((3, 3), 1e-11)))
        same(check_graph(nearly, 3), sp.csr_array(nearly))


@pytest.mark.parametrize(
    ("W", "error", "words"),
    [
        (np.zeros((2, 2)), ValueError, r"graph must be 3×3 for 3 samples; got shape \(2, 2\)"),
        (np.zeros((4, 4)), ValueError, "graph must be 3×3"),
        (np.zeros((3, 4)), ValueError, "graph must be 3×3"),
        (np.zeros(3), ValueError, "graph must be 3×3"),
        (np.zeros((3, 3, 3)), ValueError, "graph must be 3×3"),
        (PATH.astype(complex), TypeError, "real weights; got complex128"),
        (np.where(PATH > 1, np.nan, PATH), ValueError, "finite nonnegative"),
        (np.where(PATH > 1, np.inf, PATH), ValueError, "finite nonnegative"),
        (np.where(PATH > 1, -PATH, PATH), ValueError, "finite nonnegative"),
        (np.where(PATH > 1, -1e-9, PATH), ValueError, "finite nonnegative"),
        (np.triu(PATH), ValueError, "must be symmetric"),
        (np.tril(PATH), ValueError, "must be symmetric"),
        (PATH + np.triu(np.full((3, 3), 1e-9)), ValueError, "must be symmetric"),
        (1e-20 * (PATH + np.triu(np.full((3, 3), 1e-9))), ValueError, "must be symmetric"),
    ],
)
def test_a_given_graph_is_refused_in_words(W, error, words):
    with pytest.raises(error, match=words):
        check_graph(W, 3)


class TestGraphs:
    def test_each_is_built_once(self, rng, monkeypatch):
        X = rng.random((12, 3))
        graphs = Graphs(X)
        W = graphs.knn(4)
        same(W, knn_graph(X, 4))
        same(graphs.knn(2), knn_graph(X, 2))
        monkeypatch.setattr("lognmf.graph.find_neighbours", None)
        assert graphs.knn(4) is W

    def test_a_known_one_is_not_built(self, rng):
        known = knn_graph(rng.random((12, 3)), 4)
        graphs = Graphs(rng.random((12, 3)), {4: known})
        assert graphs.knn(4) is known
        assert graphs.knn(3) is not known

    def test_in_a_tiny_set_everybody_is_a_neighbour(self, rng):
        X = rng.random((3, 2))
        graphs = Graphs(X)
        for count in (2, 3, 50):
            same(graphs.knn(count), sp.csr_array(1 - np.eye(3)))
        known = sp.csr_array(PATH)
        assert Graphs(X, {5: known}).knn(7) is known
        alone = Graphs(X[:1]).knn(5)
        assert (alone.shape, alone.nnz) == ((1, 1), 0)

    def test_a_given_one_is_checked_once(self, rng, monkeypatch):
        graphs, W = Graphs(rng.random((3, 2))), sp.coo_array(PATH)
        checked = graphs.given(W)
        same(checked, W)
        with pytest.raises(ValueError, match="3×3"):
            graphs.given(np.zeros((4, 4)))
        monkeypatch.setattr("lognmf.graph.check_graph", None)
        assert graphs.given(W) is checked

    def test_tensors(self, rng):
        torch = pytest.importorskip("torch")
        X = rng.random((12, 3))
        same(Graphs(torch.tensor(X)).knn(4), knn_graph(X, 4))

    def test_a_search_for_many_serves_for_fewer(self, rng, monkeypatch):
        X = rng.random((40, 3))
        X[7] = X[3]
        graphs = Graphs(X)
        four, shared = knn_graph(X, 4), Graphs(X).shared(3)
        graphs.knn(9)
        monkeypatch.setattr("lognmf.graph.find_neighbours", None)
        same(graphs.knn(4), four)
        same(graphs.shared(3), shared)

    def test_names(self, rng, capsys):
        X = rng.random((30, 3))
        graphs = Graphs(X, graph="exact")
        with printed(1):
            assert graphs.knn(4) is graphs.knn(4, "exact")
        assert "4 neighbours of 30 samples found exactly" in capsys.readouterr().err
        with printed(1):
            graphs.knn(4)
        assert not capsys.readouterr().err

    def test_a_given_one_stands_for_all(self, monkeypatch):
        monkeypatch.setattr("lognmf.graph.find_neighbours", None)
        W = sp.csr_array(PATH)
        graphs = Graphs(np.zeros((3, 2)), graph=W)
        same(graphs.knn(5), W)
        # Two neighbours on a path have both of them in common, its two ends what is between them.
        np.testing.assert_array_equal(graphs.shared(5).toarray(), [[0, 2, 1], [2, 0, 2], [1, 2, 0]])
