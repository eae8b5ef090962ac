"""A grid is its single fits, faster; it can be killed and goes on."""

import signal
import subprocess
import sys
import textwrap
import time

import numpy as np
import pytest
import scipy.sparse as sp

from lognmf import MODELS, fit_grid, knn_graph, metrics
from lognmf.clustering.kmeans import kmeans
from lognmf.grid import plan
from problems import moves, pattern, samples

GRID = {
    "NMF": {},
    "GNMF": {"lam": [0.0, 1.0, 100.0]},
    "RMNMF": {"lam": [0.01, 1.0]},
    "WNMF": {},
    "CNMF": {},
    "ONMF": {},
    "Semi-NMF": {},
    "LS-NMF": {"alpha": [0.0, 0.1], "lam": [0.0, 1.0], "penalty": ["log", "l1"]},
    "RLS-NMF": {"beta": [0.01, 1.0], "gamma": [0.1, 1000.0], "row_norm": ["l2log", "l21"]},
}
TIMES = ("seconds",)


def without_times(rows):
    return [{name: v for name, v in row.items() if name not in TIMES} for row in rows]


@pytest.fixture
def X(rng):
    return samples(rng, 40, 15)


@pytest.fixture
def y():
    return np.repeat(["a", "b", "c", "d"], 10)


@pytest.mark.parametrize("name", MODELS)
def test_a_grid_is_its_single_fits(name, X, y):
    model = MODELS[name](4, max_iter=30, eval_every=10, tol=1e-4)
    result = fit_grid(model, X, GRID[name], seeds=[3, 8], y=y)
    settings = int(np.prod([len(values) for values in GRID[name].values()]))
    assert len(result.rows) == 2 * settings
    W = knn_graph(X)
    for i, row in enumerate(result.rows):
        single = result.model(i)
        np.testing.assert_allclose(row["objective"], single.objective_, rtol=1e-10)
        np.testing.assert_allclose(row["reconstruction_err"], single.reconstruction_err_, rtol=1e-8)
        assert row["n_iter"] == single.n_iter_
        assert row["stop_reason"] == single.stop_reason_
        np.testing.assert_allclose(
            row["sparseness_U"], metrics.hoyer_sparseness(single.components_), atol=1e-8
        )
        np.testing.assert_allclose(
            row["sparseness_V"], metrics.hoyer_sparseness(single.embedding_), atol=1e-8
        )
        outliers = int((single.outlier_share_ > 0).sum()) if hasattr(single, "outlier_share_") else None
        assert row["n_outliers"] == outliers
        labels = kmeans(single.embedding_[:, None, :], 4, seed=row["seed"])[:, 0]
        assert row["accuracy"] == pytest.approx(metrics.clustering_accuracy(y, labels))
        assert row["nmi"] == pytest.approx(metrics.normalized_mutual_info(y, labels))
        assert row["purity"] == pytest.approx(metrics.purity(y, labels))
        assert row["normalized_cut"] == pytest.approx(metrics.normalized_cut(W, labels))


def test_batches_do_not_matter(X):
    grid = {"lam": [0.1, 1.0, 10.0], "gamma": [0.3, 3.0], "n_components": [2, 5]}
    model = MODELS["RLS-NMF"](solver="mu", alpha=0.01, beta=0.001, max_iter=20)
    whole = fit_grid(model, X, grid, seeds=range(3), n_clusters=3)
    small = fit_grid(model, X, grid, seeds=range(3), n_clusters=3, memory=16 * 55 * 5 * 8 * 2)
    for one, other in zip(whole.rows, small.rows, strict=True):
        assert one["objective"] == pytest.approx(other["objective"], rel=1e-11)
        assert one["normalized_cut"] == pytest.approx(other["normalized_cut"])


def test_rows(X):
    grid = [{"lam": [0.5], "alpha": [0.1, 0.2]}, {"beta": [0.3]}]
    model = MODELS["LS-NMF"](3, alpha=0.01, beta=0.001, lam=7.0, max_iter=5)
    result = fit_grid(model, X, grid, seeds=[1])
    assert [(r["alpha"], r["beta"], r["lam"], r["seed"]) for r in result.rows] == [
        (0.1, 0.001, 0.5, 1),
        (0.2, 0.001, 0.5, 1),
        (0.01, 0.3, 7.0, 1),
    ]
    assert "accuracy" not in result.rows[0]
    assert "normalized_cut" not in result.rows[0]
    assert all(type(v) in (int, float, str, type(None)) for row in result.rows for v in row.values())
    assert len(result) == 3


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_data_frames(X, library):
    pytest.importorskip(library)
    frame = getattr(fit_grid("GNMF", X, {"lam": [1.0, 2.0]}, max_iter=3), f"to_{library}")()
    assert frame["lam"].to_list() == [1.0, 2.0]


