"""Every solver in every model that has solvers: one contract for all of them."""

import itertools

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.datasets import load_digits
from sklearn.preprocessing import normalize

from lognmf import MODELS, fit_grid
from lognmf.core.arrays import product
from lognmf.core.solvers import SOLVERS
from lognmf.core.terms import PENALTIES, ROW_NORMS
from models.test_input import DEGENERATE
from problems import peak_numbers, samples, weights

CHOICES = {"solver": SOLVERS, "penalty": PENALTIES, "row_norm": ROW_NORMS, "unit_components": (False, True)}


def variants():
    """Every model with every choice of its solver, penalty, row norm and scale."""
    for name, cls in MODELS.items():
        params = cls().get_params()
        if "solver" in params:
            options = {key: list(values) for key, values in CHOICES.items() if key in params}
            for values in itertools.product(*options.values()):
                label = "-".join((name, *map(str, values)))
                yield pytest.param(cls, dict(zip(options, values, strict=True)) | weights(cls), id=label)


each = pytest.mark.parametrize(("cls", "options"), list(variants()))


@pytest.fixture(scope="module")
def digits():
    return normalize(load_digits().data[:60])


def falls(model, tolerance=1e-12, of_the_first=0.0):
    objective = model.history_["objective"]
    room = tolerance * np.abs(objective[:-1]) + of_the_first * objective[0] + 1e-13
    return (np.diff(objective) <= room).all()


def test_a_bad_solver_can_be_shown():
    """Tags and the page of an unfitted estimator do not need it; `fit` refuses it."""
    model = MODELS["LS-NMF"](solver="fast")
    assert "fast" in model._repr_html_()
    with pytest.raises(ValueError, match="solver must be one of"):
        model.fit(np.ones((5, 4)))


@each
class TestContract:
    def test_never_rises_finite_nonnegative(self, cls, options, digits):
        for init, dtype in (("random", np.float64), ("spectral", np.float64), ("scaled", np.float32)):
            model = cls(5, init=init, max_iter=30, tol=0, eval_every=1, random_state=0, **options)
            V = model.fit_transform(digits.astype(dtype))
            assert model.n_iter_ == 30
            assert falls(model, 1e-12 if dtype == np.float64 else 1e-5)
            assert V.dtype == model.components_.dtype == dtype
            for F in (V, model.components_):
                assert np.isfinite(F).all()
                assert (F >= 0).all()
            if options.get("unit_components"):
                norms = np.linalg.norm(model.components_, axis=1)
                np.testing.assert_allclose(norms[norms > 0], 1, rtol=1e-5)

    def test_restarts_are_a_batch_and_the_best_wins(self, cls, options, digits):
        options = options | {"max_iter": 20, "tol": 1e-4, "init": "scaled"}
        many = cls(4, n_init=3, random_state=0, **options).fit(digits)
        rng = np.random.RandomState(0)
        single = [cls(4, random_state=rng, **options).fit(digits) for _ in range(3)]
        best = min(single, key=lambda model: model.objective_)
        np.testing.assert_allclose(many.objective_, best.objective_, rtol=1e-10)
        np.testing.assert_allclose(many.embedding_, best.embedding_, atol=1e-8)
        assert many.n_iter_ == best.n_iter_

    def test_sparse_is_dense(self, cls, options, digits):
        X = digits * (digits > 0.1)
        dense, sparse = (
            cls(4, max_iter=15, random_state=0, **options).fit(data) for data in (X, sp.csr_array(X))
        )
        np.testing.assert_allclose(dense.embedding_, sparse.embedding_, atol=1e-8)
        np.testing.assert_allclose(dense.components_, sparse.components_, atol=1e-8)

    def test_given_factors_and_warm_start(self, cls, options, digits):
        rng = np.random.default_rng(0)
        U0, V0 = rng.random((64, 4)), rng.random((60, 4))
        model = cls(4, max_iter=30, tol=0, warm_start=True, random_state=0, **options)
        before = model.fit(digits, U0=U0, V0=V0).objective_
        first = model.history_["objective"][0]
        assert before < first
        after = model.fit(digits)
        assert after.history_["objective"][0] <= before * (1 + 1e-9)
        assert after.objective_ <= before * (1 + 1e-9)

    def test_tolerance_stops(self, cls, options, digits):
        model = cls(4, max_iter=3000, tol=1e-3, random_state=0, **options).fit(digits)
        assert model.stop_reason_ == "converged"
        assert model.n_iter_ < 3000
        assert model.history_["iteration"][-1] == model.n_iter_
        assert model.history_["objective"][-1] == model.objective_
        residual = np.linalg.norm(digits - model.inverse_transform(model.embedding_))
        np.testing.assert_allclose(residual, model.reconstruction_err_, rtol=1e-9)

    def test_no_iterations(self, cls, options, digits):
        model = cls(4, max_iter=0, random_state=0, **options).fit(digits)
        assert model.n_iter_ == 0
        assert np.isfinite(model.objective_)


