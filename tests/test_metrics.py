"""The metrics against brute force, hand computation and double loops."""

import itertools
import math
from collections import Counter

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from lognmf import knn_graph
from lognmf.metrics import (
    clustering_accuracy,
    hoyer_sparseness,
    modularity,
    normalized_cut,
    normalized_mutual_info,
    purity,
)

AVERAGES = {"max": max, "geometric": lambda a, b: math.sqrt(a * b)}
SCORES = {
    "accuracy": clustering_accuracy,
    "purity": purity,
    "nmi max": normalized_mutual_info,
    "nmi geometric": lambda y, labels: normalized_mutual_info(y, labels, average="geometric"),
}

every_score = pytest.mark.parametrize("score", SCORES.values(), ids=SCORES)
property_test = settings(max_examples=100)
clusterings = st.integers(1, 12).flatmap(
    lambda n: st.tuples(*[st.lists(st.integers(0, 4), min_size=n, max_size=n)] * 2)
)


def best_map(y, labels):
    """Accuracy by trying every one-to-one map of clusters to classes."""
    classes, clusters = sorted(set(y)), sorted(set(labels))
    spare = [None] * max(0, len(clusters) - len(classes))
    hits = (
        sum(c == chosen[clusters.index(label)] for c, label in zip(y, labels, strict=True))
        for chosen in itertools.permutations(classes + spare, len(clusters))
    )
    return max(hits) / len(y)


def information(y, labels, average):
    """NMI by its formula, counts from plain Python."""
    n, classes, clusters = len(y), Counter(y), Counter(labels)
    both = Counter(zip(y, labels, strict=True))
    mutual = sum(m / n * math.log(n * m / (classes[a] * clusters[b])) for (a, b), m in both.items())
    entropies = [-sum(m / n * math.log(m / n) for m in count.values()) for count in (classes, clusters)]
    if max(entropies) == 0:
        return 1.0
    return mutual / AVERAGES[average](*entropies) if min(entropies) > 0 else 0.0


# With labels ---------------------------------------------------------------------------


@property_test
@given(clusterings)
def test_accuracy_is_that_of_the_best_map(pair):
    assert clustering_accuracy(*pair) == pytest.approx(best_map(*pair), rel=1e-15)


@property_test
@given(clusterings)
def test_purity_counts_the_largest_class_of_each_cluster(pair):
    y, labels = pair
    members = [[c for c, label in zip(y, labels, strict=True) if label == cluster] for cluster in set(labels)]
    expected = sum(Counter(classes).most_common(1)[0][1] for classes in members) / len(y)
    assert purity(y, labels) == pytest.approx(expected, rel=1e-15)
    assert purity(y, labels) >= clustering_accuracy(y, labels)


@pytest.mark.parametrize("average", AVERAGES)
@property_test
@given(pair=clusterings)
def test_nmi_is_its_formula(average, pair):
    found = normalized_mutual_info(*pair, average=average)
    assert found == pytest.approx(information(*pair, average), rel=1e-9, abs=1e-12)
    assert 0 <= found <= 1


@every_score
@property_test
@given(pair=clusterings, names=st.permutations("vwxyz"), seed=st.integers(0, 99))
def test_names_and_order_do_not_matter(score, pair, names, seed):
    y, labels = pair
    found = score(y, labels)
    order = np.random.default_rng(seed).permutation(len(y))
    assert score(np.array(y)[order], np.array(labels)[order]) == pytest.approx(found, abs=1e-12)
    assert score(y, [names[label] for label in labels]) == pytest.approx(found, abs=1e-12)
    assert score([names[c] for c in y], labels) == pytest.approx(found, abs=1e-12)


@pytest.mark.parametrize(
    ("y", "labels", "accuracy", "pure"),
    [
        ([0, 0, 1, 1], [5, 5, 7, 7], 1, 1),
        ([0, 0, 1, 1], [0, 1, 2, 3], 0.5, 1),  # more clusters than classes
        ([0, 1, 2, 3], [0, 0, 1, 1], 0.5, 0.5),  # fewer
        ([0, 0, 0, 1], [0, 0, 0, 0], 0.75, 0.75),  # one cluster
        ([2, 2, 2, 2], [0, 1, 1, 1], 0.75, 1),  # one class
        ([3], [9], 1, 1),
        (["a", "a", "b", "c", "c", "c"], ["x", "x", "x", "y", "y", "z"], 4 / 6, 5 / 6),
    ],
)
def test_known_scores(y, labels, accuracy, pure):
    assert clustering_accuracy(y, labels) == pytest.approx(accuracy)
    assert purity(y, labels) == pytest.approx(pure)


