"""Models side by side: every row is that model's own fit, the best comes first, and none stops the others."""

import io
import signal

import numpy as np
import pytest
import scipy.sparse as sp

from lognmf import MODELS, NMFClustering, PlainNMF, graph, knn_graph, metrics, plots
from lognmf.clustering import cluster
from lognmf.comparison import REFERENCES, Row, compare, contest, model_names
from problems import moves

ALONE = {"seeds": [0], "references": False}
QUICK = {"max_iter": 15, "eval_every": 5, **ALONE}


@pytest.fixture
def y():
    return np.repeat(["a", "b", "c"], 12)


@pytest.fixture
def X(rng, y):
    """Three groups of samples."""
    centres = rng.random((3, 8)) * (rng.random((3, 8)) < 0.6)
    return centres[np.unique(y, return_inverse=True)[1]] + 0.3 * rng.random((36, 8))


def by_name(rows):
    return {row.model: row for row in rows}


# Rows ----------------------------------------------------------------------------------


def scores(y, W, labels):
    return {
        "accuracy": metrics.clustering_accuracy(y, labels),
        "nmi": metrics.normalized_mutual_info(y, labels),
        "purity": metrics.purity(y, labels),
        "normalized_cut": metrics.normalized_cut(W, labels),
        "clusters": len(set(labels)),
    }


@pytest.mark.parametrize("init", ["random", None])
def test_every_row_is_the_fit_of_its_model(X, y, init):
    rows = by_name(compare(X, 3, y=y, init=init, **(QUICK | {"seeds": [4]})))
    assert set(rows) == set(MODELS)
    W = knn_graph(X)
    start = {} if init is None else {"init": init}
    for name, row in rows.items():
        model = MODELS[name](3, random_state=4, max_iter=15, eval_every=5, **start).fit(X)
        assert row.seconds > 0
        assert row == Row(
            name,
            type(model).__name__,
            model.init,
            **scores(y, W, cluster(model.embedding_, 3, random_state=4)),
            sparseness_U=metrics.hoyer_sparseness(model.components_),
            sparseness_V=metrics.hoyer_sparseness(model.embedding_),
            reconstruction_err=model.reconstruction_err_,
            objective=model.objective_,
            n_iter=model.n_iter_,
            max_iter=15,
            stop_reason=model.stop_reason_,
            seconds=row.seconds,
        )


def test_several_seeds_have_a_mean_and_a_spread(X, y):
    options = QUICK | {"models": ["NMF", "ONMF"], "n_clusters": 4}
    single = [by_name(compare(X, 2, y=y, **(options | {"seeds": [seed]}))) for seed in (0, 1, 5)]
    for name, row in by_name(compare(X, 2, y=y, **(options | {"seeds": [0, 1, 5]}))).items():
        for field in ("accuracy", "nmi", "purity", "normalized_cut"):
            values = [getattr(one[name], field) for one in single]
            assert getattr(row, field) == pytest.approx(np.mean(values))
            assert getattr(row, f"{field}_std") == pytest.approx(np.std(values, ddof=1))
        for field in ("sparseness_U", "sparseness_V", "reconstruction_err", "objective", "n_iter"):
            assert getattr(row, field) == pytest.approx(
                np.mean([getattr(one[name], field) for one in single])
            )
        assert (row.seeds, single[0][name].seeds, single[0][name].accuracy_std) == (3, 1, None)


def test_reasons_of_all_seeds_are_named():
    run = {"clusters": 3, "normalized_cut": 1.0, "stop_reason": "converged"}
    row = contest._means([run, run | {"clusters": 2, "stop_reason": "max_iter"}])
    assert (row["stop_reason"], row["clusters"]) == ("converged or max_iter", 2)


def test_references_are_the_clusterings_alone(X, y):
    rows = by_name(compare(X, 3, y=y, models=["NMF"], **(QUICK | {"references": True, "seeds": [2]})))
    assert set(rows) == {"NMF", *REFERENCES}
    W = knn_graph(X)
    expected = {
        "k-means": cluster(X, 3, random_state=2),
        "NMFClustering": NMFClustering(3, random_state=2).fit(X).labels_,
    }
    for name, labels in expected.items():
        assert rows[name] == Row(name, **scores(y, W, labels), seconds=rows[name].seconds)
    for name in REFERENCES:
        assert rows[name].accuracy > 0.5
        assert rows[name].start is rows[name].n_iter is rows[name].sparseness_U is None


