"""Commands to go on with: as they would be typed, and accepted."""

import shlex
from pathlib import Path

import pytest
import typer

from lognmf.cli.main import _app
from lognmf.cli.next_steps import next_steps

DONE = {"stop_reason": "converged", "iterations": 10, "parts": 4}
COMMANDS = [
    "lognmf fit 'my data.csv' -k 4 --labels kind --index=name --tune --seed 3 --out r --force",
    "lognmf fit --no-normalize -k4 x.npz --scale-features tfidf",
    "lognmf cluster x.csv -k 4 --effort grid --transpose",
    "lognmf cluster --clusters 4 digits",
]


def steps(command, **results):
    return dict(next_steps(command, Path("/somewhere/r"), 4, DONE | results))


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
    assert not any("--effort grid" in step for step in steps(COMMANDS[2]))
    assert any("--effort grid" in step for step in steps(COMMANDS[3]))


def test_a_fit_that_has_not_converged_goes_on():
    found = steps("lognmf fit x.npy -k 4 --max-iter 10 --out r", stop_reason="max_iter")
    assert next(iter(found)) == "lognmf fit x.npy -k 4 --out r --force --max-iter 20"


def test_folders_are_named_as_they_would_be_typed_here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    found = dict(next_steps(COMMANDS[3], tmp_path / "my results", 4, DONE))
    assert "lognmf predict 'my results' NEW" in found
    assert "lognmf predict /somewhere/r NEW" in steps(COMMANDS[3])
