"""docs/reproduction.md and its tables.md and differences.md from what was measured.

    python benchmarks/reproduction_page.py --from results/paper    # copy a reproduction's files, then write
    python benchmarks/reproduction_page.py                         # write the pages again

No number is typed in: tables come from docs/reproduction/tables, the reasons from
benchmarks/results/differences.csv by the rules of benchmarks/differences.py, words from
docs/reproduction/page.toml.
"""

import argparse
import csv
import json
import shutil
import tomllib
from collections import Counter, defaultdict
from pathlib import Path
from statistics import fmean

from difference_groups import CLOSE, METRICS, REPRODUCTION, ROOT, groups
from difference_reasons import attempts, known, named, numbers, reason, services, usual_changes, verdict
from lognmf.paper.methods import METHODS, OURS
from lognmf.paper.tables import TABLES

MADE = "<!-- Written by benchmarks/reproduction_page.py; its words are in docs/reproduction/page.toml. -->"
TITLES = {"accuracy": "Accuracy", "nmi": "NMI", "purity": "Purity"}
WITHHELD = ("fig-data", "fig-removed")
"""Figures that show faces of AR and Jaffe, which may not be passed on."""


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--from", dest="source", type=Path, help="result folder of lognmf reproduce")
    options = parser.parse_args()
    if options.source is not None:
        take(options.source)
    words = tomllib.loads((REPRODUCTION / "page.toml").read_text(encoding="utf-8"))
    text = {name: " ".join(part.split()) for name, part in words["text"].items()}
    kinds, listed, served = reasons(words["changes"])
    pages = {
        ROOT / "docs" / "reproduction.md": findings(words, text, kinds),
        REPRODUCTION / "tables.md": all_tables(text),
        REPRODUCTION / "differences.md": differences(words, text, kinds, listed, served),
    }
    for path, paragraphs in pages.items():
        path.write_text("\n\n".join(map(unbroken, paragraphs)) + "\n", encoding="utf-8")


def unbroken(paragraph):
    """A table whose pairs of numbers stay in one line."""
    if not paragraph.startswith("|"):
        return paragraph
    return paragraph.replace(" / ", "\u00a0/\u00a0").replace(" ± ", "\u00a0±\u00a0")


def take(source):
    """Copy what is kept with the code: rows, tables, figures, how it came about."""
    for name in ("rows.parquet", "run.json"):
        shutil.copyfile(source / name, REPRODUCTION / name)
    for folder, pattern in (("tables", "*.csv"), ("figures", "*.png")):
        (REPRODUCTION / folder).mkdir(exist_ok=True)
        for path in sorted((source / folder).glob(pattern)):
            if path.stem not in WITHHELD:
                shutil.copyfile(path, REPRODUCTION / folder / path.name)


# What was measured ---------------------------------------------------------------------------


def read(name):
    with (REPRODUCTION / "tables" / name).open(encoding="utf-8") as file:
        return list(csv.DictReader(file))


def table(head, rows):
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def compared(name, metric):
    """Ours / the paper's; a mark where they are more than 3 points apart."""
    rows = defaultdict(dict)
    for row in read(f"{name}.csv"):
        if row["metric"] == metric and row["paper"]:
            difference = float(row["difference"])
            mark = "" if abs(difference) <= CLOSE else " ▲" if difference > 0 else " ▼"
            text = f"{float(row['ours']):.1f} / {float(row['paper']):.1f}{mark}"
            rows[label(row)][row["method"]] = text
    return grid(TITLES[metric], rows, list(METHODS))


def truly_removed(name):
    """Accuracies without replacement; None for tables without removals."""
    rows = defaultdict(dict)
    for row in read(f"{name}.csv"):
        if row["metric"] == "accuracy" and not row["paper"]:
            rows[label(row)][row["method"]] = f"{float(row['ours']):.1f}"
    return grid("Accuracy, without replacement", rows, list(METHODS)) if rows else None


CONTESTANTS = ("NMF", "GNMF", "LS-NMF", "RLS-NMF", "k-means", "spectral clustering", "LS-NMF, spectral")
"""Columns of the table on the first page."""


def label_free(name, methods=None):
    """Mean ± standard deviation of the accuracy; the highest mean of a row in bold."""
    rows = [row for row in read(f"{name}-honest.csv") if row["metric"] == "accuracy"]
    methods = methods or list(dict.fromkeys(row["method"] for row in rows))
    rows = [row for row in rows if row["method"] in methods]
    highest = defaultdict(float)
    for row in rows:
        highest[label(row)] = max(highest[label(row)], float(row["mean"]))
    cells = defaultdict(dict)
    for row in rows:
        text = f"{float(row['mean']):.1f} ± {float(row['std']):.1f}"
        cells[label(row)][row["method"]] = (
            f"**{text}**" if float(row["mean"]) == highest[label(row)] else text
        )
    return grid("Accuracy, label-free", cells, methods)


