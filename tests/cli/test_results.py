"""Result folders: complete or not there, strict JSON, never over something else."""

import csv
import hashlib
import json
import multiprocessing
import os
import signal
import stat
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from matplotlib.figure import Figure

from lognmf import LogSparseNMF, RobustLogSparseNMF, files, load_model, metrics, plots
from lognmf.cli.prepare import Preparation
from lognmf.cli.results import FILES, Run, check_folder, summarize, write_results
from lognmf.datasets import Dataset
from lognmf.files import fingerprint, new_file, working_folder

blank = pytest.mark.usefixtures("no_pictures")
PLAIN = {name for name in FILES if not name.endswith(".parquet")}
TUNED = {"tuning.csv", "sensitivity.png", "candidates.csv", "clusterer.npz"}
MODELS = {"ls-nmf": LogSparseNMF, "rls-nmf": RobustLogSparseNMF}


@cache
def fitted(name, seed):
    X = np.random.default_rng(seed).random((12, 6))
    X[4] *= 20
    return X, MODELS[name](2, max_iter=5, random_state=seed).fit(X)


def make_run(name="rls-nmf", y=None, seed=0, **more):
    X, model = fitted(name, seed)
    settings = {"model": name, "clusters": 2, "seed": np.int64(seed), "odd": float("nan"), "shape": (2, 3)}
    source = {"path": "/somewhere/x.csv", "sha256": "0" * 64}
    data, command = Dataset(X, y, "x", "x", **more), "lognmf fit x.csv -k 2"
    labels = np.arange(12) % 2
    return Run(data, model, labels, settings, source, command, {}, Preparation(unit=False), seconds=12.5)


def rows(path):
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.reader(file))


def strict(text):
    """JSON by the standard: no NaN, no Infinity."""

    def refuse(word):
        raise AssertionError(word)

    return json.loads(text, parse_constant=refuse)


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def content(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir()}


# What is written -----------------------------------------------------------------------


def test_a_robust_run_writes_every_file_but_those_of_tuning(tmp_path):
    folder = write_results(tmp_path / "deep" / "out", make_run(), force=False)
    assert {path.name for path in folder.iterdir()} == PLAIN - TUNED
    assert names(tmp_path / "deep") == ["out"]
    mask = os.umask(0)
    os.umask(mask)
    assert stat.S_IMODE(folder.stat().st_mode) == 0o777 & ~mask


@blank
def test_a_plain_run_has_no_outliers(tmp_path):
    folder = write_results(tmp_path / "out", make_run("ls-nmf"))
    assert {path.name for path in folder.iterdir()} == PLAIN - TUNED - {"outliers.csv"}
    assert strict((folder / "summary.json").read_text())["results"]["outliers"] is None


@blank
def test_factors_and_model(tmp_path):
    run = make_run(feature_names=("a", "b", "c", "d", "e", "é"))
    folder = write_results(tmp_path / "out", run)
    with np.load(folder / "factors.npz", allow_pickle=False) as factors:
        np.testing.assert_array_equal(factors["U"], run.model.components_.T)
        np.testing.assert_array_equal(factors["V"], run.model.embedding_)
        assert factors["feature_names"].tolist() == ["a", "b", "c", "d", "e", "é"]
    np.testing.assert_array_equal(load_model(folder / "model.npz").components_, run.model.components_)


@blank
def test_lists_hold_every_sample(tmp_path):
    kinds = np.array(["a,b", 'say "c"', "ü"] * 4)
    run = make_run(y=kinds)
    folder = write_results(tmp_path / "out", run)
    head, *labels = rows(folder / "labels.csv")
    assert head == ["sample", "cluster", "label"]
    assert labels == [[str(i), str(i % 2), kind] for i, kind in enumerate(kinds)]
    head, *outliers = rows(folder / "outliers.csv")
    assert head == ["sample", "outlier", "share", "norm"]
    columns = (run.model.is_outlier_, run.model.outlier_share_, run.model.outlier_norm_)
    np.testing.assert_array_equal(np.array(outliers, dtype=float)[:, 1:], np.stack(columns, axis=1))
    head, *history = rows(folder / "history.csv")
    assert head == ["iteration", "seconds", "objective"]
    assert float(history[-1][2]) == run.model.objective_


@blank
def test_without_true_labels_there_is_no_column_for_them(tmp_path):
    folder = write_results(tmp_path / "out", make_run())
    assert rows(folder / "labels.csv")[0] == ["sample", "cluster"]


