"""Errors as the user sees them: one sentence that names options, and an exit code."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import typer

__all__ = ["OPTIONS", "complain", "interruptible", "worded"]

_SAME_NAME = (
    "alpha", "beta", "gamma", "lam", "penalty", "row_norm", "init", "solver", "unit_components", "max_iter",
    "tol", "models", "resize", "preset", "datasets", "executor", "jobs",
)  # fmt: skip

OPTIONS = {
    "n_components": "-k",
    "n_clusters": "--clusters",
    "n_neighbors": "--neighbors",
    "n_init": "--restarts",
    "random_state": "--seed",
} | {name: f"--{name.replace('_', '-')}" for name in _SAME_NAME}
"""Options by the parameters of the estimators and functions behind the commands."""


@contextmanager
def interruptible(message: str = "interrupted, nothing written") -> Iterator[None]:
    """Exit with ``message`` and code 130 on Ctrl-C."""
    try:
        yield
    except KeyboardInterrupt:
        typer.echo(message, err=True)
        raise typer.Exit(130) from None


@contextmanager
def worded(*kinds: type[Exception]) -> Iterator[None]:
    """Exit with one sentence for errors that the user can fix; other errors keep their traceback."""
    try:
        yield
    except kinds as error:
        complain(_sentence(error))
        raise typer.Exit(2) from None


def complain(sentence: str) -> None:
    """Print an error message."""
    typer.echo(f"Error: {sentence}", err=True)


def _sentence(error: Exception) -> str:
    """The message of ``error``; a parameter that it starts with becomes an option."""
    if isinstance(error, MemoryError):
        return f"There is not enough memory: {error}".rstrip(": ") + "."
    if isinstance(error, OSError) and error.strerror:
        return f"{error.filename}: {error.strerror}." if error.filename else f"{error.strerror}."
    first, _, rest = " ".join(str(error).split()).partition(" ")
    return f"{OPTIONS.get(first, first)} {rest}"
