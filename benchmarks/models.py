"""Time of one iteration of each of the nine methods over the products with X it cannot avoid.

    python benchmarks/models.py

At COIL20's size. scikit-learn's ``NMF(solver="mu")`` runs in the same rounds, so our NMF can be
held against it per iteration.
"""

import argparse
import statistics
import time
import warnings

import numpy as np
from sklearn.decomposition import non_negative_factorization

from lognmf import MODELS, knn_graph
from lognmf.core.arrays import like, product, product_t
from lognmf.core.data import InMemory
from lognmf.paper.methods import PINNED

# Products with X or Xᵀ in one iteration; RMNMF's are those with its dense target X − E + Γ/μ.
PRODUCTS = {"CNMF": 4}
STEPS = 20


def steppers(X, k, W, mask):
    """Name -> function that makes ``STEPS`` iterations of a method."""
    rng = np.random.RandomState(0)
    functions = {}
    for name, cls in {**MODELS, "WNMF, 20 % missing": MODELS["WNMF"]}.items():
        model = cls(k, random_state=0, **PINNED.get(name, {}))
        M = mask if "missing" in name else None
        data = InMemory(X if M is None else X * M, M)
        weights = {w: like(np.array([float(getattr(model, w))]), X) for w in model.spec.weights}
        rule = model._rule(data, W if "graph" in model.get_params() else None, weights)
        first = [
            rng.uniform(size=shape)[:, None, :].astype(X.dtype)
            for shape in model.factor_shapes(*X.shape).values()
        ]
        if name == "RLS-NMF":
            first[0] *= 0.01  # at the data's scale, so that some samples are outliers and some are not
        functions[name] = _stepper(rule, rule.start(*first))
    return functions


def _stepper(rule, state):
    states = [state]

    def run():
        for _ in range(STEPS):
            states[0] = rule.step(states[0])

    return run


def scikit_learn(X, k):
    rng = np.random.RandomState(0)
    V, H = rng.uniform(size=(X.shape[0], k)), rng.uniform(size=(k, X.shape[1]))
    factors = [V.astype(X.dtype), H.astype(X.dtype)]

    def run():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            V, H, _ = non_negative_factorization(
                X, factors[0], factors[1], init="custom", n_components=k, solver="mu", tol=0, max_iter=STEPS
            )
        factors[:] = V, H

    return run


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--shape", type=int, nargs=3, default=(1440, 1024, 20), metavar=("N", "P", "K"))
    parser.add_argument("--dtype", choices=("float64", "float32"), default="float64")
    parser.add_argument("--rounds", type=int, default=12)
    options = parser.parse_args()
    n, p, k = options.shape
    rng = np.random.default_rng(0)
    X = rng.random((n, p)).astype(options.dtype)
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    mask = (rng.random((n, p)) > 0.2).astype(options.dtype)
    U, V = (rng.random((m, 1, k)).astype(options.dtype) for m in (p, n))
    functions = {"two products": lambda: [(product_t(X, V), product(X, U)) for _ in range(STEPS)]}
    functions |= steppers(X, k, knn_graph(X), mask) | {"scikit-learn NMF, mu": scikit_learn(X, k)}
    times = {name: [] for name in functions}
    for round_number in range(options.rounds + 1):
        for name, function in functions.items():
            start = time.perf_counter()
            function()
            if round_number:  # the first is a warm-up
                times[name].append((time.perf_counter() - start) / STEPS)
    medians = {name: statistics.median(values) for name, values in times.items()}
    pair, peer = medians["two products"], medians["scikit-learn NMF, mu"]
    print(f"n, p, k = {(n, p, k)}, {options.dtype}, median of {options.rounds} rounds, one iteration")
    print(f"{'method':22s} {'ms':>8s} {'/ its products':>15s} {'/ scikit-learn mu':>18s}")
    for name, seconds in medians.items():
        floor = pair * PRODUCTS.get(name, 2) / 2
        print(f"{name:22s} {1e3 * seconds:8.2f} {seconds / floor:15.2f} {seconds / peer:18.2f}")


if __name__ == "__main__":
    main()
