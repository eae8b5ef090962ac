"""All rows of a study as one compact Parquet file, for any tool that reads tables."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from itertools import chain
from pathlib import Path
from typing import Any

from lognmf.files import new_file
from lognmf.paper.protocol import WEIGHTS
from lognmf.paper.recipes import PaperTable, Scope
from lognmf.paper.store import StudyStore

__all__ = ["COLUMNS", "protocols", "write_rows"]

_TEXT, _WHOLE, _REAL, _FLAG = "text", "int32", "float32", "bool"

COLUMNS = {
    **dict.fromkeys(("data", "noise"), _TEXT),
    "level": _REAL,
    "replacement": _FLAG,
    **dict.fromkeys(("protocol", "model", "options"), _TEXT),
    **dict.fromkeys(WEIGHTS, _REAL),
    "seed": _WHOLE,
    **dict.fromkeys(("accuracy", "nmi", "purity", "normalized_cut", "modularity", "balance"), _REAL),
    **dict.fromkeys(("objective", "reconstruction_err", "sparseness_U", "sparseness_V"), _REAL),
    **dict.fromkeys(("n_iter", "clusters", "n_outliers"), _WHOLE),
}
"""Columns of the file and their kinds. ``options`` is a JSON object of the parameters that stay."""


def write_rows(path: Path, store: StudyStore, protocol: Mapping[str, str] | None = None) -> None:
    """Write the scores of all fits, one row each, without what is large: curves and factors.

    Numbers are single precision. Read it with ``pandas.read_parquet``, polars or DuckDB.

    Parameters
    ----------
    path : Path
        The file; one that is there is replaced at once.
    store : StudyStore
        The rows.
    protocol : mapping of str to str, optional
        What a cell is for, by its key; see `protocols`. Cells that are not named have none.
    """
    import pyarrow as pa
    import pyarrow.parquet

    kinds = {_WHOLE: pa.int32(), _REAL: pa.float32(), _FLAG: pa.bool_(), _TEXT: pa.string()}
    schema = pa.schema([(name, kinds[kind]) for name, kind in COLUMNS.items()])
    rows = sorted(_scores(store, protocol or {}), key=_order)
    table = pa.Table.from_pylist(rows, schema=schema)
    with new_file(path, force=True) as fresh:
        pa.parquet.write_table(table, fresh, compression="zstd", compression_level=19)


def protocols(tables: Iterable[PaperTable], scope: Scope, store: StudyStore) -> dict[str, str]:
    """What the cells of tables are for: the paper's protocol, or the honest one and its choice.

    Parameters
    ----------
    tables : iterable of PaperTable
        Which.
    scope : Scope
        Preset and data sets.
    store : StudyStore
        The rows, from which the honest protocol chooses.

    Returns
    -------
    dict of str to str
        By the key of a cell: "paper", "choice" or "honest". What serves for both is "paper".
    """
    tables = list(tables)
    honest = {cell.key: "honest" for cell in chain.from_iterable(t.then(scope, store) for t in tables)}
    first = list(chain.from_iterable(t.first(scope) for t in tables))
    paper = {cell.key for cell in chain.from_iterable(t.of_the_paper(scope) for t in tables)}
    return honest | {cell.key: "paper" if cell.key in paper else "choice" for cell in first}


def _scores(store: StudyStore, protocol: Mapping[str, str]) -> Iterator[dict[str, Any]]:
    for key, spec, row in store.scores():
        noise = spec["noise"]
        yield {
            **{name: row[name] for name in COLUMNS if row.get(name) is not None},
            "data": spec["data"]["name"],
            "noise": noise["kind"],
            "level": noise["level"],
            "replacement": noise["replacement"],
            "protocol": protocol.get(key),
            "model": spec["model"],
            "options": json.dumps(dict(spec["options"]), sort_keys=True),
        }


def _order(row: Mapping[str, Any]) -> tuple[Any, ...]:
    """Equal stores give equal files, and like rows stand together, which packs well."""
    texts = ("data", "noise", "model", "protocol", "options")
    numbers = ("level", "replacement", *WEIGHTS, "seed")
    return (*(row.get(name) or "" for name in texts), *(row.get(name, -1) for name in numbers))
