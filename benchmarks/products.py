"""Sparse products, transform, threads: every ratio against its floor, in one run.

    LOGNMF_DATA=… python benchmarks/products.py [sparse] [transform] [error] [busy]

- sparse: a fit of sparse X with one thread and with all, one after the other, several times.
- transform: codes of 10,000 samples, scikit-learn's seconds over ours.
- error: plain NMF, seconds to 0.1 % above the error at which scikit-learn's coordinate descent ends, the
  starts included; and those of R's RcppML (Debian: r-cran-rcppml), from a random start, where it is there,
  against ours from both starts.
- busy: 15 iterations of 20,000 × 200 while other processes use all cores, threads against one.

Best wall seconds of several, CPU seconds in brackets. Compiling (once per machine) is not counted.
"""

import argparse
import multiprocessing
import os
import shutil
import subprocess
import tempfile
import time
import warnings
from functools import partial
from pathlib import Path

import numpy as np
import scipy.sparse as sp
from sklearn.decomposition import NMF
from sklearn.exceptions import ConvergenceWarning

from lognmf import LogSparseNMF, PlainNMF, datasets, normalize

K = 20
CORES = len(os.sched_getaffinity(0))


def seconds(function):
    """Wall and CPU seconds."""
    wall, cpu = time.perf_counter(), time.process_time()
    function()
    return time.perf_counter() - wall, time.process_time() - cpu


def best(functions, times=4):
    """The best seconds of every function; they take turns, since others may use the machine."""
    rounds = [[seconds(function) for function in functions] for _ in range(times)]
    return [min(own) for own in zip(*rounds, strict=True)]


def with_threads(count, function):
    """``function`` with so many of our own threads."""

    def limited():
        before = os.environ.get("OMP_NUM_THREADS")
        os.environ["OMP_NUM_THREADS"] = str(count)
        try:
            return function()
        finally:
            os.environ.pop("OMP_NUM_THREADS")
            if before is not None:
                os.environ["OMP_NUM_THREADS"] = before

    return limited


def line(name, floor, ratio, *measured):
    told = "  ".join(f"{label} {wall:.3f} s ({cpu:.3f})" for label, (wall, cpu) in measured)
    print(f"{name:44} {ratio:6.2f}  floor {floor:3.1f}  {'ok' if ratio >= floor else 'MISSED':6}  {told}")


def planted(n, p, seed=0):
    rng = np.random.default_rng(seed)
    return rng.random((n, K)) ** 4 @ rng.random((K, p)) ** 4 + 0.1 * rng.random((n, p))


def random_sparse(n, p, density):
    return sp.random_array((n, p), density=density, format="csr", rng=np.random.default_rng(0))


def texts(n, p, words=150, seed=0):
    """Unit-norm samples of two topics each, whose words are as frequent as Zipf's law says."""
    rng = np.random.default_rng(seed)
    rank = 1 / np.arange(1, p + 1)
    topics = np.stack([rng.permutation(rank) * rng.random(p) ** 3 for _ in range(K)]) + 0.3 * rank
    bounds = np.cumsum(topics, axis=1) / topics.sum(axis=1, keepdims=True)
    half = words // 2
    columns = [np.searchsorted(bounds[topic], rng.random(half)) for topic in rng.integers(K, size=2 * n)]
    columns = np.minimum(np.concatenate(columns), p - 1)
    rows = np.repeat(np.arange(n), 2 * half)
    counts = sp.csr_array((np.ones(len(rows)), (rows, columns)), shape=(n, p))
    counts.sum_duplicates()
    return normalize(counts.log1p())


def threads_against_one(name, floor, model, X, times=3):
    """Fits of a model with one thread and with one for each core, by turns."""
    one, every = best([with_threads(count, lambda: model.fit(X)) for count in (1, CORES)], times)
    line(name, floor, one[0] / every[0], ("one", one), (f"{CORES} threads", every))


def sparse():
    for n, p, density, steps in ((20_000, 5_000, 0.01, 20), (100_000, 20_000, 0.005, 5)):
        X = random_sparse(n, p, density)
        for init in ("random", "nndsvda"):
            model = PlainNMF(K, solver="cd", init=init, max_iter=steps, tol=0, random_state=0)
            threads_against_one(f"sparse {n} × {p}, {init}, {steps} steps", 1.6, model, X)


def against_scikit_learn(name, floor, theirs, ours, times=3):
    """Two functions by turns; the ratio of their seconds."""
    them, us = best([theirs, ours], times)
    line(name, floor, them[0] / us[0], ("scikit-learn", them), ("ours", us))
    return them[0] / us[0]


