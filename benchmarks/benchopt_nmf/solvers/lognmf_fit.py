"""lognmf: multiplicative updates and coordinate descent, on the CPU and on a GPU."""

import numpy as np
from benchmark_utils.cpu_time import TimedSolver

from lognmf import LogSparseNMF, PlainNMF, to_device


def cuda_at_hand():
    """Whether torch is installed and sees a GPU."""
    try:
        import torch
    except ImportError:
        return False
    return torch.cuda.is_available()


def on_host(F):
    """The factor as a NumPy array."""
    return F if isinstance(F, np.ndarray) else F.cpu().numpy()


class Solver(TimedSolver):
    """A fit of that many iterations; the objective is evaluated at its end only."""

    name = "lognmf"
    requirements = ["pip::lognmf"]
    parameters = {"solver": ["mu", "cd"], "device": ["cpu", "cuda"]}

    def skip(self, X, model, weight, graph, start):
        """Needs a GPU for device="cuda"."""
        if self.device == "cuda" and not cuda_at_hand():
            return True, "torch sees no GPU"
        return False, None

    def set_objective(self, X, model, weight, graph, start):
        """Build the model."""
        self.X = X if self.device == "cpu" else to_device(X, self.device, "float64")
        self.start = dict(zip(("U0", "V0"), start, strict=True))
        k = start[0].shape[1]
        common = {"solver": self.solver, "scale": 1.0, "tol": 0}
        if model == "nmf":
            self.model = PlainNMF(k, **common)
        elif model == "graph":
            self.model = LogSparseNMF(k, alpha=0, beta=0, lam=weight, graph=graph, **common)
        else:
            options = {"penalty": "l1", "unit_components": False}
            self.model = LogSparseNMF(k, alpha=weight, beta=weight, **options, **common)

    def warm_up(self):
        """Compile."""
        self.run_once(2)

    def fit(self, n_iter):
        """Fit from the common start."""
        self.model.set_params(max_iter=n_iter, eval_every=max(n_iter, 1))
        self.model.fit(self.X, **self.start)

    def factors(self):
        """U and V."""
        return on_host(self.model.components_).T, on_host(self.model.embedding_)