def test_sparse_and_missing(X):
    dense = fit_grid("LS-NMF", X, {"lam": [0.0, 1.0]}, max_iter=10, n_clusters=3)
    sparse = fit_grid("LS-NMF", sp.csr_matrix(X), {"lam": [0.0, 1.0]}, max_iter=10, n_clusters=3)
    for one, other in zip(dense.rows, sparse.rows, strict=True):
        assert one["objective"] == pytest.approx(other["objective"], rel=1e-10)
    holes = X.copy()
    holes[3, 4] = np.nan
    row = fit_grid("WNMF", holes, {}, max_iter=10).rows[0]
    assert row["objective"] == pytest.approx(
        MODELS["WNMF"](max_iter=10, random_state=0).fit(holes).objective_
    )


@pytest.mark.parametrize("device", ["cpu", "cuda"])
def test_torch_is_numpy(X, y, device):
    torch = pytest.importorskip("torch", reason="torch is an extra")
    if device == "cuda" and not torch.cuda.is_available():
        pytest.skip("there is no GPU here")
    options = {"seeds": [0, 1], "y": y, "max_iter": 20, "dtype": "float64"}
    grid = {"lam": [0.1, 10.0], "gamma": [0.5, 100.0]}
    model = MODELS["RLS-NMF"](solver="mu", alpha=0.01, beta=0.001)
    plain, torched = (fit_grid(model, X, grid, device=d, **options) for d in (None, device))
    for one, other in zip(plain.rows, torched.rows, strict=True):
        assert one["objective"] == pytest.approx(other["objective"], rel=1e-10)
        assert one["accuracy"] == pytest.approx(other["accuracy"])
    again = torched.model(1)
    assert (
        fit_grid(model, X, {}, device=torch.device(device), max_iter=1).model(0).components_.device.type
        == device
    )
    assert again.components_.device.type == device
    assert again.objective_ == pytest.approx(torched.rows[1]["objective"], rel=1e-10)
    single = fit_grid(model, torch.as_tensor(X), grid, dtype="float32", device=device, max_iter=5)
    assert single.rows[0]["objective"] == pytest.approx(
        fit_grid(model, X, grid, max_iter=5).rows[0]["objective"], rel=1e-4
    )