def test_pictures_are_pictures(tmp_path):
    image = pytest.importorskip("PIL.Image")
    folder = write_results(tmp_path / "out", make_run(image_shape=(2, 3)))
    for name in ("convergence.png", "parts.png", "codes.png"):
        with image.open(folder / name) as picture:
            assert min(picture.size) > 200
            assert len(picture.convert("L").getcolors()) > 10


@blank
def test_parts_are_drawn_in_the_order_of_the_clusters(tmp_path, monkeypatch):
    orders = []
    monkeypatch.setattr(plots, "parts", lambda U, shape, order, **_: orders.append(order) or Figure())
    run = make_run()
    V = np.asarray(run.model.embedding_)
    largest = (V[:, 1] / V[:, 1].max() > V[:, 0] / V[:, 0].max()).astype(int)
    for labels, order in ((largest, [0, 1]), (1 - largest, [1, 0])):
        write_results(tmp_path / "out", replace(run, labels=labels), force=True)
        assert orders.pop() == order


# The summary ---------------------------------------------------------------------------


@blank
def test_summary_is_strict_json_and_says_how_to_do_it_again(tmp_path):
    run = make_run(y=np.arange(12) % 3)
    folder = write_results(tmp_path / "out", run)
    summary = strict((folder / "summary.json").read_text())
    assert summary["command"] == "lognmf fit x.csv -k 2"
    assert set(summary["versions"]) == {"lognmf", "python", "numpy", "scipy", "scikit-learn"}
    assert summary["versions"]["numpy"] == np.__version__
    assert (summary["input"]["samples"], summary["input"]["features"]) == (12, 6)
    assert summary["input"]["sha256"] == "0" * 64
    settings = summary["settings"]
    assert settings["parameters"] == run.model.get_params()
    assert (settings["seed"], settings["odd"], settings["shape"]) == (0, None, [2, 3])
    assert settings["class"] == "RobustLogSparseNMF"


def test_summary_holds_the_results():
    run = make_run(y=np.arange(12) % 3)
    results = summarize(run)["results"]
    model = run.model
    assert results["objective"] == model.objective_
    assert results["iterations"] == model.n_iter_
    assert results["stop_reason"] == model.stop_reason_
    assert results["reconstruction_err"] == model.reconstruction_err_
    assert results["sparseness_U"] == metrics.hoyer_sparseness(model.components_)
    assert results["sparseness_V"] == metrics.hoyer_sparseness(model.embedding_)
    assert results["outliers"] == model.is_outlier_.sum()
    assert results["cluster_sizes"] == [6, 6]
    assert results["accuracy"] == metrics.clustering_accuracy(run.data.y, run.labels)
    assert results["nmi"] == metrics.normalized_mutual_info(run.data.y, run.labels)
    assert results["purity"] == metrics.purity(run.data.y, run.labels)


def test_labels_may_be_any_numbers():
    results = summarize(make_run(y=np.array([0.5, 1.5] * 6)))["results"]
    assert (results["accuracy"], results["classes"]) == (1, 2)


def test_fingerprint(tmp_path):
    (tmp_path / "x").write_bytes(b"abc")
    assert fingerprint(tmp_path / "x") == hashlib.sha256(b"abc").hexdigest()


# All or nothing ------------------------------------------------------------------------


@blank
def test_nothing_is_overwritten(tmp_path):
    folder = write_results(tmp_path / "out", make_run())
    before = content(folder)
    with pytest.raises(FileExistsError, match=r"out already exists: .*--force"):
        write_results(folder, make_run(seed=1))
    assert content(folder) == before


@blank
def test_force_replaces_results_as_a_whole(tmp_path):
    write_results(tmp_path / "out", make_run("rls-nmf"))
    run = make_run("ls-nmf", seed=1)
    folder = write_results(tmp_path / "out", run, force=True)
    assert not (folder / "outliers.csv").exists()
    with np.load(folder / "factors.npz") as factors:
        np.testing.assert_array_equal(factors["V"], run.model.embedding_)
    assert names(tmp_path) == ["out"]


@blank
def test_force_never_removes_what_is_not_a_result(tmp_path):
    folder = tmp_path / "home"
    folder.mkdir()
    (folder / "thesis.tex").write_text("precious")
    with pytest.raises(
        FileExistsError, match=r"home is not replaced, because it holds other files \(thesis.tex\)"
    ):
        write_results(folder, make_run(), force=True)
    assert (folder / "thesis.tex").read_text() == "precious"