def label(row):
    return row["dataset"] if row["level"] == "clean" else row["level"].removeprefix("gaussian ")


def grid(corner, rows, columns):
    body = [[name, *(cells.get(column, "–") for column in columns)] for name, cells in rows.items()]
    return table([corner, *columns], body)


def tests(data):
    """Paired tests."""
    rows = [
        [
            f"{row['ours']} against {row['other']}",
            row["wins"],
            row["losses"],
            f"{float(row['difference']):+.1f}",
            f"{float(row['p']):.2g}",
            f"{float(row['p_holm']):.2g}",
        ]
        for row in read("tests.csv")
        if row["data"] == data
    ]
    return table(["accuracy", "wins", "losses", "mean difference", "p", "p (Holm)"], rows)


def counts():
    """(reached, all, within 3 points either way) of numbers of LS-NMF and RLS-NMF, and of the others."""
    found = {True: [0, 0, 0], False: [0, 0, 0]}
    for name in TABLES:
        for row in read(f"{name}.csv"):
            if row["paper"] and row["dataset"] != "AR" and row["level"] != "removed 60%":
                difference = float(row["difference"])
                for place, true in enumerate((difference >= -CLOSE, True, abs(difference) <= CLOSE)):
                    found[row["method"] in OURS][place] += true
    return found


def label_free_winners():
    """How often each contestant has the highest label-free mean accuracy, and ranks of a few."""
    first = Counter()
    for name in TABLES:
        best = {}
        for row in read(f"{name}-honest.csv"):
            if row["metric"] == "accuracy":
                place = (row["dataset"], row["level"])
                best[place] = max(best.get(place, (-1.0, "")), (float(row["mean"]), row["method"]))
        first.update(method for _, method in best.values())
    return first


# Reasons -------------------------------------------------------------------------------------


def reasons(words):
    """Differences table by table, how many have which kind of reason, and what serves many rows."""
    lines, all_groups = known(), groups()
    served = services(all_groups, lines)
    usual = usual_changes(served)
    kinds, listed = defaultdict(Counter), defaultdict(list)
    for group in all_groups:
        tried = attempts(group, lines)
        kind, attempt = verdict(group, tried, usual.get(group.method))
        kinds[group.method]["open" if attempt is None else kind] += 1
        row = {"dataset": group.dataset, "level": group.level}
        ours, paper = (dict(zip(METRICS, values, strict=True)) for values in (group.ours, group.paper))
        why = reason(group, tried, words, usual.get(group.method))
        listed[group.table].append([label(row), group.method, numbers(ours), numbers(paper), why])
    return kinds, listed, served


# The pages -----------------------------------------------------------------------------------


def findings(words, text, kinds):
    """The first page: what was found, in two screens."""
    yield text["title"]
    yield MADE
    yield "\n".join(f"- {line}" for line in in_short(text))
    yield "## With labels and without"
    yield text["story"]
    yield label_free("table1", CONTESTANTS)
    yield text["story, tests"]
    first = label_free_winners()
    yield text["ranking"].format(rows=sum(first.values()))
    rows = [[name, f"{mean:.1f}", str(first[name] or "–")] for mean, name in label_free_means()]
    yield table(["method", "mean accuracy", "highest in"], rows)
    yield "## What differs, and why"
    yield text["differences"].format(**numbers_of(kinds))
    yield "\n".join(
        f"- **{note['about']}.** {' '.join(note['says'].split())}" for note in words.get("notes", ())
    )
    yield "## How it was made"
    yield f"```\n{words['commands'].strip()}\n```"
    yield text["how"].format(**words["run"], **versions())
    yield text["kept"]


def differences(words, text, kinds, listed, served):
    """The page of the reasons, row by row."""
    yield "# Why numbers differ from the paper's"
    yield MADE
    yield text["why"]
    yield kinds_table(kinds)
    yield text["served"]
    yield served_table(served, words["changes"])
    yield text["one by one"]
    for name, rows in listed.items():
        yield f"## Table {name.removeprefix('table')}"
        yield table(["row", "method", "ours", "paper", "within 3 points with"], rows)


