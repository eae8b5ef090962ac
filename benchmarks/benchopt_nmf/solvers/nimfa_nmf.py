"""nimfa 1.4: multiplicative updates (Nmf) and projected gradients (Lsnmf).

nimfa uses np.mat, which NumPy 2 removed, and fails there as it is. The first line below puts the name back.
"""

import numpy as np

vars(np)["mat"] = np.asmatrix

import nimfa  # noqa: E402
import scipy.sparse as sp  # noqa: E402
from benchmark_utils.cpu_time import TimedSolver  # noqa: E402


class Solver(TimedSolver):
    """A factorisation of that many iterations, without tests of convergence."""

    name = "nimfa"
    requirements = ["pip::nimfa"]
    parameters = {"method": ["Nmf", "Lsnmf"]}

    def skip(self, X, model, weight, graph, start):
        """Its sparse and graph models minimise other objectives."""
        return (True, "no such objective") if model != "nmf" else (False, None)

    def set_objective(self, X, model, weight, graph, start):
        """It knows only the old sparse matrices of SciPy."""
        self.X = sp.csr_matrix(X) if sp.issparse(X) else X
        self.start = start

    def fit(self, n_iter):
        """Factorise from copies of the common start."""
        self.U, self.V = (F.copy() for F in self.start)
        if n_iter:
            method = getattr(nimfa, self.method)
            options = {"rank": self.U.shape[1], "max_iter": n_iter, "test_conv": n_iter + 1}
            fit = method(self.X, W=self.V, H=self.U.T.copy(), **options)()
            self.U, self.V = fit.coef().T, fit.basis()

    def factors(self):
        """U and V as arrays."""
        U, V = (F.toarray() if sp.issparse(F) else np.asarray(F) for F in (self.U, self.V))
        return U, V
