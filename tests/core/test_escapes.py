"""Ways out of local minima: the right component goes, what the residual asks for comes, nothing rises."""

import numpy as np
import pytest
import scipy.sparse as sp

from lognmf.core.data import InMemory
from lognmf.core.loop import iterate
from lognmf.core.solvers import CoordinateDescent
from lognmf.core.solvers.coordinate import escapes
from lognmf.core.solvers.coordinate import rule as coordinate_rule
from lognmf.core.terms import Frobenius
from lognmf.models.log_sparse import regularised
from problems import factors, samples


def plain(X, B=1):
    nothing = np.zeros(B)
    weights = dict.fromkeys(("alpha", "beta", "lam"), nothing)
    return regularised(InMemory(X), Frobenius(), W=None, penalty="log", **weights)


def squared_residuals(X, U, V):
    return np.stack([np.sum((X - V[:, b] @ U[:, b].T) ** 2, axis=1) for b in range(U.shape[1])], axis=1)


class TestNeeds:
    def test_what_the_data_term_rises_by(self, rng):
        """Against least squares with one column less, for the side that is free to follow."""
        U, V = rng.random((12, 4)), rng.random((15, 4))
        X = V @ U.T
        expected = []
        for j in range(4):
            rest = np.delete(np.arange(4), j)
            left = [
                np.linalg.norm(target - F[:, rest] @ np.linalg.lstsq(F[:, rest], target, rcond=None)[0]) ** 2
                for F, target in ((U, X.T), (V, X))
            ]
            expected.append(max(left))
        np.testing.assert_allclose(escapes.needs(U[:, None], V[:, None])[0], expected, rtol=1e-5)

    @pytest.mark.parametrize("dtype", [np.float64, np.float32])
    def test_a_copy_is_not_needed(self, dtype, rng):
        U, V = rng.random((12, 4)).astype(dtype), rng.random((15, 4)).astype(dtype)
        U[:, 3], V[:, 3] = U[:, 1], V[:, 1]
        needs = escapes.needs(U[:, None], V[:, None])[0]
        assert set(np.argsort(needs)[:2]) == {1, 3}
        assert max(needs[[1, 3]]) < 1e-6 * min(needs[[0, 2]])

    def test_empty_components(self):
        assert (escapes.needs(np.zeros((3, 1, 2)), np.zeros((4, 1, 2))) == 0).all()


@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
class TestExchanged:
    def test_what_is_missing_comes_for_what_is_not_needed(self, form, dtype, rng):
        """Four true parts; the factors have one of them twice and one not at all."""
        U, V = (factor.astype(dtype) for factor in (rng.random((20, 4)) ** 4, rng.random((30, 4)) ** 4))
        X = V @ U.T
        U[:, 2], V[:, 2] = U[:, 0], 0.01 * V[:, 0]
        old = U[:, None, :], V[:, None, :]
        new = escapes.exchanged(InMemory(form(X)), *old, squared_residuals(X, *old), np.zeros(1))
        assert new[0].dtype == new[1].dtype == dtype
        changed = np.flatnonzero((new[0] != old[0]).any(axis=(0, 1)))
        assert changed.tolist() == [2]
        assert squared_residuals(X, *new).sum() < 0.5 * squared_residuals(X, *old).sum()
        assert min(F.min() for F in new) >= 0

    def test_each_setting_for_itself(self, form, dtype, rng):
        X = samples(rng, 20, 11).astype(dtype)
        U, V = (F.astype(dtype) for F in factors(rng, X, 2, 4))
        squared = squared_residuals(X, U, V)
        both = escapes.exchanged(InMemory(form(X)), U, V, squared, np.array([0, 2]))
        for b, rank in enumerate((0, 2)):
            one = escapes.exchanged(
                InMemory(form(X)), U[:, b : b + 1], V[:, b : b + 1], squared[:, b : b + 1], np.array([rank])
            )
            for ours, theirs in zip(both, one, strict=True):
                np.testing.assert_allclose(
                    ours[:, b : b + 1], theirs, rtol=1e-4 if dtype == np.float32 else 1e-10
                )


def test_refilled_are_the_empty_ones_of_what_is_due(rng):
    X = samples(rng, 20, 11)
    U, V = factors(rng, X, 2, 4)
    U[:, :, 1] = V[:, :, 1] = 0
    empty = np.tile([False, True, False, False], (2, 1))
    new = escapes.refilled(InMemory(X), U, V, squared_residuals(X, U, V), empty, np.array([True, False]))
    assert (new[0][:, 0, 1] > 0).any()
    assert np.count_nonzero(new[1][:, 0, 1]) == 1
    for ours, old in zip(new, (U, V), strict=True):
        np.testing.assert_array_equal(ours[:, 1], old[:, 1])
        np.testing.assert_array_equal(ours[:, 0, [0, 2, 3]], old[:, 0, [0, 2, 3]])


def test_what_refills_is_what_samples_lack(rng):
    """Each new part, of norm 1, is all that one of the worse samples lacks; no two are the same sample's."""
    X = samples(rng, 21, 11)
    U, V = factors(rng, X, 1, 5)
    U[:, :, [1, 3]] = V[:, :, [1, 3]] = 0
    squared, empty = squared_residuals(X, U, V), np.isin(np.arange(5), [1, 3])[None]
    new_U, new_V = escapes.refilled(InMemory(X), U, V, squared, empty, np.array([True]))
    chosen = []
    for j in (1, 3):
        (i,) = np.flatnonzero(new_V[:, 0, j])
        chosen.append(i)
        missing = np.maximum(X[i] - U[:, 0] @ V[i, 0], 0)
        np.testing.assert_allclose(np.linalg.norm(new_U[:, 0, j]), 1, rtol=1e-13)
        np.testing.assert_allclose(new_V[i, 0, j] * new_U[:, 0, j], missing, atol=1e-14)
    assert chosen[0] == squared[:, 0].argmax()
    assert chosen[1] == np.argsort(-squared[:, 0])[5]  # the ten worse ones are shared out


class TestSolver:
    def run(self, X, k, seed, **options):
        U, V = (F[:, None, :] for F in (np.random.default_rng(seed).random((s, k)) for s in X.shape[::-1]))
        rule = CoordinateDescent.of(plain(X))
        return iterate(rule, rule.start(U, V), max_iter=400, tol=1e-7, eval_every=1, **options)

    def test_exchanges_find_lower_minima_and_nothing_rises(self, rng, monkeypatch):
        X = rng.random((60, 40))
        found = [self.run(X, 10, seed) for seed in range(12)]
        for solution in found:
            objective = solution.history["objective"][:, 0]
            assert (np.diff(objective) <= 1e-12 * objective[:-1]).all()
        monkeypatch.setattr(coordinate_rule, "EXCHANGES", -1)
        without = [self.run(X, 10, seed) for seed in range(12)]
        ours, theirs = (np.array([s.objective[0] for s in runs]) for runs in (found, without))
        assert (ours <= theirs * (1 + 1e-5)).all()
        assert np.sum(ours < (1 - 1e-3) * theirs) >= 3

    def test_an_exact_fit_is_left_alone(self, rng):
        X = np.outer(rng.random(20), rng.random(12)) + 0.0
        solution = self.run(X, 2, 0)
        assert solution.objective[0] <= 1e-10 * np.sum(X**2)
        assert solution.reason == ["converged"]

    def test_one_component_has_nothing_to_exchange(self, rng):
        assert self.run(samples(rng, 20, 11), 1, 0).reason == ["converged"]
