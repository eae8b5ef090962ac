"""A data matrix out of a file: csv, tsv, parquet, npy, npz, mat or mtx; out of pictures, or by its name.

Values are handed on as they are; missing and negative ones are for the estimators to refuse.
"""

from __future__ import annotations

import csv
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import scipy.io
import scipy.sparse as sp

from lognmf import datasets
from lognmf.datasets.archives import is_archive

__all__ = ["FORMATS", "Table", "is_name", "is_pictures", "read_table"]

_DATA_NAMES = ("X", "data", "fea", "arr_0")
_LABEL_NAMES = ("y", "labels", "gnd", "target")
_MISSING = {"", "na", "n/a", "#n/a", "nan", "null", "none"}


@dataclass(frozen=True, eq=False)
class Table:
    """Samples in rows, and what their file says about them.

    Parameters
    ----------
    X : ndarray or csr_array of shape (n, p)
        The values.
    name : str
        Name of the file without its ending, of the folder, or of the data set.
    feature_names : list of str, optional
        Names of the columns of X.
    y : ndarray of shape (n,), optional
        True labels: numbers or text.
    image_shape : (int, int), optional
        Height and width, when every sample is an image.
    """

    X: Any
    name: str
    feature_names: list[str] | None = None
    y: np.ndarray | None = None
    image_shape: tuple[int, int] | None = None


def read_table(
    path: str | os.PathLike[str],
    labels: str | os.PathLike[str] | None = None,
    *,
    resize: tuple[int, int] | None = None,
) -> Table:
    """Read a data matrix and, if there are some, its labels.

    Parameters
    ----------
    path : path, or the name of a data set
        A csv, tsv, parquet, npy, npz, mat or mtx file with one sample a row. In csv and
        tsv a first row that holds anything but numbers is a header. In npz and mat the
        matrix is called X, data, fea or arr_0, or is the only one. Or a folder of pictures,
        or an archive of one, as `datasets.load_folder` takes it. Or one of ``datasets.NAMES``,
        like "digits"; a folder of that name is "./digits".
    labels : str or path, optional
        A column of the table, an array of the npz or mat file, or else a file (csv, txt
        or npy) with one label a line. Arrays called y, labels, gnd or target, the
        sub-folders of pictures and the classes of a data set are taken without being asked for.
    resize : (int, int), optional
        Height and width that pictures are brought to.

    Returns
    -------
    Table

    Examples
    --------
    >>> read_table("digits").X.shape
    (1797, 64)
    """
    wanted = None if labels is None else os.fspath(labels)
    if resize is not None and (is_name(path) or not is_pictures(path)):
        msg = f"resize is for a folder or an archive of pictures, and {path} is neither: leave it out."
        raise ValueError(msg)
    if is_name(path):
        table = _named(os.fspath(path), wanted)
    elif is_pictures(path):
        table = _pictures(Path(path), wanted, resize)
    else:
        file = _existing_file(Path(path))
        table = FORMATS[file.suffix.lower()](file, wanted)
    _check_matrix(table.X, path)
    if wanted is not None and table.y is None:
        table = replace(table, y=_read_labels(wanted, path))
    if table.y is not None:
        _check_labels(table.y, table.X.shape, wanted or "its labels", path)
    return table


def is_name(path: str | os.PathLike[str]) -> bool:
    """Whether ``path`` is the name of a data set; one in capital letters may be that of a file, too.

    Parameters
    ----------
    path : path or str

    Returns
    -------
    bool
    """
    given = os.fspath(path)
    return given in datasets.NAMES or (given.lower() in datasets.NAMES and not Path(given).exists())


def is_pictures(path: str | os.PathLike[str]) -> bool:
    """Whether ``path`` is a folder, or an archive going by the end of its name.

    Parameters
    ----------
    path : path

    Returns
    -------
    bool
    """
    return Path(path).is_dir() or (Path(path).is_file() and is_archive(path))


# One function per kind -----------------------------------------------------------------


