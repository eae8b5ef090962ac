"""How good is a setting chosen without labels? On all eight data sets, against what users would pick.

    LOGNMF_DATA=… python benchmarks/label_free.py --device cuda --out FILE
    python benchmarks/label_free.py --read FILE

LS-NMF over a grid, from the random and from the spectral start, several seeds; for each criterion of
`lognmf.study.select`, the mean accuracy of the chosen setting over the best mean accuracy in the
grid. In the same run: k-means, scikit-learn's NMF with k-means, and spectral clustering of the same
graph. Labels only judge.
"""

import argparse
import csv
import time
import warnings

import numpy as np
from sklearn.cluster import KMeans, SpectralClustering
from sklearn.decomposition import NMF

import data
from lognmf import MODELS, fit_grid, knn_graph
from lognmf.metrics import clustering_accuracy
from lognmf.study.select import CRITERIA, select

GRID = {
    "alpha": (0.001, 0.01, 0.1),
    "beta": (0.001, 0.01, 0.1),
    "lam": (0.01, 0.1, 1.0, 10.0, 100.0),
}
STARTS = {"random": (500,), "spectral": (30, 100, 300)}
COLUMNS = ("data", "method", "max_iter", "alpha", "beta", "lam", "seed", "objective", "normalized_cut")
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
        for init, iterations in STARTS.items():
            for max_iter in iterations:
                model = MODELS["LS-NMF"](k, init=init, eval_every=10)
                result = fit_grid(model, X, GRID, seeds=seeds, y=y, device=options.device, max_iter=max_iter)
                rows += [
                    {"data": name, "method": f"LS-NMF {init}", "max_iter": max_iter, **row}
                    for row in result.rows
                ]
        rows += [
            {"data": name, "method": peer, "seed": s, "accuracy": peer_accuracy(peer, X, y, k, s)}
            for peer in PEERS
            for s in seeds
        ]
        print(f"{name}: {time.perf_counter() - start:.1f} s", flush=True)
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


def report(path):
    rows = list(read(path))
    names = list(dict.fromkeys(row["data"] for row in rows))
    print("mean accuracy in percent over the seeds, and over all sets:", *names)

    def line(label, values):
        print(f"{label:44s} {100 * np.mean(values):5.1f} |", *(f"{100 * value:5.1f}" for value in values))

    for peer in PEERS:
        line(
            peer,
            [np.mean([r["accuracy"] for r in rows if (r["data"], r["method"]) == (n, peer)]) for n in names],
        )
    for init in STARTS:
        fits = {n: [r for r in rows if (r["data"], r["method"]) == (n, f"LS-NMF {init}")] for n in names}
        best = {n: max(accuracy for _, accuracy in keyed(fits[n])) for n in names}
        line(f"LS-NMF {init}, best of the grid by labels", list(best.values()))
        for criterion in CRITERIA:
            chosen = {
                n: dict(keyed(fits[n]))[key(select([strip(r) for r in fits[n]], criterion).setting)]
                for n in names
            }
            line(f"LS-NMF {init}, {criterion}", list(chosen.values()))
            ratio = np.mean([chosen[n] / best[n] for n in names])
            print(f"{'':44s} chosen / best in the grid: {ratio:.3f} in the mean")


def strip(row):
    return {name: v for name, v in row.items() if name not in ("data", "method")}


def key(setting):
    return tuple(sorted((n, v) for n, v in setting.items() if n in ("alpha", "beta", "lam", "max_iter")))


def keyed(rows):
    groups = {}
    for row in rows:
        groups.setdefault(key(row), []).append(row["accuracy"])
    return [(setting, float(np.mean(values))) for setting, values in groups.items()]


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", nargs="+", default=list(data.READERS), choices=list(data.READERS))
    parser.add_argument("--device", default=None, help="cuda, or nothing for NumPy")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--out", default="label_free.csv")
    parser.add_argument("--read", help="only report on the rows of this file")
    options = parser.parse_args()
    if not options.read:
        run(options)
    report(options.read or options.out)


if __name__ == "__main__":
    main()
