"""Restarts, warm starts, progress, interruption; transform; the company of other libraries."""

import pickle
import re
import signal
import subprocess
import sys
import textwrap
import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.datasets import load_digits
from sklearn.exceptions import ConvergenceWarning
from sklearn.preprocessing import normalize

from lognmf import MODELS, LogSparseNMF, RobustLogSparseNMF, in_blocks, load_model, save_model
from problems import make, monotone, names, peak_numbers, samples, start, weights


@pytest.fixture(params=MODELS)
def cls(request):
    return MODELS[request.param]


@pytest.fixture(scope="module")
def digits():
    return normalize(load_digits().data[:200])


class TestFit:
    def test_restarts_are_a_batch_and_the_best_wins(self, cls, digits):
        options = {"max_iter": 40, "tol": 1e-4, **weights(cls)}
        if "scaled" in cls.spec.starts:  # spectral starts are often alike, so that rounding picks one
            options["init"] = "scaled"
        many = cls(6, n_init=4, random_state=0, **options).fit(digits)
        rng = np.random.RandomState(0)
        single = [cls(6, random_state=rng, **options).fit(digits) for _ in range(4)]
        best = min(single, key=lambda model: model.objective_)
        np.testing.assert_allclose(many.objective_, best.objective_, rtol=1e-12)
        np.testing.assert_allclose(many.embedding_, best.embedding_, atol=1e-10)
        assert many.n_iter_ == best.n_iter_
        assert many.history_["objective"].shape == many.history_["iteration"].shape

    def test_same_seed_same_result(self, cls, digits):
        first, second = (cls(5, max_iter=20, random_state=7).fit_transform(digits) for _ in range(2))
        np.testing.assert_array_equal(first, second)

    def test_result_does_not_depend_on_how_often_one_looks(self, cls, digits):
        model = cls(5, max_iter=30, tol=0, random_state=0, **weights(cls))
        runs = [model.set_params(eval_every=e).fit_transform(digits) for e in (1, 7, 100)]
        for V in runs[1:]:
            np.testing.assert_array_equal(V, runs[0])

    def test_warm_start_goes_on(self, cls, digits):
        if not monotone(cls):
            pytest.skip("an augmented Lagrangian method starts anew: its multipliers are not kept")
        options = {"tol": 0, "random_state": 0, **weights(cls)}
        options |= {"solver": "mu"} if hasattr(cls, "solver") else {}  # the others carry more than U and V
        straight = cls(5, max_iter=40, **options).fit(digits)
        pieces = cls(5, max_iter=20, warm_start=True, **options).fit(digits).fit(digits)
        np.testing.assert_allclose(pieces.embedding_, straight.embedding_, rtol=1e-12, atol=1e-14)
        with pytest.raises(ValueError, match="warm_start continues a fit of the same shape"):
            pieces.fit(digits[:50])

    def test_one_given_factor(self, cls, digits):
        for name in names(cls):
            first = {name: start(cls, digits, 5)[name]}
            model = cls(5, max_iter=3, n_init=2, random_state=0).fit(digits, **first)
            assert model.components_.shape == (5, 64)

    def test_history(self, cls, digits):
        model = cls(5, max_iter=25, tol=0, random_state=0).fit(digits)
        assert model.history_["iteration"].tolist() == [0, 10, 20, 25]
        assert model.history_["objective"][-1] == model.objective_
        assert (np.diff(model.history_["objective"]) < 0).all() or not monotone(cls)

    def test_converged(self, cls, digits):
        model = cls(5, max_iter=5000, tol=1e-3, random_state=0).fit(digits)
        assert model.stop_reason_ == "converged"
        assert model.n_iter_ < 5000

    def test_parameters_are_not_touched(self, cls, digits):
        model = cls(5, max_iter=3)
        before = dict(model.get_params())
        model.fit(digits)
        assert model.get_params() == before


