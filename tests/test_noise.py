"""Noise: as much as was asked for, where the mask says, and the input stays as it was."""

import hypothesis.strategies as st
import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from sklearn.preprocessing import normalize

from lognmf import WeightedNMF, noise

shapes = st.tuples(st.integers(1, 12), st.integers(1, 12))
shares = st.floats(0, 1)
seeds = st.integers(0, 2**32)


class TestRemove:
    @given(shape=shapes, share=shares, seed=seeds)
    def test_exactly_so_many_are_gone(self, shape, share, seed):
        X = np.random.default_rng(0).uniform(1, 2, shape)
        before = X.copy()
        X_noisy, mask = noise.remove(X, share, seed)
        np.testing.assert_array_equal(X, before)
        assert mask.dtype == bool
        assert (~mask).sum() == round(share * X.size)
        np.testing.assert_array_equal(X_noisy, np.where(mask, X, 0))

    @given(shape=shapes, share=shares, seed=seeds)
    def test_with_replacement_at_most_so_many(self, shape, share, seed):
        X = np.random.default_rng(0).uniform(1, 2, shape)
        X_noisy, mask = noise.remove(X, share, seed, replacement=True)
        draws = round(share * X.size)
        assert min(draws, 1) <= (~mask).sum() <= draws
        np.testing.assert_array_equal(X_noisy, np.where(mask, X, 0))

    @pytest.mark.parametrize("share", [0.2, 0.4, 0.6])
    def test_what_replacement_leaves(self, share):
        X = np.ones((400, 500))
        gone = 1 - noise.remove(X, share, 0, replacement=True)[1].mean()
        assert gone == pytest.approx(1 - np.exp(-share), abs=0.005)

    def test_every_entry_has_the_same_chance(self):
        X = np.ones((3, 4))
        known = np.mean([noise.remove(X, 0.5, seed)[1] for seed in range(2000)], axis=0)
        np.testing.assert_allclose(known, 0.5, atol=0.06)

    @pytest.mark.parametrize("replacement", [False, True])
    def test_the_seed_decides(self, rng, replacement):
        X = rng.random((20, 30))
        first, again, other = (noise.remove(X, 0.3, seed, replacement)[0] for seed in (1, 1, 2))
        np.testing.assert_array_equal(first, again)
        assert (first != other).any()
        generator = noise.remove(X, 0.3, np.random.default_rng(1), replacement)[0]
        np.testing.assert_array_equal(first, generator)

    @pytest.mark.parametrize("make", [sp.csr_array, sp.csc_array, sp.coo_matrix])
    def test_sparse_as_dense(self, rng, make):
        X = rng.random((15, 20)) * (rng.random((15, 20)) < 0.3)
        S = make(X)
        X_noisy, mask = noise.remove(S, 0.4, 7)
        expected, expected_mask = noise.remove(X, 0.4, 7)
        assert isinstance(X_noisy, sp.csr_array)
        np.testing.assert_array_equal(X_noisy.toarray(), expected)
        np.testing.assert_array_equal(mask, expected_mask)
        np.testing.assert_array_equal(S.toarray(), X)
        assert (X_noisy.data != 0).all()

    @pytest.mark.parametrize("dtype", [np.float32, np.uint8, bool])
    def test_keeps_the_type(self, dtype):
        assert noise.remove(np.ones((3, 4), dtype), 0.5, 0)[0].dtype == dtype
        assert noise.remove(sp.csr_array(np.ones((3, 4), dtype)), 0.5, 0)[0].dtype == dtype

    def test_the_ends(self, rng):
        X = rng.random((4, 5))
        np.testing.assert_array_equal(noise.remove(X, 0, 0)[0], X)
        np.testing.assert_array_equal(noise.remove(X, 1, 0)[0], np.zeros((4, 5)))

    def test_wnmf_fills_what_was_removed(self, rng):
        X = rng.random((40, 2)) @ rng.random((2, 30))
        X_noisy, mask = noise.remove(X, 0.3, 0)
        model = WeightedNMF(2, max_iter=2000, tol=0, random_state=0).fit(X_noisy, weights=mask)
        filled = model.inverse_transform(model.embedding_)
        assert np.linalg.norm((filled - X)[~mask]) < 0.05 * np.linalg.norm(X[~mask])

    @pytest.mark.parametrize(
        ("share", "kind", "match"),
        [
            (-0.1, ValueError, "share must be a finite number >= 0; got -0.1"),
            (20, ValueError, r"share must be a number from 0 to 1; got 20\. For a percentage divide by 100"),
            (np.nan, ValueError, "share must be"),
            ("0.2", TypeError, "share must be"),
            (True, TypeError, "share must be"),
        ],
    )
    def test_bad_shares(self, share, kind, match):
        with pytest.raises(kind, match=match):
            noise.remove(np.ones((2, 2)), share, 0)

    def test_bad_flag(self):
        with pytest.raises(TypeError, match="replacement must be True or False"):
            noise.remove(np.ones((2, 2)), 0.2, 0, replacement="yes")


