"""Batched k-means against scikit-learn's KMeans, one embedding after another.

    python benchmarks/kmeans.py                                  # NumPy
    python benchmarks/kmeans.py --device cuda --embeddings 2401  # a whole grid on a GPU

Codes of COIL20's size with 20 clusters, from well separated to hardly any. scikit-learn gets
the first 50 embeddings only; the rounds take turns, and the ratio is one of medians.
"""

import argparse
import statistics
import time

import numpy as np
from sklearn.cluster import KMeans

from lognmf.clustering.kmeans import kmeans
from lognmf.core.arrays import to_numpy


def codes(n, B, k, n_clusters, dtype, rng):
    """(n, B, k): nonnegative codes of noisy clusters, the noise growing over the batch."""
    y = rng.integers(0, n_clusters, n)
    centres = rng.random((B, n_clusters, k)) * (rng.random((B, n_clusters, k)) < 0.3)
    V = rng.gamma(0.5, np.geomspace(0.05, 2, B)[:, None], (n, B, k))
    for b in range(B):
        V[:, b] += centres[b, y]
    return V.astype(dtype)


def inertia(Z, labels):
    groups = [Z[labels == c].astype(float) for c in np.unique(labels)]
    return sum(((rows - rows.mean(axis=0)) ** 2).sum() for rows in groups)


def batched(V, n_clusters, n_init, memory):
    labels = kmeans(V, n_clusters, seed=0, n_init=n_init, memory=memory)
    return to_numpy(labels)  # waits for the device


def looped(V, n_clusters, n_init):
    models = (KMeans(n_clusters, n_init=n_init, random_state=1) for _ in range(V.shape[1]))
    return np.stack([model.fit_predict(V[:, b]) for b, model in enumerate(models)], axis=1)


def timed(function, *arguments):
    start = time.perf_counter()
    result = function(*arguments)
    return time.perf_counter() - start, result


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--samples", type=int, default=1440)
    parser.add_argument("--embeddings", type=int, default=50)
    parser.add_argument("--components", type=int, default=20)
    parser.add_argument("--clusters", type=int, default=20)
    parser.add_argument("--n-init", type=int, default=10)
    parser.add_argument("--dtype", default="float64")
    parser.add_argument("--device", default=None, help="a torch device; without it NumPy")
    parser.add_argument("--memory", type=int, default=None, help="MiB")
    parser.add_argument("--rounds", type=int, default=3)
    args = parser.parse_args()

    rng = np.random.default_rng(0)
    V = codes(args.samples, args.embeddings, args.components, args.clusters, args.dtype, rng)
    home = V
    if args.device is not None:
        import torch

        home = torch.as_tensor(V, device=args.device)
    few = V[:, np.linspace(0, args.embeddings - 1, min(50, args.embeddings)).astype(int)]
    memory = None if args.memory is None else args.memory * 2**20
    ours, theirs = [], []
    batched(home[:, :1], args.clusters, args.n_init, memory)
    for _ in range(args.rounds):
        seconds, labels = timed(batched, home, args.clusters, args.n_init, memory)
        ours.append(seconds / args.embeddings)
        seconds, reference = timed(looped, few, args.clusters, args.n_init)
        theirs.append(seconds / few.shape[1])
    ours, theirs = statistics.median(ours), statistics.median(theirs)

    labels = labels[:, np.linspace(0, args.embeddings - 1, few.shape[1]).astype(int)]
    pairs = [(few[:, b], labels[:, b], reference[:, b]) for b in range(few.shape[1])]
    difference = np.array([inertia(Z, mine) / inertia(Z, other) - 1 for Z, mine, other in pairs])
    print(f"{args.embeddings} embeddings {args.samples}×{args.components}, {args.clusters} clusters,")
    print(f"{args.n_init} restarts, {args.dtype}, {args.device or 'NumPy'}; medians of {args.rounds} rounds")
    print(f"batched        {1e3 * ours:9.2f} ms an embedding, {ours * args.embeddings:.2f} s in all")
    print(f"scikit-learn   {1e3 * theirs:9.2f} ms an embedding, one after another")
    print(f"ratio          {theirs / ours:9.2f}")
    print(f"inertia        {difference.mean():+9.2%} on average, {np.abs(difference).max():.2%} at most")


if __name__ == "__main__":
    main()
