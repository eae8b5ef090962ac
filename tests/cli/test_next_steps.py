"""Commands to go on with: as they would be typed, and accepted."""

import html
import re
import shlex
from pathlib import Path

import numpy as np
import pandas
import pytest
import typer

from lognmf import MODELS
from lognmf.cli.main import _app
from lognmf.cli.next_steps import next_steps

DONE = {"stop_reason": "converged", "iterations": 10, "parts": 4, "chosen": False}
PLAIN = np.ones((5, 5))
HOLES = np.where(np.eye(5) > 0, np.nan, 1.0)
COMMANDS = [
    "lognmf fit 'my data.csv' -k 4 --labels kind --index=name --tune --seed 3 --out r --force",
    "lognmf fit --no-normalize -k4 x.npz --scale-features tfidf",
    "lognmf cluster x.csv -k 4 --transpose",
    "lognmf cluster --clusters 4 digits",
]


def steps(command, X=PLAIN, model="LS-NMF", **results):
    return dict(next_steps(command, Path("/somewhere/r"), 4, DONE | results, MODELS[model](), X))


@pytest.mark.parametrize("command", COMMANDS)
def test_every_step_is_a_command_that_is_accepted(command):
    group = typer.main.get_command(_app())
    for step in steps(command):
        _, name, *words = shlex.split(step)
        own = group.get_command(None, name)
        parsed = own.make_context(name, words).params
        assert (parsed.get("results") or parsed["file"]) is not None


def test_the_data_are_read_in_the_same_way():
    found = [step for step in steps(COMMANDS[0]) if "compare" in step]
    assert found == ["lognmf compare 'my data.csv' --labels kind --index=name -k 4"]
    assert "lognmf cluster x.npz --no-normalize --scale-features tfidf -k 4" in steps(COMMANDS[1])


def test_what_was_done_is_not_proposed_again():
    assert not any("--tune" in step for step in steps(COMMANDS[0]))
    assert any("--tune" in step for step in steps(COMMANDS[1]))


def test_a_fit_that_has_not_converged_goes_on():
    found = steps("lognmf fit x.npy -k 4 --max-iter 10 --out r", stop_reason="max_iter")
    assert next(iter(found)) == "lognmf fit x.npy -k 4 --out r --force --max-iter 20"


def test_folders_are_named_as_they_would_be_typed_here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    found = dict(next_steps(COMMANDS[3], tmp_path / "my results", 4, DONE, MODELS["LS-NMF"](), PLAIN))
    assert "lognmf predict 'my results' NEW" in found
    assert "lognmf predict /somewhere/r NEW" in steps(COMMANDS[3])


def test_options_that_matter_are_kept():
    command = "lognmf fit x.csv -k 4 --model=ls-nmf --index who --penalty l1 --alpha 1 --layer raw --out r"
    found = list(steps(command))
    own = "lognmf fit x.csv --model=ls-nmf --index who --penalty l1"
    assert found == [
        f"{own} --layer raw -k 4 --tune --out /somewhere/r-tuned",
        f"{own} --alpha 1 --layer raw -k auto --out /somewhere/r-auto",
        "lognmf cluster x.csv --model=ls-nmf --index who --layer raw -k 4",
        "lognmf compare x.csv --index who --layer raw -k 4",
        "lognmf predict /somewhere/r NEW --layer raw",
        "lognmf transform /somewhere/r NEW --layer raw",
    ]
    found = list(steps("lognmf cluster x.csv -k auto --model gnmf --seed 3", model="GNMF"))
    assert found[0] == "lognmf fit x.csv --model gnmf -k 4"


def test_a_number_that_was_chosen_is_not_chosen_again():
    assert not any("-k auto" in step for step in steps("lognmf fit x.csv -k auto", chosen=True))
    assert any("-k auto" in step for step in steps("lognmf fit x.csv -k 4"))
    assert not any("-k auto" in step for step in steps("lognmf fit x.csv -k 2", X=np.ones((9, 2))))


def test_only_what_takes_the_data_is_proposed():
    found = steps("lognmf fit x.csv -k 4 --model wnmf", HOLES, "WNMF")
    assert not any("cluster" in step.split()[1] for step in found)
    assert "lognmf compare x.csv -k 4 --models wnmf,ls-nmf --no-references" in found
    found = steps("lognmf fit x.csv -k 4 --model semi-nmf", -PLAIN, "Semi-NMF")
    assert not any("--tune" in step or "-k auto" in step for step in found)
    assert "lognmf cluster x.csv --model semi-nmf -k 4" in found
    assert "lognmf compare x.csv -k 4 --models rmnmf,semi-nmf" in found
    found = steps("lognmf fit x.npy -k 4 --memory 1MB", object())
    assert [step.split()[1] for step in found] == ["cluster", "predict", "transform"]
    assert "lognmf cluster x.npy --memory 1MB -k 4" in found


@pytest.mark.usefixtures("no_pictures")
@pytest.mark.parametrize("case", ["holes", "signed"])
def test_the_commands_on_a_page_work(run, tmp_path, monkeypatch, rng, case):
    monkeypatch.chdir(tmp_path)
    X = rng.random((30, 5))
    X = np.where(rng.random(X.shape) < 0.05, np.nan, X) if case == "holes" else X - 0.5
    table = pandas.DataFrame(X, columns=list("abcde")).assign(who=[f"s{i}" for i in range(30)])
    table.to_csv("x.csv", index=False)
    table.to_csv("NEW.csv", index=False)
    model = {"holes": "wnmf", "signed": "semi-nmf"}[case]
    assert run("fit", "x.csv", "-k", 2, "--index", "who", "--model", model, "--out", "r")[0] == 0
    page = re.sub("</?span>", "", (tmp_path / "r" / "index.html").read_text())
    commands = re.findall(r"<li><code>lognmf ([^<]*)</code>", html.unescape(page))
    assert len(commands) > 3
    for command in commands:
        code, _, err = run(*shlex.split(command.replace("NEW", "NEW.csv")))
        assert code == 0, (command, err)
