"""``lognmf fit``: one model on one data set, its weights given, default or tuned."""

from __future__ import annotations

import shutil
import signal
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console

from lognmf import MODELS
from lognmf.cli import options
from lognmf.cli.main import Stopped
from lognmf.cli.options import MODEL_NAMES, interruptible, option, option_of, worded
from lognmf.grid.store import OtherRunError, stored_entries
from lognmf.grid.tune import default_grid
from lognmf.progress import say
from lognmf.reading import printable

if TYPE_CHECKING:
    from lognmf.cli.results import Run
    from lognmf.grid.tune import Tuned

_PARAMETERS = options.TRANSLATED & {name for model in MODELS.values() for name in model().get_params()}


def _choices(name: str) -> str:
    """What the parameter ``name`` may be for some model, for help texts."""
    specs = [model.spec for model in MODELS.values()]
    words = [spec.starts if name == "init" else spec.choices.get(name, ()) for spec in specs]
    return ", ".join(dict.fromkeys(word for some in words for word in some))


_MOST_AUTO = 30
"""The largest number of parts that -k auto tries."""

_TUNING_SEEDS = 3
"""Seeds of each setting that --tune tries, unless --restarts is given."""

_PATIENCE = 20
"""Seconds to wait for a scheduler, and for its first worker."""


def fit(
    context: typer.Context,
    file: options.File,
    components: Annotated[
        str,
        option(
            "Model",
            "--components",
            "-k",
            metavar="K|A:B|auto",
            help="Number of parts. From a range such as 5:30, or with auto from 2 to "
            f"{_MOST_AUTO}, one is chosen without labels.",
        ),
    ],
    clusters: options.Clusters = None,
    model: Annotated[str, option("Model", help=f"One of {', '.join(MODEL_NAMES)}.")] = "rls-nmf",
    alpha: Annotated[float | None, option("Model", help="Weight of the sparsity of the parts.")] = None,
    beta: Annotated[float | None, option("Model", help="Weight of the sparsity of the codes.")] = None,
    gamma: Annotated[float | None, option("Model", help="Weight of the outlier part.")] = None,
    lam: Annotated[float | None, option("Model", help="Weight of the neighbour graph.")] = None,
    penalty: Annotated[
        str | None, option("Model", help=f"Sparsity penalty, one of {_choices('penalty')}.")
    ] = None,
    loss: Annotated[
        str | None, option("Model", help=f"Data term, one of {_choices('loss')} (for counts and text).")
    ] = None,
    row_norm: Annotated[
        str | None, option("Model", help=f"Norm of the outlier part, one of {_choices('row_norm')}.")
    ] = None,
    n_neighbors: Annotated[
        int | None, option("Model", "--neighbors", help="Neighbours per sample in the graph.")
    ] = None,
    init: Annotated[str | None, option("Fit", help=f"Initialisation, one of {_choices('init')}.")] = None,
    n_init: options.Restarts = None,
    solver: Annotated[
        str | None,
        option(
            "Fit",
            help=f"One of {_choices('solver')}. mu makes multiplicative updates; cd is coordinate descent, "
            "which gives exact zeros.",
        ),
    ] = None,
    free_components: Annotated[
        bool, option("Model", "--free-components", help="Parts of any norm instead of unit norm.")
    ] = False,
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
    no_normalize: options.NoNormalize = False,
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
    out: Annotated[Path | None, options.out_folder("DATA-MODEL")] = None,
    force: options.Force = False,
) -> None:
    """Factorise a data matrix and write a result folder.

    The folder has parts, codes, clusters of the samples, pictures and the model. Options that are not
    given have the model's defaults. --tune chooses the weights that are not given. It uses the spectral
    initialisation if the model has it and --init is not given; with that initialisation it also chooses
    the number of iterations, unless --max-iter is given.

    A fit in blocks of rows saves its progress in the folder DIR.checkpoint: after an interruption the
    same command continues from there.
    """
    with interruptible():
        from lognmf.cli import results, screen
        from lognmf.cli.prepare import explained, load, load_in_blocks, needs_memory
        from lognmf.clustering import cluster, numbered_by_parts

        console = Console(stderr=True)
        with worded(ValueError, OSError, FloatingPointError, MemoryError):
            ks = _numbers(components)
            given = {name: context.params.get(name) for name in _PARAMETERS}
            given = {name: value for name, value in given.items() if value is not None}
            given |= {"random_state": seed} | ({"unit_components": False} if free_components else {})
            estimator, tuned = _estimator(model.lower(), given | {"n_components": ks[0]}), None
            grid = _grid(estimator, model.lower(), given) if tune else None
            folder = results.check_folder(out or options.default_folder(file, model.lower()), force=force)
            large = load_in_blocks(file, context.params, always=scheduler is not None)
            if large is not None and (len(ks) > 1 or tune or not estimator.spec.blocks):
                option_given = "--tune" if tune else f"-k {components}" if len(ks) > 1 else f"--model {model}"
                raise needs_memory(option_given, file)
            data, source, preparation, kind = large or load(file, context.params)
            names = ("labels", "index", "scale_features")
            settings = {"model": model.lower(), "seed": seed, "image_shape": data.image_shape}
            settings["normalize"] = not no_normalize
            settings |= {name: context.params[name] for name in names}
            checkpoint = folder.with_name(f"{folder.name}.checkpoint")
            with explained(file, data, [estimator]), screen.progress(console):
                if len(ks) > 1:
                    choice = _choose(components, ks, data.X, seed)
                    estimator.set_params(n_components=choice.best)
                    settings |= {"components": components, "reason": choice.reason}
                n_clusters = estimator.n_components if clusters is None else clusters
                settings["clusters"] = n_clusters
                _check_clusters(n_clusters, data.X.shape[0])
                screen.announce(data, estimator.n_components)
                if grid is not None:
                    tuned = _tune(estimator, grid, data.X, given, n_clusters, folder)
                    estimator = tuned.model
                elif kind:
                    _fit_large(estimator, data.X, checkpoint, scheduler)
                else:
                    estimator.fit(data.X)
            if tuned is None:
                V = estimator.embedding_
                groups = numbered_by_parts(cluster(V, n_clusters, random_state=seed), V)
            else:
                groups = tuned.labels
        with worded(OSError), console.status("drawing and writing"):
            call = context.obj
            run = results.Run(
                data,
                estimator,
                groups,
                settings,
                source,
                call.command,
                options.typed(context),
                preparation,
                tuned,
                kind=kind,
                seconds=call.seconds,
            )
            results.write_results(folder, run, force=force)
            _store(folder).unlink(missing_ok=True)
            shutil.rmtree(checkpoint, ignore_errors=True)
    _print(run, folder)


