"""Options that several commands share; errors and hints in the words of the command line."""

from __future__ import annotations

import os
import re
import signal
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer

from lognmf import MODELS
from lognmf.cli.main import Stopped
from lognmf.datasets import NAMES
from lognmf.io import ENDINGS, DataWarning, Fitted, Request
from lognmf.reading import printable

MODEL_NAMES = {("convex-nmf" if name == "CNMF" else name.lower()): name for name in MODELS}
"""The paper's names of the models by those of the command line: CNMF often stands for consensus NMF."""

SCALINGS = ("minmax", "max", "log1p", "tfidf")


def option(group: str, *names: str, **more: Any) -> Any:
    """An option in a group of the help text."""
    return typer.Option(*names, rich_help_panel=group, **more)


def argument(group: str, metavar: str, text: str, **more: Any) -> Any:
    """An argument in a group of the help text."""
    return typer.Argument(rich_help_panel=group, metavar=metavar, help=text, **more)


File = Annotated[
    str,
    argument(
        "Data",
        "DATA",
        f"A {ENDINGS} file (text also as .gz), a zarr store, a folder of 10x Genomics, a folder or "
        f"archive of pictures, or a data set: {', '.join(NAMES)}.",
    ),
]
Clusters = Annotated[int | None, option("Results", help="Number of clusters.", show_default="as -k")]
Restarts = Annotated[
    int | None,
    option("Fit", "--restarts", help="Number of initialisations; the fit with the best objective is used."),
]
MaxIter = Annotated[int | None, option("Fit", help="Maximum number of iterations.")]
Seed = Annotated[int, option("Fit", help="Seed of all random numbers.")]
Labels = Annotated[
    str | None, option("Data", metavar="NAME|FILE", help="True labels: a column, an array or a file.")
]
Index = Annotated[str | None, option("Data", metavar="COLUMN", help="Column with the names of the samples.")]
Features = Annotated[
    str | None,
    option("Data", metavar="FILE|COLUMN", help="Names of the features: a file, or a column of var (h5ad)."),
]
Layer = Annotated[str | None, option("Data", metavar="NAME", help="Layer of an h5ad file, or raw.")]
Transpose = Annotated[bool, option("Data", "--transpose", help="Samples are in columns, not in rows.")]
ScaleFeatures = Annotated[
    str | None,
    option("Data", metavar="HOW", help=f"Scale the features first: {', '.join(SCALINGS)}."),
]
NoNormalize = Annotated[bool, option("Data", "--no-normalize", help="Do not scale the samples to unit norm.")]
ImageShape = Annotated[
    str | None, option("Data", metavar="HxW", help="Height and width, if the samples are images.")
]
Resize = Annotated[
    str | None,
    option("Data", metavar="HxW", help="Resize the pictures of a folder to this height and width."),
]
Memory = Annotated[
    str | None,
    option(
        "Data",
        metavar="SIZE",
        help="Read npy, zarr, h5, h5ad and parquet files that need more than this in blocks of rows.",
        show_default="half of the memory",
    ),
]
Force = Annotated[bool, option("Results", "--force", help="Replace existing results.")]
ForceFile = Annotated[bool, option("Results", "--force", help="Replace an existing file.")]


def out_folder(default: str) -> Any:
    """The option for the result folder."""
    return option("Results", metavar="DIR", help="Result folder.", show_default=f"results/{default}")


def default_folder(file: str, kind: str) -> Path:
    """The result folder if the user names none."""
    return Path("results") / f"{stem(file)}-{kind}"


def stem(file: str) -> str:
    """The name of a file or folder without its ending, also where it is typed as "."."""
    return Path(os.path.abspath(file)).stem  # noqa: PTH100 - resolve would follow links


def check_seed(seed: int) -> None:
    """Refuse a seed that NumPy does not take."""
    if not 0 <= seed < 2**32:
        msg = f"--seed must be an integer from 0 to 2**32 - 1; got {seed}."
        raise ValueError(msg)


def model_class(name: str) -> Any:
    """The class of the model with this name on the command line."""
    if name.lower() not in MODEL_NAMES:
        msg = f"--model must be one of {', '.join(MODEL_NAMES)}; got {name!r}."
        raise ValueError(msg)
    return MODELS[MODEL_NAMES[name.lower()]]


def request(params: Mapping[str, Any], fitted: Fitted | None = None) -> Request:
    """How to read the data, from the options of a command."""
    names = ("labels", "index", "features", "layer")
    given: dict[str, Any] = {name: params.get(name) for name in names}
    sizes: dict[str, Any] = {
        name: size(f"--{name.replace('_', '-')}", params.get(name)) for name in ("resize", "image_shape")
    }
    return Request(**given, **sizes, transpose=params.get("transpose", False), fitted=fitted)


