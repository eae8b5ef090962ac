"""The command line: ``lognmf fit FILE -k 10``."""

from __future__ import annotations

import hashlib
import re
import shlex
import signal
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

import numpy as np
import scipy.sparse as sp
from sklearn.preprocessing import normalize

from lognmf import MODELS, __version__
from lognmf.clustering import cluster
from lognmf.core.starts import STARTS
from lognmf.models.validation import check_samples

if find_spec("typer") is not None:  # else `main` says what to install
    import typer

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table as Grid

    from lognmf.readers import Table

__all__ = ["main"]

_NEEDED = ("typer", "rich", "pyarrow", "matplotlib")
_CHOICES = {name.lower(): model for name, model in MODELS.items()}
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
    "max_iter": "--max-iter",
    "tol": "--tol",
    "random_state": "--seed",
}
"""Options by the estimators' parameters."""


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
    file: Annotated[
        str, typer.Argument(metavar="FILE", help="csv, tsv, parquet, npy, npz, mat or mtx file, or: digits")
    ],
    components: Annotated[int, typer.Option("--components", "-k", help="Number of parts.")],
    clusters: Annotated[int | None, typer.Option(help="Number of clusters.", show_default="as -k")] = None,
    model: Annotated[str, typer.Option(help=f"One of {', '.join(_CHOICES)}.")] = "rls-nmf",
    alpha: Annotated[float | None, typer.Option(help="Weight of the sparsity of the parts.")] = None,
    beta: Annotated[float | None, typer.Option(help="Weight of the sparsity of the codes.")] = None,
    gamma: Annotated[float | None, typer.Option(help="Weight of the outlier part.")] = None,
    lam: Annotated[float | None, typer.Option(help="Weight of the neighbour graph.")] = None,
    penalty: Annotated[str | None, typer.Option(help="Sparsity penalty: log or l1.")] = None,
    row_norm: Annotated[str | None, typer.Option(help="Norm of the outlier part: l2log or l21.")] = None,
    neighbors: Annotated[int | None, typer.Option(help="Neighbours per sample in the graph.")] = None,
    init: Annotated[str | None, typer.Option(help=f"Start: {', '.join(STARTS)}.")] = None,
    restarts: Annotated[int | None, typer.Option(help="Starts; the best objective wins.")] = None,
    max_iter: Annotated[int | None, typer.Option(help="Most iterations.")] = None,
    tol: Annotated[float | None, typer.Option(help="Stop at this relative decrease per iteration.")] = None,
    seed: Annotated[int, typer.Option(help="Seed of all random numbers.")] = 0,
    labels: Annotated[
        str | None, typer.Option(metavar="NAME|FILE", help="True labels: a column, an array or a file.")
    ] = None,
    scale: Annotated[
        bool, typer.Option("--normalize/--no-normalize", help="Scale samples to unit norm.")
    ] = True,
    image_shape: Annotated[
        str | None, typer.Option(metavar="HxW", help="Height and width, when samples are images.")
    ] = None,
    out: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Result folder.", show_default="results/FILE-MODEL")
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace results that are there.")] = False,
) -> None:
    """Factorise a data matrix, cluster its samples and write a result folder.

    Weights and other settings that are not given have the model's own defaults.
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
        "max_iter": max_iter,
        "tol": tol,
        "random_state": seed,
    }
    name, n_clusters = model.lower(), components if clusters is None else clusters
    settings = {"model": name, "clusters": n_clusters, "seed": seed, "normalize": scale, "labels": labels}
    with _interruptible():
        from rich.console import Console

        from lognmf.results import Run, check_folder, summarize, write_results

        console = Console(stderr=True)
        with _worded(ValueError, OSError, FloatingPointError, MemoryError):
            estimator = _estimator(name, {key: v for key, v in parameters.items() if v is not None})
            folder = check_folder(out or Path("results") / f"{Path(file).stem}-{name}", force=force)
            table = _read(file, labels, image_shape)
            source = _source(file, labels, table)
            table = replace(table, X=_samples(estimator, table, file, scale=scale))
            _check_clusters(n_clusters, table)
            _fit(estimator, table, name, console)
        with _worded(OSError), console.status("clustering, drawing and writing"):
            groups = cluster(estimator.embedding_, n_clusters, random_state=seed)
            settings["image_shape"] = table.image_shape
            run = Run(table, estimator, groups, settings, source, context.obj)
            write_results(folder, run, force=force)
    Console().print(_grid(summarize(run)["results"], n_samples=len(groups)))
    typer.echo(f"Results are in {folder}")


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
    if not 0 <= given["random_state"] < 2**32:
        msg = f"--seed must be an integer from 0 to 2**32 - 1; got {given['random_state']}."
        raise ValueError(msg)
    estimator = _CHOICES[name](**given)
    estimator._check_parameters()
    return estimator


def _read(file: str, labels: str | None, image_shape: str | None) -> Table:
    from lognmf.readers import read_table

    shape = None if image_shape is None else re.fullmatch(r"(\d+)[x×](\d+)", image_shape)
    if image_shape is not None and shape is None:
        msg = f"--image-shape must be height x width, like 32x32; got {image_shape!r}."
        raise ValueError(msg)
    table = read_table(file, labels)
    if shape is None:
        return table
    height, width = int(shape[1]), int(shape[2])
    if height * width != table.X.shape[1]:
        msg = (
            f"--image-shape {image_shape} has {height * width} pixels, but the samples of {file} have "
            f"{table.X.shape[1]} features."
        )
        raise ValueError(msg)
    return replace(table, image_shape=(height, width))


def _check_clusters(n_clusters: int, table: Table) -> None:
    n = table.X.shape[0]
    if not 1 <= n_clusters <= n:
        msg = (
            f"--clusters, by default as many as -k, must be from 1 to the number of samples, {n}; "
            f"got {n_clusters}."
        )
        raise ValueError(msg)


def _source(file: str, labels: str | None, table: Table) -> dict[str, Any]:
    """Paths and hashes of what was read."""
    from lognmf.results import fingerprint

    if file == "digits":
        source = {"path": None, "sha256": hashlib.sha256(table.X.tobytes()).hexdigest()}
    else:
        source = {"path": str(Path(file).resolve()), "sha256": fingerprint(file)}
    if labels is not None and Path(labels).is_file():
        source |= {"labels_path": str(Path(labels).resolve()), "labels_sha256": fingerprint(labels)}
    return source


def _samples(estimator: Any, table: Table, file: str, *, scale: bool) -> Any:
    """The samples as the fit will see them; refused here if the model cannot take them."""
    values = table.X.data if sp.issparse(table.X) else table.X
    if values.dtype.kind == "f" and not (finite := np.isfinite(values)).all():
        missing = finite.size - np.count_nonzero(finite)
        msg = f"{file} has {missing} missing or infinite entries: fill them, or drop these rows."
        raise ValueError(msg)
    X = check_samples(estimator, table.X, reset=True).X
    return normalize(X) if scale else X


def _fit(estimator: Any, table: Table, name: str, console: Console) -> None:
    from lognmf.progress import fit_progress

    n, p = table.X.shape
    typer.echo(f"{table.name}: {n} samples of {p} features, {estimator.n_components} parts", err=True)
    with fit_progress(estimator, name, console):
        estimator.fit(table.X)


# What the user sees --------------------------------------------------------------------


def _grid(results: Mapping[str, Any], *, n_samples: int) -> Grid:
    from rich.table import Table as Grid

    sizes = results["cluster_sizes"]
    few = " ".join(map(str, sizes)) if len(sizes) <= 20 else f"{min(sizes)} to {max(sizes)}"
    rows = {
        "objective": f"{results['objective']:.6g}",
        "iterations": f"{results['iterations']} ({results['stop_reason'].replace('_', ' ')})",
        "sparseness of U": f"{results['sparseness_U']:.3f}",
        "sparseness of V": f"{results['sparseness_V']:.3f}",
        "outliers": None if results["outliers"] is None else f"{results['outliers']} of {n_samples}",
        "clusters": f"{len(sizes)}, of sizes {few}",
    }
    rows |= {name: f"{results[name]:.3f}" for name in ("accuracy", "nmi", "purity") if name in results}
    grid = Grid(box=None, show_header=False, pad_edge=False)
    for key, value in rows.items():
        if value is not None:
            grid.add_row(key.replace("nmi", "NMI"), value)
    return grid


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
