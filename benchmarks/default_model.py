"""Study of the defaults of `LogSparseNMF(k)`: solver, components, start, weights, iterations, read-out.

    LOGNMF_DATA=… python benchmarks/default_model.py --out FILE [--device cuda] [--solver cd]
    python benchmarks/default_model.py --read FILE …
    LOGNMF_DATA=… OMP_NUM_THREADS=1 python benchmarks/default_model.py --check [--noise]

Every candidate is one fixed setting for all eight data sets; labels are used only to compute the accuracy,
the mean over the seeds, of k-means on V, of k-means on V's rows scaled to unit norm, and of the largest entry
of each row. The error is ‖X − V Uᵀ‖ divided by that of the previous default. An interrupted run continues
where it stopped. --check fits the estimators with their present and their previous defaults and prints
accuracy, CPU seconds and error; with --noise on the data of the paper's tables with entries removed or
Gaussian noise added.
"""

import argparse
import itertools
import time
from pathlib import Path

import numpy as np

import data
from lognmf import MODELS, knn_graph
from lognmf.clustering import cluster, scores
from lognmf.clustering.kmeans import kmeans
from lognmf.core.arrays import like, namespace, to_numpy
from lognmf.core.data import InMemory
from lognmf.core.solvers import SOLVERS
from lognmf.core.starts import STARTS
from lognmf.core.terms import ROW_NORMS, Frobenius, Robust
from lognmf.metrics import clustering_accuracy
from lognmf.models.log_sparse import regularised
from lognmf.models.starts import spectral
from lognmf.paper.methods import PINNED
from lognmf.paper.samples import prepare
from lognmf.paper.spec import CLEAN
from lognmf.paper.tables import DATASETS, TABLES
from solver import SETS, Rows

GRAPH = (0.03, 0.1, 0.3, 1.0, 3.0, 10.0)
SPARSITY = ((0.001, 0.001), (0.01, 0.001), (0.1, 0.001), (0.01, 0.01))
"""alpha and beta."""

MARKS = (0, 10, 20, 30, 50, 100, 500)
READ_OUTS = ("k-means", "rows", "largest")
GAUGES = ("free", "unit")
KEY = ("data", "model", "solver", "gauge", "init", "alpha", "beta", "lam", "seed", "iterations")
COLUMNS = (*KEY, "error", *READ_OUTS)
BEFORE = {
    name: (
        name,
        old["solver"],
        "unit" if old["unit_components"] else "free",
        old["init"],
        "0.01",
        "0.001",
        "0.1",
        str(old["max_iter"]),
    )
    for name, old in PINNED.items()
}
"""The previous defaults, as in the rows; the reproduction of the paper still uses them."""


def problem(X, W, model, cases):
    weights = {name: like([case[i] for case in cases], X) for i, name in enumerate(("alpha", "beta", "lam"))}
    fit = Frobenius()
    if model == "RLS-NMF":
        fit = Robust(ROW_NORMS["l2log"](), like([1.0] * len(cases), X))
    return regularised(InMemory(X), fit, W=W, penalty="log", **weights)


def accuracies(V, k, y, seed):
    """Accuracy of every read-out and setting, (3, B)."""
    xp = namespace(V)
    rows = V / xp.maximum(xp.linalg.vector_norm(V, axis=2, keepdims=True), like(1e-30, V))
    labels = (
        *(kmeans(F, k, seed=seed) for F in (V, rows)),
        xp.argmax(V, axis=2),
    )
    return [scores.accuracy(scores.contingency(y, to_numpy(found))) for found in labels]


def study(name, model, gauge, init, options, rows):
    """All settings and seeds as one batch, measured after every number of iterations."""
    cases = [(*pair, lam, seed) for pair in SPARSITY for lam in GRAPH for seed in options.seeds]
    if rows.get(name, model, options.solver, gauge, init, *cases[-1], options.iterations[-1]):
        return
    X, y = data.load(name)
    X, k, W = np.ascontiguousarray(X), len(np.unique(y)), knn_graph(X, 5)
    draw = {**STARTS, "spectral": spectral}[init]
    first = {seed: draw(X, k, np.random.RandomState(seed)) for seed in options.seeds}
    if options.device:
        import torch

        X = torch.as_tensor(X, device=options.device)
    rule = SOLVERS[options.solver].of(problem(X, W, model, cases), unit_components=gauge == "unit")
    state = rule.start(*(like(np.stack([first[c[3]][F] for c in cases], axis=1), X) for F in (0, 1)))
    for before, mark in itertools.pairwise((0, *options.iterations)):
        for _ in range(mark - before):
            state = rule.step(state)
        error = np.sqrt(to_numpy(rule.squared_error(state)))
        found = accuracies(state.V, k, y, np.array([case[3] for case in cases]))
        for b, case in enumerate(cases):
            numbers = (f"{x:.6g}" for x in (error[b], *(of[b] for of in found)))
            rows.add(name, model, options.solver, gauge, init, *case, mark, *numbers)
    print(name, model, options.solver, gauge, init, flush=True)


