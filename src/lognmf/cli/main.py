"""The command line: ``lognmf fit DATA -k 10``, ``compare DATA``, ``reproduce`` and ``data list``."""

from __future__ import annotations

import os
import shlex
import signal
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

import numpy as np

from lognmf import MODELS, __version__
from lognmf.clustering import cluster

if find_spec("typer") is not None:  # else `main` says what to install
    import typer

    from lognmf.cli import options

if TYPE_CHECKING:
    from rich.console import Console

    from lognmf.cli.read import Table
    from lognmf.comparison import Row

__all__ = ["main"]

_NEEDED = ("typer", "rich", "pyarrow", "matplotlib")
_CHOICES = {name.lower(): model for name, model in MODELS.items()}
_STARTS = dict.fromkeys(start for model in MODELS.values() for start in model._starts)
_OPTIONS = {
    "n_components": "-k",
    "alpha": "--alpha",
    "beta": "--beta",
    "gamma": "--gamma",
    "lam": "--lam",
    "penalty": "--penalty",
    "row_norm": "--row-norm",
    "n_neighbors": "--neighbors",
    "init": "--init",
    "n_init": "--restarts",
    "solver": "--solver",
    "unit_components": "--unit-components",
    "max_iter": "--max-iter",
    "tol": "--tol",
    "random_state": "--seed",
    "n_clusters": "--clusters",
    "models": "--models",
    "resize": "--resize",
    "preset": "--preset",
    "datasets": "--datasets",
    "executor": "--executor",
    "jobs": "--jobs",
}
"""Options by the parameters of the estimators and of `compare`."""


def main(arguments: Sequence[str] | None = None) -> NoReturn:
    """Run the command line.

    Parameters
    ----------
    arguments : sequence of str, optional
        What stands behind ``lognmf``; default what the user typed.

    Raises
    ------
    SystemExit
        Always: 0 if all went well, 1 if a package is missing, 2 for a refused input,
        130 if interrupted.
    """
    missing = [name for name in _NEEDED if find_spec(name) is None]
    if missing:
        sys.exit(f'The command line needs {" and ".join(missing)}: run pip install "lognmf[cli]".')
    given = list(sys.argv[1:] if arguments is None else arguments)
    # A polite kill shall tidy up as Ctrl-C does.
    before = signal.signal(signal.SIGTERM, lambda number, _: sys.exit(128 + number))
    try:
        code = _app()(given, prog_name="lognmf", standalone_mode=False, obj=shlex.join(["lognmf", *given]))
    except Exception as error:
        if not hasattr(error, "format_message"):
            raise
        # Arguments that typer could not read; without any it has shown its help already.
        if sentence := error.format_message():
            _complain(sentence.rstrip(".") + ("" if sentence.endswith("?") else ".") + " See lognmf --help.")
        code = 2
    finally:
        signal.signal(signal.SIGTERM, before)
    sys.exit(code or 0)


def _app() -> typer.Typer:
    app = typer.Typer(add_completion=False, pretty_exceptions_enable=False, no_args_is_help=True)
    app.callback()(_lognmf)
    app.command()(fit)
    app.command()(compare)
    from lognmf.cli import data as data_commands
    from lognmf.cli import reproduce as reproduce_commands

    app.command()(reproduce_commands.reproduce)
    app.add_typer(data_commands.app(), name="data")
    return app


def _show_version(asked: bool) -> None:
    if asked:
        typer.echo(f"lognmf {__version__}")
        raise typer.Exit