class TestTransform:
    def test_new_samples_are_solved_to_tolerance(self, digits):
        """Against SciPy's nonnegative least squares, where there is nothing but the data term."""
        from scipy.optimize import nnls

        model = LogSparseNMF(8, alpha=0, beta=0, lam=0, random_state=0).fit(digits[:150])
        V = model.transform(digits[150:])
        exact = np.array([nnls(model.components_.T, x)[0] for x in digits[150:]])
        error = [np.linalg.norm(digits[150:] - codes @ model.components_, axis=1) for codes in (V, exact)]
        np.testing.assert_allclose(error[0], error[1], rtol=1e-4)

    def test_better_than_the_codes_of_the_fit_without_graph(self, cls, digits):
        model = make(cls, 8, lam=0, beta=0, alpha=0, random_state=0).fit(digits)
        again = np.linalg.norm(digits - model.transform(digits) @ model.components_)
        assert again <= model.reconstruction_err_ * (1 + 1e-6)

    def test_samples_do_not_depend_on_their_company(self, cls, digits):
        model = cls(6, random_state=0, max_iter=50).fit(digits)
        together = model.transform(digits)
        alone = np.concatenate([model.transform(digits[i : i + 1]) for i in range(20)])
        np.testing.assert_allclose(together[:20], alone, atol=1e-10)

    def test_sparse_and_dense_agree(self, cls, digits):
        if not cls.spec.sparse:
            pytest.skip(f"{cls.__name__} takes no sparse data")
        dense, sparse = (cls(6, random_state=0, max_iter=50).fit(X) for X in (digits, sp.csr_matrix(digits)))
        np.testing.assert_allclose(dense.embedding_, sparse.embedding_, atol=1e-10)
        np.testing.assert_allclose(dense.transform(digits), sparse.transform(sp.coo_array(digits)), atol=1e-8)

    def test_unseen_outliers_are_found(self, digits, rng):
        model = RobustLogSparseNMF(10, gamma=0.5, lam=0.1, random_state=0).fit(digits[:150])
        fresh = digits[150:].copy()
        strange = [3, 17, 30]
        fresh[strange] = normalize(rng.random((3, 64)) * (rng.random((3, 64)) < 0.1))
        scores = np.linalg.norm(model.outliers(fresh), axis=1)
        assert set(np.argsort(scores)[-3:]) == set(strange)
        assert (fresh - model.outliers(fresh) >= -1e-15).all()
        np.testing.assert_array_equal(model.is_outlier(fresh), scores > 0)
        np.testing.assert_array_equal(model.is_outlier(in_blocks(fresh, rows=20)), scores > 0)
        with pytest.raises(ValueError, match="those of the fit have is_outlier_"):
            model.is_outlier(None)
        known = model.is_outlier(digits[:150], model.embedding_)
        np.testing.assert_array_equal(known, model.is_outlier_)

    def test_inverse_transform(self, cls, digits):
        model = cls(6, random_state=0, max_iter=50).fit(digits)
        X = model.inverse_transform(model.embedding_)
        np.testing.assert_allclose(np.linalg.norm(digits - X), model.reconstruction_err_, rtol=1e-10)

    @pytest.mark.parametrize("kind", ["int64", "float16", "bool"])
    def test_inverse_transform_of_any_tensor(self, cls, digits, kind):
        torch = pytest.importorskip("torch")
        model = cls(3, max_iter=5, random_state=0).fit(digits)
        V = torch.tensor([[1, 0, 1], [0, 1, 0]]).to(getattr(torch, kind))
        X = model.inverse_transform(V)
        np.testing.assert_allclose(X.numpy(), V.double().numpy() @ model.components_, rtol=1e-3, atol=1e-6)

    @pytest.mark.parametrize("bad", [float("nan"), float("inf"), 1j])
    def test_inverse_transform_refuses(self, cls, digits, bad):
        torch = pytest.importorskip("torch")
        model = cls(3, max_iter=5, random_state=0).fit(digits)
        for V in (np.full((2, 3), bad), torch.full((2, 3), bad)):
            with pytest.raises(ValueError, match=r"NaN|infinity|real|Complex"):
                model.inverse_transform(V)

    @pytest.mark.filterwarnings("error")
    @pytest.mark.parametrize("penalty", ["log", "l1"])
    def test_of_a_model_that_died(self, penalty, digits):
        """Weights so large that nothing is left of the parts."""
        model = LogSparseNMF(10, alpha=10, beta=10, penalty=penalty, random_state=0).fit(digits)
        assert (model.transform(digits) == 0).all()


