"""Three objectives of X (n samples × p features) ≈ V Uᵀ, each the sum of lognmf's own terms."""

import numpy as np
from benchopt import BaseObjective
from benchopt.stopping_criterion import NoCriterion

from lognmf import knn_graph
from lognmf.core.data import InMemory
from lognmf.core.problem import Problem
from lognmf.core.solvers.multiplicative import unit_columns
from lognmf.core.terms import L1, Frobenius, Laplacian


class Objective(BaseObjective):
    """``‖X − VUᵀ‖² + penalty``, divided by ``‖X‖²``.

    - nmf: no penalty.
    - graph: ``weight · Tr(VᵀLV)`` of the neighbour graph, with the columns of U at unit norm. Without that
      constraint smaller V and larger U would make the penalty vanish. Factors of any norm are rescaled before
      they are evaluated.
    - sparse: ``weight · (ΣU + ΣV)``, the ℓ1 norms of both factors.
    """

    name = "NMF"
    requirements = ["pip::lognmf"]
    min_benchopt_version = "1.7"
    sampling_strategy = "iteration"
    stopping_criterion = NoCriterion()  # by --max-runs and --timeout alone: the same for all
    parameters = {"model": ["nmf", "graph", "sparse"], "n_components": [20]}
    weights = {"nmf": 0.0, "graph": 1.0, "sparse": 0.01}
    test_dataset_name = "Simulated"
    test_config = {"dataset": {"n": 60, "p": 40}, "n_components": 4}

    def set_data(self, X):
        """Build graph, start and terms."""
        self.X, self.weight = X, self.weights[self.model]
        n, p = X.shape
        k = self.n_components
        rng = np.random.default_rng(0)
        size = np.sqrt(X.mean() / k)
        self.start = size * rng.random((p, k)), size * rng.random((n, k))
        self.graph = knn_graph(X, 5) if self.model == "graph" else None
        weight = np.array([self.weight])
        on_U, on_V = {
            "nmf": ((), ()),
            "graph": ((), (Laplacian.of(self.graph, weight),) if self.graph is not None else ()),
            "sparse": ((L1(weight),), (L1(weight),)),
        }[self.model]
        data = InMemory(X)
        self.problem = Problem(data, Frobenius(), on_U, on_V)
        self.total = float(data.squared_norms.sum())

    def get_objective(self):
        """What every solver is given."""
        return {
            "X": self.X,
            "model": self.model,
            "weight": self.weight,
            "graph": self.graph,
            "start": self.start,
        }

    def evaluate_result(self, U, V, cpu):
        """Objective over ``‖X‖²``, relative error, share of zeros, CPU seconds."""
        U, V = (np.ascontiguousarray(F, dtype=np.float64)[:, None, :] for F in (U, V))
        if min(U.min(), V.min()) < 0:
            raise ValueError("A solver returned negative entries.")
        if self.model == "graph":
            U, V = unit_columns(U, V)
        XU = self.problem.data.times(U)
        squared = self.problem.squared_error(U, V, XU)[0]
        return {
            "value": float(self.problem.value(U, V, XU)[0]) / self.total,
            "error": float(np.sqrt(squared / self.total)),
            "cpu_seconds": cpu,
            "zeros": float(np.mean(np.concatenate([U, V]) == 0)),
        }

    def get_one_result(self):
        """The start."""
        return {"U": self.start[0], "V": self.start[1], "cpu": 0.0}