def _named(name: str, labels: str | None) -> Table:
    found = datasets.load(name)
    names = None if found.feature_names is None else list(found.feature_names)
    return Table(
        found.X, found.name, names, found.y if labels in (None, "target") else None, found.image_shape
    )


def _pictures(path: Path, labels: str | None, resize: tuple[int, int] | None) -> Table:
    found = datasets.load_folder(path, resize=resize)
    classes = labels is None and found.y is not None
    return Table(
        found.X,
        found.name,
        y=np.array(found.class_names)[found.y] if classes else None,
        image_shape=found.image_shape,
    )


def _read_csv(path: Path, labels: str | None, delimiter: str = ",") -> Table:
    from pyarrow import csv as arrow_csv

    header = any(not _is_number(cell) for cell in _parse(lambda p: _first_row(p, delimiter), path))
    columns = _parse(
        lambda p: arrow_csv.read_csv(
            p,
            read_options=arrow_csv.ReadOptions(autogenerate_column_names=not header),
            parse_options=arrow_csv.ParseOptions(delimiter=delimiter),
        ),
        path,
    )
    names = [name.strip() for name in columns.column_names] if header else None
    if names and "" in names:
        msg = (
            f"Column {names.index('') + 1} of {path} has no name: it looks like row numbers written next to "
            "the data. Remove that column (pandas: to_csv(index=False)) or name it."
        )
        raise ValueError(msg)
    return _from_columns(columns, names, labels, path)


def _read_tsv(path: Path, labels: str | None) -> Table:
    return _read_csv(path, labels, delimiter="\t")


def _read_parquet(path: Path, labels: str | None) -> Table:
    from pyarrow import parquet

    columns = _parse(parquet.read_table, path)
    # What pandas wrote down as its index is not a feature.
    index = (columns.schema.pandas_metadata or {}).get("index_columns", [])
    stored = [name for name in index if name in columns.column_names and name != labels]
    columns = columns.drop_columns(stored)
    return _from_columns(columns, columns.column_names, labels, path)


def _read_npy(path: Path, _: str | None) -> Table:
    return Table(_parse(lambda p: np.load(p, allow_pickle=False), path), path.stem)


def _read_npz(path: Path, labels: str | None) -> Table:
    arrays = _parse(_load_npz, path)
    return _from_arrays(arrays, labels, path) if isinstance(arrays, dict) else Table(arrays, path.stem)


def _read_mat(path: Path, labels: str | None) -> Table:
    content = _parse(scipy.io.loadmat, path)
    return _from_arrays({k: v for k, v in content.items() if not k.startswith("__")}, labels, path)


def _read_mtx(path: Path, _: str | None) -> Table:
    M = _parse(scipy.io.mmread, path)
    return Table(sp.csr_array(M) if sp.issparse(M) else M, path.stem)


FORMATS: dict[str, Callable[[Path, str | None], Table]] = {
    ".csv": _read_csv,
    ".tsv": _read_tsv,
    ".parquet": _read_parquet,
    ".npy": _read_npy,
    ".npz": _read_npz,
    ".mat": _read_mat,
    ".mtx": _read_mtx,
}
"""Readers by the ending of the file's name."""


# Tables --------------------------------------------------------------------------------


def _first_row(path: Path, delimiter: str) -> list[str]:
    with path.open(newline="", encoding="utf-8-sig") as file:
        return next((row for row in csv.reader(file, delimiter=delimiter) if row), [])


def _is_number(cell: str) -> bool:
    if cell.strip().lower() in _MISSING:
        return True
    try:
        float(cell)
    except ValueError:
        return False
    return True