class TestOutliers:
    def test_of_the_fit_and_of_others(self, digits):
        """Exchanged samples are not the fit's, though the whole error is the same."""
        model = RobustLogSparseNMF(6, lam=1.0, gamma=0.1, max_iter=50, random_state=0).fit(digits)
        S = model.outliers()
        np.testing.assert_allclose(np.linalg.norm(S, axis=1), model.outlier_norm_, atol=1e-10)
        np.testing.assert_allclose(
            model.outlier_norm_, model.outlier_share_ * model.residual_norm_, atol=1e-12
        )
        swapped = np.concatenate([digits[1::-1], digits[2:]])
        expected = model.outliers(digits[1::-1])  # others: coded by transform
        np.testing.assert_allclose(model.outliers(swapped)[:2], expected, atol=1e-10)

    def test_are_not_recognised(self, digits):
        """Given samples are coded anew, also those of the fit; their codes may be given too."""
        model = RobustLogSparseNMF(6, lam=1.0, gamma=0.1, max_iter=50, random_state=0).fit(digits)
        np.testing.assert_allclose(model.outliers(digits, model.embedding_), model.outliers(), atol=1e-12)
        coded = model.outliers(digits, model.transform(digits))
        np.testing.assert_allclose(model.outliers(digits), coded, atol=1e-12)
        assert not np.allclose(coded, model.outliers(), atol=1e-6)

    def test_codes_without_samples_are_refused(self, digits):
        model = RobustLogSparseNMF(3, max_iter=5, random_state=0).fit(digits)
        with pytest.raises(ValueError, match="V holds the codes of X: give the samples too"):
            model.outliers(V=model.embedding_)

    def test_of_the_fit_need_its_data(self, digits):
        model = RobustLogSparseNMF(3, max_iter=5, random_state=0).fit(digits)
        copy = pickle.loads(pickle.dumps(model))
        with pytest.raises(ValueError, match=r"does not hold the samples.*outliers\(X, model.embedding_\)"):
            copy.outliers()
        np.testing.assert_allclose(copy.outliers(digits, copy.embedding_), model.outliers())


