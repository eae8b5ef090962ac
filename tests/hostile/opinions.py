"""Second opinions on random small fits.

The objective has to be the paper's formula to 1e-9. A fit that says "converged" has to be stationary: what
one more step could gain, by the projected gradient at the fitted factors in the curvature of each coordinate
(`step_gains`, `update_gain`), is at most `BOUND` · tol · objective. A step gains at most tol · objective on
average over the last five or ten; 10 leaves room for steps of unequal gain. For coordinate descent L-BFGS-B
goes on from the end, and starts from the same start: where it ends lower is a class of its own.
"""

import numpy as np

from hostile.cases import Case, Defect, Kind
from lognmf import GraphNMF, LogSparseNMF, PlainNMF, RobustLogSparseNMF
from second_opinion import Opinion

BOUND = 10
LOWER = 1e-6

MODELS = {"NMF": PlainNMF, "GNMF": GraphNMF, "LS-NMF": LogSparseNMF, "RLS-NMF": RobustLogSparseNMF}


def fitted(case: Case):
    """The fitted model of a case, its samples and its first factors."""
    rng = np.random.default_rng(case["seed"])
    n, p, k = case["n"], case["p"], case["k"]
    X = rng.random((n, p)) * (rng.random((n, p)) < case["density"])
    X /= np.maximum(np.linalg.norm(X, axis=1, keepdims=True), 1e-12)
    U0, V0 = rng.random((p, k)) + 0.01, rng.random((n, k)) + 0.01
    cls = MODELS[case["model"]]
    options = {name: case[name] for name in cls().get_params() if name in case}
    model = cls(k, n_neighbors=3, **options) if "graph" in cls().get_params() else cls(k, **options)
    return model.set_params(max_iter=3000, scale=1.0).fit(X, U0=U0, V0=V0), X, U0, V0


def stationary(model, opinion: Opinion, X: np.ndarray) -> bool:
    """Whether the end of a fit is stationary, to its tolerance."""
    U, V = model.components_.T, model.embedding_
    gain = sum(opinion.step_gains(U, V)) if model.solver == "cd" else opinion.update_gain(U, V)
    return gain <= BOUND * (model.tol * model.objective_ + 1e-13 * np.sum(X**2))


def lead(value: float, model, X: np.ndarray) -> float:
    """By which share of the objective another value is lower; an exact fit has no share to be lower by."""
    return (model.objective_ - value) / (model.objective_ + 1e-9 * np.sum(X**2))


def _last_digits(model) -> float:
    """What the last digits of huge codes are worth in the graph's squared differences."""
    graph = getattr(model, "graph_", None)
    edges = 0.0 if graph is None else model.n_components * graph.sum()
    return 10 * getattr(model, "lam", 0.0) * edges * (np.finfo(float).eps * model.embedding_.max()) ** 2


def _check(case: Case, folder) -> str:
    model, X, U0, V0 = fitted(case)
    U, V = model.components_.T, model.embedding_
    opinion = Opinion.of(model, X)
    literal = float(opinion.value(U, V))
    if abs(model.objective_ - literal) > 1e-9 * literal + 1e-14 * np.sum(X**2) + _last_digits(model):
        msg = f"the objective is {literal!r} by the formula and {model.objective_!r} by the model"
        raise Defect(msg)
    if model.stop_reason_ != "converged":
        return "not converged"
    if not stationary(model, opinion, X):
        msg = "converged, but not stationary"
        raise Defect(msg)
    if model.solver != "cd":
        return "converged, mu"
    if lead(opinion.descend(U, V)[2], model, X) > LOWER:
        return "converged, cd: L-BFGS-B goes on from the end by more than 1e-6"
    if lead(opinion.descend(U0, V0)[2], model, X) > LOWER:
        return "converged, cd: L-BFGS-B ends lower from the same start by more than 1e-6"
    return "converged, cd"


WEIGHTS = (0.0, 0.001, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0)

OPINIONS = Kind(
    "opinions",
    {
        "model": tuple(MODELS),
        "solver": ("mu", "cd"),
        "unit_components": (False, True),
        "penalty": ("l1", "log"),
        "row_norm": ("l21", "l2log"),
        "alpha": WEIGHTS,
        "beta": WEIGHTS,
        "lam": WEIGHTS,
        "gamma": WEIGHTS[1:],
        "tol": (1e-5, 1e-7, 1e-9),
        "n": range(5, 21),
        "p": range(4, 13),
        "k": range(2, 5),
        "density": (1.0, 0.6),
        "seed": range(100_000),
    },
    _check,
    soak=2000,
    short=48,
    chunk=50,
)
