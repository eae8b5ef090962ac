"""How good is a setting chosen without labels? On all eight data sets, against what users would pick.

    LOGNMF_DATA=… python benchmarks/label_free.py --device cuda --out FILE
    python benchmarks/label_free.py --data digits iris wine cancer --out FILE
    LOGNMF_DATA=… python benchmarks/label_free.py --quick --data EYaleB:half0 digits:uneven0 … --out FILE
    python benchmarks/label_free.py --read FILE

LS-NMF and RLS-NMF over `tune`'s grid, from the random and from the spectral start, several seeds;
for each criterion of `lognmf.grid.select`, the mean accuracy of the chosen setting over the seeds,
and over the best mean accuracy in the grid. In the same run: k-means, scikit-learn's NMF with
k-means, and spectral clustering of the same graph. Labels only judge.
"""

import argparse
import csv
import itertools
import time
import warnings

import numpy as np
from joblib import Parallel, delayed
from sklearn.cluster import KMeans, SpectralClustering
from sklearn.decomposition import NMF

import data
from lognmf import MODELS, fit_grid, knn_graph
from lognmf.grid.select import CRITERIA, best_row, select
from lognmf.grid.tune import ITERATIONS, default_grid
from lognmf.metrics import clustering_accuracy

GRIDS = {
    "LS-NMF random": ("LS-NMF", {"init": "random", "unit_components": False}, (500,)),
    "LS-NMF spectral": ("LS-NMF", {}, ITERATIONS),
    "RLS-NMF spectral": ("RLS-NMF", {}, ITERATIONS),
}
"""Grids: a model, its parameters, and the iterations that are tried."""

SETTING = ("max_iter", "alpha", "beta", "gamma", "lam")
COLUMNS = ("data", "method", *SETTING, "seed", "objective", "n_iter", "normalized_cut", "modularity")
COLUMNS += ("clusters", "balance", "accuracy", "nmi", "purity")
PEERS = ("k-means", "scikit-learn NMF + k-means", "spectral clustering")


def peer_accuracy(name, X, y, k, seed):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if name == "k-means":
            labels = KMeans(k, n_init=10, random_state=seed).fit_predict(X)
        elif name == "spectral clustering":
            W = knn_graph(X)
            W.indices, W.indptr = W.indices.astype(np.int32), W.indptr.astype(np.int32)
            labels = SpectralClustering(k, affinity="precomputed", random_state=seed, n_init=10).fit_predict(
                W
            )
        else:
            V = NMF(k, init="random", random_state=seed, max_iter=500).fit_transform(X)
            labels = KMeans(k, n_init=10, random_state=seed).fit_predict(V)
    return clustering_accuracy(y, labels)


def run(options):
    rows = []
    for name in options.data:
        X, y = data.load(name)
        k, seeds = len(np.unique(y)), range(options.seeds)
        start = time.perf_counter()
        for method in options.methods:
            if method in GRIDS:
                model, parameters, iterations = GRIDS[method]
                model = MODELS[model](k, solver="mu", scale=1.0, **parameters)
                grid = default_grid(model) | {"max_iter": iterations}
                if options.quick:
                    grid |= {"alpha": [0.01], "beta": [0.01]}
            else:
                continue
            result = fit_grid(model, X, grid, seeds=seeds, y=y, device=options.device)
            rows += [{"data": name, "method": method, **row} for row in result.rows]
        fitted = time.perf_counter() - start
        tasks = [(peer, seed) for peer in PEERS if peer in options.methods for seed in seeds]
        found = Parallel(n_jobs=options.jobs)(delayed(peer_accuracy)(p, X, y, k, seed) for p, seed in tasks)
        rows += [
            {"data": name, "method": peer, "seed": seed, "accuracy": accuracy}
            for (peer, seed), accuracy in zip(tasks, found, strict=True)
        ]
        print(f"{name}: {fitted:.1f} s, peers {time.perf_counter() - start - fitted:.1f} s", flush=True)
        write(options.out, rows)


