"""Whether `RobustLogSparseNMF` finds damaged samples and learns nothing from them.

    LOGNMF_DATA=… OMP_NUM_THREADS=1 python benchmarks/robust.py

A tenth of the samples is damaged in four ways: a block of a quarter of the features, a mix with a shuffled
other sample, salt and pepper on 30 % of the features, features reversed. At most 200 samples and 10 classes
of a set. The rules were chosen on the first sets; the others took no part.

Finding: area under the ROC curve of `score_samples`, beside scikit-learn's IsolationForest and
LocalOutlierFactor, the mean distance to five neighbours and the residual of LS-NMF; F1 of `is_outlier_`,
and of the best threshold in hindsight.
Parts: squared error of the clean samples with parts learnt with the damage, over that with parts learnt
without, beside LS-NMF's.
Clean: 200 draws of five kinds of odd data: models with a part of zeros or 1.25 times the error of LS-NMF, and
draws of which more than 15 % are called outliers.
"""

import argparse
import warnings

import numpy as np
from scipy.optimize import nnls
from sklearn.ensemble import IsolationForest
from sklearn.metrics import f1_score, roc_auc_score
from sklearn.neighbors import LocalOutlierFactor, NearestNeighbors

import data
from lognmf import LogSparseNMF, RobustLogSparseNMF, normalize

SEEN = ("ORL", "Semeion", "Jaffe", "Yale", "COIL20", "Pendigits")
"""Sets on which the rules were chosen."""

UNSEEN = ("AR", "EYaleB", "digits", "wine", "cancer")
MOST, CLASSES, SHARE = 200, 10, 0.1


