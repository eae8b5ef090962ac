"""The page of a fit and of a clustering: what it says is what the files hold."""

import csv

import numpy as np
import pytest
import scipy.sparse as sp
from test_results import make_run

from lognmf import LogSparseNMF, NMFClustering, PlainNMF, RobustLogSparseNMF
from lognmf.cli.pages import fit_page
from lognmf.cli.prepare import Preparation
from lognmf.cli.results import Run, summarize, write_results
from lognmf.clustering import numbered_by_parts
from lognmf.datasets import Dataset
from lognmf.plots.fit import order_of_parts
from lognmf.report import Figure, Table

SECTIONS = [
    "Clusters", "Parts", "Map of the samples", "Outliers to look at", "Convergence", "What to try next",
    "Settings",
]  # fmt: skip


def page_of(run, tmp_path, **figures):
    from matplotlib.figure import Figure as Drawing

    blank = dict.fromkeys(("parts", "codes", "convergence", "sensitivity"), Drawing())
    return fit_page(run, summarize(run), blank | figures, tmp_path / "out")


def items(page, title):
    return next(section for section in page.sections if section.title == title).items


def cells(table):
    """Values of a table by row and column."""
    names = [dict(zip(table.columns, (cell.value for cell in row), strict=True)) for _, row in table.rows]
    return dict(zip((name for name, _ in table.rows), names, strict=True))


TYPED = {"file": ["x.csv"], "components": ["-k", "2"]}


def plain_run(X, k=2, y=None, **more):
    model = PlainNMF(k, max_iter=30, random_state=0).fit(X)
    labels = numbered_by_parts(model.embedding_.argmax(axis=1), model.embedding_)
    data = Dataset(X, y, "x", "x", **more)
    settings = {"model": "nmf", "seed": 0}
    return Run(
        data,
        model,
        labels,
        settings,
        {},
        "lognmf fit x.csv -k 2",
        TYPED,
        Preparation(unit=False),
        seconds=1.0,
    )


def test_a_page_has_all_that_a_reader_came_for(tmp_path):
    run = make_run(y=np.array(["a", "b", "b"] * 4))
    page = page_of(run, tmp_path)
    assert [section.title for section in page.sections] == SECTIONS
    assert page.title == "x: 2 parts"
    tiles = {tile.label.split()[0]: tile.value for tile in page.highlights}
    results = summarize(run)["results"]
    error = results["reconstruction_err"] / np.linalg.norm(run.data.X)
    assert tiles["clusters"] == "2"
    assert tiles["of"] == f"{results['accuracy']:.1%}"
    assert tiles["relative"] == f"{error:.1%}"
    assert tiles["outliers"] == str(results["outliers"])
    assert [method.name for method in page.methods] == ["RLS-NMF"]


def test_clusters_stand_against_labels(tmp_path):
    y = np.array(["a", "b", "b"] * 4)
    run = make_run(y=y, sample_names=[f"row {i}" for i in range(12)])
    clusters, against = items(page_of(run, tmp_path), "Clusters")
    for c, (name, row) in enumerate(cells(clusters).items()):
        inside = run.labels == c
        assert name == f"cluster {c}"
        assert row["samples"] == inside.sum()
        assert row["its share"] == pytest.approx(100 * (y[inside] == row["most frequent label"]).mean())
        members = {f"row {i}" for i in np.flatnonzero(inside)}
        assert set(row["typical samples"].split(", ")) <= members
    counts = {name: {y: n or 0 for y, n in row.items()} for name, row in cells(against).items()}
    inside = y[run.labels == 1]
    assert counts["cluster 1"] == {"a": (inside == "a").sum(), "b": (inside == "b").sum()}


def test_the_most_typical_sample_is_nearest_to_the_mean(tmp_path):
    X = np.array([[1.0, 0, 0], [0.9, 0.1, 0], [0.5, 0.5, 0], [0, 0, 1.0]])
    run = plain_run(X, sample_names=["pure", "nearly", "mixed", "other"])
    row = cells(items(page_of(run, tmp_path), "Clusters")[0])[f"cluster {run.labels[0]}"]
    V = run.model.embedding_ / np.linalg.norm(run.model.embedding_, axis=1, keepdims=True)
    own = run.labels == run.labels[0]
    first = np.flatnonzero(own)[np.linalg.norm(V[own] - V[own].mean(axis=0), axis=1).argmin()]
    assert row["typical samples"].split(", ")[0] == run.data.sample_names[first]