BAD = {
    "unknown weight": ({"grid": {"mu": [1.0]}}, ValueError, "has no parameter 'mu'; it has"),
    "empty": ({"grid": []}, ValueError, "grid is empty"),
    "negative": ({"grid": {"lam": [1.0, -1.0]}}, ValueError, "lam must be a finite number >= 0; got -1"),
    "seed too large": ({"seeds": [0, 2**32]}, ValueError, r"from 0 to 2\*\*32 - 1; got 4294967296"),
    "seeds in the grid": ({"grid": {"random_state": [1]}}, ValueError, "use seeds instead"),
    "no seeds": ({"seeds": []}, ValueError, "seeds must be different integers"),
    "seeds twice": ({"seeds": [1, 1]}, ValueError, "seeds must be different integers"),
    "bad seed": ({"seeds": ["a"]}, TypeError, "each of seeds must be an integer"),
    "no such model": ({"model": "K-NMF"}, ValueError, "one of .*'RLS-NMF'"),
    "foreign model": ({"model": object()}, TypeError, "estimator of this package"),
    "memory": ({"memory": 1000}, ValueError, "memory must be at least .* bytes"),
    "y": ({"y": [1, 2]}, ValueError, "one class for each of the 40 samples"),
    "clusters": ({"n_clusters": 41}, ValueError, "at most the number of samples, 40"),
    "dtype": ({"dtype": "float16"}, ValueError, "dtype must be"),
    "data": ({"X": -np.ones((40, 15))}, ValueError, "Negative values"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_arguments_are_refused_before_any_work(case, X, monkeypatch):
    options, error, words = BAD[case]
    monkeypatch.setattr("lognmf.models.engine.iterate", lambda *_, **__: pytest.fail("work was done"))
    arguments = {"model": "LS-NMF", "X": X, "grid": {"lam": [1.0]}} | options
    with pytest.raises(error, match=words):
        fit_grid(**arguments)


@pytest.mark.parametrize(
    ("device", "dtype", "taken"),
    [("cuda", None, "float32"), ("cuda", "float64", "float64"), ("cpu", None, "float64")],
)
@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
def test_on_a_gpu_numbers_are_short_unless_asked_for(device, dtype, taken, form, X):
    pattern(f"torch-{device}")  # or a skip
    assert str(plan.place(form(X), device, dtype).dtype) == f"torch.{taken}"


@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
def test_on_the_cpu_data_keep_their_type_unless_asked_for(form, X):
    short = form(X.astype(np.float32))
    assert plan.place(short, None, None) is short
    for dtype in ("float32", "float64"):
        assert plan.place(form(X), None, dtype).dtype == dtype


def test_a_device_that_is_not_there(X):
    torch = pytest.importorskip("torch", reason="torch is an extra")
    if not torch.cuda.is_available():
        with pytest.raises(ValueError, match="sees no GPU here"):
            fit_grid("LS-NMF", X, {}, device="cuda")
    with pytest.raises(ValueError, match="must be a name of torch"):
        fit_grid("LS-NMF", X, {}, device="abacus")


def test_progress(X, capsys):
    with moves() as seen:
        fit_grid("GNMF", X, {"lam": [1.0, 2.0], "n_components": [2, 3]}, max_iter=2, verbose=1)
    assert seen.counts == [(2, 4), (4, 4)]
    assert "4 of 4 fits" in capsys.readouterr().err


def test_a_store_is_written_to_after_a_few_fits(X, tmp_path):
    grid = {"lam": list(range(1, 21))}
    with moves() as seen:
        fit_grid("GNMF", X, grid, store=tmp_path / "rows.db", max_iter=2)
    assert seen.counts == [(16, 20), (20, 20)]
    with moves() as seen:
        fit_grid("GNMF", X, grid, max_iter=2)
    assert seen.counts == [(20, 20)]


PROGRAM = """
    import sys, numpy as np
    from lognmf import fit_grid
    from lognmf.progress import Listener, listening

    class Lines(Listener):
        def move(self, stage):
            if stage.name == "fitting the grid":
                print(stage.done, flush=True)

    X = np.random.default_rng(0).random((60, 30))
    with listening(Lines()):
        fit_grid("GNMF", X, {grid}, **{options}, store={store!r})
"""
RESUMED = {"lam": [0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0], "n_components": [3, 4, 5]}
ROUNDED = (
    "objective",
    "reconstruction_err",
    "sparseness_U",
    "sparseness_V",
    "balance",
    "modularity",
    "normalized_cut",
)
OPTIONS = {"seeds": [0, 1], "n_clusters": 3, "max_iter": 100, "tol": 0, "memory": 16 * 90 * 5 * 8 * 4}


@pytest.mark.parametrize("kill", [signal.SIGINT, signal.SIGKILL])
def test_interrupted_and_resumed(kill, tmp_path):
    program = PROGRAM.format(grid=RESUMED, options=OPTIONS, store=str(tmp_path / "rows.sqlite"))
    command = [sys.executable, "-c", textwrap.dedent(program)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
        for _ in range(3):
            process.stdout.readline()
        time.sleep(0.01)
        process.send_signal(kill)
    done = subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()
    assert done[-1] == "48"
    X = np.random.default_rng(0).random((60, 30))
    whole = fit_grid("GNMF", X, RESUMED, **OPTIONS)
    broken = fit_grid("GNMF", X, RESUMED, **OPTIONS, store=tmp_path / "rows.sqlite")
    for one, other in zip(without_times(broken.rows), without_times(whole.rows), strict=True):
        assert {**one, **{name: other[name] for name in ROUNDED}} == other
        assert [one[name] for name in ROUNDED] == pytest.approx([other[name] for name in ROUNDED], rel=1e-9)


def test_nothing_is_computed_twice(X, tmp_path, monkeypatch):
    from lognmf.models import engine

    grid = {"lam": [0.1, 1.0, 10.0]}
    first = fit_grid("LS-NMF", X, grid, max_iter=5, store=tmp_path / "rows.sqlite")
    monkeypatch.setattr(engine, "iterate", lambda *_, **__: pytest.fail("work was done"))
    again = fit_grid("LS-NMF", X, grid, max_iter=5, store=tmp_path / "rows.sqlite")
    assert again.rows == first.rows
    with pytest.raises(ValueError, match="rows of another run"):
        fit_grid("LS-NMF", X + 1, grid, max_iter=5, store=tmp_path / "rows.sqlite")


def test_collapsed_settings_are_not_computed_on(X, monkeypatch):
    """Weights so large that nothing is left: with tol=0 the rows are still those of all the steps."""
    from lognmf.core.solvers import Multiplicative

    moved, step = [], Multiplicative.step

    def counting(self, state):
        moved.append(state.batch)
        return step(self, state)

    model = MODELS["LS-NMF"](3, solver="mu", max_iter=300, tol=0.0, eval_every=20)
    with monkeypatch.context() as patch:
        patch.setattr(Multiplicative, "step", counting)
        result = fit_grid(model, X, {"alpha": [0.01, 1000.0], "beta": [0.01, 1000.0]})
    assert moved[0] == 4
    assert moved[-1] < 4
    for i, row in enumerate(result.rows):
        single = result.model(i)
        assert row["n_iter"] == single.n_iter_ == 300
        assert row["stop_reason"] == single.stop_reason_ == "max_iter"
        assert row["objective"] == pytest.approx(single.objective_, rel=1e-10)
        assert single.history_["iteration"][-1] == 300


@pytest.mark.parametrize("form", ["csr", "csc", "coo"])
def test_a_graph_at_hand_may_have_any_format(form, X):
    grid = {"lam": [0.0, 1.0]}
    options = {"seeds": [0], "n_clusters": 4, "max_iter": 5}
    given = fit_grid(MODELS["LS-NMF"](4), X, grid, graph=knn_graph(X, 5).asformat(form), **options)
    built = fit_grid(MODELS["LS-NMF"](4), X, grid, **options)
    assert without_times(given.rows) == without_times(built.rows)