@blank
def test_an_empty_folder_can_be_forced(tmp_path):
    (tmp_path / "out").mkdir()
    assert len(list(write_results(tmp_path / "out", make_run(), force=True).iterdir())) == len(PLAIN - TUNED)


def test_files_and_closed_folders_are_refused(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(FileExistsError, match="file is a file"):
        check_folder(tmp_path / "file", force=True)
    with pytest.raises(PermissionError, match=r"cannot be created, because .*file cannot be written to"):
        check_folder(tmp_path / "file" / "out")


def test_check_folder_changes_nothing(tmp_path):
    assert check_folder(tmp_path / "a" / "b") == tmp_path.resolve() / "a" / "b"
    assert names(tmp_path) == []


@blank
@pytest.mark.parametrize("force", [False, True])
@pytest.mark.parametrize("kind", [OSError, KeyboardInterrupt])
def test_a_failure_while_writing_leaves_no_trace(tmp_path, monkeypatch, force, kind):
    before = content(write_results(tmp_path / "out", make_run())) if force else None

    def fail(*_, **__):
        raise kind

    monkeypatch.setattr(plots, "codes", fail)
    with pytest.raises(kind):
        write_results(tmp_path / "out", make_run(seed=1), force=force)
    assert names(tmp_path) == (["out"] if force else [])
    if force:
        assert content(tmp_path / "out") == before


@blank
@pytest.mark.parametrize("name", ["labels.csv", "index.html"])
def test_a_folder_or_a_link_named_like_a_result_is_not_one(tmp_path, name):
    folder = write_results(tmp_path / "out", make_run())
    (folder / name).unlink(missing_ok=True)
    (folder / name).mkdir()
    (folder / name / "thesis.tex").write_text("precious")
    with pytest.raises(FileExistsError, match=rf"because it holds other files \({name}\)"):
        write_results(folder, make_run(seed=1), force=True)
    assert (folder / name / "thesis.tex").read_text() == "precious"
    (folder / name).rename(tmp_path / "mine")
    (folder / name).symlink_to(tmp_path / "mine" / "thesis.tex")
    with pytest.raises(FileExistsError, match=rf"because it holds other files \({name}\)"):
        write_results(folder, make_run(seed=1), force=True)
    assert (folder / name).is_symlink()


@blank
def test_the_folder_itself_stays(tmp_path, monkeypatch):
    """A shell whose current folder it is would otherwise stand in one that is gone."""
    folder = write_results(tmp_path / "out", make_run())
    before = folder.stat().st_ino
    monkeypatch.chdir(folder)
    write_results(".", make_run("ls-nmf", seed=1), force=True)
    assert folder.stat().st_ino == before
    assert names(Path()) == names(folder)
    assert names(tmp_path) == ["out"]


@blank
@pytest.mark.parametrize("moves", [0, 3, 9, 18])
def test_killed_while_replacing(tmp_path, monkeypatch, moves):
    """Whenever that is: no old file stands next to a new one, and a folder with a summary is complete."""
    folder = write_results(tmp_path / "out", make_run())
    before, after = content(folder), content(write_results(tmp_path / "new", make_run(seed=1)))
    rename, done = Path.rename, []

    def until_killed(self, target):
        if len(done) < moves:
            done.append(rename(self, target))

    monkeypatch.setattr(Path, "rename", until_killed)
    write_results(folder, make_run(seed=1), force=True)
    left = content(folder)
    timed = {"history.csv", "index.html", "model.npz", "summary.json"}
    old = all(left[name] == before[name] for name in left if name not in timed)
    new = all(left[name] == after[name] for name in left if name not in timed)
    assert old or new
    assert ("summary.json" in left) == (len(left) == len(before))


@blank
def test_leftovers_of_killed_runs_are_removed(tmp_path):
    with working_folder(tmp_path) as busy:
        for parent in (tmp_path, write_results(tmp_path / "out", make_run())):
            (parent / f".lognmf-{'0' * 32}" / "new").mkdir(parents=True)
        write_results(tmp_path / "out", make_run(), force=True)
        assert names(tmp_path) == [busy.name, "out"]
        assert not [name for name in names(tmp_path / "out") if name.startswith(".")]


@blank
def test_results_are_replaced_where_folders_cannot_be_locked(tmp_path, monkeypatch):
    monkeypatch.setattr(files, "fcntl", None)
    folder = write_results(tmp_path / "out", make_run())
    left = folder / f".lognmf-unlocked-{'0' * 32}"  # of a killed run, or of one that is still at work
    left.mkdir()
    before = (folder / "factors.npz").read_bytes()
    write_results(folder, make_run(seed=1), force=True)
    assert (folder / "factors.npz").read_bytes() != before
    assert left.exists()


def old_results(folder):
    """The files of a folder and those that a swap has taken out of it."""
    return {
        path.name: path.read_bytes()
        for place in (folder, *folder.glob(".lognmf-*/old"))
        for path in place.iterdir()
        if path.is_file()
    }


@blank
@pytest.mark.parametrize("moves", [1, 12])
def test_a_kill_while_replacing_loses_no_old_results(tmp_path, moves):
    """Whoever writes there next: only a run that puts complete results there removes the old ones."""
    folder = write_results(tmp_path / "out", make_run())
    before = content(folder)
    rename, done = Path.rename, []

    def until_killed(self, target):
        if len(done) == moves:
            os.kill(os.getpid(), signal.SIGKILL)
        done.append(rename(self, target))

    def replace_and_die():
        Path.rename = until_killed
        write_results(folder, make_run(seed=1), force=True)

    process = multiprocessing.get_context("fork").Process(target=replace_and_die)
    process.start()
    process.join()
    assert process.exitcode == -signal.SIGKILL
    with new_file(folder / "figure.png") as fresh:
        fresh.touch()
    (folder / "figure.png").unlink()
    assert old_results(folder) == before
    write_results(folder, make_run(), force=True)
    assert names(folder) == sorted(before)


@blank
def test_a_second_interrupt_loses_no_old_results(tmp_path, monkeypatch):
    folder = write_results(tmp_path / "out", make_run())
    before, rename = content(folder), Path.rename

    def interrupted_twice(self, target):
        if self.parent.name != "out":
            raise KeyboardInterrupt
        return rename(self, target)

    monkeypatch.setattr(Path, "rename", interrupted_twice)
    with pytest.raises(KeyboardInterrupt):
        write_results(folder, make_run(seed=1), force=True)
    assert old_results(folder) == before


@blank
def test_a_failure_while_replacing_puts_the_old_results_back(tmp_path, monkeypatch):
    folder = write_results(tmp_path / "out", make_run())
    before = content(folder)
    rename = type(folder).rename

    def fail_for_the_last_new_one(self, target):
        if self.parent.name == "new" and len(list(self.parent.iterdir())) == 1:
            raise OSError
        return rename(self, target)

    monkeypatch.setattr(type(folder), "rename", fail_for_the_last_new_one)
    with pytest.raises(OSError, match=r"^$"):
        write_results(folder, make_run(seed=1), force=True)
    assert names(tmp_path) == ["out"]
    assert content(folder) == before


@blank
def test_a_folder_that_appears_meanwhile_is_kept(tmp_path, monkeypatch):
    draw = plots.codes

    def draw_slowly(*arguments):
        (tmp_path / "out").mkdir()
        return draw(*arguments)

    monkeypatch.setattr(plots, "codes", draw_slowly)
    with pytest.raises(FileExistsError, match="already exists"):
        write_results(tmp_path / "out", make_run())
    assert list((tmp_path / "out").iterdir()) == []
    assert names(tmp_path) == ["out"]


# Names and words from elsewhere --------------------------------------------------------


@blank
def test_a_label_is_never_a_formula(tmp_path):
    """A spreadsheet runs what begins with = + - @, also after a semicolon where it splits at those."""
    y = np.array(["=1+1", "+x", "-x", "@x", "\tx", "-1", "+1.5", "a=b", "'=1", "", "x;=1+1", "-1e3"])
    folder = write_results(tmp_path / "out", make_run(y=y))
    written = [label for _, _, label in rows(folder / "labels.csv")[1:]]
    assert written == [
        "'=1+1",
        "'+x",
        "'-x",
        "'@x",
        "'\tx",
        "-1",
        "+1.5",
        "a=b",
        "''=1",
        "",
        "x;'=1+1",
        "-1e3",
    ]


@blank
def test_names_that_are_no_utf_8_are_written(tmp_path):
    odd = os.fsdecode(b"caf\xe9")
    run = replace(make_run(y=np.array([odd] * 12)), source={"path": f"/{odd}.csv"}, command=f"lognmf {odd}")
    folder = write_results(tmp_path / "out", run)
    assert strict((folder / "summary.json").read_text(encoding="utf-8"))["input"]["path"] == f"/{odd}.csv"
    assert rows(folder / "labels.csv")[1][2] == r"caf\udce9"