def test_one_numbering_of_parts_everywhere(tmp_path, rng):
    """A part has one number in the files, the tables and the pictures, and its cluster has the same."""
    truth = np.repeat(np.arange(4), 10)
    X = np.kron(np.eye(4), np.ones(3))[truth] + 0.05 * rng.random((40, 12))
    names = [f"f{j}" for j in range(12)]
    model = LogSparseNMF(4, random_state=0).fit(X)
    labels = numbered_by_parts(truth, model.embedding_)
    data = Dataset(X, None, "x", "x", feature_names=tuple(names))
    run = Run(data, model, labels, {}, {}, "lognmf fit x.csv -k 4", {}, Preparation(unit=False), seconds=1.0)
    folder = write_results(tmp_path / "out", run)
    parts = columns(folder / "parts.csv")
    codes = columns(folder / "codes.csv")
    page = page_of(run, tmp_path)
    clusters, table = items(page, "Clusters")[0], items(page, "Parts")[1]
    assert order_of_parts(model.embedding_, labels).tolist() == [0, 1, 2, 3]
    for j in range(4):
        np.testing.assert_allclose(np.float64(parts[f"part {j}"]), model.components_[j])
        np.testing.assert_allclose(np.float64(codes[f"part {j}"]), model.embedding_[:, j])
        largest = np.argsort(-model.components_[j], kind="stable")[:3]
        assert cells(table)[f"part {j}"]["largest features"].split(", ")[:3] == [names[i] for i in largest]
        assert cells(clusters)[f"cluster {j}"]["main part"] == f"part {j}"
        assert model.embedding_[labels == j, j].min() > model.embedding_[labels != j, j].max()


def columns(path):
    with path.open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    return {name: [row[name] for row in rows] for name in rows[0]}


def test_a_clusterer_numbers_its_clusters_like_its_parts(rng):
    truth = rng.permutation(np.repeat(np.arange(4), 12))
    X = np.kron(np.eye(4), np.ones(3))[truth] + 0.05 * rng.random((48, 12))
    clusterer = NMFClustering(4, random_state=0).fit(X)
    assert (clusterer.embedding_.argmax(axis=1) == clusterer.labels_).mean() > 0.9
    np.testing.assert_array_equal(clusterer.predict(X), clusterer.labels_)


def robust_run(gamma=0.5, **more):
    """A run with outliers, unless gamma is large."""
    X = np.random.default_rng(0).random((12, 6))
    model = RobustLogSparseNMF(2, gamma=gamma, max_iter=20, random_state=0).fit(X)
    data = Dataset(X, None, "x", "x", **more)
    return Run(
        data,
        model,
        np.arange(12) % 2,
        {},
        {},
        "lognmf fit x.csv -k 2",
        {},
        Preparation(unit=False),
        seconds=1.0,
    )


def test_outliers_come_with_the_largest_first(tmp_path):
    run = robust_run()
    (table,) = items(page_of(run, tmp_path), "Outliers to look at")
    norms = np.asarray(run.model.outlier_norm_)
    worst = np.argsort(-norms, kind="stable")[: len(table.rows)]
    assert [name for name, _ in table.rows] == [f"sample {i}" for i in worst]
    assert 0 < len(worst) == min(8, (norms > 0).sum())
    without = page_of(robust_run(gamma=100.0), tmp_path)
    assert [section.text for section in without.sections][3] == ("There are none.",)


@pytest.mark.parametrize("sparse", [False, True])
def test_a_model_without_outliers_shows_what_fits_worst(tmp_path, rng, sparse):
    X = 0.1 + rng.random((15, 6))
    X[:, 1:] *= rng.random((15, 5)) < 0.7
    run = plain_run(sp.csr_array(X) if sparse else X)
    (table,) = items(page_of(run, tmp_path), "Samples that fit worst")
    left = X - run.model.embedding_ @ run.model.components_
    errors = np.linalg.norm(left, axis=1) / np.linalg.norm(X, axis=1)
    assert table.rows[0][0] == f"sample {errors.argmax()}"
    assert table.rows[0][1][0].value == pytest.approx(errors.max())


def test_pictures_of_samples_only_where_samples_are_pictures(tmp_path):
    shown = {
        shape: [item.title for section in page.sections for item in section.items if isinstance(item, Figure)]
        for shape in (None, (2, 3))
        for page in [page_of(robust_run(image_shape=shape), tmp_path)]
    }
    assert set(shown[2, 3]) - set(shown[None]) == {"Samples of each cluster", "The same in pictures"}
    tables = [item for item in items(page_of(make_run(), tmp_path), "Parts") if isinstance(item, Table)]
    assert tables[0].columns[-1] == "largest features"


def test_a_fit_that_did_not_converge_is_told_how_to_go_on(tmp_path):
    page = page_of(plain_run(np.random.default_rng(0).random((20, 6))), tmp_path)
    sections = {section.title: " ".join(section.text) for section in page.sections}
    assert "before it had converged" in sections["Convergence"]
    assert "`lognmf fit x.csv -k 2 --force --max-iter 60`" in sections["What to try next"]


def test_chosen_weights_are_shown(tmp_path):
    run = make_run()
    (table,) = items(page_of(run, tmp_path), "Settings")
    values = {name: row[0].value for name, row in table.rows}
    assert values["alpha"] == f"auto: {run.model.alpha_:.4g}"
    assert values["n_components"] == 2
