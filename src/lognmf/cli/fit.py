"""``lognmf fit``: one model on one data set, its weights given, default or tuned."""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console

from lognmf.cli import options
from lognmf.cli.help import option
from lognmf.cli.options import OPTIONS, interruptible, worded
from lognmf.core.solvers import SOLVERS
from lognmf.core.terms import LOSSES, PENALTIES, ROW_NORMS
from lognmf.models import MODELS

if TYPE_CHECKING:
    from lognmf.cli.write import Run
    from lognmf.grid.components import ComponentChoice
    from lognmf.grid.tune import Tuned

_MODELS = {name.lower(): model for name, model in MODELS.items()}
_PARAMETERS = OPTIONS.keys() & {name for model in MODELS.values() for name in model().get_params()}
_STARTS = dict.fromkeys(start for model in MODELS.values() for start in model.spec.starts)

_MOST_AUTO = 30
"""The largest number of parts that -k auto tries."""

_TUNING_SEEDS = 3
"""Seeds of each setting that --tune tries, unless --restarts is given."""


def fit(
    context: typer.Context,
    file: options.File,
    components: Annotated[
        str,
        option(
            "Model",
            "--components",
            "-k",
            "--k",
            metavar="K|A:B|auto",
            help="Number of parts. From a range such as 5:30, or with auto from 2 to "
            f"{_MOST_AUTO}, one is chosen without labels.",
        ),
    ],
    clusters: options.Clusters = None,
    model: Annotated[str, option("Model", help=f"One of {options.MODEL_NAMES}.")] = "rls-nmf",
    alpha: Annotated[float | None, option("Model", help="Weight of the sparsity of the parts.")] = None,
    beta: Annotated[float | None, option("Model", help="Weight of the sparsity of the codes.")] = None,
    gamma: Annotated[float | None, option("Model", help="Weight of the outlier part.")] = None,
    lam: Annotated[float | None, option("Model", help="Weight of the neighbour graph.")] = None,
    penalty: Annotated[
        str | None, option("Model", help=f"Sparsity penalty, one of {', '.join(PENALTIES)}.")
    ] = None,
    loss: Annotated[
        str | None, option("Model", help=f"Data term, one of {', '.join(LOSSES)} (for counts and text).")
    ] = None,
    row_norm: Annotated[
        str | None, option("Model", help=f"Norm of the outlier part, one of {', '.join(ROW_NORMS)}.")
    ] = None,
    n_neighbors: Annotated[
        int | None, option("Model", "--neighbors", help="Neighbours per sample in the graph.")
    ] = None,
    init: Annotated[str | None, option("Fit", help=f"Initialisation, one of {', '.join(_STARTS)}.")] = None,
    n_init: options.Restarts = None,
    solver: Annotated[
        str | None,
        option(
            "Fit",
            help=f"One of {', '.join(SOLVERS)}. mu makes multiplicative updates; cd is coordinate descent, "
            "which gives exact zeros.",
        ),
    ] = None,
    unit_components: Annotated[
        bool | None,
        option("Model", "--unit-components/--free-components", help="Parts of unit norm, or of any norm."),
    ] = None,
    max_iter: options.MaxIter = None,
    tol: Annotated[
        float | None, option("Fit", help="Stop when the relative decrease per iteration is below this.")
    ] = None,
    seed: options.Seed = 0,
    tune: Annotated[
        bool,
        option(
            "Fit",
            "--tune",
            help="Choose the weights without labels. --restarts is then the number of seeds per setting, "
            f"by default {_TUNING_SEEDS}.",
        ),
    ] = False,
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
    scheduler: Annotated[
        str | None,
        option(
            "Data",
            metavar="ADDRESS",
            help="Fit on the workers of a Dask scheduler, such as tcp://host:8786; they read the file.",
        ),
    ] = None,
    out: Annotated[
        Path | None,
        option("Results", metavar="DIR", help="Result folder.", show_default="results/DATA-MODEL"),
    ] = None,
    force: options.Force = False,
) -> None:
    """Factorise a data matrix and write a result folder.

    The folder has parts, codes, clusters of the samples, pictures and the model. Options that are not
    given keep the model's defaults. --tune chooses the weights that are not given. Without --init it uses
    the spectral initialisation where the model has it; with that initialisation it also chooses the
    number of iterations, unless --max-iter is given.

    A fit in blocks of rows is kept in the folder DIR.checkpoint while it runs: after an interruption the
    same command goes on from there.
    """
    asked = {name: value for name, value in context.params.items() if name in _PARAMETERS}
    given = {name: value for name, value in asked.items() if value is not None} | {"random_state": seed}
    name = model.lower()
    settings: dict[str, Any] = {"model": name, "seed": seed, "normalize": normalize, "labels": labels}
    settings |= {"index": index, "scale_features": scale_features}
    with interruptible():
        from lognmf.cli import show
        from lognmf.cli.bars import shown
        from lognmf.cli.folder import check_folder
        from lognmf.cli.large import fit_large, load_in_blocks, memory_in_bytes, needs_memory
        from lognmf.cli.read import load, reading
        from lognmf.cli.unfinished import finished
        from lognmf.cli.write import Run, write_results
        from lognmf.clustering import cluster, numbered_by_parts

        console = Console(stderr=True)
        with worded(ValueError, OSError, FloatingPointError, MemoryError):
            ks = _numbers(components)
            estimator, tuned = _estimator(name, given | {"n_components": ks[0]}), None
            grid = _grid(estimator, name, given) if tune else None
            folder = check_folder(out or options.default_folder(file, name), force=force)
            most, apart = memory_in_bytes(memory), scheduler is not None
            large = load_in_blocks(file, reading(context), most, always=apart)
            if large is not None and (len(ks) > 1 or tune or not estimator.spec.blocks):
                asked_for = "--tune" if tune else f"-k {components}" if len(ks) > 1 else f"--model {name}"
                raise needs_memory(asked_for, file)
            data, source, scaled = large or load(file, reading(context), [estimator])
            if len(ks) > 1:
                choice = _choose(components, ks, data.X, seed, console)
                estimator.set_params(n_components=choice.best)
                settings |= {"components": components, "reason": choice.reason}
            n_clusters = settings["clusters"] = estimator.n_components if clusters is None else clusters
            _check_clusters(n_clusters, data.X.shape[0])
            show.announce(data, estimator.n_components)
            checkpoint = None if large is None else folder.with_name(f"{folder.name}.checkpoint")
            if grid is None:
                with shown(console):
                    if checkpoint is None:
                        estimator.fit(data.X)
                    else:
                        fit_large(estimator, data.X, checkpoint, scheduler)
                V = estimator.embedding_
                groups = numbered_by_parts(cluster(V, n_clusters, random_state=seed), V)
            else:
                tuned = _tune(estimator, grid, data.X, given, n_clusters, folder, console)
                estimator, groups = tuned.model, tuned.labels
        with worded(OSError), console.status("drawing and writing"):
            settings["image_shape"] = data.image_shape
            call = context.obj
            waited = {"seconds": call.seconds}
            run = Run(data, estimator, groups, settings, source, call.command, scaled, tuned, **waited)
            write_results(folder, run, force=force, kind="" if large is None else Path(file).suffix.lower())
            finished(folder)
            if checkpoint is not None:
                shutil.rmtree(checkpoint, ignore_errors=True)
    _tell(run, folder)


