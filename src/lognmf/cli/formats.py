"""A data matrix from a file: csv, tsv, parquet, npy, npz, mat or mtx. Values are returned as they are."""

from __future__ import annotations

import csv
import os
import struct
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import scipy.io
import scipy.sparse as sp
from scipy.io.matlab import matfile_version

from lognmf.cli.apart import read_apart
from lognmf.datasets import Dataset
from lognmf.parameters import check_sparse
from lognmf.reading import check_npy, check_npz, check_unpacked, most_bytes, printable, reason

_DATA_NAMES = ("X", "data", "fea", "arr_0")
_LABEL_NAMES = ("y", "labels", "gnd", "target")
_COMPRESSED, _DEFLATE_RATIO = 15, 1032
"""MATLAB's mark of a compressed element, and the most that its compression can achieve."""
_MISSING = {"", "na", "n/a", "#n/a", "nan", "null", "none"}


@contextmanager
def parsing(path: Path) -> Iterator[None]:
    """Turn the errors of a broken file into one sentence."""
    try:
        yield
    except (MemoryError, PermissionError):
        raise
    except Exception as error:
        kind = path.suffix.lower().lstrip(".")
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


# Tables with columns -------------------------------------------------------------------


def _read_csv(path: Path, labels: str | None, delimiter: str = ",") -> Dataset:
    import pyarrow as pa

    with parsing(path):
        header = any(not _is_number(cell) for cell in _first_row(path, delimiter))
        try:
            columns = _arrow_table(path, delimiter, header, block=1 << 20)
        except pa.ArrowInvalid:
            # A row may be longer than a block.
            columns = _arrow_table(path, delimiter, header, block=min(path.stat().st_size + 1, (1 << 31) - 1))
    names = [name.strip() for name in columns.column_names] if header else None
    if names and "" in names:
        msg = (
            f"Column {names.index('') + 1} of {path} has no name: it looks like row numbers written next to "
            "the data. Remove that column (pandas: to_csv(index=False)) or name it."
        )
        raise ValueError(msg)
    _check_columns([field.type for field in columns.schema], names, labels, path)
    return _from_columns(columns, names, labels, path)


def _arrow_table(path: Path, delimiter: str, header: bool, *, block: int) -> Any:
    from pyarrow import csv as arrow_csv

    return arrow_csv.read_csv(
        path,
        read_options=arrow_csv.ReadOptions(autogenerate_column_names=not header, block_size=block),
        parse_options=arrow_csv.ParseOptions(delimiter=delimiter),
    )


def _read_parquet(path: Path, labels: str | None) -> Dataset:
    from pyarrow import parquet

    with parsing(path):
        facts = parquet.read_metadata(path)
        schema = facts.schema.to_arrow_schema()
        # The index that pandas stored is not a feature.
        index = (schema.pandas_metadata or {}).get("index_columns", [])
        fields = [field for field in schema if field.name not in index or field.name == labels]
    names = [field.name for field in fields]
    _check_columns([field.type for field in fields], names, labels, path)
    with parsing(path):
        needed, repeated = _parquet_needs(facts, set(names))
        check_unpacked(needed, path.stat().st_size)
        columns = parquet.read_table(path, columns=names, read_dictionary=repeated)
    return _from_columns(columns, names, labels, path)


def _parquet_needs(facts: Any, names: set[str]) -> tuple[int, list[str]]:
    """Bytes of memory for the columns ``names``, and those whose repeated text Arrow can store once."""
    needed, texts, delta = 0, set(), set()
    for group in map(facts.row_group, range(facts.num_row_groups)):
        for chunk in map(group.column, range(group.num_columns)):
            if (name := chunk.path_in_schema) not in names:
                continue
            count = max(chunk.num_values, group.num_rows)
            needed += 8 * count
            if chunk.physical_type == "BYTE_ARRAY":
                texts.add(name)
                # A value may be stored as the length of what it shares with the one before.
                shared = "DELTA_BYTE_ARRAY" in chunk.encodings
                needed += chunk.total_uncompressed_size * (count if shared else 1)
                if any(encoding.startswith("DELTA") for encoding in chunk.encodings):
                    delta.add(name)  # not yet implemented in Arrow
    return needed, sorted(texts - delta)


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