def _print(run: Run, folder: Path) -> None:
    """Print the results, and where they are."""
    from lognmf.cli import screen
    from lognmf.cli.results import summarize

    if run.tuning is not None:
        typer.echo(screen.choice(run.tuning))
        Console().print(screen.tried(run.tuning), "")
    Console().print(screen.results(summarize(run)["results"]))
    names = run.data.feature_names
    if names is not None:
        Console(markup=False, highlight=False).print("", screen.parts(run.model, names), sep="\n")
    typer.echo(screen.where(folder))


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


def _choose(components: str, ks: range, X: Any, seed: int) -> Any:
    """Choose the number of parts, and say why."""
    from lognmf import choose_components

    if components == "auto":
        ks = range(ks[0], min(ks[-1], *X.shape) + 1)
    choice = choose_components(X, ks, random_state=seed)
    say(choice.reason)
    return choice


def _estimator(name: str, given: Mapping[str, Any]) -> Any:
    """The model called ``name`` with the parameters that the user gave, checked."""
    model = options.model_class(name)
    accepted = model().get_params()
    for parameter in given:
        if parameter not in accepted:
            takes = ", ".join(option_of(key) for key in accepted if key in _PARAMETERS)
            msg = (
                f"{option_of(parameter)} does nothing for {name}, which takes {takes}: "
                "leave it out, or choose another --model."
            )
            raise ValueError(msg)
    options.check_seed(given["random_state"])
    estimator = model(**given)
    estimator.check_parameters()
    return estimator


