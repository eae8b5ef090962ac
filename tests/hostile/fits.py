"""Random fits: models × solvers × starts × dtypes × containers × shapes × values × masks × weights."""

import re
import traceback
import warnings
from collections.abc import Iterator
from inspect import signature
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from hostile.cases import Case, Defect, Kind
from hostile.matrices import CONTAINERS, VALUES, mark
from lognmf import MODELS, fit_grid, load_model, save_model
from lognmf.core.solvers import SOLVERS
from lognmf.core.terms import LOSSES, PENALTIES, ROW_NORMS

MAY_RISE = ("ONMF", "RMNMF")
"""Models whose pages say that their objective may rise."""

WEIGHTS = (0.0, 0.1, 1e-3, 1.0, 10.0, 1e3, 1e6, 1e12, 1e-12)

PARAMETERS: dict[str, tuple[Any, ...]] = {
    "solver": (*SOLVERS, "auto"),
    "init": ("random", "scaled", "nndsvda", "nndsvdar", "spectral", "kmeans"),
    "penalty": tuple(PENALTIES),
    "loss": (*(["frobenius"] * 3), *LOSSES),
    "row_norm": tuple(ROW_NORMS),
    "unit_components": (False, True),
    "alpha": (*WEIGHTS, "auto"),
    "beta": (*WEIGHTS, "auto"),
    "lam": WEIGHTS,
    "gamma": (1.0, 0.0, 1e-3, 10.0, 1e6, 1e-9, "auto"),
    "extra_error": (0.05, 0.0, 0.9),
    "scale": (1.0, "auto", "auto", 1e-3),
    "mu": (0.001, 1.0, 1e-6, 1e3),
    "rho": (1.05, 1.0, 2.0),
    "published_sign": (False, True),
    "normalize": (False, True),
    "n_neighbors": (5, 1, 2, 40),
    "n_init": (1, 1, 1, 3),
    "max_iter": (1, 0, 5, 20, 60),
    "tol": (0.0, 1e-5, 1e-2),
    "eval_every": (1, 1, 7),
}

BAD: dict[str, Any] = {
    "n_components": (0, -1, 2.5, "3", None, True),
    "alpha": (-1.0, float("nan"), "x", None, [1.0]),
    "beta": (-1.0, float("inf")),
    "lam": (-1e-9, float("nan")),
    "gamma": (-1.0, float("nan")),
    "extra_error": (1.0, -0.05, float("nan"), None),
    "solver": ("fast", None, 3),
    "init": ("svd", None, 1),
    "penalty": ("l2", None),
    "loss": ("hinge", None),
    "row_norm": ("l1", 2),
    "max_iter": (-1, 1.5, "many"),
    "tol": (-1.0, float("nan"), None),
    "eval_every": (0, 1.5),
    "n_init": (0, 1.5, None),
    "n_neighbors": (0, -3, 1.5),
    "graph": ("full", 3, "wide", "directed", "negative"),
    "random_state": (-1, 2**32, "now", 1.5),
    "unit_components": ("yes", None),
    "verbose": (),
    "X": (
        "NaN",
        "infinity",
        "negative",
        "complex",
        "text",
        "dates",
        "flat",
        "cube",
        "no rows",
        "no columns",
        "huge",
    ),
}

REFUSALS = re.compile(
    "|".join(
        (
            r"takes no sparse data: use",
            r"Negative values in data passed to \w+: the smallest entry",
            r"too large for float(32|64): squares of its largest entry",
            r"Input X contains NaN, which \w+ does not take: drop or fill",
            r"has no known entry",
            r'"auto" need unit_components=True',
            r"The objective is no longer finite after \d+ iterations: the data, the start or the weights",
            r"takes no weights of entries: its formulas need every entry",
            r'solver="cd" (takes no weighted|takes weighted or missing|works on NumPy arrays)',
        )
    )
)
"""What may be said to data and parameters that are right each for themselves."""

DENSE = ("array", "Fortran", "read-only", "strided", "list", "pandas", "polars", "torch")

