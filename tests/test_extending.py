"""A new penalty, solver or model is one file and one line, and works wherever the others do.

The classes below stand for the file; one entry in a dict is the line.
"""

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
import pytest

from lognmf import MODELS, fit_grid, load_model, save_model, tune
from lognmf.core.arrays import namespace, take, total
from lognmf.core.problem import Problem
from lognmf.core.rule import State
from lognmf.core.solvers import SOLVERS
from lognmf.core.terms import PENALTIES, Frobenius, unless_zero
from lognmf.models.base import FactorModel, Spec, TermsModel
from lognmf.models.weights import Chooser
from problems import moves, samples


@dataclass(frozen=True)
class Ridge:
    """``weight · Σ F²``."""

    weight: np.ndarray

    quadratic: ClassVar[bool] = True

    def value(self, F):
        return self.weight * total(F**2, axis=(0, 2))

    def halves(self, F):
        return lambda rows: (None, self.weight[:, None] * F[rows, ...])

    def minimise(self, curvature, slope, weight, at):
        best = slope / (curvature + weight)
        return namespace(best).where(best > 0, best, 0 * best)

    def take(self, index):
        return replace(self, weight=take(self.weight, index, axis=0))

    @staticmethod
    def cost(x):
        return x * x

    @staticmethod
    def slope(x):
        return 2.0 * x

    @staticmethod
    def minimum(curvature, slope, weight, at):
        return max(slope / (curvature + weight), 0.0)


@dataclass(frozen=True)
class ProjectedGradient:
    """Steps along the negative gradient, projected, with the step length of a quadratic bound."""

    problem: Problem

    @staticmethod
    def refuses(problem):
        return None if isinstance(problem.fit, Frobenius) else 'solver="pg" minimises squared errors only.'

    @classmethod
    def of(cls, problem, unit_components=False):
        return cls(problem)

    def start(self, U, V):
        return State(U, V, (self.problem.data.times(U),))

    def step(self, state):
        fit, data = self.problem.fit, self.problem.data
        U, V, (XU,) = state.U, state.V, state.aux
        kept = fit.separate(data, U, V, XU)
        U = self._moved(U, fit.halves_U(U, fit.sums(data, U, V, kept)), self.problem.on_U, V)
        XU = data.times(U)
        V = self._moved(V, fit.halves_V(data, U, V, XU, kept, U), self.problem.on_V, U)
        return State(U, V, (XU,))

    @staticmethod
    def _moved(F, own, penalties, other):
        slope = 0.0
        for neg, pos in [own(slice(None)), *(p.halves(F)(slice(None)) for p in penalties)]:
            slope = slope + pos - (0.0 if neg is None else neg)
        length = np.einsum("nbk,nbk->b", other, other) + sum(20.0 * p.weight for p in penalties) + 1e-12
        return np.maximum(F - slope / length[:, None], 0)

    def value(self, state):
        return self.problem.value(*self.factors(state))

    def factors(self, state):
        return state.U, state.V, state.aux[0]

    def squared_error(self, state):
        return self.problem.squared_error(*self.factors(state))

    def take(self, index):
        return ProjectedGradient(self.problem.take(index))


class RidgeNMF(TermsModel):
    """``‖X − V Uᵀ‖² + ridge · ‖U‖²``, a user's own model with a weight of its own."""

    spec = Spec(weights=("ridge",), blocks=True)

    def __init__(
        self, n_components=3, *, ridge=0.1, init="random", n_init=1, solver="mu", max_iter=20, tol=1e-5,
        eval_every=10, warm_start=False, random_state=None, verbose=0,
    ):  # fmt: skip
        self.n_components, self.ridge, self.init, self.n_init = n_components, ridge, init, n_init
        self.solver, self.max_iter, self.tol, self.eval_every = solver, max_iter, tol, eval_every
        self.warm_start, self.random_state, self.verbose = warm_start, random_state, verbose

    def _problem(self, data, W, weights):
        return Problem(data, Frobenius(), unless_zero(weights["ridge"], Ridge))