@pytest.mark.parametrize("average", AVERAGES)
@pytest.mark.parametrize(
    ("y", "labels", "expected"),
    [
        ([1, 1, 1], [4, 4, 4], 1),
        ([1, 1, 1], [0, 0, 1], 0),
        ([0, 0, 1], [1, 1, 1], 0),
        ([0, 0, 1, 2], ["b", "b", "c", "a"], 1),
        ([0, 0, 1, 1], [0, 1, 0, 1], 0),
        ([7], [3], 1),
    ],
)
def test_nmi_at_its_ends(average, y, labels, expected):
    assert normalized_mutual_info(y, labels, average=average) == pytest.approx(expected, abs=1e-12)


def test_nmi_by_hand():
    """Four classes of one in two clusters of two: MI = log 2, H = log 4 and log 2."""
    y, labels = [0, 1, 2, 3], [0, 0, 1, 1]
    assert normalized_mutual_info(y, labels) == pytest.approx(1 / 2)
    assert normalized_mutual_info(y, labels, "geometric") == pytest.approx(1 / math.sqrt(2))


LABELS = {
    "list": np.ndarray.tolist,
    "int8": np.int8,
    "str": lambda a: a.astype(str),
    "bool": lambda a: a.astype(bool),
    "float": lambda a: a.astype(float),
    "fraction": lambda a: a / 2,
    "object": lambda a: np.array(["no", "yes"], dtype=object)[a],
    "column": lambda a: a[:, None],
    "torch": lambda a: pytest.importorskip("torch").tensor(a),
    "pandas": lambda a: pytest.importorskip("pandas").Series(a),
}


@every_score
@pytest.mark.parametrize("convert", LABELS.values(), ids=LABELS)
def test_labels_of_any_kind(score, convert):
    y, labels = np.array([0, 0, 1, 1, 1]), np.array([1, 1, 1, 0, 0])
    found = score(convert(y), convert(labels))
    assert isinstance(found, float)
    assert found == score(y, labels)


@every_score
@pytest.mark.parametrize(
    ("y", "labels", "words"),
    [([0, 1], [0, 1, 1], "inconsistent numbers"), ([], [], "empty"), (np.eye(2), [0, 1], "1d array")],
)
def test_labels_that_do_not_pair_are_refused(score, y, labels, words):
    with pytest.raises(ValueError, match=words):
        score(y, labels)


@pytest.mark.parametrize("average", ["min", "arithmetic", None, 1])
def test_unknown_average_is_refused_in_words(average):
    with pytest.raises(ValueError, match=r"average must be one of \['max', 'geometric'\]; got"):
        normalized_mutual_info([0, 1], [0, 1], average=average)


# Sparseness ----------------------------------------------------------------------------


@property_test
@given(
    st.lists(st.floats(-100, 100), min_size=2, max_size=30).filter(any),
    st.integers(-150, 150).map(lambda e: 10.0**e),
)
def test_hoyer_is_its_formula_whatever_the_unit(entries, unit):
    n, largest = len(entries), max(map(abs, entries))
    shares = [abs(e) / largest for e in entries]
    ratio = math.fsum(shares) / math.sqrt(math.fsum(s * s for s in shares))
    found = hoyer_sparseness(entries)
    assert 0 <= found <= 1
    assert found == pytest.approx((math.sqrt(n) - ratio) / (math.sqrt(n) - 1), abs=1e-13)
    assert hoyer_sparseness(unit * (np.array(entries) / largest)) == pytest.approx(found, abs=1e-13)


