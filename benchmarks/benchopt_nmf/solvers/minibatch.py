"""scikit-learn's MiniBatchNMF: multiplicative updates on batches of samples."""

from benchmark_utils.cpu_time import TimedSolver
from sklearn.decomposition import MiniBatchNMF


class Solver(TimedSolver):
    """So many passes over the data, then codes of all samples for the parts it found.

    It is meant for data that come in pieces: it sees 1024 samples at a time and ends near a minimum, not in
    one. Its last step (``transform`` of all samples, included in the time) solves for V anew.
    """

    name = "MiniBatchNMF"
    requirements = ["pip::scikit-learn"]

    def skip(self, X, model, weight, graph, start):
        """It has no graph."""
        return (True, "no graph penalty") if model == "graph" else (False, None)

    def set_objective(self, X, model, weight, graph, start):
        """Build the model."""
        self.X, self.start = X, start
        n, p = X.shape
        self.model = MiniBatchNMF(
            start[0].shape[1],
            init="custom",
            batch_size=1024,
            tol=0,
            max_no_improvement=None,
            alpha_W=weight / (2 * p),
            alpha_H=weight / (2 * n),
            l1_ratio=1.0,
            random_state=0,
        )

    def fit(self, n_iter):
        """Fit from copies of the common start."""
        self.U, self.V = (F.copy() for F in self.start)
        if n_iter:
            self.model.set_params(max_iter=n_iter)
            self.V = self.model.fit_transform(self.X, W=self.V, H=self.U.T.copy())
            self.U = self.model.components_.T

    def factors(self):
        """U and V."""
        return self.U, self.V
