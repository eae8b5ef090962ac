"""Row i of a grid is what ``.model(i)`` gives, and what a single fit gives, whatever varies."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.datasets import load_digits
from sklearn.preprocessing import normalize

from lognmf import MODELS, GraphNMF, LogSparseNMF, PlainNMF, RobustLogSparseNMF, fit_grid, knn_graph
from lognmf.core.solvers import SOLVERS
from lognmf.core.terms import LOSSES, PENALTIES, ROW_NORMS
from lognmf.grid import grid as grid_fit
from lognmf.models import identity, validation
from problems import moves, samples


@pytest.fixture(scope="module")
def digits():
    return normalize(load_digits().data[:150])


def agrees(row, model):
    np.testing.assert_allclose(row["objective"], model.objective_, rtol=1e-9)
    np.testing.assert_allclose(row["reconstruction_err"], model.reconstruction_err_, rtol=1e-7)
    assert row["n_iter"] == model.n_iter_


def test_a_grid_over_graphs_fits_each_with_its_own(digits):
    graphs = [knn_graph(digits, 5), knn_graph(digits, 20), None]
    model = LogSparseNMF(10, init="random", lam=10.0, max_iter=50)
    result = fit_grid(model, digits, {"graph": graphs})
    assert len({round(row["objective"], 6) for row in result.rows}) == 3
    for i, (row, W) in enumerate(zip(result.rows, graphs, strict=True)):
        agrees(row, result.model(i))
        alone = LogSparseNMF(10, init="random", lam=10.0, max_iter=50, graph=W, random_state=0).fit(digits)
        agrees(row, alone)


def test_starts_from_different_graphs_are_different(digits):
    """A spectral start clusters the graph, also where its weight is 0."""
    graphs = [knn_graph(digits, 3), knn_graph(digits, 20)]
    model = LogSparseNMF(10, alpha=0.0, beta=0.0, init="spectral", max_iter=5)
    result = fit_grid(model, digits, {"graph": graphs, "lam": [0.0, 5.0]})
    for i, row in enumerate(result.rows):
        agrees(row, result.model(i))
    assert len({round(row["objective"], 6) for row in result.rows}) == 4


def test_a_graph_at_hand_takes_the_place_of_knn_only(digits):
    W = knn_graph(digits, 20)
    rows = [
        fit_grid(GraphNMF(3, lam=10.0, graph=name, max_iter=3), digits, {}, graph=graph).rows[0]["objective"]
        for name, graph in (("knn", None), ("exact", W), ("knn", W))
    ]
    assert rows[0] == rows[1] != rows[2]


def test_rows_of_a_normalised_model_are_normalised(digits):
    result = fit_grid(GraphNMF(5, normalize=True, max_iter=30), digits, {"lam": [1.0, 100.0]}, seeds=[0, 1])
    for i, row in enumerate(result.rows):
        agrees(row, result.model(i))


def test_a_store_knows_the_graph_it_was_made_with(digits, tmp_path):
    graphs = [knn_graph(digits, 5), knn_graph(digits, 20)]
    options = {"seeds": [0], "n_clusters": 5, "max_iter": 5}
    fit_grid("GNMF", digits, {"lam": [1.0]}, graph=graphs[0], store=tmp_path / "rows.db", **options)
    with pytest.raises(ValueError, match="holds rows of another run, with graph"):
        fit_grid("GNMF", digits, {"lam": [1.0]}, graph=graphs[1], store=tmp_path / "rows.db", **options)
    fresh = [fit_grid("GNMF", digits, {"lam": [1.0]}, graph=W, **options) for W in graphs]
    assert fresh[0].rows[0]["objective"] != fresh[1].rows[0]["objective"]
    for result in fresh:
        agrees(result.rows[0], result.model(0))


def test_a_store_keeps_grids_over_graphs_apart(digits, tmp_path):
    graphs = [knn_graph(digits, 5), knn_graph(digits, 20)]
    options = {"max_iter": 5, "store": tmp_path / "rows.db"}
    first = fit_grid("GNMF", digits, {"graph": graphs, "lam": np.array([1.0])}, **options)
    again = fit_grid("GNMF", digits, {"graph": graphs, "lam": np.array([1.0])}, **options)
    assert first.rows == again.rows
    assert first.rows[0]["objective"] != first.rows[1]["objective"]


def test_restarts_are_made_in_a_grid_too(digits):
    model = PlainNMF(6, n_init=5, max_iter=20)
    result = fit_grid(model, digits, {}, seeds=[0, 1])
    once = fit_grid(PlainNMF(6, max_iter=20), digits, {}, seeds=[0, 1])
    for i, (row, single) in enumerate(zip(result.rows, once.rows, strict=True)):
        agrees(row, result.model(i))
        assert row["objective"] <= single["objective"]
    many = fit_grid(PlainNMF(6, max_iter=20), digits, {"n_init": [1, 5]})
    assert many.rows[1]["objective"] == pytest.approx(result.rows[0]["objective"])


def test_restarts_of_robust_fits_that_wait_for_each_other(digits):
    model = RobustLogSparseNMF(4, init="scaled", n_init=3, max_iter=15)
    result = fit_grid(model, digits, {"gamma": [0.01, 100.0, 1000.0]})
    for i, row in enumerate(result.rows):
        agrees(row, result.model(i))


def test_nothing_is_hashed_without_a_store(digits, monkeypatch):
    def refuse(X):
        raise AssertionError(X)

    monkeypatch.setattr(identity, "hash_of", refuse)
    fit_grid("GNMF", digits, {"lam": [1.0, 2.0]}, max_iter=2, n_clusters=3)


def test_x_is_read_once(digits, monkeypatch):
    calls = []
    read = validation.read_samples
    for module in (validation, grid_fit):
        monkeypatch.setattr(module, "read_samples", lambda *a, **k: calls.append(1) or read(*a, **k))
    fit_grid("LS-NMF", digits, {"lam": [1.0, 2.0]}, max_iter=2, n_clusters=3)
    assert len(calls) == 1
    LogSparseNMF(3, max_iter=2).fit(digits)
    assert len(calls) == 2


def test_bad_graphs_are_refused_before_any_work(digits):
    n = len(digits)
    bad = {
        "must be 150×150": sp.eye_array(3),
        "must be symmetric": sp.csr_array(np.triu(np.ones((n, n)), 1)),
        "finite nonnegative": -sp.eye_array(n),
    }
    for message, W in bad.items():
        for options in ({"graph": W}, {}):
            grid = {"lam": [1.0]} if options else {"graph": [None, W]}
            with moves() as seen, pytest.raises(ValueError, match=message):
                fit_grid("GNMF", digits, grid, **options)
            assert seen.counts == []


def test_a_result_fits_a_line(digits):
    result = fit_grid("NMF", digits, {"n_components": [2, 3]}, seeds=[0, 1, 2], max_iter=2)
    assert repr(result) == "GridResult(PlainNMF: 2 settings × 3 seeds = 6 rows)"


CHOICES = {
    "alpha": (0.0, 0.01, 1.0),
    "beta": (0.0, 0.01, 1.0),
    "gamma": (0.1, 1.0, 1000.0),
    "lam": (0.0, 0.1, 10.0),
    "penalty": tuple(PENALTIES),
    "loss": tuple(LOSSES),
    "row_norm": tuple(ROW_NORMS),
    "solver": tuple(SOLVERS),
    "unit_components": (False, True),
    "normalize": (False, True),
    "graph": ("knn", None, "given 2", "given 4"),
    "n_neighbors": (2, 5),
    "n_init": (1, 2),
    "n_components": (1, 3),
    "max_iter": (0, 1, 7),
    "tol": (0.0, 1e-3),
    "eval_every": (1, 3),
    "published_sign": (False, True),
    "rho": (1.0, 1.1),
}


@settings(max_examples=40, deadline=None)
@given(data=st.data(), name=st.sampled_from(list(MODELS)), seed=st.integers(0, 1000))
def test_every_parameter_of_every_model(data, name, seed):
    X = samples(np.random.default_rng(seed), 14, 6)
    given_graphs = {f"given {count}": knn_graph(X, count) for count in (2, 4)}
    parameters = MODELS[name]().get_params()
    starts = {"init": tuple(MODELS[name].spec.starts)}
    choices = {key: values for key, values in (CHOICES | starts).items() if key in parameters}
    drawn = data.draw(st.sets(st.sampled_from(sorted(choices)), min_size=1, max_size=3))

    if "loss" in drawn:
        drawn.discard("solver")  # coordinate descent refuses the divergence

    def value(key):
        chosen = data.draw(st.sampled_from(choices[key]), label=key)
        return given_graphs.get(chosen, chosen) if isinstance(chosen, str) else chosen

    grid = {key: [value(key) for _ in range(2)] for key in drawn}
    fixed = {"max_iter": 5}
    if "unit_components" in drawn:
        fixed |= {"alpha": 0.01, "beta": 0.01}  # parts of any norm refuse weights that are "auto"
    base = MODELS[name](3, **{key: fixed[key] for key in fixed if key in parameters and key not in grid})
    result = fit_grid(base, X, grid, seeds=[seed])
    for i, row in enumerate(result.rows):
        agrees(row, result.model(i))


class TestStore:
    @pytest.mark.parametrize(
        ("first", "then"),
        [
            ({"lam": [1]}, {"lam": [1, 1.0]}),
            ({"lam": [1.0], "n_neighbors": [5]}, {"lam": [1.0, 1], "n_neighbors": [5]}),
        ],
    )
    def test_more_of_the_same_problem(self, first, then, digits, tmp_path):
        options = {"max_iter": 3, "store": tmp_path / "rows.db"}
        fit_grid("LS-NMF", digits, first, **options)
        rows = fit_grid("LS-NMF", digits, then, **options).rows
        assert len({row["objective"] for row in rows}) == 1

    def test_the_container_of_a_graph_does_not_matter(self, digits, tmp_path):
        W = knn_graph(digits, 4)
        options = {"max_iter": 3, "store": tmp_path / "rows.db"}
        forms = (sp.csr_array(W), sp.csr_matrix(W))
        rows = [fit_grid("GNMF", digits, {"graph": [graph]}, **options).rows for graph in forms]
        assert rows[0] == rows[1]


def test_missing_entries_where_the_loss_takes_them(digits):
    X = digits.copy()
    X[0, 3] = np.nan
    result = fit_grid(GraphNMF(3), X, {"loss": ["kullback-leibler"]}, max_iter=5)
    agrees(result.rows[0], result.model(0))
    with pytest.raises(ValueError, match="contains NaN, which GraphNMF does not take"):
        fit_grid(GraphNMF(3), X, {"loss": ["kullback-leibler", "frobenius"]}, max_iter=5)
    single = fit_grid(LogSparseNMF(3), X, {"lam": [0.1]}, dtype="float32", max_iter=20)
    assert single.model(0).embedding_.dtype == np.float32
    agrees(single.rows[0], single.model(0))


def test_a_subclass_with_fewer_parameters(digits):
    class Simple(LogSparseNMF):
        def __init__(self, n_components=4, *, extra=2, alpha=0.5):
            super().__init__(n_components, alpha=alpha, max_iter=3)
            self.extra = extra

    result = fit_grid(Simple(2), digits, {"extra": [1, 2], "alpha": [0.1, 1.0]})
    assert [row["extra"] for row in result.rows] == [1, 2, 1, 2]
    for i, row in enumerate(result.rows):
        agrees(row, result.model(i))
