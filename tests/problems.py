"""Small problems of every kind, for contract tests, and what a model of any kind can be asked."""

import tracemalloc
from contextlib import contextmanager

import numpy as np
import pytest

from lognmf.blocks import RowBlocks
from lognmf.core.arrays import like
from lognmf.core.data import InMemory
from lognmf.core.problem import Problem
from lognmf.core.terms import LOSSES, PENALTIES, ROW_NORMS, Laplacian, Robust
from lognmf.graph import knn_graph
from lognmf.models import WeightedNMF
from lognmf.models.blocks import check_data
from lognmf.progress import Listener, listening


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
    robust = {name: Robust(make(), weight) for name, make in ROW_NORMS.items()}
    return {name: make(InMemory(X)) for name, make in LOSSES.items()} | robust


def fit_of(name, gamma):
    """The data fit called ``name``: a loss or a row norm with the weights ``gamma`` (B,)."""
    return Robust(ROW_NORMS[name](), gamma) if name in ROW_NORMS else LOSSES[name](InMemory(np.zeros((1, 1))))


def code_problem(X, *, M=None, penalty=None, beta=0.0, row_norm=None, gamma=0.0):
    """What the codes of samples minimise: one weight per sample."""
    data = InMemory(X, M)
    weights = {name: like(np.full(X.shape[0], w), data.pattern) for name, w in (("b", beta), ("g", gamma))}
    fit = LOSSES["frobenius"](data) if row_norm is None else Robust(row_norm, weights["g"])
    return Problem(data, fit, on_V=(penalty(weights["b"]),) if penalty is not None and beta > 0 else ())


def cut(X, edges, M=None):
    """Data cut into blocks of rows."""
    source = RowBlocks(X.shape, X.dtype, (0, *edges, X.shape[0]), lambda start, stop: X[start:stop])
    return check_data(WeightedNMF(), source, reset=True, weights=M)


def factors(rng, X, B, k, pattern=None):
    """Random U (p, B, k), V (n, B, k), at a scale where U Vᵀ is about X."""
    U, V = rng.random((X.shape[1], B, k)), 0.3 * rng.random((X.shape[0], B, k))
    return (U, V) if pattern is None else (like(U, pattern), like(V, pattern))


def weights(cls):
    """Numbers for the weights of a model that would choose them itself."""
    numbers = {"alpha": 0.01, "beta": 0.001, "gamma": 1.0, "lam": 0.1}
    return {name: numbers[name] for name in cls.spec.weights} if cls.spec.auto else {}


PLAIN = {"solver": "mu", "unit_components": False, "scale": 1.0}
"""The paper's updates, free scale and plain objective."""


def make(cls, n_components, **options):
    """``cls`` with those of the options it has."""
    return cls(n_components, **{name: v for name, v in options.items() if name in cls().get_params()})


def start(cls, X, k, seed=0):
    """Given first factors, as keywords of ``fit``."""
    rng = np.random.default_rng(seed)
    return {
        name: 0.1 + rng.random(shape)
        for name, shape in cls(k).factor_shapes(*X.shape).items()
        if name in names(cls)
    }


def names(cls):
    """The first factors ``fit`` takes."""
    import inspect

    return [name for name in inspect.signature(cls.fit).parameters if name in ("U0", "V0", "B0")]


def monotone(cls):
    """Whether the objective never rises."""
    return cls.__name__ != "RobustManifoldNMF"


def peak_numbers(model, X):
    """Numbers of 8 bytes that a fit allocates at most beyond ``X``, everything being loaded."""
    model.fit(X)
    tracemalloc.start()
    try:
        model.fit(X)
        return tracemalloc.get_traced_memory()[1] / 8
    finally:
        tracemalloc.stop()


def pattern(library):
    """An array of the library, or a skip with a reason."""
    if library == "numpy":
        return np.empty(0)
    if library == "array-api-strict":
        return pytest.importorskip("array_api_strict").asarray(np.zeros(1))
    torch = pytest.importorskip("torch", reason="torch is an extra")
    device = library.removeprefix("torch-")
    if device == "cuda" and not torch.cuda.is_available():
        pytest.skip("there is no GPU here")
    return torch.zeros(1, dtype=torch.float64, device=device)


class Moves(Listener):
    """Notes every move of the stages of one name: its counts, and the results by their notes."""

    def __init__(self, name):
        self.name, self.counts, self.results = name, [], []

    def move(self, stage):
        if stage.name == self.name:
            self.counts.append((stage.done, stage.total))
            self.results.append((stage.note, stage.result))


@contextmanager
def moves(name="fitting the grid"):
    """Every move of the stages of this name within."""
    listener = Moves(name)
    with listening(listener):
        yield listener
