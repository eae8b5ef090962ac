"""Peak memory of a whole fit beyond the data, validation and graph included, at COIL20's size.

    python benchmarks/memory.py

Counted in units of (n + p)·k numbers, twice: what NumPy and Python allocate (tracemalloc), and,
on Linux, by how much the resident memory of a process of its own grows at most during the fit,
which also sees the buffers of compiled libraries. X in C order for all models; in Fortran order and
as CSR with every second entry for the two of the paper.
"""

import argparse
import subprocess
import sys
import tracemalloc
from pathlib import Path

import numpy as np
import scipy.sparse as sp

GROWTH = """
import sys
from pathlib import Path
import numpy as np
from lognmf import MODELS

def status(key):
    lines = Path("/proc/self/status").read_text().splitlines()
    return 1024 * next(int(line.split()[1]) for line in lines if line.startswith(key))

sys.path.insert(0, sys.argv[1])
from memory import draw

kind, name, dtype = sys.argv[2:5]
n, p, k = (int(v) for v in sys.argv[5:])
X = draw(kind, (n, p), dtype)
MODELS[name](k, max_iter=20, random_state=0).fit(X[: max(60, n // 20)])  # loads everything
X @ np.ones((p, k), dtype), X.T @ np.ones((n, k), dtype)  # and what BLAS sets aside for itself
Path("/proc/self/clear_refs").write_text("5")  # the peak starts anew
before = status("VmRSS")
MODELS[name](k, max_iter=20, random_state=0).fit(X)
print(status("VmHWM") - before)
"""


KINDS = {
    "C order": np.ascontiguousarray,
    "Fortran order": np.asfortranarray,
    "CSR": lambda X: sp.csr_array(X * (X < 0.5)),
}


def draw(kind, shape, dtype):
    return KINDS[kind](np.random.default_rng(0).random(shape, dtype=dtype))


def traced(model, X):
    tracemalloc.start()
    model.fit(X)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return peak


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--shape", type=int, nargs=3, default=(1440, 1024, 20), metavar=("N", "P", "K"))
    parser.add_argument("--dtype", choices=("float64", "float32"), default="float64")
    options = parser.parse_args()
    n, p, k = options.shape

    from lognmf import MODELS

    unit = (n + p) * k * np.dtype(options.dtype).itemsize
    print(
        f"n, p, k = {(n, p, k)}, {options.dtype}; X has {n * p / (n + p) / k:.1f} units of (n + p)·k numbers"
    )
    for kind in KINDS:
        X = draw(kind, (n, p), options.dtype)
        for name in MODELS if kind == "C order" else ("LS-NMF", "RLS-NMF"):
            model = MODELS[name](k, max_iter=20, random_state=0)
            model.fit(X[:60])
            print(
                f"{kind:13s} {name:8s} a fit allocates {traced(model, X) / unit:5.1f} units (bar 12)", end=""
            )
            if Path("/proc/self/clear_refs").exists():
                here, sizes = str(Path(__file__).parent), map(str, options.shape)
                command = [sys.executable, "-c", GROWTH, here, kind, name, options.dtype, *sizes]
                grown = int(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
                print(f"; the process grows by {grown / unit:5.1f} units", end="")
            print(flush=True)


if __name__ == "__main__":
    main()