def _tell(run: Run, folder: Path) -> None:
    """Print what was found, and where it is."""
    from lognmf.cli import show
    from lognmf.cli.write import summarize

    if run.tuning is not None:
        typer.echo(show.choice(run.tuning))
        Console().print(show.tried(run.tuning), "")
    Console().print(show.results(summarize(run)["results"]))
    names = run.data.feature_names
    if names is not None:
        Console(markup=False, highlight=False).print("", show.parts(run.model, names), sep="\n")
    typer.echo(show.where(folder))


def _numbers(components: str) -> range:
    """The numbers of parts that -k asks for."""
    first, colon, last = components.partition(":")
    if components == "auto":
        return range(2, _MOST_AUTO + 1)
    try:
        ks = range(int(first), int(last if colon else first) + 1)
    except ValueError:
        ks = range(0)
    if not ks:
        msg = f"-k must be an integer, a range such as 5:30, or auto; got {components}."
        raise ValueError(msg)
    return ks


def _choose(components: str, ks: range, X: Any, seed: int, console: Console) -> ComponentChoice:
    """Choose the number of parts, with a progress bar, and say why."""
    from lognmf.cli.bars import shown
    from lognmf.grid.components import choose_components

    if components == "auto":
        ks = range(ks[0], min(ks[-1], *X.shape) + 1)
    with shown(console):
        choice = choose_components(X, ks, random_state=seed)
    typer.echo(choice.reason, err=True)
    return choice


def _estimator(name: str, given: Mapping[str, Any]) -> Any:
    """The model called ``name`` with the parameters that the user gave, checked."""
    if name not in _MODELS:
        msg = f"--model must be one of {options.MODEL_NAMES}; got {name!r}."
        raise ValueError(msg)
    accepted = _MODELS[name]().get_params()
    for parameter in given:
        if parameter not in accepted:
            takes = ", ".join(option for key, option in OPTIONS.items() if key in accepted)
            msg = (
                f"{OPTIONS[parameter]} does nothing for {name}, which takes {takes}: "
                "leave it out, or choose another --model."
            )
            raise ValueError(msg)
    options.check_seed(given["random_state"])
    estimator = _MODELS[name](**given)
    estimator.check_parameters()
    return estimator


def _check_clusters(n_clusters: int, n_samples: int) -> None:
    if not 1 <= n_clusters <= n_samples:
        msg = (
            f"--clusters, by default as many as -k, must be from 1 to the number of samples, {n_samples}; "
            f"got {n_clusters}."
        )
        raise ValueError(msg)


def _grid(estimator: Any, name: str, given: Mapping[str, Any]) -> Mapping[str, Sequence[float]]:
    """The values to try of parameters that the user did not give; the start is spectral where possible."""
    from lognmf.grid.tune import default_grid

    if "init" not in given and "spectral" in estimator.spec.starts:
        estimator.set_params(init="spectral")
    grid = default_grid(estimator, fixed=given)
    if not grid:
        msg = f"--tune has nothing to choose for {name} with these options: leave out some, or --tune."
        raise ValueError(msg)
    return grid


def _tune(
    estimator: Any,
    grid: Mapping[str, Sequence[Any]],
    X: Any,
    given: Mapping[str, Any],
    n_clusters: int,
    folder: Path,
    console: Console,
) -> Tuned:
    """Tune the model on X, with a progress bar; ``n_init`` seeds are used, from ``random_state`` on."""
    from lognmf.cli.bars import shown
    from lognmf.cli.unfinished import resumed
    from lognmf.grid.tune import default_grid, tune

    seeds = [(given["random_state"] + i) % 2**32 for i in range(given.get("n_init", _TUNING_SEEDS))]
    # As tune does by default: of the whole grid only the best third of the weights is fitted to the end.
    tried = None if grid == default_grid(estimator) else grid
    options: Any = {"model": estimator, "grid": tried, "n_clusters": n_clusters, "seeds": seeds}
    with shown(console):
        return resumed(
            folder,
            lambda store: tune(X, estimator.n_components, init=estimator.init, store=store, **options),
        )
