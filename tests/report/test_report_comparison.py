"""The page of a comparison: the rows, the settings and where they come from."""

import numpy as np
import pytest
import scipy.sparse as sp
from test_report_page import EVIL, Tree

from lognmf import PlainNMF
from lognmf.cli.prepare import Preparation
from lognmf.cli.results import Comparison, Run, write_comparison, write_results
from lognmf.comparison import compare
from lognmf.datasets import Dataset
from problems import moves


def comparison(rng, y=None, signed=False, sparse=False, image_shape=None, name="x"):
    X = rng.random((20, 6)) - (0.5 if signed else 0)
    X = sp.csr_array(X) if sparse else X
    names = ["NMF", "RMNMF", "LS-NMF"]
    with moves("all methods") as seen:
        rows = compare(X, 3, y=y, models=names, max_iter=10, seeds=[5, 6])
    models = {name: model for name, model in seen.results if model is not None}
    settings = {"n_components": 3, "n_clusters": 3, "n_neighbors": 5, "seeds": [5, 6], "normalize": False}
    data = Dataset(X, y, name, name, image_shape)
    source, command = {"path": "/data/x.npy"}, "lognmf compare x.npy -k 3"
    return Comparison(data, rows, models, settings, source, command, seconds=4.2)


def read(folder):
    return Tree((folder / "index.html").read_text(encoding="utf-8"))


def body(tree, place):
    """Rows of the table at this place: names and texts."""
    tables = [i for i, (tag, *_) in enumerate(tree.found) if tag == "table"] + [len(tree.found)]
    rows = []
    for tag, attrs, text in tree.found[tables[place] : tables[place + 1]]:
        if tag == "th" and attrs["scope"] == "row":
            rows.append([text])
        elif tag == "td":
            rows[-1].append(text)
    return rows


def test_the_page_holds_the_rows_in_their_order(rng, tmp_path):
    done = comparison(rng, y=np.arange(20) % 3, image_shape=(2, 3))
    tree = read(write_comparison(tmp_path / "out", done))
    shown = body(tree, 0)
    assert [row[0] for row in shown] == [row.model for row in done.rows]
    for line, row in zip(shown, done.rows, strict=True):
        accuracy = f"{row.accuracy:.3f} ± {row.accuracy_std:.3f}"
        cut = f"{row.normalized_cut:.3f} ± {row.normalized_cut_std:.3f}"
        assert line[1:5] == [accuracy, f"{row.nmi:.3f}", f"{row.purity:.3f}", cut]
        assert line[-2:] == ["–" if row.n_iter is None else f"{row.n_iter:.0f}", row.start or "–"]
    assert [attrs["class"] for attrs, _ in tree.all("img")] == ["drawing", "photo", "photo"]
    best = done.rows[0]
    assert f"is the best of {len(done.rows)} methods: accuracy {best.accuracy:.3f}" in tree.text


def test_every_method_is_spelled_out_once_and_its_row_leads_there(rng, tmp_path):
    done = comparison(rng)
    tree = read(write_comparison(tmp_path / "out", done))
    entries = [attrs["id"] for attrs, _ in tree.all("div") if attrs.get("id", "").startswith("method--")]
    links = [attrs["href"].removeprefix("#") for attrs, _ in tree.all("a")]
    named = {row.model for row in done.rows}
    assert len(entries) == len(set(entries)) == len(named)
    assert set(entries) <= set(links)
    assert "robust factorisation with orthonormal codes that are smooth along a graph" in tree.text


def test_the_page_says_how_to_do_it_again(rng, tmp_path):
    tree = read(write_comparison(tmp_path / "out", comparison(rng)))
    assert "lognmf compare x.npy -k 3" in [text for _, text in tree.all("code")]
    facts = tree.all("dl", "facts")[0][1]
    for part in ("seeds [5, 6]", "numpy " + np.__version__, "path: /data/x.npy", "core"):
        assert part in facts
    settings = {row[0]: row[1:] for row in body(tree, 1)}
    assert set(settings) == {"NMF", "RMNMF", "LS-NMF"}
    assert "The same for all: " in tree.text
    assert "max_iter 10" in tree.text


def test_without_labels_the_cut_is_shown(rng, tmp_path):
    tree = read(write_comparison(tmp_path / "out", comparison(rng)))
    assert "no true labels" in tree.text
    assert [text for _, text in tree.all("th")][:3] == ["method", "cut", "seconds"]


@pytest.mark.parametrize("kind", ["signed", "sparse"])
def test_failed_models_are_named_with_their_reason(rng, tmp_path, kind):
    done = comparison(rng, image_shape=(2, 3), **{kind: True})
    tree = read(write_comparison(tmp_path / "out", done))
    failed = [row for row in done.rows if row.error]
    assert failed
    for row in failed:
        assert f"{row.model} has no result. {row.error}" in tree.text
        line = next(line for line in body(tree, 0) if line[0] == row.model)
        assert set(line[1:]) == {"–"}


def test_names_of_data_and_classes_are_escaped(rng, tmp_path):
    y = np.array([EVIL, "b", "c", "d"] * 5)
    tree = read(write_comparison(tmp_path / "out", comparison(rng, y=y, name=EVIL, image_shape=(2, 3))))
    assert len(tree.all("script")) == 1
    assert tree.all("h1")[0][1] == f"Methods compared on {EVIL}"


def test_names_on_the_page_of_a_fit_are_escaped(rng, tmp_path):
    names = tuple(f"{EVIL} {i}" for i in range(12))
    X = rng.random((12, 6))
    data = Dataset(X, np.array(names), EVIL, EVIL, feature_names=names[:6], sample_names=names)
    model = PlainNMF(2, max_iter=5, random_state=0).fit(X)
    run = Run(
        data,
        model,
        np.arange(12) % 2,
        {"labels": EVIL},
        {"path": EVIL},
        "lognmf fit x",
        {},
        Preparation(),
        seconds=1.0,
    )
    tree = read(write_results(tmp_path / "out", run))
    assert len(tree.all("script")) == 1
    assert all("onerror" not in attrs for attrs, _ in tree.all("img"))
    assert tree.all("h1")[0][1] == f"{EVIL}: 2 parts"
    assert any("<script>" in text for _, text in tree.all("td", "words"))