def _from_columns(columns: Any, names: list[str] | None, labels: str | None, path: Path) -> Table:
    """X from the columns of an arrow table, without the one called ``labels``."""
    import pyarrow as pa

    _check_label_name(labels, names, path)
    kept = list(range(columns.num_columns))
    y = None
    if names is not None and labels is not None and labels in names:
        position = names.index(labels)
        kept.remove(position)
        y = _label_column(columns.column(position), labels, path)
    for j in kept:
        kind = columns.schema.field(j).type
        tests = (pa.types.is_integer, pa.types.is_floating, pa.types.is_boolean, pa.types.is_decimal)
        if not (any(test(kind) for test in tests) or pa.types.is_null(kind)):
            name = f"{names[j]!r}" if names else f"{j + 1}"
            msg = (
                f"Column {name} of {path} holds {_kind_in_words(kind)}, not numbers: name it with --labels "
                "if it is the label of each sample, or remove it."
            )
            raise ValueError(msg)
    single = bool(kept) and all(columns.schema.field(j).type == pa.float32() for j in kept)
    dtype = pa.float32() if single else pa.float64()
    X = np.empty((columns.num_rows, len(kept)), dtype=np.float32 if single else np.float64)
    for place, j in enumerate(kept):
        X[:, place] = columns.column(j).cast(dtype, safe=False).to_numpy()
    return Table(X, path.stem, None if names is None else [names[j] for j in kept], y)


def _kind_in_words(kind: Any) -> str:
    return (
        "text" if str(kind) in ("string", "large_string") or "dictionary" in str(kind) else f"{kind} values"
    )


def _label_column(column: Any, name: str, path: Path) -> np.ndarray:
    values = column.to_pylist()
    empty = sum(value is None or value == "" for value in values)
    if empty:
        msg = f"Label column {name!r} of {path} has {empty} empty entries; every sample needs a label."
        raise ValueError(msg)
    return np.asarray(values, dtype=None if all(isinstance(v, int | float) for v in values) else str)


# Named arrays --------------------------------------------------------------------------


def _load_npz(path: Path) -> Any:
    """A sparse matrix, or a dict of the file's arrays."""
    with np.load(path, allow_pickle=False) as file:
        if "format" not in file.files:
            return {name: file[name] for name in file.files}
    return sp.csr_array(sp.load_npz(path))


def _from_arrays(arrays: Mapping[str, Any], labels: str | None, path: Path) -> Table:
    """X and y by their names, as `read_table` says."""
    X = _pick_matrix({name: M for name, M in arrays.items() if name != labels}, path)
    if labels is not None:
        return Table(X, path.stem, y=_as_vector(arrays[labels]) if labels in arrays else None)
    vectors = (_as_vector(arrays[name]) for name in _LABEL_NAMES if name in arrays)
    y = next((v for v in vectors if v.ndim == 1 and len(v) == X.shape[0]), None)
    return Table(X, path.stem, y=y)


def _pick_matrix(arrays: Mapping[str, Any], path: Path) -> Any:
    named = [name for name in _DATA_NAMES if name in arrays and arrays[name].ndim == 2]
    others = [name for name, M in arrays.items() if M.ndim == 2 and min(M.shape) > 1]
    if not named and len(others) != 1:
        found = ", ".join(f"{name} {'×'.join(map(str, M.shape))}" for name, M in arrays.items()) or "nothing"
        msg = (
            f"{path} does not say which array is the data: it holds {found}. Call the matrix of samples X "
            "(data, fea and arr_0 do as well), or store it alone."
        )
        raise ValueError(msg)
    M = arrays[(named or others)[0]]
    return sp.csr_array(M) if sp.issparse(M) else M


def _as_vector(values: Any) -> np.ndarray:
    """A column or row as a vector; text in MATLAB's cells as text."""
    values = values.toarray() if sp.issparse(values) else np.asarray(values)
    if values.size == max(values.shape, default=1):
        values = values.reshape(-1)
    if values.dtype == object:
        values = np.array([str(np.squeeze(cell)) for cell in values.reshape(-1)]).reshape(values.shape)
    return values


# Label files ---------------------------------------------------------------------------


def _check_label_name(labels: str | None, names: list[str] | None, path: Any) -> None:
    """Refuse labels that are neither one of ``names`` nor a file."""
    if labels is None or labels in (names or ()) or Path(labels).is_file():
        return
    columns = names or ()
    few = f" ({', '.join(columns[:8])}{', …' if len(columns) > 8 else ''})" if columns else ""
    msg = f"The labels {labels!r} are neither a column or array of {path}{few} nor a file: name one of these."
    raise ValueError(msg)


