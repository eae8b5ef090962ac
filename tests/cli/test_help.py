"""Help of every command: in groups, with examples, in 80 columns."""

import re
import shlex

import pytest
import typer

from lognmf.cli import help as helping
from lognmf.cli.main import _app


def commands(group=None, path=()):
    group = typer.main.get_command(_app()) if group is None else group
    for name, command in group.commands.items():
        if hasattr(command, "commands"):
            yield from commands(command, (*path, name))
        else:
            yield (*path, name), command


ALL = dict(commands())


@pytest.mark.parametrize("path", [(), ("data",), *ALL], ids=" ".join)
def test_lines_fit_into_80_columns(run, path, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    code, out, _ = run(*path, "--help")
    assert code == 0
    assert out.startswith("Usage: lognmf")
    assert max(map(len, out.splitlines())) <= 80
    assert "..." not in out.partition("Commands:")[2], "a summary is cut"
    assert helping._HYPHEN not in out


@pytest.mark.parametrize("path", ALL, ids=" ".join)
def test_every_option_is_in_a_group(run, path):
    parameters = {parameter.name: parameter for parameter in ALL[path].params}
    without = [name for name, parameter in parameters.items() if parameter.rich_help_panel is None]
    assert without == []
    assert {helping.group_of(parameter) for parameter in parameters.values()} <= set(helping.GROUPS)
    out = run(*path, "--help")[1]
    for parameter in parameters.values():
        if parameter.param_type_name == "option":
            assert re.search(rf"(?m)^  .*{re.escape(max(parameter.opts, key=len))}\b", out)


@pytest.mark.parametrize("path", ALL, ids=" ".join)
def test_examples_are_commands_of_that_name_with_options_it_has(path):
    known = {name for parameter in ALL[path].params for name in (*parameter.opts, *parameter.secondary_opts)}
    lines = [line.strip() for line in helping.EXAMPLES[path[-1]].strip().splitlines()]
    assert lines
    for line in lines:
        words = shlex.split(re.split(r" {3,}", line)[0])
        assert words[: 1 + len(path)] == ["lognmf", *path]
        assert {word for word in words if word.startswith("-")} <= known


def test_words_are_not_broken_at_hyphens(run, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    for command in ("fit", "cluster", "compare"):
        assert not re.search(r"-$", run(command, "--help")[1], re.MULTILINE)
