"""GNMF as Cai et al. (2011) publish it: their multiplicative updates, written out in NumPy."""

import numpy as np
import scipy.sparse as sp
from benchmark_utils.cpu_time import TimedSolver


class Solver(TimedSolver):
    """Both factors are scaled to unit-norm columns of U at the start and at the end, as in their program.

    In between the norm is free, so what it minimises is not quite what is evaluated.
    """

    name = "Cai et al."
    requirements = ["pip::numpy"]

    def skip(self, X, model, weight, graph, start):
        """It is for graphs."""
        return (True, "needs a graph") if model != "graph" else (False, None)

    def set_objective(self, X, model, weight, graph, start):
        """The degrees of the graph."""
        self.X, self.start = X, start
        self.W = weight * sp.csr_array(graph)
        self.degree = np.asarray(self.W.sum(axis=1)).reshape(-1, 1)

    def fit(self, n_iter):
        """So many updates of U and of V."""
        U, V = (F.copy() for F in self.start)
        norms = np.linalg.norm(U, axis=0)
        U, V = U / norms, V * norms
        for _ in range(n_iter):
            U *= (self.X.T @ V) / np.maximum(U @ (V.T @ V), 1e-10)
            V *= (self.X @ U + self.W @ V) / np.maximum(V @ (U.T @ U) + self.degree * V, 1e-10)
        norms = np.linalg.norm(U, axis=0)
        self.U, self.V = U / norms, V * norms

    def factors(self):
        """U and V."""
        return self.U, self.V
