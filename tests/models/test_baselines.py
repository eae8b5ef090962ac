"""The baselines are their papers', to rounding; what holds between them; what each promises."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy.optimize import nnls
from sklearn.datasets import load_digits
from sklearn.preprocessing import normalize

import oracle_baselines as oracle
from lognmf import MODELS, knn_graph
from lognmf.models import (
    ConvexNMF,
    GraphNMF,
    LogSparseNMF,
    OrthogonalNMF,
    PlainNMF,
    RobustManifoldNMF,
    SemiNMF,
    WeightedNMF,
)
from problems import samples

seeds = st.integers(0, 2**16)
FORMATS = {
    "dense": np.asarray,
    "fortran": np.asfortranarray,
    "csr_array": sp.csr_array,
    "csc_matrix": sp.csc_matrix,
    "coo_array": sp.coo_array,
}
BASELINES = {
    "NMF": PlainNMF,
    "GNMF": GraphNMF,
    "RMNMF": RobustManifoldNMF,
    "WNMF": WeightedNMF,
    "CNMF": ConvexNMF,
    "ONMF": OrthogonalNMF,
    "Semi-NMF": SemiNMF,
}
FROM_KMEANS = [ConvexNMF, OrthogonalNMF, SemiNMF, RobustManifoldNMF]
MIXED_SIGN = [SemiNMF, RobustManifoldNMF]
NONNEGATIVE = [cls for cls in BASELINES.values() if cls not in MIXED_SIGN]


@pytest.fixture(scope="module")
def digits():
    return normalize(load_digits().data[:300])


def draw(rng, n=14, p=10, k=3, mixed=False):
    """Samples X (n, p), first factors U (p, k), V (n, k) and B (n, k)."""
    X = samples(rng, n, p, density=0.6)
    if mixed:
        X *= rng.choice([-1, 1], size=X.shape)
    return X, rng.random((p, k)), rng.random((n, k)), rng.random((n, k))


def assert_is(model, U, V, objective, X, rtol=1e-10):
    """The fitted ``model`` holds these factors and what follows from them."""
    k = V.shape[1]
    np.testing.assert_allclose(model.components_, U.T, rtol=rtol, atol=rtol)
    np.testing.assert_allclose(model.embedding_, V, rtol=rtol, atol=rtol)
    np.testing.assert_allclose(model.objective_, objective, rtol=10 * rtol)
    np.testing.assert_allclose(model.reconstruction_err_, np.linalg.norm(X - V @ U.T), rtol=10 * rtol)
    assert model.history_["objective"][-1] == model.objective_
    assert model.history_["iteration"][-1] == model.n_iter_ == model.max_iter
    assert model.history_["seconds"].shape == model.history_["objective"].shape
    assert model.stop_reason_ == "max_iter"
    assert model.components_.shape == (k, X.shape[1])


def test_the_papers_columns():
    columns = ["NMF", "GNMF", "RMNMF", "WNMF", "CNMF", "ONMF", "Semi-NMF", "LS-NMF", "RLS-NMF"]
    assert list(MODELS) == columns
    assert {name: MODELS[name] for name in BASELINES} == BASELINES


class TestOracle:
    """T iterations from given factors are the paper's T iterations."""

    each = given(seed=seeds, steps=st.sampled_from([1, 10, 50]), fmt=st.sampled_from(list(FORMATS)))

    @each
    def test_plain(self, seed, steps, fmt):
        X, U0, V0, _ = draw(np.random.default_rng(seed))
        model = PlainNMF(3, tol=0, max_iter=steps).fit(FORMATS[fmt](X), U0=U0, V0=V0)
        U, V = oracle.nmf(X.T, U0, V0, steps)
        assert_is(model, U, V, oracle.squared_error(X.T, U, V), X)

    @given(
        seed=seeds,
        steps=st.sampled_from([1, 10, 50]),
        fmt=st.sampled_from(list(FORMATS)),
        lam=st.floats(-3, 3).map(lambda x: 10**x),
    )
    def test_graph(self, seed, steps, fmt, lam):
        X, U0, V0, _ = draw(np.random.default_rng(seed))
        model = GraphNMF(3, lam=lam, n_neighbors=4, tol=0, max_iter=steps).fit(FORMATS[fmt](X), U0=U0, V0=V0)
        W = knn_graph(X, 4).toarray()
        U, V = oracle.gnmf(X.T, U0, V0, steps, W, lam)
        assert_is(model, U, V, oracle.graph_error(X.T, U, V, W, lam), X)
        np.testing.assert_array_equal(model.graph_.toarray(), W)

    @each
    def test_graph_normalised_at_both_ends_only(self, seed, steps, fmt):
        X, U0, V0, _ = draw(np.random.default_rng(seed))
        model = GraphNMF(3, lam=2.0, normalize=True, n_neighbors=4, tol=0, max_iter=steps)
        model.fit(FORMATS[fmt](X), U0=U0, V0=V0)
        W = knn_graph(X, 4).toarray()
        U, V = oracle.normalised(*oracle.gnmf(X.T, *oracle.normalised(U0, V0), steps, W, 2.0))
        np.testing.assert_allclose(model.components_, U.T, rtol=1e-10, atol=1e-10)
        np.testing.assert_allclose(model.embedding_, V, rtol=1e-10, atol=1e-10)
        np.testing.assert_allclose(np.linalg.norm(model.components_, axis=1), 1, rtol=1e-12)
        np.testing.assert_allclose(model.objective_, oracle.graph_error(X.T, U, V, W, 2.0), rtol=1e-9)

    @each
    def test_weighted(self, seed, steps, fmt):
        rng = np.random.default_rng(seed)
        X, U0, V0, _ = draw(rng)
        M = rng.random(X.shape) * (rng.random(X.shape) < 0.7) + 1e-3 * np.eye(*X.shape)
        data = FORMATS[fmt](X)
        mask = sp.csr_array(M) if sp.issparse(data) else M
        model = WeightedNMF(3, solver="mu", tol=0, max_iter=steps).fit(data, weights=mask, U0=U0, V0=V0)
        with np.errstate(invalid="ignore"):
            U, V = oracle.wnmf(X.T, U0, V0, steps, M.T)
        assume(np.isfinite(V).all())  # the plain formula is 0 / 0 where all that is known of a sample is 0
        np.testing.assert_allclose(model.components_, U.T, rtol=1e-10, atol=1e-10)
        np.testing.assert_allclose(model.embedding_, V, rtol=1e-10, atol=1e-10)
        np.testing.assert_allclose(model.objective_, oracle.weighted_error(X.T, U, V, M.T), rtol=1e-9)

    @each
    def test_orthogonal(self, seed, steps, fmt):
        X, U0, V0, _ = draw(np.random.default_rng(seed))
        model = OrthogonalNMF(3, tol=0, max_iter=steps).fit(FORMATS[fmt](X), U0=U0, V0=V0)
        U, V = oracle.onmf(X.T, U0, V0, steps)
        assert_is(model, U, V, oracle.squared_error(X.T, U, V), X)

    @each
    def test_convex(self, seed, steps, fmt):
        X, _, V0, B0 = draw(np.random.default_rng(seed))
        model = ConvexNMF(3, tol=0, max_iter=steps).fit(FORMATS[fmt](X), B0=B0, V0=V0)
        B, V = oracle.cnmf(X.T, B0, V0, steps)
        assert_is(model, X.T @ B, V, oracle.squared_error(X.T, X.T @ B, V), X)
        np.testing.assert_allclose(model.combination_, B, rtol=1e-10, atol=1e-10)

    @given(
        seed=seeds,
        steps=st.sampled_from([1, 10, 50]),
        fmt=st.sampled_from(list(FORMATS)),
        mixed=st.booleans(),
    )
    def test_semi(self, seed, steps, fmt, mixed):
        X, _, V0, _ = draw(np.random.default_rng(seed), mixed=mixed)
        model = SemiNMF(3, tol=0, max_iter=steps).fit(FORMATS[fmt](X), V0=V0)
        U, V = oracle.semi_nmf(X.T, V0, steps)
        assert_is(model, U, V, oracle.squared_error(X.T, U, V), X)

    @pytest.mark.parametrize("mixed", [False, True])
    @pytest.mark.parametrize("published_sign", [False, True])
    @pytest.mark.parametrize(("mu", "rtol"), [(1e-3, 1e-9), (1.0, 1e-10), (10.0, 1e-10)])
    @pytest.mark.parametrize("steps", [1, 10])
    @pytest.mark.parametrize("seed", range(3))
    def test_robust_manifold(self, seed, steps, mu, rtol, published_sign, mixed):
        """It amplifies rounding, the more the smaller μ, so a few steps only; with μ ≥ 1 E is active."""
        X, U0, V0, _ = draw(np.random.default_rng(seed), mixed=mixed)
        lam = 0.01 if mu < 1 else 0.5
        options = {"lam": lam, "mu": mu, "published_sign": published_sign, "n_neighbors": 4}
        model = RobustManifoldNMF(3, **options, tol=0, max_iter=steps).fit(X, U0=U0, V0=V0)
        W = knn_graph(X, 4).toarray()
        end = oracle.rmnmf(X.T, U0, V0, steps, W, lam, mu=mu, sign=1 if published_sign else -1)
        U, V = end["U"], end["V"]
        assert (end["E"] != 0).any() == (mu >= 1)
        scale = max(1, np.abs(U).max())
        np.testing.assert_allclose(model.components_ / scale, U.T / scale, atol=rtol)
        np.testing.assert_allclose(model.embedding_, V, atol=rtol)
        np.testing.assert_allclose(model.objective_, oracle.l21_error(X.T, U, V, W, lam), rtol=10 * rtol)
        np.testing.assert_allclose(model.reconstruction_err_, np.linalg.norm(X - V @ U.T), rtol=10 * rtol)
        errors = np.linalg.norm(X.T - U @ V.T - end["E"]), np.linalg.norm(V - end["H"])
        np.testing.assert_allclose(model.constraint_error_, errors, rtol=10 * rtol, atol=rtol * scale)
        np.testing.assert_array_equal(model.labels_, V.argmax(axis=1))
        assert model.n_iter_ == steps

    def test_robust_manifold_penalty_growth(self, rng):
        X, U0, V0, _ = draw(rng)
        model = RobustManifoldNMF(3, mu=1.0, rho=1.5, lam=0.1, tol=0, max_iter=8).fit(X, U0=U0, V0=V0)
        end = oracle.rmnmf(X.T, U0, V0, 8, model.graph_.toarray(), 0.1, mu=1.0, rho=1.5)
        np.testing.assert_allclose(model.embedding_, end["V"], atol=1e-10)

    def test_robust_manifold_without_graph(self, rng):
        X, U0, V0, _ = draw(rng)
        end = oracle.rmnmf(X.T, U0, V0, 5, np.zeros((14, 14)), 1.0, mu=1.0)
        for options in ({"graph": None, "lam": 1.0}, {"lam": 0.0}):
            model = RobustManifoldNMF(3, mu=1.0, tol=0, max_iter=5, **options).fit(X, U0=U0, V0=V0)
            np.testing.assert_allclose(model.embedding_, end["V"], atol=1e-10)


