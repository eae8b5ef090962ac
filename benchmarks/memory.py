"""Peak memory of a whole fit beyond the data, validation and graph included, at COIL20's size.

    python benchmarks/memory.py

Counted in units of (n + p)·k numbers, twice: what NumPy and Python allocate (tracemalloc), and,
on Linux, by how much the resident memory of a process of its own grows at most during the fit,
which also sees the buffers of compiled libraries.
"""

import argparse
import subprocess
import sys
import tracemalloc
from pathlib import Path

import numpy as np

GROWTH = """
import sys
from pathlib import Path
import numpy as np
from lognmf import MODELS

def status(key):
    lines = Path("/proc/self/status").read_text().splitlines()
    return 1024 * next(int(line.split()[1]) for line in lines if line.startswith(key))

name, dtype = sys.argv[1], sys.argv[2]
n, p, k = (int(v) for v in sys.argv[3:])
X = np.random.default_rng(0).random((n, p), dtype=dtype)
MODELS[name](k, max_iter=20, random_state=0).fit(X[: max(60, n // 20)])  # loads everything
X @ np.ones((p, k), dtype), X.T @ np.ones((n, k), dtype)  # and what BLAS sets aside for itself
Path("/proc/self/clear_refs").write_text("5")  # the peak starts anew
before = status("VmRSS")
MODELS[name](k, max_iter=20, random_state=0).fit(X)
print(status("VmHWM") - before)
"""


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

    X = np.random.default_rng(0).random((n, p), dtype=options.dtype)
    unit = (n + p) * k * X.itemsize
    print(f"n, p, k = {(n, p, k)}, {options.dtype}; X has {X.nbytes / unit:.1f} units of (n + p)·k numbers")
    for name, cls in MODELS.items():
        cls(k, max_iter=20, random_state=0).fit(X[:60])
        allocated = traced(cls(k, max_iter=20, random_state=0), X)
        print(f"{name:8s} a fit allocates {allocated / unit:5.1f} units (bar 12)", end="")
        if Path("/proc/self/clear_refs").exists():
            command = [sys.executable, "-c", GROWTH, name, options.dtype, *map(str, options.shape)]
            grown = int(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
            print(f"; the process grows by {grown / unit:5.1f} units", end="")
        print()


if __name__ == "__main__":
    main()
