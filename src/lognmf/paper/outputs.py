"""The result folder of a reproduction: tables, figures, all rows, the page, and how it was computed."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from lognmf.files import new_file, write_csv
from lognmf.paper.analyse import (
    METRICS,
    Finding,
    LabelFree,
    Paired,
    all_tests,
    findings,
    label_free_results,
    testable,
)
from lognmf.paper.figures import draw
from lognmf.paper.methods import WEIGHTS
from lognmf.paper.pages import label_free_tables, page, paper_tables
from lognmf.paper.store import StudyStore
from lognmf.paper.tables import PaperFigure, PaperTable, Study
from lognmf.report import Cell, Page, Table, write_page


def write_outputs(folder: Path, wanted: Sequence[Any], study: Study, *, preset: str, command: str) -> None:
    """Write tables (csv, Markdown), figures (png, svg), ``run.json`` and the page (html, Markdown).

    Where pyarrow is installed, ``rows.parquet`` holds the scores of all fits. Files of the same
    names are replaced, each in one step.
    """
    tables = {
        table.name: (table, findings(table, study), label_free_results(table, study))
        for table in wanted
        if isinstance(table, PaperTable) and table.inside(study.data)
    }
    _write_tables(folder / "tables", tables)
    if find_spec("pyarrow"):
        named = protocols([table for table, _, _ in tables.values()], study)
        write_rows(folder / "rows.parquet", study.store, named)
    figures = [(f, draw(f, study)) for f in wanted if isinstance(f, PaperFigure)]
    for figure, drawings in figures:
        for name, drawing in drawings.items():
            stem = figure.name + (f"-{name.lower()}" if name else "")
            for ending in ("png", "svg"):
                with new_file(folder / "figures" / f"{stem}.{ending}", force=True) as path:
                    drawing.savefig(path)
    about = _about(study, preset, command)
    _write_text(folder / "run.json", json.dumps(about, indent=2, ensure_ascii=False) + "\n")
    whole = page(study, tables, figures, _facts(about))
    _write_text(folder / "index.md", document(whole))
    write_page(whole, folder / "index.html")


def _about(study: Study, preset: str, command: str) -> dict[str, Any]:
    """How the numbers were computed, for ``run.json``."""
    return {
        "command": command,
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "preset": preset,
        "values": dict(study.preset.values),
        "max_iter": study.preset.max_iter,
        "seed": study.preset.seed,
        "honest_seeds": study.preset.seeds,
        "datasets": {name: data.name for name, data in study.data.items()},
        "made": study.store.environments(),
        "seconds": round(study.store.seconds(), 1),
        "failures": [{"cell": spec, "error": error} for spec, error in study.store.failures()],
    }


def _facts(about: Mapping[str, Any]) -> dict[str, str]:
    """The same in words, for the page."""
    made = "; ".join(", ".join(f"{name} {value}" for name, value in one.items()) for one in about["made"])
    seeds = ", ".join(map(str, about["honest_seeds"]))
    return {
        "command": about["command"],
        "date": about["date"],
        "preset": f"{about['preset']}, {about['max_iter']} iterations",
        "seeds": f"{about['seed']} for grids and choices, {seeds} for the label-free protocol",
        "data sets": ", ".join(about["datasets"]),
        "machines and versions": made,
        "time of all fits together": f"{about['seconds']:.0f} s",
        "failures": "none" if not about["failures"] else str(len(about["failures"])),
    }


def _write_text(path: Path, text: str) -> None:
    """Write a text file in one step."""
    with new_file(path, force=True) as fresh:
        fresh.write_text(text, encoding="utf-8")


# Tables ------------------------------------------------------------------------------------


def _write_tables(
    folder: Path, tables: Mapping[str, tuple[PaperTable, Sequence[Finding], Sequence[LabelFree]]]
) -> None:
    """Both protocols of every table, and the paired tests."""
    for name, (table, results, label_free) in tables.items():
        _write_csv(folder / f"{name}.csv", list(map(_finding, results)))
        _write_csv(folder / f"{name}-honest.csv", [line for r in label_free for line in _label_free(r)])
        parts = [*paper_tables(table, results), *label_free_tables(table, label_free, tuple(METRICS))]
        _write_text(folder / f"{name}.md", "\n\n".join(map(markdown, parts)) + "\n")
    every = [r for _, _, label_free in tables.values() for r in label_free]
    if testable(every):
        clean = [r for r in every if r.entry.level == "clean"]
        groups = {
            name: all_tests(group) for name, group in (("clean", clean), ("all", every)) if testable(group)
        }
        _write_csv(
            folder / "tests.csv", [_test(name, test) for name, tests in groups.items() for test in tests]
        )


def _write_csv(path: Path, rows: Sequence[Mapping[str, Any]]) -> None:
    """Write rows with the columns of the first one."""
    names = list(rows[0]) if rows else []
    with new_file(path, force=True) as fresh:
        write_csv(fresh, {name: [row[name] for row in rows] for name in names})


def _finding(f: Finding) -> dict[str, Any]:
    """A number of a table as a line of its file."""
    return {
        "table": f.table,
        "dataset": f.entry.dataset,
        "level": f.entry.level,
        "replacement": f.noise.replacement,
        "metric": f.metric,
        "method": f.method,
        "ours": _rounded(f.ours),
        "paper": f.paper,
        "difference": _rounded(f.difference),
        "highest": _rounded(f.highest),
        "settings": f.settings,
        "setting": json.dumps(f.setting),
    }


def _label_free(result: LabelFree) -> Iterator[dict[str, Any]]:
    """A label-free result as lines of its file, one for each metric."""
    for metric, (mean, std) in result.scores.items():
        yield {
            "table": result.table,
            "dataset": result.entry.dataset,
            "level": result.entry.level,
            "method": result.name,
            "metric": metric,
            "mean": _rounded(mean),
            "std": _rounded(std),
            "seeds": result.seeds,
            "setting": json.dumps(result.setting),
        }


def _test(data: str, test: Paired) -> dict[str, Any]:
    """A paired test as a line of its file."""
    return {"data": data, **vars(test), "difference": _rounded(test.difference)}


def _rounded(value: float | None) -> float | None:
    """Four decimals are enough for percent."""
    return None if value is None else round(value, 4)


# Markdown ----------------------------------------------------------------------------------


def document(page: Page) -> str:
    """A page in Markdown, without its figures."""
    return "\n\n".join(_paragraphs(page)) + "\n"


def _paragraphs(page: Page) -> Iterator[str]:
    """The paragraphs of a page from top to bottom."""
    yield f"# {page.title}"
    yield page.subtitle
    if page.highlights:
        yield "\n".join(f"- **{highlight.value}** {highlight.label}" for highlight in page.highlights)
    for section in page.sections:
        tables = [item for item in section.items if isinstance(item, Table)]
        if section.text or tables:
            yield f"## {section.title}"
            yield from section.text
            yield from map(markdown, tables)
    if page.facts:
        yield "## How it came about"
        yield "\n".join(f"- {name}: {fact}" for name, fact in page.facts.items())


def markdown(table: Table) -> str:
    """A table in Markdown, with its title and caption; the paper's numbers stand in parentheses."""
    forms = table.form if isinstance(table.form, tuple) else (table.form,) * len(table.columns)
    lines = [_line((table.corner, *table.columns)), "|" + "---|" * (1 + len(table.columns))]
    for name, cells in table.rows:
        lines.append(_line((name, *(_text(cell, form) for cell, form in zip(cells, forms, strict=True)))))
    return "\n\n".join((f"### {table.title}", table.caption, "\n".join(lines)))