class TestDescent:
    """No step raises the objective: all but ONMF, and RMNMF, whose iterates are not feasible."""

    def history(self, cls, data, steps=60, **arguments):
        options = {"max_iter": steps, "tol": 0, "eval_every": 1}
        extra = {name: arguments.pop(name) for name in ("lam",) if name in arguments}
        model = cls(arguments["V0"].shape[1], **options, **extra).fit(data, **arguments)
        objective = model.history_["objective"]
        assert objective.shape == (steps + 1,)
        return objective

    def assert_falls(self, objective):
        assert (np.diff(objective) <= 1e-12 * objective[0]).all()
        assert objective[-1] < objective[0]

    @given(seed=seeds, fmt=st.sampled_from(["dense", "csr_array"]))
    def test_plain(self, seed, fmt):
        X, U0, V0, _ = draw(np.random.default_rng(seed))
        self.assert_falls(self.history(PlainNMF, FORMATS[fmt](X), U0=U0, V0=V0))

    @given(seed=seeds, lam=st.floats(-3, 3).map(lambda x: 10**x))
    def test_graph(self, seed, lam):
        X, U0, V0, _ = draw(np.random.default_rng(seed))
        self.assert_falls(self.history(GraphNMF, X, U0=U0, V0=V0, lam=lam))

    @pytest.mark.filterwarnings("ignore:X has features without a known entry")
    @given(seed=seeds, share=st.sampled_from([0.1, 0.5, 1.0]), fmt=st.sampled_from(["dense", "csr_array"]))
    def test_weighted(self, seed, share, fmt):
        rng = np.random.default_rng(seed)
        X, U0, V0, _ = draw(rng)
        mask = FORMATS[fmt](10 ** rng.uniform(-3, 3, X.shape) * (rng.random(X.shape) < share))
        self.assert_falls(self.history(WeightedNMF, FORMATS[fmt](X), weights=mask, U0=U0, V0=V0))

    @given(seed=seeds, fmt=st.sampled_from(["dense", "csr_array"]))
    def test_convex(self, seed, fmt):
        X, _, V0, B0 = draw(np.random.default_rng(seed))
        self.assert_falls(self.history(ConvexNMF, FORMATS[fmt](X), B0=B0, V0=V0))

    @given(seed=seeds, mixed=st.booleans(), fmt=st.sampled_from(["dense", "csr_array"]))
    def test_semi(self, seed, mixed, fmt):
        X, _, V0, _ = draw(np.random.default_rng(seed), mixed=mixed)
        self.assert_falls(self.history(SemiNMF, FORMATS[fmt](X), V0=V0))

    def test_orthogonal_may_rise(self):
        """Its V step heads for VᵀV = I: even an exact factorisation is left."""
        X, U0 = np.array([[1.0], [2.0]]), np.array([[1.0, 1.0]])
        V0 = np.array([[0.5, 0.5], [0.5, 1.5]])
        objective = self.history(OrthogonalNMF, X, steps=4, U0=U0, V0=V0)
        assert objective[0] == pytest.approx(0, abs=1e-14)
        assert (np.diff(objective) > 1e-4).all()

    @given(seed=seeds)
    def test_orthogonal_falls_for_one_component(self, seed):
        """k = 1: V has length 1 after its first step, U is exact, and ‖Xᵀv‖ can only grow."""
        X, U0, V0, _ = draw(np.random.default_rng(seed), k=1)
        objective = self.history(OrthogonalNMF, X, U0=U0, V0=V0)
        assert (np.diff(objective[1:]) <= 1e-12 * objective[1]).all()
        model = OrthogonalNMF(1, max_iter=1, tol=0).fit(X, U0=U0, V0=V0)
        np.testing.assert_allclose(np.linalg.norm(model.embedding_), 1, rtol=1e-12)

    @given(seed=seeds, steps=st.integers(1, 60), k=st.integers(1, 5))
    def test_orthogonal_is_bounded(self, seed, steps, k):
        """Any k: the U step's majoriser gives ‖X − VUᵀ‖² ≤ ‖X‖² − ⟨X, VUᵀ⟩ after every iteration."""
        X, U0, V0, _ = draw(np.random.default_rng(seed), k=k)
        model = OrthogonalNMF(k, max_iter=steps, tol=0).fit(X, U0=U0, V0=V0)
        bound = np.sum(X**2) - np.sum(X * (model.embedding_ @ model.components_))
        assert model.objective_ <= bound + 1e-12 * np.sum(X**2)

    def test_orthogonal_tends_to_orthogonal(self, digits):
        """The angles between the columns of V open, and their lengths come near 1."""

        def cosines(V):
            V = V / np.linalg.norm(V, axis=0)
            return (V.T @ V)[~np.eye(V.shape[1], dtype=bool)]

        first, last = (
            OrthogonalNMF(10, max_iter=T, tol=0, random_state=0).fit(digits).embedding_ for T in (0, 500)
        )
        assert cosines(last).max() < 0.35
        assert cosines(last).mean() < 0.5 * cosines(first).mean()
        np.testing.assert_allclose(np.linalg.norm(last, axis=0), 1, atol=0.25)


