"""Readers of tables: csv, tsv, txt, parquet and workbooks."""

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

from lognmf.datasets import Dataset
from lognmf.io.request import (
    Request,
    check_labels_exist,
    dataset,
    ending,
    few,
    hint_at_unknown,
    needs,
    not_utf8,
    open_text,
    parsing,
    text_bytes,
)
from lognmf.reading import check_unpacked, printable, short, zip_members

_DELIMITERS = {".csv": ";,", ".tsv": "\t", ".txt": "\t;, "}
"""Possible separators of cells, by the ending of the file's name. Semicolons come before commas, which may be
decimal."""
_FIRST_LINES = 20
"""Lines from which the form of a table is detected."""
_COUNTED = 3
"""Columns from which a first row of 0, 1, 2, … is taken as names, as pandas writes them."""
_ROW_NAMES = ("", "Unnamed: 0")
"""Names that pandas gives to a first column with the names of the rows."""
_MISSING = {"", "na", "n/a", "#n/a", "nan", "null", "none"}
_THOUSANDS = re.compile(r"[-+]?\d{1,3}(,\d{3})+(\.\d*)?")


@dataclass(frozen=True)
class _Form:
    """How a text table is written."""

    delimiter: str
    decimal: str
    header: bool


def read_text(path: Path, request: Request) -> Dataset:
    """A csv, tsv or txt file, also compressed by gzip."""
    with needs("pyarrow", "cli"):
        import pyarrow  # noqa: F401
    with parsing(path):
        size = text_bytes(path)
        form = _form(_first_lines(path), _DELIMITERS[ending(path).removesuffix(".gz")])
        columns = _arrow_table(lambda: open_text(path), form, size)
    return _from_text(columns, form, request, path)


def read_workbook(path: Path, request: Request) -> Dataset:
    """The first sheet of an Excel or OpenDocument workbook."""
    with needs("pyarrow and python-calamine", "cli"):
        import pyarrow  # noqa: F401
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
        form = _form(packed.decode().splitlines()[:_FIRST_LINES], ",")
        columns = _arrow_table(lambda: io.BytesIO(packed), form, len(packed))
    return _from_text(columns, form, request, path)


def _written(cell: Any) -> str:
    """A cell of a workbook as text."""
    if isinstance(cell, bool):
        return str(int(cell))
    if isinstance(cell, float) and cell.is_integer() and abs(cell) < 2**53:
        return str(int(cell))
    return str(cell)


def _first_lines(path: Path) -> list[str]:
    """The first lines that are not blank."""
    with io.TextIOWrapper(open_text(path), encoding="utf-8-sig", newline="") as file:
        lines = (line.rstrip("\r\n") for line in file if line.strip())
        return list(itertools.islice(lines, _FIRST_LINES))


def _form(lines: Sequence[str], delimiters: str) -> _Form:
    """The form of a table, detected from its first lines."""
    delimiter = next((one for one in delimiters if _separates(one, lines)), delimiters[-1])
    rows = list(csv.reader(lines, delimiter=delimiter))
    cells = [cell.strip() for row in rows[1:] for cell in row]
    comma = delimiter != "," and any(re.fullmatch(r"[-+]?\d*,\d+([eE][-+]?\d+)?", cell) for cell in cells)
    first = [cell.strip().replace(",", ".") if comma else cell.strip() for cell in (rows[0] if rows else [])]
    after = first[1:] if first[:1] == [""] else first
    counted = len(after) >= _COUNTED and after == [str(j) for j in range(len(after))]
    return _Form(delimiter, "," if comma else ".", counted or any(not _is_number(cell) for cell in first))


def _separates(delimiter: str, lines: Sequence[str]) -> bool:
    """Whether a delimiter splits every line into the same number of cells, and into more than one."""
    try:
        counts = {len(row) for row in csv.reader(lines, delimiter=delimiter)}
    except csv.Error:  # the cell would be longer than the csv module allows
        return False
    return len(counts) == 1 and counts.pop() > 1


def _arrow_table(opened: Any, form: _Form, size: int) -> Any:
    """The table, read in blocks, or in one block where a row is longer than a block."""
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
            raise ValueError(_uneven_line(opened, form.delimiter) or str(error)) from error


