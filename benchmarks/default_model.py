"""What `LogSparseNMF(k).fit(X)` should do: gauge, start, graph weight and iterations, judged by clustering.

    LOGNMF_DATA=… python benchmarks/default_model.py --device cuda --out default_model.csv
    python benchmarks/default_model.py --read benchmarks/results/default_model.csv

Every candidate is one fixed setting for all eight data sets; accuracy of k-means on V is the mean over the
seeds. Labels only judge.
"""

import argparse
import csv
import sys
import time

import numpy as np

from data import READERS, load
from lognmf import LogSparseNMF, fit_grid

FIELDS = ("data", "gauge", "init", "alpha", "beta", "lam", "max_iter", "seed", "accuracy", "nmi", "seconds")
CANDIDATES = {
    "gauge": ["free", "unit"],
    "init": ["random", "spectral"],
    "lam": [0.03, 0.1, 0.3, 1.0, 3.0, 10.0],
    "alpha": [0.01],
}
ITERATIONS = (30, 100, 500)
BEFORE = ("free", "random", 0.01, 0.001, 0.1, 500)
"""The default so far."""


def rows(name, options):
    X, y = load(name)
    k = int(y.max()) + 1
    for max_iter in ITERATIONS:
        grid = {**CANDIDATES, "beta": [0.001]}
        result = fit_grid(
            LogSparseNMF(k),
            X,
            grid,
            seeds=range(options.seeds),
            y=y,
            n_clusters=k,
            max_iter=max_iter,
            tol=0,
            device=options.device,
        )
        for row in result.rows:
            yield {"data": name, "max_iter": max_iter} | {key: row[key] for key in FIELDS if key in row}


def show(table):
    def key(row):
        weights = (float(row[name]) for name in ("alpha", "beta", "lam"))
        return (row["gauge"], row["init"], *weights, int(row["max_iter"]))

    names = list(dict.fromkeys(row["data"] for row in table))
    scores = {}
    for row in table:
        scores.setdefault(key(row), {}).setdefault(row["data"], []).append(float(row["accuracy"]))
    means = {k: np.array([100 * np.mean(found[n]) for n in names]) for k, found in scores.items()}
    before = means[BEFORE]
    print(
        f"{'gauge, init, alpha, beta, lam, iterations':52s} mean  gain worst  "
        + " ".join(n[:6] for n in names)
    )
    order = sorted(means, key=lambda k: -means[k].mean())
    harmless = [k for k in order if (means[k] - before).min() >= -2]
    for title, chosen in (("best in the mean", order[:12]), ("worse by more than 2 on none", harmless[:12])):
        print(title)
        for k in dict.fromkeys([*chosen, BEFORE]):
            text = f"{k!s:52s} {means[k].mean():4.1f} {means[k].mean() - before.mean():+5.1f}"
            print(text, f"{(means[k] - before).min():+5.1f} ", " ".join(f"{a:6.1f}" for a in means[k]))


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", nargs="+", default=list(READERS), choices=list(READERS))
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--device")
    parser.add_argument("--out", default="default_model.csv")
    parser.add_argument("--read", help="show the rows of a file instead")
    options = parser.parse_args()
    if options.read:
        with open(options.read, encoding="utf-8") as file:
            return show(list(csv.DictReader(file)))
    table = []
    with open(options.out, "w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, FIELDS)
        writer.writeheader()
        for name in options.data:
            start = time.perf_counter()
            found = list(rows(name, options))
            table += found
            for row in found:
                short = {k: f"{v:.4g}" if isinstance(v, float) else v for k, v in row.items()}
                writer.writerow(short)
            file.flush()
            print(
                f"{name}: {len(found)} fits, {time.perf_counter() - start:.1f} s", file=sys.stderr, flush=True
            )
    return show(table)


if __name__ == "__main__":
    main()
