"""Coordinate descent against multiplicative updates and scikit-learn: time to the same objective.

    LOGNMF_DATA=… OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 python benchmarks/solver.py --out FOLDER
    python benchmarks/solver.py --read FOLDER

Nine settings of LS-NMF and five of RLS-NMF, k = number of classes, 5 neighbours, one thread, float64.

1. The objectives of the multiplicative updates (MU) after 500 and 2000 iterations from the
   paper's start, and after 500 from the start at its best scale: all settings as one batch,
   which gives the numbers of single runs.
2. Coordinate descent, one run per setting, data set and seed; the time of an MU iteration is measured
   before and after it. Times are CPU seconds of one thread, since other jobs may share the machine.
   MU-500 = 500 such iterations. The time of coordinate descent includes every evaluation, rejected step
   and its set-up, but not loading numba (once per process) and compiling (once per machine).
3. Plain NMF against scikit-learn's ``NMF(solver="cd", tol=1e-4)``: from scikit-learn's default start
   (NNDSVD, which each computes for itself, its time included) and from the same random starts. Time to
   scikit-learn's error, and to within 0.1 % of it, since the two end in different local minima.

Every row is written as soon as it is computed; an interrupted run continues where it stopped.
"""

import argparse
import csv
import itertools
import time
import warnings
from pathlib import Path

import numpy as np
import scipy.sparse as sp

import data
from lognmf import knn_graph
from lognmf.core.data import InMemory
from lognmf.core.loop import iterate
from lognmf.core.solvers import CoordinateDescent, Multiplicative
from lognmf.core.starts import STARTS, batch
from lognmf.core.terms import ROW_NORMS, Frobenius, Robust
from lognmf.models.log_sparse import regularised

SETTINGS = {
    "LS-NMF": [
        (0.001, 0.001, 0.0, None),
        (0.001, 0.001, 1.0, None),
        (0.1, 0.1, 0.01, None),
        (0.1, 0.001, 1.0, None),
        (0.001, 0.1, 100.0, None),
        (0.1, 0.1, 1.0, None),
        (10.0, 0.001, 1.0, None),
        (0.001, 10.0, 0.01, None),
        (10.0, 10.0, 1.0, None),
    ],
    "RLS-NMF": [
        (0.001, 0.001, 1.0, 1.0),
        (0.1, 0.001, 0.01, 1.0),
        (0.001, 0.1, 100.0, 1.0),
        (0.1, 0.1, 1.0, 0.1),
        (0.001, 0.001, 0.01, 0.1),
    ],
}
"""alpha, beta, lam and gamma."""

OWN_START = "nndsvda"
"""scikit-learn's default start, used in place of a seed."""

SETS = ("Yale", "Jaffe", "ORL", "Semeion", "COIL20", "Pendigits", "AR", "EYaleB")
KEY = ("data", "model", "alpha", "beta", "lam", "gamma", "seed")
BASELINE = (*KEY, "mu500", "mu2000", "mu500_scaled")
FAST = (
    *KEY,
    "mu_iteration",
    "objective",
    "seconds",
    "iterations",
    "to_mu500",
    "to_scaled",
    "to_mu2000",
    "rises",
    "zeros_U",
    "zeros_V",
)
PLAIN = (
    "data",
    "form",
    "seed",
    "sklearn_seconds",
    "sklearn_error",
    "sklearn_iterations",
    "to_error",
    "to_near",
    "error",
)


class Rows:
    """A CSV file to which rows are added; rows it already has can be looked up."""

    def __init__(self, path, columns, key):
        self.path, self.columns, self.key = path, columns, key
        self.rows = list(csv.DictReader(path.open())) if path.exists() else []
        self.known = {tuple(row[c] for c in key): row for row in self.rows}

    def get(self, *key):
        return self.known.get(tuple("" if part is None else str(part) for part in key))

    def add(self, *values):
        fresh = not self.path.exists()
        with self.path.open("a", newline="") as file:
            writer = csv.writer(file, lineterminator="\n")
            if fresh:
                writer.writerow(self.columns)
            writer.writerow(values)
        row = {c: "" if x is None else str(x) for c, x in zip(self.columns, values, strict=True)}
        self.rows.append(row)
        self.known[tuple(row[c] for c in self.key)] = row


def problem(X, W, settings):
    alpha, beta, lam, gamma = (np.array([s[i] for s in settings]) for i in range(4))
    fit = Frobenius() if settings[0][3] is None else Robust(ROW_NORMS["l2log"](), gamma.astype(float))
    return regularised(InMemory(X), fit, W=W, alpha=alpha, beta=beta, lam=lam, penalty="log")


def start(X, k, seed, copies=1):
    U, V = batch(STARTS["random"], InMemory(X), k, 1, np.random.RandomState(seed))
    return np.repeat(U, copies, axis=1), np.repeat(V, copies, axis=1)


