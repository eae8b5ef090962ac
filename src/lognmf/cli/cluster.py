"""``lognmf cluster``: clusters of one data set without labels, and parts that go with them."""

from __future__ import annotations

import copy
import math
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from lognmf.cli import options
from lognmf.cli.options import MODEL_NAMES, interruptible, option, worded


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
        str, option("Model", help=f"The model that gives the parts, one of {', '.join(MODEL_NAMES)}.")
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
    no_normalize: options.NoNormalize = False,
    image_shape: options.ImageShape = None,
    resize: options.Resize = None,
    memory: options.Memory = None,
    out: Annotated[Path | None, options.out_folder("DATA-clusters")] = None,
    force: options.Force = False,
) -> None:
    """Cluster samples without labels and write a result folder.

    Spectral clusterings, k-means, average linkage and the codes of a factorisation are compared by modularity
    on the neighbour graph and by silhouette, and the best is chosen. True labels, if given, are used for
    scores only. Of a file that is read in blocks (see --memory) up to 20,000 random samples are clustered,
    and the others join them.
    """
    with interruptible():
        from lognmf import NMFClustering
        from lognmf.cli import results, screen
        from lognmf.cli.prepare import explained, load, load_in_blocks, needs_memory

        console = Console(stderr=True)
        with worded(ValueError, OSError, FloatingPointError, MemoryError):
            options.check_seed(seed)
            estimator = options.model_class(model)()
            clusterer = NMFClustering(
                int(clusters) if clusters.isdecimal() else clusters,  # type: ignore[arg-type]
                model=MODEL_NAMES[model.lower()],
                n_neighbors=n_neighbors,
                random_state=seed,
            )
            clusterer.check_parameters()
            folder = results.check_folder(out or options.default_folder(file, "clusters"), force=force)
            large = load_in_blocks(file, context.params)
            if large is not None and hasattr(estimator, "outliers"):  # outliers of some samples only
                option_given = f"--model {model}"
                raise needs_memory(option_given, file)
            data, source, preparation, kind = large or load(file, context.params)
            n, p = data.X.shape
            typer.echo(f"{data.name}: {n} samples of {p} features", err=True)
            with explained(file, data, [estimator]), screen.progress(console):
                clusterer.fit(data.X)
            fitted = _of_all_samples(clusterer, data.X) if kind else clusterer.model_
        with worded(OSError), console.status("drawing and writing"):
            names = ("seed", "scale_features", "labels", "index")
            settings: dict[str, Any] = {name: context.params[name] for name in names}
            settings["normalize"] = not no_normalize
            settings |= {"clusterer": clusterer.get_params(deep=False), "image_shape": data.image_shape}
            settings["clusters"] = clusterer.n_clusters_
            if clusters == "auto":
                settings["number"] = screen.GUESSED
            call = context.obj
            run = results.Run(
                data,
                fitted,
                clusterer.labels_,
                settings,
                source,
                call.command,
                options.typed(context),
                preparation,
                clusterer=clusterer,
                kind=kind,
                seconds=call.seconds,
            )
            results.write_results(folder, run, force=force)
    Console().print(screen.candidates(clusterer.rows_), "")
    Console().print(screen.clusters(results.summarize(run)["results"], number=settings.get("number")))
    if data.feature_names is not None:
        parts = screen.parts(clusterer.model_, data.feature_names)
        Console(markup=False, highlight=False).print("", parts, sep="\n")
    typer.echo(screen.where(folder))


def _of_all_samples(clusterer: Any, X: Any) -> Any:
    """The clusterer's model, which was fitted to some samples, with the codes and the error of all."""
    from lognmf.cli.results import squared_errors

    model, squares = copy.copy(clusterer.model_), 0.0
    model.embedding_, model.graph_ = clusterer.embedding_, None
    for rows in X.places:
        squares += float(squared_errors(X.read(rows), model.embedding_[rows], model.components_).sum())
    model.reconstruction_err_ = math.sqrt(squares)
    return model
