"""scikit-learn's NMF: coordinate descent and multiplicative updates."""

from benchmark_utils.scikit_learn import ScikitLearnSolver
from sklearn.decomposition import NMF


class Solver(ScikitLearnSolver):
    """A fit of that many iterations."""

    name = "scikit-learn"
    parameters = {"solver": ["mu", "cd"]}

    def build(self, k, **options):
        """The estimator."""
        return NMF(k, solver=self.solver, **options)