def _check_columns(kinds: list[Any], names: list[str] | None, labels: str | None, path: Path) -> None:
    """Refuse columns of types that are neither features nor, for the one called ``labels``, labels."""
    check_labels_exist(labels, names, path)
    if names and labels is not None and names.count(labels) > 1:
        msg = f"{path} has {names.count(labels)} columns called {labels!r}: rename all but the labels."
        raise ValueError(msg)
    for j, kind in enumerate(kinds):
        if names and names[j] == labels:
            _check_label_type(kind, names[j], path)
        else:
            _check_numbers(kind, f"{names[j]!r}" if names else f"{j + 1}", path)


def _from_columns(columns: Any, names: list[str] | None, labels: str | None, path: Path) -> Dataset:
    """X from the checked columns of an arrow table, without the one called ``labels``."""
    import pyarrow as pa

    kept = list(range(columns.num_columns))
    y = None
    if names and labels in names:
        position = kept.pop(names.index(labels))
        y = _label_column(columns.column(position), labels, path)
    single = bool(kept) and all(columns.schema.field(j).type == pa.float32() for j in kept)
    dtype = pa.float32() if single else pa.float64()
    X = np.empty((columns.num_rows, len(kept)), dtype=dtype.to_pandas_dtype())
    for i, j in enumerate(kept):
        X[:, i] = columns.column(j).cast(dtype, safe=False).to_numpy()
    return _dataset(X, y, path, None if names is None else tuple(names[j] for j in kept))


def _check_numbers(kind: Any, column: str, path: Path) -> None:
    from pyarrow import types

    if not _is_numeric(kind):
        text = _is_text(kind) or types.is_dictionary(kind)
        msg = (
            f"Column {column} of {path} holds {'text' if text else f'{kind} values'}, not numbers: name it "
            "with --labels if it is the label of each sample, or remove it."
        )
        raise ValueError(msg)


def _check_label_type(kind: Any, name: str, path: Path) -> None:
    from pyarrow import types

    kind = kind.value_type if types.is_dictionary(kind) else kind
    if not (_is_numeric(kind) or _is_text(kind) or types.is_temporal(kind)):
        msg = f"Label column {name!r} of {path} holds {kind} values; labels must be numbers or text."
        raise ValueError(msg)


def _is_numeric(kind: Any) -> bool:
    from pyarrow import types

    tests = (types.is_integer, types.is_floating, types.is_boolean, types.is_decimal, types.is_null)
    return any(test(kind) for test in tests)


def _is_text(kind: Any) -> bool:
    return str(kind) in ("string", "large_string", "string_view")


def _label_column(column: Any, name: str, path: Path) -> np.ndarray:
    with parsing(path):
        # NumPy's text has four bytes per character, and as many for every label as for the longest.
        check_unpacked(4 * len(column) * _longest(column), path.stat().st_size)
    values = column.to_pylist()
    empty = sum(value is None or value == "" for value in values)
    if empty:
        msg = f"Label column {name!r} of {path} has {empty} empty entries; every sample needs a label."
        raise ValueError(msg)
    return np.asarray(values, dtype=None if all(isinstance(v, int | float) for v in values) else str)


def _longest(column: Any) -> int:
    """Characters of the longest text in a column; 0 where it holds none."""
    import pyarrow as pa
    from pyarrow import compute, types

    parts = [part.dictionary if types.is_dictionary(part.type) else part for part in column.chunks]
    texts = [part.cast(pa.large_string()) for part in parts if _is_text(part.type)]
    return max((compute.max(compute.utf8_length(text)).as_py() or 0 for text in texts), default=0)


# Arrays --------------------------------------------------------------------------------


def _read_arrays(path: Path, labels: str | None) -> Dataset:
    with parsing(path):
        content = _ARRAYS[path.suffix.lower()](path)
    return _from_arrays(content, labels, path) if isinstance(content, dict) else _dataset(content, None, path)


def _load_npz(path: Path) -> Any:
    """A sparse matrix, or a dict of the file's arrays."""
    check_npz(path)
    with np.load(path, allow_pickle=False) as file:
        if "format" not in file.files:
            return {name: array for name, array in file.items() if isinstance(array, np.ndarray)}
    return sp.load_npz(path)