def run(options):
    rows = Rows(options.out, COLUMNS, KEY)
    for name, model in itertools.product(options.data, options.models):
        for gauge in options.gauges:
            study(name, model, gauge, "spectral", options, rows)
        if options.solver == "mu" and "free" in options.gauges:
            study(name, model, "free", BEFORE[model][3], options, rows)


def places(options):
    """Names and samples for --check: the data sets, or the noisy data of the paper's tables."""
    if not options.noise:
        for name in options.data:
            yield name, *data.load(name)
        return
    for table in TABLES.values():
        for entry in table.entries:
            if entry.noise != CLEAN and entry.dataset in options.data:
                samples = prepare(DATASETS[entry.dataset], entry.noise)
                yield f"{entry.dataset} {entry.level}", samples.X, samples.y


def check(options):
    """The present defaults against the previous ones, in turn from each seed."""
    print("model, data: accuracy, CPU seconds and error ‖X − V Uᵀ‖ of the default (of the previous default)")
    for model in options.models:
        cls, before, table = MODELS[model], PINNED[model], []
        for name, X, y in places(options):
            X, k = np.ascontiguousarray(X), len(np.unique(y))
            found = []
            for seed, parameters in itertools.product(options.seeds, ({}, before)):
                began = time.process_time()
                fitted = cls(k, random_state=seed, **parameters).fit(X)
                seconds = time.process_time() - began
                labels = cluster(fitted.embedding_, k, random_state=seed)
                found.append((100 * clustering_accuracy(y, labels), seconds, fitted.reconstruction_err_))
            now, then = (np.mean(found[which::2], axis=0) for which in (0, 1))
            each = ", ".join(f"{a:.3g} ({b:.3g})" for a, b in zip(now, then, strict=True))
            print(f"{model}, {name}: {each}", flush=True)
            table.append((now[0], then[0], now[1] / then[1], now[2] / then[2]))
        now, then, slower, error = np.array(table).T
        print(
            f"{model}, mean: {now.mean():.1f} ({then.mean():.1f}), {(now - then).mean():+.1f}, worst "
            f"{(now - then).min():+.1f}; time × {slower.mean():.2f}, error × {error.mean():.2f}",
            flush=True,
        )


def show(paths, count):
    table = [row for path in paths for row in Rows(path, COLUMNS, KEY).rows]
    names = [name for name in SETS if any(row["data"] == name for row in table)]
    found = {}
    for row in table:
        key = tuple(row[c] for c in KEY if c not in ("data", "seed"))
        found.setdefault(key, {}).setdefault(row["data"], []).append(row)

    def means(key, column):
        return np.array([np.mean([float(row[column]) for row in found[key][name]]) for name in names])

    for model in dict.fromkeys(key[0] for key in found):
        before, error = 100 * means(BEFORE[model], "k-means"), means(BEFORE[model], "error")
        lines = []
        for key, column in itertools.product(found, READ_OUTS):
            if key[0] != model or len(found[key]) < len(names) or key[-1] == "0":
                continue
            score = 100 * means(key, column)
            gain = score - before
            more = np.mean(means(key, "error") / error)
            lines.append((score.mean(), gain.min(), more, gain.mean(), " ".join((*key[1:], column)), score))
        lines.sort(key=lambda line: -line[0])
        kept = [line for line in lines if line[1] >= -2]
        print(f"{model}: mean, gain, worst set, error against the previous default, {' '.join(names)}")
        for title, chosen in (("best on average", lines), ("worse by more than 2 on no set", kept)):
            print(title)
            for mean, worst, more, gain, text, score in chosen[:count]:
                each = " ".join(f"{a:5.1f}" for a in score)
                print(f"  {text:52s} {mean:5.1f} {gain:+5.1f} {worst:+5.1f} {more:6.3f}  {each}")


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    results = Path(__file__).parent / "results/default_model.csv"
    parser.add_argument("--out", type=Path, default=results, help="csv file to which rows are added")
    parser.add_argument("--data", nargs="+", default=SETS, choices=SETS, help="data sets")
    parser.add_argument("--models", nargs="+", default=list(BEFORE), choices=list(BEFORE), help="models")
    parser.add_argument("--gauges", nargs="+", default=GAUGES, choices=GAUGES, help="norm of the components")
    iterations = "numbers of iterations after which to measure"
    parser.add_argument("--iterations", type=int, nargs="+", default=MARKS, help=iterations)
    parser.add_argument("--solver", default="mu", choices=SOLVERS, help="solver")
    parser.add_argument("--seeds", type=int, nargs="+", default=range(5), help="seeds of the starts")
    parser.add_argument("--device", help="torch device; only for the solver mu")
    parser.add_argument(
        "--read", type=Path, nargs="+", help="print the best settings of csv files, fit nothing"
    )
    parser.add_argument("--count", type=int, default=12, help="with --read: number of settings per list")
    parser.add_argument("--check", action="store_true", help="compare present and previous defaults")
    parser.add_argument("--noise", action="store_true", help="with --check: the paper's noisy data")
    options = parser.parse_args()
    if options.read:
        show(options.read, options.count)
    elif options.check:
        check(options)
    else:
        run(options)


if __name__ == "__main__":
    main()
