"""The page of a reproduction: what was found, beside the paper and beside the honest protocol."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from lognmf.paper.findings import CLOSE, Finding, Honest, agreement, counted
from lognmf.paper.protocol import PRESETS, Preset
from lognmf.paper.recipes import PaperFigure, PaperTable, Scope
from lognmf.paper.reference import METRICS
from lognmf.paper.result_tables import (
    OTHERS,
    OURS,
    all_tests,
    comparison_table,
    far_tables,
    honest_tables,
    paper_tables,
    reached_tables,
    settings_table,
)
from lognmf.report import Figure, Highlight, Page, Section

__all__ = ["page"]


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
    sections = [_summary(scope, everything)]
    sections += [_table_section(*parts) for parts in tables.values()]
    if honest:
        sections.append(_test_section(honest))
    if far := tuple(far_tables(everything)):
        sections.append(Section("Far from the paper", (), far))
    drawn = tuple(
        Figure(f"{figure.title}: {name}" if name else figure.title, figure.caption, drawing)
        for figure, drawings in figures
        for name, drawing in drawings.items()
    )
    if drawn:
        sections.append(Section("Figures", (), drawn))
    subtitle = "Sparse, graph-regularised, robust NMF: the paper's experiments, run again."
    return Page("The paper, rebuilt", subtitle, tuple(sections), facts, tuple(_highlights(everything)))


def _highlights(found: Sequence[Finding]) -> Iterator[Highlight]:
    judged = [f for f in found if counted(f)]
    for methods, label in ((OURS, "of the two models' numbers"), (OTHERS, "of the baselines' numbers")):
        reached, known = agreement(judged, methods)
        if known:
            yield Highlight(
                f"{100 * reached / known:.0f} %",
                f"{label} reach the paper's minus {CLOSE:g} points ({reached} of {known})",
            )
    have = sum(f.ours is not None for f in found if f.noise == f.entry.noise)
    all_numbers = sum(f.noise == f.entry.noise for f in found)
    if all_numbers:
        yield Highlight(f"{have} of {all_numbers}", "numbers of these tables are rebuilt")


def _protocol(preset: Preset) -> tuple[str, ...]:
    """How the numbers came about, in words."""
    values = "; ".join(
        f"{weight} {', '.join(f'{v:g}' for v in tried)}" for weight, tried in preset.values.items()
    )
    return (
        f"The paper's protocol: all combinations of {values}; {preset.max_iter} iterations; as many "
        "components as classes; samples of unit norm; a binary graph of 5 neighbours, built from the "
        "noisy data; k-means with 10 restarts on V; the best setting by the true labels; one seed, "
        f"{preset.seed}, fixed before anything was seen. All three metrics of a method come from one fit, "
        "that of the highest accuracy. NMI is divided by the larger entropy.",
        "NMF, GNMF, WNMF, LS-NMF and RLS-NMF start from uniform random numbers, the other four from "
        "k-means, as their papers say. WNMF is not told which entries were removed: in the paper it "
        "equals NMF on COIL20 with 40 % removed, which it could not with a mask. From the same start it "
        "is NMF, so both columns agree. The honest tables show it with the mask too.",
        "The honest protocol: other seeds than the one that chose, weights chosen without labels, "
        "equally many settings for every method that has weights. `LS-NMF, all` and `RLS-NMF, all` "
        "choose from the paper's whole grids, still without labels; `LS-NMF, spectral` starts from a "
        "spectral clustering.",
    )


def _summary(scope: Scope, found: Sequence[Finding]) -> Section:
    text = list(_protocol(scope.preset))
    if scope.preset != PRESETS["paper"]:
        text.append("This is not the paper's grid: fewer settings or iterations, so numbers may fall short.")
    judged = [f for f in found if counted(f)]
    reached, known = agreement(judged, OURS)
    if known:
        high, _ = agreement(judged, OURS, highest=True)
        text.append(
            "Without AR, whose pictures may be others than the paper's, and without the 60 % removals, "
            f"{reached} of {known} "
            f"numbers of LS-NMF and RLS-NMF are at most {CLOSE:g} points below the paper's, or above "
            f"them; {high} of {known} if each metric may have a setting of its own."
        )
    return Section("What reproduces", tuple(text), tuple(reached_tables(found)))


def _table_section(table: PaperTable, found: Sequence[Finding], honest: Sequence[Honest]) -> Section:
    text = []
    if any(f.noise.kind == "removal" for f in found):
        text.append(
            "Entries drawn with replacement fit the paper's numbers: then 20, 40 and 60 % of draws empty "
            "18, 33 and 45 % of the entries. The tables without replacement remove what they say."
        )
    tickets = {f.method: f.settings for f in found}
    text.append("Settings tried: " + ", ".join(f"{name} {count}" for name, count in tickets.items()) + ".")
    settings = settings_table(table, found)
    items = (
        *paper_tables(table, found),
        *honest_tables(table, honest, tuple(METRICS)),
        *([settings] if settings else []),
    )
    number = table.name.removeprefix("table")
    return Section(f"Table {number}: {table.title}", tuple(text), items)


def _test_section(honest: Sequence[Honest]) -> Section:
    clean = [r for r in honest if r.entry.level == "clean"]
    words = (
        "Wilcoxon's signed-rank test on the mean accuracies, two-sided; p (Holm) is corrected for all "
        "comparisons of a model."
    )
    items = []
    if clean:
        items.append(comparison_table("Clean data", f"{words} One pair for each data set.", all_tests(clean)))
    if len(clean) < len(honest):
        caption = (
            f"{words} Noisy copies of one data set are no independent pairs: these p-values are too small."
        )
        items.append(comparison_table("With the noisy data", caption, all_tests(honest)))
    return Section("Paired tests, honest protocol", (), tuple(items))
