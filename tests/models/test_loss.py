"""``loss="kullback-leibler"`` in the models that have it, and the weights of scikit-learn's objective."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.decomposition import NMF
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MaxAbsScaler
from sklearn.utils import get_tags

from lognmf import MODELS, GraphNMF, LogSparseNMF, PlainNMF, fit_grid

LOSS = {"loss": "kullback-leibler", "max_iter": 40, "tol": 0, "random_state": 0}
SQUARED_ERROR_NEEDS_ALL = (PlainNMF, GraphNMF)


@pytest.fixture(params=[name for name, cls in MODELS.items() if "loss" in cls().get_params()])
def cls(request):
    return MODELS[request.param]


@pytest.fixture
def counts(rng):
    return rng.poisson(6 * rng.random((40, 3)) @ rng.random((3, 25))).astype(float)


@pytest.mark.parametrize("make", [np.asarray, sp.csr_array], ids=["dense", "sparse"])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_objective_falls(cls, make, dtype, counts):
    model = cls(3, **LOSS).fit(make(counts.astype(dtype)))
    objective = model.history_["objective"]
    assert (np.diff(objective) <= (0 if dtype == np.float64 else 1e-6) * objective[:-1]).all()
    assert model.embedding_.dtype == model.components_.dtype == dtype
    reconstruction = model.inverse_transform(model.embedding_)
    np.testing.assert_allclose(np.linalg.norm(counts - reconstruction), model.reconstruction_err_, rtol=1e-5)


def test_it_is_the_divergence(cls, counts):
    weights = dict.fromkeys(cls.spec.weights, 0.0)
    model = cls(3, **LOSS, **weights).fit(counts)
    Y = model.inverse_transform(model.embedding_)
    logs = np.log(np.where(counts > 0, counts, 1) / np.where(counts > 0, Y, 1))
    np.testing.assert_allclose(model.objective_, (counts * logs - counts + Y).sum(), rtol=1e-10)


def test_missing_entries(cls, counts, rng):
    known = rng.random(counts.shape) < 0.8
    by_nan = cls(3, **LOSS).fit(np.where(known, counts, np.nan))
    by_mask = cls(3, **LOSS).fit(counts, weights=known)
    np.testing.assert_array_equal(by_nan.embedding_, by_mask.embedding_)
    assert get_tags(by_nan).input_tags.allow_nan
    assert by_nan.transform(np.where(known, counts, np.nan)).shape == (40, 3)


@pytest.mark.parametrize("refusing", SQUARED_ERROR_NEEDS_ALL)
def test_the_squared_error_needs_every_entry(refusing, counts):
    assert not get_tags(refusing()).input_tags.allow_nan
    with pytest.raises(TypeError, match=r'takes no weights.*loss="kullback-leibler"'):
        refusing(3).fit(counts, weights=counts > 0)
    counts[0, 0] = np.nan
    with pytest.raises(ValueError, match=r'NaN.*loss="kullback-leibler"'):
        refusing(3).fit(counts)


def test_unknown_loss(cls, counts):
    with pytest.raises(ValueError, match=r"loss must be one of .*'kullback-leibler'.*got 'poisson'"):
        cls(3, loss="poisson").fit(counts)


def test_pipeline(cls, counts):
    codes = make_pipeline(MaxAbsScaler(), cls(3, **LOSS)).fit(counts).transform(counts)
    assert codes.shape == (40, 3)
    assert np.isfinite(codes).all()


def test_grid(cls, counts):
    grid = {weight: [0.1, 1.0] for weight in cls.spec.weights[:1]}
    result = fit_grid(cls(3, **LOSS), counts, grid, n_clusters=3)
    for i, row in enumerate(result.rows):
        np.testing.assert_allclose(row["objective"], result.model(i).objective_, rtol=1e-8)


def test_scikit_learns_weights(rng):
    """The note in `LogSparseNMF` on the same objective there, from one start to one minimum."""
    (n, p, k), (alpha, beta) = (15, 9, 2), (0.7, 0.3)
    X, U0, V0 = rng.random((n, p)), rng.random((p, k)), rng.random((n, k))
    ours = LogSparseNMF(k, alpha=alpha, beta=beta, lam=0, penalty="l1", unit_components=False, scale=1.0)
    ours.set_params(solver="cd", max_iter=5000, tol=1e-12).fit(X, U0=U0, V0=V0)
    scikit_learn = NMF(k, init="custom", l1_ratio=1, max_iter=20000, tol=1e-12)
    scikit_learn.set_params(alpha_H=alpha / (2 * n), alpha_W=beta / (2 * p))
    V = scikit_learn.fit_transform(X, W=V0.copy(), H=U0.T.copy())
    U = scikit_learn.components_.T
    objective = ((X - V @ U.T) ** 2).sum() + alpha * U.sum() + beta * V.sum()
    assert U.any()
    np.testing.assert_allclose(ours.objective_, objective, rtol=1e-8)
    np.testing.assert_allclose(ours.inverse_transform(ours.embedding_), V @ U.T, atol=1e-4)


@pytest.mark.parametrize("refusing", SQUARED_ERROR_NEEDS_ALL)
def test_a_grid_of_losses_refuses_what_one_of_them_cannot_fit(refusing, counts):
    counts[0, 0] = np.nan
    with pytest.raises(ValueError, match=r"contains NaN, which .* does not take"):
        fit_grid(refusing(3, **LOSS), counts, {"loss": ["kullback-leibler", "frobenius"]})
