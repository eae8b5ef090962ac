"""``lognmf plot``: a picture of a saved model or of a result folder."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from lognmf.cli import options
from lognmf.cli.options import argument, interruptible, option, worded
from lognmf.cli.results import MODEL, PREPARATION, load_labels, read_summary
from lognmf.files import check_new, new_file
from lognmf.io import parsing
from lognmf.parameters import check_choice
from lognmf.reading import printable

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@dataclass(frozen=True)
class Saved:
    """What is drawn: a model file, or a result folder with its summary."""

    path: Path
    shape: tuple[int, int] | None = None  # of pictures, if the user gives one

    @property
    def summary(self) -> dict[str, Any]:
        """The summary of a result folder; empty for a model file."""
        return read_summary(self.path)

    @property
    def model(self) -> Any:
        """The fitted model."""
        from lognmf import load_model

        file = self.path / MODEL if self.path.is_dir() else self.path
        if self.path.is_dir() and not file.is_file():
            raise self.lacks(MODEL, "lognmf fit and lognmf cluster write one")
        return load_model(file)

    def lacks(self, name: str, advice: str) -> ValueError:
        """The error that a picture needs a file which is not there."""
        return ValueError(f"{self.path} holds no {name}: {advice}.")


def _parts(saved: Saved) -> Figure:
    """The parts."""
    from lognmf import plots
    from lognmf.cli.prepare import Preparation

    model, file = saved.model, saved.path / PREPARATION
    names = Preparation.load(file).feature_names if file.is_file() else None
    shape = saved.shape or saved.summary.get("settings", {}).get("image_shape")
    return plots.parts(model, None if shape is None else tuple(shape), feature_names=names)


def _codes(saved: Saved) -> Figure:
    """The codes of the samples, by their clusters where these are known."""
    from lognmf import plots

    return plots.codes(saved.model, load_labels(saved.path) if saved.path.is_dir() else None)


def _convergence(saved: Saved) -> Figure:
    """The objective over the iterations."""
    from lognmf import plots

    return plots.convergence(saved.model)


def _sensitivity(saved: Saved) -> Figure:
    """What --tune tried."""
    from pyarrow import csv

    from lognmf import plots
    from lognmf.grid.select import standings

    file = saved.path / "tuning.csv"
    if not file.is_file():
        raise saved.lacks(file.name, "lognmf fit --tune writes one")
    with parsing(file):
        rows, by = csv.read_csv(file).to_pylist(), saved.summary["tuning"]["criterion"]
        ranked = standings(rows, by)
    return plots.sensitivity(rows, by, ranked=ranked)


def _comparison(saved: Saved) -> Figure:
    """Scores and times of a comparison."""
    from lognmf import plots
    from lognmf.comparison import Row

    rows = saved.summary.get("results")
    if not isinstance(rows, list):
        kind = "comparison"
        raise saved.lacks(kind, "lognmf compare writes one")
    known = {field.name for field in fields(Row)}
    return plots.comparison([Row(**{name: row[name] for name in known & row.keys()}) for row in rows])


DRAWN: dict[str, Callable[[Saved], Figure]] = {
    "parts": _parts,
    "codes": _codes,
    "convergence": _convergence,
    "sensitivity": _sensitivity,
    "comparison": _comparison,
}
"""Pictures by name."""


def plot(
    source: Annotated[
        Path,
        argument(
            "Data", "MODEL", "A model file (npz), or the result folder of lognmf fit, cluster or compare."
        ),
    ],
    image_shape: options.ImageShape = None,
    what: Annotated[
        str | None,
        option(
            "Results",
            help=f"One of {', '.join(DRAWN)}.",
            show_default="parts, or comparison after lognmf compare",
        ),
    ] = None,
    out: Annotated[
        Path | None,
        option("Results", metavar="FILE", help="A png, pdf or svg file.", show_default="MODEL-WHAT.png"),
    ] = None,
    force: options.ForceFile = False,
) -> None:
    """Draw a saved model or a result folder.

    Parts are pictures where the samples were, else the features of the largest weight. Codes are coloured by
    the clusters of the result folder.
    """
    with interruptible(), worded(ValueError, OSError, MemoryError):
        if not source.exists():
            msg = f"There is no {source}: give a model file or a result folder."
            raise ValueError(msg)
        saved = Saved(source, options.size("--image-shape", image_shape))
        if what is None:
            what = "comparison" if isinstance(saved.summary.get("results"), list) else "parts"
        check_choice("what", what, DRAWN)
        target = picture(out or f"{source.resolve().stem}-{what}.png", force=force)
        save_picture(DRAWN[what](saved), target, force=force)


def picture(path: str | Path, *, force: bool) -> Path:
    """The file for a picture, checked."""
    target = check_new(path, force=force)
    if target.suffix.lower() not in (".png", ".pdf", ".svg"):
        msg = f"--out must end in .png, .pdf or .svg; got {target.name}."
        raise ValueError(msg)
    return target


def save_picture(figure: Figure, target: Path, *, force: bool) -> None:
    """Write a picture and say where it is."""
    with new_file(target, force=force) as fresh:
        figure.savefig(fresh)
    typer.echo(f"The picture is in {printable(str(target))}")
