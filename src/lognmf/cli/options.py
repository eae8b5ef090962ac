"""Arguments and options that several commands share."""

import os
from pathlib import Path
from typing import Annotated

import typer

from lognmf.cli.formats import ENDINGS
from lognmf.datasets import NAMES
from lognmf.models import MODELS

MODEL_NAMES = ", ".join(MODELS).lower()
"""The models as the command line spells them, for help texts and messages."""

File = Annotated[
    str,
    typer.Argument(
        metavar="DATA",
        help=f"A {ENDINGS} file, a folder or archive of pictures, or a data set: {', '.join(NAMES)}.",
    ),
]
Clusters = Annotated[int | None, typer.Option(help="Number of clusters.", show_default="as -k")]
Restarts = Annotated[
    int | None, typer.Option(help="Number of initialisations; the fit with the best objective is kept.")
]
MaxIter = Annotated[int | None, typer.Option(help="Maximum number of iterations.")]
Seed = Annotated[int, typer.Option(help="Seed of all random numbers.")]
Labels = Annotated[
    str | None, typer.Option(metavar="NAME|FILE", help="True labels: a column, an array or a file.")
]
Scale = Annotated[bool, typer.Option("--normalize/--no-normalize", help="Scale samples to unit norm.")]
ImageShape = Annotated[
    str | None, typer.Option(metavar="HxW", help="Height and width, if the samples are images.")
]
Resize = Annotated[
    str | None, typer.Option(metavar="HxW", help="Resize the pictures of a folder to this height and width.")
]
Force = Annotated[bool, typer.Option("--force", help="Replace existing results.")]


def default_folder(file: str, kind: str) -> Path:
    """Result folder where the user names none."""
    # Not the stem of what was typed: that of "." is empty.
    return Path("results") / f"{Path(os.path.abspath(file)).stem}-{kind}"  # noqa: PTH100


def check_seed(seed: int) -> None:
    """Refuse a seed that NumPy does not take."""
    if not 0 <= seed < 2**32:
        msg = f"--seed must be an integer from 0 to 2**32 - 1; got {seed}."
        raise ValueError(msg)
