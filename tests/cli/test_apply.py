"""``lognmf transform`` and ``predict``: new samples go the way of those of the fit."""

import json
import subprocess
import sys
import tracemalloc

import numpy as np
import pandas
import pytest
import scipy.sparse as sp

from lognmf import RobustLogSparseNMF, load_model, normalize
from lognmf.cli.prepare import SCALINGS, Preparation
from lognmf.io import DataWarning

pytestmark = pytest.mark.usefixtures("no_pictures")
NAMES = list("abcdef")


@pytest.fixture(autouse=True)
def frame(tmp_path, monkeypatch, rng):
    """Three groups of samples in a table of their own."""
    monkeypatch.chdir(tmp_path)
    X = np.eye(3)[np.repeat([0, 1, 2], 8)].repeat(2, axis=1) + rng.random((24, 6)) / 5
    frame = pandas.DataFrame(X * [1, 2, 3, 4, 5, 60], columns=NAMES)
    frame.to_csv("old.csv", index=False)
    return frame


@pytest.mark.parametrize("how", [None, *SCALINGS])
def test_samples_of_the_fit_get_its_codes(run, frame, how):
    scaled = [] if how is None else ["--scale-features", how]
    assert run("fit", "old.csv", "-k", 3, "--model", "ls-nmf", "--out", "r", *scaled)[0] == 0
    code, out, err = run("transform", "r", "old.csv")
    assert code == 0, err
    assert "old-codes.csv" in out
    X = frame.to_numpy()
    X = X if how is None else Preparation(**SCALINGS[how](X), unit=False)(X)
    expected = load_model("r/model.npz").transform(normalize(X))
    codes = pandas.read_csv("old-codes.csv")
    assert codes.columns.tolist() == ["sample", "part 0", "part 1", "part 2"]
    np.testing.assert_allclose(codes.iloc[:, 1:], expected, rtol=1e-9, atol=1e-12)


def test_columns_are_matched_by_name(run, frame):
    assert run("fit", "old.csv", "-k", 3, "--out", "r", "--scale-features", "max")[0] == 0
    frame[NAMES[::-1]].assign(more=1.0).set_axis([f"s{i}" for i in range(24)]).to_csv("new.csv")
    assert run("transform", "r", "old.csv", "--out", "a.csv")[0] == 0
    assert run("transform", "r", "new.csv", "--out", "b.csv")[0] == 0
    one, other = pandas.read_csv("a.csv"), pandas.read_csv("b.csv")
    assert other["name"].tolist() == [f"s{i}" for i in range(24)]
    pandas.testing.assert_frame_equal(one, other.drop(columns="name"))
    assert "outlier norm" in one
    code, _, err = run("transform", "r", "old.csv", "--out", "a.csv")
    assert (code, "already exists" in err) == (2, True)
    frame.drop(columns=["b", "c"]).to_csv("few.csv", index=False)
    code, _, err = run("transform", "r", "few.csv")
    assert (code, "few.csv lacks 2 of the 6 features of the model: b, c." in err) == (2, True)


@pytest.fixture
def told(frame):
    """The same samples with their names and labels."""
    words = {"who": [f"s{i}" for i in range(24)], "kind": ["x", "y", "z"] * 8, "number": range(24)}
    return frame.assign(**words)


@pytest.mark.parametrize("end", ["csv", "parquet"])
@pytest.mark.parametrize("command", ["fit", "cluster"])
def test_columns_that_the_model_does_not_know_are_left_out(run, told, command, end):
    write = {"csv": told.to_csv, "parquet": told.to_parquet}[end]
    write(f"all.{end}", index=False)
    told.drop(columns="number").to_csv("told.csv", index=False)
    given = ["--index", "who", "--labels", "kind", "--out", "r"]
    assert run(command, "told.csv", "-k", 3, *given)[0] == 0
    for apply, out in (("transform", f"all-codes.{end}"), ("predict", f"all-clusters.{end}")):
        code, _, err = run(apply, "r", f"all.{end}")
        assert code == 0, err
        assert (
            err.count(f"Hint: columns of all.{end} that the model does not know are ignored: kind, number.\n")
            == 1
        )
        assert pandas.read_csv(out.replace("parquet", "csv"))["name"].tolist() == told["who"].tolist()
    clusters = pandas.read_csv("all-clusters.csv")["cluster"]
    assert clusters.tolist() == pandas.read_csv("r/labels.csv")["cluster"].tolist()


def test_the_index_of_the_fit_is_used_unless_another_is_given(run, told, tmp_path):
    told.to_csv("told.csv", index=False)
    assert run("fit", "told.csv", "-k", 2, "--index", "who", "--labels", "kind", "--out", "r")[0] == 0
    assert json.loads((tmp_path / "r" / "summary.json").read_text())["settings"]["index"] == "who"
    assert run("transform", "r", "told.csv", "--index", "kind", "--out", "k.csv")[0] == 0
    assert pandas.read_csv("k.csv")["name"].tolist() == told["kind"].tolist()
    told.drop(columns="who").to_csv("nameless.csv", index=False)
    code, _, err = run("transform", "r", "nameless.csv", "--out", "n.csv")
    assert code == 0, err
    assert "name" not in pandas.read_csv("n.csv")


