"""Counts, error bars and missing entries: coordinate descent entry by entry against other programs' figures.

    OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 python benchmarks/counts.py [FOLDER]

CPU seconds of one thread. FOLDER has ``counts/nips.npz`` and ``counts/newsgroups.npz`` (word counts, from
fastTopics-experiments), ``air/baton_rouge_*.csv.gz`` (concentrations and uncertainties, from ESAT) and
``signatures/refit_SBS/catalog.csv.gz`` (mutation counts); rows without their data are left out.
"""

import argparse
import sys
import time
import warnings
from pathlib import Path

import numpy as np
import pandas
import scipy.sparse as sp
from scipy.special import gammaln
from sklearn.datasets import load_digits
from sklearn.decomposition import non_negative_factorization

from lognmf import LogSparseNMF, PlainNMF, WeightedNMF
from lognmf.core.data import InMemory
from lognmf.core.loop import iterate
from lognmf.core.problem import Problem
from lognmf.core.solvers import SOLVERS
from lognmf.core.terms import LOSSES, KullbackLeibler

STEPS = 500  # multiplicative updates of scikit-learn whose error is to be reached
MOST = 1000  # steps after which it counts as not reached


def row(what, *measured):
    print("|", what, "|", " | ".join(str(cell) for cell in measured), "|", flush=True)


def seconds(run):
    start = time.process_time()
    result = run()
    return time.process_time() - start, result


def log_likelihood(model, X):
    """Of Poisson counts with the means of a fit."""
    x = X.data
    return -model.objective_ + float(np.sum(x * np.log(x) - x - gammaln(x + 1)))


def words(folder, name, steps, rival):
    X = sp.csr_array(sp.load_npz(folder / f"counts/{name}.npz"), dtype=np.float64)
    model = PlainNMF(10, loss="kullback-leibler", solver="cd", init="nndsvda", max_iter=steps, tol=0)
    model.set_params(eval_every=steps)
    spent, _ = seconds(lambda: model.fit(X))
    zeros = f"{(model.components_ == 0).mean():.0%} and {(model.embedding_ == 0).mean():.0%} zeros"
    row(f"{name}, k = 10, {steps} steps", f"{log_likelihood(model, X):,.0f}", f"{spent:.1f} s", zeros, rival)


def count_sets(folder):
    for name, documents in (("nips", 500), ("newsgroups", 3000)):
        if (path := folder / f"counts/{name}.npz").exists():
            X = sp.csr_array(sp.load_npz(path), dtype=np.float64)[:documents]
            yield f"{name}, {documents} documents", X[:, np.flatnonzero(X.sum(axis=0))]
    if (path := folder / "signatures/refit_SBS/catalog.csv.gz").exists():
        yield "mutations, 900 × 96", np.ascontiguousarray(pandas.read_csv(path).iloc[:, 2:].to_numpy(float).T)
    yield "digits", load_digits().data


def against_scikit_learn(folder, k=10, starts=3):
    for name, X in count_sets(folder):
        ratios, steps = [], []
        for seed in range(starts):
            rng = np.random.default_rng(seed)
            U, V = 0.1 + rng.random((X.shape[1], k)), 0.1 + rng.random((X.shape[0], k))
            U *= X.sum() / (U.sum(axis=0) @ V.sum(axis=0))
            theirs, target = seconds(lambda X=X, U=U, V=V: scikit_learn(X, U, V))
            reached(X, U, V, target, 1)  # compiles
            ours, needed = seconds(lambda X=X, U=U, V=V, target=target: reached(X, U, V, target))
            steps.append(needed)
            ratios.append(theirs / ours if needed < MOST else 0.0)
        row(f"{name}: divergence of scikit-learn's {STEPS} updates, {starts} starts", f"{steps} steps",
            f"time of scikit-learn / ours {sorted(round(ratio) for ratio in ratios)}")  # fmt: skip


def scikit_learn(X, U, V):
    """The divergence that its multiplicative updates reach."""
    W, H, _ = non_negative_factorization(
        sp.csr_matrix(X) if sp.issparse(X) else X, W=V.copy(), H=U.T.copy(), n_components=U.shape[1],
        init="custom", solver="mu", beta_loss="kullback-leibler", tol=0, max_iter=STEPS,
    )  # fmt: skip
    return Problem(InMemory(X), KullbackLeibler()).value(H.T[:, None], W[:, None], H.T[:0, None])[0]


def reached(X, U, V, target, most=None):
    """Steps until the divergence is as low; `MOST` if it never is."""
    rule = SOLVERS["cd"].of(Problem(InMemory(X), KullbackLeibler()))
    state, steps = rule.start(U[:, None], V[:, None]), 0
    while rule.value(state)[0] > target and steps < (most or MOST):
        state, steps = rule.step(state), steps + 1
    return steps


