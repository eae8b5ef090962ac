"""torchnmf: multiplicative updates through autograd, in float64, on the CPU and on a GPU."""

import numpy as np
import scipy.sparse as sp
import torch
from benchmark_utils.cpu_time import TimedSolver
from torchnmf.nmf import NMF


class Solver(TimedSolver):
    """A fit of that many iterations; it evaluates its loss every ten of them and cannot be told not to."""

    name = "torchnmf"
    requirements = ["pip::torchnmf"]
    parameters = {"device": ["cpu", "cuda"]}

    def skip(self, X, model, weight, graph, start):
        """It has no graph."""
        if model == "graph":
            return True, "no graph penalty"
        if self.device == "cuda" and not torch.cuda.is_available():
            return True, "torch sees no GPU"
        return False, None

    def set_objective(self, X, model, weight, graph, start):
        """Tensors; its parameters have torch's default type."""
        torch.set_default_dtype(torch.float64)
        if sp.issparse(X):
            entries = X.tocoo()
            places = torch.from_numpy(np.stack(entries.coords))
            values = torch.from_numpy(entries.data)
            X = torch.sparse_coo_tensor(places, values, X.shape, check_invariants=False)
        else:
            X = torch.from_numpy(X)
        self.X = X.to(self.device)
        self.start = [torch.from_numpy(F) for F in start]
        # It minimises half of our objective, with one weight for both factors.
        self.options = {"beta": 2, "tol": -np.inf, "alpha": weight / 2, "l1_ratio": 1.0}

    def warm_up(self):
        """Load what torch loads late."""
        self.run_once(2)

    def fit(self, n_iter):
        """Fit from the common start; its W is our U, its H our V."""
        U, V = self.start
        self.model = NMF(W=U, H=V).to(self.device)
        if n_iter:
            self.model.fit(self.X, max_iter=n_iter, **self.options)
        if self.device == "cuda":
            torch.cuda.synchronize()

    def factors(self):
        """U and V."""
        U, V = (F.detach().cpu().numpy() for F in (self.model.W, self.model.H))
        return U, V