def _lognmf(
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    """Sparse, graph-regularised, robust nonnegative matrix factorisation."""


def fit(
    context: typer.Context,
    file: options.File,
    components: Annotated[int, typer.Option("--components", "-k", help="Number of parts.")],
    clusters: options.Clusters = None,
    model: Annotated[str, typer.Option(help=f"One of {', '.join(_CHOICES)}.")] = "rls-nmf",
    alpha: Annotated[float | None, typer.Option(help="Weight of the sparsity of the parts.")] = None,
    beta: Annotated[float | None, typer.Option(help="Weight of the sparsity of the codes.")] = None,
    gamma: Annotated[float | None, typer.Option(help="Weight of the outlier part.")] = None,
    lam: Annotated[float | None, typer.Option(help="Weight of the neighbour graph.")] = None,
    penalty: Annotated[str | None, typer.Option(help="Sparsity penalty: log or l1.")] = None,
    row_norm: Annotated[str | None, typer.Option(help="Norm of the outlier part: l2log or l21.")] = None,
    neighbors: Annotated[int | None, typer.Option(help="Neighbours per sample in the graph.")] = None,
    init: Annotated[str | None, typer.Option(help=f"Start: {', '.join(_STARTS)}.")] = None,
    restarts: options.Restarts = None,
    solver: Annotated[
        str | None,
        typer.Option(help="mu: multiplicative updates; cd: coordinate descent, with exact zeros."),
    ] = None,
    unit_components: Annotated[
        bool | None,
        typer.Option("--unit-components/--free-components", help="Parts of unit norm, or of any norm."),
    ] = None,
    max_iter: options.MaxIter = None,
    tol: Annotated[float | None, typer.Option(help="Stop at this relative decrease per iteration.")] = None,
    seed: options.Seed = 0,
    tune: options.Tune = False,
    labels: options.Labels = None,
    scale: options.Scale = True,
    image_shape: options.ImageShape = None,
    resize: options.Resize = None,
    out: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Result folder.", show_default="results/DATA-MODEL")
    ] = None,
    force: options.Force = False,
) -> None:
    """Factorise a data matrix, cluster its samples and write a result folder.

    Weights and other settings that are not given have the model's own defaults; with --tune, weights
    (and from the spectral start, which it prefers, the iterations) that are not given are chosen.
    """
    parameters = {
        "n_components": components,
        "alpha": alpha,
        "beta": beta,
        "gamma": gamma,
        "lam": lam,
        "penalty": penalty,
        "row_norm": row_norm,
        "n_neighbors": neighbors,
        "init": init,
        "n_init": restarts,
        "solver": solver,
        "unit_components": unit_components,
        "max_iter": max_iter,
        "tol": tol,
        "random_state": seed,
    }
    name, n_clusters = model.lower(), components if clusters is None else clusters
    settings = {"model": name, "clusters": n_clusters, "seed": seed, "normalize": scale, "labels": labels}
    with _interruptible():
        from rich.console import Console

        from lognmf.cli import show as screen
        from lognmf.cli import tune as tuning
        from lognmf.cli.inputs import load
        from lognmf.cli.write import Run, check_folder, summarize, write_results

        console = Console(stderr=True)
        with _worded(ValueError, OSError, FloatingPointError, MemoryError):
            given, tuned = _given(parameters), None
            estimator = _estimator(name, given)
            grid = tuning.open_grid(estimator, name, given) if tune else None
            folder = check_folder(out or _usual_folder(file, name), force=force)
            table, source = load(file, labels, image_shape, [estimator], scale=scale, resize=resize)
            _check_clusters(n_clusters, table)
            if grid is None:
                _fit(estimator, table, name, console)
            else:
                _announce(table, components)
                tuned = tuning.choose(estimator, grid, table.X, given, n_clusters, console)
                estimator = tuned.model
        with _worded(OSError), console.status("clustering, drawing and writing"):
            groups = tuned.labels if tuned else cluster(estimator.embedding_, n_clusters, random_state=seed)
            settings["image_shape"] = table.image_shape
            run = Run(table, estimator, groups, settings, source, context.obj, tuned)
            write_results(folder, run, force=force)
    if tuned is not None:
        typer.echo(screen.choice(tuned))
        Console().print(screen.tried(tuned), "")
    Console().print(screen.results(summarize(run)["results"], n_samples=len(groups)))
    typer.echo(f"Results are in {folder}")


def compare(
    context: typer.Context,
    file: options.File,
    components: Annotated[
        int | None,
        typer.Option("--components", "-k", help="Number of parts.", show_default="number of classes"),
    ] = None,
    clusters: options.Clusters = None,
    models: Annotated[
        str | None,
        typer.Option(metavar="NAME,NAME,…", help=f"Some of {', '.join(_CHOICES)}.", show_default="all"),
    ] = None,
    restarts: options.Restarts = None,
    max_iter: options.MaxIter = None,
    seed: options.Seed = 0,
    labels: options.Labels = None,
    scale: options.Scale = True,
    image_shape: options.ImageShape = None,
    resize: options.Resize = None,
    out: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Result folder.", show_default="results/DATA-compare")
    ] = None,
    force: options.Force = False,
) -> None:
    """Fit all models to a data matrix, cluster its samples and write a table, the best first.

    Sorted by accuracy where labels are known, else by the cut. cut: normalised cut of the neighbour
    graph by the clusters, lower is better. sparse: Hoyer's sparseness. error: the norm of X − VUᵀ.
    """
    with _interruptible():
        from rich.console import Console

        from lognmf import comparison
        from lognmf.cli import show as screen
        from lognmf.cli.inputs import load
        from lognmf.cli.write import Comparison, check_folder, write_comparison

        console = Console(stderr=True)
        with _worded(ValueError, OSError, MemoryError):
            _check_seed(seed)
            names = comparison.choose(None if models is None else [m.strip() for m in models.split(",")])
            folder = check_folder(out or _usual_folder(file, "compare"), force=force)
            candidates = [MODELS[name]() for name in names]
            table, source = load(file, labels, image_shape, candidates, scale=scale, resize=resize)
            k = _parts(components, table)
            settings = {
                "n_components": k,
                "n_clusters": k if clusters is None else clusters,
                "n_neighbors": 5,
                "random_state": seed,
            }
            more = _given({"n_init": restarts, "max_iter": max_iter})
            rows, fitted = _compare(table, names, {**settings, **more}, console)
        with _worded(OSError), console.status("drawing and writing"):
            asked = {**settings, "normalize": scale, "labels": labels, "image_shape": table.image_shape}
            done = Comparison(table, rows, fitted, asked, source, context.obj)
            write_comparison(folder, done, force=force)
    Console().print(screen.ranking(rows))
    for note in screen.notes(rows, settings["n_clusters"]):
        typer.echo(note)
    typer.echo(f"Results are in {folder}\nOpen {folder / 'index.html'} in a browser for the whole page")