def load_npy(path: Path) -> np.ndarray:
    """The array of an npy file."""
    with path.open("rb") as file:
        check_npy(file, path.stat().st_size)
    return np.load(path, allow_pickle=False)


def _load_mat(path: Path) -> dict[str, Any]:
    check_unpacked(_mat_bytes(path), path.stat().st_size)
    return read_apart(path)


def _mat_bytes(path: Path) -> int:
    """What the compressed parts of a MATLAB file unpack to, counted until it is too much."""
    packed, total = path.stat().st_size, 0
    if matfile_version(path)[0] != 1 or _DEFLATE_RATIO * packed <= most_bytes(packed):
        return 0
    with path.open("rb") as file:
        order = "<" if file.read(128).endswith(b"IM") else ">"
        while len(tag := file.read(8)) == 8:
            kind, size = struct.unpack(f"{order}II", tag)
            if kind != _COMPRESSED:
                file.seek(size, os.SEEK_CUR)
                continue
            unpacker, rest = zlib.decompressobj(), file.read(size)
            while rest and total <= most_bytes(packed):
                total += len(unpacker.decompress(rest, 1 << 20))
                rest = unpacker.unconsumed_tail
    return total


def _load_mtx(path: Path) -> Any:
    """A matrix of text; refused if it promises more numbers than so many bytes can spell."""
    _, _, entries, layout, _, symmetry = scipy.io.mminfo(path)
    size = path.stat().st_size
    numbers = entries if layout == "coordinate" or symmetry == "general" else entries // 2
    if 2 * numbers > size + 1:
        msg = f"its header promises {entries} entries, more than {size} bytes can spell"
        raise ValueError(msg)
    return read_apart(path)["X"]


_ARRAYS: dict[str, Callable[[Path], Any]] = {
    ".npy": load_npy,
    ".npz": _load_npz,
    ".mat": _load_mat,
    ".mtx": _load_mtx,
}
"""Functions that read a matrix, or a dict of arrays, by the ending of the file's name."""


def _from_arrays(arrays: Mapping[str, Any], labels: str | None, path: Path) -> Dataset:
    """X and y by their names; an array that is only called like labels but does not fit X is left alone."""
    X = _pick_matrix({name: M for name, M in arrays.items() if name != labels}, path)
    if labels is not None:
        return _dataset(X, as_vector(arrays[labels]) if labels in arrays else None, path)
    vectors = (as_vector(arrays[name]) for name in _LABEL_NAMES if name in arrays)
    return _dataset(X, next((v for v in vectors if v.ndim == 1 and len(v) == X.shape[0]), None), path)


def _pick_matrix(arrays: Mapping[str, Any], path: Path) -> Any:
    named = [name for name in _DATA_NAMES if name in arrays and arrays[name].ndim == 2]
    others = [name for name, M in arrays.items() if M.ndim == 2 and min(M.shape) > 1]
    if not named and len(others) != 1:
        shapes = ", ".join(f"{name} {'×'.join(map(str, M.shape))}" for name, M in arrays.items()) or "nothing"
        msg = (
            f"{path} does not say which array is the data: it holds {shapes}. Call the matrix of samples X "
            "(data, fea and arr_0 do as well), or store it alone."
        )
        raise ValueError(msg)
    return arrays[(named or others)[0]]


def _dataset(X: Any, y: np.ndarray | None, path: Path, names: tuple[str, ...] | None = None) -> Dataset:
    check_sparse(str(path), X)
    if sp.issparse(X):
        with parsing(path):
            check_unpacked(8 * X.shape[0], path.stat().st_size)  # rows without entries cost bytes too
        X = sp.csr_array(X)
    names = None if names is None else tuple(map(printable, names))
    return Dataset(X, y, name=printable(path.stem), title=printable(path.stem), feature_names=names)


FORMATS: dict[str, Callable[[Path, str | None], Dataset]] = {
    ".csv": _read_csv,
    ".tsv": partial(_read_csv, delimiter="\t"),
    ".parquet": _read_parquet,
    **dict.fromkeys(_ARRAYS, _read_arrays),
}
"""Readers by the ending of the file's name."""

ENDINGS = " or ".join(", ".join(ending.lstrip(".") for ending in FORMATS).rsplit(", ", 1))
"""The formats in words."""
