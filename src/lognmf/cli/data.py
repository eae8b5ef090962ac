"""``lognmf data list | info | fetch | show``: the named data sets, and pictures of one's own."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table as RichTable

from lognmf import datasets
from lognmf.cli import options
from lognmf.cli.main import _interruptible, _worded
from lognmf.datasets import places
from lognmf.datasets.registry import Entry, find

__all__ = ["app"]

_FIGURES = (".png", ".pdf", ".svg")
Name = Annotated[str, typer.Argument(metavar="NAME", help=f"One of {', '.join(datasets.NAMES)}.")]


def app() -> typer.Typer:
    """The commands below ``lognmf data``.

    Returns
    -------
    typer.Typer
    """
    commands = typer.Typer(no_args_is_help=True, help="Data sets: list, describe, fetch or look at them.")
    commands.command("list")(list_sets)
    commands.command()(info)
    commands.command()(fetch)
    commands.command()(show)
    return commands


def list_sets() -> None:
    """The named data sets, and where their files are."""
    table = RichTable(box=None, pad_edge=False, collapse_padding=True)
    for title in ("name", "title"):
        table.add_column(title, overflow="fold")
    for title in ("samples", "features", "classes", "picture"):
        table.add_column(title, justify="right")
    table.add_column("files", overflow="fold")
    for entry in datasets.REGISTRY.values():
        numbers = (str(entry.samples), str(entry.features), str(entry.classes))
        table.add_row(entry.name, entry.title, *numbers, _size(entry), _state(entry))
    Console().print(table)


def info(name: Name) -> None:
    """All that is known of a data set: sizes, files, source, terms and what to cite."""
    with _worded(ValueError, OSError):
        entry = find(name)
        table = RichTable(box=None, show_header=False, pad_edge=False)
        table.add_column(no_wrap=True)
        table.add_column(overflow="fold")
        for key, value in _facts(entry).items():
            table.add_row(key, value)
    Console(markup=False, highlight=False).print(table)  # a path may hold [brackets]


def fetch(
    names: Annotated[
        list[str] | None,
        typer.Argument(metavar="NAME…", help="Data sets; all that may be had without asking."),
    ] = None,
    to: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Data folder.", show_default="the cache")
    ] = None,
) -> None:
    """Download data sets whose terms allow it, with their hashes checked; what is here is left as it is."""
    with _interruptible(), _worded(ValueError, OSError):
        entries = [find(name) for name in names] if names else _free()
        for entry in entries:
            for path in places.get(entry, to):
                typer.echo(f"{entry.name}: {path}")
            if not entry.files:
                typer.echo(f"{entry.name}: comes with scikit-learn")


def show(
    data: options.File,
    out: Annotated[
        Path | None, typer.Option(metavar="FILE", help="png, pdf or svg.", show_default="DATA-samples.png")
    ] = None,
    per_class: Annotated[int, typer.Option(min=1, max=50, help="Most samples of a class.")] = 8,
    labels: options.Labels = None,
    image_shape: options.ImageShape = None,
    resize: options.Resize = None,
    force: Annotated[bool, typer.Option("--force", help="Replace a picture that is there.")] = False,
) -> None:
    """Draw samples of each class into a picture."""
    with _interruptible(), _worded(ValueError, OSError, MemoryError):
        import numpy as np
        import scipy.sparse as sp

        from lognmf import plots
        from lognmf.cli.inputs import read
        from lognmf.cli.read import is_name
        from lognmf.files import check_new, new_file

        usual = f"{Path(data).resolve().stem}-samples.png"
        target = check_new(out or usual, force=force)
        if target.suffix.lower() not in _FIGURES:
            msg = f"--out must end in .png, .pdf or .svg; got {target.name}."
            raise ValueError(msg)
        table = read(data, labels, image_shape, resize)
        entry = find(data) if is_name(data) else None
        words, y = (None, None) if table.y is None else np.unique(table.y, return_inverse=True)
        names = entry.class_names if entry is not None and labels is None else words
        figure = plots.samples(
            table.X.toarray() if sp.issparse(table.X) else table.X,
            y,
            image_shape=table.image_shape,
            class_names=None if names is None else list(map(str, names)),
            points=entry is not None and entry.points,
            per_class=per_class,
            title=table.name if entry is None else entry.title,
        )
        with new_file(target, force=force) as fresh:
            figure.savefig(fresh)
    typer.echo(f"The picture is in {target}")


def _free() -> list[Entry]:
    """Data sets that may be downloaded; says which ones are not."""
    closed = [entry.name for entry in datasets.REGISTRY.values() if entry.ask]
    typer.echo(
        f"Left out, as their owners must be asked: {', '.join(closed)} (see lognmf data info NAME)", err=True
    )
    return [entry for entry in datasets.REGISTRY.values() if not entry.ask]


def _size(entry: Entry) -> str:
    return "-" if entry.image_shape is None else "×".join(map(str, entry.image_shape))


def _state(entry: Entry) -> str:
    """Where the files are, in a word or two."""
    if not entry.files:
        return "built in"
    if all(places.present(file) for file in entry.files):
        return "here"
    return "ask the owners" if entry.ask else "to fetch"


def _facts(entry: Entry) -> dict[str, str]:
    sizes = f"{entry.samples} samples of {entry.features} features"
    facts = {
        "name": entry.name,
        "title": entry.title,
        "in the paper": entry.paper or "no",
        "data": sizes
        + ("" if entry.image_shape is None else f", pictures of {_size(entry)} (height × width)"),
        "classes": f"{entry.classes}, from {entry.class_names[0]} to {entry.class_names[-1]}",
        "source": entry.source,
        "terms": entry.licence,
        "cite": entry.citation,
    }
    if entry.ask:
        facts["how to get it"] = f"not downloaded: {entry.ask}, and put the file below LOGNMF_DATA"
    for number, file in enumerate(entry.files, start=1):
        title = "file" if len(entry.files) == 1 else f"file {number}"
        where = places.present(file)
        facts[title] = file.path
        facts[f"{title} is"] = str(where) if where else "not here" + (f"; at {file.url}" if file.url else "")
        facts[f"{title} SHA-256"] = file.sha256 + _verdict(file, where)
    return facts


def _verdict(file: places.File, where: Path | None) -> str:
    if where is None:
        return ""
    try:
        places.check_hash(where, file, remedy="")
    except ValueError:
        return " (the file here has another one: replace it)"
    return " (checked)"
