"""What all readers of files share: what was asked, errors in a sentence, the data set in the end."""

from __future__ import annotations

import gzip
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO, Any, Self

import numpy as np
import scipy.sparse as sp
import typer

from lognmf.cli.formats.faults import not_utf8
from lognmf.datasets import Dataset
from lognmf.parameters import check_sparse
from lognmf.reading import check_unpacked, most_bytes, printable, reason


@dataclass(frozen=True)
class Fitted:
    """What a fit knows of its columns, by which those of new samples are told."""

    features: tuple[str, ...] = ()  # as `dataset` has them; () if they have no names
    index: str | None = None  # the column that named the samples


@dataclass(frozen=True)
class Asked:
    """What the user says about a file: which of its columns, arrays or matrices mean what."""

    labels: str | None = None  # a column or array, or a file with one label per line
    index: str | None = None  # a column with the names of the samples
    layer: str | None = None  # a matrix of an AnnData file other than X
    features: str | None = None  # names of the features: a column of AnnData's var
    fitted: Fitted | None = None  # of new samples: the fit that they go to

    def indexed(self, names: Sequence[str] | None) -> Self:
        """The same with the index of the fit, if ``names`` has that column and no other is asked for."""
        usual = None if self.fitted is None else self.fitted.index
        return replace(self, index=usual) if self.index is None and usual in (names or ()) else self


def ending(path: Path) -> str:
    """The end of a file's name that tells its format, in lower case: .csv, and .csv.gz for packed text."""
    *_, before, last = ["", *(part.lower() for part in path.suffixes)] if path.suffixes else ["", ""]
    return before + last if last == ".gz" else last


@contextmanager
def parsing(path: Path) -> Iterator[None]:
    """Turn the errors of a broken file into one sentence."""
    try:
        yield
    except (MemoryError, PermissionError):
        raise
    except Exception as error:
        kind = ending(path).lstrip(".")
        if isinstance(error, UnicodeDecodeError) and kind.removesuffix(".gz") in ("csv", "tsv", "txt"):
            raise not_utf8(path, kind, bytes(error.object[:2])) from error
        msg = f"{path} cannot be read as {kind}: {reason(error)}."
        if kind == "mat" and isinstance(error, NotImplementedError):
            msg = f"{path} is a MATLAB file of version 7.3, which cannot be read: save it with -v7."
        raise ValueError(msg) from error


def as_vector(values: Any) -> np.ndarray:
    """A column or row as a vector."""
    check_sparse("the array of labels", values)
    if sp.issparse(values):
        if 1 not in values.shape:
            return values  # no labels: too large to be made dense, perhaps
        values = values.toarray()
    values = np.asarray(values)
    if values.size == max(values.shape, default=1):
        values = values.reshape(-1)
    return values


def check_labels_exist(labels: str | None, names: Sequence[str] | None, path: Any) -> None:
    """Refuse labels that are neither one of the columns ``names`` nor a file."""
    columns = names or ()
    if labels is None or labels in columns or Path(labels).is_file():
        return
    few = f" ({', '.join(columns[:8])}{', …' if len(columns) > 8 else ''})" if columns else ""
    msg = f"The labels {labels!r} are neither a column or array of {path}{few} nor a file: name one of these."
    raise ValueError(msg)


def hint(text: str) -> None:
    """Tell the user what may be meant otherwise."""
    typer.echo(f"Hint: {text}", err=True)


def say_left_out(names: Sequence[str], path: Any) -> None:
    """Name the columns of a file that a model does not know, if there are any."""
    if names:
        few = ", ".join(map(printable, names[:8])) + (f" and {len(names) - 8} more" if len(names) > 8 else "")
        typer.echo(f"Left out of {path}, as the model does not know them: {few}", err=True)


@contextmanager
def needs(package: str, extra: str) -> Iterator[None]:
    """Say what to install where an import fails."""
    try:
        yield
    except ImportError as error:
        msg = f'This file needs {package.replace("_", "-")}: run pip install "lognmf[{extra}]".'
        raise ValueError(msg) from error


def open_text(path: Path) -> IO[bytes]:
    """A file of text, unpacked if its name ends in .gz."""
    opened: Any = gzip.open if path.suffix.lower() == ".gz" else open
    return opened(path, "rb")


def text_bytes(path: Path) -> int:
    """Bytes of a file of text, unpacked, counted until they are too many."""
    packed = path.stat().st_size
    if path.suffix.lower() != ".gz":
        return packed
    total = 0
    with gzip.open(path) as file:
        while total <= most_bytes(packed) and (chunk := file.read(1 << 20)):
            total += len(chunk)
    check_unpacked(total, packed)
    return total


def dataset(
    X: Any,
    y: np.ndarray | None,
    path: Path,
    names: Sequence[str] | None = None,
    samples: Sequence[str] | None = None,
) -> Dataset:
    """The data set of a file: ``names`` are those of the features, ``samples`` those of the samples."""
    check_sparse(str(path), X)
    if sp.issparse(X):
        with parsing(path):
            check_unpacked(8 * X.shape[0], path.stat().st_size)  # rows without entries cost bytes too
        X = sp.csr_array(X)
    title = printable(path.name[: len(path.name) - len(ending(path))])
    return Dataset(X, y, title, title, feature_names=_words(names), sample_names=_words(samples))


def _words(names: Sequence[str] | None) -> tuple[str, ...] | None:
    return None if names is None else tuple(map(printable, names))
