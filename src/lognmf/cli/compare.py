"""``lognmf compare``: several models on one data set, best first."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import typer
from rich.console import Console

from lognmf.cli import options
from lognmf.cli.help import option
from lognmf.cli.options import interruptible, worded
from lognmf.models import MODELS
from lognmf.parameters import check_integer

if TYPE_CHECKING:
    from lognmf.comparison import Row
    from lognmf.datasets import Dataset


def compare(
    context: typer.Context,
    file: options.File,
    components: Annotated[
        int | None,
        option("Methods", "--components", "-k", help="Number of parts.", show_default="number of classes"),
    ] = None,
    clusters: options.Clusters = None,
    models: Annotated[
        str | None,
        option("Methods", metavar="NAME,NAME,…", help=f"Some of {options.MODEL_NAMES}.", show_default="all"),
    ] = None,
    references: Annotated[
        bool,
        option(
            "Methods",
            "--references/--no-references",
            help="Add k-means, spectral clustering, the spectral start and NMFClustering.",
        ),
    ] = True,
    init: Annotated[
        str,
        option("Fit", metavar="NAME", help="Start of every model: random, or own for each model's default."),
    ] = "random",
    restarts: options.Restarts = None,
    max_iter: options.MaxIter = None,
    seed: options.Seed = 0,
    seeds: Annotated[int, option("Methods", help="Number of seeds, from --seed on; scores are means.")] = 3,
    labels: options.Labels = None,
    index: options.Index = None,
    features: options.Features = None,
    layer: options.Layer = None,
    transpose: options.Transpose = False,
    scale_features: options.ScaleFeatures = None,
    normalize: options.Scale = True,
    image_shape: options.ImageShape = None,
    resize: options.Resize = None,
    out: Annotated[
        Path | None,
        option("Results", metavar="DIR", help="Result folder.", show_default="results/DATA-compare"),
    ] = None,
    force: options.Force = False,
) -> None:
    """Fit all models to a data matrix and rank them.

    The samples are clustered by k-means on the codes. All models start from random numbers, and scores
    are means over several seeds. The methods are sorted by accuracy if labels are available, else by the
    cut. cut: normalised cut of the neighbour graph by the clusters, lower is better. sparse: Hoyer's
    sparseness. error: the norm of X − VUᵀ. seconds: from the data to the clusters.
    """
    with interruptible():
        from lognmf import comparison
        from lognmf.cli import show
        from lognmf.cli.folder import check_folder
        from lognmf.cli.read import load, reading
        from lognmf.cli.write import Comparison, write_comparison

        console = Console(stderr=True)
        with worded(ValueError, OSError, MemoryError):
            options.check_seed(seed)
            check_integer("seeds", seeds, 1)
            names = comparison.model_names(None if models is None else [m.strip() for m in models.split(",")])
            folder = check_folder(out or options.default_folder(file, "compare"), force=force)
            candidates = (MODELS[name]() for name in names)
            data, source, _ = load(file, reading(context), candidates)
            k = _parts(components, data)
            n_clusters = k if clusters is None else clusters
            settings = {
                "n_components": k,
                "n_clusters": n_clusters,
                "n_neighbors": 5,
                "init": None if init == "own" else init,
                "seeds": list(range(seed, seed + seeds)),
                "references": references,
            }
            given = {"n_init": restarts, "max_iter": max_iter}
            given = {name: value for name, value in given.items() if value is not None}
            rows, fitted = _compare(data, names, {**settings, **given}, console)
        with worded(OSError), console.status("drawing and writing"):
            asked = {
                **settings,
                "normalize": normalize,
                "scale_features": scale_features,
                "labels": labels,
                "image_shape": data.image_shape,
            }
            call = context.obj
            done = Comparison(data, rows, fitted, asked, source, call.command, seconds=call.seconds)
            write_comparison(folder, done, force=force)
    Console().print(show.ranking(rows))
    for note in show.notes(rows, n_clusters):
        typer.echo(note)
    typer.echo(show.where(folder))


def _parts(components: int | None, data: Dataset) -> int:
    """Number of parts: as given, or one per class."""
    if components is not None:
        return components
    if data.y is None:
        msg = f"The number of parts is not known, because {data.name} has no labels: give -k or --labels."
        raise ValueError(msg)
    return len(np.unique(data.y))


def _compare(
    data: Dataset, names: Sequence[str], settings: Mapping[str, Any], console: Console
) -> tuple[list[Row], dict[str, Any]]:
    """The rows, best first, and the models of the first seed by name; refused if none could be fitted."""
    from lognmf import comparison
    from lognmf.cli.bars import shown
    from lognmf.cli.show import announce
    from lognmf.progress import Listener, listening

    fitted: dict[str, Any] = {}

    class Keep(Listener):
        def move(self, stage: Any) -> None:
            if stage.result is not None:
                fitted.setdefault(stage.note, stage.result)

    announce(data, settings["n_components"])
    with shown(console), listening(Keep()):
        rows = comparison.compare(data.X, y=data.y, models=names, **settings)
    failed = [row for row in rows if row.model in names and row.error is not None]
    if len(failed) == len(names):
        msg = f"No model could be fitted. {failed[0].model}: {failed[0].error}"
        raise ValueError(msg)
    return rows, fitted
