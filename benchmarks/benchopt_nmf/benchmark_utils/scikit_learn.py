"""What the two estimators of scikit-learn share."""

from benchmark_utils.cpu_time import TimedSolver


class ScikitLearnSolver(TimedSolver):
    """A fit of that many iterations by the estimator that ``build`` makes.

    scikit-learn minimises ``½‖X − WH‖² + alpha_W · p · ΣW + alpha_H · n · ΣH``: half of our objective.
    """

    requirements = ["pip::scikit-learn"]

    def skip(self, X, model, weight, graph, start):
        """It has no graph."""
        return (True, "no graph penalty") if model == "graph" else (False, None)

    def set_objective(self, X, model, weight, graph, start):
        """Build the model."""
        self.X, self.start = X, start
        n, p = X.shape
        penalties = {"alpha_W": weight / (2 * p), "alpha_H": weight / (2 * n), "l1_ratio": 1.0}
        self.model = self.build(start[0].shape[1], init="custom", tol=0, **penalties)

    def fit(self, n_iter):
        """Fit from copies of the common start: NMF works in place."""
        self.U, self.V = (F.copy() for F in self.start)
        if n_iter:
            self.model.set_params(max_iter=n_iter)
            self.V = self.model.fit_transform(self.X, W=self.V, H=self.U.T.copy())
            self.U = self.model.components_.T

    def factors(self):
        """U and V."""
        return self.U, self.V
