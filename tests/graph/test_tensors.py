"""The search on tensors finds what the one in NumPy finds; of equal distances the first samples."""

import numpy as np
import pytest
import scipy.sparse as sp

from lognmf import knn_graph, to_device
from lognmf.graph.neighbours import distinct_rows, find_neighbours, nearest
from problems import pattern

tensors = pytest.importorskip("lognmf.graph.tensors", reason="torch is an extra")
torch = pytest.importorskip("torch", reason="torch is an extra")


@pytest.fixture(params=["torch-cpu", "torch-cuda"])
def device(request):
    return str(pattern(request.param).device)


def check(X, device, k=5, **options):
    here, there = find_neighbours(X, k), find_neighbours(to_device(X, device, str(X.dtype)), k)
    np.testing.assert_array_equal(here.group, there.group)
    np.testing.assert_array_equal(here.nearest, there.nearest)
    np.testing.assert_allclose(here.squared, there.squared, **{"rtol": 1e-10, "atol": 1e-12} | options)


@pytest.mark.parametrize("offset", [0.0, 1e4])
def test_dense(offset, device, rng):
    check(rng.random((300, 7)) + offset, device)


def test_sparse(device, rng):
    X = sp.csr_array(sp.random_array((300, 40), density=0.1, rng=rng, format="csr"))
    check(X, device)


def test_single_precision(device, rng):
    check(rng.random((200, 9)).astype(np.float32), device, rtol=1e-4)


@pytest.mark.parametrize("numbers", [1, 50, 1000])
def test_in_small_blocks(numbers, device, rng, monkeypatch):
    monkeypatch.setattr(tensors, "_numbers", lambda _: numbers)
    check(rng.random((60, 3)), device)
    check(sp.csr_array(rng.random((40, 4)) * (rng.random((40, 4)) < 0.5)), device, k=2)


@pytest.mark.parametrize(
    ("shape", "dtype", "offset"), [((4203, 6), "float64", 0.0), ((4100, 50), "float32", 100.0)]
)
def test_many_samples_in_groups(shape, dtype, offset, device, rng):
    X = (rng.random(shape) + offset).astype(dtype)
    check(X, device, rtol=1e-4 if dtype == "float32" else 1e-10)
    there = to_device(X, device, dtype)
    *_, sure = tensors._by_groups(there, there, 5, 16, but_itself=True)
    assert float(sure.double().mean()) > 0.99  # the later stages, slower, are left with next to nothing


def test_groups_leave_ties_to_later_stages(device, rng):
    """On a grid many more samples are equally near than are measured; of these the first are neighbours."""
    X = rng.permutation(np.stack(np.meshgrid(*[np.arange(8.0)] * 4), axis=-1).reshape(-1, 4))
    found, _ = nearest(*[to_device(X, device, "float64")] * 2, 7, but_itself=True)
    distances = ((X[:100, None] - X) ** 2).sum(axis=2)
    distances[np.arange(100), np.arange(100)] = np.inf
    np.testing.assert_array_equal(found[:100], np.argsort(distances, axis=1, kind="stable")[:, :7])
    X, Y = rng.random((5000, 6)), rng.random((9, 6))
    there = to_device(X, device, "float64")
    found, _ = nearest(to_device(Y, device, "float64"), there, 1)
    np.testing.assert_array_equal(found[:, 0], ((Y[:, None] - X) ** 2).sum(axis=2).argmin(axis=1))


def test_ties(device, rng):
    """By distance, then by place, as brute force has it."""
    X = rng.integers(0, 3, (150, 5)).astype(float)
    X = X[distinct_rows(X)[0]]
    found, squared = nearest(*[to_device(X, device, "float64")] * 2, 6, but_itself=True)
    distances = ((X[:, None] - X) ** 2).sum(axis=2)
    np.fill_diagonal(distances, np.inf)
    np.testing.assert_array_equal(found, np.argsort(distances, axis=1, kind="stable")[:, :6])
    np.testing.assert_array_equal(squared, np.sort(distances, axis=1)[:, :6])


def test_of_others_and_of_few(device, rng):
    X, Y = rng.random((30, 4)), rng.random((7, 4))
    for here, there in zip(
        nearest(Y, X, 3),
        nearest(to_device(Y, device, "float64"), to_device(X, device, "float64"), 3),
        strict=True,
    ):
        np.testing.assert_allclose(here, there)
    check(X[:4], device, k=3)
    check(X[:2], device, k=1)


def test_equal_rows(device, rng):
    X = rng.random((20, 5)) * (rng.random((20, 5)) < 0.6)
    X[[4, 9]], X[15] = X[2], X[3]
    X[9][X[9] == 0] = -0.0
    for form in (np.asarray, sp.csr_array):
        for mine, theirs in zip(
            distinct_rows(form(X)), distinct_rows(to_device(form(X), device)), strict=True
        ):
            np.testing.assert_array_equal(mine, theirs)
    stored = sp.csr_array(X)
    stored.data[:3] = 0  # stored zeros are no entries
    group = distinct_rows(to_device(stored, device))[1]
    np.testing.assert_array_equal(group, distinct_rows(stored.toarray())[1])


@pytest.mark.parametrize("weighting", ["binary", "heat", "cosine"])
def test_graph(weighting, device, rng):
    X = rng.random((80, 6))
    X[5] = X[6]
    W = knn_graph(to_device(X, device, "float64"), 4, weighting)
    assert abs(W - knn_graph(X, 4, weighting)).max() < 1e-10


def test_a_graph_of_what_is_no_number(rng):
    if not torch.cuda.is_available():
        pytest.skip("there is no GPU here")
    X = rng.random((8, 3))
    X[2, 1] = np.nan
    with pytest.raises(ValueError, match="NaN"):
        knn_graph(to_device(X), 2)
