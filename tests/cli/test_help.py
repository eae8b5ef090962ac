"""Help of every command: complete, with options in groups and examples, in 80 columns."""

import re
import shlex

import pytest
import typer

from lognmf.cli.main import EXAMPLES, _app


def commands(group=None, path=()):
    group = typer.main.get_command(_app()) if group is None else group
    for name, command in group.commands.items():
        if hasattr(command, "commands"):
            yield from commands(command, (*path, name))
        else:
            yield (*path, name), command


ALL = dict(commands())


@pytest.mark.parametrize("path", [(), ("data",), *ALL], ids=" ".join)
def test_help_fits_into_80_columns_and_names_every_option(run, path, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    code, out, _ = run(*path, "--help")
    assert code == 0
    assert out.lstrip().startswith("Usage: lognmf")
    assert max(map(len, out.splitlines())) <= 80
    parameters = ALL[path].params if path in ALL else []
    assert [parameter.name for parameter in parameters if parameter.rich_help_panel is None] == []
    for parameter in parameters:
        if parameter.param_type_name == "option":
            assert re.search(rf"^│.*{re.escape(max(parameter.opts, key=len))}\b", out, re.MULTILINE)


@pytest.mark.parametrize("path", ALL, ids=" ".join)
def test_examples_are_commands_of_that_name_with_options_it_has(path):
    known = {name for parameter in ALL[path].params for name in (*parameter.opts, *parameter.secondary_opts)}
    lines = [line.strip() for line in EXAMPLES[path[-1]].strip().splitlines()]
    assert lines
    for line in lines:
        words = shlex.split(line)
        assert words[: 1 + len(path)] == ["lognmf", *path]
        assert {word for word in words if word.startswith("-")} <= known


@pytest.mark.parametrize("command", [[], ["data"]])
def test_without_a_command_the_help_is_shown(run, command):
    code, out, err = run(*command)
    assert code == 2
    assert f"{' '.join(['Usage: lognmf', *command])} [OPTIONS] COMMAND [ARGS]..." in out + err
    assert "Error" not in out + err
