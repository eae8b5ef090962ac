"""Options that several commands share, and errors in one sentence that names options."""

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer

from lognmf.cli.formats import ENDINGS
from lognmf.cli.help import option
from lognmf.cli.main import Stopped
from lognmf.cli.scaling import SCALINGS
from lognmf.datasets import NAMES
from lognmf.models import MODELS
from lognmf.reading import printable

MODEL_NAMES = ", ".join(MODELS).lower()
"""The models as the command line spells them, for help texts and messages."""

File = Annotated[
    str,
    typer.Argument(
        rich_help_panel="Data",
        metavar="DATA",
        help=f"A {ENDINGS} file (text also as .gz), a zarr store, a folder of 10x Genomics, a folder or "
        f"archive of pictures, or a data set: {', '.join(NAMES)}.",
    ),
]
Clusters = Annotated[int | None, option("Results", help="Number of clusters.", show_default="as -k")]
Restarts = Annotated[
    int | None,
    option("Fit", "--restarts", help="Number of initialisations; the fit with the best objective is kept."),
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
Scale = Annotated[bool, option("Data", "--normalize/--no-normalize", help="Scale samples to unit norm.")]
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


def default_folder(file: str, kind: str) -> Path:
    """Result folder where the user names none."""
    # Not the stem of what was typed: that of "." is empty.
    return Path("results") / f"{Path(os.path.abspath(file)).stem}-{kind}"  # noqa: PTH100


def check_seed(seed: int) -> None:
    """Refuse a seed that NumPy does not take."""
    if not 0 <= seed < 2**32:
        msg = f"--seed must be an integer from 0 to 2**32 - 1; got {seed}."
        raise ValueError(msg)


# Errors --------------------------------------------------------------------------------

_SAME_NAME = (
    "alpha", "beta", "gamma", "lam", "penalty", "loss", "row_norm", "init", "solver", "unit_components",
    "max_iter", "tol", "models", "scale_features", "time_limit", "seeds", "resize", "preset",
    "datasets", "executor", "jobs", "what",
)  # fmt: skip

OPTIONS = {
    "n_components": "-k",
    "n_clusters": "--clusters",
    "n_neighbors": "--neighbors",
    "n_init": "--restarts",
    "random_state": "--seed",
} | {name: f"--{name.replace('_', '-')}" for name in _SAME_NAME}
"""Options by the parameters of the estimators and functions behind the commands."""


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


def _sentence(error: Exception) -> str:
    """The message of ``error``; a parameter that it starts with becomes an option."""
    if isinstance(error, MemoryError):
        return f"There is not enough memory: {error}".rstrip(": ") + "."
    if isinstance(error, OSError) and error.strerror:
        return f"{error.filename}: {error.strerror}." if error.filename else f"{error.strerror}."
    first, _, rest = " ".join(str(error).split()).partition(" ")
    return f"{OPTIONS.get(first, first)} {rest}"
