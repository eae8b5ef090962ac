"""The same core on every array library: NumPy, array-api-strict, torch on a CPU or a GPU."""

import numpy as np
import pytest
from sklearn.base import clone

from lognmf import MODELS, knn_graph
from lognmf.core.arrays import is_torch, like, to_numpy
from lognmf.core.data import InMemory
from lognmf.core.loop import iterate
from lognmf.core.solvers import SOLVERS
from lognmf.core.solvers.encode import encode
from lognmf.core.terms import LOSSES, PENALTIES, ROW_NORMS, Frobenius
from lognmf.models.log_sparse import regularised
from problems import code_problem, factors, fit_of, monotone, pattern, samples, weights

WEIGHTS = np.array([[0.0, 0.01, 1.0], [0.1, 0.01, 0.5], [1.0, 0.0, 10.0], [0.5, 0.1, 1.0]])


@pytest.fixture(params=["numpy", "array-api-strict", "torch-cpu", "torch-cuda"])
def home(request):
    return pattern(request.param)


def solve(home, fit, penalty, X, U, V, steps=40):
    alpha, beta, lam, gamma = (like(weight, home) for weight in WEIGHTS)
    data = like(X, home)
    data_fit = fit_of(fit, gamma)
    weights = {"alpha": alpha, "beta": beta, "lam": lam}
    problem = regularised(InMemory(data), data_fit, W=knn_graph(X, 3), penalty=penalty, **weights)
    rule = SOLVERS["mu"].of(problem)
    return iterate(rule, rule.start(like(U, home), like(V, home)), max_iter=steps, tol=1e-3, eval_every=5)


