"""The page of a reproduction: what was found, beside the paper and beside the honest protocol."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from lognmf.models import MODELS
from lognmf.report import Cell, Figure, Highlight, Page, Section, Table
from lognmf.study.findings import CLOSE, Finding, Honest, agreement, counted
from lognmf.study.honest import Test, paired_tests
from lognmf.study.paper import PaperFigure, PaperTable, Scope
from lognmf.study.protocol import CONTESTANTS
from lognmf.study.reference import METRICS
from lognmf.study.rivals import RIVALS

__all__ = ["OURS", "honest_tables", "page", "paper_tables", "settings_table", "test_table", "tests"]

OURS = ("LS-NMF", "RLS-NMF")
"""The paper's two models."""

_OTHERS = (*(name for name in MODELS if name not in OURS), *RIVALS)
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
            caption = "Best setting by the labels, one seed, in percent; below it the paper's number and the difference."
            if other_draw:
                caption = "The same with entries drawn without replacement, so that the share is truly gone."
            tables.append(
                Table(f"{title}{', without replacement' if other_draw else ''}", caption, tuple(MODELS), rows, table.corner)
            )
    return tables


def honest_tables(table: PaperTable, results: Sequence[Honest], metrics: Sequence[str] = ("accuracy",)) -> list[Table]:
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
            f"Mean ± standard deviation over {seeds} seeds, in percent. λ was chosen without labels (least normalised cut) "
            "from the same number of values for every method that has it, by another seed; other parameters are the "
            "package's defaults."
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
    caption = "Weights of the best settings by the labels: of alpha, beta, gamma, lam those that the method has."
    return Table("Settings", caption, tuple(methods), tuple(rows), table.corner, best="")


def _setting(setting: Mapping[str, Any]) -> str:
    return ", ".join(f"{value:g}" for _, value in sorted(setting.items()))


def tests(results: Sequence[Honest], metric: str = "accuracy") -> list[Test]:
    """LS-NMF and RLS-NMF against every other method, paired by data."""
    means: dict[str, dict[str, float]] = {}
    for result in results:
        means.setdefault(result.name, {})[result.place] = result.scores[metric].mean
    return [test for ours in OURS for test in paired_tests(means, ours, _OTHERS)]


def test_table(title: str, caption: str, found: Sequence[Test]) -> Table:
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


test_table.__test__ = False  # type: ignore[attr-defined]  # no test of pytest's


def page(
    scope: Scope,
    tables: Mapping[str, tuple[PaperTable, Sequence[Finding], Sequence[Honest]]],
    figures: Sequence[tuple[PaperFigure, Mapping[str, Any]]],
    facts: Mapping[str, str],
) -> Page:
    """The page of a reproduction.

    Parameters
    ----------
    scope : Scope
        Preset and data sets.
    tables : mapping of str to (PaperTable, findings, honest results)
        By name.
    figures : sequence of (PaperFigure, mapping of str to matplotlib figure)
        What was drawn.
    facts : mapping of str to str
        How it came about.

    Returns
    -------
    Page
    """
    everything = [f for _, found, _ in tables.values() for f in found]
    honest = [r for _, _, results in tables.values() for r in results]
    sections = [_summary(scope, everything, honest)]
    sections += [_table_section(*parts) for parts in tables.values()]
    if honest:
        sections.append(_test_section(honest))
    drawn = tuple(
        Figure(f"{figure.title}: {name}" if name else figure.title, figure.caption, drawing)
        for figure, drawings in figures
        for name, drawing in drawings.items()
    )
    if drawn:
        sections.append(Section("Figures", (), drawn))
    subtitle = "Sparse, graph-regularised, robust nonnegative matrix factorisation: the paper's experiments, run again."
    return Page("The paper, rebuilt", subtitle, tuple(sections), facts, tuple(_highlights(everything)))


