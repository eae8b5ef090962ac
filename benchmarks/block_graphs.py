"""What it costs in clustering accuracy that neighbours are sought in adjacent blocks of rows only.

    python benchmarks/block_graphs.py              # models with a graph
    python benchmarks/block_graphs.py --clusterer  # NMFClustering

GNMF and LS-NMF with a graph on data sets in random order, cut into 1, 2, 4 and 8 blocks; k-means on the
codes. `NMFClustering` in 16 blocks, where a half, a quarter and an eighth of the samples are clustered, and
the others get the clusters of their neighbours. Mean accuracy over the seeds in per cent. The labels judge,
and choose nothing.
"""

import argparse
from functools import partial

import numpy as np

from lognmf import MODELS, NMFClustering, cluster, datasets, in_blocks, metrics, normalize
from lognmf.blocks import rows

COUNTS = (1, 2, 4, 8)
PARTS = (1, 2, 4, 8)
MODELS_WITH_GRAPH = {"GNMF": {}, "LS-NMF": {"alpha": 0.01, "beta": 0.001, "lam": 1.0, "solver": "mu"}}


def accuracy(name, X, y, k, count, seed):
    source = in_blocks(X, rows=-(-len(X) // count))
    options = {"init": "random", "max_iter": 200, "tol": 0, "random_state": seed}
    V = MODELS[name](k, **options, **MODELS_WITH_GRAPH[name]).fit(source).embedding_
    return metrics.clustering_accuracy(y, cluster(V, k, random_state=seed))


def accuracy_of_clusterer(X, y, k, part, seed):
    rows.MOST_SAMPLES = len(X) // part
    source = X if part == 1 else in_blocks(X, rows=-(-len(X) // 16))
    return metrics.clustering_accuracy(y, NMFClustering(k, random_state=seed).fit_predict(source))


def means(score, values, data, seeds):
    """Mean accuracy of ``score(X, y, k, value, seed)`` for every value, over orders of the samples."""
    k, scores = len(np.unique(data.y)), np.zeros((seeds, len(values)))
    for seed in range(seeds):
        order = np.random.default_rng(seed).permutation(len(data.y))
        X, y = normalize(data.X)[order], data.y[order]
        scores[seed] = [score(X, y, k, value, seed) for value in values]
    return "".join(f"{100 * mean:11.1f}" for mean in scores.mean(axis=0))


def main():
    formatter = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=formatter)
    parser.add_argument("--sets", nargs="+", default=["digits", "pendigits", "semeion"])
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--clusterer", action="store_true")
    options = parser.parse_args()
    if options.clusterer:
        print(f"{'set':10}" + "".join(f"{f'1/{part}':>11}" for part in PARTS))
        for which in options.sets:
            found = means(accuracy_of_clusterer, PARTS, datasets.load(which), options.seeds)
            print(f"{which:10}{found}", flush=True)
        return
    print(f"{'set':10} {'model':7}" + "".join(f"{count:4d} blocks" for count in COUNTS))
    for which in options.sets:
        for name in MODELS_WITH_GRAPH:
            found = means(partial(accuracy, name), COUNTS, datasets.load(which), options.seeds)
            print(f"{which:10} {name:7}{found}", flush=True)


if __name__ == "__main__":
    main()
