"""Why a number differs from the paper's: the same cell again, with one thing changed at a time.

    python benchmarks/differences.py                          # all rows that differ by more than 3 points
    python benchmarks/differences.py --data yale,jaffe        # some of them; may run beside another
    python benchmarks/differences.py --no-fit                 # only say what was found

A *group* is a method on one row of a table with at least one number more than 3 points off. Groups are
read from docs/reproduction/tables. For each, what is changed is tried in a fixed order, and a group is left
as soon as one change brings all three metrics within 3 points of the paper's: first only the seed, then
what the same fits tell for nothing (iterations, read-out, form of NMI), then another draw of the noise,
another start, other samples. What was measured is kept in benchmarks/results/differences.csv, one line for
each change, seed, number of iterations and read-out; of a grid the best by the labels.
"""

import argparse
import csv
import itertools
import json
import time
from dataclasses import replace
from functools import lru_cache

import numpy as np
import pyarrow.parquet
from sklearn.base import clone
from sklearn.preprocessing import normalize

from difference_groups import (
    HUGE,
    KEY,
    LARGE,
    METRICS,
    NO_ROOT,
    REPRODUCTION,
    RESULTS,
    Change,
    changes,
    groups,
)
from difference_reasons import attempts, key_of, known, verdict
from lognmf import datasets, noise
from lognmf.clustering import scores
from lognmf.clustering.kmeans import kmeans
from lognmf.core.arrays import gram, join, like, mix, product, product_t, ratio
from lognmf.core.loop import iterate
from lognmf.core.rule import State
from lognmf.graph import knn_graph
from lognmf.models import MODELS
from lognmf.models.convex import ConvexRule
from lognmf.models.orthogonal import OrthogonalRule
from lognmf.models.validation import check_samples
from lognmf.paper.methods import PAPER_OPTIONS, PINNED, WEIGHTS
from lognmf.paper.spec import VALUES

# Samples -------------------------------------------------------------------------------------


@lru_cache(maxsize=4)
def samples(data, level, change):
    """X, y, W of a row of a table, with the change."""
    other = change.samples
    rows = slice(None)
    if other == "ar-second-half":
        name, rows = "ar-100", slice(1300, None)
    else:
        name = other if other == "jaffe-crop" else data
    found = datasets.load(name)
    X = np.asarray(found.X, dtype=np.float64)[rows]
    y = np.unique(np.asarray(found.y)[rows], return_inverse=True)[1]
    X = X / X.max() if other == "raw" else normalize(X)
    rng = np.random.default_rng(change.draw)
    if level.startswith("removed"):
        share = float(level.split()[1].rstrip("%")) / 100
        X, _ = noise.remove(X, share, rng, replacement=change.replacement)
    elif level.startswith("gaussian"):
        std = float(level.split()[2])
        if other == "clipped":
            X = np.maximum(X + rng.normal(scale=std, size=X.shape), 0)
        else:
            X = noise.gaussian(X, std, rng)
    if other == "renormalised":
        X = normalize(X)
    return X, y, knn_graph(X, 5)


# Fits ----------------------------------------------------------------------------------------

COLUMNS = (*KEY, "seed", "iterations", "read_out", *METRICS, "nmi_geometric", "settings", "setting")


def settings_of(group):
    """The weights that are tried: all of one weight; of LS-NMF and RLS-NMF the best of the whole grid."""
    weights = MODELS[group.method].spec.weights
    if not weights:
        return [{}]
    if group.method == "RMNMF":
        return [{"lam": value} for value in (0.001, 0.1, 10.0)]
    if weights == ("lam",):
        return [{"lam": value} for value in VALUES]
    return best_settings(
        group, weights, 32 if group.data == "pendigits" else 8 if group.data in LARGE else 16
    )


def best_settings(group, weights, count):
    """Weights of the highest accuracies of the reproduction, seed 0."""
    kind, level = group.level.split()[0], group.level.split()[-1].rstrip("%")
    kind = {"clean": "none", "removed": "removal", "gaussian": "gaussian"}[kind]
    level = 0.0 if kind == "none" else float(level) / (100 if kind == "removal" else 1)
    rows = [
        row
        for row in _grid_rows(group.method)
        if row["data"] == group.data
        and row["noise"] == kind
        and abs(row["level"] - level) < 1e-6
        and row["replacement"] == (kind == "removal")
    ]
    rows.sort(key=lambda row: (-row["accuracy"], -row["nmi"]))
    return [{name: float(f"{row[name]:.6g}") for name in weights} for row in rows[:count]]