@pytest.fixture(scope="module")
def fitted(digits):
    return RobustManifoldNMF(10, random_state=0).fit(digits)


class TestRobustManifold:
    def test_ends_feasible(self, fitted, digits):
        """With its default settings, whatever the objective did on the way."""
        of_data, of_copy = fitted.constraint_error_
        assert of_data <= 1e-3 * np.linalg.norm(digits)
        assert of_copy <= 1e-2 * np.linalg.norm(fitted.embedding_)
        np.testing.assert_allclose(fitted.embedding_.T @ fitted.embedding_, np.eye(10), atol=1e-8)
        assert fitted.embedding_.min() >= -of_copy

    def test_objective_by_definition(self, fitted, digits):
        W = knn_graph(digits, 5).toarray()
        value = oracle.l21_error(digits.T, fitted.components_.T, fitted.embedding_, W, 0.01)
        np.testing.assert_allclose(fitted.objective_, value, rtol=1e-9)

    def test_labels(self, fitted, digits):
        np.testing.assert_array_equal(fitted.labels_, fitted.embedding_.argmax(axis=1))
        y = load_digits().target[:300]
        assert np.mean(fitted.labels_[:, None] == fitted.labels_) < 0.5
        same_class = y[:, None] == y
        same_label = fitted.labels_[:, None] == fitted.labels_
        assert same_label[same_class].mean() > 3 * same_label[~same_class].mean()

    def test_published_sign_changes_the_result(self, rng):
        X, U0, V0, _ = draw(rng)
        ours, published = (
            RobustManifoldNMF(3, lam=0.5, mu=1.0, published_sign=sign, tol=0, max_iter=10).fit(
                X, U0=U0, V0=V0
            )
            for sign in (False, True)
        )
        assert np.abs(ours.embedding_ - published.embedding_).max() > 1e-4

    def test_warm_start(self, digits):
        """V of a fit has tiny negative entries; it can be gone on from all the same."""
        model = RobustManifoldNMF(5, max_iter=150, warm_start=True, random_state=0).fit(digits)
        V = model.fit(digits).embedding_
        np.testing.assert_allclose(V.T @ V, np.eye(5), atol=1e-8)

    def test_penalty_stays_a_number(self, digits):
        """μ grows without end: after a thousand doublings it must not overflow."""
        model = RobustManifoldNMF(3, rho=2.0, max_iter=1200, tol=0, random_state=0).fit(digits[:40])
        assert np.isfinite(model.embedding_).all()
        single = RobustManifoldNMF(3, max_iter=2200, tol=0, random_state=0).fit(digits[:40].astype("f4"))
        assert np.isfinite(single.embedding_).all()

    @pytest.mark.parametrize("make", [sp.csr_array, sp.csc_matrix])
    def test_sparse_data_are_refused_in_words(self, make, rng):
        X, U0, V0, _ = draw(rng)
        model = RobustManifoldNMF(3)
        with pytest.raises(TypeError, match=r"RobustManifoldNMF.*dense|[Ss]parse.*RobustManifoldNMF|toarray"):
            model.fit(make(X), U0=U0, V0=V0)
        assert not hasattr(model, "components_")


