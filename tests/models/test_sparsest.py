"""The weight of sparsity stays within the error that is allowed, and is 0 where it brings no zeros."""

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer, load_diabetes, load_iris, load_wine

from lognmf import LogSparseNMF, fit_grid
from lognmf.models.sparsest import TOO_MUCH, share_of_zeros

SMALL = {
    "iris": lambda: load_iris().data,
    "wine": lambda: load_wine().data,
    "diabetes": lambda: load_diabetes(scaled=False).data,
    "breast cancer": lambda: load_breast_cancer().data,
}


@pytest.mark.parametrize("extra_error", [0.03, 0.1])
@pytest.mark.parametrize("k", [2, 3, 5])
@pytest.mark.parametrize("name", SMALL)
def test_the_error_allowed_is_kept(name, k, extra_error):
    """A part that is given up at last, after a loose fit had stopped, would cost a multiple of it."""
    X = SMALL[name]()
    plain = LogSparseNMF(k, alpha=0, beta=0, random_state=0).fit(X)
    model = LogSparseNMF(k, extra_error=extra_error, random_state=0).fit(X)
    allowed = np.sqrt(1 + TOO_MUCH * ((1 + extra_error) ** 2 - 1))
    assert model.reconstruction_err_ <= 1.005 * allowed * plain.reconstruction_err_


@pytest.mark.parametrize(("seed", "penalty"), [(5, "l1"), (15, "log")])
def test_a_fall_after_the_second_climb(seed, penalty):
    rng = np.random.default_rng(seed)
    U = rng.random((20, 4)) * (rng.random((20, 4)) < 0.4)
    V = rng.random((50, 4)) * (rng.random((50, 4)) < 0.6)
    X = V @ U.T + 0.3 * rng.random((50, 20))
    plain, model = (
        LogSparseNMF(4, penalty=penalty, random_state=0, **weights).fit(X)
        for weights in ({"alpha": 0, "beta": 0}, {})
    )
    assert model.reconstruction_err_ < 1.06 * plain.reconstruction_err_


@pytest.mark.parametrize("name", ["LS-NMF", "RLS-NMF"])
def cells(rng):
    """Samples of four kinds, each with features of its own beside many that all have; one kind is rare."""
    kinds = rng.permutation(np.repeat(np.arange(4), [90, 70, 40, 8]))
    special = np.kron(np.eye(4), np.ones(12))
    common = np.tile(rng.gamma(2.0, size=60), (4, 1))
    return rng.poisson(np.hstack([4 * special, common])[kinds]).astype(float), kinds


def test_no_part_is_given_up_for_others(rng):
    """The part of a rare kind explains little, and a weight that all parts share takes most from it."""
    X, _ = cells(rng)
    plain, model = (
        LogSparseNMF(5, random_state=0, **weights).fit(X)
        for weights in ({"alpha": 0, "beta": 0}, {"extra_error": 0.2})
    )
    left, before = (
        np.linalg.norm(m.embedding_, axis=0) ** 2 * np.linalg.norm(m.components_, axis=1) ** 2
        for m in (model, plain)
    )
    assert model.alpha_ + model.beta_ > 0
    assert (left >= 0.09 * before).all()


@pytest.mark.parametrize("extra_error", [1, 5.0])
def test_a_percentage_is_refused(extra_error):
    with pytest.raises(ValueError, match=r"extra_error must be in \[0, 1\), .* got 5|got 1"):
        LogSparseNMF(3, extra_error=extra_error).fit(np.ones((5, 4)))


@pytest.mark.parametrize("name", ["iris", "uniform"])
def test_no_zeros_no_weight(name, rng):
    X = SMALL[name]() if name in SMALL else rng.random((100, 30))
    model = LogSparseNMF(1, random_state=0).fit(X)
    assert model.alpha_ == model.beta_ == 0
    assert (model.embedding_ @ model.components_).sum() == pytest.approx(X.sum(), rel=0.02)


def test_settings_are_chosen_each_where_one_falls():
    X = load_iris().data
    result = fit_grid(LogSparseNMF(3), X, {"extra_error": [0.01, 0.05], "lam": [0.0, 0.1]}, seeds=[0])
    for i, row in enumerate(result.rows):
        alone = LogSparseNMF(3, extra_error=row["extra_error"], lam=row["lam"], random_state=0).fit(X)
        assert alone.alpha_ == pytest.approx(row["alpha_"], rel=1e-6)
        np.testing.assert_allclose(result.model(i).objective_, alone.objective_, rtol=1e-6)


def test_zeros_are_counted_by_part():
    F = np.array([[0.0, 1e-9], [1e-4, 2e-9], [1.0, 0.0]])[:, None, :]
    assert share_of_zeros(F) == pytest.approx(3 / 6)