@pytest.mark.parametrize(
    ("M", "expected"),
    [
        (np.ones((3, 4)), 0),
        (-2 * np.ones(7), 0),
        ([[0, 0], [0, 5]], 1),
        ([[0, 0], [0, -1e-300]], 1),
        ([1e150, 1e-150], 1),
        ([1e300, 1e300], 0),
        ([3.0, 4.0], (math.sqrt(2) - 7 / 5) / (math.sqrt(2) - 1)),
        ([[1, 1], [0, 0]], (2 - math.sqrt(2)) / (2 - 1)),
        (np.zeros((2, 3)), 1),
        ([[4.0]], 1),
        ([[0.0]], 1),
        (7, 1),
    ],
)
def test_known_sparseness(M, expected):
    assert hoyer_sparseness(M) == pytest.approx(expected, abs=1e-14)
    assert isinstance(hoyer_sparseness(M), float)


@pytest.mark.parametrize("kind", ["csr", "csc", "coo", "lil", "dok", "bsr", "dia"])
@pytest.mark.parametrize("container", ["array", "matrix"])
def test_sparseness_of_sparse_matrices(rng, kind, container):
    M = rng.random((4, 7)) * (rng.random((4, 7)) < 0.4)
    S = getattr(sp, f"{kind}_{container}")(M)
    assert hoyer_sparseness(S) == pytest.approx(hoyer_sparseness(M), abs=1e-14)
    assert hoyer_sparseness(0 * S) == 1


@pytest.mark.parametrize(
    "S",
    [
        sp.coo_array(([1.0, 2.0, 1.0], ([0, 0, 1], [0, 0, 1])), shape=(2, 2)),
        sp.csr_array(([1.0, 2.0, 1.0], [0, 0, 1], [0, 2, 3]), shape=(2, 2)),
        sp.csc_matrix(([1.0, 2.0, 1.0], [0, 0, 1], [0, 2, 3]), shape=(2, 2)),
        sp.dia_array(([[9.0, 1.0, 2.0]], [1]), shape=(3, 3)),  # the 9 lies outside
    ],
    ids=["coo", "csr", "csc", "dia"],
)
def test_sparseness_is_that_of_the_entries_and_not_of_their_storage(S):
    """An entry may be stored as several that add up; some stored numbers are no entries."""
    before = S.copy()
    assert hoyer_sparseness(S) == pytest.approx(hoyer_sparseness(S.toarray()), abs=1e-14)
    np.testing.assert_array_equal(S.data, before.data)


def test_sparseness_of_tensors_and_small_types(rng):
    M = rng.random((5, 6))
    torch = pytest.importorskip("torch")
    assert hoyer_sparseness(torch.tensor(M, requires_grad=True)) == hoyer_sparseness(M)
    for dtype in (np.int8, np.uint8, np.float16):
        small = np.array([[100, 100, 90], [0, 0, 1]], dtype=dtype)
        assert hoyer_sparseness(small) == pytest.approx(hoyer_sparseness(small.astype(float)), abs=1e-14)
    assert hoyer_sparseness(np.array([-128, 128 - 1], dtype=np.int8)) < 1e-4


@pytest.mark.parametrize("M", [[1.0, math.nan], [math.inf, 1.0], [], np.zeros((0, 3)), sp.csr_array((0, 4))])
def test_sparseness_of_nothing_is_refused_in_words(M):
    with pytest.raises(ValueError, match="M must be finite and not empty"):
        hoyer_sparseness(M)


# The cut -------------------------------------------------------------------------------


def double_loop(W, labels):
    """``Σ_c cut(c) / volume(c)``, edge by edge."""
    W = sp.csr_array(W).toarray().tolist()
    n, labels, value = len(W), list(labels), 0.0
    for cluster in dict.fromkeys(labels):
        inside = [i for i in range(n) if labels[i] == cluster]
        cut = math.fsum(W[i][j] for i in inside for j in range(n) if labels[j] != cluster)
        volume = math.fsum(W[i][j] for i in inside for j in range(n))
        value += cut / volume if volume > 0 else 0.0
    return value


@property_test
@given(n=st.integers(1, 12), clusters=st.integers(1, 5), density=st.floats(0, 1), seed=st.integers(0, 999))
def test_cut_is_its_definition(n, clusters, density, seed):
    """Sparse graphs with isolated samples and empty clusters included."""
    rng = np.random.default_rng(seed)
    W = np.triu(rng.random((n, n)) * (rng.random((n, n)) < density), 1)
    W = W + W.T
    labels = rng.integers(0, clusters, size=n)
    found = normalized_cut(W, labels)
    assert found == pytest.approx(double_loop(W, labels), abs=1e-12)
    assert 0 <= found <= len(set(labels.tolist()))
    found = modularity(W, labels)
    assert found == pytest.approx(pair_loop(W, labels), abs=1e-12)
    assert -0.5 - 1e-12 <= found < 1