def _highlights(found: Sequence[Finding]) -> Iterator[Highlight]:
    judged = [f for f in found if counted(f)]
    for methods, label in ((OURS, "of the two models' numbers"), (_OTHERS, "of the baselines' numbers")):
        reached, known = agreement(judged, methods)
        if known:
            yield Highlight(
                f"{100 * reached / known:.0f} %", f"{label} reach the paper's minus {CLOSE:g} points ({reached} of {known})"
            )
    have = sum(f.ours is not None for f in found if f.noise == f.entry.noise)
    all_numbers = sum(f.noise == f.entry.noise for f in found)
    if all_numbers:
        yield Highlight(f"{have} of {all_numbers}", "numbers of these tables are rebuilt")


def _summary(scope: Scope, found: Sequence[Finding], honest: Sequence[Honest]) -> Section:
    preset = scope.preset
    text = [
        f"The paper's protocol: every weight over {', '.join(f'{v:g}' for v in preset.values)}; {preset.max_iter} iterations; as many "
        "components as classes; samples of unit norm; a binary graph of 5 neighbours, built from the noisy data; k-means "
        f"with 10 restarts on V; the best setting by the true labels; one seed, {preset.seed}, fixed before anything was seen. "
        "All three metrics of a method come from one fit, that of the highest accuracy. NMI is divided by the larger entropy.",
        "NMF, GNMF, WNMF, LS-NMF and RLS-NMF start from uniform random numbers, the other four from k-means, as their papers "
        "say. WNMF is not told which entries were removed: in the paper it equals NMF on COIL20 with 40 % removed, which it "
        "could not with a mask. With the same start it is NMF, so both columns agree. The honest tables show it with the mask.",
        "The honest protocol: other seeds than the one that chose, weights chosen without labels, the same number of settings "
        "for every method that has weights. `LS-NMF, all` and `RLS-NMF, all` choose from the paper's whole grids, still without labels.",
    ]
    judged = [f for f in found if counted(f)]
    reached, known = agreement(judged, OURS)
    if known:
        text.append(
            f"Without AR, whose crop is another one, and without the 60 % removals, {reached} of {known} numbers of LS-NMF and "
            f"RLS-NMF are at most {CLOSE:g} points below the paper's, or above them."
        )
        best_each = [f for f in judged if f.method in OURS and f.highest is not None and f.paper is not None]
        high = sum(f.highest - f.paper >= -CLOSE for f in best_each if f.highest is not None and f.paper is not None)
        text.append(f"If each metric may have a setting of its own, {high} of {len(best_each)} do.")
    return Section("What reproduces", tuple(text), tuple(_far_table(found)))


def _far_table(found: Sequence[Finding]) -> Iterator[Table]:
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
            "Far from the paper",
            caption,
            ("ours", "difference", "setting"),
            rows,
            "number",
            form=(".1f", "+.1f", ".1f"),
            better=(1, 1, 0),
            best="",
        )


def _table_section(table: PaperTable, found: Sequence[Finding], honest: Sequence[Honest]) -> Section:
    text = []
    if any(f.noise.kind == "removal" for f in found):
        text.append(
            "Entries drawn with replacement fit the paper's numbers: then 20, 40 and 60 % of draws empty 18, 33 and 45 % of "
            "the entries. The tables without replacement remove what they say."
        )
    tickets = {f.method: f.settings for f in found}
    text.append("Settings tried: " + ", ".join(f"{name} {count}" for name, count in tickets.items()) + ".")
    settings = settings_table(table, found)
    items = (*paper_tables(table, found), *honest_tables(table, honest, tuple(METRICS)), *([settings] if settings else []))
    number = table.name.removeprefix("table")
    return Section(f"Table {number}: {table.title}", tuple(text), items)


def _test_section(honest: Sequence[Honest]) -> Section:
    clean = [r for r in honest if r.entry.level == "clean"]
    words = "Wilcoxon's signed-rank test on the mean accuracies, two-sided; p (Holm) is corrected for all comparisons of a model."
    items = []
    if clean:
        items.append(test_table("Clean data", f"{words} One pair for each data set.", tests(clean)))
    if len(clean) < len(honest):
        caption = f"{words} Noisy copies of one data set are no independent pairs: these p-values are too small."
        items.append(test_table("With the noisy data", caption, tests(honest)))
    return Section("Paired tests, honest protocol", (), tuple(items))
