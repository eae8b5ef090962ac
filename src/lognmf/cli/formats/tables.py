"""Data from tables with columns: csv, tsv, txt, parquet and workbooks."""

from __future__ import annotations

import csv
import io
import itertools
import re
import zipfile
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from lognmf.cli.formats.faults import check_spelling, is_number, not_utf8, uneven_line
from lognmf.cli.formats.shared import (
    Asked,
    check_labels_exist,
    dataset,
    ending,
    needs,
    open_text,
    parsing,
    say_left_out,
    text_bytes,
)
from lognmf.datasets import Dataset
from lognmf.reading import check_unpacked, printable, zip_members

_DELIMITERS = {".csv": ";,", ".tsv": "\t", ".txt": "\t;, "}
"""What may separate the cells of a line, by the end of the file's name. Semicolons come before commas, which
may be decimal."""
_LOOKED_AT = 20
"""Lines by which the form of a table is told."""
_COUNTED = 3
"""From so many columns on, a first row 0, 1, 2, … is a row of names, as pandas writes it."""
_ROW_NAMES = ("", "Unnamed: 0")
"""Names of a first column that holds the names of the rows, as pandas writes it."""


@dataclass(frozen=True)
class _Form:
    """How numbers are written in a table of text."""

    delimiter: str
    decimal: str
    header: bool


def read_text(path: Path, asked: Asked) -> Dataset:
    """A csv, tsv or txt file, or one packed by gzip."""
    with parsing(path):
        size = text_bytes(path)
        form = _form(_first_lines(path), _DELIMITERS[ending(path).removesuffix(".gz")])
        columns = _arrow_table(lambda: open_text(path), form, size)
    return _from_text(columns, form, asked, path)


def read_workbook(path: Path, asked: Asked) -> Dataset:
    """The first sheet of an Excel or OpenDocument workbook."""
    with needs("python_calamine", "cli"):
        from python_calamine import CalamineWorkbook
    with parsing(path):
        if zipfile.is_zipfile(path):
            with zipfile.ZipFile(path) as archive:
                unpacked = sum(member.file_size for member in zip_members(archive, path))
            check_unpacked(unpacked, path.stat().st_size)
        with path.open("rb") as file:  # by its content: not every .xls is one
            rows = CalamineWorkbook.from_filelike(file).get_sheet_by_index(0).to_python(skip_empty_area=True)
        text = io.StringIO(newline="")
        csv.writer(text).writerows([_written(cell) for cell in row] for row in rows)
        packed = text.getvalue().encode()
        form = _form(packed.decode().splitlines()[:_LOOKED_AT], ",")
        columns = _arrow_table(lambda: io.BytesIO(packed), form, len(packed))
    return _from_text(columns, form, asked, path)


def _written(cell: Any) -> str:
    """A cell of a workbook as text."""
    if isinstance(cell, bool):
        return str(int(cell))
    if isinstance(cell, float) and cell.is_integer() and abs(cell) < 2**53:
        return str(int(cell))
    return str(cell)


def _first_lines(path: Path) -> list[str]:
    """The first lines that are not empty."""
    with io.TextIOWrapper(open_text(path), encoding="utf-8-sig", newline="") as file:
        lines = (line.rstrip("\r\n") for line in file if line.strip())
        return list(itertools.islice(lines, _LOOKED_AT))


def _form(lines: Sequence[str], delimiters: str) -> _Form:
    """The form of a table, told by its first lines: as many cells in each, decimal commas, a header."""
    delimiter = next((one for one in delimiters if _separates(one, lines)), delimiters[-1])
    rows = list(csv.reader(lines, delimiter=delimiter))
    cells = [cell.strip() for row in rows[1:] for cell in row]
    comma = delimiter != "," and any(re.fullmatch(r"[-+]?\d*,\d+([eE][-+]?\d+)?", cell) for cell in cells)
    first = [cell.strip().replace(",", ".") if comma else cell.strip() for cell in (rows[0] if rows else [])]
    after = first[1:] if first[:1] == [""] else first
    counted = len(after) >= _COUNTED and after == [str(j) for j in range(len(after))]
    return _Form(delimiter, "," if comma else ".", counted or any(not is_number(cell) for cell in first))


def _separates(delimiter: str, lines: Sequence[str]) -> bool:
    """Whether it cuts every line into the same number of cells, more than one."""
    try:
        counts = {len(row) for row in csv.reader(lines, delimiter=delimiter)}
    except csv.Error:  # a cell is too long to be one
        return False
    return len(counts) == 1 and counts.pop() > 1


def _arrow_table(opened: Any, form: _Form, size: int) -> Any:
    """The table; a row may be longer than a block, and then one block holds all."""
    import pyarrow as pa
    from pyarrow import csv as arrow_csv

    def read(block: int) -> Any:
        with opened() as file:
            return arrow_csv.read_csv(
                file,
                read_options=arrow_csv.ReadOptions(
                    autogenerate_column_names=not form.header, block_size=block
                ),
                parse_options=arrow_csv.ParseOptions(delimiter=form.delimiter),
                convert_options=arrow_csv.ConvertOptions(decimal_point=form.decimal),
            )

    try:
        return read(1 << 20)
    except pa.ArrowInvalid:
        try:
            return read(min(size + 1, (1 << 31) - 1))
        except pa.ArrowInvalid as error:
            raise ValueError(uneven_line(opened, form.delimiter) or str(error)) from error


