"""Time of a fit-iteration inside a batch of settings, against its floor and against single fits.

    python benchmarks/grid.py

49 settings of RLS-NMF at COIL20's size: the literal paper loop, the iteration of a single fit, the
batch, and the two wide products that the batch cannot avoid, timed in turn in one run. Then whole
fits of 100 iterations: `fit_grid` against a loop of ``fit`` as GridSearchCV makes it, which checks the
data and builds the graph for every setting.
"""

import argparse
import itertools
import statistics
import sys
import time
from pathlib import Path

import numpy as np
from sklearn.base import clone

from lognmf import RobustLogSparseNMF, fit_grid
from lognmf.core.arrays import product, product_t
from lognmf.core.data import InMemory
from lognmf.core.solvers import Multiplicative
from lognmf.core.terms import ROW_NORMS, Robust
from lognmf.core.threads import threads_for
from lognmf.graph import knn_graph
from lognmf.models.log_sparse import regularised
from lognmf.paper.methods import PINNED

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
import oracle

STEPS = 20
"""Iterations that are timed together."""

VALUES = (0.001, 0.01, 0.1, 1.0, 10.0, 100.0, 1000.0)


def candidates(n, p, k, dtype):
    """Name -> (function that makes iterations, number of iterations times settings in it)."""
    rng = np.random.default_rng(0)
    X = rng.random((n, p)).astype(dtype)
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    W = knn_graph(X)
    alpha, beta = np.array(list(itertools.product(VALUES, VALUES)), dtype=dtype).T
    B = len(alpha)
    lam, gamma = np.full(B, 1.0, dtype), np.full(B, 1.0, dtype)
    U, V = rng.random((p, 1, k)).astype(dtype), rng.random((n, 1, k)).astype(dtype)
    U *= dtype(4 / (k * np.sqrt(p)))

    def stepper(pick):
        weights = {"alpha": alpha[pick], "beta": beta[pick], "lam": lam[pick]}
        fit = Robust(ROW_NORMS["l2log"](), gamma[pick])
        rule = Multiplicative(regularised(InMemory(X), fit, W=W, penalty="log", **weights))
        size = len(alpha[pick])
        state = [rule.start(np.repeat(U, size, axis=1), np.repeat(V, size, axis=1))]

        def step():
            with threads_for(X, size * k):  # as a fit or a grid does, once for all its iterations
                for _ in range(STEPS):
                    state[0] = rule.step(state[0])

        return step

    wide_U, wide_V = np.repeat(U, B, axis=1), np.repeat(V, B, axis=1)
    literal = [U[:, 0].astype(float), V[:, 0].astype(float)]
    Xt, dense_W = np.ascontiguousarray(X.T, dtype=float), W.toarray()

    def literal_step():
        literal[:] = oracle.iterate(Xt, *literal, dense_W, 1, alpha=0.01, beta=0.01, lam=1.0, gamma=1.0)[:2]

    return {
        "two wide products": (lambda: (product_t(X, wide_V), product(X, wide_U)), B),
        "batch": (stepper(slice(None)), STEPS * B),
        "single fit": (stepper(slice(8, 9)), STEPS),
        "literal paper loop": (literal_step, 1),
    }


def whole_fits(n, p, k, dtype, singles=7, max_iter=100):
    """Seconds per fit: a loop over some settings, and all of them as a grid."""
    rng = np.random.default_rng(0)
    X = rng.random((n, p)).astype(dtype)
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    pinned = {**PINNED["RLS-NMF"], "max_iter": max_iter}
    model = RobustLogSparseNMF(k, tol=0, random_state=0, **pinned)
    settings = list(itertools.product(VALUES, VALUES))
    start = time.perf_counter()
    for alpha, beta in settings[:: len(settings) // singles][:singles]:
        clone(model).set_params(alpha=alpha, beta=beta).fit(X)
    loop = (time.perf_counter() - start) / singles
    start = time.perf_counter()
    fit_grid(model, X, {"alpha": VALUES, "beta": VALUES})
    return loop, (time.perf_counter() - start) / len(settings)


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--shape", type=int, nargs=3, default=(1440, 1024, 20), metavar=("N", "P", "K"))
    parser.add_argument("--rounds", type=int, default=15)
    options = parser.parse_args()
    for dtype in (np.float64, np.float32):
        functions = candidates(*options.shape, dtype)
        times = {name: [] for name in functions}
        for round_number in range(options.rounds + 1):
            for name, (function, size) in functions.items():
                start = time.perf_counter()
                function()
                if round_number:
                    times[name].append((time.perf_counter() - start) / size)
        floor, batch, single, literal = (statistics.median(values) for values in times.values())
        print(f"n, p, k = {tuple(options.shape)}, {dtype.__name__}, ms per fit-iteration:", end=" ")
        print(", ".join(f"{name} {1e3 * statistics.median(v):.2f}" for name, v in times.items()))
        bars = (12, 20) if dtype is np.float64 else (20, 40)
        print(f"  literal paper loop / batch   {literal / batch:6.1f}   (bar {bars[0]}, aim {bars[1]})")
        print(f"  batch / two wide products    {batch / floor:6.2f}   (bar 2.0, aim 1.3)")
        print(f"  single iteration / batch     {single / batch:6.2f}")
        loop, grid = whole_fits(*options.shape, dtype)
        print(f"  loop of fits / fit_grid      {loop / grid:6.2f}   (bar 3, aim 6)")


if __name__ == "__main__":
    main()
