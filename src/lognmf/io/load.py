"""`load_data`: a data matrix with names and labels, from any format."""

from __future__ import annotations

import csv
import io
import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from lognmf import datasets
from lognmf.datasets import Dataset
from lognmf.datasets.places import is_archive
from lognmf.io.arrays import ARRAYS, load_npy, read_arrays
from lognmf.io.cells import is_tenx, is_zarr, read_h5ad, read_hdf5, read_tenx_folder, read_zarr
from lognmf.io.request import Request, as_vector, check_labels_exist, ending, few, hint, open_text, parsing
from lognmf.io.tables import read_parquet, read_text, read_workbook
from lognmf.reading import printable

Reader = Callable[[Path, Request], Dataset]

FORMATS: dict[str, Reader] = {
    **dict.fromkeys((".csv", ".tsv", ".txt", ".csv.gz", ".tsv.gz", ".txt.gz"), read_text),
    ".parquet": read_parquet,
    **dict.fromkeys((".xlsx", ".xls", ".ods"), read_workbook),
    **dict.fromkeys(ARRAYS, read_arrays),
    ".h5ad": read_h5ad,
    ".h5": read_hdf5,
}
"""Readers by the end of the file's name."""

ENDINGS = " or ".join(
    ", ".join(end.lstrip(".") for end in FORMATS if not end.endswith(".gz")).rsplit(", ", 1)
)
"""The formats in words."""

_IDS, _LABELS = ("id", "index"), ("target", "label", "labels", "class", "y")
"""Names of columns that are rarely features."""

_NARROW = 50
"""Up to this many columns, every column name is compared with the lists above; in wider tables, which often
hold words, only the first and the last."""

_ROWS = 5
"""Rows from which a column that counts them is no coincidence."""


def load_data(
    path: str | os.PathLike[str],
    *,
    labels: str | None = None,
    index: str | None = None,
    features: str | None = None,
    layer: str | None = None,
    transpose: bool = False,
    resize: tuple[int, int] | None = None,
    image_shape: tuple[int, int] | None = None,
) -> Dataset:
    """Read data of any format that the command line takes, with the names of samples and features.

    Parameters
    ----------
    path : path
        A file (csv, tsv, txt, parquet, xlsx, xls, ods, npy, npz, mat, mtx, h5ad, h5; text also as .gz), a
        zarr store, a folder of 10x Genomics, a folder or archive of pictures, or the name of a data set such
        as "digits"; a folder of that name is "./digits". Samples are rows. If the first row of a text file
        holds anything but numbers, it is a header. In npz and mat files the matrix is called X, data, fea or
        arr_0, or is the only one.
    labels : str, optional
        True labels: a column, an array, or a file (csv, txt or npy) with one label per line. By default the
        arrays y, labels, gnd or target, the sub-folders of pictures, or the classes of a data set.
    index : str, optional
        Column with the names of the samples.
    features : str, optional
        Names of the features: a file, or a column of ``var`` of an h5ad file.
    layer : str, optional
        Layer of an h5ad file, or "raw".
    transpose : bool, default=False
        Whether samples are in columns.
    resize : (int, int), optional
        Height and width to which pictures are resized.
    image_shape : (int, int), optional
        Height and width, if the samples are pictures.

    Returns
    -------
    Dataset
        ``X`` (n, p), dense or sparse; ``y``, ``feature_names``, ``sample_names`` and ``image_shape``, None
        where they are not known.

    Raises
    ------
    ValueError, FileNotFoundError
        If the file cannot be read, or a package that reads it is not installed; the message says what to do.

    Warns
    -----
    DataWarning
        If columns that look like labels or names of the samples are used as features.

    See Also
    --------
    lognmf.normalize : Scales the samples to unit norm, as the command line does.
    lognmf.in_blocks : Reads data that are larger than memory.

    Examples
    --------
    >>> from lognmf import PlainNMF, load_data
    >>> data = load_data("digits")
    >>> data.X.shape, data.image_shape
    ((1797, 64), (8, 8))
    """
    return read(path, Request(labels, index, features, layer, transpose, resize, image_shape))