class TestNesting:
    """Special cases are the same arrays, iterate by iterate."""

    @pytest.mark.parametrize("fmt", ["dense", "csr_array"])
    @pytest.mark.parametrize("steps", [1, 2, 5, 20, 100])
    def test_nothing_but_the_data_term(self, fmt, steps, rng):
        X, U0, V0, _ = draw(rng, 25, 12, 4)
        data, options = FORMATS[fmt](X), {"tol": 0, "max_iter": steps}
        plain = PlainNMF(4, **options).fit(data, U0=U0, V0=V0)
        for other in (
            WeightedNMF(4, solver="mu", **options),
            GraphNMF(4, lam=0.0, **options),
            GraphNMF(4, graph=None, **options),
            LogSparseNMF(4, alpha=0, beta=0, lam=0, solver="mu", unit_components=False, **options),
        ):
            other.fit(data, U0=U0, V0=V0)
            np.testing.assert_array_equal(other.components_, plain.components_)
            np.testing.assert_array_equal(other.embedding_, plain.embedding_)
            np.testing.assert_allclose(other.objective_, plain.objective_, rtol=1e-12)

    def test_a_mask_of_ones_is_no_mask(self, rng):
        X, U0, V0, _ = draw(rng, 25, 12, 4)
        plain = PlainNMF(4, tol=0, max_iter=20).fit(X, U0=U0, V0=V0)
        for ones in (np.ones_like(X), np.ones(X.shape, dtype=bool), np.ones(X.shape, dtype=int)):
            weighted = WeightedNMF(4, solver="mu", tol=0, max_iter=20).fit(X, weights=ones, U0=U0, V0=V0)
            np.testing.assert_allclose(weighted.components_, plain.components_, rtol=1e-10)
            np.testing.assert_allclose(weighted.embedding_, plain.embedding_, rtol=1e-10)

    @pytest.mark.parametrize("fmt", ["dense", "csr_array"])
    @pytest.mark.parametrize("steps", [1, 2, 5, 20, 100])
    @pytest.mark.parametrize("lam", [0.1, 100.0])
    def test_data_and_graph(self, fmt, steps, lam, rng):
        X, U0, V0, _ = draw(rng, 25, 12, 4)
        data, options = FORMATS[fmt](X), {"tol": 0, "max_iter": steps, "lam": lam}
        one = GraphNMF(4, **options).fit(data, U0=U0, V0=V0)
        other = LogSparseNMF(4, alpha=0, beta=0, solver="mu", unit_components=False, **options)
        other.fit(data, U0=U0, V0=V0)
        np.testing.assert_array_equal(one.components_, other.components_)
        np.testing.assert_array_equal(one.embedding_, other.embedding_)
        assert one.objective_ == other.objective_

    def test_same_seed_same_start(self, digits):
        fits = [
            cls(5, max_iter=20, random_state=3, **options).fit_transform(digits)
            for cls, options in (
                (PlainNMF, {}),
                (WeightedNMF, {"solver": "mu"}),
                (GraphNMF, {"lam": 0.0}),
                (
                    LogSparseNMF,
                    {"alpha": 0, "beta": 0, "init": "random", "solver": "mu", "unit_components": False},
                ),
            )
        ]
        for V in fits[1:]:
            np.testing.assert_array_equal(V, fits[0])