@pytest.mark.parametrize("case", DEGENERATE)
@pytest.mark.parametrize(
    ("name", "unit_components"),
    [("NMF", None), ("GNMF", None), *itertools.product(("LS-NMF", "RLS-NMF"), (False, True))],
)
@pytest.mark.parametrize("zero", [True, False])
def test_degenerate_data(case, name, unit_components, zero, rng):
    """The new combinations; tests/models/test_input.py has the others."""
    cls = MODELS[name]
    params = cls().get_params()
    X = DEGENERATE[case](rng)
    given = dict.fromkeys(cls.spec.weights, 0.0) | {"gamma": 1.0} if zero else weights(cls) | {"lam": 100.0}
    given = {key: value for key, value in given.items() if key in params}
    for solver in SOLVERS if unit_components else ["cd"]:
        options = (
            given
            | ({} if unit_components is None else {"unit_components": unit_components})
            | {"solver": solver}
        )
        model = cls(5, max_iter=15, eval_every=1, random_state=0, **options).fit(X)
        for F in (model.embedding_, model.components_, model.history_["objective"]):
            assert np.isfinite(F).all()
            assert (F >= 0).all()
        # A sample of 1e150 is fitted up to its rounding, which is all that is left to see.
        assert falls(model, 1e-10 if model.components_.dtype == np.float64 else 1e-5, of_the_first=1e-13)
        assert np.isfinite(model.transform(X)).all()


@pytest.mark.parametrize("name", ["NMF", "LS-NMF", "RLS-NMF"])
class TestFastInCompany:
    def test_grid(self, name, digits):
        params = MODELS[name]().get_params()
        grid = {"n_components": [3], "lam": [0.1, 10.0]} if "lam" in params else {"n_components": [3]}
        model = MODELS[name](solver="cd", max_iter=20)
        result = fit_grid(model, digits, grid, seeds=[0, 1], n_clusters=4)
        for i, row in enumerate(result.rows):
            np.testing.assert_allclose(result.model(i).objective_, row["objective"], rtol=1e-9)

    def test_better_than_multiplicative_updates(self, name, digits):
        mu, cd = (MODELS[name](6, solver=s, random_state=0, max_iter=100, tol=0).fit(digits) for s in SOLVERS)
        assert cd.objective_ < mu.objective_


def test_outliers_of_a_fast_fit_belong_to_it(rng):
    X = samples(rng, 30, 12)
    model = MODELS["RLS-NMF"](3, solver="cd", gamma=0.3, random_state=0).fit(X)
    S = model.outliers()
    np.testing.assert_allclose(np.linalg.norm(S, axis=1), model.outlier_norm_, atol=1e-9)
    fit = product(X, model.components_.T[:, None, :])
    assert fit.shape == (30, 1, 3)


def test_normalized_gnmf_has_the_value_of_its_factors(rng):
    X = samples(rng, 30, 12)
    model = MODELS["GNMF"](3, solver="cd", lam=1.0, normalize=True, random_state=0).fit(X)
    np.testing.assert_allclose(np.linalg.norm(model.components_, axis=1), 1)
    W, V = model.graph_, model.embedding_
    value = np.linalg.norm(X - V @ model.components_) ** 2
    value += np.sum(V * (W.sum(axis=1)[:, None] * V - W @ V))
    np.testing.assert_allclose(model.objective_, value, rtol=1e-9)


@pytest.mark.parametrize("name", ["LS-NMF", "RLS-NMF"])
@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("unit_components", [False, True])
def test_memory(name, solver, unit_components, rng):
    """Beyond X at most 12·(n + p)·k numbers, as for every model (tests/models/test_behaviour.py)."""
    n, p, k = 300, 500, 10
    X = rng.random((n, p))
    options = weights(MODELS[name]) | {"init": "scaled", "graph": None, "max_iter": 30, "random_state": 0}
    model = MODELS[name](k, solver=solver, unit_components=unit_components, **options)
    assert peak_numbers(model, X) <= 12 * (n + p) * k