class TestGaussian:
    @given(shape=shapes, std=st.floats(0, 10), seed=seeds)
    def test_nonnegative_from_zero(self, shape, std, seed):
        X = np.random.default_rng(0).uniform(0, 2, shape)
        before = X.copy()
        noisy = noise.gaussian(X, std, seed)
        np.testing.assert_array_equal(X, before)
        assert noisy.shape == shape
        assert noisy.min() == 0
        assert np.isfinite(noisy).all()

    @pytest.mark.parametrize("std", [0.005, 0.010, 0.015])
    def test_the_noise_is_what_was_asked_for(self, rng, std):
        X = normalize(rng.random((300, 400)))
        added = noise.gaussian(X, std, 3) - X
        assert added.std() == pytest.approx(std, rel=0.02)
        shift = added.mean()
        drawn = np.random.default_rng(3).normal(0, std, X.shape)
        np.testing.assert_allclose(added - shift, drawn - drawn.mean(), atol=1e-12)
        assert shift == pytest.approx(drawn.mean() - (X + drawn).min())

    def test_no_noise_is_a_shift(self, rng):
        X = rng.uniform(1, 2, (4, 5))
        np.testing.assert_array_equal(noise.gaussian(X, 0, 0), X - X.min())

    def test_the_seed_decides(self, rng):
        X = rng.random((5, 6))
        np.testing.assert_array_equal(noise.gaussian(X, 0.1, 1), noise.gaussian(X, 0.1, 1))
        assert (noise.gaussian(X, 0.1, 1) != noise.gaussian(X, 0.1, 2)).any()
        generator = np.random.default_rng(1)
        first, second = noise.gaussian(X, 0.1, generator), noise.gaussian(X, 0.1, generator)
        assert (first != second).any()

    @pytest.mark.parametrize(
        ("dtype", "expected"), [(np.float32, np.float32), (np.float64, np.float64), (np.uint8, np.float64)]
    )
    def test_types(self, dtype, expected):
        assert noise.gaussian(np.ones((3, 4), dtype), 0.1, 0).dtype == expected

    @pytest.mark.parametrize("std", [-1, np.inf, np.nan])
    def test_bad_std(self, std):
        with pytest.raises(ValueError, match="std must be a finite number >= 0"):
            noise.gaussian(np.ones((2, 2)), std, 0)

    def test_sparse_is_refused(self):
        with pytest.raises(TypeError, match=r"gaussian takes no sparse X.*toarray"):
            noise.gaussian(sp.csr_array(np.eye(3)), 0.1, 0)

    def test_too_large(self):
        with pytest.raises(ValueError, match=r"std 1e\+39 is too large for float32: divide X and std"):
            noise.gaussian(np.ones((2, 2), np.float32), 1e39, 0)


@pytest.mark.parametrize(
    "damage", [lambda X, rng=0: noise.remove(X, 0.2, rng), lambda X, rng=0: noise.gaussian(X, 0.1, rng)]
)
class TestRefusals:
    @pytest.mark.parametrize("X", [np.ones(3), np.ones((2, 2, 2)), np.ones((0, 3)), 5.0])
    def test_shapes(self, damage, X):
        with pytest.raises(ValueError, match="X must be a matrix of samples and features"):
            damage(X)

    @pytest.mark.parametrize("X", [[["a", "b"]], [[1j, 2]], [[None, 1]]])
    def test_what_is_no_number(self, damage, X):
        with pytest.raises(TypeError, match="X must hold real numbers; got dtype"):
            damage(X)

    @pytest.mark.parametrize("value", [np.nan, np.inf])
    def test_missing(self, damage, value):
        with pytest.raises(ValueError, match="X contains NaN or infinity"):
            damage([[1.0, value]])

    @pytest.mark.parametrize("rng", [None, -1, 0.5, True, "seed", np.random.RandomState(0)])
    def test_generators(self, damage, rng):
        with pytest.raises(
            TypeError, match=r"rng must be a numpy\.random\.Generator or an integer seed >= 0"
        ):
            damage(np.ones((2, 2)), rng)
