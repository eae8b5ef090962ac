"""What the default estimators find: sparse parts, units that do not matter, outliers, spectra.

    LOGNMF_DATA=… OMP_NUM_THREADS=1 python benchmarks/decomposition.py

Sparsity: `LogSparseNMF(k)` against scikit-learn's `NMF(k)` on samples of unit norm: zeros and Hoyer's
sparseness of the parts, and the ratio of the errors; CPU seconds of both.
Units: `fit(c * X)` for c from 1e-6 to 1e6, all models: the largest difference of the parts, and of the codes
divided by c, relative to the largest entry.
Outliers: the share of samples that `RobustLogSparseNMF(k)` calls outliers on the data as they are. Then a
tenth of the samples is damaged (replaced by uniform noise, or with shuffled features): area under the ROC
curve of `residual_norm_`, F1 of those called outliers, and the F1 of the best threshold, chosen by the truth.
Spectra: the Samson picture, three parts against the true spectra: mean angle.
"""

import argparse
import os
import pathlib
import time
import warnings

import numpy as np
import scipy.io
from scipy.optimize import linear_sum_assignment
from sklearn.decomposition import NMF
from sklearn.metrics import f1_score, roc_auc_score
from sklearn.preprocessing import normalize

import data
from lognmf import MODELS, LogSparseNMF, RobustLogSparseNMF
from lognmf.metrics import hoyer_sparseness
from solver import SETS

warnings.filterwarnings("ignore", category=UserWarning)  # convergence is shown as a column

DAMAGES = {
    "noise": lambda x, rng: rng.random(len(x)) * x.max(),
    "shuffled": lambda x, rng: rng.permutation(x),
}
DAMAGED = 0.1


def damaged(X, damage, rng):
    """The samples with some of them damaged, scaled to unit norm again, and which ones are damaged."""
    bad = rng.random(len(X)) < DAMAGED
    X = X.copy()
    X[bad] = [damage(x, rng) for x in X[bad]]
    return normalize(X), bad


def sparsity(names):
    print("set        zeros (sklearn)  Hoyer (sklearn)  error/sklearn  alpha_     CPU s (sklearn)  ended")
    for name in names:
        X, y = data.load(name)
        k = len(np.unique(y))
        began = time.process_time()
        theirs = NMF(k, max_iter=1000, random_state=0).fit(X)
        middle = time.process_time()
        ours = LogSparseNMF(k, random_state=0).fit(X)
        seconds = time.process_time() - middle, middle - began
        zeros = [np.mean(model.components_ == 0) for model in (ours, theirs)]
        hoyer = [hoyer_sparseness(model.components_) for model in (ours, theirs)]
        ratio = ours.reconstruction_err_ / theirs.reconstruction_err_
        print(
            f"{name:10s} {zeros[0]:5.1%} ({zeros[1]:5.1%})   {hoyer[0]:.3f} ({hoyer[1]:.3f})    {ratio:.4f}"
            f"         {ours.alpha_:<9.3g}  {seconds[0]:.1f} ({seconds[1]:.1f})  {ours.stop_reason_}",
            flush=True,
        )


def units(names):
    for name in names:
        X, y = data.load(name)
        k = len(np.unique(y))
        for label, model in MODELS.items():
            first = model(k, random_state=0).fit(X)
            worst = 0.0
            for c in (1e-6, 1e-3, 7.0, 1e6):
                other = model(k, random_state=0).fit(c * X)
                scales = (
                    (c, 1.0) if other.spec.basis_has_unit or "scale" not in other.get_params() else (1.0, c)
                )
                for F, G, scale in zip(
                    (first.components_, first.embedding_),
                    (other.components_, other.embedding_),
                    scales,
                    strict=True,
                ):
                    worst = max(worst, float(np.abs(G / scale - F).max() / np.abs(F).max()))
            print(f"units, {name}, {label}: largest difference {worst:.1e}", flush=True)


def outliers(names, seeds):
    for name in names:
        X, y = data.load(name)
        k = len(np.unique(y))
        model = RobustLogSparseNMF(k, random_state=0).fit(X)
        print(f"outliers, {name}: {model.is_outlier_.mean():.1%} of the clean samples", flush=True)
        for kind, damage in DAMAGES.items():
            rows = []
            for seed in seeds:
                Z, bad = damaged(X, damage, np.random.default_rng(seed))
                model = RobustLogSparseNMF(k, random_state=0).fit(Z)
                order = np.argsort(-model.residual_norm_)
                hits = np.cumsum(bad[order])
                best = (2 * hits / (np.arange(1, len(bad) + 1) + bad.sum())).max()
                rows.append(
                    [roc_auc_score(bad, model.residual_norm_), f1_score(bad, model.is_outlier_), best]
                )
            area, found, best = np.mean(rows, axis=0)
            print(
                f"outliers, {name}, {kind}: ROC area {area:.3f}, F1 {found:.3f}, best threshold {best:.3f}",
                flush=True,
            )


def spectra():
    content = scipy.io.loadmat(pathlib.Path(os.environ["LOGNMF_DATA"]) / "more" / "samson.mat")
    X, truth = content["Y"].T.astype(float), content["GT"].astype(float)
    for label, model in {
        "LogSparseNMF(3)": LogSparseNMF(3, random_state=0),
        "RobustLogSparseNMF(3)": RobustLogSparseNMF(3, random_state=0),
        "scikit-learn NMF(3)": NMF(3, max_iter=1000, random_state=0),
    }.items():
        parts = model.fit(X).components_
        cosines = (parts @ truth.T) / np.outer(np.linalg.norm(parts, axis=1), np.linalg.norm(truth, axis=1))
        angles = np.arccos(np.clip(cosines, -1, 1))
        print(
            f"Samson, {label}: mean angle {angles[linear_sum_assignment(angles)].mean():.3f} rad", flush=True
        )


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", nargs="+", default=SETS, choices=SETS)
    parser.add_argument("--seeds", type=int, nargs="+", default=range(3))
    parser.add_argument("--only", nargs="+", default=["sparsity", "units", "outliers", "spectra"])
    options = parser.parse_args()
    if "sparsity" in options.only:
        sparsity(options.data)
    if "units" in options.only:
        units([name for name in options.data if name in ("Yale", "Jaffe")])
    if "outliers" in options.only:
        outliers(options.data, options.seeds)
    if "spectra" in options.only:
        spectra()


if __name__ == "__main__":
    main()
