"""Small problems of every kind, for contract tests."""

import numpy as np

from lognmf.core.arrays import like
from lognmf.core.terms import PENALTIES, ROW_NORMS, Frobenius, Laplacian, Robust
from lognmf.graph import knn_graph


def samples(rng, n=12, p=9, density=1.0):
    """Unit-norm samples, some entries zero."""
    X = rng.random((n, p)) * (rng.random((n, p)) < density)
    return X / np.maximum(np.linalg.norm(X, axis=1, keepdims=True), 1e-12)


def penalties(X, weight):
    """Every penalty, by name, for the weights (B,)."""
    return {name: make(weight) for name, make in PENALTIES.items()} | {
        "laplacian": Laplacian.of(knn_graph(X, 3), weight)
    }


def fits(X, weight):
    """Every data fit, by name, for the weights (B,)."""
    robust = {name: Robust.of(X, make(), weight) for name, make in ROW_NORMS.items()}
    return {"frobenius": Frobenius.of(X)} | robust


def factors(rng, X, B, k, pattern=None):
    """Random U (p, B, k), V (n, B, k), at a scale where U Vᵀ is about X."""
    U, V = rng.random((X.shape[1], B, k)), 0.3 * rng.random((X.shape[0], B, k))
    return (U, V) if pattern is None else (like(U, pattern), like(V, pattern))