@pytest.fixture
def X(rng):
    return samples(rng, 30, 12)


def agrees(row, model):
    np.testing.assert_allclose(row["objective"], model.objective_, rtol=1e-9)


class TestPenalty:
    @pytest.fixture(autouse=True)
    def line(self, monkeypatch):
        monkeypatch.setitem(PENALTIES, "ridge", Ridge)

    @pytest.mark.parametrize("solver", SOLVERS)
    @pytest.mark.parametrize("name", ["LS-NMF", "RLS-NMF"])
    def test_every_solver_and_grid_and_file(self, name, solver, X, tmp_path):
        options = {"alpha": 0.5, "beta": 0.5, "lam": 0.1, "solver": solver, "max_iter": 40, "tol": 0}
        model = MODELS[name](3, penalty="ridge", eval_every=1, random_state=0, **options).fit(X)
        others = [MODELS[name](3, penalty=p, random_state=0, **options).fit(X) for p in ("log", "l1")]
        assert (np.diff(model.history_["objective"]) <= 1e-10).all()
        for other in others:
            assert not np.allclose(model.components_, other.components_)
        result = fit_grid(MODELS[name](3, **options), X, {"penalty": ["ridge", "log"]})
        for i, row in enumerate(result.rows):
            agrees(row, result.model(i))
        loaded = load_model(save_model(model, tmp_path / "model"))
        np.testing.assert_allclose(loaded.transform(X), model.transform(X))

    def test_codes_minimise_it(self, X):
        """Least squares with a ridge has a closed form where nothing is negative."""
        model = MODELS["LS-NMF"](2, penalty="ridge", beta=0.3, lam=0, random_state=0).fit(X)
        U = model.components_.T
        exact = np.linalg.solve(U.T @ U + 0.3 * np.eye(2), U.T @ X.T).T
        inside = (exact > 1e-6).all(axis=1)
        assert inside.any()
        np.testing.assert_allclose(model.transform(X)[inside], exact[inside], atol=1e-6)

    def test_the_command_line_takes_it(self, X, tmp_path, capsys):
        pytest.importorskip("typer")
        from lognmf.cli.main import main

        np.save(tmp_path / "data.npy", X)
        command = ["fit", str(tmp_path / "data.npy"), "-k", "2", "--model", "ls-nmf", "--penalty", "ridge"]
        with pytest.raises(SystemExit) as ended:
            main([*command, "--max-iter", "5", "--out", str(tmp_path / "out")])
        assert not ended.value.code, capsys.readouterr().err
        assert load_model(tmp_path / "out" / "model.npz").penalty == "ridge"


class TestSolver:
    @pytest.fixture(autouse=True)
    def line(self, monkeypatch):
        monkeypatch.setitem(SOLVERS, "pg", ProjectedGradient)

    @pytest.mark.parametrize("name", ["NMF", "GNMF", "WNMF", "LS-NMF"])
    def test_every_model_of_terms(self, name, X, tmp_path):
        model = MODELS[name](3, solver="pg", init="scaled", max_iter=50, random_state=0).fit(X)
        assert model.objective_ < model.history_["objective"][0]
        result = fit_grid(MODELS[name](3, max_iter=10), X, {"solver": ["pg", "mu"]})
        for i, row in enumerate(result.rows):
            agrees(row, result.model(i))
        assert load_model(save_model(model, tmp_path / "model")).solver == "pg"

    def test_what_it_cannot_do_it_says(self, X):
        with pytest.raises(ValueError, match='solver="pg" minimises squared errors only'):
            MODELS["RLS-NMF"](3, solver="pg").fit(X)
        with moves() as seen, pytest.raises(ValueError, match='solver="pg" minimises squared errors only'):
            fit_grid("RLS-NMF", X, {"solver": ["mu", "pg"]})
        assert seen.counts == []