def _from_text(columns: Any, form: _Form, asked: Asked, path: Path) -> Dataset:
    """X from a table of text, whose first column may hold the names of the rows without saying so."""
    from pyarrow import types

    names = [name.strip() for name in columns.column_names] if form.header else None
    asked = asked.indexed(names)
    if names and asked.index is None and names[0] in _ROW_NAMES:
        names[0] = "row names"
        asked = replace(asked, index="row names")
    if names is not None:
        kept = _of_model(names, asked, path)
        columns, names = columns.select(kept), [names[j] for j in kept]
    if names and "" in names:
        msg = f"Column {names.index('') + 1} of {path} has no name: name it, or remove it."
        raise ValueError(msg)
    for j, field in enumerate(columns.schema):
        if types.is_binary(field.type):  # only text that is no UTF-8 becomes that
            raise not_utf8(path, ending(path).lstrip("."))
        if _is_text(field.type) and not (names and names[j] in (asked.labels, asked.index)):
            cells = columns.column(j).to_pylist()
            check_spelling(f"{names[j]!r}" if names else f"{j + 1}", cells, form.decimal, path)
    _check_columns([field.type for field in columns.schema], names, asked, path)
    return _from_columns(columns, names, asked, path)


def read_parquet(path: Path, asked: Asked) -> Dataset:
    """A parquet file; the index that pandas stored names the samples."""
    from pyarrow import parquet

    with parsing(path):
        facts = parquet.read_metadata(path)
        schema = facts.schema.to_arrow_schema()
        # The index that pandas stored is not a feature.
        stored = (schema.pandas_metadata or {}).get("index_columns", [])
        stored = [name for name in stored if name in schema.names]  # a range of numbers has no column
        asked = asked.indexed(schema.names)
        if asked.index is None and len(stored) == 1 and stored[0] != asked.labels:
            kind = schema.field(stored[0]).type
            asked = replace(asked, index=stored[0]) if _is_numeric(kind) or _is_text(kind) else asked
        wanted = (asked.labels, asked.index)
        fields = [field for field in schema if field.name not in stored or field.name in wanted]
    fields = [fields[j] for j in _of_model([field.name for field in fields], asked, path)]
    names = [field.name for field in fields]
    _check_columns([field.type for field in fields], names, asked, path)
    with parsing(path):
        needed, repeated = _parquet_needs(facts, set(names))
        check_unpacked(needed, path.stat().st_size)
        columns = parquet.read_table(path, columns=names, read_dictionary=repeated)
    return _from_columns(columns, names, asked, path)


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


def _of_model(names: Sequence[str], asked: Asked, path: Path) -> list[int]:
    """Places of the columns that the model knows, and of the samples' names; all where there is no model."""
    if asked.fitted is None or not asked.fitted.features:
        return list(range(len(names)))
    known = set(asked.fitted.features)
    strange = {name for name in names if name != asked.index and printable(name) not in known}
    say_left_out([name for name in names if name in strange], path)
    return [j for j, name in enumerate(names) if name not in strange]


def _check_columns(kinds: list[Any], names: list[str] | None, asked: Asked, path: Path) -> None:
    """Refuse columns of types that are neither features nor, where asked for, labels or names of samples."""
    check_labels_exist(asked.labels, names, path)
    if asked.index is not None and asked.index not in (names or ()):
        few = f"; it has {', '.join(names[:8])}{', …' if len(names) > 8 else ''}" if names else ""
        msg = f"{path} has no column {asked.index!r} with the names of the samples{few}."
        raise ValueError(msg)
    for name in filter(None, (asked.labels, asked.index)):
        if names and names.count(name) > 1:
            msg = f"{path} has {names.count(name)} columns called {name!r}: rename all but one."
            raise ValueError(msg)
    for j, kind in enumerate(kinds):
        if names and names[j] in (asked.labels, asked.index):
            _check_label_type(kind, names[j], path)
        else:
            _check_numbers(kind, f"{names[j]!r}" if names else f"{j + 1}", asked, path)


def _from_columns(columns: Any, names: list[str] | None, asked: Asked, path: Path) -> Dataset:
    """X from the checked columns of an arrow table, without those of labels and names of samples."""
    import pyarrow as pa

    apart = {name: _words(columns, names, name, path) for name in (asked.labels, asked.index)}
    kept = [j for j in range(columns.num_columns) if not names or names[j] not in apart]
    single = bool(kept) and all(columns.schema.field(j).type == pa.float32() for j in kept)
    dtype = pa.float32() if single else pa.float64()
    X = np.empty((columns.num_rows, len(kept)), dtype=dtype.to_pandas_dtype())
    for i, j in enumerate(kept):
        X[:, i] = columns.column(j).cast(dtype, safe=False).to_numpy()
    samples = apart[asked.index]
    return dataset(
        X,
        apart[asked.labels],
        path,
        None if names is None else [names[j] for j in kept],
        None if samples is None else [str(name) for name in samples.tolist()],
    )


def _words(columns: Any, names: list[str] | None, name: str | None, path: Path) -> np.ndarray | None:
    """The column called ``name``, if there is one."""
    if name is None or not names or name not in names:
        return None
    return _label_column(columns.column(names.index(name)), name, path)


def _check_numbers(kind: Any, column: str, asked: Asked, path: Path) -> None:
    from pyarrow import types

    if not _is_numeric(kind):
        text = _is_text(kind) or types.is_dictionary(kind)
        advice = (
            "name it with --labels if it is the label of each sample, with --index if it is its name, or "
            "remove it"
        )
        if asked.fitted is not None:
            known = "replace what is not a number, as it is a feature of the model"
            advice = known if asked.fitted.features else "name it with --index, or remove it"
        msg = (
            f"Column {column} of {path} holds {'text' if text else f'{kind} values'}, not numbers: {advice}."
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
