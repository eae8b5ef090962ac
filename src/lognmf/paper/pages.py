"""The page of a reproduction: its tables next to the paper's, the label-free results, and the figures."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from lognmf.paper.analyse import (
    CLOSE,
    FEWEST_SETS,
    METRICS,
    Finding,
    LabelFree,
    Paired,
    all_tests,
    counted,
    reached,
    testable,
)
from lognmf.paper.methods import CONTESTANTS, METHODS, OTHERS, OURS
from lognmf.paper.spec import PRESETS, Preset
from lognmf.paper.tables import PaperFigure, PaperTable, Study
from lognmf.report import Cell, Figure, Highlight, Page, Section, Table, spelled_out


def page(
    study: Study,
    tables: Mapping[str, tuple[PaperTable, Sequence[Finding], Sequence[LabelFree]]],
    figures: Sequence[tuple[PaperFigure, Mapping[str, Any]]],
    facts: Mapping[str, str],
) -> Page:
    """The page from the results of each table, the drawings of each figure, and facts about the run."""
    every = [f for _, results, _ in tables.values() for f in results]
    label_free = [r for _, _, results in tables.values() for r in results]
    sections = [_summary(study, every)]
    sections += [_table_section(*parts) for parts in tables.values()]
    if label_free:
        sections.append(_test_section(label_free))
    if far := tuple(_far_tables(every)):
        sections.append(Section("Far from the paper", (), far))
    drawn = tuple(
        Figure(f"{figure.title}: {name}" if name else figure.title, figure.caption, drawing)
        for figure, drawings in figures
        for name, drawing in drawings.items()
    )
    if drawn:
        sections.append(Section("Figures", (), drawn))
    whole = study.preset == PRESETS["paper"]
    title = "The paper, rebuilt" if whole else "The paper's experiments in short"
    how = "run again" if whole else "run with fewer settings and iterations than the paper's"
    subtitle = (
        f"The experiments of the paper on LS-NMF and RLS-NMF, {how}. {spelled_out(['LS-NMF'])[0].reference}"
    )
    named = spelled_out([*METHODS, *(r.name for r in label_free)])
    return Page(title, subtitle, tuple(sections), facts, tuple(_highlights(every)), named)


# Text --------------------------------------------------------------------------------------


def _highlights(results: Sequence[Finding]) -> Iterator[Highlight]:
    """The shares of numbers that are reached, and how many are rebuilt."""
    judged = [f for f in results if counted(f)]
    for methods, label in ((OURS, "of the two models' numbers"), (OTHERS, "of the baselines' numbers")):
        good, total = reached(judged, methods)
        if total:
            share = f"{100 * good / total:.0f} %"
            yield Highlight(share, f"{label} reach the paper's minus {CLOSE:g} points ({good} of {total})")
    own_draw = [f for f in results if f.noise == f.entry.noise]
    if own_draw:
        have = sum(f.ours is not None for f in own_draw)
        yield Highlight(f"{have} of {len(own_draw)}", "numbers of these tables are rebuilt")


def _protocol(preset: Preset) -> tuple[str, ...]:
    """How the numbers were computed, in words."""
    values = "; ".join(
        f"{weight} {', '.join(f'{v:g}' for v in tried)}" for weight, tried in preset.values.items()
    )
    protocol = (
        "The paper's protocol"
        if preset == PRESETS["paper"]
        else "A short form of the paper's protocol, whose numbers may fall short of the paper's"
    )
    return (
        f"{protocol}: all combinations of {values}; {preset.max_iter} iterations; as many "
        "components as classes; samples of unit norm; a binary graph of 5 neighbours, built from the "
        "noisy data; k-means with 10 restarts on V; the best setting by the true labels; one seed, "
        f"{preset.seed}, fixed before anything was seen. All three metrics of a method come from one fit, "
        "that of the highest accuracy. NMI is divided by the larger entropy.",
        "NMF, GNMF, WNMF, LS-NMF and RLS-NMF start from uniform random numbers, the other four from "
        "k-means, as their papers say. WNMF is not given the removed entries: in the paper it "
        "equals NMF on COIL20 with 40 % removed, which it could not with a mask. Here it makes the same "
        "steps as NMF from the same random numbers, so both columns agree. The label-free tables also "
        "show it with the mask.",
        "The label-free protocol: other seeds than the one that chose, weights chosen without labels, "
        "the same number of settings for every method that has weights. `LS-NMF, all` and `RLS-NMF, all` "
        "choose from all these combinations, still without labels; `LS-NMF, spectral` starts from a "
        "spectral clustering.",
    )


def _summary(study: Study, results: Sequence[Finding]) -> Section:
    """The protocols, and how many numbers are reached."""
    text = list(_protocol(study.preset))
    judged = [f for f in results if counted(f)]
    good, total = reached(judged, OURS)
    if total:
        high, _ = reached(judged, OURS, highest=True)
        text.append(
            "Without AR, whose pictures may differ from the paper's, and without the 60 % removals, "
            f"{good} of {total} "
            f"numbers of LS-NMF and RLS-NMF are at most {CLOSE:g} points below the paper's, or above "
            f"them; {high} of {total} if each metric may have a setting of its own."
        )
    return Section("What reproduces", tuple(text), tuple(_reached_tables(results)))


def _table_section(table: PaperTable, results: Sequence[Finding], label_free: Sequence[LabelFree]) -> Section:
    """One table of the paper in both protocols, with the settings behind it."""
    text = []
    here = len({f.entry for f in results})
    if here < len(table.entries):
        text.append(f"{here} of the {len(table.entries)} rows of the paper's table were computed.")
    if any(f.noise.kind == "removal" for f in results):
        text.append(
            "Entries drawn with replacement fit the paper's numbers: then 20, 40 and 60 % of draws empty "
            "18, 33 and 45 % of the entries. The tables without replacement remove the full share."
        )
    tried = {f.method: f.settings for f in results}
    text.append("Settings tried: " + ", ".join(f"{name} {count}" for name, count in tried.items()) + ".")
    settings = settings_table(table, results)
    items = (
        *paper_tables(table, results),
        *label_free_tables(table, label_free, tuple(METRICS)),
        *([settings] if settings else []),
    )
    number = table.name.removeprefix("table")
    return Section(f"Table {number}: {table.title}", tuple(text), items)


def _test_section(results: Sequence[LabelFree]) -> Section:
    """Paired tests on the clean data, and with the noisy data."""
    clean = [r for r in results if r.entry.level == "clean"]
    if not testable(results):
        sets = len({r.entry.dataset for r in results})
        few = f"{sets} data set{'s' * (sets > 1)}"
        text = (
            f"With {few} nothing is tested: even if one method were better on all of them, Wilcoxon's "
            f"signed-rank test could not fall below 0.05. It takes {FEWEST_SETS} data sets."
        )
        return Section("Paired tests, label-free protocol", (text,))
    words = (
        "Wilcoxon's signed-rank test on the mean accuracies, two-sided; p (Holm) is corrected for all "
        "comparisons of a model."
    )
    items = []
    if testable(clean):
        items.append(_test_table("Clean data", f"{words} One pair for each data set.", all_tests(clean)))
    if len(clean) < len(results):
        caption = (
            f"{words} Noisy copies of one data set are not independent pairs: these p-values are too small."
        )
        items.append(_test_table("With the noisy data", caption, all_tests(results)))
    return Section("Paired tests, label-free protocol", (), tuple(items))


# Tables ------------------------------------------------------------------------------------


def paper_tables(table: PaperTable, results: Sequence[Finding]) -> list[Table]:
    """Ours next to the paper's for every metric, then the removals without replacement."""
    captions = (
        "Best setting by the labels, one seed, in percent; below it the paper's, and the difference.",
        "The same with entries drawn without replacement, so that the full share is removed.",
    )
    tables = []
    for other_draw, caption in enumerate(captions):
        for metric, title in METRICS.items():
            part = [f for f in results if f.metric == metric and (f.noise != f.entry.noise) == other_draw]
            rows = tuple(
                (entry.label, tuple(Cell(f.ours, paper=f.paper) for f in part if f.entry == entry))
                for entry in dict.fromkeys(f.entry for f in part)
            )
            if rows:
                title += ", without replacement" * other_draw
                tables.append(Table(title, caption, METHODS, rows, table.corner))
    return tables


