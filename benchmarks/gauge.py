"""What the graph's weight does, with free scale and with the unit gauge, as a fit goes on.

    LOGNMF_DATA=… OMP_NUM_THREADS=1 python benchmarks/gauge.py --out FILE
    python benchmarks/gauge.py --read FILE

LS-NMF, alpha = beta = 0.001, from the paper's random start, k = number of classes, 5 neighbours. After
80 and more iterations (fewer where the fast solver has converged to 1e-7): accuracy of k-means on
V, and the roughness ``Tr(VᵀLV)/‖V‖²`` of V at unit columns of U. Every row is written when it is
known; a run that was stopped goes on where it was.
"""

import argparse
from pathlib import Path

import numpy as np

import data
from lognmf import knn_graph
from lognmf.core import scores
from lognmf.core.arrays import product
from lognmf.core.kmeans import kmeans
from lognmf.core.loop import iterate
from lognmf.core.solvers import GAUGES, SOLVERS
from lognmf.core.solvers.gauge import unit_columns
from lognmf.core.terms import Frobenius
from lognmf.models.log_sparse import regularised
from solver import SETS, Rows, start

GRAPH = (0.01, 0.1, 1.0, 10.0, 100.0, 1000.0)
COLUMNS = ("data", "solver", "gauge", "lam", "seed", "iterations", "accuracy", "roughness")


def roughness(W, V):
    """``Tr(VᵀLV)/‖V‖²`` of every setting, (B,)."""
    degree = W.sum(axis=1)[:, None, None]
    graph = np.sum((degree * V - product(W, V)) * V, axis=(0, 2))
    return graph / np.maximum(np.sum(V**2, axis=(0, 2)), 1e-300)


def run(options):
    rows = Rows(options.out, COLUMNS, COLUMNS[:6])
    for name in options.data:
        X, y = data.load(name)
        X, k, W = np.ascontiguousarray(X), len(np.unique(y)), knn_graph(X, 5)
        for solver, gauge, seed in (
            (s, g, seed) for s in options.solvers for g in GAUGES for seed in range(options.seeds)
        ):
            if all(rows.get(name, solver, gauge, lam, seed, options.iterations[-1]) for lam in GRAPH):
                continue
            weights = {name: np.full(len(GRAPH), 0.001) for name in ("alpha", "beta")}
            problem = regularised(Frobenius.of(X), W=W, lam=np.array(GRAPH), penalty="log", **weights)
            rule = SOLVERS[solver](problem, gauge=gauge)
            state, done = rule.start(*start(X, k, seed, len(GRAPH))), 0
            for goal in options.iterations:
                # What has converged would stay as it is; MU is never there and makes every iteration.
                tol = 1e-7 if solver == "fast" else 0
                state = iterate(rule, state, max_iter=goal - done, tol=tol, eval_every=10).state
                done = goal
                labels = kmeans(state.V, k, seed=np.full(len(GRAPH), seed))
                accuracy = scores.accuracy(scores.contingency(y, labels))
                rough = roughness(W, unit_columns(state.U, state.V)[1])
                for b, lam in enumerate(GRAPH):
                    rows.add(name, solver, gauge, lam, seed, goal, accuracy[b], rough[b])
            print(name, solver, gauge, seed, "done", flush=True)


def read(path):
    rows = Rows(path, COLUMNS, COLUMNS[:6]).rows
    found = {}
    for row in rows:
        key = tuple(row[c] for c in ("data", "solver", "gauge", "iterations"))
        found.setdefault(key, {}).setdefault(row["lam"], []).append(row)
    print("| data, solver, gauge, iterations | " + " | ".join(f"lam {lam:g}" for lam in GRAPH) + " |")
    print("|---" * (len(GRAPH) + 1) + "|")
    for key, by_lam in sorted(found.items(), key=lambda item: (*item[0][:3], int(item[0][3]))):
        cells = []
        for lam in GRAPH:
            of = by_lam.get(str(lam), [])
            accuracy, rough = (np.mean([float(row[c]) for row in of]) for c in ("accuracy", "roughness"))
            cells.append(f"{100 * accuracy:.1f} ({rough:.3f})")
        print(f"| {', '.join(key)} | " + " | ".join(cells) + " |")


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "results/gauge.csv")
    parser.add_argument("--read", type=Path, metavar="FILE")
    parser.add_argument("--data", nargs="+", default=SETS, choices=SETS)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--solvers", nargs="+", default=list(SOLVERS), choices=SOLVERS)
    parser.add_argument("--iterations", nargs="+", type=int, default=[80, 500, 2000])
    options = parser.parse_args()
    if options.read:
        read(options.read)
    else:
        run(options)


if __name__ == "__main__":
    main()
