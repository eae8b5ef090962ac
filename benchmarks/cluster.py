"""Fits on a Dask cluster of this machine: speed-up of two workers, kills, and a forecast.

    python benchmarks/cluster.py --gigabytes 2 --kills 20

Prints the seconds of an iteration of LS-NMF (multiplicative updates) in memory with two threads, and on one
and two workers of one thread each; how far the factors are from those of an undisturbed run when a worker is
killed at a random moment; and what the model

    seconds = work / workers + fixed + rounds of the sum · 2 · message / bandwidth

with work and fixed fitted on one and two workers says about many of them.
"""

import argparse
import logging
import math
import os
import random
import signal
import statistics
import subprocess
import sys
import threading
import time
import warnings

import numpy as np
from distributed import Client, LocalCluster

from lognmf import LogSparseNMF, on_workers
from lognmf.sources import Planted, WorkerBlocks

SETTINGS = {"alpha": 0.01, "beta": 0.01, "solver": "mu", "init": "random", "tol": 0, "random_state": 0}
BANDWIDTH = 1.25e9  # bytes a second between machines: 10 Gbit
FAN = 8

IN_MEMORY = """
import sys
import numpy as np
from lognmf import LogSparseNMF
from lognmf.sources import Planted
n, p, k, iterations = map(int, sys.argv[1:])
X = Planted(n, p, k).in_blocks().read(slice(0, n))
model = LogSparseNMF(k, alpha=0.01, beta=0.01, solver="mu", init="random", tol=0, random_state=0,
                     max_iter=iterations, eval_every=1).fit(X)
print(np.median(np.diff(model.history_["seconds"])))
"""


def planted(options):
    n = round(options.gigabytes * 1e9 / 8 / options.features)
    return Planted(n, options.features, options.k)


def cluster_of(workers):
    return LocalCluster(workers, threads_per_worker=1, dashboard_address=":0", memory_limit=0)


def fit(source, client, options):
    blocks = source if isinstance(source, WorkerBlocks) else on_workers(source, client=client)
    iterations = options.iterations
    return LogSparseNMF(options.k, max_iter=iterations, eval_every=iterations, **SETTINGS).fit(blocks)


def seconds(source, workers, options):
    """Of an iteration on so many workers, the median of three fits."""
    with cluster_of(workers) as cluster, Client(cluster) as client:
        blocks = on_workers(source, client=client)
        histories = [fit(blocks, client, options).history_["seconds"] for _ in range(3)]
        return statistics.median((took[-1] - took[0]) / options.iterations for took in histories)


def kill_some(source, options):
    """Largest difference to an undisturbed run over fits in each of which a worker is killed."""
    worst, usual, calm = 0.0, 1.0, None
    for trial in range(-2, options.kills):
        with cluster_of(2) as cluster, Client(cluster) as client:
            began, moment = time.perf_counter(), random.Random(trial).uniform(0, usual)
            timer = threading.Timer(moment, kill, [client, trial])
            if trial >= 0:
                timer.start()
            model = fit(source, client, options)
            found = model.components_, model.embedding_.compute()
            usual = time.perf_counter() - began if trial == -1 else usual
            if trial >= 0:
                timer.join()
        calm = found if calm is None else calm
        worst = max(worst, *(float(np.abs(F - G).max()) for F, G in zip(found, calm, strict=True)))
    return worst


def kill(client, trial):
    pids = sorted(client.run(os.getpid).values())
    os.kill(pids[trial % len(pids)], signal.SIGKILL)


def forecast(one, two, options, count):
    """Seconds of an iteration, n = 10⁸, p = 1000, k = 50, for many workers, and their efficiency."""
    n = options.gigabytes * 1e9 / 8 / options.features
    if two >= one:
        print("Two workers were no faster than one here: no forecast.")
        return
    work, fixed = 2 * (one - two), max(2 * two - one, 1e-3)
    per_number = work / (n * options.features * options.k)
    whole, message = per_number * 1e8 * 1000 * 50, 8 * (1000 * 50 + 50**2)

    def on(workers):
        rounds = math.ceil(math.log(max(workers, 2), FAN))
        return whole / workers + fixed + rounds * 2 * message / BANDWIDTH

    print(f"work {work:.3f} s, fixed {fixed:.4f} s an iteration; n = 1e8: {whole:.0f} s of work")
    for workers in count:
        print(f"{workers:5d} workers: {on(workers):9.2f} s, efficiency {whole / workers / on(workers):.0%}")


def main():
    formatter = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=formatter)
    parser.add_argument("--gigabytes", type=float, default=2.0)
    parser.add_argument("--features", type=int, default=1000)
    parser.add_argument("--k", type=int, default=20)
    parser.add_argument("--iterations", type=int, default=10)
    parser.add_argument("--kills", type=int, default=0)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    logging.getLogger("distributed").setLevel(logging.CRITICAL)
    data = planted(options)
    source = data.in_blocks()
    blocks = len(source.edges) - 1
    print(f"{data.n_samples} × {data.n_features}, {blocks} blocks, k = {options.k}", flush=True)
    one, two = (seconds(source, workers, options) for workers in (1, 2))
    sizes = [str(v) for v in (data.n_samples, data.n_features, options.k, options.iterations)]
    command = [sys.executable, "-c", IN_MEMORY, *sizes]
    threads = {**os.environ, "OMP_NUM_THREADS": "2", "OPENBLAS_NUM_THREADS": "2"}
    memory = float(subprocess.run(command, check=True, capture_output=True, text=True, env=threads).stdout)
    print(f"seconds of an iteration: one worker {one:.3f}, two {two:.3f}, two threads in memory {memory:.3f}")
    print(
        f"one worker / two {one / two:.2f}, two workers / two threads in memory {two / memory:.2f}",
        flush=True,
    )
    if options.kills:
        small = Planted(20_000, 100, options.k).in_blocks(rows=2500)
        print(f"{options.kills} kills: largest difference of U and V {kill_some(small, options):.1e}")
    forecast(one, two, options, (10, 100, 1000))


if __name__ == "__main__":
    main()
