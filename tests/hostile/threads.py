"""Fits in several threads at once, and in a forked child: the numbers of a fit alone, no limits left."""

import multiprocessing
import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from threadpoolctl import ThreadpoolController, threadpool_limits

from hostile.cases import Case, Kind
from hostile.stores import broken
from lognmf import MODELS

SHAPES = {"small": (30, 8), "middle": (600, 400), "wide": (1500, 1200)}
"""One thread, those of BLAS, and our own, with the parts below."""

PARTS = {"small": 2, "middle": 20, "wide": 80}
ITERATIONS = {"small": 3, "middle": 3, "wide": 1}
ROUNDS = {"small": 10, "middle": 2, "wide": 1}
"""Fits of each thread, so that they begin and end while others are at work."""


def fit(case: Case, seed: int) -> tuple[float, float]:
    """The objective and the sum of the codes of one fit."""
    X = np.random.default_rng(seed).random(SHAPES[case["shape"]])
    model = MODELS[case["model"]](
        PARTS[case["shape"]], init="random", max_iter=ITERATIONS[case["shape"]], random_state=seed
    )
    X = sp.csr_array(X * (X > 0.9)) if case["sparse"] else X
    for _ in range(ROUNDS[case["shape"]]):
        model.fit(X)
    return float(model.objective_), float(np.sum(np.asarray(model.embedding_)))


def limits() -> list[int]:
    libraries = ThreadpoolController().select(user_api="blas").lib_controllers
    return [library.num_threads for library in libraries]


def forked(case: Case, seed: int) -> tuple[float, float]:
    """The same fit in a child that is a copy of this process."""
    here, there = multiprocessing.Pipe()
    fork = multiprocessing.get_context("fork")
    process = fork.Process(target=lambda: there.send(fit(case, seed)))
    process.start()
    there.close()
    try:
        return here.recv()
    except EOFError:
        process.join()
        broken(f"the forked child ended with {process.exitcode}")
    finally:
        process.join()


def check(case: Case, folder: Path) -> str:
    allowed = os.environ.get("OMP_NUM_THREADS")
    os.environ["OMP_NUM_THREADS"] = str(case["allowed"])
    try:
        with threadpool_limits(case["allowed"], user_api="blas"):
            before = limits()
            _compare(case)
            if limits() != before:
                broken(f"BLAS had {before} threads and has {limits()}")
    finally:
        if allowed is None:
            del os.environ["OMP_NUM_THREADS"]
        else:
            os.environ["OMP_NUM_THREADS"] = allowed
    return f"{case['threads']} threads{', fork' * case['fork']}"


def _compare(case: Case) -> None:
    seeds = range(case["threads"])
    alone = [fit(case, seed) for seed in seeds]
    with ThreadPoolExecutor(case["threads"]) as pool:
        together: list[Any] = list(pool.map(lambda seed: fit(case, seed), seeds))
    if not np.allclose(together, alone, rtol=1e-9):
        broken(f"together {together}, alone {alone}")
    if case["fork"] and not np.allclose(forked(case, 0), alone[0], rtol=1e-9):
        broken("a forked child has other numbers")


THREADS = Kind(
    "threads",
    {
        "threads": [2, 3, 4],
        "shape": list(SHAPES),
        "model": ["NMF", "LS-NMF", "RLS-NMF", "WNMF", "GNMF"],
        "allowed": [1, 2],
        "sparse": [False, True],
        "fork": [False, True],
    },
    check,
    soak=200,
    short=8,
    chunk=20,
)
