"""Whether RLS-NMF finds samples much larger than all others, and what they do to the parts.

    OMP_NUM_THREADS=1 python benchmarks/large_samples.py
    OMP_NUM_THREADS=1 LOGNMF_DATA=… python benchmarks/large_samples.py --data digits jaffe yale

With --without, large samples are not scaled down where a fit begins: what is found then.

300 samples of four sparse parts with some noise; 1, 5 or 15 of them are replaced by uniform noise on
[0, magnitude), each its own or all nearly the same ("alike"). Printed over 20 seeds: the share of them that
`is_outlier_` misses, how many other samples it calls outliers, and in how many fits a true part has no found
one within a cosine of 0.95.

--data: at most 600 raw samples of a set and 15 components. One sample or 5 % are replaced by noise or
shuffled, at 5 and 20 times the median norm, two seeds. Printed are the means of all: the share of these that
is found, the share of the others that is called an outlier, and by how much the median residual of the others
is larger than without damage.
"""

import argparse
import warnings
from itertools import product

import numpy as np

from lognmf import RobustLogSparseNMF, datasets, normalize
from lognmf.models import robust_log_sparse

MAGNITUDES = (5, 10, 20, 50, 200)
"""The median norm of the other samples is about 3.7, that of the noise 3.2 times the magnitude."""

CASES = ((1, False), (5, False), (15, False), (5, True), (15, True))
N, P, K = 300, 30, 4


def made(seed, magnitude, count, alike):
    """Samples, the true parts, and which samples are outliers."""
    rng = np.random.default_rng(seed)
    parts = rng.random((K, P)) * (rng.random((K, P)) < 0.5)
    X = rng.random((N, K)) @ parts + 0.02 * rng.random((N, P))
    bad = np.zeros(N, dtype=bool)
    bad[rng.choice(N, count, replace=False) if count > 1 else 7] = True
    noise = rng.random(P) + 0.05 * rng.random((count, P)) if alike else rng.random((count, P))
    X[bad] = magnitude * noise
    return X, parts, bad


def some(name):
    """Raw samples of a set, at most 600, and a number of components, at most 15."""
    found = datasets.load(name)
    X = np.asarray(found.X.toarray() if hasattr(found.X, "toarray") else found.X, dtype=float)
    kept = np.sort(np.random.default_rng(0).permutation(len(X))[:600])
    return X[kept], min(len(np.unique(found.y[kept])), 15)


def replaced(X, norm, count, kind, seed):
    """Samples of which ``count`` are noise or shuffled, of this norm, and which these are."""
    rng = np.random.default_rng(seed)
    bad = np.zeros(len(X), dtype=bool)
    bad[rng.choice(len(X), count, replace=False)] = True
    Z = X.copy()
    for i in np.flatnonzero(bad):
        z = rng.random(X.shape[1]) if kind == "noise" else rng.permutation(X[i])
        Z[i] = norm * z / np.linalg.norm(z)
    return Z, bad


def damaged_sets(names):
    """A line per data set."""
    print("set        found  others called  residuals of the others")
    for name in names:
        X, k = some(name)
        norms = np.linalg.norm(X, axis=1)
        clean = np.median(RobustLogSparseNMF(k, random_state=0).fit(X).residual_norm_ / norms)
        cases = product(("noise", "shuffled"), (1, int(0.05 * len(X))), (5, 20), range(2))
        rows = []
        for kind, count, times, seed in cases:
            Z, bad = replaced(X, times * np.median(norms), count, kind, seed)
            model = RobustLogSparseNMF(k, random_state=0).fit(Z)
            found = model.is_outlier_
            left = np.median(model.residual_norm_[~bad] / norms[~bad])
            rows.append((found[bad].mean(), found[~bad].mean(), left / clean - 1))
        print("{:10s} {:5.2f}  {:13.1%}  {:+.0%}".format(name, *np.mean(rows, axis=0)), flush=True)


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--data", nargs="+", help="data sets by name")
    parser.add_argument("--without", action="store_true", help="do not scale large samples down")
    options = parser.parse_args()
    warnings.simplefilter("ignore", UserWarning)  # norms differ by much: that is the point
    if options.without:
        robust_log_sparse.limited = lambda _: None
    if options.data:
        damaged_sets(options.data)
        return
    print("outliers  magnitude  missed  others called  fits with spoiled parts")
    for count, alike in CASES:
        for magnitude in MAGNITUDES:
            rows = []
            for seed in range(options.seeds):
                X, parts, bad = made(seed, magnitude, count, alike)
                model = RobustLogSparseNMF(K, random_state=0).fit(X)
                nearest = (normalize(parts) @ normalize(model.components_).T).max(axis=1).min()
                found = model.is_outlier_
                rows.append(((bad & ~found).sum() / count, (found & ~bad).sum(), nearest < 0.95))
            missed, called, spoiled = np.array(rows, dtype=float).T
            print(
                f"{count:2d} {'alike' if alike else '     '}  {magnitude:9d}  {missed.mean():6.0%}  "
                f"{called.sum():13.0f}  {spoiled.sum():.0f} of {options.seeds}",
                flush=True,
            )


if __name__ == "__main__":
    main()