def _line(words: tuple[str, ...]) -> str:
    """A row of a table in Markdown."""
    return "| " + " | ".join(word.replace("|", "\\|") for word in words) + " |"


def _text(cell: Cell, form: str) -> str:
    """What stands in a cell of a table."""
    if cell.value is None:
        return "–"
    if isinstance(cell.value, str):
        return cell.value
    spread = "" if cell.spread is None else f" ± {cell.spread:{form}}"
    paper = "" if cell.paper is None else f" ({cell.paper:{form}})"
    return f"{cell.value:{form}}{spread}{paper}"


# All rows ----------------------------------------------------------------------------------

COLUMNS = {
    **dict.fromkeys(("data", "noise"), "string"),
    "level": "float32",
    "replacement": "bool",
    **dict.fromkeys(("protocol", "model", "options"), "string"),
    **dict.fromkeys(WEIGHTS, "float32"),
    "seed": "int32",
    **dict.fromkeys(("accuracy", "nmi", "purity", "normalized_cut", "modularity", "balance"), "float32"),
    **dict.fromkeys(("objective", "reconstruction_err", "sparseness_U", "sparseness_V"), "float32"),
    **dict.fromkeys(("n_iter", "clusters", "n_outliers"), "int32"),
}
"""Columns of ``rows.parquet`` and their types. ``options`` is a JSON object of the fixed parameters."""


def write_rows(path: Path, store: StudyStore, protocol: Mapping[str, str] | None = None) -> None:
    """Write the scores of all fits as one Parquet file, without curves and factors.

    Numbers are single precision. ``protocol`` names the protocol of a cell by its key, see `protocols`.
    """
    import pyarrow as pa
    import pyarrow.parquet

    schema = pa.schema([(name, pa.type_for_alias(kind)) for name, kind in COLUMNS.items()])
    rows = sorted(_scores(store, protocol or {}), key=_order)
    table = pa.Table.from_pylist(rows, schema=schema)
    with new_file(path, force=True) as fresh:
        pa.parquet.write_table(table, fresh, compression="zstd", compression_level=19)


def protocols(tables: Iterable[PaperTable], study: Study) -> dict[str, str]:
    """The protocol of each cell of tables by its key: "paper", "honest" (label-free) or its "choice"."""
    named: dict[str, str] = {}
    for table in tables:
        final = (("honest", cell) for *_, cell in table.then(study))
        for protocol, cell in (*table.grids(study), *final):
            named.setdefault(cell.key, protocol)  # a choice may be made from the paper's own grid
    return named


def _scores(store: StudyStore, protocol: Mapping[str, str]) -> Iterator[dict[str, Any]]:
    """The rows of all grids, with what their cells say."""
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
    """Equal stores give equal files, and similar rows stand together, which compresses well."""
    texts = ("data", "noise", "model", "protocol", "options")
    numbers = ("level", "replacement", *WEIGHTS, "seed")
    return (*(row.get(name) or "" for name in texts), *(row.get(name, -1) for name in numbers))