def _read_labels(labels: str, path: Any) -> np.ndarray:
    """One label a line, from a file."""
    _check_label_name(labels, None, path)
    file = Path(labels)
    if file.suffix.lower() == ".npy":
        return _as_vector(_parse(lambda p: np.load(p, allow_pickle=False), file))
    if file.suffix.lower() not in (".csv", ".txt"):
        msg = f"The label file {labels} must be a csv, txt or npy file with one label a line."
        raise ValueError(msg)
    rows = _parse(_label_lines, file)
    for number, row in enumerate(rows, start=1):
        if len(row) != 1:
            found = "is empty" if not row else f"holds {len(row)} values"
            msg = f"Line {number} of the label file {labels} {found}; it must hold one label."
            raise ValueError(msg)
    return np.array([row[0] for row in rows], dtype=str)


def _label_lines(path: Path) -> list[list[str]]:
    text = path.read_text(encoding="utf-8-sig").rstrip().splitlines()
    rows = csv.reader(text) if path.suffix.lower() == ".csv" else ([line] for line in text)
    return [[cell.strip() for cell in row if cell.strip() or len(row) > 1] for row in rows]


# Refusals ------------------------------------------------------------------------------


def _existing_file(path: Path) -> Path:
    *endings, last = (ending.lstrip(".") for ending in FORMATS)
    known = (
        f"{', '.join(endings)} or {last} file, a folder or archive of pictures, or the name of a data "
        f"set ({', '.join(datasets.NAMES)})"
    )
    if not path.is_file():
        msg = f"There is no file {path}: give a {known}."
        raise FileNotFoundError(msg)
    if path.suffix.lower() not in FORMATS:
        msg = f"{path} is of no known format, going by the end of its name: give a {known}."
        raise ValueError(msg)
    return path


def _parse(read: Callable[[Path], Any], path: Path) -> Any:
    """What ``read`` makes of ``path``; whatever a broken file makes it raise, in one sentence."""
    try:
        return read(path)
    except (MemoryError, PermissionError):
        raise
    except NotImplementedError as error:
        msg = f"{path} is a MATLAB file of version 7.3, which cannot be read: save it with -v7."
        raise ValueError(msg) from error
    except Exception as error:
        reason = " ".join(str(error).split()).rstrip(".") or type(error).__name__
        msg = f"{path} cannot be read as {path.suffix.lower().lstrip('.')}: {reason}."
        raise ValueError(msg) from error


def _check_matrix(X: Any, path: Any) -> None:
    if X.ndim != 2:
        flat = f"{X.shape[0]}×{int(np.prod(X.shape[1:]))}" if X.ndim > 2 else "samples×features"
        msg = (
            f"{path} holds an array of shape {X.shape}; it must be a matrix with one sample a row. "
            f"Reshape it to {flat}" + (" and give --image-shape." if X.ndim == 3 else ".")
        )
        raise ValueError(msg)
    if X.dtype.kind not in "buif":
        msg = f"{path} holds values of type {X.dtype}; they must be real numbers."
        raise ValueError(msg)


def _check_labels(y: np.ndarray, shape: tuple[int, int], labels: str, path: Any) -> None:
    if y.ndim != 1:
        msg = f"The labels {labels} have shape {y.shape}; they must be one number or word per sample."
        raise ValueError(msg)
    if len(y) != shape[0]:
        hint = " The matrix seems to be transposed: samples go in rows." if len(y) == shape[1] else ""
        if len(y) == shape[0] + 1:
            hint = " If the first one is a header, remove it."
        msg = f"There are {len(y)} labels in {labels} for the {shape[0]} samples of {path}.{hint}"
        raise ValueError(msg)
    if y.dtype.kind not in "buifU" or (y.dtype.kind == "f" and not np.isfinite(y).all()):
        msg = f"The labels {labels} must be words or finite numbers, one for every sample."
        raise ValueError(msg)