def _check_clusters(n_clusters: int, n_samples: int) -> None:
    if not 1 <= n_clusters <= n_samples:
        msg = (
            f"--clusters, by default as many as -k, must be from 1 to the number of samples, {n_samples}; "
            f"got {n_clusters}."
        )
        raise ValueError(msg)


# Weights -----------------------------------------------------------------------------------


def _grid(estimator: Any, name: str, given: Mapping[str, Any]) -> Mapping[str, Any]:
    """The values to try of parameters that the user did not give; the start is spectral where possible."""
    if "init" not in given and "spectral" in estimator.spec.starts:
        estimator.set_params(init="spectral")
    grid = default_grid(estimator, fixed=given)
    if not grid:
        msg = f"--tune has nothing to choose for {name} with these options: leave out some, or --tune."
        raise ValueError(msg)
    return grid


def _tune(
    estimator: Any, grid: Mapping[str, Any], X: Any, given: Mapping[str, Any], n_clusters: int, folder: Path
) -> Tuned:
    """Tune the model on X; ``n_init`` seeds are used, from ``random_state`` on."""
    from lognmf import tune

    seeds = [(given["random_state"] + i) % 2**32 for i in range(given.get("n_init", _TUNING_SEEDS))]
    # Without a grid of its own, tune fits only the best third of the weights to the end.
    tried = None if grid == default_grid(estimator) else grid
    more: Any = {"model": estimator, "grid": tried, "n_clusters": n_clusters, "seeds": seeds}
    return _resumed(
        folder, lambda store: tune(X, estimator.n_components, init=estimator.init, store=store, **more)
    )


def _resumed(folder: Path, work: Callable[[Path], Tuned]) -> Tuned:
    """``work(store)``, which saves finished fits in a file next to ``folder`` and resumes from it.

    Fits of other data or settings are deleted.
    """
    store = _store(folder)
    where = printable(str(store))
    store.parent.mkdir(parents=True, exist_ok=True)
    if store.exists():
        say(f"Resuming from {where}")
    try:
        try:
            return work(store)
        except OtherRunError:
            say(f"{where} holds fits of other data or settings: starting again")
            store.unlink()
            return work(store)
    except (KeyboardInterrupt, Stopped) as stop:
        saved = stored_entries(store) if store.exists() else 0
        if not saved:
            store.unlink(missing_ok=True)
            raise
        typer.echo(
            f"interrupted; {saved} fits are saved in {where}: run the command again to resume", err=True
        )
        raise typer.Exit(128 + next(iter(stop.args), signal.SIGINT)) from None


def _store(folder: Path) -> Path:
    """The file with the fits of an interrupted command."""
    return folder.with_name(f"{folder.name}.unfinished.db")


# Data in blocks ------------------------------------------------------------------------------


def _fit_large(estimator: Any, X: Any, checkpoint: Path, scheduler: str | None) -> None:
    """Fit to data in blocks, here or on the workers of a scheduler; the fitted arrays end up here."""
    with interruptible(f"interrupted; the same command continues from {checkpoint}"):
        if scheduler is None:
            estimator.fit(X, checkpoint=checkpoint)
            return
        import lognmf

        on_workers: Any = lognmf.on_workers
        with _client(scheduler) as client:
            estimator.fit(on_workers(X, client=client), checkpoint=checkpoint)
            for name, value in vars(estimator).items():
                if hasattr(value, "dask"):
                    setattr(estimator, name, value.compute())


@contextmanager
def _client(scheduler: str) -> Iterator[Any]:
    """A connection to a running scheduler that has workers."""
    try:
        from distributed import Client
    except ImportError as error:
        msg = '--scheduler needs Dask: run pip install "lognmf[dask]".'
        raise ValueError(msg) from error
    try:
        client = Client(scheduler, timeout=_PATIENCE)
    except (OSError, ValueError) as error:
        msg = (
            f"--scheduler: there is no Dask scheduler at {scheduler}: start one with dask scheduler, which "
            "shows its address."
        )
        raise ValueError(msg) from error
    with client:
        try:
            client.wait_for_workers(1, timeout=_PATIENCE)
        except TimeoutError as error:
            msg = f"--scheduler: {scheduler} has no workers: start some with dask worker {scheduler}."
            raise ValueError(msg) from error
        yield client
