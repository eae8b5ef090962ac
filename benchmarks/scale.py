"""Large data: neighbour graphs, starts and whole fits, by size.

    python benchmarks/scale.py                   # every section
    python benchmarks/scale.py graph text        # some of them
    python benchmarks/scale.py growth --samples 50000 100000

graph    exact search, dense 20,000 × 200, against scikit-learn's brute force
text     exact search, text 20,000 × 20,000, against SciPy's products and differences (what it was before)
recall   approximate against exact: neighbours found, and accuracy of clusters
fits     LogSparseNMF(20), mixtures n × 200 and text n × 20,000
growth   NMFClustering(20) and GraphNMF(20), dense n × 200
texts    NMFClustering(20), text n × 20,000

Seconds are wall-clock, then CPU; on a shared machine compare the latter. What is compared takes turns.
Memory is the peak of the process so far.
"""

import argparse
import resource
import statistics
import time
from functools import partial

import numpy as np
import scipy.sparse as sp
from sklearn.neighbors import NearestNeighbors
from sklearn.preprocessing import normalize

from lognmf import GraphNMF, LogSparseNMF, NMFClustering, datasets, knn_graph, metrics
from lognmf.core.matrices import squared_row_norms
from lognmf.graph import approximate
from lognmf.graph.dense import smallest
from lognmf.graph.neighbours import find_neighbours, nearest

SETS = ("yale", "jaffe", "orl", "semeion", "coil20", "pendigits", "ar", "eyaleb")


def clusters(n, p=200, k=20, seed=0):
    """Samples of k classes, each near a plane of six dimensions of its own."""
    rng = np.random.default_rng(seed)
    y, centres, planes = rng.integers(0, k, n), rng.random((k, p)), rng.normal(size=(k, 6, p))
    X, places = centres[y], 0.15 * rng.normal(size=(n, 6))
    for own in range(k):
        X[y == own] += places[y == own] @ planes[own]
    return normalize(np.maximum(X, 0) + 0.05 * rng.random((n, p)), copy=False), y


def mixtures(n, p=200, k=20, seed=0):
    """Samples that mix k parts, each mostly one of them: its class."""
    rng = np.random.default_rng(seed)
    V = rng.dirichlet(np.full(k, 0.1), n)
    return normalize(V @ rng.gamma(0.3, size=(k, p)) + 0.02 * rng.random((n, p))), V.argmax(axis=1)


def blobs(n, p=200, k=20, seed=0):
    """Samples of k classes with noise in all dimensions: neighbours within a class are a matter of chance."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, k, n)
    return normalize(rng.random((k, p))[y] + 0.3 * rng.random((n, p))), y


def texts(n, p=20_000, share=0.006, k=20, seed=0):
    """Documents of k classes: words by Zipf's law, half of them ranked by class; tf-idf of unit norm."""
    rng = np.random.default_rng(seed)
    law = np.cumsum(1 / np.arange(1, p + 1))
    y, orders = rng.integers(0, k, n), np.stack([rng.permutation(p) for _ in range(k)])
    rows = np.repeat(np.arange(n, dtype=np.int32), int(1.3 * share * p))
    words = np.searchsorted(law, law[-1] * rng.random(len(rows)))
    words = np.where(rng.random(len(rows)) < 0.5, orders[y[rows], words], words)
    X = sp.csr_array((np.ones(len(rows)), (rows, words)), shape=(n, p))
    X.sum_duplicates()
    count = np.bincount(X.indices, minlength=p)
    X.data = np.log1p(X.data) * np.log(n / np.maximum(count, 1))[X.indices]
    return sp.csr_array(normalize(X)), y


def timed(function, *arguments, **options):
    """Wall-clock and CPU seconds, and what it returns."""
    wall, cpu = time.perf_counter(), time.process_time()
    result = function(*arguments, **options)
    return time.perf_counter() - wall, time.process_time() - cpu, result


