"""Planted numbers of components: how often `choose_components` recommends the right one.

    python benchmarks/components.py [--seeds 0,1,2] [--out rows.json]

X = V Uᵀ, 300 × 100, with sparse nonnegative factors (three of ten entries are not zero, gamma distributed)
and one of four kinds of noise, each at several levels:

- gaussian: standard deviation as a share of the root mean square of X, negative entries set to 0;
- poisson: counts with this mean;
- multiplicative: every entry times a lognormal number of this spread;
- outliers: gaussian noise of 0.1, and this share of the entries replaced by uniform ones up to the largest.

ks run from 1 to a quarter more than the planted number and 5. What `choose_components` does was settled on
seeds from 100 on; the figures are of the seeds from 0 on.
"""

from __future__ import annotations

import argparse
import json
import time
import zlib
from pathlib import Path

import numpy as np

from lognmf import choose_components

LEVELS = {
    "gaussian": (0.1, 0.2, 0.4),
    "poisson": (2.0, 10.0, 50.0),
    "multiplicative": (0.2, 0.4),
    "outliers": (0.02, 0.05),
}
PLANTED = (3, 5, 8, 12, 20, 30)
N, P, DENSITY = 300, 100, 0.3


def planted(k: int, noise: str, level: float, seed: int) -> np.ndarray:
    """Data with k components and noise."""
    rng = np.random.default_rng([seed, k, zlib.crc32(noise.encode()), round(1000 * level)])
    V, U = (rng.gamma(2.0, 1.0, (size, k)) * (rng.random((size, k)) < DENSITY) for size in (N, P))
    S = V @ U.T
    size = np.sqrt(np.mean(S**2))
    if noise == "gaussian":
        return np.maximum(S + level * size * rng.standard_normal(S.shape), 0)
    if noise == "poisson":
        return rng.poisson(level * S / S.mean()).astype(float)
    if noise == "multiplicative":
        return S * rng.lognormal(0.0, level, S.shape)
    X = np.maximum(S + 0.1 * size * rng.standard_normal(S.shape), 0)
    return np.where(rng.random(S.shape) < level, rng.uniform(0, S.max(), S.shape), X)


def main() -> None:
    """Print for every kind and level of noise what was recommended."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", default="0,1,2")
    parser.add_argument("--noises", default=",".join(LEVELS))
    parser.add_argument("--out", type=Path)
    args = parser.parse_args()
    seeds = [int(seed) for seed in args.seeds.split(",")]
    print(f"{N} × {P}; recommended for planted k = {', '.join(map(str, PLANTED))}; seeds {args.seeds}")
    kept, right, seconds = [], {}, time.perf_counter()
    for noise in args.noises.split(","):
        for level in LEVELS[noise]:
            found = []
            for seed in seeds:
                for k in PLANTED:
                    ks = range(1, 5 * k // 4 + 6)
                    choice = choose_components(planted(k, noise, level, seed), ks, random_state=seed)
                    found.append(choice.best)
                    kept.append({"noise": noise, "level": level, "planted": k, "seed": seed, **vars(choice)})
            hits = [best == k for best, k in zip(found, PLANTED * len(seeds), strict=True)]
            right.setdefault(noise, []).extend(hits)
            print(f"{noise:15s}{level:6g}  {sum(hits)} of {len(hits)} right: {found}", flush=True)
            if args.out is not None:
                args.out.write_text(json.dumps(kept))
    for noise, hits in right.items():
        print(f"{noise:15s} {np.mean(hits):.1%} of {len(hits)}")
    hits = [hit for group in right.values() for hit in group]
    print(f"{'all':15s} {np.mean(hits):.1%} of {len(hits)}, {time.perf_counter() - seconds:.0f} s")


if __name__ == "__main__":
    main()
