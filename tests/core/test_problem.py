"""The objective as the sum of its terms."""

import numpy as np
import pytest

from lognmf.core.data import InMemory
from lognmf.core.problem import Problem
from lognmf.core.terms import L1, L2Log, Log, Robust
from problems import cut, factors, samples

B, k = 3, 2


@pytest.fixture
def X(rng):
    return samples(rng, 11, 7)


def problem(data):
    gamma, alpha, beta, more = np.array([[0.5, 1.0, 2.0], [0.0, 0.1, 1.0], [0.2, 0.0, 3.0], [1.0, 2.0, 3.0]])
    return Problem(data, Robust(L2Log(), gamma), on_U=(Log(alpha),), on_V=(L1(beta), Log(more)))


@pytest.mark.parametrize("edges", [[], [4], [1, 2, 8]])
def test_values_add_up_over_terms_and_blocks(edges, rng, X):
    U, V = factors(rng, X, B, k)
    ours, XU = problem(cut(X, edges)), np.einsum("ij,jbk->ibk", X, U)
    fit = ours.fit.row_values(InMemory(X), U, V, XU).sum(axis=0)
    penalties = sum(term.value(F) for term, F in zip((*ours.on_U, *ours.on_V), (U, V, V), strict=True))
    np.testing.assert_allclose(ours.value(U, V, XU), fit + penalties, rtol=1e-13)
    errors = [np.sum((X - V[:, b] @ U[:, b].T) ** 2) for b in range(B)]
    np.testing.assert_allclose(ours.squared_error(U, V, XU), errors, rtol=1e-12)


def test_a_part_of_the_batch_has_its_own_weights(rng, X):
    U, V = factors(rng, X, B, k)
    ours, XU, index = problem(InMemory(X)), np.einsum("ij,jbk->ibk", X, U), np.array([2, 0])
    part = ours.take(index).value(U[:, index], V[:, index], XU[:, index])
    np.testing.assert_allclose(part, ours.value(U, V, XU)[index], rtol=1e-13)