@lru_cache(maxsize=2)
def _grid_rows(method):
    columns = ["data", "noise", "level", "replacement", *WEIGHTS, "accuracy", "nmi"]
    kept = [("protocol", "=", "paper"), ("model", "=", method)]
    return pyarrow.parquet.read_table(
        REPRODUCTION / "rows.parquet", columns=columns, filters=kept
    ).to_pylist()


def seeds_of(group, change):
    """Seeds: more where only the seed is changed and fits are cheap."""
    if group.method in ("LS-NMF", "RLS-NMF"):
        return range(1, 3) if group.data in LARGE else range(1, 6)
    if group.method == "RMNMF":
        return range(1) if group.data in LARGE else range(2)
    if group.method == "GNMF":
        return range(2) if group.data in LARGE else range(3)
    if change == Change():
        return range(3 if group.data in HUGE else 5 if group.data in LARGE else 10)
    return range(2) if group.data in LARGE else range(3)


def checkpoints(group):
    """Iterations after which the clusters are looked at."""
    if group.method == "RMNMF":  # its penalty has grown so far by then that nothing moves any more
        return 50, 100, 200
    few = group.data in LARGE or group.method in ("LS-NMF", "RLS-NMF")
    return (50, 100, 200, 500) if few else (50, 100, 200, 500, 1000)


def all_read_outs(group):
    """Iterations after which every read-out is tried."""
    return {"RMNMF": (200, 500), "LS-NMF": (), "RLS-NMF": ()}.get(group.method, (500,))


def fits(group, change):
    """Lines of one change: all seeds and settings side by side, looked at on the way."""
    X, y, W = samples(group.data, group.level, change)
    double = group.method in ("RMNMF", "Semi-NMF")  # these two invert matrices
    X = X if double else X.astype(np.float32)
    classes = int(y.max()) + 1
    options = {**PINNED.get(group.method, {}), **PAPER_OPTIONS.get(group.method, {}), "tol": 0.0}
    if change.start:
        options["init"] = change.start
    if change.sign:
        options["published_sign"] = True
    rootless = ROOTLESS.get(group.method) if change.start == NO_ROOT else None
    options["init"] = "random" if rootless else options.get("init")
    model = MODELS[group.method](classes, **{n: v for n, v in options.items() if v not in (None, "kmeans")})
    if "graph" in model.get_params():
        model.set_params(graph=W)
    settings, seeds = settings_of(group), list(seeds_of(group, change))
    data = check_samples(clone(model), X, reset=True)
    first = {
        seed: clone(model)
        .set_params(random_state=seed)
        ._start(data.X, first_factors(options, X, classes, seed))
        for seed in seeds
    }
    pairs = list(itertools.product(seeds, settings))
    U, V = (join([first[seed][place] for seed, _ in pairs]) for place in (0, 1))
    weights = {name: like([setting[name] for _, setting in pairs], V) for name in model.spec.weights}
    rule = model._rule(data, W if "graph" in model.get_params() else None, weights)
    if rootless:
        rule = rootless(rule.fit)
    state, done = rule.start(*model._prepare(U, V)), 0
    for stop in checkpoints(group):
        state = iterate(rule, state, max_iter=stop - done, tol=0, eval_every=stop).state
        done = stop
        each = np.array([seed for seed, _ in pairs])
        for read_out, labels in read_outs(state.V, classes, each, every=stop in all_read_outs(group)):
            for place, seed in enumerate(seeds):
                of_seed = labels[:, place * len(settings) : (place + 1) * len(settings)]
                yield {"seed": seed, "iterations": stop, "read_out": read_out, **best(y, of_seed, settings)}


class RootlessConvexRule(ConvexRule):
    """CNMF as it is often programmed: multiplicative updates without the square root."""

    def step(self, state):
        X, B, V, (_, KB) = self.fit.X, state.U, state.V, state.aux
        V = V * ratio(KB, mix(V, gram(B, KB)))
        KV = product(X, product_t(X, V))
        return self.start(B * ratio(KV, mix(KB, gram(V, V))), V)


