"""What all readers share: the request, errors in a sentence, the data set they return."""

from __future__ import annotations

import gzip
import shlex
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO, Any

import numpy as np
import scipy.sparse as sp

from lognmf.datasets import Dataset
from lognmf.parameters import check_sparse
from lognmf.progress import warn
from lognmf.reading import check_unpacked, most_bytes, printable, reason

_NAMED = 8
"""Columns that a message names."""

_UTF16 = (b"\xff\xfe", b"\xfe\xff")


class DataWarning(UserWarning):
    """Something in a file may not be what the user takes it for."""


@dataclass(frozen=True)
class Fitted:
    """The columns of a fitted model, by which those of new samples are recognised."""

    features: tuple[str, ...] = ()  # () if they have no names
    index: str | None = None  # the column with the names of the samples


@dataclass(frozen=True)
class Request:
    """How to read a file; the fields are the arguments of `load_data`."""

    labels: str | None = None
    index: str | None = None
    features: str | None = None
    layer: str | None = None
    transpose: bool = False
    resize: tuple[int, int] | None = None
    image_shape: tuple[int, int] | None = None
    fitted: Fitted | None = None  # for new samples: the model that they go to

    def indexed(self, names: Sequence[str] | None) -> Request:
        """The same with the model's index column, if ``names`` contains it and no other is requested."""
        usual = None if self.fitted is None else self.fitted.index
        return replace(self, index=usual) if self.index is None and usual in (names or ()) else self


def ending(path: Path) -> str:
    """The end of a file's name that gives its format, in lower case; compressed text ends in .csv.gz."""
    *_, before, last = ["", "", *(part.lower() for part in path.suffixes)]
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
            raise not_utf8(path, bytes(error.object[:2])) from error
        msg = f"{path} cannot be read as {kind}: {reason(error)}."
        if kind == "mat" and isinstance(error, NotImplementedError):
            msg = f"{path} is a MATLAB file of version 7.3, which cannot be read: save it with -v7."
        raise ValueError(msg) from error


@contextmanager
def needs(package: str, extra: str) -> Iterator[None]:
    """Say what to install where an import fails."""
    try:
        yield
    except ImportError as error:
        msg = f'This file needs {package}: run pip install "lognmf[{extra}]".'
        raise ValueError(msg) from error


def not_utf8(path: Path, start: bytes = b"") -> ValueError:
    """The error that text has another encoding; ``start`` are its first bytes, if known."""
    kind = ending(path).lstrip(".")
    coding, name = ("utf-16", "UTF-16") if start[:2] in _UTF16 else ("latin1", "Latin-1 or Windows-1252")
    example = f", for example with iconv -f {coding} -t utf-8 {shlex.quote(str(path))} > utf8.{kind}"
    return ValueError(
        f"{path} cannot be read as {kind}: it is not encoded in UTF-8, but perhaps in {name}; save it as "
        f"UTF-8{'' if kind.endswith('gz') else example}."
    )


def hint(text: str) -> None:
    """Warn that the data may mean something else."""
    warn(text, DataWarning)


def few(names: Sequence[str]) -> str:
    """The first names, as a message lists them."""
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    return ", ".join(map(printable, names[:_NAMED])) + more


def hint_at_unknown(names: Sequence[str], path: Any) -> None:
    """Name the columns of a file that a model does not know, if there are any."""
    if names:
        hint(f"columns of {path} that the model does not know are ignored: {few(names)}.")


def as_vector(values: Any) -> np.ndarray:
    """A column or row as a vector."""
    check_sparse("the array of labels", values)
    if sp.issparse(values):
        if 1 not in values.shape:
            return values  # these are no labels, and may be too large to be made dense
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
    listed = f" ({few(columns)})" if columns else ""
    msg = (
        f"The labels {labels!r} are neither in {path}{listed} nor a file: name a column, an array or a file."
    )
    raise ValueError(msg)


def open_text(path: Path) -> IO[bytes]:
    """A text file, decompressed if its name ends in .gz."""
    opened: Any = gzip.open if path.suffix.lower() == ".gz" else open
    return opened(path, "rb")


def text_bytes(path: Path) -> int:
    """Bytes of a text file after decompression, counted until they are too many."""
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
    """The data set of a file, with ``names`` of the features and names of the ``samples``."""
    check_sparse(str(path), X)
    if sp.issparse(X):
        with parsing(path):
            check_unpacked(8 * X.shape[0], path.stat().st_size)  # empty rows cost bytes too
        X = sp.csr_array(X)
    title = printable(path.name[: len(path.name) - len(ending(path))])
    words = [None if some is None else tuple(map(printable, some)) for some in (names, samples)]
    return Dataset(X, y, title, title, feature_names=words[0], sample_names=words[1])
