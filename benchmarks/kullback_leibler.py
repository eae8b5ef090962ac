"""Kullback-Leibler updates against scikit-learn's ``NMF(solver="mu", beta_loss="kullback-leibler")``.

    OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 python benchmarks/kullback_leibler.py

Both make the same iterations from the same start. CPU seconds of one thread, in turns; medians of the rounds.
"""

import argparse
import statistics
import time
import warnings

import numpy as np
import scipy.sparse as sp
from sklearn.decomposition import non_negative_factorization

from lognmf.core.data import InMemory
from lognmf.core.loop import iterate
from lognmf.core.problem import Problem
from lognmf.core.solvers import Multiplicative
from lognmf.core.terms import KullbackLeibler

CASES = {
    "dense, 1440 × 1024": (1440, 1024, 1.0),
    "sparse, 2000 × 5000, 1 %": (2000, 5000, 0.01),
    "sparse, 20000 × 5000, 0.5 %": (20000, 5000, 0.005),
}


def counts(n, p, density, rng):
    """Counts of a random low-rank mixture, dense or in CSR."""
    if density == 1.0:
        return rng.poisson(3 * rng.gamma(0.5, 1.0, (n, 5)) @ rng.gamma(0.5, 1.0, (5, p))).astype(float)
    X = sp.random_array((n, p), density=density, rng=rng, format="csr")
    X.data = 1.0 + np.floor(5 * X.data)
    return X


def measure(X, k, steps, rounds, rng):
    n, p = X.shape
    U, V = 0.1 + rng.random((p, k)), 0.1 + rng.random((n, k))
    rule = Multiplicative(Problem(InMemory(X), KullbackLeibler()))
    # scikit-learn updates its left factor first, we U: so its data are the transpose.
    Xt = sp.csr_matrix(X.T) if sp.issparse(X) else np.ascontiguousarray(X.T)

    def ours():
        state = iterate(
            rule, rule.start(U[:, None], V[:, None]), max_iter=steps, tol=0, eval_every=steps
        ).state
        return state.U[:, 0]

    def theirs():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return non_negative_factorization(
                Xt, W=U.copy(), H=V.T.copy(), n_components=k, init="custom", solver="mu",
                beta_loss="kullback-leibler", tol=0, max_iter=steps,
            )[0]  # fmt: skip

    times = {"ours": [], "theirs": []}
    for _ in range(rounds):
        for name, run in (("ours", ours), ("theirs", theirs)):
            start = time.process_time()
            result = run()
            times[name].append(time.process_time() - start)
            times[f"{name} result"] = result
    difference = np.abs(times["ours result"] - times["theirs result"]).max() / times["theirs result"].max()
    return statistics.median(times["ours"]), statistics.median(times["theirs"]), difference


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("-k", type=int, default=20)
    options = parser.parse_args()
    print(
        "| data | ours, ms per iteration | scikit-learn | ratio | largest difference |\n|---|---|---|---|---|"
    )
    for name, case in CASES.items():
        rng = np.random.default_rng(0)
        mine, others, difference = measure(counts(*case, rng), options.k, options.steps, options.rounds, rng)
        per = 1e3 / options.steps
        print(f"| {name} | {mine * per:.1f} | {others * per:.1f} | {mine / others:.2f} | {difference:.0e} |")


if __name__ == "__main__":
    main()