def read(path: str | os.PathLike[str], request: Request) -> Dataset:
    """As `load_data`, with the arguments in one value."""
    named = is_name(path)
    reader = None if named else _reader(Path(path))
    pictures = not named and reader is None and _is_pictures(Path(path))
    if request.resize is not None and not pictures:
        msg = f"resize is for a folder or an archive of pictures, and {path} is neither: leave it out."
        raise ValueError(msg)
    if named:
        data = datasets.load(os.fspath(path))
        if request.labels not in (None, "target"):
            data = replace(data, y=None, class_names=None)
    elif pictures:
        data = datasets.load_folder(path, resize=request.resize)
        y = data.y if request.labels is None else None
        data = replace(data, y=None if y is None else np.array(data.class_names)[y], class_names=None)
    elif reader is None:
        raise _no_file(Path(path))
    else:
        _check_orientation(Path(path), request)
        data = reader(Path(path), request)
    _check_matrix(data.X, path)
    if request.transpose:
        data = _transposed(data, path)
    data = completed(data, request, path)
    if request.fitted is None and not request.transpose:
        _hint_at_columns(data, request)
    return data


def completed(data: Dataset, request: Request, path: Any) -> Dataset:
    """The same with what `Request` adds to a file: labels and names from other files, the picture shape."""
    n, p = data.X.shape
    if data.y is None and request.labels is not None:
        data = replace(data, y=_read_labels(request.labels, path))
    if data.y is not None:
        _check_labels(data.y, (n, p), request.labels or "its labels", path)
    if request.features is not None and Path(request.features).is_file():
        data = replace(data, feature_names=_read_names(Path(request.features), p, path))
    if request.image_shape is None:
        return data
    height, width = request.image_shape
    if height * width != p:
        msg = f"image_shape has {height * width} pixels, but the samples of {path} have {p} features."
        raise ValueError(msg)
    return replace(data, image_shape=(height, width))


def is_name(path: str | os.PathLike[str]) -> bool:
    """Whether ``path`` names a data set; a name in capital letters may also be that of a file."""
    given = os.fspath(path)
    return given in datasets.NAMES or (given.lower() in datasets.NAMES and not Path(given).exists())


def _reader(path: Path) -> Reader | None:
    """The reader of a file or folder; None if there is none."""
    if is_tenx(path):
        return read_tenx_folder
    if is_zarr(path):
        return read_zarr
    return FORMATS.get(ending(path)) if path.is_file() else None


def _is_pictures(path: Path) -> bool:
    """Whether ``path`` is a folder, or an archive going by the end of its name."""
    return path.is_dir() or (path.is_file() and is_archive(path))


def _no_file(path: Path) -> Exception:
    """The error that there is nothing to read."""
    allowed = (
        f"{ENDINGS} file, a zarr store, a folder of 10x Genomics, a folder or archive of pictures, or the "
        f"name of a data set ({', '.join(datasets.NAMES)})"
    )
    if not path.is_file():
        return FileNotFoundError(f"There is no file {path}: give a {allowed}.")
    return ValueError(f"{path} is of no known format, going by the end of its name: give a {allowed}.")


def _check_orientation(path: Path, request: Request) -> None:
    """Refuse a matrix of genes × cells that lies next to its barcodes."""
    barcodes = path.parent / "barcodes.tsv"
    if (
        ending(path).startswith(".mtx")
        and not request.transpose
        and (barcodes.is_file() or barcodes.with_suffix(".tsv.gz").is_file())
    ):
        msg = (
            f"{path} lies next to the barcodes of 10x Genomics, so its rows are genes: give the folder "
            f"{path.parent}, which has the names too, or add transpose=True."
        )
        raise ValueError(msg)


def _check_matrix(X: Any, path: Any) -> None:
    """Refuse what is not a matrix of real numbers."""
    if X.ndim != 2:
        flat = f"{X.shape[0]}×{int(np.prod(X.shape[1:]))}" if X.ndim > 2 else "samples×features"
        msg = (
            f"{path} holds an array of shape {X.shape}; it must be a matrix with one sample per row. "
            f"Reshape it to {flat}" + (" and give image_shape=." if X.ndim == 3 else ".")
        )
        raise ValueError(msg)
    if X.dtype.kind not in "buif":
        msg = f"{path} holds values of type {X.dtype}; they must be real numbers."
        raise ValueError(msg)


def _transposed(data: Dataset, path: Any) -> Dataset:
    """Samples and features exchanged."""
    if data.y is not None:
        msg = f"{path} has labels of its rows, so its rows are the samples: leave out transpose=True."
        raise ValueError(msg)
    X = sp.csr_array(data.X.T) if sp.issparse(data.X) else np.ascontiguousarray(data.X.T)
    names: Any = {"feature_names": data.sample_names, "sample_names": data.feature_names}
    return replace(data, X=X, **names, image_shape=None)


