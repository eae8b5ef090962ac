"""Missing entries and weights: WNMF and LS-NMF by mask or NaN, and the others' refusal."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import nnls
from sklearn.base import clone
from sklearn.datasets import load_digits
from sklearn.preprocessing import normalize

import oracle_baselines as oracle
from lognmf import MODELS, LogSparseNMF, knn_graph
from lognmf.models import WeightedNMF
from problems import PLAIN, samples, weights

seeds = st.integers(0, 2**16)
TAKE_MASKS = [WeightedNMF, LogSparseNMF]
REFUSE_NAN = [cls for cls in MODELS.values() if cls not in TAKE_MASKS]


@pytest.fixture(params=TAKE_MASKS)
def cls(request):
    return request.param


@pytest.fixture(scope="module")
def digits():
    return normalize(load_digits().data[:250])


def draw(rng, n=16, p=11, k=3, observed=0.7):
    """Samples, a 0/1 mask of the observed entries, and first factors."""
    X = samples(rng, n, p, density=0.8)
    M = (rng.random((n, p)) < observed).astype(float)
    return X, M, {"U0": rng.random((p, k)), "V0": rng.random((n, k))}


def holes(X, M, value=np.nan):
    """``X`` with ``value`` where nothing is observed."""
    return np.where(M > 0, X, value)


def assert_same(one, other, **tolerance):
    compare = np.testing.assert_allclose if tolerance else np.testing.assert_array_equal
    compare(one.components_, other.components_, **tolerance)
    compare(one.embedding_, other.embedding_, **tolerance)
    compare(one.objective_, other.objective_, **tolerance)


class TestOracle:
    @given(seed=seeds, steps=st.sampled_from([1, 10, 50]), weights=st.booleans(), sparse=st.booleans())
    def test_weighted(self, seed, steps, weights, sparse):
        rng = np.random.default_rng(seed)
        X, M, start = draw(rng)
        M = M * 10 ** rng.uniform(-2, 2, X.shape) if weights else M
        M[:, 0] = M[0] = 1.0  # the oracle has no guard against 0/0
        data, mask = (sp.csr_array(X), sp.csr_array(M)) if sparse else (X, M)
        model = WeightedNMF(3, solver="mu", tol=0, max_iter=steps).fit(data, weights=mask, **start)
        U, V = oracle.wnmf(X.T, start["U0"], start["V0"], steps, M.T)
        np.testing.assert_allclose(model.components_, U.T, rtol=1e-10, atol=1e-10)
        np.testing.assert_allclose(model.embedding_, V, rtol=1e-10, atol=1e-10)
        np.testing.assert_allclose(model.objective_, oracle.weighted_error(X.T, U, V, M.T), rtol=1e-9)
        assert model.history_["objective"][-1] == model.objective_

    @given(
        seed=seeds,
        steps=st.sampled_from([1, 10, 50]),
        alpha=st.sampled_from([0.0, 0.01, 1.0]),
        beta=st.sampled_from([0.0, 0.01, 1.0]),
        lam=st.sampled_from([0.0, 0.1, 10.0]),
        sparse=st.booleans(),
    )
    def test_log_sparse(self, seed, steps, alpha, beta, lam, sparse):
        rng = np.random.default_rng(seed)
        X, M, start = draw(rng)
        M *= rng.uniform(0.5, 2, X.shape)
        M[:, 0] = M[0] = 1.0
        W = knn_graph(X, 4)
        data, mask = (sp.csr_array(X), sp.csr_array(M)) if sparse else (X, M)
        weights = {"alpha": alpha, "beta": beta, "lam": lam}
        options = {**PLAIN, "graph": W, "tol": 0, "max_iter": steps}
        model = LogSparseNMF(3, **weights, **options).fit(data, weights=mask, **start)
        U, V = oracle.wnmf(X.T, start["U0"], start["V0"], steps, M.T, **weights, W=W.toarray())
        np.testing.assert_allclose(model.components_, U.T, rtol=1e-10, atol=1e-10)
        np.testing.assert_allclose(model.embedding_, V, rtol=1e-10, atol=1e-10)
        value = oracle.weighted_error(X.T, U, V, M.T) + lam * np.trace(
            V.T @ oracle.laplacian(W.toarray()) @ V
        )
        value += alpha * np.log1p(U).sum() + beta * np.log1p(V).sum()
        np.testing.assert_allclose(model.objective_, value, rtol=1e-9)

    @given(seed=seeds, lam=st.sampled_from([0.0, 0.1, 10.0]))
    def test_log_sparse_never_rises(self, seed, lam):
        X, M, start = draw(np.random.default_rng(seed))
        model = LogSparseNMF(3, alpha=0.01, beta=0.01, lam=lam, tol=0, max_iter=60, eval_every=1).fit(
            X, weights=M, **start
        )
        objective = model.history_["objective"]
        assert (np.diff(objective) <= 1e-12 * objective[0]).all()

    def test_weights_of_whole_samples_are_repetitions(self, rng):
        """A sample of weight 3 is the same sample three times."""
        X, _, start = draw(rng)
        times = rng.integers(1, 4, X.shape[0])
        weighted = WeightedNMF(3, solver="mu", tol=0, max_iter=30).fit(
            X, weights=np.ones_like(X) * times[:, None], **start
        )
        start["V0"] = np.repeat(start["V0"], times, axis=0)
        repeated = MODELS["NMF"](3, tol=0, max_iter=30).fit(np.repeat(X, times, axis=0), **start)
        np.testing.assert_allclose(weighted.components_, repeated.components_, rtol=1e-10, atol=1e-12)
        np.testing.assert_allclose(
            np.repeat(weighted.embedding_, times, axis=0), repeated.embedding_, rtol=1e-10, atol=1e-12
        )
        np.testing.assert_allclose(weighted.objective_, repeated.objective_, rtol=1e-10)

    @pytest.mark.parametrize("scale", [1e-6, 7.0, 1e6])
    def test_only_the_ratios_of_weights_matter(self, scale, rng):
        X, M, start = draw(rng)
        M *= rng.random(X.shape)
        one, other = (
            WeightedNMF(3, solver="mu", tol=0, max_iter=40).fit(X, weights=c * M, **start) for c in (1, scale)
        )
        np.testing.assert_allclose(other.embedding_, one.embedding_, rtol=1e-10, atol=1e-12)
        np.testing.assert_allclose(other.objective_, scale * one.objective_, rtol=1e-10)

    @pytest.mark.parametrize("init", ["random", "scaled", "nndsvda", "nndsvdar"])
    def test_objective_and_error_by_definition(self, init, rng):
        X, M, _ = draw(rng)
        model = WeightedNMF(3, init=init, max_iter=50, random_state=0).fit(holes(X, M))
        squares = M * (X - model.embedding_ @ model.components_) ** 2
        np.testing.assert_allclose(model.objective_, squares.sum(), rtol=1e-9)
        np.testing.assert_allclose(model.reconstruction_err_, np.sqrt(squares.sum()), rtol=1e-9)


class TestMissing:
    """What is under the mask is never seen."""

    @pytest.mark.parametrize("init", ["random", "scaled", "nndsvda", "nndsvdar"])
    def test_nan_is_a_mask(self, cls, init, rng):
        X, M, _ = draw(rng)
        by_nan = cls(3, init=init, max_iter=30, random_state=0).fit(holes(X, M))
        by_mask = cls(3, init=init, max_iter=30, random_state=0).fit(X, weights=M)
        assert_same(by_nan, by_mask)

    @pytest.mark.parametrize("init", ["random", "scaled", "nndsvda", "nndsvdar"])
    @pytest.mark.parametrize("garbage", [0.0, 1.0, 1e6, 1e300, 1.7e308, -3.0, np.nan])
    def test_garbage_under_the_mask(self, cls, init, garbage, rng):
        X, M, _ = draw(rng)
        clean, dirty = (
            cls(3, init=init, max_iter=30, random_state=0).fit(data, weights=M)
            for data in (X, holes(X, M, garbage))
        )
        assert_same(clean, dirty)

    def test_nan_and_mask_together(self, cls, rng):
        """An entry counts if it is a number and has a weight."""
        X, M, start = draw(rng)
        N = (rng.random(X.shape) < 0.8).astype(float)
        weights = M * rng.uniform(0.5, 2, X.shape)
        both = cls(3, max_iter=30).fit(holes(X, N), weights=weights, **start)
        one = cls(3, max_iter=30).fit(X, weights=weights * N, **start)
        assert_same(both, one)

    def test_no_nan_is_the_plain_fit(self, cls, rng):
        X, _, start = draw(rng)
        assert_same(
            cls(3, max_iter=30).fit(X, weights=np.ones_like(X), **start),
            cls(3, max_iter=30).fit(X, **start),
            rtol=1e-10,
        )

    def test_given_data_and_mask_are_not_changed(self, cls, rng):
        X, M, start = draw(rng)
        X = holes(X, M)
        X.flags.writeable = M.flags.writeable = False
        before = X.copy(), M.copy()
        cls(3, max_iter=5).fit(X, weights=M, **start)
        np.testing.assert_array_equal(X, before[0])
        np.testing.assert_array_equal(M, before[1])

    @pytest.mark.parametrize("dtype", [bool, np.int8, np.uint8, np.int64, np.float32])
    def test_kinds_of_masks(self, cls, dtype, rng):
        X, M, start = draw(rng)
        floats = cls(3, max_iter=30).fit(X, weights=M, **start)
        assert_same(cls(3, max_iter=30).fit(X, weights=M.astype(dtype), **start), floats)
        assert_same(cls(3, max_iter=30).fit(X, weights=M.astype(dtype).tolist(), **start), floats)

    def test_fit_transform(self, cls, rng):
        X, M, start = draw(rng)
        model = cls(3, max_iter=30)
        V = model.fit_transform(X, weights=M, **start)
        np.testing.assert_array_equal(V, cls(3, max_iter=30).fit(X, weights=M, **start).embedding_)

    def test_restarts(self, cls, rng):
        X, M, _ = draw(rng)
        one, three = (cls(3, n_init=n, max_iter=50, random_state=0).fit(holes(X, M)) for n in (1, 3))
        assert three.objective_ <= one.objective_

    @pytest.mark.filterwarnings("ignore:X has features without a known entry")
    @pytest.mark.parametrize("axis", [0, 1])
    def test_nothing_known_of_a_sample_or_a_feature(self, cls, axis, rng):
        X, M, _ = draw(rng)
        M[4 if axis == 0 else (slice(None), 4)] = 0
        for init in ("random", "scaled", "nndsvda"):
            model = cls(3, init=init, max_iter=100, random_state=0).fit(holes(X, M))
            for values in (
                model.components_,
                model.embedding_,
                model.history_["objective"],
                model.reconstruction_err_,
            ):
                assert np.isfinite(values).all()

    @pytest.mark.parametrize("seed", range(3))
    def test_completion(self, seed):
        """A matrix of rank 3 from 60 % of its entries: the other 40 % within 5 %."""
        rng = np.random.default_rng(seed)
        X = rng.random((60, 3)) @ rng.random((3, 40))
        M = rng.random(X.shape) < 0.6
        options = {"max_iter": 3000, "tol": 0, "eval_every": 1000, "random_state": seed}
        for model in (WeightedNMF(3, **options), LogSparseNMF(3, alpha=0, beta=0, lam=0, **options)):
            model.fit(holes(X, M))
            missing = (X - model.inverse_transform(model.embedding_))[~M]
            assert np.linalg.norm(missing) < 0.05 * np.linalg.norm(X[~M])
        # What filling with zeros does instead:
        filled = MODELS["NMF"](3, **options).fit(holes(X, M, 0.0))
        missing = (X - filled.inverse_transform(filled.embedding_))[~M]
        assert np.linalg.norm(missing) > 0.3 * np.linalg.norm(X[~M])


class TestSparse:
    @pytest.mark.parametrize("make", [sp.csr_array, sp.csc_matrix, sp.coo_array])
    @pytest.mark.parametrize("weighted", [False, True])
    def test_sparse_mask_equals_dense(self, cls, make, weighted, rng):
        X, M, start = draw(rng)
        if weighted:
            M *= rng.random(X.shape)
        dense = cls(3, max_iter=40).fit(X, weights=M, **start)
        sparse = cls(3, max_iter=40).fit(make(X), weights=make(M), **start)
        assert_same(sparse, dense, rtol=1e-9, atol=1e-11)

    def test_observed_zeros_count(self, rng):
        """The mask, not the pattern of X, says what is observed."""
        X, M, start = draw(rng)
        M[X == 0] = 1.0
        sparse = WeightedNMF(3, solver="mu", tol=0, max_iter=10).fit(
            sp.csr_array(X), weights=sp.csr_array(M), **start
        )
        U, V = oracle.wnmf(X.T, start["U0"], start["V0"], 10, M.T)
        np.testing.assert_allclose(sparse.embedding_, V, rtol=1e-10, atol=1e-12)
        np.testing.assert_allclose(sparse.objective_, oracle.weighted_error(X.T, U, V, M.T), rtol=1e-9)

    def test_pattern_as_the_mask(self, rng):
        """Ratings: what is stored is what is known."""
        X, M, start = draw(rng)
        ratings = sp.csr_array(X * M)
        known = sp.csr_array(ratings > 0)
        sparse = WeightedNMF(3, solver="mu", tol=0, max_iter=10).fit(ratings, weights=known, **start)
        dense = WeightedNMF(3, solver="mu", tol=0, max_iter=10).fit(
            ratings.toarray(), weights=known.toarray(), **start
        )
        assert_same(sparse, dense, rtol=1e-9, atol=1e-11)

    @pytest.mark.parametrize("garbage", [7.0, 1e300, -3.0])
    def test_garbage_under_the_mask(self, cls, garbage, rng):
        X, M, start = draw(rng)
        clean, dirty = (
            cls(3, max_iter=20).fit(sp.csr_array(data), weights=sp.csr_array(M), **start)
            for data in (X, holes(X, M, garbage))
        )
        assert_same(clean, dirty, rtol=1e-12)

    @pytest.mark.parametrize("make", [sp.csr_array, sp.csr_matrix, sp.csc_array, sp.coo_array])
    def test_given_data_and_mask_are_not_changed(self, cls, make, rng):
        """A mask may store zeros; they are missing entries, and stay where they are."""
        X, M, start = draw(rng)
        data, mask = make(X), make(np.ones_like(M))
        mask.data[:] = np.where(rng.random(mask.nnz) < 0.3, 0, mask.data)
        stored, dense = mask.nnz, mask.toarray()
        sparse = cls(3, max_iter=20).fit(data, weights=mask, **start)
        assert mask.nnz == stored
        np.testing.assert_array_equal(mask.toarray(), dense)
        np.testing.assert_array_equal(data.toarray(), X)
        assert_same(sparse, cls(3, max_iter=20).fit(X, weights=dense, **start), rtol=1e-9, atol=1e-11)

    def test_mask_stored_in_pieces(self, cls, rng):
        """Entries stored twice add up, as everywhere in SciPy."""
        X, M, start = draw(rng)
        once = sp.csr_array(M)
        twice = sp.csr_array(
            (np.repeat(once.data / 2, 2), np.repeat(once.indices, 2), 2 * once.indptr), shape=once.shape
        )
        one, other = (
            cls(3, max_iter=20).fit(sp.csr_array(X), weights=mask, **start) for mask in (once, twice)
        )
        assert_same(one, other, rtol=1e-10, atol=1e-12)

    def test_nan_in_sparse_data_is_refused(self, cls, rng):
        X, _, _ = draw(rng)
        X[2, 3] = np.nan
        with pytest.raises(ValueError, match="NaN"):
            cls(3).fit(sp.csr_array(X))


class TestRefusals:
    @pytest.mark.parametrize(
        ("given", "words"),
        [
            (np.ones((16, 10)), r"weights must have the shape of X, \(16, 11\); got \(16, 10\)"),
            (np.ones((11, 16)), r"weights .* got \(11, 16\)"),
            (np.ones(16), "weights"),
            (-np.ones((16, 11)), "weights.*nonnegative|weights.*>= 0|weights.*negative"),
            (np.full((16, 11), np.nan), "weights.*finite|weights.*NaN"),
            (np.full((16, 11), np.inf), "weights.*finite|weights.*infinity"),
            (sp.csr_array(np.ones((16, 10))), "weights"),
            (np.zeros((16, 11)), "weights|missing|observed"),
            (np.full((16, 11), "x"), "weights must hold numbers or truth values.*got <U1"),
            (np.full((16, 11), 1 + 0j), "weights must hold numbers or truth values.*got complex128"),
        ],
        ids=[
            "columns",
            "transposed",
            "one axis",
            "negative",
            "nan",
            "inf",
            "sparse",
            "all missing",
            "text",
            "complex",
        ],
    )
    def test_bad_weights(self, cls, given, words, rng):
        X, _, start = draw(rng)
        model = cls(3)
        with pytest.raises((ValueError, TypeError), match=words):
            model.fit(X, weights=given, **start)
        assert not hasattr(model, "components_")

    def test_bad_sparse_weights(self, cls, rng):
        X, M, start = draw(rng)
        for bad in (-M, M * np.nan, np.ones((16, 10))):
            with pytest.raises(ValueError, match="weights"):
                cls(3).fit(sp.csr_array(X), weights=sp.csr_array(bad), **start)

    def test_all_nan(self, cls, rng):
        X, _, _ = draw(rng)
        with pytest.raises(ValueError, match=r"missing|observed|NaN"):
            cls(3).fit(np.full_like(X, np.nan))

    @pytest.mark.parametrize("value", [-1.0, np.inf, -np.inf])
    def test_bad_observed_entries(self, cls, value, rng):
        """What is observed must still be finite and nonnegative."""
        X, M, _ = draw(rng)
        X, M[2, 3] = holes(X, M), 1.0
        X[2, 3] = value
        for arguments in ({}, {"weights": M}):
            with pytest.raises(ValueError, match=r"Negative values in data|infinity"):
                cls(3).fit(X, **arguments)

    def test_both_infinities(self, cls, rng):
        X, _, _ = draw(rng)
        X[2, 3], X[4, 5] = np.inf, -np.inf
        with pytest.raises(ValueError, match="infinity"):
            cls(3).fit(X)

    @pytest.mark.parametrize("other", REFUSE_NAN)
    def test_others_name_the_one_that_can(self, other, rng):
        X, _, _ = draw(rng)
        model = other(3, max_iter=2, random_state=0).fit(X)
        X[2, 3] = np.nan
        with pytest.raises(ValueError, match=r"NaN[\s\S]*WeightedNMF"):
            other(3).fit(X)
        with pytest.raises(ValueError, match="NaN"):
            model.transform(X)
        with pytest.raises(TypeError, match="weights"):
            other(3).fit(X, weights=np.ones_like(X))


class TestTransform:
    @pytest.mark.parametrize("k", [3, 6])
    @pytest.mark.parametrize("options", [{}, {"alpha": 0, "beta": 0, "lam": 0}], ids=["WNMF", "LS-NMF"])
    def test_missing_entries_are_ignored(self, digits, k, options, rng):
        cls = LogSparseNMF if options else WeightedNMF
        model = cls(k, max_iter=100, random_state=0, **options).fit(digits[:200])
        X, M = digits[200:], rng.random((50, 64)) < 0.6
        V, U = model.transform(holes(X, M)), model.components_.T
        exact = np.array([nnls(U[m], x[m])[0] for x, m in zip(X, M, strict=True)])
        assert (V >= 0).all()
        np.testing.assert_allclose(V @ U.T, exact @ U.T, atol=2e-3)
        error, least = (np.sqrt((M * (X - codes @ U.T) ** 2).sum(axis=1)) for codes in (V, exact))
        np.testing.assert_allclose(error, least, rtol=1e-4)

    def test_complete_rows_are_coded_as_without_holes_elsewhere(self, digits):
        model = WeightedNMF(4, max_iter=50, random_state=0).fit(digits[:200])
        X = digits[200:].copy()
        X[:10, ::3] = np.nan
        np.testing.assert_allclose(model.transform(X)[10:], model.transform(digits[210:]), atol=1e-4)

    def test_nothing_known_of_a_sample(self, digits):
        model = WeightedNMF(4, max_iter=50, random_state=0).fit(digits[:200])
        X = digits[200:].copy()
        X[3] = np.nan
        V = model.transform(X)
        assert np.isfinite(V).all()
        np.testing.assert_allclose(V[4:], model.transform(X[4:]), atol=1e-4)
        np.testing.assert_allclose(V[3:4], model.transform(X[3:4]))  # alone as in company

    def test_of_the_training_data(self, digits, rng):
        """At least as good as the codes of the fit, which had stopped on the way."""
        X = holes(digits, rng.random(digits.shape) < 0.7)
        model = WeightedNMF(5, max_iter=100, random_state=0).fit(X)
        error = np.nansum((X - model.transform(X) @ model.components_) ** 2)
        assert error <= model.objective_ * (1 + 1e-6)


class TestCompany:
    def test_float32(self, cls, rng):
        X, M, start = draw(rng)
        model = cls(3, max_iter=50, tol=0, **weights(cls))
        single = clone(model).fit(holes(X, M).astype(np.float32), **start)
        double = clone(model).fit(holes(X, M), **start)
        assert single.components_.dtype == single.embedding_.dtype == np.float32
        np.testing.assert_allclose(single.embedding_, double.embedding_, atol=2e-3)
        np.testing.assert_allclose(single.objective_, double.objective_, rtol=1e-3)
        assert isinstance(single.objective_, float)

    def test_float32_data_and_float64_mask(self, cls, rng):
        X, M, start = draw(rng)
        model = cls(3, max_iter=10).fit(X.astype(np.float32), weights=M, **start)
        assert model.components_.dtype == model.embedding_.dtype == np.float32

    @pytest.mark.parametrize("library", ["pandas", "polars"])
    def test_data_frames(self, cls, library, rng):
        frames = pytest.importorskip(library)
        X, M, start = draw(rng)
        X = holes(X, M)
        names = [f"feature{j}" for j in range(X.shape[1])]
        frame = frames.DataFrame(dict(zip(names, X.T, strict=True)))
        model = cls(3, max_iter=20).set_output(transform=library)
        V = model.fit_transform(frame, **start)
        assert isinstance(V, frames.DataFrame)
        assert model.feature_names_in_.tolist() == names
        plain = cls(3, max_iter=20).fit(X, **start)
        np.testing.assert_allclose(V.to_numpy(), plain.embedding_, rtol=1e-12)

    def test_mask_as_a_data_frame(self, cls, rng):
        frames = pytest.importorskip("pandas")
        X, M, start = draw(rng)
        framed = cls(3, max_iter=20).fit(frames.DataFrame(X), weights=frames.DataFrame(M), **start)
        assert_same(framed, cls(3, max_iter=20).fit(X, weights=M, **start), rtol=1e-10)

    def test_transform_of_a_data_frame(self, rng):
        frames = pytest.importorskip("pandas")
        X, M, start = draw(rng)
        model = WeightedNMF(3, max_iter=20).fit(X, **start)
        V = model.transform(frames.DataFrame(holes(X, M)))
        np.testing.assert_array_equal(V, model.transform(holes(X, M)))

    def test_torch(self, cls, rng):
        torch = pytest.importorskip("torch")
        X, M, start = draw(rng)
        X = holes(X, M)
        weights = rng.random(X.shape)
        model = cls(3, solver="mu", max_iter=20).fit(
            torch.asarray(X), weights=torch.asarray(weights), **start
        )
        plain = cls(3, solver="mu", max_iter=20).fit(X, weights=weights, **start)
        assert_same(model, plain, rtol=1e-9, atol=1e-11)
        np.testing.assert_allclose(model.transform(torch.asarray(X)), plain.transform(X), atol=1e-8)


@pytest.mark.parametrize(
    "name",
    [
        n
        for n, model in MODELS.items()
        if not model.spec.takes_missing(model()) and n not in ("CNMF", "Semi-NMF")
    ],
)
@pytest.mark.parametrize("method", ["fit", "fit_transform"])
def test_models_without_weights_name_those_that_have_them(name, method, rng):
    X, M, _ = draw(rng)
    model = MODELS[name](3)
    with pytest.raises(
        TypeError, match=f"{type(model).__name__} takes no weights.*WeightedNMF or LogSparseNMF"
    ):
        getattr(model, method)(X, weights=M)
    assert not hasattr(model, "components_")