def baseline(name, X, W, k, model, seed, rows):
    """Objectives of MU, all settings of a model as one batch."""
    settings = SETTINGS[model]
    if all(rows.get(name, model, *s, seed) for s in settings):
        return
    rule = Multiplicative(problem(X, W, settings))
    U, V = start(X, k, seed, len(settings))
    paper = iterate(rule, rule.start(U, V), max_iter=2000, tol=0, eval_every=500).history["objective"]
    scaled = CoordinateDescent.of(rule.problem).start(U, V)
    again = iterate(rule, rule.start(scaled.U, scaled.V), max_iter=500, tol=0, eval_every=500)
    for b, setting in enumerate(settings):
        rows.add(name, model, *setting, seed, paper[1, b], paper[4, b], again.objective[b])


def iteration_time(rule, state, seconds=0.1):
    """CPU seconds of one step."""
    steps, began = 0, time.process_time()
    while (now := time.process_time()) - began < seconds or steps < 3:
        state = rule.step(state)
        steps += 1
    return (now - began) / steps


def compile_all(rule, U, V):
    """Run every compiled function once, so that compilation is not timed."""
    state = rule.start(U, V)
    for _ in range(3):
        state = rule.step(state)
    rule.costs.work.extrapolated(U, U, np.ones(U.shape[1]))


def fast_run(rule, U, V, max_iter=2000, tol=1e-6):
    """CPU seconds and objective after every step of one run, and the last state."""
    began = time.process_time()
    state = rule.start(U, V)
    curve = [(time.process_time() - began, float(rule.value(state)[0]))]
    for step in range(max_iter):
        state = rule.step(state)
        curve.append((time.process_time() - began, float(rule.value(state)[0])))
        if step % 10 == 9 and rule.settled(state, tol)[0]:
            break
    return np.array(curve), state


def reach(curve, goal):
    """Seconds until the objective is at most ``goal``; infinite if it never is."""
    there = np.flatnonzero(curve[:, 1] <= goal * (1 + 1e-12))
    return curve[there[0], 0] if len(there) else np.inf


def case(name, X, W, k, model, setting, seed, known, rows):
    if rows.get(name, model, *setting, seed) or not known.get(name, model, *setting, seed):
        return
    goals = known.get(name, model, *setting, seed)
    one = problem(X, W, [setting])
    began = time.process_time()
    rule = CoordinateDescent.of(one)
    setup = time.process_time() - began
    mu = Multiplicative(one)
    U, V = start(X, k, seed)
    compile_all(rule, U, V)
    first = mu.start(U, V)
    times = [iteration_time(mu, first)]
    curve, state = fast_run(rule, U, V)
    times.append(iteration_time(mu, first))
    curve[:, 0] += setup
    rows.add(
        *(name, model, *setting, seed, np.mean(times), curve[-1, 1], curve[-1, 0], len(curve) - 1),
        *(reach(curve, float(goals[goal])) for goal in ("mu500", "mu500_scaled")),
        reach(curve, float(goals["mu2000"]) * (1 + 1e-6)),
        int((np.diff(curve[:, 1]) > 1e-12 * curve[:-1, 1]).sum()),
        *((F == 0).mean() for F in (state.U, state.V)),
    )