class TestModel:
    @pytest.mark.parametrize("solver", SOLVERS)
    def test_without_a_line(self, solver, X, tmp_path):
        model = RidgeNMF(3, solver=solver, random_state=0).fit(X)
        assert isinstance(model, FactorModel)
        result = fit_grid(RidgeNMF(solver=solver), X, {"ridge": [0.0, 0.1, 10.0]}, seeds=[0, 1])
        for i, row in enumerate(result.rows):
            agrees(row, result.model(i))
        loaded = load_model(save_model(model, tmp_path / "model"), classes=[RidgeNMF])
        np.testing.assert_array_equal(loaded.components_, model.components_)
        assert model.transform(X).shape == (30, 3)

    def test_tuned(self, X):
        tuned = tune(X, 3, model=RidgeNMF(), grid={"ridge": [0.1, 1.0]}, seeds=[0])
        assert tuned.setting["ridge"] in (0.1, 1.0)
        assert tune(X, 3, model=RidgeNMF(), seeds=[0], max_iter=5).model.ridge == 0.1

    def test_its_weight_may_be_auto(self, X):
        """What chooses it is a function of a fit without it."""

        def half_of_the_scale(setup, fit, names):
            assert names == ["ridge"]
            assert fit.weights["ridge"].tolist() == [0.0] * len(fit.n_iter)
            return fit.moved(fit.state, {"ridge": 0.5 * fit.data_term})

        class Chosen(RidgeNMF):
            spec = replace(RidgeNMF.spec, auto={"ridge": Chooser(0.0, half_of_the_scale)})

        model = Chosen(3, ridge="auto", random_state=0).fit(X)
        plain = RidgeNMF(3, ridge=0.0, random_state=0).fit(X)
        assert model.ridge_ == pytest.approx(0.5 * plain.objective_)
        assert model.objective_ > plain.objective_
        result = fit_grid(Chosen(3), X, {"ridge": ["auto"]}, seeds=[0, 1])
        assert result.rows[0]["ridge_"] == pytest.approx(model.ridge_)
        agrees(result.rows[0], model)
        with pytest.raises(TypeError, match="ridge must be a finite number >= 0"):
            RidgeNMF(3, ridge="auto").fit(X)

    def test_with_a_line(self, X, monkeypatch):
        from lognmf import compare

        monkeypatch.setitem(MODELS, "Ridge-NMF", RidgeNMF)
        assert fit_grid("Ridge-NMF", X, {"ridge": [0.5]}).rows[0]["ridge"] == 0.5
        rows = compare(X, 3, models=["ridge-nmf", "NMF"], max_iter=5, references=False)
        assert {row.model for row in rows if row.error is None} == {"Ridge-NMF", "NMF"}

    def test_its_parameters_mean_what_it_says(self, X):
        """Names that our own models use too: nothing is known of them."""

        class Other(RidgeNMF):
            spec = Spec(weights=("lam", "gamma"))

            def __init__(
                self, n_components=3, *, lam=0.1, gamma=0.1, graph=None, init="random", n_init=1, solver="mu",
                max_iter=10, tol=0.0, eval_every=5, warm_start=False, random_state=None, verbose=0,
            ):  # fmt: skip
                super().__init__(
                    n_components, init=init, n_init=n_init, solver=solver, max_iter=max_iter, tol=tol
                )
                del self.ridge
                self.lam, self.gamma, self.graph, self.eval_every = lam, gamma, graph, eval_every
                self.n_neighbors = 5
                self.random_state = random_state

            def _problem(self, data, W, weights):
                return Problem(data, Frobenius(), (Ridge(weights["lam"]),), (Ridge(weights["gamma"]),))

        grid = {"lam": [0.1, 10.0], "gamma": [0.0, 1.0, 100.0]}
        result = fit_grid(Other(), X, grid)
        assert len({round(row["objective"], 8) for row in result.rows}) == 6