def _uneven_line(opened: Any, delimiter: str) -> str | None:
    """The first line whose number of cells differs from that of the first line, in words."""
    with opened() as file:
        rows = csv.reader(io.TextIOWrapper(file, "utf-8-sig", "replace", newline=""), delimiter=delimiter)
        width = 0
        try:
            for row in rows:
                width = width or len(row)
                if row and len(row) != width:
                    line = f"line {rows.line_num} has {len(row)} cells, and the first line has {width}"
                    return f"{line}; all must have the same number"
        except csv.Error:  # a cell is longer than the csv module allows
            pass
    return None


def _from_text(columns: Any, form: _Form, request: Request, path: Path) -> Dataset:
    """X from a text table; an unnamed first column holds the names of the rows."""
    from pyarrow import types

    names = [name.strip() for name in columns.column_names] if form.header else None
    request = request.indexed(names)
    if names and request.index is None and names[0] in _ROW_NAMES:
        names[0] = "row names"
        request = replace(request, index="row names")
    if names is not None:
        used = _of_model(names, request, path)
        columns, names = columns.select(used), [names[j] for j in used]
    if names and "" in names:
        msg = f"Column {names.index('') + 1} of {path} has no name: name it, or remove it."
        raise ValueError(msg)
    for j, field in enumerate(columns.schema):
        if types.is_binary(field.type):  # Arrow's type for text that is not UTF-8
            raise not_utf8(path)
        if _is_text(field.type) and not (names and names[j] in (request.labels, request.index)):
            cells = columns.column(j).to_pylist()
            _check_spelling(f"{names[j]!r}" if names else f"{j + 1}", cells, form.decimal, path)
    _check_columns([field.type for field in columns.schema], names, request, path)
    return _from_columns(columns, names, request, path)


def _is_number(cell: str) -> bool:
    """Whether a cell of text is a number, or empty."""
    if cell.strip().lower() in _MISSING:
        return True
    try:
        float(cell)
    except ValueError:
        return False
    return True


def _check_spelling(column: str, cells: list[Any], decimal: str, path: Path) -> None:
    """Refuse a column of numbers if some of its cells are not numbers; columns of words pass."""
    texts = [str(cell) for cell in cells if cell is not None]
    known = [text for text in texts if text.strip().lower() not in _MISSING]
    odd = [text for text in known if not _is_number(text.replace(",", ".") if decimal == "," else text)]
    if not odd:
        return
    grouped = _THOUSANDS.fullmatch(odd[0].strip()) is not None
    if not grouped and 2 * len(odd) > len(known):
        return
    advice = "write numbers without commas between thousands" if grouped else "replace it, or leave it empty"
    msg = (
        f"Column {column} of {path} holds {short(odd[0])!r} in row {cells.index(odd[0]) + 1} of the data, "
        f"which is not a number: {advice}."
    )
    raise ValueError(msg)


def read_parquet(path: Path, request: Request) -> Dataset:
    """A parquet file; the index that pandas stored names the samples."""
    with needs("pyarrow", "cli"):
        from pyarrow import parquet

    with parsing(path):
        facts = parquet.read_metadata(path)
        schema = facts.schema.to_arrow_schema()
        # The index that pandas stored is not a feature; a range of numbers has no column.
        stored = (schema.pandas_metadata or {}).get("index_columns", [])
        stored = [name for name in stored if name in schema.names]
        request = request.indexed(schema.names)
        if request.index is None and len(stored) == 1 and stored[0] != request.labels:
            kind = schema.field(stored[0]).type
            request = replace(request, index=stored[0]) if _is_numeric(kind) or _is_text(kind) else request
        wanted = (request.labels, request.index)
        fields = [field for field in schema if field.name not in stored or field.name in wanted]
    fields = [fields[j] for j in _of_model([field.name for field in fields], request, path)]
    names = [field.name for field in fields]
    _check_columns([field.type for field in fields], names, request, path)
    with parsing(path):
        needed, repeated = _parquet_needs(facts, set(names))
        check_unpacked(needed, path.stat().st_size)
        columns = parquet.read_table(path, columns=names, read_dictionary=repeated)
    return _from_columns(columns, names, request, path)