class RootlessOrthogonalRule(OrthogonalRule):
    """ONMF without the square root."""

    def step(self, state):
        U, V, (XU,) = state.U, state.V, state.aux
        V = V * ratio(XU, mix(V, gram(V, XU)))
        U = U * ratio(product_t(self.fit.X, V), mix(U, gram(V, V)))
        return State(U, V, (product(self.fit.X, U),))


ROOTLESS = {"CNMF": RootlessConvexRule, "ONMF": RootlessOrthogonalRule}


def first_factors(options, X, k, seed):
    """A start by k-means for models that have none: V = H + 0.2, U the centres."""
    if options.get("init") != "kmeans":
        return {}
    labels = kmeans(X[:, None, :], k, seed=seed, n_init=1)[:, 0]
    H = np.eye(k, dtype=X.dtype)[labels]
    return {"U0": X.T @ H / np.maximum(H.sum(axis=0), 1) + 1e-6, "V0": H + 0.2}


def read_outs(V, k, seed, *, every):
    """Ways from codes (n, B, k) to clusters (n, B)."""
    V = np.asarray(V)
    yield "k-means, 10 starts", kmeans(V, k, seed=seed)
    if every:
        yield "k-means, 1 start", kmeans(V, k, seed=seed, n_init=1)
        length = np.linalg.norm(V, axis=2, keepdims=True)
        yield "k-means on unit rows", kmeans(V / np.where(length > 0, length, 1), k, seed=seed)
        yield "largest entry", V.argmax(axis=2)


def best(y, labels, settings):
    """The scores of the setting of highest accuracy, in percent."""
    counts = scores.contingency(y, labels)
    columns = {
        "accuracy": scores.accuracy(counts),
        "nmi": scores.normalized_mutual_info(counts),
        "purity": scores.purity(counts),
        "nmi_geometric": scores.normalized_mutual_info(counts, "geometric"),
    }
    b = max(range(len(settings)), key=lambda i: (columns["accuracy"][i], columns["nmi"][i]))
    found = {name: round(100 * float(column[b]), 2) for name, column in columns.items()}
    return {**found, "settings": len(settings), "setting": json.dumps(settings[b])}


# The command ---------------------------------------------------------------------------------


def append(key, rows):
    """All lines of a change in one write, so that two runs may share the file."""
    RESULTS.parent.mkdir(parents=True, exist_ok=True)
    text = []
    if not RESULTS.exists():
        text.append(",".join(COLUMNS) + "\n")

    class Lines:
        write = staticmethod(text.append)

    writer = csv.DictWriter(Lines(), COLUMNS, lineterminator="\n")
    for row in rows:
        writer.writerow({**dict(zip(KEY, key, strict=True)), **row})
    with RESULTS.open("a", encoding="utf-8") as file:
        file.write("".join(text))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", help="names of data sets, with commas between them; default all")
    parser.add_argument("--methods", help="names of methods, with commas between them; default all")
    parser.add_argument("--no-fit", action="store_true", help="only say what was found")
    parser.add_argument("--level", default="", help="how the noise of the rows begins, such as gaussian")
    parser.add_argument(
        "--only", help="try this change alone, whatever else was found; such as 'start random'"
    )
    options = parser.parse_args()
    wanted = [
        group
        for group in groups()
        if group.level.startswith(options.level)
        and (options.data is None or group.data in options.data.split(","))
        and (options.methods is None or group.method in options.methods.split(","))
    ]
    for group in wanted:
        for change in () if options.no_fit else changes(group):
            lines = known()
            if options.only:
                field, _, value = options.only.partition(" ")
                if str(getattr(change, field)) != value:
                    continue
            elif verdict(group, attempts(group, lines))[0] in ("seed", "change"):
                break
            if key_of(group, change) not in lines:
                began = time.perf_counter()
                fitted = replace(group, method="NMF") if group.method == "WNMF" else group
                append(key_of(group, change), list(fits(fitted, change)))
                print(f"  {time.perf_counter() - began:.0f} s {change}", flush=True)
        kind, attempt = verdict(group, attempts(group, known()))
        told = (
            ""
            if attempt is None
            else f"{attempt.distance:.1f} {attempt.near}/{attempt.seeds} {attempt.change}"
        )
        more = "" if attempt is None else f"{attempt.iterations} {attempt.read_out} {attempt.form}"
        print(group.table, group.dataset, group.level, group.method, kind, told, more, sep=" | ", flush=True)


if __name__ == "__main__":
    main()