def test_who_uses_the_graph_waits_for_it(X, monkeypatch):
    """It is searched once, but its seconds count for every method that needs it."""
    begin = contest.Contest.__init__

    def slow(self, *given):
        begin(self, *given)
        self.graph_seconds = 1e6

    monkeypatch.setattr(contest.Contest, "__init__", slow)
    options = {"models": ["NMF", "GNMF"], **QUICK, "references": True}
    waited = {row.model for row in compare(X, 2, **options) if row.seconds > 1e6}
    assert waited == {"GNMF", *REFERENCES} - {"k-means"}
    waited = {row.model for row in compare(X, 2, init="spectral", **options) if row.seconds > 1e6}
    assert waited == {"NMF", "GNMF", *REFERENCES} - {"k-means"}


def test_without_labels_there_is_no_agreement(X):
    for row in compare(X, 2, n_clusters=4, models=["NMF", "CNMF"], **QUICK):
        assert row.accuracy is row.nmi is row.purity is None
        assert row.clusters == 4
        assert row.normalized_cut > 0


@pytest.fixture
def built(monkeypatch):
    """Numbers of neighbours of the graphs that are searched for."""
    found = []
    search = graph.find_neighbours
    monkeypatch.setattr(graph, "find_neighbours", lambda X, k, *how: found.append(k) or search(X, k, *how))
    return found


def test_one_graph_serves_the_models_their_starts_and_the_cut(X, built):
    compare(X, 2, n_neighbors=5, **(QUICK | {"references": True}))
    assert built == [5]


def test_the_graph_is_built_once(X, built):
    with moves("all methods") as seen:
        compare(X, 2, n_neighbors=3, **QUICK)
    models = dict(seen.results)
    assert built == [3]
    for name in ("LS-NMF", "RLS-NMF"):
        assert models[name].graph_ is None  # lam = 0
    for name in ("GNMF", "RMNMF"):
        assert (models[name].graph, models[name].n_neighbors) == ("knn", 3)  # as if it had built its own
        assert (models[name].graph_ != knn_graph(X, 3)).nnz == 0


def test_a_graph_of_their_own_is_kept(X):
    with moves("all methods") as seen:
        compare(X, 2, models=["GNMF"], graph=None, **QUICK)
    ((_, model),) = seen.results
    assert model.graph is model.graph_ is None


def test_options_reach_the_models_that_have_them(X):
    options = QUICK | {"seeds": [7]}
    with moves("all methods") as seen:
        compare(X, 2, models=["NMF", "RLS-NMF"], gamma=0.5, n_init=2, **options)
    models = dict(seen.results)
    assert models["RLS-NMF"].gamma == 0.5
    assert not hasattr(models["NMF"], "gamma")
    assert [(m.n_init, m.random_state) for m in models.values()] == [(2, 7)] * 2


def test_listeners_hear_of_every_fit_in_the_papers_order(X):
    with moves("all methods") as seen:
        compare(X, 2, **(QUICK | {"seeds": [0, 1], "references": True}))
    fitted = [(name, hasattr(model, "components_")) for name, model in seen.results]
    models = [(name, True) for name in MODELS for _ in range(2)]
    assert fitted == models + [(name, False) for name in REFERENCES for _ in range(2)]


def test_torch_tensors(X, y):
    torch = pytest.importorskip("torch")
    options = {"models": ["NMF", "RLS-NMF"], "solver": "mu", **QUICK}
    expected = by_name(compare(X, 3, y=y, **options))
    classes = torch.tensor(np.unique(y, return_inverse=True)[1])
    for name, row in by_name(compare(torch.tensor(X), 3, y=classes, **options)).items():
        assert row.accuracy == expected[name].accuracy
        assert row.reconstruction_err == pytest.approx(expected[name].reconstruction_err)


def test_a_single_sample():
    (row,) = compare(np.ones((1, 3)), 1, models=["RLS-NMF"], **QUICK)
    assert (row.error, row.clusters, row.normalized_cut) == (None, 1, 0)


# Order ---------------------------------------------------------------------------------


def test_the_best_accuracy_comes_first(X, y):
    rows = compare(X, 3, y=y, **QUICK)
    places = list(MODELS)
    assert rows == sorted(rows, key=lambda row: (-row.accuracy, places.index(row.model)))


def test_without_labels_the_smallest_cut_comes_first(X):
    cuts = [row.normalized_cut for row in compare(X, 3, **QUICK)]
    assert cuts == sorted(cuts)


def test_fewer_clusters_are_no_merit(X, monkeypatch):
    """One cluster cuts nothing, but it is not what was asked for."""
    groups = iter([np.zeros(36, dtype=int), np.arange(36) % 3])
    monkeypatch.setattr(contest, "cluster", lambda *_, **__: next(groups))
    first, last = compare(X, 3, models=["NMF", "WNMF"], **QUICK)
    assert (last.model, last.clusters, last.normalized_cut) == ("NMF", 1, 0)
    assert first.normalized_cut > 0