CHOICES: dict[str, Any] = {
    "model": tuple(MODELS),
    "n": (1, 2, 3, 5, 8, 13, 20, 31),
    "p": (1, 2, 3, 5, 8, 13, 24),
    "k": (1, 2, 3, 5, 9),
    "values": (*VALUES,),
    "decade": (*[0] * 6, -3, 3, 9, -9, -30, 30, -150, 100),
    "dtype": ("float64", "float64", "float64", "float32", "float16", "int64", "uint8", "bool"),
    "container": ("array", "array", "array", *CONTAINERS),
    "missing": ("none", "none", "none", "none", "mask", "NaN", "weights", "rows"),
    "graph": ("knn", "knn", None, "given"),
    "also": ("nothing", "transform", "grid", "weights of a grid", "file", "again"),
    "bad": (*[None] * 400, *[[name, place] for name, values in BAD.items() for place in range(len(values))]),
    "seed": tuple(range(1000)),
    **PARAMETERS,
}


def check(case: Case, folder: Path) -> str:
    """Fit once, and hold every promise against the outcome."""
    model, X, mask = _given(case)
    before = mark(X), None if mask is None else mark(mask)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", ConvergenceWarning)
        for words in _remarks(case, model):
            warnings.filterwarnings("ignore", words)
        try:
            model.fit(X, weights=mask) if mask is not None else model.fit(X)
        except (ValueError, TypeError, FloatingPointError) as error:
            overflowed = isinstance(error, FloatingPointError)
            _expect(not overflowed or _beyond_float32(case, model), f"an overflow: {error}")
            _expect(
                before == (mark(X), None if mask is None else mark(mask)), "a refused fit changed its input"
            )
            return _refused(case, model, error)
        _expect(case["bad"] is None or not _applies(case, model), "a bad argument was taken")
        _check_fit(case, model, X, mask)
        MORE[case["also"]](case, model, X, mask, folder)
    _expect(before == (mark(X), None if mask is None else mark(mask)), "the fit changed its input")
    return f"fitted: {case['model']}"


def _remarks(case: Case, model: Any) -> Iterator[str]:
    """How warnings begin that are right for a case."""
    divergence = getattr(model, "loss", "") == "kullback-leibler"
    yield f"The {'sums' if divergence else 'norms'} of the samples differ by much"
    yield "X has features without a known entry"
    if case["graph"] is None:
        yield "lam=.* has no effect, since graph=None: give a graph, or set"
    n, p, k = case["n"], case["p"], case["k"]
    if k > max(n, p):
        yield f"n_components={k} exceeds the {n} samples and the {p} features of X: use fewer"
    if "auto" in (case["alpha"], case["beta"]):
        yield "No sparse factors were found within the error that extra_error allows: alpha = beta = 0"


def _beyond_float32(case: Case, model: Any) -> bool:
    """Whether float32 may be too short: a factor with a penalty shrinks, and one without any grows."""
    weights = [getattr(model, name) for name in model.spec.weights]
    huge = any(not isinstance(weight, str) and weight >= 1e6 for weight in weights)
    return huge and case["dtype"] in ("float16", "float32")


# What is given ---------------------------------------------------------------------------


def _given(case: Case) -> tuple[Any, Any, Any]:
    """The model, its data and their mask."""
    rng = np.random.default_rng(case["seed"])
    model = _model(case, rng)
    X = _matrix(case, rng)
    if case["bad"] is not None:
        return _spoiled(case, model, X), _bad_matrix(case, X), None
    X, mask = _with_missing(case, model, X, rng)
    container = case["container"]
    if not model.spec.sparse and container not in DENSE and not _anything_goes(case):
        container = "array"
    if container not in DENSE and X.dtype == np.float16:  # SciPy has no such matrices
        X = X.astype(np.float32)
    return model, CONTAINERS[container](X), mask


def _anything_goes(case: Case) -> bool:
    """Whether combinations that are refused are tried: in a tenth of the cases."""
    return case["seed"] % 10 == 9


def _model(case: Case, rng: np.random.Generator) -> Any:
    cls = MODELS[case["model"]]
    known = cls().get_params()
    options = {name: case[name] for name in PARAMETERS if name in known} | {"random_state": case["seed"]}
    if options["init"] not in cls.spec.starts:
        options["init"] = next(iter(cls.spec.starts))
    if "graph" in known:
        options["graph"] = _graph(rng, case["n"]) if case["graph"] == "given" else case["graph"]
    alone = options.get("loss") == "kullback-leibler" or case["container"] == "torch"
    if "solver" in known and alone and not _anything_goes(case):
        options["solver"] = "mu"
    if "auto" in (options.get("alpha"), options.get("beta")) and not _anything_goes(case):
        options["unit_components"] = True
    return cls(case["k"], **options)