# Names and labels from other files -------------------------------------------------------


def _read_names(file: Path, features: int, path: Any) -> tuple[str, ...]:
    """Names of the features, one per line; the first column if there are several, as in features.tsv."""
    with parsing(file), io.TextIOWrapper(open_text(file), encoding="utf-8-sig") as lines:
        text = lines.read().splitlines()
    names = tuple(line.split("\t")[0].strip() for line in text if line.strip())
    if len(names) != features:
        msg = f"The features file {file} holds {len(names)} names for the {features} features of {path}."
        raise ValueError(msg)
    return tuple(map(printable, names))


def _read_labels(labels: str, path: Any) -> np.ndarray:
    """One label per line, from a file."""
    check_labels_exist(labels, None, path)
    file = Path(labels)
    kind = file.suffix.lower()
    if kind not in (".csv", ".txt", ".npy"):
        msg = f"The label file {labels} must be a csv, txt or npy file with one label per line."
        raise ValueError(msg)
    with parsing(file):
        if kind == ".npy":
            return as_vector(load_npy(file))
        text = file.read_text(encoding="utf-8-sig").rstrip().splitlines()
        lines = csv.reader(text) if kind == ".csv" else ([line] for line in text)
        rows = [[cell.strip() for cell in row if cell.strip() or len(row) > 1] for row in lines]
    for number, row in enumerate(rows, start=1):
        if len(row) != 1:
            content = "is empty" if not row else f"holds {len(row)} values"
            msg = f"Line {number} of the label file {labels} {content}; it must hold one label."
            raise ValueError(msg)
    return np.array([row[0] for row in rows], dtype=str)


def _check_labels(y: np.ndarray, shape: tuple[int, int], labels: str, path: Any) -> None:
    """Refuse labels that are not one word or finite number per sample."""
    if y.ndim != 1:
        msg = f"The labels {labels} have shape {y.shape}; they must be one number or word per sample."
        raise ValueError(msg)
    if len(y) != shape[0]:
        advice = " The matrix seems to be transposed: samples go in rows." if len(y) == shape[1] else ""
        if len(y) == shape[0] + 1:
            advice = " If the first one is a header, remove it."
        msg = f"There are {len(y)} labels in {labels} for the {shape[0]} samples of {path}.{advice}"
        raise ValueError(msg)
    letters = set("".join(y.tolist())) if y.dtype.kind == "U" else ()
    surrogates = any("\ud800" <= letter <= "\udfff" for letter in letters)
    if y.dtype.kind not in "buifU" or surrogates or (y.dtype.kind == "f" and not np.isfinite(y).all()):
        msg = f"The labels {labels} must be words or finite numbers, one for every sample."
        raise ValueError(msg)


# Columns that may be no features ---------------------------------------------------------


def _hint_at_columns(data: Dataset, request: Request) -> None:
    """Warn if columns that look like row numbers or labels are used as features."""
    if data.feature_names is None or not isinstance(data.X, np.ndarray):
        return
    names = data.feature_names
    words = [name.strip().lower() for name in names]
    odd = []
    for j, word in enumerate(words):
        column = data.X[:, j]
        telling = len(words) <= _NARROW or j in (0, len(words) - 1)
        if _counts(column) or (telling and word in _IDS and _whole(column)):
            odd.append(_meaning(names[j], "index", request))
        elif telling and word in _LABELS and _whole(column) and not (word == "y" and "x" in words):
            odd.append(_meaning(names[j], "labels", request))
    if odd:
        hint(f"used as features: {few(odd)}.")


def _meaning(name: str, option: str, request: Request) -> str:
    """A column that may be no feature, and what to do with it."""
    if getattr(request, option) is not None:
        return f"column {name!r} (if it is none, remove it from the file)"
    meaning = "names the samples" if option == "index" else "is their label"
    return f"column {name!r} (if it {meaning}, give {option}={name!r})"


def _counts(column: np.ndarray) -> bool:
    """Whether a column holds consecutive whole numbers."""
    if len(column) < _ROWS or column[1] - column[0] != 1:
        return False
    return _whole(column) and bool((np.diff(column) == 1).all())


def _whole(column: np.ndarray) -> bool:
    return bool((column == np.floor(column)).all())
