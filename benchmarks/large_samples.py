"""Whether RLS-NMF finds samples much larger than all others, and what they do to the parts.

    OMP_NUM_THREADS=1 python benchmarks/large_samples.py

300 samples of four sparse parts with some noise; 1, 5 or 15 of them are replaced by uniform noise on
[0, magnitude), each its own or all nearly the same ("alike"). Printed over 20 seeds: the share of them that
`is_outlier_` misses, how many other samples it calls outliers, and in how many fits a true part has no found
one within a cosine of 0.95.
"""

import argparse
import warnings

import numpy as np

from lognmf import RobustLogSparseNMF, normalize

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


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seeds", type=int, default=20)
    options = parser.parse_args()
    warnings.simplefilter("ignore", UserWarning)  # norms differ by much: that is the point
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