def size(option: str, text: str | None) -> tuple[int, int] | None:
    """Height and width from a text like 32x32."""
    if text is None:
        return None
    match = re.fullmatch(r"(\d+)[x×](\d+)", text)
    if match is None:
        msg = f"{option} must be height x width, like 32x32; got {text!r}."
        raise ValueError(msg)
    return int(match[1]), int(match[2])


# Errors and hints ----------------------------------------------------------------------

OPTIONS = {
    "n_components": "-k",
    "n_clusters": "--clusters",
    "n_neighbors": "--neighbors",
    "n_init": "--restarts",
    "random_state": "--seed",
    "unit_components": "--free-components",
}
"""Options whose names differ from those of the parameters."""

TRANSLATED = frozenset(OPTIONS) | {
    "alpha", "beta", "gamma", "lam", "penalty", "loss", "row_norm", "init", "solver",
    "max_iter", "tol", "models", "scale_features", "seeds", "resize", "image_shape", "preset", "datasets",
    "executor", "jobs", "what", "device",
}  # fmt: skip
"""Parameters that messages name by their options."""

_READING = re.compile(
    r"(?<![\w/])(labels|index|features|layer|transpose|resize|image_shape)=(?:True\b)?(?=(['\"\w])?)"
)

_PARAMETER = re.compile(r"\b(n_components|max_iter|tol)\b(=?)")
"""Parameters in warnings of fits."""


def option_of(parameter: str) -> str:
    """The option that sets a parameter of a model."""
    return OPTIONS.get(parameter) or f"--{parameter.replace('_', '-')}"


@contextmanager
def interruptible(message: str = "interrupted, nothing written") -> Iterator[None]:
    """Exit with ``message`` on Ctrl-C, code 130, and on SIGTERM, code 143."""
    try:
        yield
    except (KeyboardInterrupt, Stopped) as stop:
        typer.echo(message, err=True)
        raise typer.Exit(128 + next(iter(stop.args), signal.SIGINT)) from None


@contextmanager
def worded(*kinds: type[Exception]) -> Iterator[None]:
    """Exit with one sentence for errors that the user can fix; other errors keep their traceback."""
    try:
        yield
    except kinds as error:
        complain(_sentence(error))
        raise typer.Exit(2) from None


def complain(sentence: str) -> None:
    """Print an error message."""
    typer.echo(f"Error: {printable(' '.join(sentence.split()))}", err=True)


@contextmanager
def hints() -> Iterator[None]:
    """Print warnings without a place in the code: those of readers as hints that name options."""
    with warnings.catch_warnings():
        show = warnings.showwarning

        def say(message: Warning | str, category: type[Warning], *rest: Any) -> None:
            if issubclass(category, DataWarning):
                typer.echo(f"Hint: {_with_options(str(message))}", err=True)
            elif issubclass(category, UserWarning):
                text = _PARAMETER.sub(lambda m: option_of(m[1]) + " " * bool(m[2]), str(message))
                typer.echo(f"Warning: {printable(' '.join(text.split()))}", err=True)
            else:
                show(message, category, *rest)

        warnings.simplefilter("always", DataWarning)
        warnings.showwarning = say  # type: ignore[assignment]
        yield


def _sentence(error: Exception) -> str:
    """The message of ``error``, with options in place of parameters."""
    if isinstance(error, MemoryError):
        return f"There is not enough memory: {error}".rstrip(": ") + "."
    if isinstance(error, OSError) and error.strerror:
        return f"{error.filename}: {error.strerror}." if error.filename else f"{error.strerror}."
    first, space, rest = " ".join(str(error).split()).partition(" ")
    named = option_of(first) if first in TRANSLATED else first
    return _with_options(f"{named}{space}{rest}")


def _with_options(text: str) -> str:
    """A message of the readers with --labels in place of ``labels=``."""
    return _READING.sub(lambda m: f"--{m[1].replace('_', '-')}{' ' if m[2] else ''}", text)


def typed(context: Any) -> dict[str, list[str]]:
    """The arguments and options that the user gave, as words of a command line by their parameters."""
    words: dict[str, list[str]] = {}
    for parameter in context.command.params:
        name, value = parameter.name, context.params.get(parameter.name)
        source = context.get_parameter_source(name)
        if source is None or source.name != "COMMANDLINE":
            continue
        if parameter.param_type_name == "argument":
            words[name] = [str(value)]
        elif isinstance(value, bool):
            words[name] = [(parameter.opts if value else parameter.secondary_opts)[0]]  # --x or --no-x
        else:
            words[name] = [min(parameter.opts, key=len), str(value)]
    return words
