"""``lognmf reproduce``: the paper's tables and figures, next to the published numbers."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from lognmf.cli.options import argument, interruptible, option, worded
from lognmf.paper.run import EXECUTORS
from lognmf.paper.spec import PRESETS
from lognmf.paper.tables import DATASETS, FIGURES, TABLES

_SETS = ", ".join(name.lower() for name in DATASETS)


def reproduce(
    context: typer.Context,
    what: Annotated[
        list[str] | None,
        argument(
            "Run",
            "WHAT…",
            f"all, tables, figures, or some of {', '.join([*TABLES, *FIGURES])}.",
            show_default="all",
        ),
    ] = None,
    out: Annotated[
        Path, option("Results", metavar="DIR", help="Result folder; an existing run in it is continued.")
    ] = Path("results/reproduction"),
    preset: Annotated[
        str, option("Run", help=f"How many settings are tried, one of {', '.join(PRESETS)}.")
    ] = "paper",
    datasets: Annotated[
        str | None, option("Run", metavar="NAME,NAME,…", help=f"Some of {_SETS}.", show_default="all")
    ] = None,
    device: Annotated[
        str | None,
        option("Run", help="cuda runs the grids on a GPU, next to the CPU cores.", show_default="CPU only"),
    ] = None,
    jobs: Annotated[
        int | None, option("Run", help="Number of processes.", show_default="one per core")
    ] = None,
    executor: Annotated[
        str, option("Run", help=f"Where the fits run, one of {', '.join(EXECUTORS)}.")
    ] = "processes",
    time_limit: Annotated[
        float | None,
        option("Run", metavar="SECONDS", help="Start no further fits after this time.", show_default="none"),
    ] = None,
    merge: Annotated[
        list[Path] | None, option("Run", metavar="FILE", help="Copy the rows of another run's study.db.")
    ] = None,
    fit: Annotated[bool, option("Run", "--fit/--no-fit", help="Compute what is missing.")] = True,
    page: Annotated[
        bool, option("Results", "--page/--no-page", help="Write tables, figures and the page.")
    ] = True,
    force: Annotated[
        bool, option("Results", "--force", help="Delete the rows of an existing run first.")
    ] = False,
) -> None:
    """Rebuild tables and figures of the paper.

    They stand next to the published numbers and to a protocol without labels.
    Every row is stored in DIR/study.db as soon as it is computed. After an interruption, or when
    asked for other tables, the next run computes only what is missing. Parts can run on several
    machines and be merged.
    """
    with interruptible(f"interrupted; finished fits are saved in {out}: run the command again to continue"):
        from lognmf.cli.screen import progress
        from lognmf.paper import reproduce as study

        with worded(ValueError, OSError, MemoryError, ImportError), progress(Console(stderr=True)):
            report = study.reproduce(
                what or ["all"],
                out,
                preset=preset,
                data=None if datasets is None else [name.strip() for name in datasets.split(",")],
                device=device,
                executor=executor,
                jobs=jobs,
                limit=time_limit,
                merge=merge or (),
                force=force,
                fit=fit,
                pages=page,
                command=context.obj.command,
                verbose=0,
            )
    if report.left:
        typer.echo(f"{report.left} pieces are left: run the command again to go on.")
    if report.failed:
        typer.echo(f"{report.failed} pieces failed: run the command again to try them again.")
        raise typer.Exit(1)
    typer.echo(f"Results are in {out}")
