"""Which single setting serves all eight data sets best? The evidence behind the default weights.

    LOGNMF_DATA=… python benchmarks/default_weights.py --device cuda --out FILE
    python benchmarks/default_weights.py --read FILE

Every setting of a grid is fitted from the model's default start with the paper's
protocol (unit-norm samples, 5 neighbours, k = number of classes, 500 iterations), scored by
k-means on V, and averaged over seeds. A setting's mark is its accuracy over the best mean
accuracy of its model on that data set, averaged over the data sets.
"""

import argparse
import csv
import itertools
import time

import numpy as np
from joblib import Parallel, delayed
from sklearn.cluster import KMeans

import data
from lognmf import knn_graph
from lognmf.core.arrays import like, to_numpy
from lognmf.core.data import InMemory
from lognmf.core.loop import iterate
from lognmf.core.solvers import Multiplicative
from lognmf.core.starts import STARTS
from lognmf.core.terms import ROW_NORMS, Frobenius, Robust
from lognmf.metrics import clustering_accuracy
from lognmf.models.log_sparse import regularised

SPARSITY = (0.001, 0.01, 0.1)
GRAPH = (0.01, 0.1, 1.0, 10.0, 100.0)
OUTLIERS = (0.1, 0.3, 1.0, 10.0, 100.0)
INIT = {"LS-NMF": "random", "RLS-NMF": "scaled"}
COLUMNS = ("data", "model", "alpha", "beta", "lam", "gamma", "seed", "accuracy")


def settings(model):
    gammas = OUTLIERS if model == "RLS-NMF" else (0.0,)
    return list(itertools.product(SPARSITY, SPARSITY, GRAPH, gammas))


def pattern(device, dtype):
    if device == "numpy":
        return np.empty(0, dtype=dtype)
    import torch

    return torch.empty(0, dtype=getattr(torch, dtype), device=device)


def embeddings(X, k, model, seed, home, max_iter):
    """V (n, B, k) of every setting of ``model``, fitted as one batch."""
    grid = np.array(settings(model)).T
    alpha, beta, lam, gamma = (like(weight, home) for weight in grid)
    rng = np.random.RandomState(seed)
    U, V = STARTS[INIT[model]](X, k, rng)
    U, V = (like(np.repeat(F[:, None, :], grid.shape[1], axis=1), home) for F in (U, V))
    x = like(X, home)
    fit = Frobenius() if model == "LS-NMF" else Robust(ROW_NORMS["l2log"](), gamma)
    weights = {"alpha": alpha, "beta": beta, "lam": lam}
    rule = Multiplicative(regularised(InMemory(x), fit, W=knn_graph(X), penalty="log", **weights))
    solution = iterate(rule, rule.start(U, V), max_iter=max_iter, tol=1e-5, eval_every=50)
    return to_numpy(solution.state.V)


def score(V, y, k):
    import warnings

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # collapsed codes have fewer distinct rows than clusters
        labels = KMeans(k, n_init=10, random_state=0).fit_predict(V)
    return clustering_accuracy(y, labels)


def run(options):
    home = pattern(options.device, options.dtype)
    with open(options.out, "w", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(COLUMNS)
        for name, model, seed in itertools.product(options.data, ("LS-NMF", "RLS-NMF"), range(options.seeds)):
            X, y = data.load(name)
            k = len(np.unique(y))
            start = time.perf_counter()
            V = embeddings(X, k, model, seed, home, options.max_iter)
            fitted = time.perf_counter() - start
            scores = Parallel(n_jobs=-1)(delayed(score)(V[:, b], y, k) for b in range(V.shape[1]))
            for setting, accuracy in zip(settings(model), scores, strict=True):
                rows.writerow([name, model, *setting, seed, f"{accuracy:.6f}"])
            file.flush()
            print(
                f"{name:10s} {model:8s} seed {seed}: {V.shape[1]} fits in {fitted:.1f} s, scored in "
                f"{time.perf_counter() - start - fitted:.1f} s, best {max(scores):.4f}",
                flush=True,
            )


def report(path):
    with open(path, newline="") as file:
        rows = list(csv.DictReader(file))
    for model in ("LS-NMF", "RLS-NMF"):
        mean = {}  # data set -> setting -> mean accuracy over seeds
        for row in rows:
            if row["model"] == model:
                setting = tuple(float(row[w]) for w in ("alpha", "beta", "lam", "gamma"))
                mean.setdefault(row["data"], {}).setdefault(setting, []).append(float(row["accuracy"]))
        mean = {name: {s: np.mean(v) for s, v in by.items()} for name, by in mean.items()}
        best = {name: max(by.values()) for name, by in mean.items()}
        marks = {s: np.mean([mean[d][s] / best[d] for d in mean]) for s in next(iter(mean.values()))}
        print(
            f"\n{model}: mark, worst data set, (alpha, beta, lam, gamma), mean accuracy on {', '.join(mean)}"
        )
        for setting in sorted(marks, key=marks.get, reverse=True)[:12]:
            worst = min(mean[d][setting] / best[d] for d in mean)
            accuracies = " ".join(f"{100 * mean[d][setting]:5.1f}" for d in mean)
            print(f"{marks[setting]:.3f} {worst:.2f} {setting} {accuracies}")
        print("best      ", " " * 25, " ".join(f"{100 * best[d]:5.1f}" for d in mean))


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", nargs="+", default=list(data.READERS), choices=list(data.READERS))
    parser.add_argument("--device", default="numpy", help="numpy, cpu (torch) or cuda")
    parser.add_argument("--dtype", default="float32", choices=("float32", "float64"))
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--max-iter", type=int, default=500)
    parser.add_argument("--out", default="default_weights.csv")
    parser.add_argument("--read", help="only report on the rows of this file")
    options = parser.parse_args()
    if not options.read:
        run(options)
    report(options.read or options.out)


if __name__ == "__main__":
    main()