def write(path, rows):
    with open(path, "w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(COLUMNS)
        for row in rows:
            values = (row.get(column, "") for column in COLUMNS)
            writer.writerow([f"{v:.6g}" if isinstance(v, float) else v for v in values])


def read(path):
    with open(path, newline="") as file:
        for row in csv.DictReader(file):
            yield {name: _number(value) for name, value in row.items() if value != ""}


def _number(text):
    try:
        return float(text)
    except ValueError:
        return text


def report(paths, only=""):
    rows = [row for path in paths for row in read(path) if only in row["data"]]
    names = list(dict.fromkeys(row["data"] for row in rows))
    print("mean accuracy in percent over the seeds, and over all sets:", *names)

    def line(label, values):
        print(f"{label:48s} {100 * np.mean(values):5.1f} |", *(f"{100 * value:5.1f}" for value in values))

    for method in PEERS:
        found = [[r["accuracy"] for r in rows if (r["data"], r["method"]) == (n, method)] for n in names]
        if names and all(found):
            line(method, [np.mean(values) for values in found])
    for method in GRIDS:
        fits = {n: [r for r in rows if (r["data"], r["method"]) == (n, method)] for n in names}
        if not all(fits.values()):
            continue
        means = {n: dict(keyed(fits[n])) for n in names}
        best = {n: max(means[n].values()) for n in names}
        if 0 in GRIDS[method][2]:
            start = {n: [r["accuracy"] for r in fits[n] if r["max_iter"] == 0] for n in names}
            line(f"{method}, the start itself", [np.mean(start[n]) for n in names])
        line(f"{method}, best of the grid by labels", list(best.values()))
        for criterion in CRITERIA:
            picks = {n: key(select([strip(r) for r in fits[n]], criterion).setting) for n in names}
            chosen = {n: means[n][picks[n]] for n in names}
            line(f"{method}, {criterion}", list(chosen.values()))
            returned = [tuned_accuracy(fits[n], criterion) for n in names]
            line(f"{method}, {criterion}, returned", returned)
            ratios = (np.mean([found / best[n] for n, found in zip(names, accuracies, strict=True)])
                      for accuracies in (chosen.values(), returned))  # fmt: skip
            print(f"{'':48s} setting / best: {{:.3f}}, returned / best: {{:.3f}}".format(*ratios))
            for n in names:
                print(f"{'':50s}{n}:", ", ".join(f"{name} {value:g}" for name, value in picks[n]))


def report_fixed(paths):
    """Every lam and number of iterations from the spectral start, alpha = 0.01, beta = 0.001."""
    rows = [row for path in paths for row in read(path) if row["method"] == "LS-NMF spectral"]
    names = list(dict.fromkeys(row["data"] for row in rows))
    rows = [row for row in rows if (row["alpha"], row["beta"]) == (0.01, 0.001)]
    print("mean accuracy in percent over the seeds, and over all sets:", *names)
    for lam, max_iter in sorted({(row["lam"], row["max_iter"]) for row in rows}):
        own = [row for row in rows if (row["lam"], row["max_iter"]) == (lam, max_iter)]
        values = [np.mean([row["accuracy"] for row in own if row["data"] == name]) for name in names]
        means = " ".join(f"{100 * value:5.1f}" for value in values)
        print(f"lam {lam:6g}, {max_iter:3g} iterations {100 * np.mean(values):5.1f} |", means)


def tuned_accuracy(rows, criterion):
    """Mean accuracy of the model that `tune` returns, over all threes of the seeds."""
    found = []
    for seeds in itertools.combinations(sorted({row["seed"] for row in rows}), 3):
        own = [strip(row) for row in rows if row["seed"] in seeds]
        found.append(own[best_row(own, select(own, criterion).setting, criterion)]["accuracy"])
    return np.mean(found)


def strip(row):
    return {name: v for name, v in row.items() if name not in ("data", "method")}


def key(setting):
    return tuple(sorted((n, v) for n, v in setting.items() if n in SETTING))


def keyed(rows):
    groups = {}
    for row in rows:
        groups.setdefault(key(row), []).append(row["accuracy"])
    return [(setting, float(np.mean(values))) for setting, values in groups.items()]


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", nargs="+", default=list(data.READERS), choices=data.ALL)
    parser.add_argument("--device", default=None, help="cuda, or nothing for NumPy")
    parser.add_argument("--seeds", type=int, default=5)
    methods = [*GRIDS, *PEERS]
    parser.add_argument("--methods", nargs="+", default=methods, choices=methods)
    parser.add_argument("--quick", action="store_true", help="grids over lam and the iterations only")
    parser.add_argument("--jobs", type=int, default=-1, help="processes for the peers; default: all cores")
    parser.add_argument("--out", default="label_free.csv")
    parser.add_argument("--read", nargs="+", help="only report on the rows of these files")
    parser.add_argument("--only", default="", help="report on sets whose name contains this")
    parser.add_argument("--fixed", action="store_true", help="report on fixed settings instead")
    options = parser.parse_args()
    if not options.read:
        run(options)
    if options.fixed:
        report_fixed(options.read or [options.out])
    else:
        report(options.read or [options.out], options.only)


if __name__ == "__main__":
    main()