def plain(name, X, k, seed, form, rows):
    """Plain NMF: our coordinate descent against scikit-learn's, from one start."""
    from sklearn.decomposition import NMF
    from sklearn.exceptions import ConvergenceWarning

    if rows.get(name, form, seed):
        return
    X = sp.csr_array(X) if form == "sparse" else X
    own = seed == OWN_START
    draw = STARTS["nndsvda" if own else "random"]
    began = time.process_time()
    U, V = draw(InMemory(X), k, np.random.RandomState(0 if own else seed))
    drawn = time.process_time() - began if own else 0.0
    scale = np.sqrt(X.mean() / k)
    given = {} if own else {"W": scale * V, "H": np.ascontiguousarray(scale * U.T)}
    model = NMF(k, init=None if own else "custom", solver="cd", tol=1e-4, max_iter=2000, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        began = time.process_time()
        model.fit_transform(X, **given)
        seconds = time.process_time() - began
    rule = CoordinateDescent.of(problem(X, None, [(0.0, 0.0, 0.0, None)]))
    compile_all(rule, U[:, None, :], V[:, None, :])
    curve, _ = fast_run(rule, U[:, None, :], V[:, None, :], tol=1e-6)
    curve[:, 0] += drawn
    error = model.reconstruction_err_
    there = (reach(curve, error**2), reach(curve, (1.001 * error) ** 2))
    rows.add(name, form, seed, seconds, error, model.n_iter_, *there, curve[-1, 1] ** 0.5)


def run(options):
    options.out.mkdir(parents=True, exist_ok=True)
    baselines = Rows(options.out / "solver_mu.csv", BASELINE, KEY)
    cases = Rows(options.out / "solver_fast.csv", FAST, KEY)
    plains = Rows(options.out / "solver_plain.csv", PLAIN, PLAIN[:3])
    for name in options.data:
        X, y = data.load(name)
        X, k, W = np.ascontiguousarray(X), len(np.unique(y)), knn_graph(X, 5)
        for seed in options.seeds:
            for model, settings in SETTINGS.items():
                if "mu" in options.stages:
                    baseline(name, X, W, k, model, seed, baselines)
                if "cd" in options.stages:
                    for setting in settings:
                        case(name, X, W, k, model, setting, seed, baselines, cases)
            print(name, seed, "done", flush=True)
        if "plain" in options.stages:
            for seed, form in itertools.product((*options.seeds, OWN_START), ("dense", "sparse")):
                plain(name, X, k, seed, form, plains)


def numbers(rows, *names):
    return [np.array([float(row[name]) for row in rows]) for name in names]


def summary(title, rows, goals):
    """Print one line of the table: ratios, quality and zeros of some cases."""
    mu, to_mu, to_scaled, to_end, seconds = numbers(
        rows, "mu_iteration", "to_mu500", "to_scaled", "to_mu2000", "seconds"
    )
    speed, scaled = 500 * mu / to_mu, 500 * mu / to_scaled
    final = np.array([float(r["objective"]) <= float(goals[key_of(r)]["mu2000"]) * (1 + 1e-6) for r in rows])
    sooner = final & (to_end < 2000 * mu)
    (rises,), zeros = numbers(rows, "rises"), [F.mean() for F in numbers(rows, "zeros_U", "zeros_V")]
    print(
        f"| {title} | {len(rows)} | {np.median(speed):.0f} | {np.mean(speed >= 10):.0%} "
        f"| {np.median(scaled):.0f} | {np.mean(sooner):.1%} | {np.median(seconds / (2000 * mu)):.3f} "
        f"| {int(rises.sum())} | {zeros[0]:.2f}, {zeros[1]:.2f} |"
    )


def key_of(row):
    return tuple(row[c] for c in KEY)


def read(folder):
    goals = Rows(folder / "solver_mu.csv", BASELINE, KEY).known
    cases = Rows(folder / "solver_fast.csv", FAST, KEY).rows
    print(
        "| cases | n | × to MU-500, median | ≥ 10 × | × to scaled MU-500, median "
        "| no worse than MU-2000, sooner | time / MU-2000 | rises | zeros U, V |"
    )
    print("|---|---|---|---|---|---|---|---|---|")
    for model in SETTINGS:
        of_model = [row for row in cases if row["model"] == model]
        summary(f"**{model}**", of_model, goals)
        for name in SETS:
            if rows := [row for row in of_model if row["data"] == name]:
                summary(f"{model}, {name}", rows, goals)
        for setting in SETTINGS[model]:
            marks = ["" if w is None else str(w) for w in setting]
            if rows := [row for row in of_model if [row[c] for c in KEY[2:6]] == marks]:
                summary(f"{model} " + ", ".join(m for m in marks if m), rows, goals)
    read_plain(Rows(folder / "solver_plain.csv", PLAIN, PLAIN[:3]).rows)


def read_plain(rows):
    """Print scikit-learn's time over ours: how many runs get there, their ratio, and the median of all."""
    print(
        "\nPlain NMF: scikit-learn's time / ours; runs that never got there count as 0 in the median of all\n"
    )
    print(
        "| runs | to its error: got there | ratio then | median of all | to 1.001 × its error: got there ",
        end="",
    )
    print("| ratio then | median of all | its error ÷ ours |")
    print("|---|---|---|---|---|---|---|---|")
    groups = {f"{form}, all": {"form": form} for form in ("dense", "sparse")}
    groups |= {f"{form}, its own start": {"form": form, "seed": OWN_START} for form in ("dense", "sparse")}
    groups |= {name: {"data": name} for name in SETS}
    for title, wanted in groups.items():
        of = [row for row in rows if wanted.items() <= row.items()]
        theirs, error, ours = numbers(of, "sklearn_seconds", "sklearn_error", "error")
        cells = []
        for (there,) in (numbers(of, goal) for goal in ("to_error", "to_near")):
            ratio = theirs / there
            got = ratio[ratio > 0]
            median = f"{np.median(got):.1f}" if len(got) else "–"
            cells.append(f"{len(got)} of {len(of)} | {median} | {np.median(ratio):.1f}")
        print(f"| {title} | " + " | ".join(cells) + f" | {np.exp(np.mean(np.log(error / ours))):.4f} |")


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    results, stages = Path(__file__).parent / "results", ("mu", "cd", "plain")
    parser.add_argument("--out", type=Path, default=results, help="folder of the csv files to extend")
    parser.add_argument("--data", nargs="+", default=SETS, choices=SETS, help="data sets")
    parser.add_argument("--seeds", type=int, nargs="+", default=(0, 1), help="seeds of the random starts")
    parser.add_argument("--stages", nargs="+", default=stages, choices=stages, help="steps 1, 2 and 3 above")
    parser.add_argument("--quick", action="store_true", help="one seed of the two smallest data sets")
    parser.add_argument(
        "--read", type=Path, metavar="FOLDER", help="print the tables of these rows, fit nothing"
    )
    options = parser.parse_args()
    if options.read:
        read(options.read)
        return
    if options.quick:
        options.data, options.seeds = SETS[:2], (0,)
    run(options)


if __name__ == "__main__":
    main()