# What a model cannot take --------------------------------------------------------------


def test_sparse_data_cost_only_the_model_that_cannot_take_them(X, y):
    rows = compare(sp.csr_array(X * (X > 0.5)), 3, y=y, **QUICK)
    assert rows[-1].model == "RMNMF"
    assert rows[-1].error.startswith("RobustManifoldNMF keeps a dense residual")
    assert rows[-1].accuracy is rows[-1].seconds is rows[-1].n_iter is None
    assert [row.error for row in rows[:-1]] == [None] * 8


def test_signed_data(X):
    rows = compare(X - X.mean(axis=0), 3, **QUICK)
    assert {row.model for row in rows if row.error is None} == {"RMNMF", "Semi-NMF"}
    assert [row.model for row in rows[2:]] == [name for name in MODELS if name not in ("RMNMF", "Semi-NMF")]
    assert all("Negative values" in row.error for row in rows[2:])


@pytest.mark.parametrize(
    ("trouble", "sentence"),
    [
        (FloatingPointError("too  big"), "FloatingPointError: too big"),
        (MemoryError(), "MemoryError"),
        (ValueError("no\nway"), "no way"),
    ],
)
def test_a_trouble_becomes_a_row(X, monkeypatch, trouble, sentence):
    def fail(*_):
        raise trouble

    monkeypatch.setattr(PlainNMF, "_keep", fail)
    with moves("all methods") as seen:
        rows = compare(X, 2, models=["NMF", "WNMF"], **QUICK)
    assert [row.error for row in rows] == [None, sentence]
    assert [name for name, _ in seen.results] == ["NMF", "WNMF"]


@pytest.mark.parametrize("kind", [KeyboardInterrupt, IndexError])
def test_interruptions_and_bugs_pass(X, monkeypatch, kind):
    def fail(*_):
        if kind is KeyboardInterrupt:
            signal.default_int_handler(signal.SIGINT, None)
        raise kind

    monkeypatch.setattr(PlainNMF, "_keep", fail)
    with pytest.raises(kind):
        compare(X, 2, **QUICK)


REFUSALS = {
    "unknown model": ({"models": ["nmf", "svd"]}, ValueError, "models must be among nmf, .*; got 'svd'"),
    "no model": ({"models": []}, ValueError, "models must be among .*; got none"),
    "option of none": ({"models": ["NMF"], "gamma": 1}, ValueError, "gamma is a parameter of none of NMF"),
    "misspelt option": ({"maxiter": 1}, ValueError, "maxiter is a parameter of none of NMF, GNMF"),
    "bad option": ({"max_iter": -1}, ValueError, "max_iter must be an integer >= 0; got -1"),
    "components": ({"n_components": 0}, ValueError, "n_components must be an integer >= 1; got 0"),
    "clusters": ({"n_clusters": 37}, ValueError, "n_clusters must be at most the number of samples, 36"),
    "no clusters": ({"n_clusters": 0}, ValueError, "n_clusters must be an integer >= 1; got 0"),
    "half a cluster": ({"n_clusters": 2.5}, TypeError, "n_clusters must be an integer >= 1; got 2.5"),
    "neighbours": ({"n_neighbors": 0, "models": ["NMF"]}, ValueError, "n_neighbors must be an integer >= 1"),
    "labels": (
        {"y": [1, 2]},
        ValueError,
        r"y must hold one label for each of the 36 samples; got shape \(2,\)",
    ),
    "missing entries": ({"X": [[1, np.nan]], "models": ["NMF"]}, ValueError, "Input X contains NaN"),
    "seeds": ({"seeds": [1, 1]}, ValueError, "seeds must be different integers, at least one"),
    "start": ({"init": "kmeans"}, ValueError, "init must be one of"),
    "infinite entries": ({"X": [[1, np.inf]]}, ValueError, "Input X contains infinity"),
}


@pytest.mark.parametrize("case", REFUSALS)
def test_settings_are_refused_before_any_work(X, case):
    arguments, kind, sentence = REFUSALS[case]
    with moves("all methods") as seen, pytest.raises(kind, match=sentence):
        compare(**{"X": X, "n_components": 2} | arguments)
    assert seen.counts == []


