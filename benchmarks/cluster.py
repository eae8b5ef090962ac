"""Fits on a Dask cluster of this machine: speed-up of two workers, traffic, kills, and a forecast.

    python benchmarks/cluster.py --gigabytes 2 --kills 20

Prints of LS-NMF (multiplicative updates)

- the seconds of an iteration on one worker, on two workers of one thread each, and in memory with two
  threads: medians of fits that take turns, and the processor seconds, which other programs disturb less;
- the same of two processes that share nothing but the machine, which is the most that two workers can gain;
- bytes to and from the client, and between workers, in an iteration;
- how far the factors are from those of an undisturbed run when a worker is killed at a random moment;
- what the model

    seconds = work / workers + fixed + blocks · block + rounds of the sum · 2 · message / bandwidth

  with work and fixed fitted on one and two workers, by the clock and by processor seconds, says about many;
  block is what one costs the client and the scheduler, from many small ones.
"""

import argparse
import logging
import math
import multiprocessing
import os
import random
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import warnings
from contextlib import ExitStack, contextmanager
from pathlib import Path

import numpy as np
from distributed import Client, LocalCluster
from distributed.comm import tcp

from lognmf import LogSparseNMF, on_workers

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
from planted import Planted

SETTINGS = {"alpha": 0.01, "beta": 0.01, "solver": "mu", "init": "random", "tol": 0, "random_state": 0}
BANDWIDTH = 1.25e9  # bytes a second between machines: 10 Gbit
FAN = 8
BLOCKS = 2  # of every worker, in the forecast


def planted(options):
    n = round(options.gigabytes * 1e9 / 8 / options.features)
    return Planted(n, options.features, options.k)


def cluster_of(workers):
    return LocalCluster(n_workers=workers, threads_per_worker=1, dashboard_address=":0", memory_limit=0)


def fit(X, options):
    iterations = options.iterations
    return LogSparseNMF(options.k, max_iter=iterations, eval_every=iterations, **SETTINGS).fit(X)