def line(what, wall, cpu, more=""):
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"{what:56} {wall:7.1f} s {cpu:7.1f} s CPU  {peak:6.0f} MB  {more}", flush=True)


def ratios(name, ours, theirs, rounds=3):
    """Print medians of times of two functions that take turns, and how many times longer the second takes."""
    times = [(timed(ours)[:2], timed(theirs)[:2]) for _ in range(rounds)]
    (our_wall, our_cpu), (wall, cpu) = (
        [statistics.median(one[side][clock] for one in times) for clock in (0, 1)] for side in (0, 1)
    )
    line(f"{name}: ours", our_wall, our_cpu)
    line(f"{name}: theirs", wall, cpu, f"ours / theirs {our_wall / wall:.2f}, CPU {our_cpu / cpu:.2f}")


def graph(arguments):
    for make in (clusters, mixtures, blobs):
        X = make(20_000)[0]
        brute = NearestNeighbors(n_neighbors=6, algorithm="brute").fit(X)
        name = f"exact graph, {make.__name__} 20,000 × 200"
        ratios(name, partial(find_neighbours, X, 5, "exact"), partial(brute.kneighbors, X))


def text(arguments):
    X = texts(20_000)[0]
    print(f"text 20,000 × 20,000, {X.nnz / np.prod(X.shape):.2%} entries")
    some = X[:1000]
    nearest(some, X, 6)  # compiled now
    ours = timed(find_neighbours, X, 5)
    theirs = timed(former_search, some, X, 5)
    line("exact graph: ours, all samples", *ours[:2])
    line("exact graph: former, 1,000 samples", *theirs[:2])
    print(f"former / ours, per sample: {20 * theirs[0] / ours[0]:.1f}, CPU {20 * theirs[1] / ours[1]:.1f}")
    same = theirs[2] == nearest(some, X, 5)[0]
    print(f"equal neighbours: {same.mean():.4%}")


def former_search(Y, X, k):
    """Neighbours as they were found before: 16 samples at a time, differences one sample at a time."""
    sizes, found = squared_row_norms(X), []
    for start in range(0, Y.shape[0], 16):
        block = Y[start : start + 16]
        rough = np.ascontiguousarray((X @ block.toarray().T).T)
        rough *= -2
        rough += sizes
        candidates = smallest(rough, k + 3).places
        exact = np.empty(candidates.shape)
        for i, j in np.ndindex(*candidates.shape):
            exact[i, j] = squared_row_norms(block[i : i + 1] - X[candidates[i, [j]]])[0]
        order = np.argsort(exact, axis=1, kind="stable")[:, :k]
        found.append(np.take_along_axis(candidates, order, axis=1))
    return np.concatenate(found)


