"""Weights chosen from the data: sparse within an allowed error, few outliers unless there are some."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.datasets import load_digits

from lognmf import LogSparseNMF, PlainNMF, RobustLogSparseNMF, fit_grid, normalize
from lognmf.core.terms import ROW_NORMS
from lognmf.core.terms.robust import kept_share
from lognmf.models.outlying import outlier_limit, outlier_weight, usual


@pytest.fixture(scope="module")
def digits():
    return normalize(load_digits().data[:200])


@pytest.fixture(scope="module")
def plain(digits):
    return LogSparseNMF(6, alpha=0.0, beta=0.0, random_state=0).fit(digits)


def spectra(rng, n=300, p=60, k=3):
    """Samples that mix a few of k dense spectra, and the spectra."""
    places = np.linspace(0, 1, p)
    peaks = np.exp(-((places - np.array([[0.2], [0.5], [0.8]])[:k]) ** 2) / 0.02)
    parts = 0.5 + peaks
    shares = rng.dirichlet(np.full(k, 0.4), size=n)
    return shares @ parts + 0.01 * rng.random((n, p)), parts


def angles(parts, truth):
    cosines = normalize(parts) @ normalize(truth).T
    return np.arccos(np.clip(cosines.max(axis=0), -1, 1))


class TestSparsity:
    @pytest.mark.parametrize("solver", ["cd", "mu"])
    def test_uses_the_error_that_is_allowed(self, solver, digits, plain):
        model = LogSparseNMF(6, solver=solver, random_state=0).fit(digits)
        ratio = model.reconstruction_err_ / plain.reconstruction_err_
        assert 1.03 < ratio < 1.06
        assert model.alpha_ > 0
        assert model.beta_ == 0
        if solver == "cd":
            assert (model.components_ == 0).mean() > (plain.components_ == 0).mean() + 0.1

    def test_more_error_is_sparser(self, digits):
        models = [LogSparseNMF(6, extra_error=e, random_state=0).fit(digits) for e in (0.01, 0.05, 0.2)]
        zeros = [(model.components_ == 0).mean() for model in models]
        assert zeros == sorted(zeros)
        assert zeros[2] > zeros[0] + 0.05

    def test_no_error_allowed_is_no_weight(self, digits, plain):
        model = LogSparseNMF(6, extra_error=0.0, random_state=0).fit(digits)
        assert model.alpha_ == model.beta_ == 0
        np.testing.assert_allclose(model.objective_, plain.objective_, rtol=1e-3)

    def test_it_is_a_minimum_for_the_weights_it_names(self, digits):
        model = LogSparseNMF(6, random_state=0).fit(digits)
        again = LogSparseNMF(6, alpha=model.alpha_, beta=model.beta_, random_state=0)
        again.fit(digits, U0=model.components_.T, V0=model.embedding_)
        np.testing.assert_allclose(again.objective_, model.objective_, rtol=1e-3)

    def test_dense_parts_get_sparse_codes(self, rng):
        X, truth = spectra(rng)
        model = LogSparseNMF(3, random_state=0).fit(X)
        assert model.alpha_ == 0
        assert model.beta_ > 0
        without = LogSparseNMF(3, alpha=0.0, beta=0.0, random_state=0).fit(X)
        assert angles(model.components_, truth).mean() < 0.5 * angles(without.components_, truth).mean()

    @pytest.mark.parametrize("loss", ["frobenius", "kullback-leibler"])
    def test_parts_that_explain_little_are_kept(self, loss, rng):
        """Nearly nothing of sparse counts can be explained: 5 % more error would allow no parts at all."""
        topics = np.kron(np.eye(3), np.ones((1, 60)))
        X = rng.poisson(0.15 * topics[rng.integers(3, size=150)] + 0.02).astype(float)
        X = X[X.any(axis=1)]
        model = LogSparseNMF(3, loss=loss, max_iter=300, random_state=0).fit(X)
        found = normalize(model.components_) @ normalize(topics).T
        assert (found.max(axis=0) > 0.6).all()

    @pytest.mark.parametrize(("number", "chosen"), [("alpha", "beta"), ("beta", "alpha")])
    def test_one_of_the_two_alone(self, number, chosen, digits):
        model = LogSparseNMF(6, **{number: 0.0}, random_state=0).fit(digits)
        assert getattr(model, f"{number}_") == 0
        assert getattr(model, f"{chosen}_") > 0

    def test_restarts_compete_without_the_weights(self, digits):
        many = LogSparseNMF(6, init="scaled", n_init=3, random_state=0).fit(digits)
        assert many.alpha_ > 0
        assert many.components_.shape == (6, 64)

    def test_settings_of_a_grid_are_chosen_each(self, digits):
        model = LogSparseNMF(4, init="scaled", max_iter=200)
        result = fit_grid(model, digits[:80], {"lam": [0.0, 1.0], "alpha": ["auto", 0.1]}, seeds=[0, 1])
        for i, row in enumerate(result.rows):
            fitted = result.model(i)
            np.testing.assert_allclose(row["objective"], fitted.objective_, rtol=1e-6)
            if row["alpha"] == "auto":
                np.testing.assert_allclose(row["alpha_"], fitted.alpha_, rtol=1e-6)

    def test_missing_entries_and_tensors(self, digits, rng):
        holes = np.where(rng.random(digits.shape) < 0.1, np.nan, digits)
        model = LogSparseNMF(4, max_iter=200, random_state=0).fit(holes)
        assert model.alpha_ == model.beta_ > 0
        torch = pytest.importorskip("torch")
        tensor = LogSparseNMF(4, max_iter=200, random_state=0).fit(torch.tensor(digits))
        assert max(tensor.alpha_, tensor.beta_) > 0
        assert isinstance(tensor.components_, torch.Tensor)

    def test_codes_stay_bounded_where_entries_are_missing(self):
        """Sparse parts that hardly touch what is known of a sample must not get huge codes."""
        X = normalize(load_digits().data[:600])
        known = np.random.default_rng(0).random(X.shape) < 0.8
        model = LogSparseNMF(10, random_state=0).fit(np.where(known, X, np.nan))
        assert model.embedding_.max() < 5
        missing = (model.inverse_transform(model.embedding_) - X)[~known]
        assert np.sqrt(np.mean(missing**2)) < 0.7 * X[~known].std()

    def test_data_that_fit_exactly_and_data_of_zeros(self):
        X = np.outer(np.arange(1.0, 9.0), np.arange(6.0))
        for data in (X, np.zeros((8, 6))):
            model = RobustLogSparseNMF(1, random_state=0).fit(data)
            assert np.isfinite(model.components_).all()
            np.testing.assert_allclose(model.inverse_transform(model.embedding_), data, atol=0.1)

    def test_free_components_are_refused(self, digits):
        with pytest.raises(ValueError, match='"auto" need unit_components=True'):
            LogSparseNMF(3, unit_components=False).fit(digits)

    @pytest.mark.parametrize("name", ["alpha", "beta"])
    def test_other_words_are_refused(self, name, digits):
        with pytest.raises(TypeError, match=f'{name} must be "auto" or a finite number >= 0; got'):
            LogSparseNMF(3, **{name: "automatic"}).fit(digits)
        with pytest.raises(TypeError, match="lam must be a finite number"):
            LogSparseNMF(3, lam="auto").fit(digits)

    def test_stopped_on_the_way(self, digits):
        pytest.importorskip("sklearn.callback", reason="scikit-learn < 1.9 has no callbacks")

        class Stop:
            def __init__(self, after):
                self.left = after

            def setup(self, estimator, context):
                pass

            def on_fit_task_begin(self, estimator, context):
                pass

            def on_fit_task_end(self, estimator, context):
                self.left -= 1
                return self.left <= 0

            def teardown(self, estimator, context):
                pass

        for after in (1, 8, 12):
            model = LogSparseNMF(6, tol=1e-7, random_state=0).set_callbacks(Stop(after)).fit(digits)
            assert model.stop_reason_ == "callback"
            assert np.isfinite(model.objective_)


class TestOutliers:
    @pytest.mark.parametrize("row_norm", ROW_NORMS)
    @pytest.mark.parametrize("limit", [1e-3, 0.4, 1.0, 3.0, 200.0])
    def test_the_weight_has_its_limit(self, row_norm, limit):
        norm = ROW_NORMS[row_norm]()
        tau = np.array([outlier_weight(norm, limit) / 2])
        at, beyond = (kept_share(norm, np.array([[r]]), tau)[0, 0] for r in (limit, limit * (1 + 1e-6)))
        assert at == 1
        assert beyond < 1

    @pytest.mark.parametrize("row_norm", ROW_NORMS)
    @pytest.mark.parametrize("limit", [1e-3, 1.0, 200.0])
    def test_the_limit_of_the_weight(self, row_norm, limit):
        norm = ROW_NORMS[row_norm]()
        assert outlier_limit(norm, outlier_weight(norm, limit)) == pytest.approx(limit, rel=1e-6)

    def test_at_most_15_percent_are_unusual(self, rng):
        values = rng.normal(size=1000)
        assert 0.02 < (values > usual(values)).mean() < 0.1
        values[:300] += 100  # a cluster
        assert (values > usual(values)).mean() <= 0.15
        assert usual(np.zeros(10)) == 0

    def test_clean_samples_have_few(self, digits):
        model = RobustLogSparseNMF(10, random_state=0).fit(digits)
        assert model.is_outlier_.mean() <= 0.1

    def test_damaged_samples_are_found(self, digits, rng):
        X = digits.copy()
        bad = rng.choice(len(X), 15, replace=False)
        X[bad] = normalize(rng.random((15, X.shape[1])) ** 4)
        model = RobustLogSparseNMF(10, random_state=0).fit(X)
        found = np.flatnonzero(model.is_outlier_)
        assert len(np.intersect1d(found, bad)) >= 14
        assert len(found) <= 25

    def test_new_samples_are_judged_as_those_of_the_fit(self, digits):
        model = RobustLogSparseNMF(10, random_state=0).fit(digits)
        bad = normalize(np.random.default_rng(1).random((5, 64)) ** 4)
        assert model.is_outlier(bad).all()
        assert model.score_samples(bad).max() < np.median(model.score_samples(digits))
        decision = model.decision_function(bad)
        np.testing.assert_allclose(decision, model.score_samples(bad) - model.offset_)
        np.testing.assert_array_equal(model.is_outlier(bad), decision < 0)

    @pytest.mark.parametrize("kind", ["baskets", "one-hot", "binary", "duplicates"])
    def test_no_model_is_empty(self, kind, rng):
        """Where most residuals are alike, their spread says nothing of what is usual."""
        groups = rng.integers(4, size=150)
        if kind == "baskets":
            X = rng.multinomial(4, np.full(20, 0.05), size=150) + np.eye(20)[groups]
        elif kind == "one-hot":
            X = np.hstack([np.eye(5)[(groups + (rng.random(150) < 0.1) * j) % 5] for j in range(4)])
        else:
            X = np.kron(np.eye(4), np.ones(8))[groups]
            X = np.abs(X - (rng.random(X.shape) < 0.02)) if kind == "binary" else X
        X = normalize(X.astype(float))
        model = RobustLogSparseNMF(4, random_state=0).fit(X)
        plain = LogSparseNMF(4, alpha=0, beta=0, random_state=0).fit(X)
        assert model.reconstruction_err_ <= 1.25 * plain.reconstruction_err_ + 1e-3
        assert model.components_.any(axis=1).all()
        assert model.is_outlier_.mean() <= 0.15

    def test_a_given_weight_judges_by_residuals_alone(self, digits):
        model = RobustLogSparseNMF(4, alpha=0.0, beta=0.0, gamma=0.5, random_state=0).fit(digits)
        np.testing.assert_array_equal(model.is_outlier_, model.outlier_share_ > 0)
        scores = model.score_samples(digits, model.embedding_)
        np.testing.assert_allclose(scores, -model.residual_norm_, rtol=1e-6)
        np.testing.assert_array_equal(model.is_outlier(digits, model.embedding_), model.is_outlier_)

    @pytest.mark.parametrize("kind", ["sparse", "tensor"])
    def test_other_arrays_are_judged_alike(self, kind, digits):
        model = RobustLogSparseNMF(4, random_state=0).fit(digits)
        X = sp.csr_array(digits) if kind == "sparse" else pytest.importorskip("torch").tensor(digits)
        other = RobustLogSparseNMF(4, random_state=0).fit(X)
        np.testing.assert_array_equal(np.asarray(other.is_outlier_), model.is_outlier_)
        ours, theirs = (np.asarray(m.decision_function(Y[:20])) for m, Y in ((model, digits), (other, X)))
        np.testing.assert_allclose(ours, theirs, rtol=1e-3, atol=1e-3)


def test_no_other_model_chooses():
    assert not PlainNMF.spec.auto


@pytest.mark.parametrize(("share", "size"), [(0.05, 3.0), (0.1, 2.0), (0.1, 3.0), (0.1, 10.0)])
def test_large_outliers_leave_the_parts_alone(share, size):
    """They may be most of the error; parts that 5 % more of it allow must still be worth their penalty."""
    rng = np.random.default_rng(0)
    parts = np.kron(np.eye(6), np.ones(15)) * rng.uniform(0.5, 1, 90)
    parts /= np.linalg.norm(parts, axis=1, keepdims=True)
    X = rng.gamma(1.0, size=(300, 6)) @ parts + 0.02 * rng.random((300, 90))
    bad, typical = rng.random((300, 90)) ** 3, np.linalg.norm(X, axis=1).mean()
    which = rng.permutation(300) < share * 300
    X[which] = size * typical * normalize(bad)[which]
    model = RobustLogSparseNMF(6, random_state=0).fit(X)
    assert model.is_outlier_[which].all()
    assert model.is_outlier_[~which].mean() < 0.1
    assert (parts @ model.components_.T).max(axis=1).min() > 0.98
