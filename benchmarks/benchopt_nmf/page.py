"""Picture and tables of docs/scoreboard.md from the committed rows (``make scoreboard``)."""

import re
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pyarrow.parquet as pq

HERE = Path(__file__).parent
DOCS = HERE.parents[1] / "docs"
OBJECTIVES = {"nmf": "NMF", "graph": "Graph-regularised NMF", "sparse": "Sparse NMF"}
CLOSE = 1.01  # "there" is within 1 % of the best objective that any solver reached


def short(name):
    """``lognmf[device=cpu,solver=cd]`` → ``lognmf cd``."""
    words = re.findall(r"=(\w+)", name)
    return " ".join([name.split("[")[0], *[word for word in words if word != "cpu"]])


def data_name(row):
    """What a data set is called on the page."""
    n, p = row["p_dataset_n"], row["p_dataset_p"]
    return row["p_dataset_data"] or f"{row['p_dataset_kind']} {n:.0f} × {p:.0f}"


def curves():
    """{objective: {data set: {solver: (CPU seconds, objective)}}}; the common start is left out."""
    found = {}
    rows = pq.read_table(HERE / "results.parquet").to_pylist()
    for row in sorted(rows, key=lambda row: (short(row["solver_name"]), row["stop_val"])):
        if row["stop_val"] > 0:
            lines = found.setdefault(row["p_obj_model"], {}).setdefault(data_name(row), {})
            point = row["objective_cpu_seconds"], row["objective_value"]
            lines.setdefault(short(row["solver_name"]), []).append(point)
    for by_data in found.values():
        for lines in by_data.values():
            lines.update({solver: np.array(line).T for solver, line in lines.items()})
    return found


def best(lines):
    """The lowest objective of any solver."""
    return min(line[1].min() for line in lines.values())


def seconds(line, goal):
    """Of the shortest fit that reaches the goal; None if none does."""
    there = line[1] <= goal
    return float(line[0][there].min()) if there.any() else None


def draw(found, file):
    """One panel per objective and data set: objective above the best, against seconds."""
    names = sorted({solver for by_data in found.values() for lines in by_data.values() for solver in lines})
    ours, theirs = {"ls": "-", "lw": 2}, {"ls": "--", "lw": 1.2}
    style = {
        name: {"color": f"C{i}", **(ours if "lognmf" in name else theirs)} for i, name in enumerate(names)
    }
    columns = list(found["nmf"])
    size = 2.9 * len(columns), 2.5 * len(found) + 0.5
    figure, axes = plt.subplots(len(found), len(columns), figsize=size, sharex="col", layout="constrained")
    for row, (objective, by_data) in zip(axes, found.items(), strict=True):
        for ax, data in zip(row, columns, strict=True):
            low = best(by_data[data])
            for name, (time, value) in by_data[data].items():
                ax.plot(time, np.maximum(value / low - 1, 1e-5), label=name, **style[name])
            ax.axhline(CLOSE - 1, color="grey", lw=0.6)
            ax.set(xscale="log", yscale="log", title=f"{OBJECTIVES[objective]}: {data}")
            ax.title.set_fontsize(8)
            ax.tick_params(labelsize=7)
        row[0].set_ylabel("objective / best − 1", fontsize=8)
    for ax in axes[-1]:
        ax.set_xlabel("CPU seconds", fontsize=8)
    shown = {line.get_label(): line for ax in axes.flat for line in ax.get_lines()}
    figure.legend(
        [shown[name] for name in names], names, loc="outside upper center", ncols=6, fontsize=8, frameon=False
    )
    figure.savefig(file, dpi=90)


def table(by_data):
    """Seconds to within 1 % of the best objective, one row per solver."""
    solvers = sorted({solver for lines in by_data.values() for solver in lines})
    rows = [["solver", *by_data], ["---"] * (len(by_data) + 1)]
    for solver in solvers:
        cells = [seconds(lines[solver], CLOSE * best(lines)) for lines in by_data.values()]
        rows.append([solver, *("–" if cell is None else f"{cell:.2g}" for cell in cells)])
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def longest_fits(objective):
    """The last point of every curve of the run with a GPU, best first."""
    rows = pq.read_table(HERE / "results-gpu.parquet").to_pylist()
    last = {}
    for row in sorted(rows, key=lambda row: row["stop_val"]):
        if row["p_obj_model"] == objective and row["stop_val"] > 0:
            last[short(row["solver_name"])] = row
    lines = ["| solver | iterations | seconds | objective |", "| --- | --- | --- | --- |"]
    for solver, row in sorted(last.items(), key=lambda one: one[1]["objective_value"]):
        place = solver.replace(" cuda", "") + (", GPU" if "cuda" in solver else ", 16 cores")
        lines.append(
            f"| {place} | {row['stop_val']:.0f} | {row['time']:.2f} | {row['objective_value']:.4f} |"
        )
    return "\n".join(lines)


def put(text, mark, content):
    """``text`` with this content between two marks."""
    before, rest = text.split(f"<!-- {mark} -->\n")
    after = rest.split(f"<!-- end of {mark} -->")[1]
    return f"{before}<!-- {mark} -->\n\n{content}\n\n<!-- end of {mark} -->{after}"


def main():
    """Draw the curves, put the tables into the page."""
    found = {objective: by_data for objective in OBJECTIVES if (by_data := curves().get(objective))}
    draw(found, DOCS / "scoreboard.png")
    page = DOCS / "scoreboard.md"
    tables = "\n\n".join(f"## {OBJECTIVES[name]}\n\n{table(by_data)}" for name, by_data in found.items())
    text = put(page.read_text(encoding="utf-8"), "tables", tables)
    page.write_text(put(text, "longest fits", longest_fits("sparse")), encoding="utf-8")


if __name__ == "__main__":
    main()