def label_free_tables(
    table: PaperTable, results: Sequence[LabelFree], metrics: Sequence[str] = ("accuracy",)
) -> list[Table]:
    """Means and standard deviations over seeds, with weights chosen without labels."""
    if not results:
        return []
    names = [name for name in CONTESTANTS if any(r.name == name for r in results)]
    at = {(r.entry, r.name): r.scores for r in results}
    caption = (
        f"Mean ± standard deviation over {results[0].seeds} seeds, in percent. λ was chosen without labels, "
        "by the neighbour graph, with another seed and from the same number of values for every method that "
        "has it. The other weights are fixed; LS-NMF and RLS-NMF have free components and random starts."
    )
    tables = []
    for metric in metrics:
        rows = []
        for entry in dict.fromkeys(r.entry for r in results):
            scores = [at[entry, name][metric] if (entry, name) in at else None for name in names]
            rows.append((entry.label, tuple(Cell(*(s or (None,))) for s in scores)))
        tables.append(
            Table(f"{METRICS[metric]}, label-free", caption, tuple(names), tuple(rows), table.corner)
        )
    return tables


def settings_table(table: PaperTable, results: Sequence[Finding]) -> Table | None:
    """The weights of the best settings, as ``α β γ λ`` where a method has them."""
    part = [f for f in results if f.metric == "accuracy" and f.setting]
    methods = [name for name in METHODS if any(f.method == name for f in part)]
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
    """The weights of a setting in the order of their names."""
    return ", ".join(f"{value:g}" for _, value in sorted(setting.items()))


