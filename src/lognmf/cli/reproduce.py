"""``lognmf reproduce``: the paper's tables and figures, rebuilt beside its numbers."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from lognmf.cli.main import _worded
from lognmf.paper.executors import EXECUTORS
from lognmf.paper.spec import PRESETS
from lognmf.paper.tables import DATASETS, FIGURES, TABLES

__all__ = ["reproduce"]

_SETS = ",".join(name.lower() for name in DATASETS)


def reproduce(
    context: typer.Context,
    what: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[WHAT]…",
            help=f"all, tables, figures, or some of {', '.join([*TABLES, *FIGURES])}.",
            show_default="all",
        ),
    ] = None,
    out: Annotated[
        Path, typer.Option(metavar="DIR", help="Result folder; a run that is there goes on.")
    ] = Path("results/reproduction"),
    preset: Annotated[str, typer.Option(help=f"How much is tried: {', '.join(PRESETS)}.")] = "paper",
    datasets: Annotated[
        str | None, typer.Option(metavar="NAME,NAME,…", help=f"Some of {_SETS}.", show_default="all")
    ] = None,
    device: Annotated[
        str | None, typer.Option(help="cuda: grids run there, beside the cores.", show_default="the cores")
    ] = None,
    jobs: Annotated[int | None, typer.Option(help="Processes.", show_default="one a core")] = None,
    executor: Annotated[str, typer.Option(help=f"Where fits run: {', '.join(EXECUTORS)}.")] = "processes",
    time_limit: Annotated[
        float | None,
        typer.Option(metavar="SECONDS", help="Begin no further fits after this time.", show_default="none"),
    ] = None,
    merge: Annotated[
        list[Path] | None, typer.Option(metavar="FILE", help="Take over the rows of another run's study.db.")
    ] = None,
    fit: Annotated[bool, typer.Option("--fit/--no-fit", help="Compute what is missing.")] = True,
    page: Annotated[
        bool, typer.Option("--page/--no-page", help="Write tables, figures and the page.")
    ] = True,
    force: Annotated[bool, typer.Option("--force", help="Throw away the rows that are there.")] = False,
) -> None:
    """Rebuild tables and figures of the paper, beside its numbers and beside an honest protocol.

    All rows are kept in DIR/study.db as they come. Interrupted, or given other tables, the next
    run computes what is missing only. Parts may run on several machines and be merged.
    """
    with _resumable(out):
        from lognmf.cli.progress import study_progress
        from lognmf.paper import reproduce as study

        console = Console(stderr=True)
        with _worded(ValueError, OSError, MemoryError, ImportError), study_progress(console) as on_piece:
            study.check_out(out, force=force)
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
                fit=fit,
                pages=page,
                command=context.obj,
                say=lambda sentence: console.print(sentence, highlight=False, markup=False, soft_wrap=True),
                on_piece=on_piece,
            )
    if report.left:
        typer.echo(f"{report.left} pieces are left: run the command again to go on.")
    if report.failed:
        typer.echo(f"{report.failed} pieces failed: run the command again to try them again.")
        raise typer.Exit(1)
    typer.echo(f"Results are in {out}")


@contextmanager
def _resumable(out: Path) -> Iterator[None]:
    try:
        yield
    except KeyboardInterrupt:
        typer.echo(f"interrupted; what is done is kept in {out}: run the command again to go on", err=True)
        raise typer.Exit(130) from None
