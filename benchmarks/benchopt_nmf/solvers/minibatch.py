"""scikit-learn's MiniBatchNMF: multiplicative updates on batches of samples."""

from benchmark_utils.scikit_learn import ScikitLearnSolver
from sklearn.decomposition import MiniBatchNMF


class Solver(ScikitLearnSolver):
    """So many passes over the data, then codes of all samples for the parts it found.

    It is meant for data that come in pieces: it sees 1024 samples at a time and ends near a minimum, not in
    one. Its last step (``transform`` of all samples, included in the time) solves for V anew.
    """

    name = "MiniBatchNMF"

    def build(self, k, **options):
        """The estimator."""
        return MiniBatchNMF(k, batch_size=1024, max_no_improvement=None, random_state=0, **options)