def _test_table(title: str, caption: str, tests: Sequence[Paired]) -> Table:
    """Paired tests as a table."""
    rows = []
    for test in tests:
        numbers = (test.pairs, test.wins, test.losses, test.difference, test.p, test.p_holm)
        rows.append((f"{test.ours} against {test.other}", tuple(map(Cell, numbers))))
    columns = ("pairs", "wins", "losses", "mean difference", "p", "p (Holm)")
    form, better = (".0f", ".0f", ".0f", "+.1f", ".4f", ".4f"), (0, 1, -1, 1, -1, -1)
    return Table(title, caption, columns, tuple(rows), "comparison", form=form, better=better, best="")


def _reached_tables(results: Sequence[Finding]) -> Iterator[Table]:
    """For every table and method the share of its numbers that reach the paper's."""
    rows = []
    for name in dict.fromkeys(f.table for f in results):
        shares = [reached((f for f in results if f.table == name), [method]) for method in METHODS]
        cells = tuple(Cell(100 * good / total if total else None) for good, total in shares)
        rows.append((f"Table {name.removeprefix('table')}", cells))
    if rows:
        caption = (
            f"Percent of the numbers that are at most {CLOSE:g} points below the paper's, or above them."
        )
        yield Table("Numbers that are reached", caption, METHODS, tuple(rows), "table", form=".0f", best="")


def _far_tables(results: Sequence[Finding]) -> Iterator[Table]:
    """The numbers of the two models that are far from the paper's."""
    far = [f for f in results if f.method in OURS and f.difference is not None and abs(f.difference) > CLOSE]
    if far:
        rows = tuple(
            (
                f"{f.method}, {f.entry.dataset}, {f.entry.level}, {METRICS[f.metric].lower()}",
                (Cell(f.ours, paper=f.paper), Cell(f.difference), Cell(_setting(f.setting))),
            )
            for f in sorted(far, key=lambda f: f.difference or 0.0)
        )
        caption = f"Numbers of LS-NMF and RLS-NMF that differ from the paper's by more than {CLOSE:g} points."
        columns = ("ours", "difference", "setting")
        look: dict[str, Any] = {"form": (".1f", "+.1f", ".1f"), "better": (1, 1, 0), "best": ""}
        yield Table("Differences", caption, columns, rows, "number", **look)