def block(x, other, rng):
    """A quarter of the features, side by side, at the largest value."""
    begin, x = rng.integers(len(x) - len(x) // 4 + 1), x.copy()
    x[begin : begin + len(x) // 4] = x.max()
    return x


def salt(x, other, rng):
    """30 % of the features are 0 or the largest value."""
    return np.where(rng.random(len(x)) < 0.3, x.max() * rng.integers(2, size=len(x)), x)


def mixed(x, other, rng):
    """The mean with a shuffled other sample."""
    return (x + rng.permutation(other)) / 2


def reverse(x, other, rng):
    """Features reversed."""
    return x[::-1]


DAMAGES = {"block": block, "mixed": mixed, "salt": salt, "reversed": reverse}


def some(name):
    """Samples of a set, and the number of their classes."""
    X, y = data.load(name)
    few = np.flatnonzero(np.isin(y, np.unique(y)[:CLASSES]))
    few = np.sort(np.random.default_rng(0).permutation(few)[:MOST])
    return X[few], len(np.unique(y[few]))


def damaged(X, damage, seed):
    """Samples of unit norm, some of them damaged, and which."""
    rng = np.random.default_rng(seed)
    bad = np.zeros(len(X), dtype=bool)
    bad[rng.permutation(len(X))[: round(SHARE * len(X))]] = True
    Z = X.copy()
    for i in np.flatnonzero(bad):
        Z[i] = damage(X[i], X[rng.integers(len(X))], rng)
    return normalize(Z), bad


def error(parts, X):
    """Squared error of samples that are described by parts."""
    return sum(nnls(parts.T, x)[1] ** 2 for x in X)


def best_f1(bad, unusual):
    hits = np.cumsum(bad[np.argsort(-unusual)])
    return (2 * hits / (np.arange(1, len(bad) + 1) + bad.sum())).max()


def row(X, k, damage, seed):
    """What is found of one kind of damage, by every method."""
    Z, bad = damaged(X, damage, seed)
    model = RobustLogSparseNMF(k, random_state=0).fit(Z)
    plain = LogSparseNMF(k, random_state=0).fit(Z)
    unusual = {
        "ours": -model.score_samples(Z, model.embedding_),
        "neighbours": NearestNeighbors(n_neighbors=5).fit(Z).kneighbors()[0].mean(axis=1),
        "forest": -IsolationForest(random_state=0).fit(Z).score_samples(Z),
        "LOF": -LocalOutlierFactor().fit(Z).negative_outlier_factor_,
        "residual": np.linalg.norm(Z - plain.embedding_ @ plain.components_, axis=1),
    }
    areas = {name: roc_auc_score(bad, values) for name, values in unusual.items()}
    clean = [kind(k, random_state=0).fit(X[~bad]) for kind in (RobustLogSparseNMF, LogSparseNMF)]
    learnt, without = ([error(m.components_, X[~bad]) for m in pair] for pair in ((model, plain), clean))
    found = {"F1": f1_score(bad, model.is_outlier_), "best F1": best_f1(bad, unusual["ours"])}
    return areas | found | {"parts": learnt[0] / without[0], "LS-NMF's": learnt[1] / without[1]}


def finding(title, names, seeds):
    rows = {}
    for name in names:
        X, k = some(name)
        for kind, damage in DAMAGES.items():
            rows |= {(name, kind, seed): row(X, k, damage, seed) for seed in seeds}
    columns = list(next(iter(rows.values())))
    print(f"\n{title}: {', '.join(names)}\n{'':10s}" + "".join(f"{column:>11s}" for column in columns))
    for group in [*DAMAGES, "all"]:
        mean = [np.mean([r[c] for key, r in rows.items() if group in (key[1], "all")]) for c in columns]
        print(f"{group:10s}" + "".join(f"{value:11.3f}" for value in mean), flush=True)


def baskets(rng):
    n, p = rng.integers(120, 300), rng.integers(16, 40)
    tastes = rng.dirichlet(np.full(p, 0.15), size=5)
    return np.array([rng.multinomial(rng.integers(2, 9), tastes[rng.integers(5)]) for _ in range(n)]), 5


def texts(rng):
    n, p, k = rng.integers(150, 300), rng.integers(150, 400), rng.integers(4, 9)
    common = 1 / np.arange(1, p + 1) ** 1.1
    topics = np.array([common[rng.permutation(p)] * rng.gamma(0.3, size=p) for _ in range(k)])
    topics /= topics.sum(axis=1, keepdims=True)
    lengths = 3 + rng.lognormal(4, 0.7, size=n).astype(int)
    X = np.array([rng.multinomial(m, rng.dirichlet(np.full(k, 0.2)) @ topics) for m in lengths])
    X = X[:, X.any(axis=0)]
    return X * (1 + np.log(n / (X > 0).sum(axis=0))), k


def one_hot(rng):
    kinds, columns = rng.integers(4, size=rng.integers(150, 350)), []
    for _ in range(rng.integers(4, 9)):
        size = rng.integers(2, 7)
        shares = rng.dirichlet(np.full(size, 0.5), size=4)
        columns.append(np.eye(size)[[rng.choice(size, p=shares[kind]) for kind in kinds]])
    X = np.hstack(columns)
    return X[:, X.any(axis=0)], rng.integers(3, 7)


def binary(rng):
    n, p, k = rng.integers(150, 350), rng.integers(30, 90), rng.integers(3, 7)
    X = np.eye(k)[:, np.sort(rng.integers(k, size=p))][rng.integers(k, size=n)]
    return np.abs(X - (rng.random(X.shape) < 0.02)), k


def continuous(rng):
    n, p, k = rng.integers(150, 350), rng.integers(20, 100), rng.integers(3, 8)
    parts = rng.gamma(1.0, size=(k, p)) * (rng.random((k, p)) < 0.4)
    return rng.gamma(0.7, size=(n, k)) @ parts + 0.05 * rng.random((n, p)), k


def clean(draws):
    print("\nclean draws: kind, spoilt models, draws with > 15 % outliers, mean share of outliers")
    for kind in (baskets, texts, one_hot, binary, continuous):
        spoilt, called = 0, []
        for seed in range(draws):
            X, k = kind(np.random.default_rng(1000 + seed))
            X, k = normalize(X[X.any(axis=1)].astype(float)), int(k)
            ours, plain = (m(k, random_state=0).fit(X) for m in (RobustLogSparseNMF, LogSparseNMF))
            empty = not ours.components_.any(axis=1).all() and plain.components_.any(axis=1).all()
            spoilt += empty or ours.reconstruction_err_ > 1.25 * plain.reconstruction_err_ + 1e-3
            called.append(ours.is_outlier_.mean())
        many = np.sum(np.array(called) > 0.15)
        print(f"{kind.__name__:10s} {spoilt:4d} {many:4d} {np.mean(called):7.3f}", flush=True)


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seeds", type=int, nargs="+", default=[7])
    parser.add_argument("--draws", type=int, default=40, help="of each kind of clean data")
    parser.add_argument("--only", nargs="+", default=["clean", "seen", "unseen"])
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    if "clean" in options.only:
        clean(options.draws)
    if "seen" in options.only:
        finding("data by which the rules were chosen", SEEN, options.seeds)
    if "unseen" in options.only:
        finding("data that took no part", UNSEEN, options.seeds)


if __name__ == "__main__":
    main()
