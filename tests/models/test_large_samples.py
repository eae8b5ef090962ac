"""Samples much larger than all others: the robust model finds them, and they do not spoil the parts."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.datasets import load_digits

from lognmf import LogSparseNMF, RobustLogSparseNMF, fit_grid, in_blocks, normalize, to_device
from lognmf.core.data import InMemory
from lognmf.models.base import Watcher
from lognmf.models.large_samples import limited
from lognmf.models.scale import unit_of

PLACE = 7


def planted(magnitude, count=1, seed=0, n=150):
    """Samples with four parts, the parts, and which samples are outliers of that magnitude."""
    rng = np.random.default_rng(seed)
    parts = rng.random((4, 30)) * (rng.random((4, 30)) < 0.5)
    X = rng.random((n, 4)) @ parts + 0.02 * rng.random((n, 30))
    bad = np.arange(n) % 10 == PLACE if count > 1 else np.arange(n) == PLACE
    bad &= np.cumsum(bad) <= count
    X[bad] = magnitude * rng.random((bad.sum(), 30))
    return X, parts, bad


def fitted(X, k=4, **options):
    with pytest.warns(UserWarning, match="norms of the samples differ by much"):
        return RobustLogSparseNMF(k, random_state=0, **options).fit(X)


def cosines(model, parts):
    """How well every true part is found."""
    return (normalize(parts) @ normalize(np.asarray(model.components_)).T).max(axis=1)


class TestTheyAreFound:
    @pytest.mark.parametrize(("magnitude", "count"), [(20, 1), (200, 1), (20, 5), (200, 5)])
    def test_and_the_parts_are_those_of_the_others(self, magnitude, count):
        X, parts, bad = planted(magnitude, count)
        model = fitted(X)
        np.testing.assert_array_equal(model.is_outlier_, bad)
        assert cosines(model, parts).min() > 0.95

    def test_weights_are_those_of_samples_of_usual_size(self):
        X, _, _ = planted(200, 5)
        model = fitted(X)
        usual = RobustLogSparseNMF(4, random_state=0).fit(limited(InMemory(X)).data.X)
        for name in ("alpha_", "beta_", "gamma_", "scale_"):
            assert getattr(model, name) == pytest.approx(getattr(usual, name), rel=1e-9)

    def test_also_where_a_part_would_gain_more_than_it_costs(self):
        """With many parts for few samples the minimum has one for a large sample: do not go there."""
        X = load_digits().data[:120]
        X[PLACE] = 20 * np.random.default_rng(0).permutation(X[PLACE])
        model = fitted(X, k=15)
        assert model.is_outlier_[PLACE]
        assert model.is_outlier_.mean() < 0.1

    @pytest.mark.parametrize("kind", ["sparse", "tensor", "sparse tensor", "blocks", "blocks of sparse"])
    def test_in_data_of_any_kind(self, kind):
        X, _, bad = planted(50)
        if "tensor" in kind:
            pytest.importorskip("torch")
            Y = to_device(sp.csr_array(X) if "sparse" in kind else X, "cpu")
        else:
            Y = sp.csr_array(X) if "sparse" in kind else X
            Y = in_blocks(Y, rows=40) if "blocks" in kind else Y
        solver = "mu" if "blocks" in kind else "auto"
        model, same = fitted(Y, solver=solver), fitted(X, solver=solver)
        called = np.asarray(model.is_outlier_)
        assert called[bad].all()
        assert called[~bad].mean() < 0.03
        np.testing.assert_allclose(model.scale_, same.scale_, rtol=1e-12)
        np.testing.assert_allclose(model.gamma_, same.gamma_, rtol=1e-2)

    @pytest.mark.parametrize("init", ["scaled", "nndsvdar", "spectral"])
    def test_from_every_start(self, init):
        X, _, bad = planted(50)
        np.testing.assert_array_equal(fitted(X, init=init, n_init=2).is_outlier_, bad)

    def test_with_a_number_for_gamma(self):
        X, parts, bad = planted(50)
        model = fitted(X, alpha=0.0, beta=0.0, gamma=0.3)
        np.testing.assert_array_equal(model.is_outlier_, bad)
        assert cosines(model, parts).min() > 0.95

    def test_units_do_not_matter(self):
        X, _, _ = planted(50)
        one, other = fitted(X), fitted(1e6 * X)
        np.testing.assert_allclose(other.components_, one.components_, atol=1e-8)
        np.testing.assert_allclose(other.embedding_ / 1e6, one.embedding_, rtol=1e-6, atol=1e-7)

    def test_rows_of_a_grid_are_single_fits(self):
        X, _, _ = planted(50)
        result = fit_grid(RobustLogSparseNMF(4), X, {"lam": [0.0, 0.1], "gamma": ["auto", 0.3]}, seeds=[0])
        for i, row in enumerate(result.rows):
            with pytest.warns(UserWarning, match="differ by much"):
                model = result.model(i)
            np.testing.assert_allclose(row["objective"], model.objective_, rtol=1e-6)
            assert row["n_outliers"] == model.is_outlier_.sum()

    def test_a_warm_start_goes_on(self):
        X, _, bad = planted(50)
        model = fitted(X, warm_start=True)
        gamma = model.gamma_
        with pytest.warns(UserWarning, match="differ by much"):
            model.fit(X)
        assert model.gamma_ == gamma
        np.testing.assert_array_equal(model.is_outlier_, bad)

    def test_and_in_new_samples(self):
        X, _, bad = planted(50)
        model = fitted(X)
        taken = np.linalg.norm(model.outliers(X), axis=1)
        np.testing.assert_array_equal(taken > 0, bad)

    def test_a_stopped_fit_is_of_all_the_data(self, monkeypatch):
        X, _, _ = planted(50)
        monkeypatch.setattr(Watcher, "__call__", lambda *_: True)
        model = fitted(X)
        error = np.linalg.norm(X - model.inverse_transform(model.embedding_))
        np.testing.assert_allclose(model.reconstruction_err_, error, rtol=1e-9)
        assert model.stop_reason_ == "callback"

    def test_the_checkpoint_of_a_fit(self, tmp_path):
        X, _, bad = planted(50)
        with pytest.warns(UserWarning, match="differ by much"):
            first, again = (
                RobustLogSparseNMF(4, random_state=0).fit(X, checkpoint=tmp_path / "so far") for _ in range(2)
            )
        assert again.gamma_ == first.gamma_
        np.testing.assert_array_equal(again.is_outlier_, bad)


class TestWhatIsLarge:
    def test_one_that_is(self):
        X, _, bad = planted(50)
        limit = limited(InMemory(X))
        np.testing.assert_array_equal(limit.share < 1, bad)
        norms = np.linalg.norm(limit.data.X, axis=1)
        np.testing.assert_allclose(norms[PLACE], 0.1 * np.median(np.linalg.norm(X, axis=1)))
        np.testing.assert_array_equal(limit.data.X[~bad], X[~bad])
        assert unit_of(InMemory(X), limit.share) == pytest.approx(unit_of(limit.data))

    def test_samples_of_unit_norm_are_not(self):
        assert limited(InMemory(normalize(planted(50)[0]))) is None

    def test_a_heavy_tail_is_not(self):
        rng = np.random.default_rng(0)
        X = np.exp(rng.standard_normal(300))[:, None] * rng.random((300, 8))
        assert np.linalg.norm(X, axis=1).max() > 8 * np.median(np.linalg.norm(X, axis=1))
        assert limited(InMemory(X)) is None

    def test_nothing_is_among_zeros(self):
        assert limited(InMemory(np.zeros((5, 3)))) is None
        X = np.zeros((9, 3))
        X[:3] = 1.0  # most samples are 0, which says nothing about the others
        assert limited(InMemory(X)) is None

    def test_nor_one_beside_which_all_others_are_rounding(self):
        X = np.ones((9, 3))
        X[0] = 1e17
        assert limited(InMemory(X)) is None
        X[0] = 1e14
        assert limited(InMemory(X)) is not None
        assert limited(InMemory(X.astype(np.float32))) is None

    @pytest.mark.parametrize("dtype", [np.float32, np.float64])
    def test_scaled_rows(self, dtype, rng):
        X = (rng.random((5, 4)) * (rng.random((5, 4)) < 0.6)).astype(dtype)
        share = np.array([1.0, 0.5, 1.0, 0.25, 1.0])
        expected = X * share[:, None].astype(dtype)
        for make, back in ((np.asarray, np.asarray), (sp.csr_array, sp.csr_array.toarray)):
            scaled = InMemory(make(X)).scaled_rows(share).X
            assert scaled.dtype == dtype
            np.testing.assert_array_equal(back(scaled), expected)

    def test_other_models_do_not_ask(self):
        X, _, _ = planted(50)
        with pytest.warns(UserWarning, match="the fit describes mostly these"):
            model = LogSparseNMF(4, random_state=0).fit(X)
        assert model.scale_ == unit_of(InMemory(X))


class TestTheWarning:
    def test_names_the_sample(self):
        with pytest.warns(
            UserWarning, match="Sample 7, the only large one, is scaled down where the fit begins"
        ):
            RobustLogSparseNMF(4, random_state=0, max_iter=5).fit(planted(50)[0])

    def test_counts_them(self):
        with pytest.warns(UserWarning, match="5 large samples are scaled down"):
            RobustLogSparseNMF(4, random_state=0, max_iter=5).fit(planted(50, 5)[0])

    def test_and_is_not_given_for_a_number_as_unit(self, recwarn):
        RobustLogSparseNMF(4, scale=1.0, max_iter=200, random_state=0).fit(planted(20)[0])
        assert not [w for w in recwarn if "differ by much" in str(w.message)]
