"""``lognmf cluster``: clusters of one data set without labels, and parts that go with them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console

from lognmf.cli import options
from lognmf.cli.help import option
from lognmf.cli.options import interruptible, worded
from lognmf.models import MODELS

if TYPE_CHECKING:
    from lognmf.cli.read import Reading
    from lognmf.clusterer import NMFClustering

_NAMES = {name.lower(): name for name in MODELS}


def cluster(
    context: typer.Context,
    file: options.File,
    clusters: Annotated[
        str,
        option(
            "Model",
            "--clusters",
            "-k",
            metavar="K|auto",
            help="Number of clusters. auto chooses one up to 50, by modularity, silhouette and stability.",
        ),
    ],
    model: Annotated[
        str, option("Model", help=f"The model that goes with the clusters, one of {options.MODEL_NAMES}.")
    ] = "ls-nmf",
    n_neighbors: Annotated[
        int, option("Model", "--neighbors", help="Neighbours per sample in the graph.")
    ] = 5,
    seed: options.Seed = 0,
    labels: options.Labels = None,
    index: options.Index = None,
    features: options.Features = None,
    layer: options.Layer = None,
    transpose: options.Transpose = False,
    scale_features: options.ScaleFeatures = None,
    normalize: options.Scale = True,
    image_shape: options.ImageShape = None,
    resize: options.Resize = None,
    memory: options.Memory = None,
    out: Annotated[
        Path | None,
        option("Results", metavar="DIR", help="Result folder.", show_default="results/DATA-clusters"),
    ] = None,
    force: options.Force = False,
) -> None:
    """Cluster samples without labels and write a result folder.

    Spectral clusterings, k-means, average linkage and the codes of a factorisation are compared by modularity
    on the neighbour graph and by silhouette, and the best is kept. True labels, if given, are used for scores
    only. Of a file that is read in blocks (see --memory) up to 20,000 random samples are clustered, and the
    others join them.
    """
    with interruptible():
        from lognmf.cli import show
        from lognmf.cli.bars import shown
        from lognmf.cli.folder import check_folder
        from lognmf.cli.large import of_all_samples
        from lognmf.cli.read import reading
        from lognmf.cli.write import Run, summarize, write_results
        from lognmf.clusterer import AUTO, NMFClustering

        console = Console(stderr=True)
        with worded(ValueError, OSError, FloatingPointError, MemoryError):
            options.check_seed(seed)
            if model.lower() not in _NAMES:
                msg = f"--model must be one of {options.MODEL_NAMES}; got {model!r}."
                raise ValueError(msg)
            clusterer = NMFClustering(
                int(clusters) if clusters.isdecimal() else clusters,  # type: ignore[arg-type]
                model=_NAMES[model.lower()],
                n_neighbors=n_neighbors,
                random_state=seed,
            )
            clusterer.check_parameters()
            folder = check_folder(out or options.default_folder(file, "clusters"), force=force)
            in_blocks, data, source, scaled = _loaded(file, reading(context), memory, clusterer)
            n, p = data.X.shape
            typer.echo(f"{data.name}: {n} samples of {p} features", err=True)
            asked: dict[str, Any] = {"clusterer": clusterer.get_params(deep=False)}
            with shown(console):
                clusterer.fit(data.X)
            fitted = of_all_samples(clusterer, data.X) if in_blocks else clusterer.model_
        with worded(OSError), console.status("drawing and writing"):
            asked |= {
                "seed": seed,
                "normalize": normalize,
                "scale_features": scale_features,
                "labels": labels,
                "index": index,
                "image_shape": data.image_shape,
            }
            asked["clusters"] = clusterer.n_clusters_
            if clusters == AUTO:
                asked["number"] = show.GUESSED
            call = context.obj
            more: Any = {"tried": clusterer.rows_, "known": clusterer._known, "seconds": call.seconds}
            if clusterer.sample_ is not None:
                more["sampled"] = len(clusterer.sample_)
            run = Run(data, fitted, clusterer.labels_, asked, source, call.command, scaled, **more)
            write_results(folder, run, force=force, kind=Path(file).suffix.lower() if in_blocks else "")
    Console().print(show.candidates(clusterer.rows_), "")
    Console().print(show.clusters(summarize(run)["results"], number=asked.get("number")))
    if data.feature_names is not None:
        Console(markup=False, highlight=False).print(
            "", show.parts(clusterer.model_, data.feature_names), sep="\n"
        )
    typer.echo(show.where(folder))


def _loaded(file: str, given: Reading, memory: str | None, clusterer: NMFClustering) -> tuple[Any, ...]:
    """Whether the data are read in blocks; data, source and preparation."""
    from lognmf.cli.large import load_in_blocks, memory_in_bytes, needs_memory
    from lognmf.cli.read import load

    estimator = clusterer._estimator()
    large = load_in_blocks(file, given, memory_in_bytes(memory))
    if large is None:
        return False, *load(file, given, [estimator])
    if hasattr(estimator, "outliers"):  # they are those of a fit, which is of some samples only
        asked_for = f"--model {clusterer.model.lower()}"
        raise needs_memory(asked_for, file)
    return True, *large
