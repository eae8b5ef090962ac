"""Arguments and options that several commands share."""

from typing import Annotated

import typer

from lognmf.datasets import NAMES

File = Annotated[
    str,
    typer.Argument(
        metavar="DATA",
        help="csv, tsv, parquet, npy, npz, mat or mtx file, folder or archive of pictures, or a data set: "
        f"{', '.join(NAMES)}",
    ),
]
Clusters = Annotated[int | None, typer.Option(help="Number of clusters.", show_default="as -k")]
Restarts = Annotated[int | None, typer.Option(help="Starts; the best objective wins.")]
MaxIter = Annotated[int | None, typer.Option(help="Most iterations.")]
Seed = Annotated[int, typer.Option(help="Seed of all random numbers.")]
Tune = Annotated[
    bool,
    typer.Option(
        "--tune", help="Choose the weights without labels; --restarts is then the seeds of each, or 3."
    ),
]
Labels = Annotated[
    str | None, typer.Option(metavar="NAME|FILE", help="True labels: a column, an array or a file.")
]
Scale = Annotated[bool, typer.Option("--normalize/--no-normalize", help="Scale samples to unit norm.")]
ImageShape = Annotated[
    str | None, typer.Option(metavar="HxW", help="Height and width, when samples are images.")
]
Resize = Annotated[
    str | None, typer.Option(metavar="HxW", help="Bring the pictures of a folder to this height and width.")
]
Force = Annotated[bool, typer.Option("--force", help="Replace results that are there.")]