def test_text_in_new_samples_is_refused_without_options_that_are_not_there(run, frame, told):
    assert run("fit", "old.csv", "-k", 2, "--model", "nmf", "--out", "r")[0] == 0
    told.assign(b="?").to_csv("odd.csv", index=False)
    code, _, err = run("transform", "r", "odd.csv")
    assert code == 2
    assert "Column 'b' of odd.csv holds text, not numbers: replace what is not a number" in err
    np.save("old.npy", frame.to_numpy())
    assert run("fit", "old.npy", "-k", 2, "--model", "nmf", "--out", "n")[0] == 0
    code, _, err = run("transform", "n", "odd.csv")
    assert (code, "--index, or remove it." in err, "--labels" in err) == (2, True, False)


def test_a_damaged_index_is_refused(run, tmp_path):
    assert run("fit", "old.csv", "-k", 2, "--model", "nmf", "--out", "r")[0] == 0
    for settings in ('{"settings": {"index": 3}}', '{"settings": 3}', "{}", "["):
        (tmp_path / "r" / "summary.json").write_text(settings)
        code, _, err = run("transform", "r", "old.csv")
        assert (code, err.count("summary.json cannot be read as json")) == (2, 1)


@pytest.mark.parametrize("command", ["fit", "cluster"])
def test_samples_of_the_fit_keep_their_clusters(run, command):
    assert run(command, "old.csv", "-k", 3, "--out", "r", "--scale-features", "minmax")[0] == 0
    code, out, err = run("predict", "r", "old.csv")
    assert code == 0, err
    assert "old-clusters.csv" in out
    clusters = pandas.read_csv("old-clusters.csv")["cluster"]
    assert clusters.tolist() == pandas.read_csv("r/labels.csv")["cluster"].tolist()


def test_sparse_samples(run, frame):
    sp.save_npz("old.npz", sp.csr_array(frame.to_numpy() * (frame.to_numpy() > 0.1)))
    assert run("cluster", "old.npz", "-k", 3, "--out", "r", "--scale-features", "tfidf")[0] == 0
    assert run("predict", "r", "old.npz")[0] == 0
    clusters = pandas.read_csv("old-clusters.csv")["cluster"]
    assert clusters.tolist() == pandas.read_csv("r/labels.csv")["cluster"].tolist()


def test_names_that_come_twice():
    X, same = np.arange(6.0).reshape(2, 3), Preparation(("a", "a", "b"))
    np.testing.assert_array_equal(same.in_order(X, ("a", "a", "b"), "x.csv"), X)
    with pytest.raises(ValueError, match=r"x\.csv has several features called 'a'"):
        Preparation(("a", "b")).in_order(X, ("a", "a", "b"), "x.csv")
    with pytest.warns(DataWarning, match="that the model does not know are ignored: c"):
        found = Preparation(("b", "a")).in_order(X, ("a", "c", "b"), "x")
    np.testing.assert_array_equal(found, X[:, [2, 0]])


def test_what_a_sample_below_the_smallest_becomes():
    X = np.array([[1.0, 5.0], [3.0, 5.0]])
    preparation = Preparation(**SCALINGS["minmax"](X), unit=False)
    np.testing.assert_array_equal(preparation(X), [[0, 0], [1, 0]])
    np.testing.assert_array_equal(preparation(np.array([[0.0, 7.0]])), [[0, 2]])


@pytest.mark.parametrize("end", ["npz", "csv"])
def test_a_column_that_dominates_the_others_is_named(run, end):
    def hint(X):
        if end == "npz":
            sp.save_npz("x.npz", sp.csr_array(X))
        else:
            pandas.DataFrame(X, columns=list("abc")).to_csv("x.csv", index=False)
        return run("fit", f"x.{end}", "-k", 2, "--model", "nmf", "--max-iter", 2, "--out", "r", "--force")[2]

    assert "Hint" not in hint(np.ones((4, 3)))
    which = "3" if end == "npz" else "'c'"
    assert f"Hint: column {which} has 100% of the sum of squares" in hint(np.array([[1.0, 1, 100]] * 4))


def test_clusters_belong_to_the_model_whatever_happens_to_the_table(run):
    """Once they were read from labels.csv by position, also after it was sorted in a spreadsheet."""
    assert run("fit", "old.csv", "-k", 3, "--model", "nmf", "--out", "r")[0] == 0
    assert run("predict", "r", "old.csv", "--out", "a.csv")[0] == 0
    labels = pandas.read_csv("r/labels.csv")
    assert pandas.read_csv("a.csv")["cluster"].tolist() == labels["cluster"].tolist()
    labels.sort_values("cluster")[:-1].to_csv("r/labels.csv", index=False)
    assert run("predict", "r", "old.csv", "--out", "b.csv")[0] == 0
    pandas.testing.assert_frame_equal(pandas.read_csv("a.csv"), pandas.read_csv("b.csv"))


