"""The command line as a user meets it."""

import csv
import json
import os
import re
import signal
import sys
import time

import numpy as np
import pytest
import scipy.sparse as sp

import lognmf
from lognmf import MODELS, PlainNMF, RobustLogSparseNMF, load_model, normalize
from lognmf.cli import main as cli
from lognmf.cli.options import MODEL_NAMES, option_of
from lognmf.cli.results import COMPARISON_FILES
from lognmf.comparison import REFERENCES, compare
from lognmf.models.base import FactorModel

blank = pytest.mark.usefixtures("no_pictures")
FITTED = {
    "index.html", "summary.json", "factors.npz", "model.npz", "labels.csv", "outliers.csv", "history.csv",
    "parts.csv", "codes.csv", "preparation.npz", "clusters.npy", "convergence.png", "parts.png", "codes.png",
}  # fmt: skip
QUICK = ["-k", "3", "--max-iter", "20"]
PLAIN = [*QUICK, "--model", "nmf"]
ONLY_TABLE = ["comparison.csv", "comparison.png", "index.html", "summary.json"]


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    """Every command runs in a folder of its own."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def X(rng):
    X = rng.random((20, 6))
    np.save("x.npy", X)
    return X


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def summary(folder):
    def refuse(word):
        raise AssertionError(word)  # strict JSON knows neither NaN nor Infinity

    return json.loads((folder / "summary.json").read_text(), parse_constant=refuse)


def table(folder):
    with (folder / "comparison.csv").open(newline="") as file:
        return list(csv.DictReader(file))


# A fit ---------------------------------------------------------------------------------


def test_digits(run, here):
    code, out, err = run("fit", "digits", *QUICK, "--clusters", 10, "--out", "demo")
    assert code == 0
    assert {path.name for path in (here / "demo").iterdir()} == FITTED
    shown = {" ".join(line.split()[:-1]): line.split()[-1] for line in out.splitlines()}
    results = summary(here / "demo")["results"]
    assert shown["objective"] == f"{results['objective']:.6g}"
    assert shown["accuracy"] == f"{results['accuracy']:.3f}"
    assert f"{results['outliers']} of 1797" in out
    assert f"{results['iterations']} (" in out
    assert sum(results["cluster_sizes"]) == 1797
    assert len(results["cluster_sizes"]) == 10
    for word in ("sparseness of U", "sparseness of V", "NMI", "purity", "Results are in"):
        assert word in out
    assert "digits: 1797 samples of 64 features, 3 parts" in err
    assert f"{results['iterations']} of at most 20 iterations" in err
    for name in ("convergence.png", "parts.png", "codes.png"):
        assert (here / "demo" / name).stat().st_size > 5000


@blank
def test_the_fit_is_that_of_the_estimator(run, here, X):
    assert run("fit", "x.npy", *QUICK, "--seed", 5, "--gamma", 0.5)[0] == 0
    model = RobustLogSparseNMF(3, max_iter=20, gamma=0.5, random_state=5).fit(normalize(X))
    saved = load_model(here / "results" / "x-rls-nmf" / "model.npz")
    np.testing.assert_array_equal(saved.components_, model.components_)
    assert saved.get_params() == model.get_params()


@blank
def test_without_scaling(run, here, X):
    assert run("fit", "x.npy", *PLAIN, "--no-normalize", "--out", "r")[0] == 0
    model = PlainNMF(3, max_iter=20, random_state=0).fit(X)
    np.testing.assert_array_equal(load_model(here / "r" / "model.npz").embedding_, model.embedding_)
    assert summary(here / "r")["settings"]["normalize"] is False


@blank
def test_every_option_reaches_the_estimator(run, here, X):
    options = {
        "alpha": 0.1, "beta": 0.2, "gamma": 0.3, "lam": 0.4, "penalty": "l1", "row_norm": "l21",
        "n_neighbors": 4, "init": "nndsvda", "n_init": 2, "max_iter": 11, "tol": 0.0, "n_components": 2,
        "random_state": 9,
    }  # fmt: skip
    arguments = [word for name, value in options.items() for word in (option_of(name), value)]
    assert run("fit", "x.npy", *arguments, "--out", "r")[0] == 0
    assert summary(here / "r")["settings"]["parameters"] == RobustLogSparseNMF(**options).get_params()


@blank
@pytest.mark.parametrize("name", MODEL_NAMES)
def test_every_model_has_its_own_defaults(run, here, X, name):
    code, out, _ = run("fit", "x.npy", *QUICK, "--model", name, "--out", "r")
    assert code == 0
    settings = summary(here / "r")["settings"]
    expected = MODELS[MODEL_NAMES[name]](n_components=3, max_iter=20, random_state=0)
    assert settings["parameters"] == expected.get_params()
    assert settings["model"] == name
    assert ("outliers" in out) == (here / "r" / "outliers.csv").exists()


@blank
def test_the_same_command_gives_the_same_results(run, here, X):
    for folder in ("a", "b"):
        assert run("fit", "x.npy", *QUICK, "--out", folder)[0] == 0
    for name in ("labels.csv", "outliers.csv"):
        assert (here / "a" / name).read_bytes() == (here / "b" / name).read_bytes()


@blank
def test_sparse_data(run, here, rng):
    sp.save_npz("x.npz", sp.csr_array(rng.random((30, 8)) * (rng.random((30, 8)) < 0.4)))
    code, out, _ = run("fit", "x.npz", *PLAIN, "--out", "r")
    assert code == 0
    assert summary(here / "r")["input"]["sparse"] is True
    assert "accuracy" not in out


@blank
def test_labels_from_a_column(run, here, rng):
    rows = [f"{a},{b},kind {i % 2}" for i, (a, b) in enumerate(rng.random((20, 2)))]
    (here / "flowers.csv").write_text("\n".join(["length,width,species", *rows]))
    code, out, _ = run("fit", "flowers.csv", "-k", 2, "--model", "nmf", "--labels", "species", "--out", "r")
    assert code == 0
    assert "accuracy" in out
    assert summary(here / "r")["input"]["features"] == 2
    assert (here / "r" / "labels.csv").read_text().splitlines()[2].endswith(",kind 1")


@blank
def test_labels_from_a_file(run, here, X):
    (here / "kinds.txt").write_text("u\nv\n" * 10)
    assert run("fit", "x.npy", *PLAIN, "--labels", "kinds.txt", "--out", "r")[0] == 0
    information = summary(here / "r")
    assert information["results"]["classes"] == 2
    assert information["input"]["labels_path"] == str(here / "kinds.txt")
    assert len(information["input"]["labels_sha256"]) == 64


@blank
def test_image_shape(run, here, X):
    assert run("fit", "x.npy", *PLAIN, "--image-shape", "2x3", "--out", "r")[0] == 0
    assert summary(here / "r")["settings"]["image_shape"] == [2, 3]


@blank
def test_summary_says_what_was_typed_and_read(run, here, X):
    assert run("fit", "x.npy", *PLAIN, "--out", "my results")[0] == 0
    information = summary(here / "my results")
    assert information["command"] == "lognmf fit x.npy -k 3 --max-iter 20 --model nmf --out 'my results'"
    assert information["input"]["path"] == str(here / "x.npy")
    assert information["settings"]["clusters"] == 3


@blank
def test_many_clusters_are_shown_in_short(run, rng):
    np.save("x.npy", rng.random((60, 4)))
    out = run("fit", "x.npy", *PLAIN, "--clusters", 30)[1]
    assert "30, of sizes 1 to" in out


def test_version_and_help(run):
    assert run("--version") == (0, f"lognmf {lognmf.__version__}\n", "")
    code, out, _ = run("fit", "--help")
    assert code == 0
    for option in ("--clusters", "--labels", "--image-shape", "--force", *MODEL_NAMES):
        assert option in out
    assert all(option in run("compare", "--help")[1] for option in ("--models", "--labels", "--force"))
    assert "fit" in "".join(run()[1:])


@blank
def test_the_loss_of_a_model(run, here, rng):
    np.save(here / "counts.npy", rng.poisson(2.0, (20, 6)))
    command = ["fit", "counts.npy", "-k", "2", "--loss", "kullback-leibler", "--no-normalize"]
    code, _, err = run(*command, "--model", "ls-nmf", "--max-iter", "5", "--out", "out")
    assert code == 0, err
    assert load_model(here / "out" / "model.npz").loss == "kullback-leibler"
    code, _, err = run(*command, "--model", "rls-nmf", "--out", "other")
    assert code != 0
    assert "--loss" in err


@pytest.mark.parametrize("name", ["penalty", "loss", "solver", "row_norm", "init"])
def test_help_lists_what_the_models_can_do(run, monkeypatch, name):
    monkeypatch.setenv("COLUMNS", "300")
    shown = run("fit", "--help")[1]
    for model in MODELS.values():
        for word in model.spec.starts if name == "init" else model.spec.choices.get(name, ()):
            assert re.search(rf"--{name.replace('_', '-')} .*\b{re.escape(word)}\b", shown)


# A comparison --------------------------------------------------------------------------


def test_compare_digits(run, here, monkeypatch):
    monkeypatch.setenv("COLUMNS", "120")
    code, out, err = run("compare", "digits", "--max-iter", 5, "--seeds", 2, "--out", "demo")
    assert code == 0
    assert {path.name for path in (here / "demo").iterdir()} == set(COMPARISON_FILES)
    for name in ("comparison.png", "parts.png"):
        assert (here / "demo" / name).stat().st_size > 20_000
    information, rows = summary(here / "demo"), table(here / "demo")
    assert [row["model"] for row in rows] == [row["model"] for row in information["results"]]
    assert {row["model"] for row in rows} == {*MODELS, *REFERENCES}
    accuracies = [row["accuracy"] for row in information["results"]]
    assert accuracies == sorted(accuracies, reverse=True)
    assert [float(row["accuracy"]) for row in rows] == accuracies
    shown = out.splitlines()
    assert " ".join(shown[0].split()) == "method accuracy ± NMI cut seconds sparse U sparse V error iter"
    for line, row in zip(shown[1:14], information["results"], strict=True):
        numbers = [row[name] for name in ("accuracy", "accuracy_std", "nmi", "normalized_cut")]
        assert line.startswith(row["model"])
        assert line.removeprefix(row["model"]).split()[:4] == [f"{number:.3f}" for number in numbers]
    assert shown[14] == "Start of the models: random; means over 2 seeds."
    assert out.splitlines()[-2] == f"Results are in {here / 'demo'}"
    assert out.splitlines()[-1].startswith(f"Open {here / 'demo' / 'index.html'} in a browser")
    assert len(shown) == 17
    assert "digits: 1797 samples of 64 features, 10 parts" in err
    assert "26 of 26 fits" in err


@blank
def test_a_comparison_says_how_to_do_it_again(run, here, X):
    (here / "kinds.txt").write_text("u\nv\nu\nw\n" * 5)
    arguments = ["--labels", "kinds.txt", "--models", "ONMF, ls-nmf", "--restarts", 2, "--max-iter", 7]
    assert run("compare", "x.npy", *arguments, "--clusters", 4, "--seed", 3, "--seeds", 2)[0] == 0
    information = summary(here / "results" / "x-compare")
    assert information["command"].startswith(
        "lognmf compare x.npy --labels kinds.txt --models 'ONMF, ls-nmf'"
    )
    assert information["input"]["path"] == str(here / "x.npy")
    assert len(information["input"]["labels_sha256"]) == 64
    assert set(information["versions"]) == {"lognmf", "python", "numpy", "scipy", "scikit-learn"}
    settings = information["settings"]
    models = settings.pop("models")
    assert settings == {
        "n_components": 3, "n_clusters": 4, "n_neighbors": 5, "init": "random", "seeds": [3, 4],
        "references": True, "normalize": True, "scale_features": None, "labels": "kinds.txt",
        "image_shape": None,
    }  # fmt: skip
    assert list(models) == ["ONMF", "LS-NMF"]
    expected = MODELS["LS-NMF"](3, n_init=2, max_iter=7, init="random", random_state=3)
    assert models["LS-NMF"] == {"class": "LogSparseNMF", "parameters": expected.get_params()}
    assert names(here / "results" / "x-compare") == ONLY_TABLE


@blank
def test_the_rows_are_those_of_the_function(run, here, X):
    assert run("compare", "x.npy", *QUICK, "--models", "nmf,rls-nmf", "--no-normalize", "--out", "r")[0] == 0
    expected = compare(X, 3, models=["NMF", "RLS-NMF"], max_iter=20)
    for row, mine in zip(summary(here / "r")["results"], expected, strict=True):
        assert row | {"seconds": 0} == vars(mine) | {"seconds": 0}


@blank
def test_without_labels_the_cut_decides(run, here, X):
    code, out, _ = run("compare", "x.npy", *QUICK, "--models", "nmf,gnmf", "--seeds", 2, "--out", "r")
    assert code == 0
    assert out.split()[:4] == ["method", "cut", "±", "seconds"]
    cuts = [row["normalized_cut"] for row in summary(here / "r")["results"]]
    assert cuts == sorted(cuts)
    assert {row["accuracy"] for row in table(here / "r")} == {""}


@pytest.mark.parametrize("kind", ["sparse", "signed"])
def test_a_model_that_cannot_take_the_data_is_a_row(run, here, X, kind):
    if kind == "sparse":
        sp.save_npz("x.npz", sp.csr_array(X * (X > 0.4)))
        failed, sentence = ["RMNMF"], "takes no sparse data"
    else:
        np.savez("x.npz", X=X - 0.5)
        failed = [name for name in MODELS if name not in ("RMNMF", "Semi-NMF")] + ["NMFClustering"]
        sentence = "Negative values in data"
    code, out, _ = run("compare", "x.npz", *QUICK, "--seeds", 1, "--out", "r", "--image-shape", "2x3")
    assert code == 0
    rows = summary(here / "r")["results"]
    assert [row["model"] for row in rows if row["error"] is not None] == failed
    assert all(row["error"] is None for row in rows[: -len(failed)])
    lines = out.splitlines()
    for name in failed:
        assert any(line.split() == [name] + ["-"] * 6 for line in lines)
        assert any(line.startswith(f"{name}: ") and sentence in line for line in lines)
    assert (here / "r" / "parts.png").exists()
    assert [row["model"] for row in table(here / "r") if row["error"]] == failed


@blank
def test_fewer_clusters_are_pointed_out(run, here):
    np.save("x.npy", np.repeat(np.eye(2), 5, axis=0))
    out = run("compare", "x.npy", "-k", 2, "--clusters", 4, "--models", "convex-nmf")[1]
    assert "CNMF: only 2 of 4 clusters" in out


@blank
def test_an_interrupted_comparison_writes_nothing(run, here, X, monkeypatch):
    monkeypatch.setattr(PlainNMF, "_keep", lambda *_: signal.raise_signal(signal.SIGINT))
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        code, out, err = run(
            "compare", "x.npy", *PLAIN[:-2], "--models", "nmf", "--no-references", "--out", "r"
        )
    finally:
        signal.signal(signal.SIGINT, before)
    assert (code, out) == (130, "")
    assert "interrupted, nothing written" in err
    assert names(here) == ["x.npy"]


@blank
def test_a_comparison_is_replaced_only_with_force(run, here, X):
    arguments = ["compare", "x.npy", *QUICK, "--models", "nmf", "--out", "r"]
    assert run("fit", "x.npy", *PLAIN, "--out", "r")[0] == 0
    assert run(*arguments)[0] == 2
    assert "factors.npz" in names(here / "r")
    assert run(*arguments, "--force")[0] == 0
    assert names(here / "r") == ONLY_TABLE
    assert names(here) == ["r", "x.npy"]


# Refusals ------------------------------------------------------------------------------

READ = ["fit", "x.npy", *QUICK]
COMPARE = ["compare", "x.npy", *QUICK]
REFUSALS = {
    "no command": (["fot"], "No such command 'fot'"),
    "no argument": (["fit", *QUICK], "Missing argument 'DATA'"),
    "no components": (["fit", "x.npy"], "Missing option '--components'"),
    "unknown option": ([*READ, "--lambda", "3"], "No such option: --lambda"),
    "components no number": (
        ["fit", "x.npy", "-k", "ten"],
        "-k must be an integer, a range such as 5:30",
    ),
    "components upside down": (
        ["fit", "x.npy", "-k", "9:3"],
        "-k must be an integer, a range such as 5:30",
    ),
    "components not positive": (["fit", "x.npy", "-k", "0"], "-k must be an integer >= 1; got 0."),
    "no file": (["fit", "gone.csv", *QUICK], "There is no file gone.csv: give a csv"),
    "unknown ending": (["fit", "x.docx", *QUICK], "x.docx is of no known format"),
    "negative data": (
        ["fit", "negative.npy", *QUICK],
        "negative values in columns 1, 2, 3, 4, 5, 6: add --scale-features minmax",
    ),
    "missing data": (
        ["fit", "missing.npy", *QUICK],
        r"missing.npy has missing entries (2): fill them, drop these rows, or choose wnmf or ls-nmf",
    ),
    "text": (["fit", "text.csv", *QUICK], "Column 'kind' of text.csv holds text"),
    "no samples": (["fit", "header.csv", *QUICK], "Found array with 0 sample(s)"),
    "cube": (["fit", "cube.npy", *QUICK], "array of shape (4, 2, 3); it must be a matrix"),
    "huge": (["fit", "huge.npy", *QUICK, "--no-normalize"], "X is too large for float64"),
    "labels nowhere": ([*READ, "--labels", "kind"], "'kind' are neither in x.npy nor a file"),
    "labels too few": ([*READ, "--labels", "few.txt"], "2 labels in few.txt for the 20 samples"),
    "model": ([*READ, "--model", "svd"], f"--model must be one of {', '.join(MODEL_NAMES)}; got 'svd'."),
    "weight of another": ([*READ, "--model", "ls-nmf", "--gamma", "1"], "--gamma does nothing for ls-nmf"),
    "negative weight": ([*READ, "--alpha", "-1"], "--alpha must be a finite number >= 0; got -1"),
    "weight not a number": ([*READ, "--lam", "nan"], "--lam must be a finite number >= 0; got nan"),
    "penalty": ([*READ, "--penalty", "l7"], "--penalty must be one of ['log', 'l1']; got 'l7'"),
    "row norm": ([*READ, "--row-norm", "l7"], "--row-norm must be one of"),
    "init": ([*READ, "--init", "zero"], "--init must be one of"),
    "solver": ([*READ, "--solver", "slow"], "--solver must be one of"),
    "neighbours": ([*READ, "--neighbors", "0"], "--neighbors must be an integer >= 1; got 0"),
    "restarts": ([*READ, "--restarts", "0"], "--restarts must be an integer >= 1; got 0"),
    "iterations": ([*READ, "--max-iter", "-1"], "--max-iter must be an integer >= 0; got -1"),
    "tolerance": ([*READ, "--tol", "-1"], "--tol must be a finite number >= 0; got -1"),
    "seed": ([*READ, "--seed", "-1"], "--seed must be an integer from 0 to 2**32 - 1; got -1"),
    "clusters": ([*READ, "--clusters", "21"], "from 1 to the number of samples, 20; got 21"),
    "no clusters": ([*READ, "--clusters", "0"], "from 1 to the number of samples, 20; got 0"),
    "shape": ([*READ, "--image-shape", "3x3"], "--image-shape has 9 pixels, but the samples of x.npy have 6"),
    "shape in words": ([*READ, "--image-shape", "big"], "like 32x32; got 'big'"),
    "out is a file": ([*READ, "--out", "x.npy"], "is a file, so no results can be written"),
    "out below a file": ([*READ, "--out", "x.npy/r"], "cannot be created"),
    "out exists": ([*READ, "--out", "old"], "already exists: choose another one with --out"),
    "out is precious": ([*READ, "--out", ".", "--force"], "because it holds other files"),
    "sparse": (
        ["fit", "sparse.npz", *QUICK, "--model", "rmnmf"],
        "sparse.npz is sparse, and the model takes no sparse data",
    ),
    "compare: nothing": (["compare"], "Missing argument 'DATA'"),
    "compare: parts": (
        ["compare", "x.npy"],
        "x has no labels, so the number of parts is not known: give -k or --labels",
    ),
    "compare: no parts": (["compare", "x.npy", "-k", "0"], "-k must be an integer >= 1; got 0."),
    "compare: models": ([*COMPARE, "--models", "nmf,svd"], "--models must be some of nmf, gnmf"),
    "compare: no model": ([*COMPARE, "--models", ""], "rls-nmf, separated by commas; got ''."),
    "compare: seed": ([*COMPARE, "--seed", "-1"], "--seed must be an integer from 0 to 2**32 - 1; got -1"),
    "compare: seeds": ([*COMPARE, "--seeds", "0"], "--seeds must be an integer >= 1; got 0"),
    "compare: start": ([*COMPARE, "--init", "kmeans"], "--init must be one of"),
    "compare: restarts": ([*COMPARE, "--restarts", "0"], "--restarts must be an integer >= 1; got 0"),
    "compare: clusters": ([*COMPARE, "--clusters", "21"], "--clusters must be at most the number of samples"),
    "compare: no clusters": ([*COMPARE, "--clusters", "0"], "--clusters must be an integer >= 1; got 0."),
    "infinite data": (["fit", "infinite.npy", *QUICK], "infinite.npy has infinite entries (1)"),
    "compare: missing data": (
        ["compare", "missing.npy", *QUICK, "--models", "nmf,rls-nmf"],
        "missing.npy has missing entries (2)",
    ),
    "compare: no samples": (["compare", "header.csv", *QUICK], "Found array with 0 sample(s)"),
    "compare: shape": ([*COMPARE, "--image-shape", "3x3"], "--image-shape has 9 pixels"),
    "compare: out exists": ([*COMPARE, "--out", "old"], "already exists: choose another one with --out"),
    "compare: out is precious": ([*COMPARE, "--out", ".", "--force"], "because it holds other files"),
    "compare: none can": (
        ["compare", "negative.npy", *QUICK, "--models", "nmf,gnmf"],
        "negative.npy has negative values in column",
    ),
    "memory": (["fit", "x.npy", "-k", str(3 * 10**16), "--clusters", "2"], "There is not enough memory: Una"),
}


@pytest.fixture
def inputs(here, X):
    np.save("negative.npy", X - np.eye(20, 6) * (1.5 + X))
    np.save("infinite.npy", np.where(np.arange(120).reshape(20, 6) == 7, np.inf, X))
    np.save("missing.npy", np.where(np.arange(120).reshape(20, 6) % 90 == 7, np.nan, X))
    np.save("cube.npy", np.ones((4, 2, 3)))
    np.save("huge.npy", X * 1e200)
    sp.save_npz("sparse.npz", sp.csr_array(X))
    (here / "text.csv").write_text("a,kind\n1,u\n2,v\n")
    (here / "header.csv").write_text("a,b\n")
    (here / "few.txt").write_text("u\nv\n")
    (here / "x.docx").touch()
    (here / "old").mkdir()
    return names(here)


@pytest.mark.filterwarnings("ignore:n_components=")
@pytest.mark.parametrize("case", REFUSALS)
def test_refusals_are_one_sentence_before_any_work(run, here, inputs, monkeypatch, case):
    arguments, sentence = REFUSALS[case]
    fits = []
    monkeypatch.setattr(FactorModel, "_keep", lambda *_: fits.append(1))
    code, out, err = run(*arguments)
    assert code == 2
    assert out == ""
    last = err.splitlines()[-1]
    assert last.startswith("Error: ")
    assert sentence in last
    assert "Traceback" not in err
    assert fits == []
    assert names(here) == inputs


@blank
@pytest.mark.filterwarnings("always::sklearn.exceptions.ConvergenceWarning")
def test_warnings_of_fits_name_options_and_no_line_of_code(run, X):
    code, _, err = run("fit", "x.npy", "-k", 3, "--model", "ls-nmf", "--max-iter", 2, "--out", "out")
    assert code == 0, err
    assert "\nWarning: LogSparseNMF ended after --max-iter 2 iterations without reaching --tol 1e-05: " in err
    assert ".py:" not in err


def test_the_folder_is_refused_before_the_data_are_read(run, here):
    (here / "old").mkdir()
    err = run("fit", "gone.csv", *QUICK, "--out", "old")[2]
    assert "old already exists" in err


def test_a_comparison_in_which_all_fail_is_refused(run, here, X, monkeypatch):
    def fail(*_):
        raise MemoryError

    monkeypatch.setattr(FactorModel, "_keep", fail)
    code, out, err = run(*COMPARE)
    assert (code, out) == (2, "")
    assert err.splitlines()[-1] == "Error: No model could be fitted. NMF: MemoryError"
    assert names(here) == ["x.npy"]


@blank
@pytest.mark.parametrize("scale", [[], ["--no-normalize"]])
def test_missing_entries_are_left_out(run, here, X, scale):
    """Samples have unit norm in what is known of them."""
    X[3, 2] = X[9, 0] = np.nan
    np.save("x.npy", X)
    code, _, err = run("fit", "x.npy", *QUICK, "--model", "wnmf", "--out", "r", *scale)
    assert code == 0, err
    known = X if scale else normalize(X)
    expected = MODELS["WNMF"](3, max_iter=20, random_state=0).fit(known)
    assert load_model(here / "r" / "model.npz").objective_ == pytest.approx(expected.objective_, rel=1e-10)
    code, out, _ = run("compare", "x.npy", *QUICK, "--models", "wnmf,nmf", "--out", "c", *scale)
    assert code == 0
    assert "WeightedNMF or LogSparseNMF" in out


@blank
def test_results_are_replaced_only_with_force(run, here, X):
    assert run("fit", "x.npy", *PLAIN, "--out", "r")[0] == 0
    before = (here / "r" / "summary.json").read_bytes()
    assert run("fit", "x.npy", *PLAIN, "--out", "r", "--seed", 1)[0] == 2
    assert (here / "r" / "summary.json").read_bytes() == before
    assert run("fit", "x.npy", *PLAIN, "--out", "r", "--seed", 1, "--force")[0] == 0
    assert summary(here / "r")["settings"]["seed"] == 1
    assert names(here) == ["r", "x.npy"]


@blank
def test_a_full_disk_is_one_sentence(run, here, X, monkeypatch):
    def fail(*_, **__):
        raise OSError(28, "No space left on device", "parts.png")

    monkeypatch.setattr("lognmf.plots.parts", fail)
    code, out, err = run("fit", "x.npy", *PLAIN)
    assert (code, out) == (2, "")
    assert err.splitlines()[-1] == "Error: parts.png: No space left on device."
    assert names(here / "results") == []


@blank
def test_our_own_errors_keep_their_traceback(X, monkeypatch):
    def fail(*_, **__):
        raise ValueError("a bug")  # noqa: EM101, TRY003

    monkeypatch.setattr("lognmf.plots.parts", fail)
    with pytest.raises(ValueError, match="a bug"):
        cli.main(["fit", "x.npy", *PLAIN])


# Progress ------------------------------------------------------------------------------


@blank
def test_what_is_being_done_is_told(run, here, X):
    code, _, err = run("fit", "x.npy", *QUICK, "--out", "r")
    assert code == 0
    for words in ("computing the start (nndsvda)", "choosing gamma", "choosing alpha and beta"):
        assert words in err
    assert "of at most 20 iterations, objective" in err
    assert summary(here / "r")["settings"]["parameters"]["verbose"] == 0
    err = run("compare", "x.npy", *QUICK, "--models", "nmf,wnmf,gnmf", "--seeds", 1)[2]
    assert "all methods: 7 of 7 fits" in err
    assert "finding 5 neighbours of" in err


@blank
@pytest.mark.parametrize("command", ["fit", "cluster", "compare"])
def test_seconds_are_those_that_the_user_waited(run, here, X, monkeypatch, command):
    """Reading included; the model's own loop takes a small share of this."""
    monkeypatch.setattr("lognmf.cli.prepare.Preparation.__call__", lambda _, X: time.sleep(0.5) or X)
    began = time.perf_counter()
    quick = ["--models", "nmf", "--no-references"] if command == "compare" else ["--model", "nmf"]
    assert run(command, "x.npy", "-k", 2, *quick, "--out", "r")[0] == 0
    found = summary(here / "r")
    assert (
        0.5 < (found if command == "compare" else found["results"])["seconds"] < time.perf_counter() - began
    )


@pytest.mark.skipif(sys.platform != "linux", reason="other systems have no such names")
@blank
@pytest.mark.parametrize("command", ["fit", "compare"])
def test_a_file_whose_name_is_no_text(tmp_path, monkeypatch, run, rng, command):
    """Bytes that are no UTF-8, a line break, a control sequence: once a traceback after the fit."""
    monkeypatch.chdir(tmp_path)
    quick = ["--models", "nmf", "--no-references"] if command == "compare" else ["--model", "nmf"]
    name = os.fsdecode(b"caf\xe9\n\x1b[2J.npy")
    np.save(name, rng.random((12, 6)))
    code, out, err = run(command, name, "-k", "2", "--max-iter", "3", *quick)
    assert code == 0, err
    assert r"caf\xe9\x0a\x1b[2J" in out
    assert "\x1b[2J" not in out + err
    (folder,) = (tmp_path / "results").iterdir()
    summary = json.loads((folder / "summary.json").read_text(encoding="utf-8"))
    assert summary["input"]["path"].endswith(name)
    code, _, err = run("fit", f"no-{name}", "-k", "2")
    assert code == 2
    assert err.startswith(r"Error: There is no file no-caf\xe9 \x1b[2J.npy: give a ")
