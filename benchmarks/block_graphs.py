"""What it costs in clustering accuracy that neighbours are sought in adjacent blocks of rows only.

    python benchmarks/block_graphs.py

GNMF and LS-NMF with a graph on data sets in random order, cut into 1, 2, 4 and 8 blocks; k-means on the
codes. Mean accuracy over the seeds in per cent. The labels judge, and choose nothing.
"""

import argparse

import numpy as np

from lognmf import MODELS, cluster, datasets, in_blocks, metrics, normalize

COUNTS = (1, 2, 4, 8)
MODELS_WITH_GRAPH = {"GNMF": {}, "LS-NMF": {"alpha": 0.01, "beta": 0.001, "lam": 1.0, "solver": "mu"}}


def accuracy(name, X, y, k, count, seed):
    source = in_blocks(X, rows=-(-len(X) // count))
    options = {"init": "random", "max_iter": 200, "tol": 0, "random_state": seed}
    V = MODELS[name](k, **options, **MODELS_WITH_GRAPH[name]).fit(source).embedding_
    return metrics.clustering_accuracy(y, cluster(V, k, random_state=seed))


def main():
    formatter = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=formatter)
    parser.add_argument("--sets", nargs="+", default=["digits", "pendigits", "semeion"])
    parser.add_argument("--seeds", type=int, default=5)
    options = parser.parse_args()
    print(f"{'set':10} {'model':7}" + "".join(f"{count:4d} blocks" for count in COUNTS))
    for which in options.sets:
        data = datasets.load(which)
        k = len(np.unique(data.y))
        for name in MODELS_WITH_GRAPH:
            scores = np.zeros((options.seeds, len(COUNTS)))
            for seed in range(options.seeds):
                order = np.random.default_rng(seed).permutation(len(data.y))
                X, y = normalize(data.X)[order], data.y[order]
                scores[seed] = [accuracy(name, X, y, k, count, seed) for count in COUNTS]
            means = "".join(f"{100 * mean:11.1f}" for mean in scores.mean(axis=0))
            print(f"{which:10} {name:7}{means}", flush=True)


if __name__ == "__main__":
    main()