# What a run is made of -----------------------------------------------------------------


def _estimator(name: str, given: Mapping[str, Any]) -> Any:
    """The model called ``name`` with the parameters the user gave, checked."""
    if name not in _CHOICES:
        msg = f"--model must be one of {', '.join(_CHOICES)}; got {name!r}."
        raise ValueError(msg)
    known = _CHOICES[name]().get_params()
    for parameter in given:
        if parameter not in known:
            takes = ", ".join(option for key, option in _OPTIONS.items() if key in known)
            msg = (
                f"{_OPTIONS[parameter]} does nothing for {name}, which takes {takes}: "
                "leave it out, or choose another --model."
            )
            raise ValueError(msg)
    _check_seed(given["random_state"])
    estimator = _CHOICES[name](**given)
    estimator._check_parameters()
    return estimator


def _given(parameters: Mapping[str, Any]) -> dict[str, Any]:
    """The parameters that the user gave; the others have the models' own defaults."""
    return {name: value for name, value in parameters.items() if value is not None}


def _usual_folder(file: str, kind: str) -> Path:
    # Not the stem of what was typed: that of "." is empty.
    return Path("results") / f"{Path(os.path.abspath(file)).stem}-{kind}"  # noqa: PTH100


def _check_seed(seed: int) -> None:
    if not 0 <= seed < 2**32:
        msg = f"--seed must be an integer from 0 to 2**32 - 1; got {seed}."
        raise ValueError(msg)


def _check_clusters(n_clusters: int, table: Table) -> None:
    n = table.X.shape[0]
    if not 1 <= n_clusters <= n:
        msg = (
            f"--clusters, by default as many as -k, must be from 1 to the number of samples, {n}; "
            f"got {n_clusters}."
        )
        raise ValueError(msg)


def _parts(components: int | None, table: Table) -> int:
    """Number of parts: as given, or one for each class."""
    if components is not None:
        return components
    if table.y is None:
        msg = f"The number of parts is not known, because {table.name} has no labels: give -k or --labels."
        raise ValueError(msg)
    return len(np.unique(table.y))


def _fit(estimator: Any, table: Table, name: str, console: Console) -> None:
    from lognmf.cli.progress import fit_progress

    _announce(table, estimator.n_components)
    with fit_progress(estimator, name, console):
        estimator.fit(table.X)


def _compare(
    table: Table, names: Sequence[str], settings: Mapping[str, Any], console: Console
) -> tuple[list[Row], dict[str, Any]]:
    """The rows, the best first, and the models; refused if none could be fitted."""
    from lognmf import comparison
    from lognmf.cli.progress import comparison_progress

    fitted: dict[str, Any] = {}
    _announce(table, settings["n_components"])
    with comparison_progress(len(names), console) as progress:

        def done(row: Row, model: Any) -> None:
            progress.done(model)
            fitted[row.model] = model

        hooks: dict[str, Any] = {"on_start": progress.start, "on_done": done}
        rows = comparison.compare(table.X, y=table.y, models=names, **hooks, **settings)
    if all(row.error is not None for row in rows):
        msg = f"No model could be fitted. {rows[0].model}: {rows[0].error}"
        raise ValueError(msg)
    return rows, fitted


def _announce(table: Table, k: int) -> None:
    n, p = table.X.shape
    typer.echo(f"{table.name}: {n} samples of {p} features, {k} parts", err=True)


# What the user sees --------------------------------------------------------------------


@contextmanager
def _interruptible() -> Iterator[None]:
    try:
        yield
    except KeyboardInterrupt:
        typer.echo("interrupted, nothing written", err=True)
        raise typer.Exit(130) from None


@contextmanager
def _worded(*kinds: type[Exception]) -> Iterator[None]:
    """Say in one sentence what the user can mend; other errors are ours and keep their traceback."""
    try:
        yield
    except kinds as error:
        _complain(_sentence(error))
        raise typer.Exit(2) from None


def _sentence(error: Exception) -> str:
    """The message of ``error``, with options where it names parameters."""
    if isinstance(error, MemoryError):
        return f"There is not enough memory: {error}".rstrip(": ") + "."
    if isinstance(error, OSError) and error.strerror:
        return f"{error.filename}: {error.strerror}." if error.filename else f"{error.strerror}."
    first, _, rest = " ".join(str(error).split()).partition(" ")
    return f"{_OPTIONS.get(first, first)} {rest}"


def _complain(sentence: str) -> None:
    typer.echo(f"Error: {sentence}", err=True)
