"""The paper's whole weight grid of RLS-NMF, 7⁴ = 2401 settings, with k-means and scores, on a GPU.

    LOGNMF_DATA=… python benchmarks/paper_grid.py --device cuda

500 iterations each (tol = 0), one seed, k-means with 10 restarts, accuracy, NMI, purity and
normalised cut. Prints the time for every data set; and, at the size of EYaleB, the time of an
iteration of the whole batch against the two wide products that it cannot avoid, and the rate that
the card reaches on those (bar: 50 % of it). With --profile also where an iteration's time goes:

    LOGNMF_DATA=… python benchmarks/paper_grid.py --device cuda --profile --data
"""

import argparse
import datetime
import itertools
import time

import numpy as np

import data
from lognmf import MODELS, fit_grid
from lognmf.core.arrays import like, product
from lognmf.core.data import InMemory
from lognmf.core.matrices import to_device
from lognmf.core.solvers import Multiplicative
from lognmf.core.terms import ROW_NORMS, Robust
from lognmf.graph import knn_graph
from lognmf.models.log_sparse import regularised
from lognmf.paper.methods import PINNED

VALUES = (0.001, 0.01, 0.1, 1.0, 10.0, 100.0, 1000.0)
GRID = dict.fromkeys(("alpha", "beta", "gamma", "lam"), VALUES)


def whole_grid(name, options):
    X, y = data.load(name)
    k = len(np.unique(y))
    model = MODELS["RLS-NMF"](k, **{**PINNED["RLS-NMF"], "init": "random"}, eval_every=50)
    start = time.perf_counter()
    result = fit_grid(model, X, GRID, y=y, device=options.device, max_iter=options.max_iter, tol=0.0)
    seconds = time.perf_counter() - start
    best = max(result.rows, key=lambda row: row["accuracy"])
    print(
        f"{name:10s} {X.shape[0]:6d} × {X.shape[1]:4d}, k = {k:3d}: {len(result.rows)} fits of "
        f"{options.max_iter} iterations in {seconds:6.1f} s; best accuracy {100 * best['accuracy']:.2f} %",
        flush=True,
    )
    return seconds


def iteration_share(name, options, steps=20):
    """Time of an iteration of the whole batch over that of its two wide products."""
    import torch

    X, y = data.load(name)
    k = len(np.unique(y))
    x = to_device(X, options.device, "float32")
    weights = np.array(list(itertools.product(VALUES, repeat=4))).T
    alpha, beta, gamma, lam = (like(w, x) for w in weights)
    B = len(alpha)
    rule = Multiplicative(
        regularised(
            InMemory(x),
            Robust(ROW_NORMS["l2log"](), gamma),
            W=knn_graph(X),
            alpha=alpha,
            beta=beta,
            lam=lam,
            penalty="log",
        )
    )
    state = rule.start(*(torch.rand((m, B, k), device=x.device) for m in (X.shape[1], X.shape[0])))

    def timed(function):
        for _ in range(3):
            function()
        torch.cuda.synchronize()
        start = time.perf_counter()
        for _ in range(steps):
            function()
        torch.cuda.synchronize()
        return (time.perf_counter() - start) / steps

    states = [state]

    def step():
        states[0] = rule.step(states[0])

    if options.profile:
        for _ in range(50):  # until the large start is forgotten
            step()
        print_profile(step, steps)
    products = timed(lambda: (product(x.T, state.V), product(x, state.U)))
    iteration = timed(step)
    rate = 4 * X.shape[0] * X.shape[1] * B * k / products / 1e12
    print(
        f"{name}, B = {B}, float32: two wide products {1e3 * products:.1f} ms ({rate:.1f} TFLOP/s), one "
        f"iteration {1e3 * iteration:.1f} ms: {100 * products / iteration:.0f} % of the product rate",
        flush=True,
    )


def print_profile(step, steps):
    """Milliseconds of every kind of kernel in one call of ``step``, the largest first."""
    import torch
    from torch.profiler import ProfilerActivity, profile

    with profile(activities=[ProfilerActivity.CUDA]) as profiled:
        for _ in range(steps):
            step()
        torch.cuda.synchronize()
    spent = {event.key: event.self_device_time_total / steps / 1e3 for event in profiled.key_averages()}
    for name, milliseconds in sorted(spent.items(), key=lambda item: -item[1])[:12]:
        print(f"    {milliseconds:7.3f} ms  {name[:110]}")
    print(f"    {sum(spent.values()):7.3f} ms  all kernels")


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--profile", action="store_true")
    parser.add_argument("--data", nargs="*", default=list(data.READERS), choices=list(data.READERS))
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--max-iter", type=int, default=500)
    options = parser.parse_args()
    print(f"{datetime.date.today()}, device {options.device}")
    if options.device.startswith("cuda"):
        import torch

        print(f"{torch.cuda.get_device_name()}, torch {torch.__version__}")
        iteration_share("EYaleB", options)
        iteration_share("COIL20", options)
    total = sum(whole_grid(name, options) for name in options.data)
    print(f"all: {total:.1f} s")


if __name__ == "__main__":
    main()
