"""Effect of the graph's weight with free and with unit-norm components, at several numbers of iterations.

    LOGNMF_DATA=… OMP_NUM_THREADS=1 python benchmarks/unit_components.py --out FILE
    python benchmarks/unit_components.py --read FILE [--picture PNG --solvers cd]

LS-NMF, alpha = beta = 0.001, from the paper's random start, k = number of classes, 5 neighbours. After
each number of iterations (fewer where coordinate descent has converged to 1e-7): accuracy of k-means on
V, and the roughness ``Tr(VᵀLV)/‖V‖²`` with the columns of U scaled to unit norm. Every row is written
as soon as it is computed; an interrupted run continues where it stopped.
"""

import argparse
import itertools
from pathlib import Path

import numpy as np

import data
from lognmf import knn_graph
from lognmf.clustering import scores
from lognmf.clustering.kmeans import kmeans
from lognmf.core.arrays import like, product, to_numpy
from lognmf.core.data import InMemory
from lognmf.core.loop import iterate
from lognmf.core.solvers import SOLVERS
from lognmf.core.solvers.multiplicative import unit_columns
from lognmf.core.terms import Frobenius
from lognmf.models.log_sparse import regularised
from lognmf.plots.style import ACCENT, DARK, new_figure, tidy
from solver import SETS, Rows, start

GRAPH = (0.01, 0.1, 1.0, 10.0, 100.0, 1000.0)
GAUGES = ("free", "unit")
COLUMNS = ("data", "solver", "gauge", "lam", "seed", "iterations", "accuracy", "roughness")


def roughness(W, V):
    """``Tr(VᵀLV)/‖V‖²`` of every setting, (B,)."""
    degree = W.sum(axis=1)[:, None, None]
    graph = np.sum((degree * V - product(W, V)) * V, axis=(0, 2))
    return graph / np.maximum(np.sum(V**2, axis=(0, 2)), 1e-300)


def study(name, solver, gauge, options, rows):
    """All weights and seeds as one batch, measured after every number of iterations."""
    cases = [(lam, seed) for lam in GRAPH for seed in options.seeds]
    if all(rows.get(name, solver, gauge, *case, options.iterations[-1]) for case in cases):
        return
    X, y = data.load(name)
    X, k, W = np.ascontiguousarray(X), len(np.unique(y)), knn_graph(X, 5)
    first = {seed: start(X, k, seed) for seed in options.seeds}
    if options.device:
        import torch

        X = torch.as_tensor(X, device=options.device)
    weights = {name: like([0.001] * len(cases), X) for name in ("alpha", "beta")}
    lam, seeds = like([lam for lam, _ in cases], X), np.array([seed for _, seed in cases])
    problem = regularised(InMemory(X), Frobenius(), W=W, lam=lam, penalty="log", **weights)
    rule = SOLVERS[solver].of(problem, unit_components=gauge == "unit")
    state = rule.start(*(like(np.concatenate([first[s][F] for s in seeds], axis=1), X) for F in (0, 1)))
    for before, goal in itertools.pairwise((0, *options.iterations)):
        # A converged run of coordinate descent would not change any more; MU makes every iteration.
        tol = 1e-7 if solver == "cd" else 0
        state = iterate(rule, state, max_iter=goal - before, tol=tol, eval_every=10).state
        labels = to_numpy(kmeans(state.V, k, seed=seeds))
        accuracy = scores.accuracy(scores.contingency(y, labels))
        rough = roughness(W, to_numpy(unit_columns(state.U, state.V)[1]))
        for b, case in enumerate(cases):
            rows.add(name, solver, gauge, *case, goal, f"{accuracy[b]:.6g}", f"{rough[b]:.6g}")
    print(name, solver, gauge, "done", flush=True)


def run(options):
    rows = Rows(options.out, COLUMNS, COLUMNS[:6])
    for name, solver, gauge in itertools.product(options.data, options.solvers, options.gauges):
        study(name, solver, gauge, options, rows)


def means(path):
    """Mean accuracy in percent and roughness over the seeds, by data, solver, components, iterations, lam."""
    found = {}
    for row in Rows(path, COLUMNS, COLUMNS[:6]).rows:
        key = (*(row[c] for c in ("data", "solver", "gauge")), int(row["iterations"]), float(row["lam"]))
        found.setdefault(key, []).append((100 * float(row["accuracy"]), float(row["roughness"])))
    return {key: np.mean(rows, axis=0) for key, rows in found.items()}


