"""What was found, as tables: beside the paper, in the honest protocol, and compared in pairs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from lognmf.models import MODELS
from lognmf.paper.findings import CLOSE, Finding, Honest, agreement
from lognmf.paper.honest import Paired, paired_tests
from lognmf.paper.protocol import CONTESTANTS
from lognmf.paper.recipes import PaperTable
from lognmf.paper.reference import METRICS
from lognmf.paper.rivals import RIVALS
from lognmf.report import Cell, Table

__all__ = [
    "OTHERS",
    "OURS",
    "all_tests",
    "comparison_table",
    "far_tables",
    "honest_tables",
    "paper_tables",
    "reached_tables",
    "settings_table",
]

OURS = ("LS-NMF", "RLS-NMF")
"""The paper's two models."""

OTHERS = (*(name for name in MODELS if name not in OURS), *RIVALS)
"""What they are compared with."""


def paper_tables(table: PaperTable, found: Sequence[Finding]) -> list[Table]:
    """Ours beside the paper's for every metric, then the removals without replacement.

    Parameters
    ----------
    table : PaperTable
        Which one.
    found : sequence of Finding
        Its numbers.

    Returns
    -------
    list of Table
    """
    tables = []
    for other_draw in (False, True):
        for metric, title in METRICS.items():
            part = [f for f in found if f.metric == metric and (f.noise != f.entry.noise) == other_draw]
            if not part:
                continue
            entries = dict.fromkeys(f.entry for f in part)
            rows = tuple(
                (entry.label, tuple(Cell(f.ours, paper=f.paper) for f in part if f.entry == entry))
                for entry in entries
            )
            caption = (
                "Best setting by the labels, one seed, in percent; below it the paper's, and the difference."
            )
            if other_draw:
                caption = "The same with entries drawn without replacement, so that the share is truly gone."
            tables.append(
                Table(
                    f"{title}{', without replacement' if other_draw else ''}",
                    caption,
                    tuple(MODELS),
                    rows,
                    table.corner,
                )
            )
    return tables


def honest_tables(
    table: PaperTable, results: Sequence[Honest], metrics: Sequence[str] = ("accuracy",)
) -> list[Table]:
    """Means and standard deviations over seeds, the weights chosen without labels.

    Parameters
    ----------
    table : PaperTable
        Which one.
    results : sequence of Honest
        Its honest results.
    metrics : sequence of str
        Which ones.

    Returns
    -------
    list of Table
        None where there are no results.
    """
    if not results:
        return []
    names = [name for name in CONTESTANTS if any(r.name == name for r in results)]
    at = {(r.entry, r.name): r for r in results}
    seeds = next(iter(results[0].scores.values())).seeds
    tables = []
    for metric in metrics:
        rows = tuple(
            (entry.label, tuple(_spread_cell(at.get((entry, name)), metric) for name in names))
            for entry in dict.fromkeys(r.entry for r in results)
        )
        caption = (
            f"Mean ± standard deviation over {seeds} seeds, in percent. λ was chosen without labels "
            "(least normalised cut) by another seed, from equally many values for every method that has "
            "it; other parameters are the package's defaults, but LS-NMF and RLS-NMF have the paper's free "
            "scale and random starts."
        )
        tables.append(Table(f"{METRICS[metric]}, honest", caption, tuple(names), rows, table.corner))
    return tables


def _spread_cell(result: Honest | None, metric: str) -> Cell:
    return Cell(None) if result is None else Cell(result.scores[metric].mean, result.scores[metric].std)


def settings_table(table: PaperTable, found: Sequence[Finding]) -> Table | None:
    """The weights behind the best settings, as ``α β γ λ`` where a method has them."""
    part = [f for f in found if f.metric == "accuracy" and f.setting]
    methods = [name for name in MODELS if any(f.method == name for f in part)]
    if not methods:
        return None
    rows = []
    for noise, entry in dict.fromkeys((f.noise, f.entry) for f in part):
        at = {f.method: f for f in part if (f.noise, f.entry) == (noise, entry)}
        label = entry.label + (", without replacement" if noise != entry.noise else "")
        rows.append((label, tuple(Cell(_setting(at[m].setting) if m in at else None) for m in methods)))
    caption = (
        "Weights of the best settings by the labels: of alpha, beta, gamma, lam those that the method has."
    )
    return Table("Settings", caption, tuple(methods), tuple(rows), table.corner, best="")


def _setting(setting: Mapping[str, Any]) -> str:
    return ", ".join(f"{value:g}" for _, value in sorted(setting.items()))


def all_tests(results: Sequence[Honest], metric: str = "accuracy") -> list[Paired]:
    """LS-NMF and RLS-NMF against every other method, paired by data."""
    means: dict[str, dict[str, float]] = {}
    for result in results:
        means.setdefault(result.name, {})[result.place] = result.scores[metric].mean
    return [test for ours in OURS for test in paired_tests(means, ours, OTHERS)]


def comparison_table(title: str, caption: str, found: Sequence[Paired]) -> Table:
    """Paired tests as a table."""
    rows = tuple(
        (
            f"{test.ours} against {test.other}",
            tuple(map(Cell, (test.pairs, test.wins, test.losses, test.difference, test.p, test.p_holm))),
        )
        for test in found
    )
    return Table(
        title,
        caption,
        ("pairs", "wins", "losses", "mean difference", "p", "p (Holm)"),
        rows,
        "comparison",
        form=(".0f", ".0f", ".0f", "+.1f", ".4f", ".4f"),
        better=(0, 1, -1, 1, -1, -1),
        best="",
    )


def reached_tables(found: Sequence[Finding]) -> Iterator[Table]:
    """For every table and method the share of its numbers that reach the paper's."""
    rows = []
    for name in dict.fromkeys(f.table for f in found):
        shares = [agreement((f for f in found if f.table == name), [method]) for method in MODELS]
        cells = tuple(Cell(100 * reached / known if known else None) for reached, known in shares)
        rows.append((f"Table {name.removeprefix('table')}", cells))
    if rows:
        caption = (
            f"Percent of the numbers that are at most {CLOSE:g} points below the paper's, or above them."
        )
        yield Table("Numbers that are reached", caption, tuple(MODELS), tuple(rows), "", form=".0f", best="")


def far_tables(found: Sequence[Finding]) -> Iterator[Table]:
    """The numbers of the two models that are far from the paper's."""
    far = [f for f in found if f.method in OURS and f.difference is not None and abs(f.difference) > CLOSE]
    if far:
        rows = tuple(
            (
                f"{f.method}, {f.entry.dataset}, {f.entry.level}, {METRICS[f.metric].lower()}",
                (Cell(f.ours, paper=f.paper), Cell(f.difference), Cell(_setting(f.setting))),
            )
            for f in sorted(far, key=lambda f: f.difference or 0.0)
        )
        caption = f"Numbers of LS-NMF and RLS-NMF that differ from the paper's by more than {CLOSE:g} points."
        yield Table(
            "Differences",
            caption,
            ("ours", "difference", "setting"),
            rows,
            "number",
            form=(".1f", "+.1f", ".1f"),
            better=(1, 1, 0),
            best="",
        )