@pytest.mark.parametrize("command", ["transform", "predict"])
def test_a_name_is_never_a_formula(run, frame, command):
    assert run("fit", "old.csv", "-k", 3, "--model", "nmf", "--out", "r")[0] == 0
    frame[:3].assign(who=["=HYPERLINK(1)", "x;=1+1", "plain"]).to_csv("new.csv", index=False)
    assert run(command, "r", "new.csv", "--index", "who", "--out", "o.csv")[0] == 0
    assert pandas.read_csv("o.csv")["name"].tolist() == ["'=HYPERLINK(1)", "x;'=1+1", "plain"]


def test_transform_solves_the_codes_once_and_needs_little_memory(run, monkeypatch, rng):
    """A sparse file of 0.1 MB, whose outlier part as one dense matrix would take 160 MB."""
    X = sp.random_array((200, 100_000), density=0.0005, rng=rng, format="csr")
    sp.save_npz("wide.npz", X)
    assert (
        run("fit", "wide.npz", "-k", 2, "--max-iter", 2, "--lam", 0, "--init", "nndsvda", "--out", "r")[0]
        == 0
    )
    calls, transform = [], RobustLogSparseNMF.transform
    monkeypatch.setattr(RobustLogSparseNMF, "transform", lambda *given: calls.append(1) or transform(*given))
    tracemalloc.start()
    try:
        assert run("transform", "r", "wide.npz", "--out", "o.csv")[0] == 0
        assert tracemalloc.get_traced_memory()[1] < 140e6
    finally:
        tracemalloc.stop()
    assert calls == [1]
    model, codes = load_model("r/model.npz"), pandas.read_csv("o.csv")
    V = codes[["part 0", "part 1"]].to_numpy()
    norms = np.linalg.norm(model.outliers(normalize(X), V), axis=1)
    np.testing.assert_allclose(codes["outlier norm"], norms, atol=1e-12)


REFUSALS = {
    "no folder": (["transform", "nowhere", "old.csv"], "nowhere is not a result folder of lognmf fit"),
    "no file": (["predict", "r", "gone.csv"], "There is no file gone.csv"),
    "features": (["predict", "r", "wide.npy"], "wide.npy has 7 features, but the model has 6."),
    "ending": (["transform", "r", "old.csv", "--out", "x.txt"], "--out must end in .csv; got x.txt."),
    "negative": (
        ["transform", "r", "low.npy"],
        "low.npy has negative values in columns 'a', 'b', 'c', 'd', 'e', 'f': the model",
    ),
}


@pytest.mark.parametrize("case", REFUSALS)
def test_refused_in_a_sentence(run, case):
    np.save("wide.npy", np.ones((2, 7)))
    np.save("low.npy", -np.ones((2, 6)))
    assert run("fit", "old.csv", "-k", 2, "--model", "nmf", "--out", "r")[0] == 0
    arguments, sentence = REFUSALS[case]
    code, out, err = run(*arguments)
    assert (code, out) == (2, "")
    assert sentence in err


def test_logarithms_of_negative_values_are_refused(run, frame):
    """Once they became missing entries, which some models take without a word."""
    given = ["-k", 2, "--model", "ls-nmf", "--lam", 0, "--alpha", 0, "--beta", 0, "--scale-features", "log1p"]
    assert run("fit", "old.csv", *given, "--out", "r")[0] == 0
    (frame - 5).to_csv("low.csv", index=False)
    code, _, err = run("transform", "r", "low.csv")
    assert (code, "low.csv has negative values in columns 'a'" in err) == (2, True)


def test_damaged_preparations_are_refused(run, tmp_path):
    assert run("fit", "old.csv", "-k", 2, "--model", "nmf", "--out", "r")[0] == 0
    (tmp_path / "r" / "preparation.npz").write_bytes(b"nothing")
    code, _, err = run("transform", "r", "old.csv")
    assert (code, "preparation.npz cannot be read as npz" in err) == (2, True)


def test_the_package_runs_as_a_module():
    said = subprocess.run([sys.executable, "-m", "lognmf", "--version"], capture_output=True, text=True)
    assert (said.returncode, said.stdout.split()[0]) == (0, "lognmf")


def test_the_summary_says_how_samples_were_scaled(run, tmp_path):
    assert run("fit", "old.csv", "-k", 2, "--out", "r", "--scale-features", "max", "--no-normalize")[0] == 0
    settings = json.loads((tmp_path / "r" / "summary.json").read_text())["settings"]
    assert (settings["normalize"], settings["scale_features"]) == (False, "max")
