"""``lognmf reproduce`` as a user meets it."""

from importlib.util import find_spec

import pytest

from lognmf.paper import tables as paper
from lognmf.paper.methods import WEIGHTS
from lognmf.paper.spec import PRESETS, Data, Preset
from lognmf.paper.store import StudyStore

TORCH = find_spec("torch") is not None
FAST = ["reproduce", "table5", "--preset", "tiny", "--datasets", "orl", "--executor", "inline"]


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch, no_pictures):
    """A folder of its own, a preset of one value, and few digits in the place of ORL."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setitem(PRESETS, "tiny", Preset(dict.fromkeys(WEIGHTS, (0.1,)), 2, seeds=(1, 2)))
    monkeypatch.setitem(paper.DATASETS, "ORL", Data("digits", 25))
    return tmp_path


def test_one_table_then_again(run, here, monkeypatch):
    code, out, err = run(*FAST, "--out", "r")
    assert code == 0, err
    assert "Results are in r" in out
    assert "grids: " in err
    assert "lognmf reproduce table5" in (here / "r" / "index.html").read_text(encoding="utf-8")
    monkeypatch.setattr("lognmf.paper.run.perform", lambda _: pytest.fail("done again"))
    code, out, err = run(*FAST, "--out", "r")
    assert (code, "grids: " in err) == (0, False)


def test_pieces_and_merging(run, here):
    assert run(*FAST, "--out", "one", "--no-page")[0] == 0
    assert not (here / "one" / "index.html").exists()
    code, _, err = run(*FAST, "--out", "two", "--no-fit", "--merge", here / "one" / "study.db")
    assert code == 0
    assert "rows taken over from" in err
    assert StudyStore(here / "two" / "study.db").done() == StudyStore(here / "one" / "study.db").done()


def test_what_is_left_and_what_failed(run, here, monkeypatch):
    code, out, _ = run(*FAST, "--out", "r", "--no-page", "--time-limit", "-1")
    assert code == 0
    assert "pieces are left: run the command again to go on." in out

    def broken(piece, device):
        msg = "out of paper"
        raise OSError(msg)

    monkeypatch.setattr("lognmf.paper.work.WORK", {"grid": broken, "curve": broken})
    code, out, err = run(*FAST, "--out", "r", "--no-page")
    assert code == 1
    assert "failed: run the command again to try them again." in out
    assert "OSError: out of paper" in err


def test_force_begins_anew(run, here):
    run(*FAST, "--out", "r", "--no-page")
    code, _, err = run(*FAST, "--out", "r", "--no-page", "--force")
    assert code == 0
    assert "grids: " in err


def test_interrupted(run, monkeypatch):
    def interrupt(_):
        raise KeyboardInterrupt

    monkeypatch.setattr("lognmf.paper.run.perform", interrupt)
    code, _, err = run(*FAST, "--out", "r")
    assert code == 130
    assert "finished fits are saved in r: run the command again to continue" in err


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (
            ["reproduce", "table9"],
            "There is no 'table9' to reproduce: choose among all, tables, figures, table1",
        ),
        (["reproduce", "--preset", "slow"], "--preset must be one of"),
        (["reproduce", "--datasets", "mnist"], "--datasets must be among semeion"),
        ([*FAST, "--executor", "abacus"], "--executor must be one of"),
        ([*FAST, "--jobs", "0"], "--jobs must be an integer >= 1"),
        ([*FAST, "--merge", "nowhere.db"], "nowhere.db is not there"),
        ([*FAST, "--device", "abacus"], "device must be a name of torch" if TORCH else "needs torch"),
    ],
)
def test_refused(run, arguments, words):
    code, _, err = run(*arguments)
    assert code == 2
    assert words in " ".join(err.split())


def test_a_folder_of_something_else(run, here):
    (here / "r").mkdir()
    (here / "r" / "holiday.jpg").touch()
    code, _, err = run(*FAST, "--out", "r")
    assert code == 2
    assert "holds other files" in err


def test_help(run):
    code, out, _ = run("reproduce", "--help")
    assert code == 0
    for word in ("table7", "fig-gamma", "--time-limit", "--merge"):
        assert word in out


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        (["--executor", "abacus"], "--executor must be one of"),
        (["--jobs", "0"], "--jobs must be an integer >= 1; got 0"),
        (["--device", "abacus"], "device must be a name of torch"),
        (["--merge", "gone.db"], "gone.db is not there"),
    ],
)
def test_means_that_are_not_there_are_refused_before_any_work(run, here, given, sentence):
    if "--device" in given:
        pytest.importorskip("torch")
    code, out, err = run(*FAST, "--out", "r", *given)
    assert (code, out) == (2, "")
    assert sentence in err
    assert len(err.splitlines()) == 1
    assert not (here / "r").exists()