def _matrix(case: Case, rng: np.random.Generator) -> np.ndarray:
    values = "uniform" if case["values"] == "signed" and not _takes_signs(case) else case["values"]
    X = VALUES[values](rng, case["n"], case["p"]) * 10.0 ** case["decade"]
    if case["dtype"] in ("int64", "uint8"):
        limits = np.iinfo(case["dtype"])
        X = np.clip(X, limits.min, limits.max // 2)
    if case["dtype"] in ("float16", "float32"):
        X = np.clip(X, -np.finfo(case["dtype"]).max, np.finfo(case["dtype"]).max)
    return X.astype(case["dtype"])


def _takes_signs(case: Case) -> bool:
    return MODELS[case["model"]].spec.signed or _anything_goes(case)


def _with_missing(case: Case, model: Any, X: np.ndarray, rng: np.random.Generator) -> tuple[np.ndarray, Any]:
    how = case["missing"]
    takes = model.spec.takes_missing(model)
    if how == "none" or not (takes or _anything_goes(case)):
        return X, None
    if how in ("mask", "weights") and "weights" not in signature(model.fit).parameters:
        return X, None
    lost = rng.random(X.shape) < 0.3
    if how == "mask":
        return X, ~lost
    if how == "weights":
        return X, 3 * rng.random(X.shape) * ~lost
    X = X if X.dtype.kind == "f" else X.astype(float)
    X[lost if how == "NaN" else lost.any(axis=1)] = np.nan
    return X, None


def _graph(rng: np.random.Generator, n: int) -> sp.csr_array:
    W = sp.random_array((n, n), density=min(1, 3 / n), rng=rng, format="csr")
    return sp.csr_array(W + W.T)


def _spoiled(case: Case, model: Any, X: np.ndarray) -> Any:
    name, place = case["bad"]
    value = BAD[name][place]
    if name == "graph":
        n = X.shape[0]
        value = {
            "wide": sp.csr_array(np.ones((n, n + 1))),
            "directed": sp.csr_array(np.triu(np.ones((n + 1, n + 1)))),
            "negative": sp.csr_array(-np.ones((n, n))),
        }.get(value, value)
    return model.set_params(**{name: value}) if name in model.get_params() else model


def _bad_matrix(case: Case, X: np.ndarray) -> Any:
    name, place = case["bad"]
    if name != "X":
        return X
    if X.dtype.kind != "f" or X.dtype == np.float16:
        X = X.astype(float)
    spoil = {"NaN": np.nan, "infinity": np.inf, "negative": -1.0, "huge": np.finfo(X.dtype).max}
    what = BAD[name][place]
    if what in spoil:
        X = X.copy()
        X[-1, -1] = spoil[what]
        return X
    return {
        "complex": lambda: X + 1j,
        "text": lambda: X.astype(str),
        "dates": lambda: np.zeros(X.shape, dtype="datetime64[D]"),
        "flat": lambda: X[0],
        "cube": lambda: X[None],
        "no rows": lambda: X[:0],
        "no columns": lambda: X[:, :0],
    }[what]()


def _applies(case: Case, model: Any) -> bool:
    """Whether what is bad about the case is bad for this model."""
    name, place = case["bad"]
    if name == "X":
        what = BAD[name][place]
        taken = {"negative": model.spec.signed, "NaN": model.spec.takes_missing(model), "text": True}
        return not taken.get(what, False)
    return name in model.get_params()


# What must hold --------------------------------------------------------------------------


def _expect(true: Any, words: str) -> None:
    if not true:
        raise Defect(words)


def _refused(case: Case, model: Any, error: Exception) -> str:
    """A refusal is a sentence of ours or of scikit-learn's checks, and leaves nothing on the estimator."""
    words = str(error)
    place = traceback.extract_tb(error.__traceback__)[-1].filename
    ours = "lognmf" in place or "sklearn" in place
    _expect(ours, f"an error from elsewhere: {type(error).__name__}: {words} ({place})")
    _expect(len(words) > 20 and words[0].isalnum(), f"not a sentence: {words}")
    left = [name for name in vars(model) if name.endswith("_")]
    _expect(not left, f"a refused fit left {left}")
    expected = case["bad"] is not None or REFUSALS.search(words)
    _expect(expected, f"good data and parameters were refused: {words}")
    return (
        "refused: bad argument"
        if case["bad"] is not None
        else "refused: " + re.sub(r"-?\d[\d.e+-]*", "…", words)[:60]
    )


def _check_fit(case: Case, model: Any, X: Any, mask: Any) -> None:
    parts, codes = np.asarray(model.components_), np.asarray(model.embedding_)
    for name, F in (("components_", parts), ("embedding_", codes)):
        _expect(np.isfinite(F).all(), f"{name} is not finite")
        signed = model.spec.signed and (name == "components_" or case["model"] == "RMNMF")
        _expect(signed or (F >= 0).all(), f"{name} has negative entries")
    n, p, k = case["n"], case["p"], case["k"]
    _expect(parts.shape == (k, p) and codes.shape == (n, k), f"shapes {parts.shape}, {codes.shape}")
    _expect(parts.dtype == codes.dtype, f"two dtypes: {parts.dtype}, {codes.dtype}")
    history = model.history_["objective"]
    _expect(
        np.isfinite(history).all() and np.isfinite(model.reconstruction_err_), "an objective is not finite"
    )
    moved = getattr(model, "normalize", False)  # after the last iteration
    _expect(moved or history[-1] == model.objective_, "objective_ is not the last of its history")
    _expect(model.n_iter_ <= case["max_iter"], "more iterations than allowed")
    if getattr(model, "unit_components", False):
        norms = np.linalg.norm(parts.astype(np.longdouble), axis=1)
        close = np.abs(norms - 1) < 1e3 * np.finfo(parts.dtype).eps
        _expect((close | (norms == 0)).all(), f"components of norm {norms}")
    if case["model"] not in MAY_RISE and len(history) > 1:
        _falls(history, _rounding(case, model, X))
    twin = clone(model)
    twin.fit(X, weights=mask) if mask is not None else twin.fit(X)
    for name in ("components_", "embedding_"):
        same = np.array_equal(np.asarray(getattr(twin, name)), np.asarray(getattr(model, name)))
        _expect(same, f"{name} differs when the fit is repeated")
    _expect(
        np.array_equal(twin.history_["objective"], history), "the history differs when the fit is repeated"
    )


def _size(X: Any) -> float:
    """The larger of ‖X‖² and ΣX: what the differences in a data term are taken from."""
    X = np.nan_to_num(np.asarray(X.toarray() if sp.issparse(X) else X, dtype=float))
    return float(max((X**2).sum(), np.abs(X).sum()))


def _rounding(case: Case, model: Any, X: Any) -> tuple[float, float]:
    """What rounding may do to an objective: as a share of it, and whatever its size.

    The data term is a difference of sums, of products that may cancel where signs differ; the graph's is one
    of squared differences of codes, which move by their last digits. Of all these only those are wrong.
    """
    if getattr(model, "loss", "") == "kullback-leibler" and _beyond_float32(case, model):
        return 0.0, np.inf  # X / V Uᵀ is at most 5e24 there, and huge weights ask for more
    codes, parts = np.asarray(model.embedding_), np.asarray(model.components_)
    eps = float(np.finfo(codes.dtype).eps)
    size = max(float(np.abs(codes).max()), float(getattr(model, "normalize", False)))
    graph = getattr(model, "graph_", None)
    edges = 0.0 if graph is None else float(graph.sum()) * case["k"] * (eps * size) ** 2
    edges *= getattr(model, "lam", 0.0)
    if (
        getattr(model, "loss", "") == "kullback-leibler"
    ):  # of first degree in the units of X, which codes have
        edges /= model.scale_
    edges += 2 * (edges * abs(model.objective_)) ** 0.5 / 100
    products = 10 * eps * float(np.linalg.norm(np.abs(codes).astype(float) @ np.abs(parts)))
    products = products**2 + 2 * products * model.reconstruction_err_ if model.spec.signed else 0.0
    return 1e3 * eps, 100 * (eps * _size(X) + edges) + products


def _falls(history: np.ndarray, rounding: tuple[float, float]) -> None:
    """Rounding is allowed, and nothing more."""
    share, whatever = rounding
    rise = np.diff(history) - share * np.abs(history[:-1]) - whatever
    worst = int(rise.argmax())
    _expect(rise[worst] <= 0, f"the objective rises from {history[worst]!r} to {history[worst + 1]!r}")


# More, for some of the cases ---------------------------------------------------------------


def _transform(case: Case, model: Any, X: Any, mask: Any, folder: Path) -> None:
    try:
        codes = np.asarray(model.transform(X))
    except ValueError as error:  # a mask hides entries from the fit, and not from this
        _expect(mask is not None and "is too large for float" in str(error), str(error))
        return
    _expect(np.isfinite(codes).all(), "codes are not finite")
    _expect((codes >= 0).all(), "codes have negative entries")
    _expect(np.array_equal(np.asarray(model.transform(X)), codes), "codes differ when repeated")
    _expect(np.isfinite(np.asarray(model.inverse_transform(codes))).all(), "a reconstruction is not finite")


def _grid(case: Case, model: Any, X: Any, mask: Any, folder: Path) -> None:
    if mask is None:
        _rows_are_fits(case, model, X, {})


def _weights_of_a_grid(case: Case, model: Any, X: Any, mask: Any, folder: Path) -> None:
    if mask is None:
        grid = {name: [getattr(model, name), 0.5] for name in model.spec.weights[:1]}
        _rows_are_fits(case, model, X, grid | {"tol": [model.tol, 1e-3]})


def _rows_are_fits(case: Case, model: Any, X: Any, grid: dict[str, list[Any]]) -> None:
    """Row i is the fit of setting i, but for what a change of the data in their last digit does too."""
    result = fit_grid(clone(model), X, grid, seeds=[case["seed"]])
    for i, row in enumerate(result.rows):
        single = result.model(i)
        _as_good(case, row["objective"], single, X, f"row {i} of a grid and its fit")
    _as_good(case, result.rows[0]["objective"], model, X, "the first row of a grid and the fit")


def _as_good(case: Case, value: float, single: Any, X: Any, words: str) -> None:
    eps = float(np.finfo(np.asarray(single.embedding_).dtype).eps)
    size = _size(X) + float(single.history_["objective"][0])
    gap = abs(value - single.objective_)
    if case["model"] == "RMNMF" and (
        single.published_sign or single.lam > single.mu or case["k"] > _start_rank(single, X)
    ):
        return  # steps that go too far, or orthonormal columns that nothing but rounding chooses
    if gap <= 1e6 * eps * abs(value) + 1e4 * eps * size:
        return
    rng = np.random.default_rng(case["seed"])
    spread = [abs(clone(single).fit(_shaken(X, eps, rng)).objective_ - single.objective_) for _ in range(5)]
    _expect(gap <= 10 * max(spread), f"{words}: {value!r} and {single.objective_!r}")


def _start_rank(model: Any, X: Any) -> int:
    """Rank of RMNMF's first codes or of X, or less: k-means has no more clusters than different samples."""
    X = np.asarray(X)
    return min(X.shape[1], len(X if model.init == "random" else np.unique(X, axis=0)))


def _shaken(X: Any, eps: float, rng: np.random.Generator) -> np.ndarray:
    """The data with their last digits changed; zeros stay."""
    X = np.asarray(X.toarray() if sp.issparse(X) else X)
    X = X if X.dtype.kind == "f" and X.dtype != np.float16 else X.astype(float)
    return X * (1 + 4 * eps * rng.integers(-1, 2, X.shape)).astype(X.dtype)


def _file(case: Case, model: Any, X: Any, mask: Any, folder: Path) -> None:
    save_model(model, folder / "model.npz")
    again = load_model(folder / "model.npz")
    _expect(type(again) is type(model), "another class came back from the file")
    for name in ("components_", "embedding_"):
        same = np.array_equal(np.asarray(getattr(again, name)), np.asarray(getattr(model, name)))
        _expect(same, f"{name} came back changed from the file")
    _expect(again.objective_ == model.objective_, "objective_ came back changed from the file")


def _again(case: Case, model: Any, X: Any, mask: Any, folder: Path) -> None:
    """A warm start goes on from where the fit ended, and a refusal leaves a fitted model as it was."""
    first, rounding = model.objective_, _rounding(case, model, X)
    model.set_params(warm_start=True)
    model.fit(X, weights=mask) if mask is not None else model.fit(X)
    if case["model"] not in MAY_RISE:
        _falls(np.array([first, *model.history_["objective"]]), rounding)
    kept = vars(model).copy()
    try:
        model.fit(np.full((3, case["p"]), np.inf))
    except ValueError:
        _expect(vars(model).keys() == kept.keys(), "a refusal changed the fitted model")
        _expect(all(vars(model)[name] is kept[name] for name in kept), "a refusal changed the fitted model")
    else:
        _expect(False, "infinity was taken")


MORE = {
    "nothing": lambda *_: None,
    "transform": _transform,
    "grid": _grid,
    "weights of a grid": _weights_of_a_grid,
    "file": _file,
    "again": _again,
}

FITS = Kind("fits", CHOICES, check, soak=100_000, short=240, chunk=500)
