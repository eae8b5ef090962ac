"""Consensus parts: what all restarts find is stable, the rest is dropped."""

import numpy as np
import pytest
import scipy.sparse as sp
from pandas import DataFrame

from lognmf import ConvexNMF, LogSparseNMF, PlainNMF, WeightedNMF, consensus_components


def planted(seed=0, noise=0.02):
    """Three parts that do not overlap, and the data."""
    rng = np.random.default_rng(seed)
    parts = np.repeat(np.eye(3), 5, axis=1)
    codes = rng.random((50, 3)) * (rng.random((50, 3)) < 0.6)
    return parts / np.sqrt(5), codes @ parts + noise * rng.random((50, 15))


def mu(k=3, **options):
    return PlainNMF(k, **({"solver": "mu", "init": "random", "max_iter": 300, "tol": 1e-6} | options))


def test_planted_parts_are_found():
    parts, X = planted()
    found = consensus_components(X, 3, model=mu(), n_restarts=10, random_state=0)
    unit = found.model.components_ / np.linalg.norm(found.model.components_, axis=1, keepdims=True)
    assert sorted((unit @ parts.T).max(axis=1) > 0.99) == [True] * 3
    assert sorted(np.argmax(unit @ parts.T, axis=1)) == [0, 1, 2]
    assert found.stability.min() > 0.9
    assert (np.diff(found.stability) <= 0).all()
    np.testing.assert_array_equal(found.support, 1.0)
    assert found.n_dropped == 0


def test_codes_are_the_best_for_the_parts():
    from scipy.optimize import nnls

    _, X = planted()
    found = consensus_components(X, 3, model=mu(), n_restarts=5, random_state=0)
    best = [nnls(found.model.components_.T, x)[1] for x in X]
    assert found.model.reconstruction_err_ == pytest.approx(np.linalg.norm(best), rel=1e-4)
    assert found.model.reconstruction_err_ <= 1.02 * found.restart_errors.min()
    assert found.model.max_iter == 300
    np.testing.assert_allclose(found.model.transform(X), found.model.embedding_, atol=1e-4)


def test_too_many_parts_are_unstable():
    _, X = planted(noise=0.3)
    three, six = (consensus_components(X, k, model=mu(), n_restarts=8, random_state=0) for k in (3, 6))
    assert six.stability.max() < 0.7 < three.stability.min()


def test_parts_without_neighbours_are_dropped():
    _, X = planted(noise=0.3)
    found = consensus_components(X, 5, model=mu(), n_restarts=8, threshold=0.3, random_state=0)
    np.testing.assert_array_equal(found.labels < 0, found.distance > 0.3)
    assert 0 < found.n_dropped < 40
    for j, part in enumerate(found.model.components_):
        median = np.median(found.parts[found.labels == j], axis=0)
        assert part @ median == pytest.approx(np.linalg.norm(part) * np.linalg.norm(median))


@pytest.mark.parametrize("store", [np.asarray, sp.csr_array])
def test_default_model(store):
    _, X = planted()
    found = consensus_components(store(X), 3, n_restarts=4, random_state=0)
    assert np.mean(found.stability) > 0.9


def test_missing_entries():
    _, X = planted()
    X[3, 4] = np.nan
    model = WeightedNMF(init="random", solver="mu", max_iter=200)
    assert consensus_components(X, 3, model=model, n_restarts=4, random_state=0).stability.min() > 0.8


def test_the_same_seed_gives_the_same_parts():
    _, X = planted()
    one, two = (consensus_components(X, 3, model=mu(), n_restarts=4, random_state=5) for _ in range(2))
    np.testing.assert_array_equal(one.model.components_, two.model.components_)


@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        ({"n_components": 1}, ValueError, "n_components"),
        ({"n_restarts": 1}, ValueError, "n_restarts"),
        ({"threshold": 0}, ValueError, "threshold"),
        ({"threshold": 1e-9, "model": mu(max_iter=20)}, ValueError, "larger threshold"),
        ({"model": "nmf"}, ValueError, "model must be"),
        ({"model": ConvexNMF()}, TypeError, "U0 and V0"),
        ({"model": mu(init="zero")}, ValueError, "init must be"),
        ({"model": LogSparseNMF(init="random", alpha=-1.0, max_iter=5)}, ValueError, "alpha"),
    ],
)
def test_refusals(options, error, words):
    _, X = planted()
    with pytest.raises(error, match=words):
        consensus_components(X, **({"n_components": 3} | options))


def test_lists_and_frames(rng):
    X = rng.random((30, 6))
    options = {"n_restarts": 3, "random_state": 0, "threshold": 10.0}
    first, *others = (consensus_components(form(X), 2, **options) for form in (np.asarray, list, DataFrame))
    for other in others:
        np.testing.assert_array_equal(other.model.components_, first.model.components_)


def test_weights_are_chosen_once_and_starts_differ():
    parts, X = planted(noise=0.1)
    found = consensus_components(X.tolist(), 3, model=LogSparseNMF(4), n_restarts=6, random_state=0)
    unit = found.model.components_ / np.linalg.norm(found.model.components_, axis=1, keepdims=True)
    assert (unit @ parts.T).max(axis=0).min() > 0.95
    assert all(isinstance(getattr(found.model, name), float) for name in ("alpha", "beta"))
    assert len(np.unique(found.restart_errors)) == 6