def numbers_of(kinds):
    """How many pairs of row and method differ, by kind of reason."""
    by_kind = sum(kinds.values(), Counter())
    counted = {kind: by_kind[kind] for kind in ("seed", "change", "two", "lucky", "none", "open")}
    return {"all": sum(by_kind.values()), **counted}


def versions():
    about = json.loads((REPRODUCTION / "run.json").read_text(encoding="utf-8"))
    on_gpu = next(made for made in about["made"] if "torch" in made)
    names = ("python", "numpy", "scipy", "scikit-learn", "torch")
    return {
        "versions": ", ".join(f"{name} {on_gpu[name]}" for name in names),
        "failed": len(about["failures"]),
        "seed": about["seed"],
        "honest_seeds": ", ".join(map(str, about["honest_seeds"])),
    }


def in_short(text):
    found = counts()
    for ours, name in ((True, "LS-NMF and RLS-NMF"), (False, "the seven other methods")):
        reached, count, within = found[ours]
        share = f"{100 * reached / count:.0f}"
        yield text["reached"].format(reached=reached, count=count, share=share, within=within, name=name)
    ours, paper = accuracies("ours"), accuracies("paper")
    yield text["led"].format(ours=led(ours), paper=led(paper), rows=len(ours))
    yield text["robust"].format(margins=margins(ours, paper))
    yield text["ar"]
    yield text["honest"]


def accuracies(column):
    """Accuracies of the paper's protocol: {row: {method: percent}}."""
    rows = defaultdict(dict)
    for name in TABLES:
        for row in read(f"{name}.csv"):
            if row["metric"] == "accuracy" and row["paper"]:
                rows[name, row["dataset"], row["level"]][row["method"]] = float(row[column])
    return rows


def led(rows):
    """In how many rows one of the two models has the highest accuracy."""
    return sum(max(row.values()) == max(row[m] for m in OURS) for row in rows.values())


def margins(ours, paper):
    """RLS-NMF minus LS-NMF, on average over a kind of rows."""
    kinds = {"clean": ("table1",), "removals": ("table2", "table3", "table4")}
    kinds["Gaussian noise"] = ("table5", "table6", "table7")
    parts = []
    for kind, names in kinds.items():
        mean = [
            fmean(row["RLS-NMF"] - row["LS-NMF"] for key, row in some.items() if key[0] in names)
            for some in (ours, paper)
        ]
        parts.append(f"{kind} {mean[0]:+.1f} (paper {mean[1]:+.1f})")
    return ", ".join(parts)


def label_free_means():
    """Mean accuracy of every contestant that ran on all rows, highest first."""
    means = defaultdict(list)
    for name in TABLES:
        for row in read(f"{name}-honest.csv"):
            if row["metric"] == "accuracy":
                means[row["method"]].append(float(row["mean"]))
    most = max(map(len, means.values()))
    return sorted(((fmean(v), name) for name, v in means.items() if len(v) == most), reverse=True)


def all_tables(text):
    """The page of all tables, tests and figures."""
    yield "# All tables of the paper, ours beside them"
    yield MADE
    yield text["tables"]
    for name, one in TABLES.items():
        yield f"## Table {name.removeprefix('table')}: {one.title}"
        yield from (compared(name, metric) for metric in METRICS)
        if (removed := truly_removed(name)) is not None:
            yield text["removed"]
            yield removed
        yield label_free(name)
    yield "## Paired tests"
    yield text["tests"]
    yield tests("clean")
    yield "## Figures"
    figures = sorted((REPRODUCTION / "figures").glob("*.png"))
    yield text["figures"]
    for path in figures:
        yield f"`{path.stem}`:\n\n![{path.stem}](figures/{path.name})"


def kinds_table(kinds):
    heads = {
        "seed": "the seed",
        "change": "one change, in the mean",
        "lucky": "one change, single seeds",
        "two": "two changes, in the mean",
        "none": "not explained",
        "open": "not looked into",
    }
    shown = [kind for kind in heads if any(count[kind] for count in kinds.values())]
    rows = [[method, *(str(kinds[method][kind]) for kind in shown)] for method in METHODS if method in kinds]
    return table(["rows of", *(heads[kind] for kind in shown)], rows)


def served_table(served, words):
    rows = [
        [method, named(attempt, words), f"{near} of {count}", f"{same} of {count}"]
        for method in METHODS
        for attempt, near, same, count in served.get(method, ())[:2]
    ]
    return table(["method", "change", "rows within 3 points", "the same with other seeds only"], rows)


if __name__ == "__main__":
    main()
