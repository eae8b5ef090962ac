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
    """``lognmf[device=cuda,solver=cd]`` → ``lognmf cd, GPU``; the processor goes without saying."""
    words = re.findall(r"=(\w+)", name)
    solver = " ".join([name.split("[")[0], *[word for word in words if word not in ("cpu", "cuda")]])
    return f"{solver}, GPU" if "cuda" in words else solver


def data_name(row):
    """What a data set is called on the page."""
    n, p = row["p_dataset_n"], row["p_dataset_p"]
    return (row.get("p_dataset_data") or "").upper() or f"{row['p_dataset_kind']} {n:.0f} × {p:.0f}"


def curves(file, seconds):
    """{objective: {data set: {solver: (seconds, objective)}}}; the common start is left out."""
    found = {}
    rows = pq.read_table(HERE / file).to_pylist()
    for row in sorted(rows, key=lambda row: (short(row["solver_name"]), row["stop_val"])):
        if row["stop_val"] > 0:
            lines = found.setdefault(row["p_obj_model"], {}).setdefault(data_name(row), {})
            point = row[seconds], row["objective_value"]
            lines.setdefault(short(row["solver_name"]), []).append(point)
    for by_data in found.values():
        for lines in by_data.values():
            lines.update({solver: np.array(line).T for solver, line in lines.items()})
    return {objective: found[objective] for objective in OBJECTIVES if objective in found}


def best(lines):
    """The lowest objective of any solver."""
    return min(line[1].min() for line in lines.values())


def shortest(lines, solver):
    """Seconds of the solver's shortest fit that is there, as a cell of a table."""
    if solver not in lines:
        return ""
    time, value = lines[solver]
    there = value <= CLOSE * best(lines)
    return f"{time[there].min():.2g}" if there.any() else "–"


def as_number(cell):
    """Seconds of a cell; infinite where the goal was not reached."""
    return float(cell) if cell[:1].isdigit() else float("inf")


def headline(found):
    """How many times as fast as scikit-learn's coordinate descent ours is, in a sentence."""
    said = []
    for objective, name in (("nmf", "NMF"), ("sparse", "sparse NMF")):
        pairs = [
            [as_number(shortest(lines, solver)) for solver in ("scikit-learn cd", "lognmf cd")]
            for lines in found[objective].values()
        ]
        ratios = [theirs / ours for theirs, ours in pairs]
        said.append(f"{min(ratios):.2g} to {max(ratios):.2g} times as fast for {name}")
    return (
        f'**To within 1 % of the best objective, `solver="cd"` is {" and ".join(said)} as scikit-learn\'s.**'
    )


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


def table(columns):
    """Seconds to within 1 % of the best objective, one row per solver."""
    solvers = sorted({solver for lines in columns.values() for solver in lines})
    rows = [["seconds", *columns], ["---"] * (len(columns) + 1)]
    cells = [[shortest(lines, solver) for lines in columns.values()] for solver in solvers]
    least = [min(column, key=as_number) for column in zip(*cells, strict=True)]
    rows += [
        [solver, *(f"**{cell}**" if cell == best else cell for cell, best in zip(line, least, strict=True))]
        for solver, line in zip(solvers, cells, strict=True)
    ]
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def on_gpu():
    """The table of the run with a GPU, which has one data set: one column per objective, wall time."""
    found = curves("results-gpu.parquet", "time")
    return table({OBJECTIVES[name]: lines for name, by_data in found.items() for lines in by_data.values()})


def put(text, mark, content):
    """``text`` with this content between two marks."""
    before, rest = text.split(f"<!-- {mark} -->\n")
    after = rest.split(f"<!-- end of {mark} -->")[1]
    return f"{before}<!-- {mark} -->\n\n{content}\n\n<!-- end of {mark} -->{after}"


def main():
    """Draw the curves, put the tables into the page."""
    found = curves("results.parquet", "objective_cpu_seconds")
    draw(found, DOCS / "scoreboard.png")
    page = DOCS / "scoreboard.md"
    tables = "\n\n".join(f"## {OBJECTIVES[name]}\n\n{table(by_data)}" for name, by_data in found.items())
    text = put(page.read_text(encoding="utf-8"), "headline", headline(found))
    text = put(text, "tables", tables)
    page.write_text(put(text, "table of the GPU", on_gpu()), encoding="utf-8")


if __name__ == "__main__":
    main()