def transform():
    for name, X in (("dense 500", planted(10_000, 500)), ("text 20,000", texts(10_000, 20_000))):
        theirs = NMF(K, init="nndsvda", max_iter=50, random_state=0).fit(X[:3000])
        for own, cls in (("NMF", PlainNMF), ("LS-NMF", LogSparseNMF)):
            ours = cls(K, max_iter=50, random_state=0).fit(X[:3000])
            ours.transform(X)  # compiles
            names = (f"transform {name}, {own}", 1.0)
            against_scikit_learn(*names, partial(theirs.transform, X), partial(ours.transform, X))


def rcppml(X, goal):
    """Seconds of R's RcppML to the error, how many steps, its error and whether it got there; else None."""
    if shutil.which("Rscript") is None:
        return None
    with tempfile.TemporaryDirectory() as folder:
        if sp.issparse(X):
            M = sp.csc_array(X)
            parts = {"data": M.data, "rows": M.indices.astype(np.int32), "ends": M.indptr.astype(np.int32)}
        else:
            parts = {"x": np.asfortranarray(X).reshape(-1, order="F")}
        for name, values in parts.items():
            values.tofile(Path(folder, f"{name}.bin"))
        script = Path(__file__).with_name("rcppml.R")
        command = ["Rscript", str(script), folder, *map(str, (*X.shape, K, goal, CORES))]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        return None
    wall, steps, reached, enough = done.stdout.split()
    return float(wall), int(steps), float(reached), enough == "TRUE"


def to_the_error(X, goal, init):
    """Plain NMF that takes as many steps as it needs from this start; None where 100 are not enough."""
    model = PlainNMF(K, init=init, solver="cd", max_iter=100, eval_every=1, tol=0, random_state=0)
    told = model.fit(X).history_
    enough = told["objective"] <= goal**2
    return model.set_params(max_iter=int(told["iteration"][enough.argmax()])) if enough.any() else None


def error():
    problems = {
        "COIL20": normalize(datasets.load("coil20").X),
        "dense 5,000 × 2,000": planted(5_000, 2_000),
        "dense 20,000 × 500": planted(20_000, 500),
        "sparse 20,000 × 5,000, 1 %": random_sparse(20_000, 5_000, 0.01),
        "sparse 5,000 × 40,000, 2 %": random_sparse(5_000, 40_000, 0.02),
        "text 20,000 × 20,000": texts(20_000, 20_000),
    }
    ratios = []
    for name, X in problems.items():
        theirs = NMF(K, init="nndsvda", solver="cd", max_iter=200, random_state=0)
        goal = 1.001 * theirs.fit(X).reconstruction_err_
        ours = to_the_error(X, goal, "nndsvda")
        names = (f"to the error: {name}, {ours.max_iter} steps", 1.0)
        ratios.append(against_scikit_learn(*names, partial(theirs.fit, X), partial(ours.fit, X)))
        assert ours.reconstruction_err_ <= goal
        peer = rcppml(X, goal)
        if peer is None:
            print("  RcppML: no Rscript with RcppML here")
            continue
        wall, steps, reached, enough = peer
        told = f"{steps} steps, {reached / goal:.4f} of the error allowed"
        for init, fitted in (("nndsvda", ours), ("random", to_the_error(X, goal, "random"))):
            if fitted is None:
                print(f"  ours from a {init} start: 100 steps do not reach the error")
                continue
            own = min(seconds(partial(fitted.fit, X))[0] for _ in range(3))
            ratio = f"{'' if enough else '> '}{wall / own:.2f}"
            print(f"  RcppML {wall:.2f} s ({told}) / ours, {init}, {own:.2f} s: {ratio}")
    print(f"median {np.median(ratios):.2f}  floor 3.0")


def _spin():
    while True:
        pass


def busy():
    X = planted(20_000, 200)
    for solver in ("mu", "cd"):
        model = PlainNMF(K, solver=solver, init="random", max_iter=15, tol=0, random_state=0)
        threads_against_one(f"{solver}, nobody else", 1.0, model, X)
        neighbours = [multiprocessing.Process(target=_spin, daemon=True) for _ in range(CORES)]
        for process in neighbours:
            process.start()
        threads_against_one(f"{solver}, busy neighbours", 0.8, model, X)
        for process in neighbours:
            process.terminate()


if __name__ == "__main__":
    parts = {part.__name__: part for part in (sparse, transform, error, busy)}
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("parts", nargs="*", help=f"some of {', '.join(parts)}; default: all")
    warnings.simplefilter("ignore", ConvergenceWarning)
    for part in parser.parse_args().parts or parts:
        parts[part]()
