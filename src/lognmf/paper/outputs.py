"""Everything a reproduction leaves in its folder: tables, figures, the page, and how it came about."""

from __future__ import annotations

import csv
import json
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from lognmf.files import new_file
from lognmf.paper.documents import document, markdown
from lognmf.paper.figures import draw
from lognmf.paper.findings import Finding, Honest, findings, honest_results
from lognmf.paper.honest import Paired
from lognmf.paper.pages import page
from lognmf.paper.recipes import PaperFigure, PaperTable, Scope
from lognmf.paper.reference import METRICS
from lognmf.paper.result_tables import all_tests, honest_tables, paper_tables
from lognmf.paper.row_table import protocols, write_rows
from lognmf.paper.store import StudyStore
from lognmf.report import write_page

__all__ = ["write_outputs"]


def write_outputs(
    folder: Path, wanted: Sequence[Any], scope: Scope, store: StudyStore, *, preset: str, command: str
) -> None:
    """Write tables (csv, Markdown), figures (png, svg), ``run.json`` and the page (html, Markdown).

    Where pyarrow is installed, ``rows.parquet`` holds the scores of all fits.

    Parameters
    ----------
    folder : Path
        Where to. Files of the same names are replaced, each at once.
    wanted : sequence of PaperTable and PaperFigure
        What of the paper.
    scope : Scope
        Preset and data sets.
    store : StudyStore
        The rows.
    preset, command : str
        For the facts.
    """
    tables = {
        table.name: (table, findings(table, scope, store), honest_results(table, scope, store))
        for table in wanted
        if isinstance(table, PaperTable) and table.inside(scope)
    }
    for table, found, honest in tables.values():
        _write_findings(folder / "tables" / f"{table.name}.csv", found)
        _write_honest(folder / "tables" / f"{table.name}-honest.csv", honest)
        parts = [*paper_tables(table, found), *honest_tables(table, honest, tuple(METRICS))]
        _write_text(folder / "tables" / f"{table.name}.md", "\n\n".join(map(markdown, parts)) + "\n")
    every_honest = [r for _, _, honest in tables.values() for r in honest]
    if every_honest:
        clean = [r for r in every_honest if r.entry.level == "clean"]
        _write_tests(
            folder / "tables" / "tests.csv", {"clean": all_tests(clean), "all": all_tests(every_honest)}
        )
    if find_spec("pyarrow"):
        named = protocols([table for table, _, _ in tables.values()], scope, store)
        write_rows(folder / "rows.parquet", store, named)
    figures = [(f, draw(f, scope, store)) for f in wanted if isinstance(f, PaperFigure)]
    for figure, drawings in figures:
        for name, drawing in drawings.items():
            stem = figure.name + (f"-{name.lower()}" if name else "")
            for ending in ("png", "svg"):
                with new_file(folder / "figures" / f"{stem}.{ending}", force=True) as path:
                    drawing.savefig(path)
    about = _about(scope, store, preset, command)
    with new_file(folder / "run.json", force=True) as path:
        path.write_text(json.dumps(about, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
    whole = page(scope, tables, figures, _facts(about))
    _write_text(folder / "index.md", document(whole))
    write_page(whole, folder / "index.html")


# Files ------------------------------------------------------------------------------------


def _write_text(path: Path, text: str) -> None:
    with new_file(path, force=True) as fresh:
        fresh.write_text(text, encoding="utf-8")


def _write_csv(path: Path, rows: Sequence[Mapping[str, Any]]) -> None:
    with new_file(path, force=True) as fresh, fresh.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, list(rows[0]) if rows else [], lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


def _write_findings(path: Path, found: Sequence[Finding]) -> None:
    rows = [
        {
            "table": f.table,
            "dataset": f.entry.dataset,
            "level": f.entry.level,
            "replacement": f.noise.replacement,
            "metric": f.metric,
            "method": f.method,
            "ours": _number(f.ours),
            "paper": f.paper,
            "difference": _number(f.difference),
            "highest": _number(f.highest),
            "settings": f.settings,
            "setting": json.dumps(f.setting),
        }
        for f in found
    ]
    _write_csv(path, rows)


def _write_honest(path: Path, results: Sequence[Honest]) -> None:
    rows = [
        {
            "table": r.table,
            "dataset": r.entry.dataset,
            "level": r.entry.level,
            "method": r.name,
            "metric": metric,
            "mean": _number(score.mean),
            "std": _number(score.std),
            "seeds": score.seeds,
            "setting": json.dumps(r.setting),
        }
        for r in results
        for metric, score in r.scores.items()
    ]
    _write_csv(path, rows)


def _write_tests(path: Path, groups: Mapping[str, Sequence[Paired]]) -> None:
    rows = [
        {
            "data": name,
            "ours": test.ours,
            "other": test.other,
            "pairs": test.pairs,
            "wins": test.wins,
            "losses": test.losses,
            "difference": _number(test.difference),
            "p": test.p,
            "p_holm": test.p_holm,
        }
        for name, found in groups.items()
        for test in found
    ]
    _write_csv(path, rows)


def _number(value: float | None) -> float | None:
    return None if value is None else round(value, 4)


# How it came about -------------------------------------------------------------------------


def _about(scope: Scope, store: StudyStore, preset: str, command: str) -> dict[str, Any]:
    return {
        "command": command,
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "preset": preset,
        "values": dict(scope.preset.values),
        "max_iter": scope.preset.max_iter,
        "seed": scope.preset.seed,
        "honest_seeds": scope.preset.seeds,
        "datasets": {name: data.name for name, data in scope.data.items()},
        "made": store.environments(),
        "seconds": round(store.seconds(), 1),
        "failures": [{"cell": spec, "error": error} for spec, error in store.failures()],
    }


def _facts(about: Mapping[str, Any]) -> dict[str, str]:
    made = "; ".join(", ".join(f"{name} {value}" for name, value in one.items()) for one in about["made"])
    honest = ", ".join(map(str, about["honest_seeds"]))
    return {
        "command": about["command"],
        "date": about["date"],
        "preset": f"{about['preset']}, {about['max_iter']} iterations",
        "seeds": f"{about['seed']} for grids and choices, {honest} for the honest protocol",
        "data sets": ", ".join(about["datasets"]),
        "machines and versions": made,
        "time of all fits together": f"{about['seconds']:.0f} s",
        "failures": "none" if not about["failures"] else str(len(about["failures"])),
    }
