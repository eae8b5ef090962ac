"""``lognmf data list | info | fetch | show``: the named data sets, and the user's own."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table as RichTable

from lognmf import datasets
from lognmf.cli import options
from lognmf.cli.options import argument, interruptible, option, worded
from lognmf.cli.plot import picture, save_picture
from lognmf.datasets import places
from lognmf.datasets.registry import Entry, find
from lognmf.files import fingerprint

_OTHER_HASH = "the file here has another one: replace it"
Name = Annotated[str, argument("Data", "NAME", f"One of {', '.join(datasets.NAMES)}.")]


def list_sets() -> None:
    """List the named data sets and whether their files are here."""
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
    """Describe a data set: sizes, files, source, terms and what to cite."""
    with worded(ValueError, OSError):
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
        argument("Data", "NAME…", "Data sets.", show_default="all that may be downloaded"),
    ] = None,
    to: Annotated[
        Path | None, option("Data", metavar="DIR", help="Data folder.", show_default="the cache")
    ] = None,
) -> None:
    """Download data sets whose terms allow it and check their hashes. Existing files are kept."""
    with interruptible(), worded(ValueError, OSError):
        entries = [find(name) for name in names] if names else _free()
        for entry in entries:
            for path in places.get(entry, to):
                typer.echo(f"{entry.name}: {path}")
            if not entry.files:
                typer.echo(f"{entry.name}: comes with scikit-learn")


def show(
    context: typer.Context,
    data: options.File,
    out: Annotated[
        Path | None,
        option("Results", metavar="FILE", help="A png, pdf or svg file.", show_default="DATA-samples.png"),
    ] = None,
    per_class: Annotated[
        int, option("Results", min=1, max=50, help="Maximum number of samples per class.")
    ] = 8,
    labels: options.Labels = None,
    index: options.Index = None,
    features: options.Features = None,
    layer: options.Layer = None,
    transpose: options.Transpose = False,
    image_shape: options.ImageShape = None,
    resize: options.Resize = None,
    force: options.ForceFile = False,
) -> None:
    """Draw samples of each class."""
    with interruptible(), worded(ValueError, OSError, MemoryError):
        import numpy as np
        import scipy.sparse as sp

        from lognmf import io, plots

        target = picture(out or f"{options.stem(data)}-samples.png", force=force)
        drawn = io.read(data, options.request(context.params))
        words, y = (None, None) if drawn.y is None else np.unique(drawn.y, return_inverse=True)
        names = drawn.class_names or words
        figure = plots.samples(
            drawn.X.toarray() if sp.issparse(drawn.X) else drawn.X,
            y,
            image_shape=drawn.image_shape,
            class_names=None if names is None else list(map(str, names)),
            points=drawn.points,
            per_class=per_class,
            title=drawn.title,
        )
        save_picture(figure, target, force=force)


def _free() -> list[Entry]:
    """Data sets that may be downloaded; the others are named on the screen."""
    closed = [entry.name for entry in datasets.REGISTRY.values() if entry.ask]
    typer.echo(
        f"Skipped (the owners' permission is required): {', '.join(closed)}; see lognmf data info NAME",
        err=True,
    )
    return [entry for entry in datasets.REGISTRY.values() if not entry.ask]


def _size(entry: Entry) -> str:
    return "-" if entry.image_shape is None else "×".join(map(str, entry.image_shape))


def _state(entry: Entry) -> str:
    """Whether the files are here, in a word or two."""
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
        facts[f"{title} SHA-256"] = file.sha256
        if where:
            same = fingerprint(where) == file.sha256
            facts[f"{title} SHA-256"] += f" ({'checked' if same else _OTHER_HASH})"
    return facts
