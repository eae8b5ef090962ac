"""The command line: ``lognmf fit DATA -k 10``, ``cluster``, ``compare``, ``reproduce`` and ``data list``."""

import shlex
import signal
import sys
import time
from collections.abc import Sequence
from importlib.util import find_spec
from typing import Annotated, Any, NamedTuple, NoReturn

_NEEDED = ("typer", "rich", "jinja2", "pyarrow", "matplotlib")


class Stopped(BaseException):
    """A signal asked to stop, by its number. Not a KeyboardInterrupt: typer would end without a word."""


class Call(NamedTuple):
    """A command line, and when it began by `time.perf_counter`: what a command's context holds."""

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
            if handler != signal.SIG_IGN:  # as a shell tells the programs in its background
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
    from lognmf.cli.options import complain

    try:
        call = Call(shlex.join(["lognmf", *given]), began)
        return _app()(given, prog_name="lognmf", standalone_mode=False, obj=call) or 0
    except Exception as error:
        if not hasattr(error, "format_message"):
            raise
        if type(error).__name__ == "NoArgsIsHelpError":  # its message is the help
            print(error.format_message(), file=sys.stderr)  # noqa: T201
        elif sentence := error.format_message():
            complain(sentence.rstrip(".") + ("" if sentence.endswith("?") else ".") + " See lognmf --help.")
        return 2


def _app() -> Any:
    """All commands; typer and they are imported here, so that `main` can say what is not installed."""
    import typer

    from lognmf import __version__
    from lognmf.cli import data
    from lognmf.cli.apply import predict, transform
    from lognmf.cli.cluster import cluster
    from lognmf.cli.compare import compare
    from lognmf.cli.fit import fit
    from lognmf.cli.help import HelpfulCommand
    from lognmf.cli.plot import plot
    from lognmf.cli.reproduce import reproduce

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

    plain: Any = {"add_completion": False, "pretty_exceptions_enable": False, "rich_markup_mode": None}
    app = typer.Typer(no_args_is_help=True, **plain)
    app.callback()(lognmf)
    for command in (fit, cluster, transform, predict, plot, compare, reproduce):
        app.command(cls=HelpfulCommand)(command)
    app.add_typer(data.app(), name="data")
    return app