def recall(arguments):
    print("accuracy: NMFClustering, mean of three seeds, with the exact and with the approximate graph")
    for name in SETS:
        X, y = labelled(name)
        # So few samples would be searched exactly: cells as small as those of 50,000 samples.
        approximate.COMPARED, approximate.CELL = max(40, len(X) // 12), max(4, len(X) // 200)
        compare_graphs(f"{name} {len(X)} × {X.shape[1]}, small cells", X, y, len(np.unique(y)))
    approximate.COMPARED, approximate.CELL = 4096, 256
    for make in (clusters, mixtures, blobs):
        for n in (50_000, 100_000) if arguments.long else (50_000,):
            X, y = make(n)
            compare_graphs(f"{make.__name__} {n} × 200", X, y, 20)


def labelled(name):
    data = datasets.load(name)
    return normalize(np.asarray(data.X, dtype=float)), np.unique(data.y, return_inverse=True)[1]


def compare_graphs(name, X, y, k):
    exact, found = timed(find_neighbours, X, 5, "exact"), timed(find_neighbours, X, 5, "approximate")
    share = (found[2].nearest[:, :, None] == exact[2].nearest[:, None, :]).any(axis=1).mean()
    accuracy = {
        way: statistics.mean(
            metrics.clustering_accuracy(y, NMFClustering(k, graph=way, random_state=seed).fit_predict(X))
            for seed in range(3)
        )
        for way in ("exact", "approximate")
    }
    rounds = f"CPU {exact[1]:.1f} → {found[1]:.1f} s"
    print(
        f"{name:40} recall {share:.4f} (it says {found[2].recall:.4f}), {rounds}, "
        f"accuracy {100 * accuracy['exact']:.2f} → {100 * accuracy['approximate']:.2f}",
        flush=True,
    )


def fits(arguments):
    seconds = {}
    for n in arguments.samples:
        wall, cpu, model = timed(LogSparseNMF(20, random_state=0).fit, mixtures(n)[0])
        seconds.setdefault("LogSparseNMF", []).append((wall, cpu))
        zeros = f"{(model.components_ == 0).mean():.0%} zeros in U"
        line(f"LogSparseNMF(20), mixtures {n} × 200", wall, cpu, zeros)
    print_growth(seconds, arguments.samples)
    for n in arguments.documents:
        wall, cpu, model = timed(LogSparseNMF(20, random_state=0).fit, texts(n)[0])
        line(f"LogSparseNMF(20), text {n} × 20,000", wall, cpu)


def growth(arguments):
    seconds = {}
    for n in arguments.samples:
        X, y = clusters(n)
        for model in (NMFClustering(20, random_state=0), GraphNMF(20, random_state=0)):
            name = type(model).__name__
            wall, cpu, _ = timed(model.fit, X)
            seconds.setdefault(name, []).append((wall, cpu))
            right = ""
            if hasattr(model, "labels_"):
                right = f"accuracy {100 * metrics.clustering_accuracy(y, model.labels_):.2f}"
            line(f"{name}(20), dense {n} × 200", wall, cpu, right)
        wall, cpu, _ = timed(knn_graph, X)
        seconds.setdefault("knn_graph", []).append((wall, cpu))
        line(f"of it: graph, {n} × 200", wall, cpu)
    print_growth(seconds, arguments.samples)


def print_growth(seconds, samples):
    span = np.log(samples[-1] / samples[0])
    for name, times in seconds.items() if span > 0 else ():
        powers = np.log(np.divide(times[-1], times[0])) / span
        print(f"{name}: grows like n^{powers[0]:.2f}, CPU n^{powers[1]:.2f}")


def large_text(arguments):
    for n in arguments.documents:
        X, y = texts(n)
        wall, cpu, _ = timed(knn_graph, X)
        line(f"exact graph, text {n} × 20,000", wall, cpu)
        wall, cpu, model = timed(NMFClustering(20, random_state=0, graph=knn_graph(X)).fit, X)
        right = f"accuracy {100 * metrics.clustering_accuracy(y, model.labels_):.2f}"
        line(f"NMFClustering(20) with it, text {n} × 20,000", wall, cpu, right)


SECTIONS = {
    "graph": graph,
    "text": text,
    "recall": recall,
    "fits": fits,
    "growth": growth,
    "texts": large_text,
}

if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument(
        "sections", nargs="*", metavar="section", help=f"of {', '.join(SECTIONS)}; all of them"
    )
    parser.add_argument("--samples", type=int, nargs="+", default=[50_000, 100_000, 200_000])
    parser.add_argument("--documents", type=int, nargs="+", default=[20_000, 100_000])
    parser.add_argument("--long", action="store_true", help="recall also of 100,000 samples")
    given = parser.parse_args()
    unknown = set(given.sections) - set(SECTIONS)
    if unknown:
        parser.error(f"unknown sections {sorted(unknown)}; there are {', '.join(SECTIONS)}")
    for section in given.sections or SECTIONS:
        print(f"— {section}", flush=True)
        SECTIONS[section](given)