def pair_loop(W, labels):
    """``Σ_ij (W_ij − d_i d_j / w) / w`` over pairs of one cluster, d the degrees and w their sum."""
    degrees = W.sum(axis=1)
    w = degrees.sum()
    if w == 0:
        return 0.0
    pairs = ((i, j) for i in range(len(W)) for j in range(len(W)) if labels[i] == labels[j])
    return math.fsum((W[i, j] - degrees[i] * degrees[j] / w) / w for i, j in pairs)


@pytest.mark.parametrize("weighting", ["binary", "heat"])
def test_cut_of_a_neighbour_graph(rng, weighting):
    W = knn_graph(rng.normal(size=(60, 3)), 4, weighting)
    labels = rng.integers(0, 4, size=60)
    expected = double_loop(W, labels)
    assert normalized_cut(W, labels) == pytest.approx(expected, rel=1e-12)
    for other in (W.tocsc(), sp.coo_matrix(W), W.toarray(), W.toarray().tolist()):
        assert normalized_cut(other, labels) == pytest.approx(expected, rel=1e-12)
    assert normalized_cut(W, np.array(list("wxyz"))[labels]) == pytest.approx(expected, rel=1e-12)


def test_known_cuts():
    pairs = sp.csr_array(np.kron(np.eye(2), [[0, 1], [1, 0]]))
    assert normalized_cut(pairs, [0, 0, 1, 1]) == 0
    assert normalized_cut(pairs, [0, 1, 0, 1]) == 2  # every edge is cut
    assert normalized_cut(pairs, [0, 0, 0, 0]) == 0
    path = np.array([[0, 1, 0], [1, 0, 3], [0, 3, 0]])
    assert normalized_cut(path, [0, 1, 1]) == pytest.approx(1 / 1 + 1 / 7)


def test_known_modularities():
    pairs = sp.csr_array(np.kron(np.eye(2), [[0, 1], [1, 0]]))
    assert modularity(pairs, ["a", "a", "b", "b"]) == 0.5
    assert modularity(pairs, [0, 1, 0, 1]) == -0.5
    assert modularity(pairs, [0, 0, 0, 0]) == 0
    assert modularity(np.zeros((3, 3)), [0, 1, 2]) == 0


@pytest.mark.parametrize("score", [modularity, normalized_cut])
def test_no_labels_are_refused_in_words(score):
    with pytest.raises(ValueError, match="labels are empty"):
        score(np.zeros((0, 0)), [])


def test_clusters_without_edges_cost_nothing():
    W = np.zeros((4, 4))
    assert normalized_cut(W, [0, 1, 2, 2]) == 0
    W[0, 1] = W[1, 0] = 2.0
    assert normalized_cut(W, [0, 0, 1, 2]) == 0
    assert normalized_cut(W, [0, 1, 2, 2]) == 2


@pytest.mark.parametrize("shape", [(3, 3), (4, 3), (5, 5)])
@pytest.mark.parametrize("form", [sp.csr_array, np.asarray])
def test_cut_of_a_wrong_shape_is_refused_in_words(shape, form):
    with pytest.raises(ValueError, match=f"W must be 4×4 for 4 labels; got {shape[0]}×{shape[1]}"):
        normalized_cut(form(np.zeros(shape)), [0, 0, 1, 1])


def test_cut_with_torch_labels(rng):
    torch = pytest.importorskip("torch")
    W = knn_graph(rng.random((20, 2)), 3)
    labels = rng.integers(0, 3, size=20)
    assert normalized_cut(W, torch.tensor(labels)) == normalized_cut(W, labels)


def test_entries_given_in_pieces_are_summed_and_left_as_they_are():
    M = sp.coo_array((np.array([1.0, 2.0, 3.0]), ([0, 0, 1], [0, 0, 2])), shape=(2, 3))
    assert hoyer_sparseness(M) == pytest.approx(hoyer_sparseness([[3.0, 0, 0], [0, 0, 3.0]]))
    assert M.data.tolist() == [1, 2, 3]
