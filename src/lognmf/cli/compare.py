"""``lognmf compare``: several models on one data set, best first."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from rich.console import Console

from lognmf import MODELS
from lognmf.cli import options
from lognmf.cli.options import MODEL_NAMES, interruptible, option, worded
from lognmf.progress import Listener, listening


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
        option(
            "Methods", metavar="NAME,NAME,…", help=f"Some of {', '.join(MODEL_NAMES)}.", show_default="all"
        ),
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
    no_normalize: options.NoNormalize = False,
    image_shape: options.ImageShape = None,
    resize: options.Resize = None,
    out: Annotated[Path | None, options.out_folder("DATA-compare")] = None,
    force: options.Force = False,
) -> None:
    """Fit all models to a data matrix and rank them.

    The samples are clustered by k-means on the codes. All models start from random numbers, and scores
    are means over several seeds. The methods are sorted by accuracy if labels are available, else by the
    cut. cut: normalised cut of the neighbour graph by the clusters, lower is better. sparse: Hoyer's
    sparseness. error: the norm of X − VUᵀ. seconds: from the data to the clusters.
    """
    with interruptible():
        import lognmf
        from lognmf.cli import results, screen
        from lognmf.cli.prepare import explained, load

        console = Console(stderr=True)
        with worded(ValueError, OSError, MemoryError):
            options.check_seed(seed)
            if seeds < 1:
                msg = f"--seeds must be an integer >= 1; got {seeds}."
                raise ValueError(msg)
            names = _names(models)
            folder = results.check_folder(out or options.default_folder(file, "compare"), force=force)
            data, source, _, _ = load(file, context.params)
            if components is None and data.y is None:
                msg = f"{data.name} has no labels, so the number of parts is not known: give -k or --labels."
                raise ValueError(msg)
            k = len(np.unique(np.asarray(data.y))) if components is None else components
            settings: dict[str, Any] = {
                "n_components": k,
                "n_clusters": k if clusters is None else clusters,
                "n_neighbors": 5,
                "init": None if init == "own" else init,
                "seeds": list(range(seed, seed + seeds)),
                "references": references,
            }
            more: dict[str, Any] = {"n_init": restarts, "max_iter": max_iter}
            more = {name: value for name, value in more.items() if value is not None}
            models_shown = Models()
            screen.announce(data, k)
            with explained(file, data, [MODELS[name]() for name in names]), screen.progress(console):
                with listening(models_shown):
                    rows = lognmf.compare(data.X, y=data.y, models=names, **settings, **more)
                failed = [row for row in rows if row.model in names and row.error is not None]
                if len(failed) == len(names):
                    msg = f"No model could be fitted. {failed[0].model}: {failed[0].error}"
                    raise ValueError(msg)
        with worded(OSError), console.status("drawing and writing"):
            more = {"normalize": not no_normalize, "scale_features": scale_features, "labels": labels}
            more["image_shape"] = data.image_shape
            call = context.obj
            done = results.Comparison(
                data, rows, models_shown.fitted, settings | more, source, call.command, seconds=call.seconds
            )
            results.write_comparison(folder, done, force=force)
    Console().print(screen.ranking(rows))
    for note in screen.notes(rows, settings["n_clusters"]):
        typer.echo(note)
    typer.echo(screen.where(folder))


class Models(Listener):
    """The models that were fitted from the first seed, by name."""

    def __init__(self) -> None:
        self.fitted: dict[str, Any] = {}

    def move(self, stage: Any) -> None:
        """Take the model that a method has fitted."""
        if stage.result is not None:
            self.fitted.setdefault(stage.note, stage.result)


def _names(models: str | None) -> list[str]:
    """The paper's names of the models that the user lists, all by default."""
    given = list(MODEL_NAMES) if models is None else [name.strip().lower() for name in models.split(",")]
    unknown = [name for name in given if name not in MODEL_NAMES]
    if unknown:
        msg = f"--models must be some of {', '.join(MODEL_NAMES)}, separated by commas; got {unknown[0]!r}."
        raise ValueError(msg)
    return list(dict.fromkeys(MODEL_NAMES[name] for name in given))