class TestSigns:
    @pytest.mark.parametrize("cls", MIXED_SIGN)
    def test_mixed_signs_are_fine(self, cls, rng):
        X = rng.normal(size=(30, 12))
        model = cls(3, random_state=0).fit(X)
        assert (model.components_ < 0).any()
        assert np.isfinite(model.components_).all()
        assert np.isfinite(model.embedding_).all()
        V = model.transform(-X)
        assert (V >= 0).all()
        assert np.isfinite(model.inverse_transform(V)).all()

    @pytest.mark.parametrize("cls", [*NONNEGATIVE, MODELS["LS-NMF"], MODELS["RLS-NMF"]])
    @pytest.mark.parametrize("make", [np.asarray, sp.csr_array])
    def test_others_refuse(self, cls, make, rng):
        X = samples(rng)
        model = cls(3, max_iter=2).fit(make(X))
        X[2, 3] = -1.0
        with pytest.raises(ValueError, match=f"Negative values in data passed to {cls.__name__}"):
            cls(3).fit(make(X))
        with pytest.raises(ValueError, match="Negative values in data"):
            model.transform(make(X))

    @pytest.mark.parametrize("cls", BASELINES.values())
    def test_codes_are_nonnegative(self, cls, digits):
        model = cls(5, max_iter=50, random_state=0).fit(digits)
        assert (model.transform(digits) >= 0).all()
        if cls is not RobustManifoldNMF:  # there V ≥ 0 holds in the limit, through its copy
            assert (model.embedding_ >= 0).all()
        if cls not in MIXED_SIGN:
            assert (model.components_ >= 0).all()

    def test_negative_starts_are_refused(self, rng):
        X, U0, V0, B0 = draw(rng)
        for cls, arguments in (
            (OrthogonalNMF, {"U0": -U0, "V0": V0}),
            (OrthogonalNMF, {"U0": U0, "V0": -V0}),
            (ConvexNMF, {"B0": -B0, "V0": V0}),
            (ConvexNMF, {"B0": B0, "V0": -V0}),
            (SemiNMF, {"V0": -V0}),
        ):
            bad = next(name for name, F in arguments.items() if (F < 0).any())
            with pytest.raises(ValueError, match=f"{bad} must be finite and nonnegative"):
                cls(3).fit(X, **arguments)


