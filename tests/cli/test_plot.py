"""``lognmf plot``: pictures of models and result folders."""

import shutil

import numpy as np
import pytest

from lognmf import PlainNMF, plots, save_model
from lognmf.cli.plot import DRAWN


@pytest.fixture(scope="module")
def shelf(tmp_path_factory):
    """A model, and a result folder of every command."""
    from lognmf.cli import main as cli

    here = tmp_path_factory.mktemp("shelf")
    rng = np.random.default_rng(0)
    X = np.repeat(np.eye(3).repeat(2, axis=1), 8, axis=0) + 0.2 * rng.random((24, 6))
    np.save(here / "x.npy", X)
    save_model(PlainNMF(3, random_state=0, max_iter=50).fit(X), here / "model")
    small = ["--out", "fit", "--image-shape", "2x3", "--model", "gnmf", "--tune", "--restarts", "1"]
    calls = {
        "fit": ["-k", "3", *small],
        "cluster": ["-k", "3", "--out", "cluster"],
        "compare": ["-k", "3", "--models", "nmf,gnmf", "--seeds", "1", "--max-iter", "5", "--out", "compare"],
    }
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(here)
        for command, options in calls.items():
            with pytest.raises(SystemExit, match=r"^0$"):
                cli.main([command, "x.npy", *options])
    return here


@pytest.fixture
def drawn(monkeypatch):
    """Arguments of the plots that were called, by name."""
    seen = {}

    def kept(name, draw):
        return lambda *given, **options: seen.update({name: (given, options)}) or draw(*given, **options)

    for name in DRAWN:
        monkeypatch.setattr(plots, name, kept(name, getattr(plots, name)))
    return seen


@pytest.mark.parametrize(
    ("source", "what"),
    [
        *(("model.npz", what) for what in ("parts", "codes", "convergence")),
        *(("fit", what) for what in ("parts", "codes", "convergence", "sensitivity")),
        ("cluster", "codes"),
        ("compare", "comparison"),
    ],
)
def test_pictures(run, shelf, tmp_path, monkeypatch, drawn, source, what):
    monkeypatch.chdir(tmp_path)
    code, out, err = run("plot", shelf / source, "--what", what)
    assert code == 0, err
    target = tmp_path / f"{source.partition('.')[0]}-{what}.png"
    assert out == f"The picture is in {target}\n"
    assert target.read_bytes().startswith(b"\x89PNG")
    given, _ = drawn[what]
    if (source, what) == ("fit", "parts"):
        assert given[1] == (2, 3), "samples were pictures of that shape"
    if what == "codes" and source != "model.npz":
        assert sorted(np.bincount(given[1])) == [8, 8, 8]


def test_what_is_drawn_by_default(run, shelf, tmp_path, drawn):
    assert run("plot", shelf / "model.npz", "--out", tmp_path / "a.pdf", "--image-shape", "3x2")[0] == 0
    assert run("plot", shelf / "compare", "--out", tmp_path / "b.svg")[0] == 0
    assert drawn["parts"][0][1] == (3, 2)
    assert [row.model for row in drawn["comparison"][0][0]]
    assert (tmp_path / "a.pdf").read_bytes().startswith(b"%PDF")


def test_the_sensitivity_is_that_of_the_fit(run, shelf, tmp_path):
    assert run("plot", shelf / "fit", "--what", "sensitivity", "--out", tmp_path / "s.png")[0] == 0
    assert (tmp_path / "s.png").read_bytes() == (shelf / "fit" / "sensitivity.png").read_bytes()


@pytest.mark.parametrize(
    ("file", "content", "what"),
    [
        ("summary.json", "{", "parts"),
        ("summary.json", "[1]", "parts"),
        ("summary.json", "{}", "sensitivity"),
        ("tuning.csv", "a,b\n1", "sensitivity"),
        ("tuning.csv", "a,b\n1,2", "sensitivity"),
    ],
)
def test_damaged_folders(run, shelf, tmp_path, file, content, what):
    folder = tmp_path / "damaged"
    shutil.copytree(shelf / "fit", folder)
    (folder / file).write_text(content)
    code, out, err = run("plot", folder, "--what", what, "--out", tmp_path / "p.png")
    assert (code, out) == (2, "")
    assert "cannot be read as" in err
    assert len(err.splitlines()) == 1


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["nowhere"], "There is no nowhere: give a model file or a result folder."),
        (["model.npz", "--what", "faces"], "--what must be one of"),
        (["model.npz", "--what", "sensitivity"], "holds no tuning.csv: lognmf fit --tune writes one."),
        (["cluster", "--what", "sensitivity"], "holds no tuning.csv"),
        (["fit", "--what", "comparison"], "holds no comparison: lognmf compare writes one."),
        (["compare", "--what", "codes"], "holds no model.npz: lognmf fit and lognmf cluster write one."),
        (["x.npy"], "x.npy holds no model"),
        (["model.npz", "--out", "p.gif"], "--out must end in .png, .pdf or .svg; got p.gif."),
        (["model.npz", "--image-shape", "4x4"], "pixels"),
        (["model.npz", "--out", "x.npy"], "x.npy"),
    ],
)
def test_refusals(run, shelf, monkeypatch, arguments, sentence):
    monkeypatch.chdir(shelf)
    before = sorted(shelf.iterdir())
    code, out, err = run("plot", *arguments)
    assert (code, out) == (2, "")
    assert sentence in err
    assert len(err.splitlines()) == 1
    assert sorted(shelf.iterdir()) == before
