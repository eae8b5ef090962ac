"""Entries filled by `impute`, against means, neighbours and the codes of `transform`.

A fifth of the entries of every data set is removed; errors of the filled ones are divided by their standard
deviation. Run it as ``LOGNMF_DATA=… python benchmarks/imputing.py``.
"""

import warnings

import numpy as np
from sklearn.datasets import load_digits
from sklearn.impute import KNNImputer, SimpleImputer

from lognmf import LogSparseNMF, WeightedNMF, datasets

SETS = {"coil20": (6, 12), "orl": (2, 12), "eyaleb": (8, 10)}
"""Every so many samples, and the number of parts."""


def error(filled: np.ndarray, X: np.ndarray, missing: np.ndarray) -> float:
    """Root mean square error of filled entries over their standard deviation."""
    return float(np.sqrt(np.mean((filled - X)[missing] ** 2)) / X[missing].std())


def main() -> None:
    """Print a row per data set."""
    warnings.simplefilter("ignore")  # some fits end after max_iter
    samples = {"digits": (load_digits().data[:500] / 16, 16)}
    for name, (step, k) in SETS.items():
        samples[name] = np.asarray(datasets.load(name).X, dtype=float)[::step, ::4], k
    print("data  mean  5-neighbours  WNMF  by-transform  LS-NMF  by-transform")
    for name, (X, k) in samples.items():
        missing = np.random.default_rng(1).random(X.shape) < 0.2
        holes = np.where(missing, np.nan, X)
        filled = [
            imputer.fit_transform(holes)
            for imputer in (SimpleImputer(keep_empty_features=True), KNNImputer(keep_empty_features=True))
        ]
        for model in (WeightedNMF(k, random_state=0), LogSparseNMF(k)):
            model.fit(holes)
            filled += [model.impute(holes), model.inverse_transform(model.transform(holes))]
        print(name, X.shape, *(f"{error(one, X, missing):.3f}" for one in filled))


if __name__ == "__main__":
    main()