class TestStarts:
    def test_indicators(self, digits):
        """Before any iteration V is the k-means indicator + 0.2, one cluster a row."""
        for cls in FROM_KMEANS:
            model = cls(6, max_iter=0, random_state=0).fit(digits)
            V = model.embedding_
            labels = V.argmax(axis=1)
            np.testing.assert_allclose(V, oracle.indicator(labels, 6))
            assert set(labels) == set(range(6))
            tightness = [digits[labels == c].var(axis=0).sum() for c in range(6)]
            assert np.mean(tightness) < 0.9 * digits.var(axis=0).sum()
            if cls is ConvexNMF:
                np.testing.assert_allclose(model.combination_, V / np.bincount(labels))
            if cls is RobustManifoldNMF:
                U = model.components_.T
                np.testing.assert_allclose(U, oracle.indicator(U.argmax(axis=1), 6))

    @pytest.mark.parametrize("cls", BASELINES.values())
    def test_reproducible(self, cls, digits):
        first, second, other = (
            cls(5, max_iter=10, n_init=2, random_state=seed).fit(digits) for seed in (7, 7, 8)
        )
        np.testing.assert_array_equal(first.embedding_, second.embedding_)
        np.testing.assert_array_equal(first.components_, second.components_)
        assert not np.array_equal(first.embedding_, other.embedding_)
        shared = np.random.RandomState(7)
        third = cls(5, max_iter=10, n_init=2, random_state=shared).fit(digits)
        np.testing.assert_array_equal(first.embedding_, third.embedding_)

    @pytest.mark.parametrize("cls", BASELINES.values())
    def test_default_start_on_digits(self, cls, digits):
        one, three = (cls(10, n_init=n_init, random_state=0).fit(digits) for n_init in (1, 3))
        assert three.objective_ <= one.objective_ * (1 + 1e-12)
        for model in (one, three):
            for values in (
                model.components_,
                model.embedding_,
                model.objective_,
                model.history_["objective"],
                model.transform(digits[:20]),
                model.inverse_transform(model.embedding_),
            ):
                assert np.isfinite(values).all()
            error = np.linalg.norm(digits - model.embedding_ @ model.components_)
            np.testing.assert_allclose(model.reconstruction_err_, error, rtol=1e-9)
            assert error < 0.7 * np.linalg.norm(digits)

    @pytest.mark.parametrize("cls", BASELINES.values())
    @pytest.mark.parametrize(
        "X",
        [
            np.ones((12, 9)),
            np.zeros((12, 9)),
            np.repeat(np.eye(3, 9), 4, axis=0),
            np.arange(1.0, 10)[None],
            np.arange(1.0, 13)[:, None],
            np.eye(12, 9),
        ],
        ids=["equal", "zero", "duplicates", "one sample", "one feature", "zero rows"],
    )
    def test_degenerate_data_give_finite_results(self, cls, X):
        model = cls(5, max_iter=30, random_state=0)
        V = model.fit_transform(X)
        for values in (V, model.components_, model.history_["objective"], model.transform(X)):
            assert np.isfinite(values).all()


