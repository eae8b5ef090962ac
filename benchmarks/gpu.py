"""Large data on a GPU: graph, default fit, sparse records, coordinate descent and the clusterer.

    LOGNMF_DATA=… python benchmarks/gpu.py                  # every section
    LOGNMF_DATA=… python benchmarks/gpu.py graph records    # some of them

graph       exact search, dense 100,000 × 500 and 1,000,000 × 500
fit         LogSparseNMF(20), dense 1,000,000 × 500 in float32, all included
records     sparse X in host memory → factors, to the error of 20 iterations of scikit-learn's
            coordinate descent from the same start: 40,000 × 5,000 with 33 million entries, k = 20,
            and 10,000 × 5,000 with 8.3 million, k = 64
objective   coordinate descent on COIL20 in float32 on the GPU against float64 on the CPU
grid        NMFClustering(20) on COIL20
iteration   multiplicative updates, 1,000,000 × 1,000, k = 50, against the two products of an iteration
transform   codes of 1,000,000 × 500 and of 100,000 × 20,000 sparse samples
texts       exact graph of 20,000 × 20,000, NMFClustering(20) of 100,000 × 20,000, sparse

Every section runs twice; the second time is the one to quote, since kernels are compiled in the first.
Memory is the peak on the card.
"""

import argparse
import time
from functools import partial

import numpy as np
import scipy.sparse as sp
import torch
from sklearn.decomposition import NMF

import lognmf
from lognmf import GraphNMF, LogSparseNMF, NMFClustering, PlainNMF, RobustLogSparseNMF, knn_graph, metrics

CARD = "cuda"


def planted(n, p, k=20, seed=0):
    """Samples that mix k parts, on the card, in float32."""
    draw = torch.Generator(CARD).manual_seed(seed)
    V = torch.rand((n, k), generator=draw, device=CARD) ** 4
    U = torch.rand((p, k), generator=draw, device=CARD) ** 4
    X = V @ U.T
    X += 0.1 * torch.rand((n, p), generator=draw, device=CARD)
    return X / torch.linalg.vector_norm(X, dim=1, keepdim=True)


def sparse(n, p, entries, k=20, seed=0):
    """A CSR matrix in host memory with so many entries, of rank k but for noise and which are stored."""
    rng = np.random.default_rng(seed)
    count = entries // n
    columns = np.concatenate([np.sort(rng.choice(p, count, replace=False)) for _ in range(n)])
    V, U = (rng.gamma(0.5, size=(rows, k)).astype(np.float32) for rows in (n, p))
    values = np.concatenate([U[own] @ v for own, v in zip(columns.reshape(n, count), V, strict=True)])
    values *= rng.random(len(values), dtype=np.float32)
    ends = count * np.arange(n + 1, dtype=np.int32)
    return sp.csr_array((values, columns.astype(np.int32), ends), shape=(n, p))


def timed(function):
    """Seconds, and what it returns; the card has done its work when the clock stops."""
    torch.cuda.synchronize()
    torch.cuda.reset_peak_memory_stats()
    began = time.perf_counter()
    result = function()
    torch.cuda.synchronize()
    return time.perf_counter() - began, result


def twice(name, function, note=lambda _: ""):
    """Run it twice and print both."""
    for _ in range(2):
        seconds, result = timed(function)
        memory = torch.cuda.max_memory_allocated() / 2**30
        print(f"{name:45s} {seconds:8.3f} s  {memory:6.2f} GB  {note(result)}", flush=True)
    return result


def graph():
    for n in (100_000, 1_000_000):
        X = planted(n, 500)
        W = twice(f"exact graph, {n:,} × 500", partial(knn_graph, X))
    some = np.random.default_rng(0).choice(len(X), 200, replace=False)
    Y = X.double()
    true = torch.cdist(Y[torch.as_tensor(some, device=CARD)], Y).topk(6, largest=False).indices.cpu().numpy()
    hit = np.mean([W[i, j] > 0 for i, row in zip(some, true, strict=True) for j in row if j != i])
    print(f"of the true neighbours of 200 samples are in it: {hit:.4f}")


def fit():
    X = planted(1_000_000, 500)

    def told(model):
        zeros = float((model.components_ == 0).double().mean())
        error = model.reconstruction_err_ / float(torch.linalg.vector_norm(X.double()))
        return f"{model.n_iter_} iterations, {model.stop_reason_}, zeros {zeros:.2f}, error {error:.4f}"

    twice("LogSparseNMF(20), 1,000,000 × 500", lambda: LogSparseNMF(20, random_state=0).fit(X), told)
    model = GraphNMF(20, random_state=0, init="spectral")
    twice("GraphNMF(20), spectral start, 300,000 × 500", lambda: model.fit(X[:300_000]))


def fitted(X, k, start, steps):
    """Plain NMF of data in host memory after so many steps of coordinate descent on the card."""
    model = PlainNMF(k, solver="cd", scale=1.0, max_iter=steps, tol=0, eval_every=steps)
    return model.fit(lognmf.to_device(X, CARD), U0=start["H"].T, V0=start["W"])


