"""``lognmf cluster``: the clusters of `NMFClustering`, in a folder."""

import csv
import json

import numpy as np
import pytest

from lognmf import NMFClustering, load_model, normalize
from lognmf.cli.results import FILES

GROUPS = np.repeat(["a", "b", "c"], 12)
blank = pytest.mark.usefixtures("no_pictures")


@pytest.fixture(autouse=True)
def X(tmp_path, monkeypatch, rng):
    """Three separated groups of samples, in a folder of their own."""
    monkeypatch.chdir(tmp_path)
    X = np.eye(3)[np.unique(GROUPS, return_inverse=True)[1]].repeat(3, axis=1) + 0.1 * rng.random((36, 9))
    np.save("x.npy", X)
    (tmp_path / "kinds.txt").write_text("\n".join(GROUPS))
    return X


def table(file):
    with file.open(newline="") as lines:
        return list(csv.DictReader(lines))


def test_the_folder_holds_what_the_clusterer_found(run, tmp_path, X):
    code, out, err = run("cluster", "x.npy", "-k", 3, "--labels", "kinds.txt", "--seed", 5, "--out", "r")
    assert code == 0
    assert {path.name for path in (tmp_path / "r").iterdir()} <= set(FILES)
    expected = NMFClustering(3, random_state=5).fit(normalize(X))
    rows = table(tmp_path / "r" / "labels.csv")
    assert [int(row["cluster"]) for row in rows] == expected.labels_.tolist()
    assert [row["label"] for row in rows] == GROUPS.tolist()
    model = load_model(tmp_path / "r" / "model.npz")
    np.testing.assert_allclose(model.components_, expected.components_)
    tried = table(tmp_path / "r" / "candidates.csv")
    assert [row["candidate"] for row in tried] == [row["candidate"] for row in expected.rows_]
    assert [row["chosen"] for row in tried].count("True") == 1
    summary = json.loads((tmp_path / "r" / "summary.json").read_text())
    assert summary["results"]["accuracy"] == 1
    assert summary["settings"]["clusterer"]["n_clusters"] == summary["settings"]["clusters"] == 3
    assert "accuracy" in out
    assert out.count("chosen") == 1
    assert "x: 36 samples of 9 features" in err
    assert "modularity" in err


@blank
def test_the_number_of_clusters_can_be_chosen(run, tmp_path):
    code, out, err = run("cluster", "x.npy", "-k", "auto", "--model", "NMF", "--neighbors", 4)
    assert code == 0
    assert "3 clusters: modularity" in err
    assert "3, of sizes" in " ".join(out.split())
    summary = json.loads((tmp_path / "results" / "x-clusters" / "summary.json").read_text())
    assert (summary["settings"]["clusters"], summary["settings"]["class"]) == (3, "PlainNMF")


@blank
def test_a_number_that_was_guessed_is_called_so(run, tmp_path):
    guess = "chosen automatically by modularity, silhouette and stability"
    said = {}
    for k in ("auto", "3"):
        code, out, _ = run("cluster", "x.npy", "-k", k, "--model", "nmf", "--out", k)
        assert code == 0
        page = (tmp_path / k / "index.html").read_text()
        summary = json.loads((tmp_path / k / "summary.json").read_text())["settings"]
        said[k] = (
            f"their number {guess}" in " ".join(out.split()),
            f"Clusters: the best of several clusterings; their number is {guess}." in page,
            f"3, {guess}" in page,
            summary.get("number") == guess,
        )
    assert said == {"auto": (True,) * 4, "3": (False,) * 4}
    _, out, _ = run("cluster", "--help")
    assert "auto chooses one up to 50" in " ".join(out.replace("│", " ").split())


REFUSALS = {
    "clusters": (["-k", "many"], "--clusters must be an integer >= 1 or \"auto\"; got 'many'."),
    "no clusters": (["-k", "0"], "--clusters must be an integer >= 1; got 0."),
    "too many": (["-k", "37"], "--clusters must be at most the number of samples, 36"),
    "model": (["-k", "3", "--model", "svd"], "--model must be one of nmf"),
    "neighbours": (["-k", "3", "--neighbors", "0"], "--neighbors must be an integer >= 1; got 0."),
    "seed": (["-k", "3", "--seed", "-1"], "--seed must be an integer from 0"),
}


@pytest.mark.parametrize("case", REFUSALS)
def test_refused_in_a_sentence(run, tmp_path, case):
    arguments, sentence = REFUSALS[case]
    code, out, err = run("cluster", "x.npy", *arguments, "--out", "r")
    assert (code, out) == (2, "")
    assert sentence in err
    assert not (tmp_path / "r").exists()