def air(folder):
    X, sigma = (
        pandas.read_csv(folder / f"air/baton_rouge_{what}.csv.gz").iloc[:, 1:].to_numpy(float)
        for what in ("con", "unc")
    )
    model = WeightedNMF(6, n_init=20, random_state=0)
    model.fit(X, weights=sigma**-2)
    spent, _ = seconds(lambda: model.fit(X, weights=sigma**-2))
    row("Baton Rouge, k = 6, best of 20", f"Q = {model.objective_:,.0f}", f"{spent:.2f} s", "PMF5: 64,423")


def steps_of_weights(n=2000, p=500, k=20):
    rng = np.random.default_rng(0)
    X = rng.gamma(0.5, 1, (n, k)) @ rng.gamma(0.3, 1, (k, p)) + 0.1 * rng.random((n, p))
    U, V = 0.1 + rng.random((p, 1, k)), 0.1 + rng.random((n, 1, k))
    times = {}
    for name, M in (("plain", None), ("weights", rng.gamma(1.0, 1.0, (n, p)))) * 3:
        data = InMemory(X, M)
        rule = SOLVERS["cd"].of(Problem(data, LOSSES["frobenius"](data)))
        state = rule.step(rule.start(U, V))

        def ten(state=state, rule=rule):
            for _ in range(10):
                state = rule.step(state)

        times[name] = min(times.get(name, np.inf), seconds(ten)[0] / 10)
    ratio = times["weights"] / times["plain"]
    row(
        f"an iteration with weights / without, {n} × {p}, k = {k}",
        f"{ratio:.1f}",
        f"{times['weights']:.4f} s",
    )


def missing(n=600, p=80, k=5, share=0.2):
    times, errors, zeros = [], [], []
    for seed in range(3):
        rng = np.random.default_rng(seed)
        Y = rng.gamma(0.5, 1, (n, k)) @ rng.gamma(0.3, 1, (k, p))
        X = Y + 0.05 * Y.mean() * rng.random((n, p))
        hidden = rng.random((n, p)) < share
        holes = np.where(hidden, np.nan, X)
        full, _ = seconds(lambda X=X: LogSparseNMF(k).fit(X))
        spent, model = seconds(lambda holes=holes: LogSparseNMF(k).fit(holes))
        rival = LogSparseNMF(k, solver="mu").fit(holes)
        times.append(spent / full)
        off = [np.linalg.norm((m.inverse_transform(m.embedding_) - Y)[hidden]) for m in (model, rival)]
        errors.append(off[0] / off[1])
        zeros.append((model.components_ == 0).mean() + (model.embedding_ == 0).mean())
    row(f"{share:.0%} missing, default fit, {n} × {p}, k = {k}: time / full fit", f"{np.median(times):.1f}",
        f"error of hidden entries / multiplicative updates' {np.median(errors):.3f}",
        f"exact zeros: {'yes' if min(zeros) > 0 else 'no'}")  # fmt: skip


def convergence(count=200):
    tests = Path(__file__).parents[1] / "tests"
    sys.path += [str(tests), str(tests / "core")]
    from test_rowwise import make_problem, unsettled

    rises, left = 0, []
    for seed in range(count):
        problem, unit, U, V = make_problem(seed)
        rule = SOLVERS["cd"].of(problem, unit)
        state = rule.start(U, V)
        first, before = unsettled(problem, state.U, state.V, unit), rule.value(state)
        size = before.max()
        for _ in range(200):
            state = rule.step(state)
            value = problem.value(state.U, state.V, state.U[:0])
            rises += int((value > before + 1e-11 * size).sum())
            before = value
        state = iterate(rule, state, max_iter=5000, tol=1e-13, eval_every=50).state
        left.append(unsettled(problem, state.U, state.V, unit) / first)
    few = np.quantile(left, [0.5, 0.99, 1])
    row(f"{count} random problems, to tol=1e-13", f"{rises} rises",
        "stationarity / start: median {:.0e}, 99 % {:.0e}, worst {:.0e}".format(*few))  # fmt: skip


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("folder", nargs="?", type=Path, default=Path("data"))
    parser.add_argument(
        "--only", nargs="*", default=["words", "scikit-learn", "air", "weights", "missing", "convergence"]
    )
    options = parser.parse_args()
    folder, only = options.folder, options.only
    warnings.simplefilter("ignore")
    PlainNMF(2, loss="kullback-leibler", solver="cd", max_iter=1).fit(
        sp.eye_array(9, format="csr")
    )  # compiles
    if "words" in only:
        for name, steps, rival in (
            ("nips", 100, "fastTopics: −7,732,487 in 674–803 s"),
            ("newsgroups", 150, "fastTopics: −12,410,967 by EM, −12,385,003 with extrapolation"),
        ):
            if (folder / f"counts/{name}.npz").exists():
                words(folder, name, steps, rival)
    if "scikit-learn" in only:
        against_scikit_learn(folder)
    if "air" in only and (folder / "air").exists():
        air(folder)
    for name, part in (("weights", steps_of_weights), ("missing", missing), ("convergence", convergence)):
        if name in only:
            part()


if __name__ == "__main__":
    main()
