"""Commands to go on with: as they would be typed, and accepted."""

import html
import re
import shlex
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas
import pytest
import typer

from lognmf import MODELS
from lognmf.cli import options
from lognmf.cli.main import _app
from lognmf.cli.pages import next_steps

GROUP = typer.main.get_command(_app())
PLAIN = np.ones((5, 5))
HOLES = np.where(np.eye(5) > 0, np.nan, 1.0)
FIT = "lognmf fit 'my data.csv' -k 4 --labels kind --index=name --tune --seed 3 --out r --force"
SPARSE = "lognmf fit --no-normalize -k4 x.npz --scale-features tfidf"
CLUSTER = "lognmf cluster x.csv -k 4 --transpose"


def parsed(command):
    _, name, *words = shlex.split(command)
    return GROUP.get_command(None, name).make_context(name, words)


def steps(command, X=PLAIN, model="LS-NMF", folder=Path("/somewhere/r"), *, stop_reason="converged"):
    context = parsed(command)
    chosen = {"components": "auto"} if context.params.get("components") == "auto" else {}
    fitted = MODELS[model]()
    fitted.components_ = np.ones((4, 5))
    run = SimpleNamespace(
        typed=options.typed(context),
        data=SimpleNamespace(X=X),
        model=fitted,
        clusterer=object() if context.command.name == "cluster" else None,
        settings=chosen,
    )
    results = {"stop_reason": stop_reason, "iterations": 10, "cluster_sizes": [1] * 4}
    return [step for step, _ in next_steps(run, results, folder)]


@pytest.mark.parametrize("command", [FIT, SPARSE, CLUSTER])
def test_every_step_is_a_command_that_is_accepted(command):
    for step in steps(command):
        params = parsed(step).params
        assert (params.get("results") or params["file"]) is not None


def test_the_data_are_read_in_the_same_way():
    assert "lognmf compare 'my data.csv' --labels kind --index name -k 4" in steps(FIT)
    assert "lognmf cluster x.npz --scale-features tfidf --no-normalize -k 4" in steps(SPARSE)


def test_what_was_done_is_not_proposed_again():
    assert not any("--tune" in step for step in steps(FIT))
    assert any("--tune" in step for step in steps(SPARSE))
    assert not any("-k auto" in step for step in steps("lognmf fit x.csv -k auto"))
    assert any("-k auto" in step for step in steps("lognmf fit x.csv -k 4"))
    assert not any("-k auto" in step for step in steps("lognmf fit x.csv -k 2", X=np.ones((9, 2))))


def test_a_fit_that_has_not_converged_goes_on():
    found = steps("lognmf fit x.npy -k 4 --max-iter 10 --out r", stop_reason="max_iter")
    assert found[0] == "lognmf fit x.npy -k 4 --out r --force --max-iter 20"


def test_folders_are_named_as_they_would_be_typed_here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    found = steps(CLUSTER, folder=tmp_path / "my results")
    assert "lognmf predict 'my results' NEW --transpose" in found
    assert "lognmf predict /somewhere/r NEW --transpose" in steps(CLUSTER)


def test_options_that_matter_are_given_again():
    command = "lognmf fit x.csv -k 4 --model=ls-nmf --index who --penalty l1 --alpha 1 --layer raw --out r"
    assert steps(command) == [
        "lognmf fit x.csv --model ls-nmf --penalty l1 --index who --layer raw -k 4 --tune "
        "--out /somewhere/r-tuned",
        "lognmf fit x.csv --model ls-nmf --alpha 1.0 --penalty l1 --index who --layer raw -k auto "
        "--out /somewhere/r-auto",
        "lognmf cluster x.csv --model ls-nmf --index who --layer raw -k 4",
        "lognmf compare x.csv --index who --layer raw -k 4",
        "lognmf predict /somewhere/r NEW --layer raw",
        "lognmf transform /somewhere/r NEW --layer raw",
    ]
    assert steps("lognmf cluster x.csv -k auto --model gnmf")[0] == "lognmf fit x.csv --model gnmf -k 4"


def test_only_what_takes_the_data_is_proposed():
    found = steps("lognmf fit x.csv -k 4 --model wnmf", HOLES, "WNMF")
    assert not any("cluster" in step.split()[1] for step in found)
    assert not any("compare" in step.split()[1] for step in found)
    found = steps("lognmf fit x.csv -k 4 --model semi-nmf", -PLAIN, "Semi-NMF")
    assert not any("--tune" in step or "-k auto" in step for step in found)
    assert "lognmf cluster x.csv --model semi-nmf -k 4" in found
    assert not any("compare" in step.split()[1] for step in found)
    found = steps("lognmf fit x.npy -k 4 --memory 1MB", object())
    assert [step.split()[1] for step in found] == ["cluster", "predict", "transform"]
    assert "lognmf cluster x.npy --memory 1MB -k 4" in found


@pytest.mark.usefixtures("no_pictures")
@pytest.mark.parametrize("case", ["holes", "signed"])
def test_the_commands_on_a_page_work(run, tmp_path, monkeypatch, rng, case):
    monkeypatch.chdir(tmp_path)
    X = rng.random((12, 4))
    X = np.where(rng.random(X.shape) < 0.05, np.nan, X) if case == "holes" else X - 0.5
    table = pandas.DataFrame(X, columns=list("abcd")).assign(who=[f"s{i}" for i in range(12)])
    table.to_csv("x.csv", index=False)
    table.to_csv("NEW.csv", index=False)
    model = {"holes": "wnmf", "signed": "semi-nmf"}[case]
    assert run("fit", "x.csv", "-k", 2, "--index", "who", "--model", model, "--out", "r")[0] == 0
    page = re.sub("</?span>", "", (tmp_path / "r" / "index.html").read_text())
    commands = re.findall(r"<li><code>lognmf ([^<]*)</code>", html.unescape(page))
    assert len(commands) >= 3
    for command in commands:
        code, _, err = run(*shlex.split(command.replace("NEW", "NEW.csv")))
        assert code == 0, (command, err)
