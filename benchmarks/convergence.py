"""Figure of docs/solvers.md: objective relative to the best one against time, for both solvers.

    LOGNMF_DATA=… OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 python benchmarks/convergence.py docs/solvers.png

LS-NMF and RLS-NMF from the paper's random start, one thread, CPU seconds.
"""

import argparse
import time
from pathlib import Path

import numpy as np

import data
from lognmf import knn_graph
from lognmf.core.solvers import CoordinateDescent, Multiplicative
from lognmf.plots.style import ACCENT, DARK, new_figure, tidy
from solver import compile_all, problem, start

PANELS = (
    ("Jaffe", (0.001, 0.001, 1.0, None), "LS-NMF, Jaffe, λ = 1"),
    ("Semeion", (0.1, 0.1, 1.0, None), "LS-NMF, Semeion, α = β = 0.1"),
    ("Yale", (0.001, 0.001, 1.0, 1.0), "RLS-NMF, Yale, γ = 1"),
)


def curve(rule, U, V, steps):
    """CPU seconds and objective; the time of the evaluations is not counted."""
    spent, began = 0.0, time.process_time()
    state = rule.start(U, V)
    found = []
    for step in range(steps + 1):
        if step:
            began = time.process_time()
            state = rule.step(state)
        spent += time.process_time() - began
        if step % max(1, 10 ** int(np.log10(max(step, 1))) // 10) == 0:
            found.append((spent, float(rule.value(state)[0])))
    return np.array(found).T


def main():
    form = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=form)
    parser.add_argument("out", type=Path, help="picture to write, for example docs/solvers.png")
    options = parser.parse_args()
    figure = new_figure(10, 3.4)
    for axes, (name, setting, title) in zip(figure.subplots(1, len(PANELS)), PANELS, strict=True):
        X, y = data.load(name)
        X, k = np.ascontiguousarray(X), len(np.unique(y))
        terms = problem(X, knn_graph(X, 5), [setting])
        cd, mu = CoordinateDescent.of(terms), Multiplicative(terms)
        U, V = start(X, k, 0)
        compile_all(cd, U, V)
        scaled = cd.start(U, V)
        lines = {
            "mu, random start": (curve(mu, U, V, 2000), {"color": DARK}),
            "mu, start at its best scale": (curve(mu, scaled.U, scaled.V, 2000), {"color": "0.6"}),
            "cd": (curve(cd, U, V, 400), {"color": ACCENT, "lw": 2.2}),
        }
        best = min(objective.min() for (_, objective), _ in lines.values())
        for label, ((seconds, objective), style) in lines.items():
            axes.plot(seconds, objective / best - 1, label=label, **style)
        axes.set_ylim(1e-5, None)
        axes.set(xscale="log", yscale="log", title=title, xlabel="seconds (one thread)")
        tidy(axes)
    figure.axes[0].set_ylabel("objective / the best one found − 1")
    figure.axes[0].legend(frameon=False, fontsize=8)
    figure.savefig(options.out)


if __name__ == "__main__":
    main()