def read(path):
    found = means(path)
    print("| data, solver, components, iterations | " + " | ".join(f"lam {lam:g}" for lam in GRAPH) + " |")
    print("|---" * (len(GRAPH) + 1) + "|")
    for key in sorted({key[:4] for key in found}, key=lambda key: (SETS.index(key[0]), *key[1:])):
        cells = ["{:.1f} ({:.3f})".format(*found[*key, lam]) for lam in GRAPH]
        print(f"| {', '.join(str(part) for part in key)} | " + " | ".join(cells) + " |")


def spread(path):
    """Mean change of accuracy between two numbers of iterations, over the sets and weights."""
    found = means(path)
    marks = sorted({key[3] for key in found})
    for solver, gauge in sorted({key[1:3] for key in found}):
        keys = [key for key in found if key[1:3] == (solver, gauge)]
        cells = []
        for first, last in itertools.pairwise(marks):
            moved = [abs(found[*k[:3], last, k[4]] - found[k])[0] for k in keys if k[3] == first]
            cells.append(f"{first} to {last}: {np.mean(moved):.1f}")
        print(f"{solver}, {gauge}: points between iterations " + ", ".join(cells))


def draw(path, solver, out):
    """Accuracy and roughness against lam: one line per number of iterations, one panel per data set."""
    found = means(path)
    marks = sorted({key[3] for key in found})
    figure = new_figure(11, 8.5)
    panels = figure.subplots(4, 4, sharex=True)
    for place, name in enumerate(SETS):
        column, row = place % 4, 2 * (place // 4)
        for line, (gauge, mark) in enumerate(itertools.product(GAUGES, marks)):
            values = np.array([found[name, solver, gauge, mark, lam] for lam in GRAPH]).T
            style = {
                "color": {"free": DARK, "unit": ACCENT}[gauge],
                "alpha": 0.25 + 0.75 * marks.index(mark) / (len(marks) - 1),
                "lw": 1 + 0.5 * marks.index(mark),
                "label": f"{gauge}, {mark} iterations",
                "zorder": line,
            }
            panels[row, column].plot(GRAPH, values[0], **style)
            panels[row + 1, column].plot(GRAPH, np.maximum(values[1], 1e-7), **style)
        panels[row, column].set(title=name, xscale="log")
        panels[row + 1, column].set(yscale="log", xscale="log")
        tidy(panels[row, column])
        tidy(panels[row + 1, column])
    for row in range(4):
        panels[row, 0].set_ylabel("roughness" if row % 2 else "accuracy, %")
    for column in range(4):
        panels[3, column].set_xlabel("lam")
    handles, labels = panels[0, 0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=len(marks), frameon=False)
    figure.savefig(out)


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    results = Path(__file__).parent / "results/unit_components.csv"
    parser.add_argument("--out", type=Path, default=results, help="csv file to which rows are added")
    parser.add_argument("--read", type=Path, metavar="FILE", help="print tables of a csv file, fit nothing")
    parser.add_argument(
        "--picture", type=Path, metavar="PNG", help="with --read: draw the rows of one solver"
    )
    parser.add_argument("--data", nargs="+", default=SETS, choices=SETS, help="data sets")
    parser.add_argument("--seeds", type=int, nargs="+", default=range(3), help="seeds of the random start")
    parser.add_argument("--solvers", nargs="+", default=list(SOLVERS), choices=SOLVERS, help="solvers")
    parser.add_argument("--gauges", nargs="+", default=GAUGES, choices=GAUGES, help="norm of the components")
    parser.add_argument("--device", help="torch device; only for the solver mu")
    iterations = "numbers of iterations after which to measure"
    parser.add_argument("--iterations", nargs="+", type=int, default=[20, 80, 500, 2000], help=iterations)
    options = parser.parse_args()
    if options.picture:
        draw(options.read, options.solvers[0], options.picture)
    elif options.read:
        read(options.read)
        spread(options.read)
    else:
        run(options)


if __name__ == "__main__":
    main()