class TestProgress:
    def test_verbose(self, cls, digits, capsys):
        cls(3, max_iter=20, tol=0, verbose=2, random_state=0, **weights(cls)).fit(digits)
        out, err = capsys.readouterr()
        *_, first, last = err.splitlines()
        assert out == ""
        assert f"{cls.__name__}: 10 of 20 iterations, objective" in first
        assert f"{cls.__name__}: 20 of 20 iterations, objective" in last
        assert last.endswith("s, 0 s left")

    def test_silent_by_default(self, cls, digits, capsys):
        cls(3, max_iter=20).fit(digits)
        captured = capsys.readouterr()
        assert captured.out == captured.err == ""

    def test_scikit_learns_callbacks(self, cls, digits):
        pytest.importorskip("sklearn.callback", reason="scikit-learn < 1.9 has no callbacks")

        class Stop:
            """Counts evaluations and stops at the third."""

            events = 0
            closed = False

            def setup(self, estimator, context):
                assert context.max_subtasks == (None if cls.spec.auto else 10)

            def on_fit_task_begin(self, estimator, context):
                pass

            def on_fit_task_end(self, estimator, context):
                self.events += 1
                return self.events >= 3

            def teardown(self, estimator, context):
                self.closed = True

        stop = Stop()
        model = cls(3, max_iter=100, tol=0, random_state=0).set_callbacks(stop).fit(digits)
        assert model.n_iter_ == 30
        assert model.stop_reason_ == "callback"
        assert stop.closed

    def test_interrupted_fit_leaves_the_old_one(self, cls, digits):
        pytest.importorskip("sklearn.callback", reason="scikit-learn < 1.9 has no callbacks")

        class Interrupt:
            def setup(self, estimator, context): ...
            def teardown(self, estimator, context): ...
            def on_fit_task_begin(self, estimator, context): ...
            def on_fit_task_end(self, estimator, context):
                raise KeyboardInterrupt

        model = cls(3, max_iter=20, random_state=0).fit(digits)
        before = {name: value for name, value in vars(model).items() if name.endswith("_")}
        model.set_callbacks(Interrupt())
        with pytest.raises(KeyboardInterrupt):
            model.fit(digits[:100])
        model.set_callbacks()
        after = {name: value for name, value in vars(model).items() if name.endswith("_")}
        assert after == before
        assert model.fit(digits[:100]).embedding_.shape == (100, 3)

    def test_ctrl_c(self):
        """A real SIGINT during a long fit ends it at once, as a KeyboardInterrupt."""
        program = """
            import sys, numpy as np, lognmf
            model = lognmf.LogSparseNMF(20, max_iter=10**7, tol=0, verbose=2)
            try:
                model.fit(np.random.default_rng(0).random((500, 200)))
            except KeyboardInterrupt:
                print("fitted" if hasattr(model, "components_") else "clean", file=sys.stderr)
        """
        command = [sys.executable, "-u", "-c", textwrap.dedent(program)]
        with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
            while "iterations" not in process.stderr.readline():
                assert process.poll() is None
            process.send_signal(signal.SIGINT)
            assert process.stderr.read().splitlines()[-1] == "clean"


class TestCompany:
    def test_pipeline_and_grid_search(self, cls):
        from sklearn.linear_model import LogisticRegression
        from sklearn.model_selection import GridSearchCV
        from sklearn.pipeline import make_pipeline
        from sklearn.preprocessing import Normalizer

        X, y = load_digits(n_class=3, return_X_y=True)
        X, y = X[:150], y[:150]
        step = cls(random_state=0, max_iter=100)
        pipeline = make_pipeline(Normalizer(), step, LogisticRegression())
        name = cls.__name__.lower()
        grid = {f"{name}__n_components": [1, 8], f"{name}__init": [step.init, "random"]}
        search = GridSearchCV(pipeline, grid, cv=3)
        search.fit(X, y)
        assert search.best_params_[f"{name}__n_components"] == 8
        assert search.score(X, y) > 0.8

    @pytest.mark.parametrize("library", ["pandas", "polars"])
    def test_data_frames(self, cls, digits, library):
        frames = pytest.importorskip(library)
        names = [f"pixel{j}" for j in range(64)]
        frame = frames.DataFrame(dict(zip(names, digits.T, strict=True)))
        model = cls(3, max_iter=20, random_state=0).set_output(transform=library)
        V = model.fit_transform(frame)
        assert isinstance(V, frames.DataFrame)
        assert list(V.columns) == list(model.get_feature_names_out())
        assert model.feature_names_in_.tolist() == names
        # A frame lies in memory by columns, in which sums round differently.
        plain = cls(3, max_iter=20, random_state=0).fit_transform(np.asfortranarray(digits))
        np.testing.assert_allclose(V.to_numpy(), plain, rtol=1e-12)
        assert isinstance(model.transform(frame), frames.DataFrame)

    def test_pickle(self, cls, digits):
        model = cls(3, max_iter=20, random_state=0).fit(digits)
        again = pickle.loads(pickle.dumps(model))
        np.testing.assert_array_equal(again.transform(digits), model.transform(digits))

    def test_save_and_load(self, cls, digits, tmp_path):
        model = cls(3, max_iter=20, random_state=0).fit(digits)
        again = load_model(save_model(model, tmp_path / "model"))
        np.testing.assert_array_equal(again.transform(digits), model.transform(digits))


