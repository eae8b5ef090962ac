"""``lognmf fit --tune`` as a user meets it."""

import csv
import json
import re
from dataclasses import replace

import numpy as np
import pytest

from lognmf import GraphNMF, load_model, metrics, tune
from lognmf.cli import screen
from lognmf.cli.results import FILES
from lognmf.grid.tune import ITERATIONS, WEIGHTS
from lognmf.models.base import FactorModel

KINDS = np.repeat([0, 1, 2], 12)
QUICK = ["fit", "x.npy", "-k", "3", "--model", "ls-nmf", "--tune", "--max-iter", "15", "--alpha", "0.05"]


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch, rng):
    """A folder with three separated groups of samples."""
    monkeypatch.chdir(tmp_path)
    X = np.repeat(np.eye(3).repeat(3, axis=1), 12, axis=0) * rng.random((36, 9)) + 0.02 * rng.random((36, 9))
    np.save("x.npy", X / np.linalg.norm(X, axis=1, keepdims=True))
    return tmp_path


def read(folder):
    with (folder / "tuning.csv").open(newline="") as file:
        return json.loads((folder / "summary.json").read_text()), list(csv.DictReader(file))


def places(out):
    return re.findall(r"^ *(\d+\.) ", out, re.MULTILINE)


def test_the_folder_tells_what_was_tried_and_chosen(run, here):
    code, out, err = run(*QUICK, "--out", "r")
    assert code == 0
    assert {path.name for path in (here / "r").iterdir()} == {
        name for name in FILES if not name.endswith(".parquet")
    } - {"outliers.csv", "candidates.csv", "clusterer.npz"}
    assert (here / "r" / "sensitivity.png").stat().st_size > 5000
    summary, rows = read(here / "r")
    tuning = summary["tuning"]
    assert tuning["criterion"] == "balanced_modularity"
    assert tuning["seeds"] == [0, 1, 2]
    assert tuning["grid"] == {name: list(WEIGHTS[name]) for name in ("beta", "lam")}
    assert len(rows) == 3 * 5 * 3
    assert {float(row["alpha"]) for row in rows} == {0.05}
    parameters = summary["settings"]["parameters"]
    assert {name: parameters[name] for name in tuning["setting"]} == tuning["setting"]
    assert (parameters["alpha"], parameters["max_iter"], parameters["init"]) == (0.05, 15, "spectral")
    assert f"Chosen without labels: alpha 0.05, beta {tuning['setting']['beta']:g}" in out
    assert "the best and the worst of 15 settings" in out
    assert places(out) == ["1.", "2.", "3.", "4.", "5.", "15."]
    assert f"{tuning['score']:.4f}" in out
    assert "45 of 45 fits" in err


@pytest.mark.usefixtures("no_pictures")
def test_the_page_shows_every_seed_at_the_chosen_weights(run, here):
    """Once the table was empty for the default model, whose gamma is chosen after the fits of the grid."""
    arguments = ["--restarts", 2, "--max-iter", 3, "--alpha", 0, "--beta", 0]
    code, out, _ = run("fit", "x.npy", "-k", 3, "--tune", *arguments, "--out", "r")
    assert code == 0
    page = (here / "r" / "index.html").read_text()
    table = page[page.index("<h3>Spread over seeds</h3>") :]
    assert re.findall(r"<span>(seed \d)</span>", table[: table.index("</table>")]) == ["seed 0", "seed 1"]
    assert "1e+08" not in out


@pytest.mark.usefixtures("no_pictures")
def test_the_results_are_those_of_tune(run, here):
    assert run(*QUICK, "--seed", 4, "--restarts", 2, "--clusters", 3, "--out", "r")[0] == 0
    saved = load_model(here / "r" / "model.npz")
    model = type(saved)(alpha=0.05)
    grid = {name: WEIGHTS[name] for name in ("beta", "lam")}
    tuned = tune(np.load("x.npy"), 3, model=model, grid=grid, seeds=[4, 5], max_iter=15)
    assert read(here / "r")[0]["tuning"]["setting"] == tuned.setting
    np.testing.assert_allclose(saved.embedding_, tuned.model.embedding_, rtol=1e-6)
    labels = np.loadtxt(here / "r" / "labels.csv", delimiter=",", skiprows=1, dtype=int)[:, 1]
    np.testing.assert_array_equal(labels, tuned.labels)
    assert metrics.clustering_accuracy(KINDS, labels) == 1.0


@pytest.mark.usefixtures("no_pictures")
def test_given_weights_stay_and_iterations_are_chosen(run, here):
    arguments = ["--model", "gnmf", "--tune", "--lam", 10, "--restarts", 1, "--out", "r"]
    code, out, _ = run("fit", "x.npy", "-k", 3, *arguments)
    assert code == 0
    summary, rows = read(here / "r")
    assert summary["tuning"]["grid"] == {"max_iter": list(ITERATIONS)}
    assert {row["lam"] for row in rows} == {"10.0"}
    assert summary["settings"]["parameters"]["lam"] == 10
    assert places(out) == ["1.", "2.", "3.", "4.", "5."]


@pytest.mark.usefixtures("no_pictures")
def test_the_whole_grid_is_fitted_as_tune_does(run, here):
    assert run("fit", "x.npy", "-k", 3, "--model", "gnmf", "--tune", "--restarts", 1, "--out", "r")[0] == 0
    summary, rows = read(here / "r")
    tuned = tune(np.load("x.npy"), 3, model=GraphNMF(), seeds=[0])
    assert len(rows) == len(tuned.rows) < 25, "only the best weights go on to many iterations"
    assert summary["tuning"]["setting"] == tuned.setting


def test_a_bare_start_is_called_one():
    tuned = tune(np.load("x.npy"), 3, model="GNMF", grid={"max_iter": [0, 5]}, seeds=[0])
    assert tuned.setting["max_iter"] == 5
    assert "No iterations" not in screen.choice(tuned)
    bare = replace(tuned, setting=tuned.setting | {"max_iter": 0})
    assert "No iterations: no fit was better than the start itself." in screen.choice(bare)


@pytest.mark.usefixtures("no_pictures")
def test_a_model_without_the_spectral_start_keeps_its_own(run, here):
    arguments = ["--model", "rmnmf", "--tune", "--max-iter", 5, "--restarts", 1, "--out", "r"]
    assert run("fit", "x.npy", "-k", 3, *arguments)[0] == 0
    summary, rows = read(here / "r")
    assert summary["settings"]["parameters"]["init"] == "kmeans"
    assert [float(row["lam"]) for row in rows] == list(WEIGHTS["lam"])


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--model", "onmf"], "--tune has nothing to choose for onmf with these options"),
        (["--model", "gnmf", "--lam", "1", "--max-iter", "9"], "--tune has nothing to choose for gnmf"),
        (["--model", "gnmf", "--beta", "1"], "--beta does nothing for gnmf"),
        (["--clusters", "37"], "from 1 to the number of samples, 36; got 37"),
    ],
)
def test_refusals_before_any_work(run, here, monkeypatch, arguments, sentence):
    monkeypatch.setattr("lognmf.models.engine.iterate", lambda *_, **__: pytest.fail("work was done"))
    monkeypatch.setattr(FactorModel, "_keep", lambda *_: pytest.fail("work was done"))
    code, out, err = run("fit", "x.npy", "-k", 3, "--tune", *arguments)
    assert (code, out) == (2, "")
    assert sentence in err.splitlines()[-1]
    assert [path.name for path in here.iterdir()] == ["x.npy"]
