"""What weights chosen from the data give: sparse parts, pure spectra, cells, and what their choice costs.

    LOGNMF_DATA=… OMP_NUM_THREADS=1 python benchmarks/weights.py

Sparsity: `LogSparseNMF(k)` against scikit-learn's `NMF(k)` on samples of unit norm: zeros and Hoyer's
sparseness of the parts, and the ratio of the errors; CPU seconds of both.
Units: `fit(c * X)` for c from 1e-6 to 1e6, all models: the largest difference of the parts, and of the codes
divided by c, relative to the largest entry.
Spectra: pictures whose spectra are known: mean angle to them, of samples as they are and of unit norm.
Cells: blood cells, parts of which one is of a rare type.
Cost: CPU seconds of the default, in units of those without weights.
"""

import argparse
import os
import pathlib
import time
import warnings

import h5py
import numpy as np
import scipy.io
import scipy.sparse as sp
from scipy.optimize import linear_sum_assignment
from sklearn.decomposition import NMF
from sklearn.metrics import roc_auc_score
from sklearn.preprocessing import normalize

import data
from lognmf import MODELS, LogSparseNMF, RobustLogSparseNMF
from lognmf.metrics import hoyer_sparseness
from solver import SETS

warnings.filterwarnings("ignore", category=UserWarning)  # convergence is shown as a column

FOLDER = pathlib.Path(os.environ.get("LOGNMF_DATA", ".")) / "more"


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


def angle(parts, truth):
    """Mean angle between true spectra and the parts that match them best."""
    cosines = normalize(parts) @ normalize(truth).T
    angles = np.arccos(np.clip(cosines, -1, 1))
    return angles[linear_sum_assignment(angles)].mean()


def spectra(paths):
    for path in paths:
        content = scipy.io.loadmat(path)
        raw, truth = content["Y"].T.astype(float), content["GT"].astype(float)
        k = len(truth)
        for kind, X in (("raw", raw), ("unit norm", normalize(raw))):
            ours = LogSparseNMF(k, random_state=0).fit(X)
            theirs = NMF(k, max_iter=1000, random_state=0).fit(X)
            print(
                f"spectra, {pathlib.Path(path).stem}, {kind}: {angle(ours.components_, truth):.3f} rad, "
                f"scikit-learn {angle(theirs.components_, truth):.3f}",
                flush=True,
            )


def cells(folder):
    with h5py.File(folder / "pbmc68k_reduced.h5ad") as file:
        parts, kinds = file["raw.X"], file["obs"]["bulk_labels"]
        X = sp.csr_array((parts["data"][:], parts["indices"][:], parts["indptr"][:]))
    print("cells, k = 9: genes of the smallest part, mean of the best ROC area of every cell type")
    for label, weights in {"plain": {"alpha": 0, "beta": 0}, "default": {}}.items():
        model = LogSparseNMF(9, random_state=0, **weights).fit(normalize(X.toarray().astype(float)))
        U, V = model.components_, model.embedding_
        genes = (U.max(axis=1, keepdims=True) * 0.1 < U).sum(axis=1).min()
        areas = [max(roc_auc_score(kinds == kind, v) for v in V.T) for kind in np.unique(kinds)]
        print(f"  {label}: {genes}, {np.mean(areas):.3f}", flush=True)


def made(n, rng):
    """Samples of 20 parts with 200 features, some noise."""
    parts = rng.gamma(1.0, size=(20, 200)) * (rng.random((20, 200)) < 0.3)
    codes = rng.gamma(0.5, size=(n, 20)) * (rng.random((n, 20)) < 0.4)
    return normalize(codes @ parts + 0.1 * rng.random((n, 200)))


def seconds(model, X):
    began = time.process_time()
    model.fit(X)
    return time.process_time() - began


def cost(sizes):
    print("cost: CPU seconds of a fit without weights, and those of the default in units of them")
    none = {"alpha": 0.0, "beta": 0.0, "random_state": 0}
    for n in sizes:
        rng = np.random.default_rng(0)
        X = made(n, rng)
        kinds = {
            "dense": (LogSparseNMF, X, {}),
            "robust": (RobustLogSparseNMF, X, {}),
            "sparse": (LogSparseNMF, sp.csr_array(X * (rng.random(X.shape) < 0.1)), {}),
            "KL": (LogSparseNMF, rng.poisson(20 * X).astype(float), {"loss": "kullback-leibler"}),
            "20 % NaN": (LogSparseNMF, np.where(rng.random(X.shape) < 0.2, np.nan, X), {}),
        }
        for kind, (model, Y, options) in kinds.items():
            without = none | ({"gamma": 1e8} if model is RobustLogSparseNMF else {})
            plain = seconds(model(20, **without, **options), Y)
            ratio = seconds(model(20, random_state=0, **options), Y) / plain
            print(f"  {n:7d} {kind:9s} {plain:7.1f} {ratio:6.1f}", flush=True)


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", nargs="+", default=SETS, choices=SETS)
    parser.add_argument("--spectra", nargs="+", default=[FOLDER / "samson.mat"], help=".mat with Y and GT")
    parser.add_argument("--sizes", type=int, nargs="+", default=[500, 5000, 20000])
    parser.add_argument("--only", nargs="+", default=["sparsity", "units", "spectra", "cells", "cost"])
    options = parser.parse_args()
    if "sparsity" in options.only:
        sparsity(options.data)
    if "units" in options.only:
        units([name for name in options.data if name in ("Yale", "Jaffe")])
    if "spectra" in options.only:
        spectra(options.spectra)
    if "cells" in options.only:
        cells(FOLDER)
    if "cost" in options.only:
        cost(options.sizes)


if __name__ == "__main__":
    main()