def _parquet_needs(facts: Any, names: set[str]) -> tuple[int, list[str]]:
    """Bytes of memory for the columns ``names``, and the columns whose repeated text Arrow can store once."""
    needed, texts, delta = 0, set(), set()
    for group in map(facts.row_group, range(facts.num_row_groups)):
        for chunk in map(group.column, range(group.num_columns)):
            if (name := chunk.path_in_schema) not in names:
                continue
            count = max(chunk.num_values, group.num_rows)
            needed += 8 * count
            if chunk.physical_type == "BYTE_ARRAY":
                texts.add(name)
                # A value may be stored as the number of characters that it shares with the previous one.
                shared = "DELTA_BYTE_ARRAY" in chunk.encodings
                needed += chunk.total_uncompressed_size * (count if shared else 1)
                if any(encoding.startswith("DELTA") for encoding in chunk.encodings):
                    delta.add(name)  # not yet implemented in Arrow
    return needed, sorted(texts - delta)


def _of_model(names: Sequence[str], request: Request, path: Path) -> list[int]:
    """Positions of the columns that the model knows and of the index; all where there is no model."""
    if request.fitted is None or not request.fitted.features:
        return list(range(len(names)))
    known = set(request.fitted.features)
    used = [name == request.index or printable(name) in known for name in names]
    hint_at_unknown([name for name, known in zip(names, used, strict=True) if not known], path)
    return [j for j, known in enumerate(used) if known]


def _check_columns(kinds: list[Any], names: list[str] | None, request: Request, path: Path) -> None:
    """Refuse columns whose type is neither numeric nor that of a requested label or index column."""
    check_labels_exist(request.labels, names, path)
    if request.index is not None and request.index not in (names or ()):
        listed = f"; it has {few(names)}" if names else ""
        msg = f"{path} has no column {request.index!r} with the names of the samples{listed}."
        raise ValueError(msg)
    for name in filter(None, (request.labels, request.index)):
        if names and names.count(name) > 1:
            msg = f"{path} has {names.count(name)} columns called {name!r}: rename all but one."
            raise ValueError(msg)
    for j, kind in enumerate(kinds):
        if names and names[j] in (request.labels, request.index):
            _check_label_type(kind, names[j], path)
        else:
            _check_numbers(kind, f"{names[j]!r}" if names else f"{j + 1}", request, path)


def _from_columns(columns: Any, names: list[str] | None, request: Request, path: Path) -> Dataset:
    """X from the checked columns of an Arrow table, without the label and index columns."""
    import pyarrow as pa

    words = {name: _words(columns, names, name, path) for name in (request.labels, request.index)}
    used = [j for j in range(columns.num_columns) if not names or names[j] not in words]
    single = bool(used) and all(columns.schema.field(j).type == pa.float32() for j in used)
    dtype = pa.float32() if single else pa.float64()
    X = np.empty((columns.num_rows, len(used)), dtype=dtype.to_pandas_dtype())
    for i, j in enumerate(used):
        X[:, i] = columns.column(j).cast(dtype, safe=False).to_numpy()
    samples = words[request.index]
    return dataset(
        X,
        words[request.labels],
        path,
        None if names is None else [names[j] for j in used],
        None if samples is None else [str(name) for name in samples.tolist()],
    )


def _words(columns: Any, names: list[str] | None, name: str | None, path: Path) -> np.ndarray | None:
    """The column called ``name``, if there is one."""
    if name is None or not names or name not in names:
        return None
    return _label_column(columns.column(names.index(name)), name, path)


def _check_numbers(kind: Any, column: str, request: Request, path: Path) -> None:
    from pyarrow import types

    if not _is_numeric(kind):
        text = _is_text(kind) or types.is_dictionary(kind)
        advice = (
            "name it with labels= if it is the label of each sample, with index= if it is its name, or "
            "remove it"
        )
        if request.fitted is not None:
            feature = "replace what is not a number, because it is a feature of the model"
            advice = feature if request.fitted.features else "name it with index=, or remove it"
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