@pytest.mark.parametrize("fit", [*LOSSES, *ROW_NORMS])
@pytest.mark.parametrize("penalty", PENALTIES)
def test_core_equals_numpy(home, fit, penalty, rng):
    X = samples(rng, 15, 10)
    U, V = factors(rng, X, 3, 4)
    ours = solve(home, fit, penalty, X, U, V)
    reference = solve(np.empty(0), fit, penalty, X, U, V)
    assert type(ours.state.U) is type(home)
    np.testing.assert_allclose(to_numpy(ours.state.U), reference.state.U, rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(to_numpy(ours.state.V), reference.state.V, rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(ours.history["objective"], reference.history["objective"], rtol=1e-11)
    assert ours.reason == reference.reason


@pytest.mark.parametrize("row_norm", [None, *ROW_NORMS])
def test_codes_equal_numpy(home, row_norm, rng):
    X, U = samples(rng, 15, 10), rng.random((10, 4))

    def codes(home):
        norm = None if row_norm is None else ROW_NORMS[row_norm]()
        problem = code_problem(like(X, home), penalty=PENALTIES["log"], beta=0.01, row_norm=norm, gamma=0.5)
        return to_numpy(encode(problem, like(U, home)))

    np.testing.assert_allclose(codes(home), codes(np.empty(0)), atol=1e-8)


def test_close_fit_keeps_digits(home, rng):
    U, V = rng.random((9, 2, 2)), rng.random((500, 2, 2))
    noise = 1e-7 * rng.random((500, 9))
    X = V[:, 0] @ U[:, 0].T + noise
    data = InMemory(like(X, home))
    U, V = like(U, home), like(V, home)
    squared = to_numpy(Frobenius().squared_residuals(data, U, V, data.times(U)))
    np.testing.assert_allclose(squared[:, 0], (noise**2).sum(axis=1), rtol=1e-5)


class TestTorchEstimators:
    @pytest.fixture(params=["torch-cpu", "torch-cuda"])
    def torch_home(self, request):
        return pattern(request.param)

    @pytest.mark.parametrize("name", ["LS-NMF", "RLS-NMF"])
    def test_defaults(self, name, torch_home, rng):
        """Start, scale and weights as a user gets them, by the solver that both libraries have."""
        X = samples(rng, 60, 12)
        one = MODELS[name](3, solver="mu", max_iter=100, random_state=0)
        model, twin = (clone(one).fit(data) for data in (like(X, torch_home), X))
        assert is_torch(model.embedding_)
        assert model.n_iter_ == twin.n_iter_
        np.testing.assert_allclose([model.alpha_, model.beta_], [twin.alpha_, twin.beta_], rtol=1e-6)
        np.testing.assert_allclose(to_numpy(model.embedding_), twin.embedding_, atol=1e-6)
        np.testing.assert_allclose(np.linalg.norm(to_numpy(model.components_), axis=1), 1, rtol=1e-12)

    @pytest.mark.parametrize("name", MODELS)
    @pytest.mark.parametrize("single", [False, True])
    def test_torch_in_torch_out(self, name, single, torch_home, rng):
        X = samples(rng, 30, 12).astype(np.float32 if single else np.float64)
        tensor = like(X, torch_home.float() if single else torch_home)
        steps = 40 if monotone(MODELS[name]) else 10  # an augmented Lagrangian method amplifies rounding
        options = {"n_components": 3, "max_iter": steps, "random_state": 0, "n_init": 1 if single else 2}
        if (
            "scaled" in MODELS[name].spec.starts
        ):  # spectral starts are often alike, so that rounding picks one
            options["init"] = "scaled"
        if MODELS[name].spec.auto:
            options |= {"solver": "mu", **weights(MODELS[name])}
        model, twin = MODELS[name](**options).fit(tensor), MODELS[name](**options).fit(X)
        results = {
            "components_": (model.components_, twin.components_),
            "embedding_": (model.embedding_, twin.embedding_),
            "transform": (model.transform(tensor), twin.transform(X)),
            "inverse": (model.inverse_transform(model.embedding_), twin.inverse_transform(twin.embedding_)),
        }
        if hasattr(model, "outliers"):
            results["outliers"] = (model.outliers(), twin.outliers())
            results["share"] = (model.outlier_share_, twin.outlier_share_)
        for what, (ours, theirs) in results.items():
            assert is_torch(ours), what
            assert ours.device == tensor.device, what
            assert ours.dtype == tensor.dtype, what
            np.testing.assert_allclose(to_numpy(ours), theirs, atol=2e-3 if single else 1e-9, err_msg=what)
        np.testing.assert_allclose(model.objective_, twin.objective_, rtol=1e-4 if single else 1e-10)
        # A model fitted on one library codes samples of the other.
        np.testing.assert_allclose(model.transform(X), twin.transform(X), atol=2e-3 if single else 1e-9)
        assert is_torch(twin.transform(tensor))

    @pytest.mark.parametrize("name", MODELS)
    def test_bad_tensors(self, name, torch_home):
        torch = pytest.importorskip("torch", reason="torch is an extra")
        good = torch.rand((10, 5), device=torch_home.device)
        bad = {
            r"shape \(samples, features\)": good[0],
            "Negative values": -good,
            "infinity": good / 0 + good,
            "Complex data": good.to(torch.complex64),
            "at least one sample": good[:0],
        }
        for words, X in bad.items():
            if words == "Negative values" and MODELS[name].spec.signed:
                continue
            with pytest.raises(ValueError, match=words):
                MODELS[name](2).fit(X)
        with pytest.raises(TypeError, match="dense tensors and sparse ones in CSR"):
            MODELS[name](2).fit(good.to_sparse())
        model = MODELS[name](2, max_iter=2).fit(good)
        with pytest.raises(ValueError, match="expecting 5 features"):
            model.transform(good[:, :3])

    def test_integers_gradients_and_half_precision(self, torch_home):
        torch = pytest.importorskip("torch", reason="torch is an extra")
        X = torch.randint(0, 9, (10, 5), device=torch_home.device)
        fit = MODELS["LS-NMF"](2, max_iter=2).fit
        assert fit(X).components_.dtype == torch.float64
        assert fit(X.half()).components_.dtype == torch.float32
        assert not fit(X.float().requires_grad_()).components_.requires_grad