class TestTransform:
    @pytest.mark.parametrize("name", BASELINES)
    @pytest.mark.parametrize("k", [3, 8])
    def test_codes_for_the_fixed_basis(self, name, k, digits):
        """Against SciPy's nonnegative least squares."""
        model = BASELINES[name](k, max_iter=100, random_state=0).fit(digits[:200])
        self.assert_optimal(model, digits[200:])

    @pytest.mark.parametrize("cls", MIXED_SIGN)
    def test_mixed_signs(self, cls, rng):
        X = rng.normal(size=(80, 12))
        model = cls(4, max_iter=100, random_state=0).fit(X[:50])
        assert (model.components_ < 0).any()
        self.assert_optimal(model, X[50:])

    @pytest.mark.parametrize("name", [name for name in BASELINES if name != "RMNMF"])
    def test_sparse(self, name, digits):
        model = BASELINES[name](4, max_iter=50, random_state=0).fit(digits[:200])
        dense, sparse = (model.transform(make(digits[200:])) for make in (np.asarray, sp.csr_array))
        np.testing.assert_allclose(sparse, dense, atol=1e-8)

    def assert_optimal(self, model, X):
        V, U = model.transform(X), model.components_.T
        exact = np.array([nnls(U, x)[0] for x in X])
        assert (V >= 0).all()
        np.testing.assert_allclose(V @ U.T, exact @ U.T, atol=2e-3 * np.abs(X).max())
        error, least = (np.linalg.norm(X - codes @ U.T, axis=1) for codes in (V, exact))
        np.testing.assert_allclose(error, least, rtol=1e-4)


class TestConvex:
    def test_basis_is_a_combination_of_samples(self, digits):
        model = ConvexNMF(5, max_iter=30, random_state=0).fit(digits)
        assert model.combination_.shape == (300, 5)
        assert (model.combination_ >= 0).all()
        np.testing.assert_allclose(model.components_, (digits.T @ model.combination_).T, rtol=1e-10)


