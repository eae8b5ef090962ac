"""Time of one iteration against its unavoidable part, at COIL20's size.

    python benchmarks/iteration.py

Every round times all candidates one after another and the ratios are taken between
medians of the same rounds, so a noisy machine touches all of them alike.
"""

import argparse
import statistics
import sys
import time
from pathlib import Path

import numpy as np

from lognmf.core.arrays import product, product_t
from lognmf.core.data import InMemory
from lognmf.core.solvers import Multiplicative
from lognmf.core.terms import ROW_NORMS, Frobenius, Robust
from lognmf.graph import knn_graph
from lognmf.models.log_sparse import regularised

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
import oracle

WEIGHTS = {"alpha": 0.01, "beta": 0.01, "lam": 1.0}
GAMMA = 1.0


def candidates(n, p, k, dtype):
    """Name -> function that makes one iteration."""
    rng = np.random.default_rng(0)
    X = rng.random((n, p)).astype(dtype)
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    # A start at the data's own scale: the random [0, 1) one has residuals of 100.
    U, V = (float(np.sqrt(4 / (k * np.sqrt(p)))) * rng.random((m, 1, k)).astype(dtype) for m in (p, n))
    W = knn_graph(X)
    weights = {name: np.array([value], dtype=dtype) for name, value in WEIGHTS.items()}
    fits = {
        "LS-NMF": Frobenius(),
        "RLS-NMF": Robust(ROW_NORMS["l2log"](), np.array([GAMMA], dtype=dtype)),
    }

    def stepper(fit):
        rule = Multiplicative(regularised(InMemory(X), fit, W=W, penalty="log", **weights))
        state = [rule.start(U, V)]

        def step():
            state[0] = rule.step(state[0])

        return step

    literal = [U[:, 0].astype(float), V[:, 0].astype(float)]
    Xt, dense_W = np.ascontiguousarray(X.T, dtype=float), W.toarray()

    def literal_step():
        literal[:] = oracle.iterate(Xt, *literal, dense_W, 1, gamma=GAMMA, **WEIGHTS)[:2]

    return {
        "two products with X": lambda: (product_t(X, V), product(X, U)),
        **{name: stepper(fit) for name, fit in fits.items()},
        "literal paper loop, RLS-NMF": literal_step,
    }


def measure(functions, rounds):
    for function in functions.values():
        function()
    times = {name: [] for name in functions}
    for _ in range(rounds):
        for name, function in functions.items():
            repeats = 1 if "literal" in name else 5
            start = time.perf_counter()
            for _ in range(repeats):
                function()
            times[name].append((time.perf_counter() - start) / repeats)
    return {name: statistics.median(values) for name, values in times.items()}


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--shape", type=int, nargs=3, default=(1440, 1024, 20), metavar=("N", "P", "K"))
    parser.add_argument("--dtype", choices=("float64", "float32"), default="float64")
    parser.add_argument("--rounds", type=int, default=40)
    options = parser.parse_args()
    times = measure(candidates(*options.shape, options.dtype), options.rounds)
    print(f"n, p, k = {tuple(options.shape)}, {options.dtype}, median of {options.rounds} rounds")
    for name, seconds in times.items():
        print(f"{name:32s} {1e3 * seconds:8.3f} ms")
    floor, ls, rls, literal = times.values()
    print(f"LS-NMF / its two products        {ls / floor:8.2f}   (bar 2.0, aim 1.3)")
    print(f"RLS-NMF / LS-NMF                 {rls / ls:8.2f}   (bar 1.25)")
    print(f"literal paper loop / RLS-NMF     {literal / rls:8.2f}   (bar 5)")


if __name__ == "__main__":
    main()
