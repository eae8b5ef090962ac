"""The two models are the paper's, to rounding: a literal oracle is the second opinion."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

import oracle
from lognmf import LogSparseNMF, RobustLogSparseNMF, knn_graph, shrink_l2_log
from problems import PLAIN, samples

powers = st.floats(-3, 3).map(lambda x: 10**x)
FORMATS = {
    "dense": np.asarray,
    "fortran": np.asfortranarray,
    "csr_array": sp.csr_array,
    "csc_matrix": sp.csc_matrix,
    "coo_array": sp.coo_array,
    "lil_matrix": sp.lil_matrix,
}


def start(rng, X, k):
    return rng.random((X.shape[1], k)), rng.random((X.shape[0], k))


def assert_equals_oracle(model, X, data, U0, V0, weights):
    """Factors, objective and S of ``model`` against the literal loop."""
    T = model.max_iter
    model.fit(data, U0=U0, V0=V0)
    W = knn_graph(X, model.n_neighbors).toarray()
    U, V, _ = oracle.iterate(X.T, U0, V0, W, T, **weights)
    np.testing.assert_allclose(model.components_, U.T, rtol=1e-10, atol=1e-10)
    np.testing.assert_allclose(model.embedding_, V, rtol=1e-10, atol=1e-10)
    np.testing.assert_allclose(model.objective_, oracle.objective(X.T, U, V, W, **weights), rtol=1e-10)
    np.testing.assert_allclose(model.reconstruction_err_, np.linalg.norm(X - V @ U.T), rtol=1e-9)
    assert model.n_iter_ == T
    assert model.stop_reason_ == "max_iter"
    return U, V


@given(
    seed=st.integers(0, 2**16),
    weights=st.tuples(powers, powers, powers),
    penalty=st.sampled_from(["log", "l1"]),
    fmt=st.sampled_from(list(FORMATS)),
    steps=st.sampled_from([1, 10, 50]),
)
def test_log_sparse(seed, weights, penalty, fmt, steps):
    rng = np.random.default_rng(seed)
    X = samples(rng, 14, 10, density=0.6)
    weights = dict(zip(("alpha", "beta", "lam"), weights, strict=True)) | {"penalty": penalty}
    model = LogSparseNMF(3, **weights, **PLAIN, tol=0, max_iter=steps, n_neighbors=4)
    assert_equals_oracle(model, X, FORMATS[fmt](X), *start(rng, X, 3), weights)


@given(
    seed=st.integers(0, 2**16),
    weights=st.tuples(powers, powers, powers, powers),
    penalty=st.sampled_from(["log", "l1"]),
    row_norm=st.sampled_from(["l2log", "l21"]),
    fmt=st.sampled_from(list(FORMATS)),
    steps=st.sampled_from([1, 10, 50]),
    scaled=st.booleans(),
)
def test_robust(seed, weights, penalty, row_norm, fmt, steps, scaled):
    rng = np.random.default_rng(seed)
    X = samples(rng, 14, 10, density=0.6)
    U0, V0 = start(rng, X, 3)
    if scaled:  # at the data's scale some samples are outliers and some are not
        V0 *= 0.2
    weights = dict(zip(("alpha", "beta", "lam", "gamma"), weights, strict=True))
    weights |= {"penalty": penalty, "row_norm": row_norm}
    model = RobustLogSparseNMF(3, **weights, **PLAIN, tol=0, max_iter=steps, n_neighbors=4)
    U, V = assert_equals_oracle(model, X, FORMATS[fmt](X), U0, V0, weights)
    S = oracle.shrink(X.T - U @ V.T, weights["gamma"] / 2, row_norm).T
    np.testing.assert_allclose(model.outliers(), S, atol=1e-10)
    np.testing.assert_allclose(model.outlier_norm_, np.linalg.norm(S, axis=1), atol=1e-10)
    assert ((model.outlier_share_ >= 0) & (model.outlier_share_ <= 1)).all()
    assert (X - model.outliers() >= -1e-15).all()


def test_s_is_not_made_from_the_new_basis(rng):
    """The trap of the cross Gram matrix: one step with many outliers."""
    X = samples(rng, 20, 8)
    U0, V0 = start(rng, X, 2)
    weights = {"alpha": 0.01, "beta": 0.01, "lam": 0.1, "gamma": 0.05}
    model = RobustLogSparseNMF(2, **weights, **PLAIN, tol=0, max_iter=1)
    assert_equals_oracle(model, X, X, U0, V0, weights)
    assert (model.outlier_share_ > 0).any()


class TestNesting:
    @pytest.fixture
    def X(self, rng):
        return samples(rng, 25, 12)

    @pytest.fixture
    def UV(self, rng, X):
        U, V = start(rng, X, 4)
        return {"U0": U, "V0": 0.1 * V}

    def test_inactive_outliers_are_the_plain_model(self, X, UV):
        options = {"alpha": 0.01, "beta": 0.1, "lam": 1.0, "tol": 0, "max_iter": 60}
        plain = LogSparseNMF(4, **options).fit(X, **UV)
        robust = RobustLogSparseNMF(4, gamma=1000.0, **options).fit(X, **UV)
        assert (robust.outlier_share_ == 0).all()
        np.testing.assert_array_equal(plain.components_, robust.components_)
        np.testing.assert_array_equal(plain.embedding_, robust.embedding_)

    def test_without_sparsity_it_is_gnmf(self, X, UV):
        lam, T = 5.0, 30
        options = {**PLAIN, "tol": 0, "max_iter": T}
        model = LogSparseNMF(4, alpha=0, beta=0, lam=lam, **options).fit(X, **UV)
        U, V, W = UV["U0"], UV["V0"], model.graph_.toarray()
        D = np.diag(W.sum(axis=1))
        for _ in range(T):
            U = U * (X.T @ V) / (U @ V.T @ V)
            V = V * (X @ U + lam * W @ V) / (V @ U.T @ U + lam * D @ V)
        np.testing.assert_allclose(model.embedding_, V, rtol=1e-10)
        np.testing.assert_allclose(model.components_, U.T, rtol=1e-10)

    def test_without_any_weight_it_is_scikit_learns_nmf(self, X, UV):
        from sklearn.decomposition import non_negative_factorization

        T = 20
        options = {**PLAIN, "tol": 0, "max_iter": T}
        model = LogSparseNMF(4, alpha=0, beta=0, lam=0, **options).fit(X, **UV)
        # Theirs updates V first; so hand it our V₀ and the U that one of our half steps makes.
        U0, V0 = UV["U0"], UV["V0"]
        U1 = U0 * (X.T @ V0) / (U0 @ V0.T @ V0)
        V, _, _ = non_negative_factorization(
            X, W=V0.copy(), H=U1.T.copy(), n_components=4, init="custom", solver="mu", tol=0, max_iter=T
        )
        np.testing.assert_allclose(model.embedding_, V, rtol=1e-9, atol=1e-12)

    def test_no_graph_weight_needs_no_graph(self, X, UV):
        options = {"lam": 0, "tol": 0, "max_iter": 20}
        without = LogSparseNMF(4, graph=None, **options).fit(X, **UV)
        never_built = LogSparseNMF(4, **options).fit(X, **UV)
        assert without.graph_ is None
        assert never_built.graph_ is None
        np.testing.assert_array_equal(without.embedding_, never_built.embedding_)

    def test_given_graph(self, X, UV):
        W = knn_graph(X, 5)
        built = LogSparseNMF(4, tol=0, max_iter=20).fit(X, **UV)
        for given_graph in (W, sp.coo_matrix(W), W.toarray()):
            given_one = LogSparseNMF(4, graph=given_graph, tol=0, max_iter=20).fit(X, **UV)
            np.testing.assert_array_equal(built.embedding_, given_one.embedding_)


def test_outliers_by_the_public_shrinkage(rng):
    X = samples(rng, 30, 12)
    X[3] = rng.permutation(np.eye(12)[0])
    model = RobustLogSparseNMF(3, gamma=0.5, random_state=0).fit(X)
    S = shrink_l2_log(X - model.embedding_ @ model.components_, 0.25)
    np.testing.assert_allclose(model.outliers(), S, atol=1e-12)