def records():
    for n, p, entries, k in ((40_000, 5_000, 33_000_000, 20), (10_000, 5_000, 8_300_000, 64)):
        X, rng = sparse(n, p, entries, k), np.random.RandomState(0)
        size = float(np.sqrt(X.mean() / k))
        start = {
            name: size * rng.uniform(size=shape).astype(np.float32)
            for name, shape in {"H": (k, p), "W": (n, k)}.items()
        }
        peer = NMF(k, init="custom", max_iter=20, tol=0)
        began = time.perf_counter()
        peer.fit_transform(X, **{name: F.copy() for name, F in start.items()})
        theirs, goal = time.perf_counter() - began, peer.reconstruction_err_
        steps = next(s for s in range(4, 60) if fitted(X, k, start, s).reconstruction_err_ <= goal)
        model = twice(f"{n} × {p}, {X.nnz / 1e6:.1f} M entries, k = {k}", partial(fitted, X, k, start, steps))
        print(f"  {steps} iterations, error {model.reconstruction_err_:.6g}")
        print(f"  scikit-learn, 20 iterations on the CPU, error {goal:.6g}: {theirs:.1f} s")


def objective():
    X = lognmf.normalize(lognmf.datasets.load("coil20").X).astype(np.float32)
    there = lognmf.to_device(X, CARD)
    long = {"init": "nndsvda", "max_iter": 2000, "tol": 1e-7, "random_state": 0}
    weights = {"alpha": 0.01, "beta": 0.0, "lam": 0.1}
    for name, model in {
        "NMF": PlainNMF(20, solver="cd", **long),
        "LS-NMF": LogSparseNMF(20, **weights, **long),
        "RLS-NMF": RobustLogSparseNMF(20, gamma=1.0, **weights, **long),
        "default": LogSparseNMF(20, random_state=0),
    }.items():
        seconds, here = timed(partial(model.fit, X))
        value, count = here.objective_, here.n_iter_
        card = twice(
            f"COIL20, {name}", partial(model.fit, there), lambda found: f"{found.n_iter_} iterations"
        )
        print(f"  CPU {value:.8g}, {count} iterations, {seconds:.2f} s; GPU {card.objective_:.8g}:", end=" ")
        print(f"{card.objective_ / value - 1:+.1e}")


def grid():
    coil20 = lognmf.datasets.load("coil20")
    X, y = lognmf.normalize(coil20.X), coil20.y

    def told(model):
        return f"accuracy {metrics.clustering_accuracy(y, model.labels_):.3f}"

    model = NMFClustering(20, random_state=0, device=CARD)
    twice("NMFClustering(20), COIL20", partial(model.fit, X), told)


def iteration():
    X, k, steps = planted(1_000_000, 1_000), 50, 20
    U, V = torch.rand((1_000, k), device=CARD), torch.rand((1_000_000, k), device=CARD)

    def products():
        for _ in range(steps):
            X @ U
            X.T @ V

    floor = min(timed(products)[0] for _ in range(3)) / steps
    print(f"two products                                  {1e3 * floor:8.2f} ms")
    common = {"solver": "mu", "init": "random", "random_state": 0, "tol": 0, "eval_every": 1000}
    weights = {"alpha": 0.01, "beta": 0.01, "lam": 0.0, "unit_components": False}
    for name, model in {
        "NMF": PlainNMF(k, **common),
        "LS-NMF": LogSparseNMF(k, **weights, **common),
        "RLS-NMF": RobustLogSparseNMF(k, gamma=1.0, **weights, **common),
    }.items():
        seconds = []
        for count in (steps, 3 * steps):
            fit = partial(model.set_params(max_iter=count).fit, X, U0=U, V0=V)
            seconds.append(min(timed(fit)[0] for _ in range(2)))
        own = (seconds[1] - seconds[0]) / (2 * steps)
        print(f"{name:45s} {1e3 * own:8.2f} ms  {own / floor:.2f} × its products")


def texts():
    S = sparse(20_000, 20_000, 2_400_000)
    twice("exact graph, 20,000 × 20,000 with 2.4 M entries", lambda: knn_graph(lognmf.to_device(S, CARD)))
    S = sparse(100_000, 20_000, 12_000_000)
    model = NMFClustering(20, random_state=0, device=CARD)
    twice("NMFClustering(20), 100,000 × 20,000, 12 M entries", lambda: model.fit(S))


def transform():
    X = planted(1_000_000, 500)
    model = LogSparseNMF(20, random_state=0).fit(X[:20_000])
    twice("transform, 1,000,000 × 500", lambda: model.transform(X))
    S = sparse(100_000, 20_000, 12_000_000)
    model = PlainNMF(20, solver="cd", random_state=0).fit(S[:20_000])
    there = lognmf.to_device(S, CARD)
    twice("transform, 100,000 × 20,000 with 12 M entries", lambda: model.transform(there))


SECTIONS = {f.__name__: f for f in (graph, objective, grid, records, fit, iteration, transform, texts)}


def main():
    as_it_is = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=as_it_is)
    parser.add_argument("sections", nargs="*", help=", ".join(SECTIONS))
    parser.add_argument("--tf32", action="store_true", help="products in TF32: torch's own switch")
    options = parser.parse_args()
    torch.backends.cuda.matmul.allow_tf32 = options.tf32
    print(torch.cuda.get_device_name(), "torch", torch.__version__, "TF32" if options.tf32 else "")
    for name in options.sections or SECTIONS:
        try:
            SECTIONS[name]()
        except Exception as error:  # the others are still worth their time
            print(f"{name}: {type(error).__name__}: {error}", flush=True)


if __name__ == "__main__":
    main()