class TestMemory:
    """Peak memory of a fit beyond X, in numbers: at most 12·(n + p)·k, 16 where weights are chosen."""

    @pytest.mark.parametrize("name", ["NMF", "GNMF", "WNMF", "LS-NMF", "RLS-NMF"])
    @pytest.mark.parametrize("kind", ["dense", "fortran", "sparse", "hardly sparse"])
    def test_peak(self, name, kind, rng):
        """With the graph, where the model has one, and for every order in memory.

        The search among sparse samples has an index of the size of X: there a graph is given.
        """
        cls = MODELS[name]
        n, p, k = 800, 1500, 20
        X = rng.random((n, p))
        if kind == "fortran":
            X = np.asfortranarray(X)
        elif kind != "dense":
            X = sp.csr_array(X * ((0.02 if kind == "sparse" else 0.5) > X))
        options = (
            {"graph": sp.eye_array(n, format="csr")} if (name, kind) == ("GNMF", "hardly sparse") else {}
        )
        model = cls(k, max_iter=12, random_state=0, **options)
        peak = peak_numbers(model, X)
        if name == "RLS-NMF":  # the samples among which neighbours are sought, at most 1,000
            peak -= 2 * min(n, 1000) * p
        # The choice of weights keeps the factors of the fit without them.
        assert peak <= (16 if cls.spec.auto else 12) * (n + p) * k
        assert peak < (0.7 if cls.spec.auto else 0.5) * n * p, "no n×p temporary"

    def test_robust_fit_of_many_samples(self, rng):
        """The samples among which neighbours are sought do not grow with n."""
        n, p, k = 12000, 80, 2
        model = MODELS["RLS-NMF"](k, max_iter=12, graph=None, random_state=0)
        assert peak_numbers(model, rng.random((n, p))) <= 16 * (n + p) * k + 2 * 1000 * p + 400_000


def test_close_duplicates_do_not_slow_or_break(cls, rng):
    X = np.repeat(samples(rng, 4, 9), 5, axis=0)
    model = make(cls, 4, max_iter=300, alpha=0, beta=0, lam=0, random_state=0).fit(X)
    assert model.reconstruction_err_ < 0.2 * np.linalg.norm(X)


def test_docstring_tells_every_parameter_and_attribute(cls, rng):
    text = cls.__doc__
    model = cls(2, max_iter=2).fit(samples(rng))
    fitted = [name for name in vars(model) if name.endswith("_") and not name.startswith("_")]
    for name in [*model.get_params(), *fitted]:
        assert re.search(rf"^    ([\w, ]+, )?{name}(, [\w, ]+)? : ", text, re.MULTILINE), name


class TestIterations:
    def test_a_number(self, cls, digits):
        with pytest.raises(TypeError, match="max_iter must be an integer"):
            cls(4, max_iter=None).fit(digits[:60])

    def test_a_warning_where_they_do_not_suffice(self, cls, digits):
        if not cls.spec.converges:
            pytest.skip("a number of iterations is part of the published methods")
        with pytest.warns(ConvergenceWarning, match=f"{cls.__name__} ended after max_iter=1 iterations"):
            cls(4, max_iter=1, tol=1e-9, random_state=0).fit(digits[:60])

    def test_no_warning_where_they_are_asked_for(self, cls, digits):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            assert cls(4, max_iter=2, tol=0, random_state=0).fit(digits[:60]).stop_reason_ == "max_iter"


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_warm_start_keeps_the_weights_that_were_chosen(digits):
    """Unless what is to be chosen has changed: another error allowed, other weights."""
    model = RobustLogSparseNMF(4, max_iter=3, tol=0, warm_start=True, random_state=0).fit(digits)
    alpha, gamma, objective = model.alpha_, model.gamma_, model.objective_
    model.fit(digits)
    assert (model.alpha_, model.gamma_) == (alpha, gamma)
    assert model.objective_ < objective
    assert model.set_params(extra_error=0.5).fit(digits).alpha_ > alpha
    assert model.set_params(alpha=0.25).fit(digits).alpha_ == 0.25
    assert model.set_params(alpha="auto").fit(digits).alpha_ != 0.25