class InMemory:
    """A process that holds X, or the first part of it, and fits it with so many threads."""

    def __init__(self, options, threads=2, share=1.0):
        os.environ |= {"OMP_NUM_THREADS": f"{threads}", "OPENBLAS_NUM_THREADS": f"{threads}"}  # inherited
        self.pipe, other = multiprocessing.get_context("spawn").Pipe()
        given = (other, options, share)
        multiprocessing.get_context("spawn").Process(target=fits, args=given, daemon=True).start()
        os.environ |= {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
        self.pipe.recv()

    def end(self):
        self.pipe.send(0)

    def begin(self):
        self.pipe.send(1)

    def times(self, options):
        self.begin()
        return self.pipe.recv()


def fits(pipe, options, share):
    data = planted(options)
    X = data.in_blocks().read(slice(0, round(share * data.n_samples)))
    fit(X[:1000], options)
    pipe.send("ready")
    while pipe.recv():
        began = time.process_time()
        took = fit(X, options).history_["seconds"]
        pipe.send(((took[-1] - took[0]) / options.iterations, time.process_time() - began))


class OnWorkers:
    """A cluster whose workers hold all of X."""

    def __init__(self, source, workers, stack):
        self.client = stack.enter_context(Client(stack.enter_context(cluster_of(workers))))
        self.blocks = on_workers(source, client=self.client)

    def used(self):
        """Processor seconds of the workers, and bytes that they sent each other, so far."""
        seconds = sum(self.client.run(time.process_time).values())
        return seconds, sum(self.client.run(sent_bytes).values())

    def times(self, options):
        before = self.used()[0]
        took = fit(self.blocks, options).history_["seconds"]
        return (took[-1] - took[0]) / options.iterations, self.used()[0] - before


def most_that_two_can_gain(options):
    """Print how much faster two processes are that share nothing but the machine, each with half of X."""
    halves = [InMemory(options, threads=1, share=0.5) for _ in range(2)]
    alone, together = [], []
    for _ in range(options.repetitions + 1):
        alone.append(halves[0].times(options)[0])
        for half in halves:
            half.begin()
        together.append(max(half.pipe.recv()[0] for half in halves))
    for half in halves:
        half.end()
    alone, together = (statistics.median(seconds[1:]) for seconds in (alone, together))
    print(f"two processes that share nothing: {2 * alone / together:.2f} times as fast as one", flush=True)


def sent_bytes(dask_worker):
    return dask_worker.transfer_outgoing_bytes_total


def speeds(source, options):
    """Print the seconds of an iteration on one worker, two workers and in memory.

    Those on one and two workers are returned: by the clock, and of one processor.
    """
    with ExitStack() as stack:
        runs = [OnWorkers(source, workers, stack) for workers in (1, 2)] + [InMemory(options)]
        for run in runs:
            run.times(options)
        sent, began = runs[1].used()[1], time.process_time()
        found = [[run.times(options) for run in runs] for _ in range(options.repetitions)]
        here = (time.process_time() - began) / options.repetitions / (options.iterations + 1) / 2
        moved = (runs[1].used()[1] - sent) / options.repetitions / (options.iterations + 1)
        runs[2].end()
    wall = [statistics.median(column[0] for column in kind) for kind in zip(*found, strict=True)]
    cpu = [statistics.median(column[1] for column in kind) for kind in zip(*found, strict=True)]
    names = ("one worker", "two workers", "two threads in memory")
    for name, seconds, processor in zip(names, wall, cpu, strict=True):
        print(f"{name}: {seconds:.3f} s an iteration, {processor / (options.iterations + 1):.3f} processor s")
    best = [min(column[0] for column in kind) for kind in zip(*found, strict=True)]
    for kind, values in (("medians", wall), ("fastest", best)):
        print(
            f"{kind}: one worker / two {values[0] / values[1]:.2f}, "
            f"two workers / two threads in memory {values[1] / values[2]:.2f}"
        )
    print(f"processor seconds of two workers / one {cpu[1] / cpu[0]:.2f}, / in memory {cpu[1] / cpu[2]:.2f}")
    print(f"client and scheduler, on the same cores: {here:.3f} processor s an iteration")
    print(f"between the two workers: {moved:.3g} bytes an iteration", flush=True)
    each = [seconds / (options.iterations + 1) for seconds in cpu]
    return {"seconds": wall[:2], "processor seconds": (each[0], each[1] / 2)}


@contextmanager
def other_processes(workers):
    """The address of a scheduler in a process of its own, with so many workers, as from a shell."""
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        file = Path(folder) / "scheduler.json"

        def begin(name, *more):
            command = [sys.executable, "-c", f"from distributed.cli.{name} import main; main()", *more]
            process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            stack.callback(process.wait)
            stack.callback(process.terminate)

        begin("dask_scheduler", "--scheduler-file", str(file), "--port", "0", "--dashboard-address", ":0")
        for _ in range(workers):
            begin(
                "dask_worker", "--scheduler-file", str(file), "--nthreads", "1", "--dashboard-address", ":0"
            )
        while not file.exists():
            time.sleep(0.1)
        yield str(file)


def traffic(options, workers=2):
    """Bytes to and from the client in an iteration / (p·k + k²) numbers × workers."""
    counted, header, read = [0], tcp._add_frames_header, tcp.read_bytes_rw

    def writing(frames):
        found = header(frames)
        counted[0] += found[2]
        return found

    async def reading(stream, n):
        counted[0] += n
        return await read(stream, n)

    source = Planted(40_000, options.features, options.k).in_blocks(rows=5000)
    with other_processes(workers) as file, Client(scheduler_file=file) as client:
        client.wait_for_workers(workers)
        tcp._add_frames_header, tcp.read_bytes_rw = writing, reading
        totals = []
        for iterations in (5, 5, 25):  # the first one warms up
            counted[0] = 0
            LogSparseNMF(options.k, max_iter=iterations, eval_every=100, **SETTINGS).fit(on_workers(source))
            totals.append(counted[0])
    tcp._add_frames_header, tcp.read_bytes_rw = header, read
    each = (totals[2] - totals[1]) / 20
    floor = 8 * (options.features * options.k + options.k**2) * workers
    print(f"client: {each:.3g} bytes an iteration, {each / floor:.2f} × (p·k + k²) numbers × workers")


def kill_some(options):
    """Largest difference to an undisturbed run over fits in each of which a worker is killed."""
    source = Planted(20_000, 100, options.k).in_blocks(rows=2500)
    worst, usual, calm = 0.0, 1.0, None
    for trial in range(-2, options.kills):
        with cluster_of(2) as cluster, Client(cluster) as client:
            began, moment = time.perf_counter(), random.Random(trial).uniform(0, usual)
            timer = threading.Timer(moment, kill, [client, trial])
            if trial >= 0:
                timer.start()
            model = fit(on_workers(source, client=client), options)
            found = model.components_, model.embedding_.compute()
            usual = time.perf_counter() - began if trial == -1 else usual
            if trial >= 0:
                timer.join()
        calm = found if calm is None else calm
        worst = max(worst, *(float(np.abs(F - G).max()) for F, G in zip(found, calm, strict=True)))
    print(f"{options.kills} kills: largest difference of U and V {worst:.1e}", flush=True)


def kill(client, trial):
    pids = sorted(client.run(os.getpid).values())
    os.kill(pids[trial % len(pids)], signal.SIGKILL)


def cost_of_a_block(options):
    """Processor seconds of client and scheduler in an iteration, for every block more."""
    spent, counts = [], (8, 125)
    for blocks in counts:
        source = Planted(25_000, options.features, options.k).in_blocks(25_000 // blocks)
        with cluster_of(2) as cluster, Client(cluster) as client:
            given = on_workers(source, client=client)
            fit(given, options)
            began = time.process_time()
            fit(given, options)
            spent.append((time.process_time() - began) / (options.iterations + 1))
    cost = (spent[1] - spent[0]) / (counts[1] - counts[0])
    print(f"a block costs client and scheduler {1000 * cost:.1f} ms an iteration", flush=True)
    return cost


def forecast(one, two, block, options, count):
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
        return whole / workers + fixed + BLOCKS * workers * block + rounds * 2 * message / BANDWIDTH

    print(f"work {work:.3f} s, fixed {fixed:.4f} s an iteration; n = 1e8: {whole:.0f} s of work")
    for workers in count:
        print(f"{workers:5d} workers: {on(workers):9.2f} s, efficiency {whole / workers / on(workers):.0%}")


def main():
    formatter = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=formatter)
    parser.add_argument("--gigabytes", type=float, default=2.0)
    parser.add_argument("--features", type=int, default=1000)
    parser.add_argument("--k", type=int, default=20)
    parser.add_argument("--rows", type=int, help="rows of a block; default: as many as take 128 MiB")
    parser.add_argument("--iterations", type=int, default=10)
    parser.add_argument("--repetitions", type=int, default=5)
    parser.add_argument("--kills", type=int, default=0)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    logging.getLogger("distributed").setLevel(logging.CRITICAL)
    data = planted(options)
    source = data.in_blocks(options.rows)
    blocks = len(source.edges) - 1
    print(f"{data.n_samples} × {data.n_features}, {blocks} blocks, k = {options.k}", flush=True)
    most_that_two_can_gain(options)
    found = speeds(source, options)
    traffic(options)
    if options.kills:
        kill_some(options)
    block = cost_of_a_block(options)
    for kind, (one, two) in found.items():
        print(f"forecast by {kind}, {BLOCKS} blocks on every worker:")
        forecast(one, two, block, options, (10, 30, 100, 300, 1000))


if __name__ == "__main__":
    main()