def test_missing_entries_are_left_out_by_those_who_can(X):
    """The others say why not, and the neighbour graph sees zeros."""
    X = np.where(np.arange(X.size).reshape(X.shape) % 7 == 3, np.nan, X)
    rows = {row.model: row for row in compare(X, 2, max_iter=10, **(ALONE | {"references": True}))}
    assert rows["k-means"].error.startswith("Input X contains NaN, which k-means does not take")
    fitted = {name for name, row in rows.items() if row.error is None}
    assert fitted == {"WNMF", "LS-NMF"}
    assert set(REFERENCES) < set(rows) - fitted
    assert all("WeightedNMF or LogSparseNMF" in row.error for row in rows.values() if row.error)
    alone = MODELS["LS-NMF"](2, max_iter=10, init="random", random_state=0).fit(X)
    assert rows["LS-NMF"].objective == pytest.approx(alone.objective_, rel=1e-10)


def test_names_are_taken_in_any_case_and_once():
    assert model_names() == list(MODELS)
    assert model_names(["Rls-nmf", "NMF", "nmf"]) == ["RLS-NMF", "NMF"]


# Figures -------------------------------------------------------------------------------

ROWS = [
    Row("GNMF", "GraphNMF", "random", 0.9, 0.8, 0.95, 0.5, 0.01, seconds=0.2),
    Row("NMF", "PlainNMF", "random", 0.7, 0.6, 0.75, 1.5, 0.02, seconds=123.4),
    Row("RMNMF", "RobustManifoldNMF", error="no"),
]


def png(figure):
    file = io.BytesIO()
    figure.savefig(file, format="png", dpi=60)
    return file.getvalue()


def widths(axes):
    return [patch.get_width() for patch in axes.patches]


def test_the_figure_shows_scores_and_time():
    figure = plots.comparison(ROWS)
    scores, time = figure.axes
    assert widths(scores) == [0.9, 0.7, 0.8, 0.6, 0.95, 0.75]
    assert [tick.get_text() for tick in scores.get_yticklabels()] == ["GNMF", "NMF"]
    assert [text.get_text() for text in scores.get_legend().get_texts()] == ["accuracy", "NMI", "purity"]
    (whiskers,) = (bar.lines[2][0].get_segments() for bar in scores.containers if not hasattr(bar, "patches"))
    ends = [[low[0], high[0]] for low, high in whiskers]
    np.testing.assert_allclose(ends, [[0.89, 0.91], [0.68, 0.72]])
    np.testing.assert_array_equal(time.collections[-1].get_offsets()[:, 0], [0.2, 123.4])
    assert [text.get_text() for text in time.texts] == ["0.2", "123"]
    assert (time.get_xscale(), time.get_xlim()) == ("log", (0.1, 1000))
    assert figure.get_supxlabel() == "Without results: RMNMF"
    assert scores.get_ylim()[0] > scores.get_ylim()[1]  # the best on top
    assert len(png(figure)) > 5000


def test_without_labels_the_figure_shows_the_cut():
    rows = [Row("NMF", "PlainNMF", normalized_cut=0.25, seconds=1.0), Row("WNMF", "", normalized_cut=0.5)]
    axes = plots.comparison(rows).axes[0]
    assert widths(axes) == [0.25, 0.5]
    assert "lower is better" in axes.get_xlabel()
    for odd in (rows[:1], [Row("NMF", "", normalized_cut=0.0, seconds=0.0)], ROWS[2:]):
        assert len(png(plots.comparison(odd))) > 2000


def test_parts_of_models_are_rows_of_images(rng):
    nonnegative, signed = rng.random((3, 6)), rng.normal(size=(2, 6))
    figure = plots.parts_of_models({"NMF": nonnegative, "Semi-NMF": signed}, (2, 3))
    (axes,) = figure.axes
    assert [tick.get_text() for tick in axes.get_yticklabels()] == ["NMF", "Semi-NMF"]
    shown = [image.get_array() for image in axes.images]
    np.testing.assert_array_equal(shown, np.concatenate([nonnegative, signed]).reshape(5, 2, 3))
    assert [image.get_cmap().name for image in axes.images] == ["gray"] * 3 + ["RdBu_r"] * 2
    assert axes.images[3].norm.vmin == -axes.images[3].norm.vmax < 0
    tops = [image.get_extent()[3] for image in axes.images]
    assert len(set(tops[:3])) == 1
    assert tops[3] < axes.images[0].get_extent()[2]
    assert "red is positive" in figure.get_suptitle()
    assert len(png(figure)) > 1000


def test_parts_of_models_of_every_size(rng):
    figure = plots.parts_of_models({"NMF": rng.random((30, 4)), "WNMF": np.zeros((1, 4))}, (1, 4))
    assert "the first 20 of 30" in figure.get_suptitle()
    assert len(png(figure)) > 1000
    with pytest.raises(ValueError, match=r"\(3, 5\) has 15 pixels, but a part has 12 features"):
        plots.parts_of_models({"NMF": rng.random((2, 12))}, (3, 5))
