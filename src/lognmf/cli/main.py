"""The command line: the commands, their examples, and what happens on a signal or an error."""

import inspect
import shlex
import signal
import sys
import time
from collections.abc import Sequence
from functools import cache
from importlib.util import find_spec
from typing import Annotated, Any, NamedTuple, NoReturn

_NEEDED = ("typer", "rich", "jinja2", "pyarrow", "matplotlib")


EXAMPLES = {
    "fit": """
        lognmf fit digits -k 10
        lognmf fit table.csv -k auto
        lognmf fit table.csv -k 5 --index id --labels kind --scale-features max
        lognmf fit cells.h5ad -k 12 --scale-features log1p
        lognmf fit faces/ -k 20 --resize 32x32 --model ls-nmf --lam 1
        lognmf fit digits -k 10 --tune
    """,
    "cluster": """
        lognmf cluster digits -k 10
        lognmf cluster table.csv -k auto --labels kind
        lognmf cluster words.npz -k 5 --scale-features tfidf
    """,
    "transform": """
        lognmf transform results/table-rls-nmf new.csv
        lognmf transform results/table-rls-nmf new.csv --out codes.csv
    """,
    "predict": "lognmf predict results/table-clusters new.csv",
    "plot": """
        lognmf plot results/digits-rls-nmf
        lognmf plot results/digits-rls-nmf --what parts --out parts.pdf
        lognmf plot model.npz --what convergence
    """,
    "compare": """
        lognmf compare digits
        lognmf compare table.csv --labels kind --models nmf,ls-nmf,rls-nmf
        lognmf compare faces/ -k 15 --resize 32x32 --seeds 10
    """,
    "reproduce": """
        lognmf reproduce all --preset quick
        lognmf reproduce table5 --datasets yale,orl --jobs 4
    """,
    "list": "lognmf data list",
    "info": "lognmf data info yale",
    "fetch": "lognmf data fetch yale orl",
    "show": """
        lognmf data show yale --per-class 5
        lognmf data show faces/ --resize 32x32 --out faces.pdf
    """,
}
"""Examples of the commands, by their names."""


class Stopped(BaseException):
    """A signal asked to stop, by its number. Not a KeyboardInterrupt: typer would end without a message."""


class Call(NamedTuple):
    """A command line, and when it began by `time.perf_counter`: the object of a command's context."""

    command: str
    began: float

    @property
    def seconds(self) -> float:
        """How long the command has run."""
        return time.perf_counter() - self.began


def main(arguments: Sequence[str] | None = None) -> NoReturn:
    """Run the command line with ``arguments``, by default those that the user typed, and exit.

    The exit code is 0 on success, 1 if a package is missing, 2 for refused input, 130 if interrupted and
    143 if terminated.
    """
    began = time.perf_counter()
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        for number, handler in before.items():
            if handler != signal.SIG_IGN:  # shells make background programs ignore Ctrl-C
                signal.signal(number, _stop)
        code = _run(list(sys.argv[1:] if arguments is None else arguments), began)
    except Stopped as stop:  # before or after the work: the commands have sentences of their own
        print("interrupted", file=sys.stderr)  # noqa: T201
        code = 128 + stop.args[0]
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    sys.exit(code)


def _stop(number: int, _: Any) -> NoReturn:
    raise Stopped(number)


def _run(given: list[str], began: float) -> int:
    """The exit code of a command."""
    missing = [name for name in _NEEDED if find_spec(name) is None]
    if missing:
        sys.exit(f'The command line needs {" and ".join(missing)}: run pip install "lognmf[cli]".')
    from lognmf.cli.options import complain, hints

    try:
        call = Call(shlex.join(["lognmf", *given]), began)
        with hints():
            return _app()(given, prog_name="lognmf", standalone_mode=False, obj=call) or 0
    except Exception as error:
        if not hasattr(error, "format_message"):
            raise
        if type(error).__name__ == "NoArgsIsHelpError":  # its message is the help
            print(error.format_message(), file=sys.stderr)  # noqa: T201
        elif sentence := error.format_message():
            complain(sentence.rstrip(".") + ("" if sentence.endswith("?") else ".") + " See lognmf --help.")
        return 2


@cache
def _app() -> Any:
    """All commands; typer and they are imported here, so that `main` can say what is not installed."""
    import typer

    from lognmf import __version__
    from lognmf.cli import apply, cluster, compare, data, fit, plot, reproduce

    def show_version(asked: bool) -> None:
        if asked:
            typer.echo(f"lognmf {__version__}")
            raise typer.Exit

    def lognmf(
        version: Annotated[
            bool, typer.Option("--version", callback=show_version, is_eager=True, help="Show the version.")
        ] = False,
    ) -> None:
        """Sparse, graph-regularised, robust nonnegative matrix factorisation."""

    app = typer.Typer(no_args_is_help=True, add_completion=False, pretty_exceptions_enable=False)
    app.callback()(lognmf)
    below = typer.Typer(no_args_is_help=True, help="List, describe, download or draw data sets.")
    commands = (fit.fit, cluster.cluster, apply.transform, apply.predict, plot.plot, compare.compare)
    for command in (*commands, reproduce.reproduce):
        app.command(**_help(command.__name__, command))(command)
    sets: dict[str, Any] = {"list": data.list_sets, "info": data.info, "fetch": data.fetch, "show": data.show}
    for name, function in sets.items():
        below.command(name, **_help(name, function))(function)
    app.add_typer(below, name="data")
    return app


def _help(name: str, command: Any) -> dict[str, Any]:
    """The help of a command: its docstring, and its examples at the end."""
    paragraphs = (inspect.getdoc(command) or "").split("\n\n")
    examples = ["Examples:", *map(str.strip, EXAMPLES[name].strip().splitlines())]
    text = "\n\n".join(paragraph.replace("\n", " ") for paragraph in paragraphs)
    return {"help": text, "epilog": "\n\n".join(examples)}
