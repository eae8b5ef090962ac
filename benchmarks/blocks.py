"""Fits of data on disk that do not fit into the memory allowed: peak memory, and time against the floor.

    python benchmarks/blocks.py --gigabytes 8 --folder /var/tmp

Makes a file of planted samples (once; it is kept until --clean), fits it in a process of its own, and prints

- the largest resident memory of that process, at the limit `--limit`, in GB;
- the time of one iteration over the blocks / the time to read every block and take its two products, both
  with the file in the cache as far as it fits. Coordinate descent reads every block twice.

With ``--weights`` it compares default fits whose weights some samples choose with those that all choose.
"""

import argparse
import json
import shutil
import statistics
import subprocess
import sys
import time
from pathlib import Path

import numpy as np

from lognmf import MODELS, LogSparseNMF, RobustLogSparseNMF, in_blocks
from lognmf.models import sampled_weights

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
from planted import Planted

FEWEST = sampled_weights.FEWEST
FORMATS = ("npy", "zarr", "h5")
SETTINGS = {
    "NMF mu": ("NMF", {"solver": "mu", "init": "random"}),
    "LS-NMF mu": ("LS-NMF", {"solver": "mu", "init": "random", "alpha": 0.01, "beta": 0.01}),
    "RLS-NMF mu": ("RLS-NMF", {"solver": "mu", "init": "scaled", "alpha": 0.01, "beta": 0.01, "gamma": 1.0}),
    "LS-NMF cd": ("LS-NMF", {"solver": "cd", "init": "random", "alpha": 0.01, "beta": 0.01}),
    "LS-NMF defaults": ("LS-NMF", {}),
}


def write(path, planted):
    """The samples as a file, block by block."""
    if path.exists():
        return
    source, shape = planted.in_blocks(), (planted.n_samples, planted.n_features)
    rows = source.edges[1]
    if path.suffix == ".npy":
        target = np.lib.format.open_memmap(path, "w+", dtype=planted.dtype, shape=shape)
    elif path.suffix == ".zarr":
        import zarr

        target = zarr.create_array(path, shape=shape, chunks=(rows // 8, shape[1]), dtype=planted.dtype)
    else:
        import h5py

        file = h5py.File(path, "w")
        target = file.create_dataset("X", shape=shape, dtype=planted.dtype, chunks=(rows // 8, shape[1]))
    for start, stop in zip(source.edges, source.edges[1:], strict=False):
        target[start:stop] = source.read(slice(start, stop))
    if path.suffix == ".h5":
        file.close()


def peak():
    """Largest resident memory of this process so far, in GB."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM")) / 1e6


def floor(source, k, rounds):
    """Seconds to read every block and take its two products, the median of some rounds."""
    rng = np.random.default_rng(0)
    U, V = (rng.random((size, k)).astype(source.dtype) for size in source.shape[::-1])
    seconds = []
    for _ in range(rounds):
        began = time.perf_counter()
        total = 0
        for start, stop in zip(source.edges, source.edges[1:], strict=False):
            X = source.read(slice(start, stop))
            X @ U
            total = total + V[start:stop].T @ X
        seconds.append(time.perf_counter() - began)
    return statistics.median(seconds)


def fit(path, setting, k, iterations):
    """What a process of its own finds out about one fit."""
    name, options = SETTINGS[setting]
    source = in_blocks(path)
    exact = {"tol": 0, "max_iter": iterations, "eval_every": 1} if options else {}
    began = time.perf_counter()
    model = MODELS[name](k, random_state=0, **exact, **options).fit(source)
    whole, memory = time.perf_counter() - began, peak()
    steps = np.diff(model.history_["seconds"]) if options else [whole]
    print(
        json.dumps(
            {
                "iteration": statistics.median(steps),
                "seconds": whole,
                "memory": memory,
                "floor": floor(source, k, 3),
                "blocks": len(source.edges) - 1,
                "error": model.reconstruction_err_,
            }
        )
    )


def compare_weights(path, k):
    """Default fits, their weights chosen by some samples and by all."""
    for cls in (LogSparseNMF, RobustLogSparseNMF):
        for who, fewest in (("some", sampled_weights.FEWEST), ("all", np.inf)):
            sampled_weights.FEWEST = fewest
            began = time.perf_counter()
            model = cls(k, random_state=0).fit(in_blocks(path))
            seconds, zeros = time.perf_counter() - began, np.mean(model.components_ == 0)
            gamma = f"  gamma {model.gamma_:.4g}" if hasattr(model, "gamma_") else ""
            print(
                f"{cls.__name__:20} {who:5} {seconds:7.0f} s  alpha {model.alpha_:.4g}{gamma}  "
                f"error {model.reconstruction_err_:.4f}  zeros {zeros:.3f}",
                flush=True,
            )
        sampled_weights.FEWEST = FEWEST


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--gigabytes", type=float, default=1.0)
    parser.add_argument("--features", type=int, default=1000)
    parser.add_argument("--k", type=int, default=20)
    parser.add_argument("--iterations", type=int, default=5)
    parser.add_argument("--limit", type=float, default=1.5, help="GB of memory that a fit may take")
    parser.add_argument("--folder", type=Path, default=Path("/tmp"))
    parser.add_argument("--formats", nargs="+", default=["npy"], choices=FORMATS)
    parser.add_argument("--settings", nargs="+", default=[s for s in SETTINGS if "defaults" not in s])
    parser.add_argument("--weights", action="store_true", help="who chooses the weights, some samples or all")
    parser.add_argument("--clean", action="store_true", help="remove the files at the end")
    parser.add_argument("--one", nargs=2, metavar=("PATH", "SETTING"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        fit(options.one[0], options.one[1], options.k, options.iterations)
        return
    n = round(options.gigabytes * 1e9 / 8 / options.features)
    print(f"{n} × {options.features} float64, {options.gigabytes:g} GB on disk, k = {options.k}")
    print("format  setting          blocks  GB of memory  iteration s   floor s  ratio")
    for ending in options.formats:
        path = options.folder / f"lognmf-blocks-{n}-{options.features}.{ending}"
        write(path, Planted(n, options.features, options.k, outliers=0.01))
        if options.weights:
            compare_weights(path, options.k)
            continue
        for setting in options.settings:
            command = [sys.executable, __file__, "--one", str(path), setting]
            command += ["--k", str(options.k), "--iterations", str(options.iterations)]
            row = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
            over = "" if row["memory"] <= options.limit else f"  more than {options.limit:g} GB"
            print(
                f"{ending:7} {setting:16} {row['blocks']:6d} {row['memory']:13.2f} {row['iteration']:12.2f} "
                f"{row['floor']:9.2f} {row['iteration'] / row['floor']:6.2f}{over}",
                flush=True,
            )
        if options.clean:
            shutil.rmtree(path) if path.is_dir() else path.unlink()


if __name__ == "__main__":
    main()
