"""Clusters and their number: small, uneven and many groups, noise, tables, texts, and the paper's sets.

    LOGNMF_DATA=… python benchmarks/clusters.py [small] [uneven] [blobs] [noise] [tables] [texts] [sets]

Every line says how often `NMFClustering` was right. Labels only judge.
"""

import argparse
import time

import numpy as np
from scipy.spatial.distance import pdist
from sklearn.datasets import load_breast_cancer, load_iris, load_wine
from sklearn.preprocessing import minmax_scale

import data
from clustering import news, percent
from lognmf import NMFClustering, knn_graph, normalize
from lognmf.core.data import InMemory
from lognmf.models.starts import spectral


def groups(rng):
    """4 to 11 groups of 3 to 5 samples, whose centres are 4 to 10 standard deviations of a group apart."""
    sizes = rng.integers(3, 6, rng.integers(4, 12))
    p = int(rng.choice([4, 10, 30, 100]))
    centres, y = 10 * rng.random((len(sizes), p)), np.repeat(np.arange(len(sizes)), sizes)
    spread = pdist(centres).min() / np.sqrt(p) / rng.choice([4, 6, 10])
    return np.abs(centres[y] + spread * rng.standard_normal((len(y), p))), y


def two_groups(rng, few):
    """1000 samples, and a few that are 16 standard deviations away."""
    p = int(rng.choice([2, 5, 20]))
    towards = normalize(rng.standard_normal((1, p)))
    y = np.repeat([0, 1], [1000, few])
    X = rng.standard_normal((len(y), p)) + 16 * y[:, None] * towards
    return X - X.min(), y


def far_blobs(rng, n, k):
    """Uniform blobs far apart."""
    p = int(rng.choice([5, 10, 20]))
    return 100 * rng.random((k, p))[rng.permutation(np.arange(n) % k)] + rng.random((n, p))


def penguins(rng):
    """Samples like the penguins of Palmer station: three species, four correlated measures."""
    means = [[38.8, 18.3, 190, 3700], [48.8, 18.4, 196, 3733], [47.5, 15.0, 217, 5076]]
    spreads = [[2.7, 1.2, 6.5, 459], [3.3, 1.1, 7.1, 384], [3.1, 1.0, 6.5, 504]]
    y = np.repeat(range(3), [151, 68, 123])
    noise = 0.75 * rng.standard_normal((len(y), 4)) + 0.66 * rng.standard_normal((len(y), 1))
    return np.array(means)[y] + np.array(spreads)[y] * noise


def right(X, y):
    return percent(y, NMFClustering(int(y.max()) + 1, random_state=0).fit(X).labels_) == 100


def chosen(X):
    return NMFClustering("auto", random_state=0).fit(X).n_clusters_


def line(name, found, bar):
    print(f"{name:52}{found:>14} | {bar}", flush=True)


def small(draws):
    found = [right(*groups(np.random.default_rng(seed))) for seed in range(draws)]
    line(f"groups of 3 to 5 samples, {draws} draws", f"{100 * np.mean(found):.0f} %", ">= 99 %")


def uneven(draws):
    sizes = [5, 10, 20, 50, 75, 100]
    found = [right(*two_groups(np.random.default_rng(i), sizes[i % 6])) for i in range(draws)]
    line(f"two groups 1000 : b, b = 5 … 100, {draws} draws", f"{sum(found)} of {draws}", "all")


def blobs(draws):
    cases = [(n, k) for n in (500, 1900, 2500, 20_000) for k in (5, 20, 40)]
    found = []
    for seed in range(draws):
        n, k = cases[seed % len(cases)]
        found.append(chosen(far_blobs(np.random.default_rng(seed), n, k)) == k)
    line(f'far blobs, n = 500 … 20,000, "auto", {draws} draws', f"{sum(found)} of {draws}", ">= 98 %")


def noise(draws):
    found = []
    for seed in range(draws):
        rng = np.random.default_rng(seed)
        size = (int(rng.choice([150, 400])), int(rng.choice([2, 5, 20])))
        found.append(chosen(rng.random(size) if seed % 2 else rng.standard_normal(size) + 10))
    line(f'uniform and Gaussian clouds, "auto", {draws} draws', f"{found.count(1)} of {draws}", "all 1")


def tables(draws):
    rng = np.random.default_rng(0)
    sets = {"iris": (load_iris().data, 3), "wine": (load_wine().data, 3)}
    sets |= {"breast cancer": (load_breast_cancer().data, 2), "penguins, simulated": (penguins(rng), 3)}
    for name, (X, k) in sets.items():
        found = [chosen(minmax_scale(X)), chosen(X)]
        line(f'{name}, {k} classes, "auto"', f"{found[0]}; raw {found[1]}", "off by one")
    line('4 samples, 50 copies each, "auto"', chosen(np.repeat(rng.random((4, 6)), 50, axis=0)), "4")


def texts(draws):
    X, y = news()
    found = [chosen(X[(y == a) | (y == b)]) for a, b in ((0, 3), (1, 2), (3, 4))]
    line('two topics of the BBC news, "auto"', " ".join(map(str, found)), "<= 4")


def sets(draws):
    X, y = news()
    line("BBC news, percent", f"{percent(y, NMFClustering(5, random_state=0).fit(X).labels_):.1f}", ">= 95")
    means = []
    for name in data.READERS:
        X, y = data.load(name)
        found = [
            percent(y, NMFClustering(int(y.max()) + 1, random_state=seed).fit(X).labels_) for seed in range(5)
        ]
        means.append(np.mean(found))
        line(f"  {name}, five seeds, percent", f"{means[-1]:.1f}", "")
    line("mean of the eight sets", f"{np.mean(means):.1f}", ">= 65.0")


def speed(draws):
    X = data.load("COIL20")[0]
    seconds = [[], []]
    for _ in range(5):
        for one, own in zip(
            (
                lambda: spectral(InMemory(X), 20, np.random.RandomState(0), knn_graph(X)),
                lambda: NMFClustering(20, random_state=0).fit(X),
            ),
            seconds,
            strict=True,
        ):
            start = time.process_time()
            one()
            own.append(time.process_time() - start)
    start, whole = map(min, seconds)
    line("COIL20: CPU time of NMFClustering / (graph and start)", f"{whole / start:.1f}", "<= 3")


PARTS = {part.__name__: part for part in (small, uneven, blobs, noise, tables, texts, sets, speed)}
DRAWS = {"small": 100, "uneven": 60, "blobs": 60, "noise": 20}

if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("parts", nargs="*", help=f"some of {', '.join(PARTS)}; default: all")
    parser.add_argument("--draws", type=int, help="fewer draws of each kind")
    options = parser.parse_args()
    for part in options.parts or PARTS:
        PARTS[part](options.draws or DRAWS.get(part, 1))
