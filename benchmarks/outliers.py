"""Whether RLS-NMF finds damaged samples, with the default and as it was before.

    LOGNMF_DATA=… OMP_NUM_THREADS=1 python benchmarks/outliers.py

A tenth of the samples is damaged: replaced by uniform noise, or its features shuffled. Then all samples
are scaled to unit norm again. The area under the ROC curve of `residual_norm_`, mean over the seeds:
1 means that all damaged samples fit worse than all others, 0.5 that it tells nothing.
"""

import argparse

import numpy as np
from sklearn.metrics import roc_auc_score
from sklearn.preprocessing import normalize

import data
from lognmf import RobustLogSparseNMF
from lognmf.paper.methods import PINNED
from solver import SETS

DAMAGES = {
    "noise": lambda x, rng: rng.random(len(x)) * x.max(),
    "shuffled": lambda x, rng: rng.permutation(x),
}
DAMAGED = 0.1


def damaged(X, damage, rng):
    """The samples, some of them damaged, and which."""
    bad = rng.random(len(X)) < DAMAGED
    X = X.copy()
    X[bad] = [damage(x, rng) for x in X[bad]]
    return normalize(X), bad


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", nargs="+", default=SETS, choices=SETS)
    parser.add_argument("--seeds", type=int, nargs="+", default=range(3))
    options = parser.parse_args()
    for kind, damage in DAMAGES.items():
        for name in options.data:
            X, y = data.load(name)
            found = []
            for seed in options.seeds:
                Z, bad = damaged(X, damage, np.random.default_rng(seed))
                models = [
                    RobustLogSparseNMF(len(np.unique(y)), random_state=seed, **parameters)
                    for parameters in ({}, PINNED["RLS-NMF"])
                ]
                found.append([roc_auc_score(bad, model.fit(Z).residual_norm_) for model in models])
            now, then = np.mean(found, axis=0)
            print(f"{kind}, {name}: {now:.3f} (before {then:.3f})", flush=True)


if __name__ == "__main__":
    main()
