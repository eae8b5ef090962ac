"""R's RcppML through an Rscript that waits for orders, so that only ``nmf`` itself is timed."""

import os
import shutil
import subprocess
import tempfile
from pathlib import Path

import numpy as np
import scipy.sparse as sp
from benchmark_utils.cpu_time import TimedSolver

SCRIPT = Path(__file__).with_suffix(".R")


def missing():
    """What is not there: Rscript, RcppML, or None if both are."""
    if shutil.which("Rscript") is None:
        return "no Rscript"
    found = subprocess.run(["Rscript", "-e", "library(RcppML)"], capture_output=True, check=False)
    return "R has no RcppML" if found.returncode else None


class Solver(TimedSolver):
    """So many alternating least-squares steps from a random start of its own: version 0.3.7 takes none.

    Samples are its columns, so X is handed over as it lies in memory. The order and the answer through a pipe
    are timed with the fit (below a millisecond).
    """

    name = "RcppML"

    def skip(self, X, model, weight, graph, start):
        """Its L1 penalty is a share of the solution, not a weight in an objective."""
        if model != "nmf":
            return True, "no such objective"
        reason = missing()
        return reason is not None, reason

    def set_objective(self, X, model, weight, graph, start):
        """Write X, start R and let it read."""
        self.start, self.shape = start, X.shape
        self.folder = tempfile.TemporaryDirectory()
        place = Path(self.folder.name)
        if sp.issparse(X):
            X = X.tocsr()
            X.data.tofile(place / "data.bin")
            X.indices.astype(np.int32).tofile(place / "rows.bin")
            X.indptr.astype(np.int32).tofile(place / "ends.bin")
        else:
            np.ascontiguousarray(X).tofile(place / "x.bin")
        threads = os.environ.get("OMP_NUM_THREADS", len(os.sched_getaffinity(0)))
        numbers = X.shape[1], X.shape[0], start[0].shape[1], threads
        command = ["Rscript", str(SCRIPT), str(place), *map(str, numbers)]
        self.R = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self._answer("ready")

    def _answer(self, wanted):
        """Wait for a line of R's: the wanted word, and the CPU seconds since the last one."""
        word, _, cpu = self.R.stdout.readline().strip().partition(" ")
        if word != wanted:
            raise RuntimeError(f"RcppML answered {word!r} where {wanted!r} was expected.")
        return float(cpu)

    def _order(self, *words, wanted):
        """Send a line and wait for the answer."""
        print(*words, file=self.R.stdin, flush=True)
        return self._answer(wanted)

    def warm_up(self):
        """First call."""
        self.run_once(2)

    def run(self, n_iter):
        """Fit, nothing at 0 iterations; the CPU seconds are those of R."""
        self.n_iter = n_iter
        self.cpu = self._order("fit", n_iter, wanted="fitted") if n_iter else 0.0

    def factors(self):
        """U and V, with RcppML's diagonal in V; the common start stands for 0 iterations."""
        if self.n_iter == 0:
            return self.start
        self._order("write", 0, wanted="written")
        n, p = self.shape
        k = self.start[0].shape[1]
        U, V = (np.fromfile(Path(self.folder.name, f"{name}.bin")) for name in "UV")
        return U.reshape(k, p).T, V.reshape(n, k)
