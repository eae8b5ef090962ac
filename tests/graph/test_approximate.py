"""Approximate search: most of the true neighbours, with exact distances."""

import numpy as np
import pytest
from scipy.spatial.distance import cdist

from lognmf import knn_graph
from lognmf.graph import approximate, neighbours
from lognmf.graph.approximate import nearest_approximately
from lognmf.graph.neighbours import find_neighbours


@pytest.fixture
def small_cells(monkeypatch):
    """Few samples are compared, so that a small set takes several rounds."""
    monkeypatch.setattr(approximate, "CELL", 20)
    monkeypatch.setattr(approximate, "COMPARED", 100)


def curved(rng, n=2500, p=12):
    """Samples near a surface of three dimensions."""
    return np.sin(rng.normal(size=(n, 3)) @ rng.normal(size=(3, p))) + 0.01 * rng.normal(size=(n, p))


def true_neighbours(X, k):
    squared = cdist(X, X, "sqeuclidean")
    np.fill_diagonal(squared, np.inf)
    return np.argsort(squared, axis=1)[:, :k], np.sort(squared, axis=1)[:, :k]


@pytest.mark.parametrize("offset", [0.0, 1e6])
def test_most_of_the_nearest_are_found(rng, small_cells, offset, monkeypatch):
    X = offset + curved(rng)
    nearest, squared, recall = nearest_approximately(X, 5)
    true, distances = true_neighbours(X, 5)
    found = (nearest[:, :, None] == true[:, None, :]).any(axis=1)
    assert 0.98 < found.mean() < 1  # it is not the exact search
    assert abs(found.mean() - recall) < 0.01
    assert (nearest != np.arange(len(X))[:, None]).all()
    all_found = found.all(axis=1)
    np.testing.assert_allclose(squared[all_found], distances[all_found], rtol=1e-6 if offset else 1e-12)
    assert (np.diff(squared, axis=1) >= 0).all()


def test_a_neighbour_is_named_once(rng, small_cells):
    nearest = np.sort(nearest_approximately(curved(rng), 8)[0], axis=1)
    assert (np.diff(nearest, axis=1) > 0).all()


def test_what_cells_do_not_find_is_searched_exactly(rng, small_cells):
    """Noise of many dimensions has no nearby cells."""
    X = rng.normal(size=(900, 60))
    nearest, _, recall = nearest_approximately(X, 5)
    assert recall == 1
    np.testing.assert_array_equal(nearest, true_neighbours(X, 5)[0])


def test_small_sets_are_searched_exactly(rng, monkeypatch):
    X = rng.normal(size=(300, 5))
    monkeypatch.setattr(approximate, "_round", None)
    np.testing.assert_array_equal(nearest_approximately(X, 5)[0], true_neighbours(X, 5)[0])


def test_threads_do_not_matter(rng, small_cells, several_threads):
    X = curved(rng)
    found = []
    for threads in (1, 3):
        several_threads(threads)
        found.append(nearest_approximately(X, 5))
    for one, other in zip(*found, strict=True):
        np.testing.assert_array_equal(one, other)


def test_the_method_is_chosen_by_size(rng, small_cells, monkeypatch):
    X = curved(rng)
    searches = []
    search = neighbours.nearest_approximately
    monkeypatch.setattr(
        neighbours, "nearest_approximately", lambda *given: searches.append(1) or search(*given)
    )
    exact = knn_graph(X, 5)
    assert not searches
    monkeypatch.setattr(neighbours, "EXACT_WORK", 1e6)
    assert find_neighbours(X, 5, "exact").recall == 1
    assert not searches
    for method in ("auto", "approximate"):
        W = knn_graph(X, 5, method=method)
        assert 0 < (exact != W).nnz < 0.04 * exact.nnz
    assert len(searches) == 2
    with pytest.raises(
        ValueError, match=r"method must be one of \['auto', 'exact', 'approximate'\]; got 'fast'"
    ):
        knn_graph(X, 5, method="fast")


def test_equal_samples_are_one(rng, small_cells):
    X = curved(rng, 1200)
    found = find_neighbours(np.tile(X, (2, 1)), 5, "approximate")
    assert (len(found.first), found.nearest.max()) == (1200, 1199)
    np.testing.assert_array_equal(found.group, np.tile(np.arange(1200), 2))