def test_no_data_to_be_close_to():
    """The constraint on an X of zeros holds to tolerance, not to the last digit."""
    model = RobustManifoldNMF(1, mu=1000.0, tol=1e-3, eval_every=1).fit(np.zeros((5, 2)))
    assert model.stop_reason_ == "converged"
    assert model.n_iter_ < 10


def test_codes_beyond_the_largest_number(rng):
    """Parts fitted to samples of hardly any size: the codes of others overflow, and stay finite."""
    model = RobustManifoldNMF(2, random_state=0).fit(1e-280 * rng.random((3, 1)))
    assert np.isfinite(model.transform([[1e29]])).all()


class TestSemi:
    @pytest.mark.parametrize("likeness", [0.0, 0.9, 0.9999, 1.0])
    def test_the_basis_is_that_of_least_squares(self, likeness, rng):
        V0 = rng.random((30, 3))
        V0[:, 2] = likeness * V0[:, 1] + (1 - likeness) * V0[:, 2]
        X = rng.normal(size=(30, 8))
        model = SemiNMF(3, max_iter=0).fit(X, V0=V0)
        best = np.linalg.lstsq(V0, X, rcond=1e-12)[0]
        np.testing.assert_allclose(model.embedding_ @ model.components_, V0 @ best, atol=1e-9)

    def test_the_basis_of_codes_that_are_almost_dependent(self, rng):
        """VᵀV has lost what tells the columns apart; V has not."""
        V0 = rng.random((30, 3))
        V0[:, 2] = V0[:, 1] + 1e-7 * rng.random(30)
        X = V0 @ rng.normal(size=(3, 8))
        model = SemiNMF(3, max_iter=0).fit(X, V0=V0)
        assert model.reconstruction_err_ < 1e-9 * np.linalg.norm(X)

    def test_never_worse_than_plain_at_the_same_codes(self, digits):
        """U is the least-squares basis of the V before; without a sign it fits at least as well."""
        plain = PlainNMF(5, max_iter=200, random_state=0).fit(digits)
        semi = SemiNMF(5, max_iter=1, tol=0).fit(digits, V0=plain.embedding_)
        assert semi.objective_ <= plain.objective_ * (1 + 1e-12)

    @pytest.mark.parametrize("scale", [1e-100, 1e100])
    def test_scale_of_the_data(self, scale, rng):
        X, _, V0, _ = draw(rng, mixed=True)
        one, other = (SemiNMF(3, max_iter=20, tol=0).fit(s * X, V0=V0) for s in (1.0, scale))
        np.testing.assert_allclose(other.embedding_, one.embedding_, rtol=1e-8, atol=1e-10)
        np.testing.assert_allclose(other.components_ / scale, one.components_, rtol=1e-8, atol=1e-10)

    def test_scale_of_the_columns(self, rng):
        """The best basis makes up for the scale of every column of V."""
        X, _, V0, _ = draw(rng, mixed=True)
        one, other = (SemiNMF(3, max_iter=0).fit(X, V0=V0 * [1, 1, scale]) for scale in (1, 1e-9))
        np.testing.assert_allclose(other.objective_, one.objective_, rtol=1e-6)

    def test_a_sample_against_all_others(self, rng):
        """Codes that want to be negative become zero and stay finite."""
        X = samples(rng, 20, 8)
        X[0] = -X.mean(axis=0)
        model = SemiNMF(3, max_iter=2000, tol=0, random_state=0).fit(X)
        assert np.isfinite(model.embedding_).all()
        assert np.isfinite(model.components_).all()


@pytest.mark.parametrize("name", BASELINES)
def test_torch_equals_numpy(name, digits):
    torch = pytest.importorskip("torch")
    model = BASELINES[name](5, max_iter=8, tol=0, random_state=0)
    arrays, objectives = [], []
    for X in (digits, torch.asarray(digits)):
        model.fit(X)
        fresh = model.transform(X[:20])
        assert type(model.components_) is type(model.embedding_) is type(fresh) is type(X)
        arrays.append([np.asarray(F) for F in (model.components_, model.embedding_, fresh)])
        objectives.append(model.objective_)
    for one, other in zip(*arrays, strict=True):
        np.testing.assert_allclose(other, one, atol=1e-8 * np.abs(one).max())
    np.testing.assert_allclose(*objectives, rtol=1e-9)
