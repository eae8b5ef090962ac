"""The unit of the data: what is fitted does not depend on the units of X."""

import re
import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.datasets import load_digits

from lognmf import MODELS, LogSparseNMF, RobustLogSparseNMF, fit_grid, normalize
from lognmf.core.data import InMemory
from lognmf.models.scale import uneven_norms, unit_of
from problems import monotone, samples

SCALED = [name for name, cls in MODELS.items() if "scale" in cls().get_params()]
EXTREMES = (1e-6, 3.0, 1e6)


@pytest.fixture(scope="module")
def digits():
    return load_digits().data[:80] + 0.1


class TestUnit:
    @pytest.mark.parametrize("scale", [1e-200, 1e-3, 1.0, 1e150])
    def test_root_mean_square_of_the_norms(self, scale, rng):
        X = samples(rng, 30, 7, density=0.5)
        expected = np.sqrt((X**2).sum() / 30)
        for make in (np.asarray, np.asfortranarray, sp.csr_array):
            np.testing.assert_allclose(unit_of(InMemory(make(scale * X))), scale * expected, rtol=1e-12)

    def test_missing_entries_count_as_an_average_known_one(self, rng):
        X = np.full((20, 6), 3.0)
        M = (rng.random(X.shape) < 0.5).astype(float)
        for data in (InMemory(X * M, M), InMemory(sp.csr_array(X * M), sp.csr_array(M))):
            np.testing.assert_allclose(unit_of(data), 3 * np.sqrt(6))

    def test_samples_of_unit_norm_are_left_alone(self, rng):
        X = normalize(samples(rng, 30, 7))
        assert unit_of(InMemory(X)) == 1.0

    def test_of_nothing(self):
        assert unit_of(InMemory(np.zeros((4, 3)))) == 1.0
        assert unit_of(InMemory(sp.csr_array((4, 3)))) == 1.0

    @pytest.mark.parametrize("dtype", [np.float32, np.float64])
    @pytest.mark.parametrize("make", [np.asarray, sp.csr_array])
    def test_data_in_units(self, dtype, make, rng):
        X = samples(rng, 12, 5, density=0.6).astype(dtype)
        data = InMemory(make(X)).in_unit(4.0)  # a power of two: exact
        F, G = rng.random((5, 2, 3)).astype(dtype), rng.random((12, 2, 3)).astype(dtype)
        plain = InMemory(make(X / 4))
        for one, other in (
            (data.times(F), plain.times(F)),
            (data.t_times(G), plain.t_times(G)),
            (data.squared_norms, plain.squared_norms),
            (data.dense_rows(slice(2, 5)), plain.dense_rows(slice(2, 5))),
            (data.take_rows(np.array([1, 3])).squared_norms, plain.take_rows(np.array([1, 3])).squared_norms),
        ):
            assert one.dtype == dtype
            np.testing.assert_allclose(one, other, rtol=1e-6 if dtype == np.float32 else 1e-14)


