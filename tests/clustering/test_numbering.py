"""One numbering of clusters and parts."""

import numpy as np
import pytest

from lognmf.clustering import main_parts, numbered_by_parts


def test_a_cluster_has_the_number_of_its_part():
    V = np.eye(4)[[2, 2, 0, 3, 1, 1]] * [1, 5, 0.1, 1] + 0.01
    labels = np.array([0, 0, 1, 2, 3, 3])
    assert numbered_by_parts(labels, V).tolist() == [2, 2, 0, 3, 1, 1]
    assert main_parts(labels, 4, V).tolist() == [2, 0, 3, 1]


def test_no_part_twice_while_there_are_others():
    V = np.array([[1.0, 0.2], [0.9, 0.0]])  # part 0 is the larger one in both
    assert sorted(main_parts(np.array([0, 1]), 2, V)) == [0, 1]


@pytest.mark.parametrize("clusters", [1, 3, 5, 9])
def test_the_clusters_stay_what_they_are(rng, clusters):
    labels = rng.integers(0, clusters, 60) * 2  # with gaps in the numbers
    labels[:clusters] = 2 * np.arange(clusters)
    numbers = numbered_by_parts(labels, rng.random((60, 5)))
    assert sorted(set(numbers.tolist())) == list(range(clusters))
    assert len(set(zip(labels.tolist(), numbers.tolist(), strict=True))) == clusters
    again = numbered_by_parts(numbers, rng.random((60, 5)) * 0)  # nothing to go by: the order stays
    assert len(set(zip(again.tolist(), numbers.tolist(), strict=True))) == clusters


def test_fewer_clusters_than_parts_are_in_the_order_of_their_parts():
    V = np.eye(5)[[4, 1, 4, 1]]
    assert numbered_by_parts(np.array([0, 1, 0, 1]), V).tolist() == [1, 0, 1, 0]
