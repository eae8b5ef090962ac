"""``lognmf data`` as a user meets it, and data sets by name in the other commands."""

import json
import shutil

import numpy as np
import pytest
import scipy.sparse as sp
from PIL import Image

from lognmf import datasets, plots


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    """Every command runs in a folder of its own, with nothing at hand."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("LOGNMF_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("LOGNMF_DATA", raising=False)
    monkeypatch.setenv("COLUMNS", "200")
    return tmp_path


@pytest.fixture
def pictures(here, rng):
    for name in ("a$b", "[red]"):
        (here / "pics" / name).mkdir(parents=True)
        for i in range(6):
            grey = rng.integers(256, size=(6, 5), dtype=np.uint8)
            Image.fromarray(grey).save(here / "pics" / name / f"{i}.png")


def test_list(run):
    code, out, _ = run("data", "list")
    assert code == 0
    lines = {line.split()[0]: line.rstrip() for line in out.splitlines()}
    assert set(datasets.NAMES) < set(lines)
    assert lines["yale"].endswith("to fetch")
    assert lines["jaffe"].endswith("ask the owners")
    assert lines["digits"].endswith("built in")
    assert all(word in lines["ar"] for word in ("1300", "792", "50", "33×24"))


def test_list_says_what_is_here(run, data_home, monkeypatch):
    monkeypatch.setenv("LOGNMF_DATA", str(data_home))
    assert run("data", "list")[1].count(" here ") == 10


def test_info(run, here):
    code, out, _ = run("data", "info", "pendigits")
    assert code == 0
    for word in ("10992 samples of 16 features", "CC BY 4.0", "E. Alpaydin", "not here; at https://raw"):
        assert word in out
    assert "ask its owners as https://zenodo.org" in run("data", "info", "jaffe")[1]


def test_info_checks_the_file(run, here, data_home, monkeypatch):
    monkeypatch.setenv("LOGNMF_DATA", str(here))
    (here / "yale").mkdir()
    shutil.copy(data_home / "yale" / "Yale_32x32.mat", here / "yale")
    assert "(checked)" in run("data", "info", "YALE")[1]
    (here / "yale" / "Yale_32x32.mat").chmod(0o644)
    (here / "yale" / "Yale_32x32.mat").write_bytes(b"broken")
    assert "the file here has another one: replace it" in run("data", "info", "yale")[1]
    code, _, err = run("fit", "yale", "-k", 15)
    assert code == 2
    assert "is not the file it should be: its SHA-256 is" in err


def test_fetch_what_is_here(run, data_home, monkeypatch):
    monkeypatch.setenv("LOGNMF_DATA", str(data_home))
    code, out, _ = run("data", "fetch", "digits", "pendigits")
    assert code == 0
    assert out.splitlines() == [
        "digits: comes with scikit-learn",
        f"pendigits: {data_home / 'pendigits' / 'pendigits.tra'}",
        f"pendigits: {data_home / 'pendigits' / 'pendigits.tes'}",
    ]
    code, out, err = run("data", "fetch")
    assert code == 0
    assert "yale: " in out
    assert "jaffe" not in out
    assert "Skipped (the owners' permission is required): ar, jaffe, ar-100, jaffe-crop" in err


def test_fetch_what_must_be_asked_for(run, here):
    code, _, err = run("data", "fetch", "ar", "--to", "mine")
    assert code == 2
    assert err.startswith("Error: The data set ar (AR faces")
    assert "mine/ar/ar.mat" in err
    assert not (here / "mine").exists()


@pytest.mark.parametrize("command", ["info", "fetch"])
def test_unknown_names(run, command):
    code, _, err = run("data", command, "mnist")
    assert code == 2
    assert err.startswith("Error: There is no data set 'mnist': the names are semeion")


def test_show(run, here):
    code, out, _ = run("data", "show", "digits", "--per-class", 3)
    assert code == 0
    assert f"The picture is in {here / 'digits-samples.png'}" in out
    with Image.open("digits-samples.png") as picture:
        assert picture.format == "PNG"
    assert sorted(path.name for path in here.iterdir()) == ["digits-samples.png"]


def test_show_does_not_overwrite(run, here):
    (here / "mine.png").write_bytes(b"mine")
    code, _, err = run("data", "show", "digits", "--out", "mine.png")
    assert code == 2
    assert "mine.png already exists: choose another one with --out, or replace it with --force." in err
    assert (here / "mine.png").read_bytes() == b"mine"
    assert run("data", "show", "digits", "--out", "mine.png", "--force")[0] == 0
    assert (here / "mine.png").stat().st_size > 1000


def test_a_failed_show_leaves_nothing(run, here, monkeypatch):
    class Full:
        def savefig(self, path):
            path.write_bytes(b"half")
            raise OSError(28, "No space left on device")

    monkeypatch.setattr(plots, "samples", lambda *_, **__: Full())
    code, _, err = run("data", "show", "digits")
    assert code == 2
    assert "No space left on device" in err
    assert list(here.iterdir()) == []


def test_show_refusals(run):
    told = run("data", "show", "digits", "--out", "x.txt")[2]
    assert "--out must end in .png, .pdf or .svg; got x.txt" in told
    assert "is a folder: name a file in it" in run("data", "show", "digits", "--out", ".")[2]
    assert "There is no file gone" in run("data", "show", "gone")[2]


def test_show_tables(run, here):
    sp.save_npz("sparse.npz", sp.csr_array(np.eye(6)))
    assert run("data", "show", "sparse.npz", "--image-shape", "2x3")[0] == 0
    np.save("missing.npy", [[1.0, np.nan, 0.0], [np.nan, np.nan, np.inf]])
    assert run("data", "show", "missing.npy")[0] == 0
    assert run("data", "show", "missing.npy", "--image-shape", "1x3", "--force")[0] == 0


def test_show_a_folder(run, here, pictures):
    assert run("data", "show", "pics", "--out", "new/pics.svg", "--resize", "4x4")[0] == 0
    text = (here / "new" / "pics.svg").read_text()
    assert "a$b" in text
    assert "[red]" in text


def test_fit_a_folder(run, here, pictures):
    code, out, err = run("fit", "pics", "-k", 2, "--max-iter", 10)
    assert code == 0
    assert "pics: 12 samples of 30 features, 2 parts" in err
    assert "accuracy" in out
    summary = json.loads((here / "results" / "pics-rls-nmf" / "summary.json").read_text())
    assert summary["input"]["path"] == str(here / "pics")
    assert len(summary["input"]["sha256"]) == 64
    assert summary["settings"]["image_shape"] == [6, 5]
    assert "[red]" in (here / "results" / "pics-rls-nmf" / "labels.csv").read_text()


def test_fit_the_folder_one_is_in(run, here, pictures, monkeypatch):
    monkeypatch.chdir("pics")
    assert run("fit", ".", "-k", 2, "--max-iter", 3, "--resize", "3x3")[0] == 0
    assert (here / "pics" / "results" / "pics-rls-nmf" / "summary.json").exists()


def test_sizes(run, pictures, here):
    Image.new("L", (9, 9)).save(here / "pics" / "a$b" / "odd.png")
    code, _, err = run("compare", "pics", "--max-iter", 3)
    assert code == 2
    assert "have different sizes" in err
    assert "--resize 6x5" in err
    assert run("compare", "pics", "--max-iter", 3, "--resize", "5x5", "--models", "nmf,ls-nmf")[0] == 0
    for bad, told in (("5", "--resize must be height x width"), ("0x4", "--resize must be an integer >= 1")):
        code, _, err = run("compare", "pics", "--resize", bad, "--out", "other")
        assert code == 2
        assert told in err
    assert "--resize is for a folder" in run("fit", "digits", "-k", 2, "--resize", "4x4")[2]


def test_compare_by_name(run, here, data_home, monkeypatch):
    monkeypatch.setenv("LOGNMF_DATA", str(data_home))
    code, _, err = run("compare", "yale", "--max-iter", 3, "--models", "nmf")
    assert code == 0
    assert "yale: 165 samples of 1024 features, 15 parts" in err
    told = json.loads((here / "results" / "yale-compare" / "summary.json").read_text())
    assert told["input"]["dataset"] == "yale"
    assert told["input"]["path"] is None
    assert "Belhumeur" in told["input"]["citation"]
    assert told["settings"]["image_shape"] == [32, 32]
