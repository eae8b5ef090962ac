"""What a second thread gives: fits with one thread and with two, in turn, in processes of their own.

`python benchmarks/threads.py` prints the time of an iteration and the ratio one thread / two, for three
shapes and three solvers. `busy` runs the same beside another program that keeps one core busy: two threads
must not be much slower than one there.
"""

import json
import os
import statistics
import subprocess
import sys
import time

import numpy as np

SHAPES = (1440, 1024), (400, 4000), (20_000, 200)
SOLVERS = "cd", "mu", "robust cd"
ITERATIONS, ROUNDS = 20, 7


def fit(shape: tuple[int, int], solver: str, iterations: int) -> float:
    """Seconds of a fit of 20 components with fixed weights."""
    from lognmf import LogSparseNMF, RobustLogSparseNMF

    rng = np.random.default_rng(0)
    X = rng.random((shape[0], 20)) ** 4 @ rng.random((20, shape[1])) ** 4 + 0.01 * rng.random(shape)
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    options = {"alpha": 1e-3, "beta": 1e-3, "init": "random", "max_iter": iterations, "tol": 0}
    if solver == "robust cd":
        model = RobustLogSparseNMF(20, gamma=0.5, random_state=0, **options)
    else:
        model = LogSparseNMF(20, solver=solver, random_state=0, **options)
    begin = time.perf_counter()
    model.fit(X)
    return time.perf_counter() - begin


def child() -> None:
    """Fit what the parent asks for, line by line."""
    for line in sys.stdin:
        print(json.dumps(fit(*json.loads(line))), flush=True)


def start(threads: int) -> subprocess.Popen[str]:
    """A process that fits with so many threads."""
    limits = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"), str(threads))
    command, pipe = [sys.executable, __file__, "child"], subprocess.PIPE
    return subprocess.Popen(command, env=os.environ | limits, stdin=pipe, stdout=pipe, text=True)


def ask(process: subprocess.Popen[str], *question: object) -> float:
    process.stdin.write(json.dumps(question) + "\n")
    process.stdin.flush()
    return json.loads(process.stdout.readline())


def main(*, busy: bool) -> None:
    neighbour = subprocess.Popen([sys.executable, "-c", "while True: pass"]) if busy else None
    children, ratios = {threads: start(threads) for threads in (1, 2)}, []
    try:
        print(
            f"{'n × p':>14} {'solver':>10} {'1 thread':>10} {'2 threads':>10} {'ratio':>6}   ms per iteration"
        )
        for shape in SHAPES:
            for solver in SOLVERS:
                for process in children.values():  # compiled loops are loaded
                    ask(process, shape, solver, 2)
                seconds = {threads: [] for threads in children}
                for _ in range(ROUNDS):
                    for threads, process in children.items():
                        seconds[threads].append(ask(process, shape, solver, ITERATIONS))
                one, two = (1000 / ITERATIONS * statistics.median(times) for times in seconds.values())
                ratios.append(one / two)
                print(f"{shape[0]:>7,} × {shape[1]:<5,}{solver:>10} {one:10.2f} {two:10.2f} {one / two:6.2f}")
        print(f"ratio: median {statistics.median(ratios):.2f}, least {min(ratios):.2f}")
    finally:
        for process in (*children.values(), *([neighbour] if neighbour else [])):
            process.kill()


if __name__ == "__main__":
    if sys.argv[1:] == ["child"]:
        child()
    else:
        main(busy=sys.argv[1:] == ["busy"])