class TestFits:
    @pytest.mark.parametrize("c", EXTREMES)
    @pytest.mark.parametrize("name", MODELS)
    def test_units_do_not_matter(self, name, c, digits):
        # An augmented Lagrangian method amplifies rounding.
        options = {} if monotone(MODELS[name]) else {"max_iter": 10}
        one, other = (MODELS[name](4, random_state=0, **options).fit(X) for X in (digits, c * digits))
        with_U = other.spec.basis_has_unit or name not in SCALED  # the others have V of a given size
        U, V = (c, 1.0) if with_U else (1.0, c)
        np.testing.assert_allclose(other.components_ / U, one.components_, atol=1e-8, rtol=1e-8)
        np.testing.assert_allclose(other.embedding_ / V, one.embedding_, atol=1e-7, rtol=1e-8)
        np.testing.assert_allclose(other.reconstruction_err_, c * one.reconstruction_err_, rtol=1e-8)
        assert other.n_iter_ == one.n_iter_
        np.testing.assert_allclose(other.transform(c * digits[:9]) / V, one.transform(digits[:9]), atol=1e-5)

    @pytest.mark.parametrize("c", EXTREMES)
    @pytest.mark.parametrize("init", ["random", "scaled", "nndsvda", "nndsvdar", "spectral"])
    def test_from_every_start(self, init, c, digits):
        options = {"init": init, "alpha": 0.1, "beta": 0.1, "lam": 0.1, "unit_components": False}
        model = LogSparseNMF(4, solver="mu", max_iter=20, tol=0, random_state=0, **options)
        one, other = (model.fit(X).components_ for X in (digits, c * digits))
        np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-12)

    def test_of_the_divergence(self, digits):
        model = LogSparseNMF(3, loss="kullback-leibler", max_iter=30, tol=0, random_state=0)
        V, objective = model.fit_transform(digits), model.objective_
        # A power of two changes no digit: another unit moves weights and zeros by what rounding does.
        np.testing.assert_allclose(model.fit_transform(1024 * digits), 1024 * V, rtol=1e-7)
        np.testing.assert_allclose(model.objective_, 1024 * objective, rtol=1e-9)

    def test_of_missing_entries(self, digits, rng):
        X = np.where(rng.random(digits.shape) < 0.2, np.nan, digits)
        model = LogSparseNMF(3, max_iter=30, tol=0, random_state=0)
        V = model.fit_transform(X)
        np.testing.assert_allclose(model.fit_transform(1024 * X), 1024 * V, rtol=1e-7)

    def test_a_number_is_the_unit(self, digits):
        one = LogSparseNMF(3, alpha=0.1, beta=0.1, scale=50.0, max_iter=20, tol=0, random_state=0).fit(digits)
        other = LogSparseNMF(3, alpha=0.1, beta=0.1, scale=1.0, max_iter=20, tol=0, random_state=0)
        other.fit(digits / 50)
        np.testing.assert_allclose(one.components_, other.components_, rtol=1e-9, atol=1e-12)
        np.testing.assert_allclose(one.objective_, 2500 * other.objective_, rtol=1e-10)
        assert (one.scale_, other.scale_) == (50.0, 1.0)

    def test_objective_history_and_outliers_are_in_the_units_of_X(self, digits):
        model = RobustLogSparseNMF(3, alpha=0.0, beta=0.0, gamma=0.3, random_state=0).fit(digits)
        assert model.objective_ == model.history_["objective"][-1]
        R = digits - model.inverse_transform(model.embedding_)
        np.testing.assert_allclose(model.residual_norm_, np.linalg.norm(R, axis=1), rtol=1e-8)
        S = model.outliers()
        np.testing.assert_allclose(np.linalg.norm(S, axis=1), model.outlier_norm_, rtol=1e-8, atol=1e-9)
        unit = model.scale_
        value = np.sum(((R - S) / unit) ** 2) + 0.3 * np.log1p(model.outlier_norm_ / unit).sum()
        np.testing.assert_allclose(model.objective_, unit**2 * value, rtol=1e-8)

    def test_rows_of_a_grid_are_in_the_units_of_X(self, digits):
        grid = {"alpha": [0.0, 0.1], "scale": ["auto", 1.0]}
        result = fit_grid(LogSparseNMF(3, beta=0.0, max_iter=30), 100 * digits, grid)
        for i, row in enumerate(result.rows):
            model = result.model(i)
            np.testing.assert_allclose(row["objective"], model.objective_, rtol=1e-8)
            np.testing.assert_allclose(row["reconstruction_err"], model.reconstruction_err_, rtol=1e-6)

    @pytest.mark.parametrize("scale", [0.0, -1.0, np.inf, "automatic", None])
    def test_no_unit(self, scale, digits):
        with pytest.raises((ValueError, TypeError), match=r"scale must be"):
            LogSparseNMF(3, scale=scale).fit(digits)


class TestUnevenNorms:
    def test_a_sentence_where_few_samples_decide(self, rng):
        X = samples(rng, 40, 6)
        assert uneven_norms(InMemory(X)) is None
        X[:3] *= 20
        with pytest.warns(UserWarning, match="4 of 40 samples have 9.% of the sum of squares"):
            LogSparseNMF(2, random_state=0).fit(X)
        assert uneven_norms(InMemory(sp.csr_array(X))) == uneven_norms(InMemory(X))
        assert uneven_norms(InMemory(normalize(X))) is None

    def test_a_sample_that_is_large_alone_is_named(self, rng):
        X = samples(rng, 40, 6)
        X[7] *= 20
        for given in (X, sp.csr_array(X), X.astype(np.float32)):
            sentence = uneven_norms(InMemory(given))
            assert re.search(
                "4 of 40 samples have 9.% of the sum of squares of X, and sample 7 has [89].%", sentence
            )
        X[:4] = X[7]  # a fifth each, none of them most
        assert "and sample" not in uneven_norms(InMemory(X))

    def test_not_for_the_plain_objective_nor_a_handful_of_samples(self, rng):
        X = samples(rng, 40, 6)
        X[:3] *= 20
        assert LogSparseNMF(2, scale=1.0)._remark(InMemory(X)) is None
        assert uneven_norms(InMemory(X[:8])) is None


@pytest.mark.parametrize("name", ["WNMF", "LS-NMF"])
def test_a_mask_of_sparse_samples_next_to_zero(name, rng):
    """The inverse of the largest entry overflows."""
    X = 1e-310 * rng.random((6, 4)) * (rng.random((6, 4)) < 0.8)
    model = MODELS[name](2, max_iter=20, random_state=0).fit(
        sp.csr_array(X), weights=rng.random((6, 4)) < 0.8
    )
    assert 0 < model.scale_ < 1e-309
    assert np.isfinite(model.embedding_).all()
    assert np.isfinite(model.components_).all()


def test_with_the_divergence_counts_decide():
    """The share of squares says nothing of a fit of counts."""
    X = np.ones((40, 6))
    X[:4] *= 5  # 4 of 40 samples have 74 % of the squares, and 36 % of the counts
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        LogSparseNMF(2, loss="kullback-leibler", alpha=0, beta=0).fit(X)
    with pytest.warns(UserWarning, match="The norms of the samples differ by much: 4 of 40 samples have 74%"):
        LogSparseNMF(2, alpha=0, beta=0).fit(X)
    X[:4] *= 4
    with pytest.warns(UserWarning, match="The sums of the samples differ by much: 4 of 40 samples have 69%"):
        LogSparseNMF(2, loss="kullback-leibler", alpha=0, beta=0).fit(X)
