"""What a model takes and what it refuses, before any work, in words."""

import numpy as np
import pytest
import scipy.sparse as sp

from lognmf import MODELS, knn_graph
from problems import make, monotone, samples, start, weights

n, p = 12, 6
GOOD = np.arange(n * p, dtype=float).reshape(n, p) % 7
ASYMMETRIC = sp.csr_array(np.triu(np.ones((n, n)), 1))


def with_entry(value):
    X = GOOD.copy()
    X[2, 3] = value
    return X


BAD_DATA = {
    "nan": (with_entry(np.nan), ValueError, "NaN"),
    "infinity": (with_entry(np.inf), ValueError, "infinity"),
    "negative": (with_entry(-1.0), ValueError, "Negative values in data .* -1"),
    "sparse nan": (sp.csr_array(with_entry(np.nan)), ValueError, "NaN"),
    "sparse negative": (sp.csr_matrix(with_entry(-1.0)), ValueError, "Negative values"),
    "one dimension": (GOOD[0], ValueError, "2D array"),
    "three dimensions": (GOOD[None], ValueError, "dim"),
    "no samples": (GOOD[:0], ValueError, "0 sample"),
    "no features": (GOOD[:, :0], ValueError, "0 feature"),
    "text": (GOOD.astype(str).astype(object) + "x", ValueError, "could not convert"),
    "complex": (GOOD + 1j, ValueError, "Complex data"),
    "nothing": (None, ValueError, "array"),
    "too large for float32": (with_entry(1e19).astype(np.float32), ValueError, "too large for float32"),
    "too large for float64": (with_entry(1e160), ValueError, "too large for float64"),
}

BAD_PARAMETERS = {
    "n_components": [
        (0, ValueError),
        (-1, ValueError),
        (2.5, TypeError),
        ("auto", TypeError),
        (True, TypeError),
    ],
    "alpha": [
        (-1, ValueError),
        (np.nan, ValueError),
        (np.inf, ValueError),
        ("1", TypeError),
        (None, TypeError),
    ],
    "beta": [(-0.1, ValueError)],
    "gamma": [(-0.1, ValueError), (np.inf, ValueError)],
    "lam": [(-1, ValueError), ([1.0], TypeError), (10**400, ValueError)],
    "penalty": [("l2", ValueError), (None, ValueError)],
    "row_norm": [("l1", ValueError)],
    "mu": [(0, ValueError), (-1, ValueError)],
    "rho": [(0.5, ValueError), ("fast", TypeError)],
    "init": [("zeros", ValueError), ("nndsvd", ValueError)],
    "solver": [("newton", ValueError)],
    "n_neighbors": [(0, ValueError), (1.5, TypeError)],
    "n_init": [(0, ValueError)],
    "max_iter": [(-1, ValueError), (1.5, TypeError)],
    "eval_every": [(0, ValueError)],
    "warm_start": [("yes", TypeError)],
    "normalize": [(None, TypeError)],
    "published_sign": [(3, TypeError)],
    "verbose": [("loud", TypeError)],
    "tol": [(-1e-3, ValueError), ("small", TypeError)],
    "random_state": [("seed", ValueError), (-1, ValueError), (2**32, ValueError), (0.5, ValueError)],
    "graph": [
        ("nn", ValueError),
        (3, TypeError),
        (np.ones((n, n - 1)), ValueError),
        (sp.csr_array(np.ones((n + 1, n + 1))), ValueError),
        (ASYMMETRIC, ValueError),
        (-sp.eye_array(n), ValueError),
        (np.full((n, n), np.nan), ValueError),
        (sp.csr_array(np.ones((n, n)) * 1j), TypeError),
    ],
}


@pytest.fixture(params=MODELS)
def cls(request):
    return MODELS[request.param]


def is_bad_for(cls, case):
    """What some models refuse is what others are made for."""
    return not (
        (case == "nan" and cls.spec.takes_missing(cls()))
        or ("negative" in case and cls.spec.signed)
        or ("sparse" in case and not cls.spec.sparse)
    )


BAD_CASES = [(cls, case) for cls in MODELS.values() for case in BAD_DATA if is_bad_for(cls, case)]


@pytest.mark.parametrize(("cls", "case"), BAD_CASES)
def test_bad_data(cls, case):
    X, error, words = BAD_DATA[case]
    model = cls(3)
    with pytest.raises(error, match=words):
        model.fit(X)
    assert not hasattr(model, "components_")
    assert not hasattr(model, "n_features_in_")


@pytest.mark.parametrize(("cls", "case"), BAD_CASES)
def test_bad_data_for_transform(cls, case):
    X, error, words = BAD_DATA[case]
    model = cls(3, max_iter=2).fit(GOOD)
    with pytest.raises(error, match=words):
        model.transform(X)


def test_dense_models_say_so():
    with pytest.raises(TypeError, match="takes no sparse data"):
        MODELS["RMNMF"](3).fit(sp.csr_array(GOOD))


@pytest.mark.parametrize(
    ("cls", "name", "value", "error"),
    [
        (cls, name, *case)
        for cls in MODELS.values()
        for name, cases in BAD_PARAMETERS.items()
        if name in cls().get_params()
        for case in cases
    ],
)
def test_bad_parameter(cls, name, value, error):
    model = cls(3, max_iter=2).set_params(**{name: value})
    with pytest.raises(error, match=name):
        model.fit(GOOD)
    assert not hasattr(model, "components_")


def test_bad_start(cls):
    good = start(cls, GOOD, 3)
    for name, F in good.items():
        for bad, words in (
            (F[:, :2], rf"{name} must have shape \({F.shape[0]}, 3\); got \({F.shape[0]}, 2\)"),
            (np.where(F > 0.5, np.nan, F), f"{name} must be finite"),
            (F.astype(str), f"{name} must hold real numbers"),
        ):
            with pytest.raises((ValueError, TypeError), match=words):
                cls(3).fit(GOOD, **(good | {name: bad}))
        if not (cls.spec.signed and name == "U0"):
            with pytest.raises(ValueError, match=f"{name} must be finite and nonnegative"):
                cls(3).fit(GOOD, **(good | {name: -F}))


def test_wrong_number_of_features(cls):
    model = cls(3, max_iter=2).fit(GOOD)
    with pytest.raises(ValueError, match="expecting 6 features"):
        model.transform(GOOD[:, :4])
    with pytest.raises(ValueError, match=r"V must have shape \(samples, 3\)"):
        model.inverse_transform(GOOD)


def test_not_fitted(cls):
    from sklearn.exceptions import NotFittedError

    for method in ("transform", "inverse_transform"):
        with pytest.raises(NotFittedError):
            getattr(cls(), method)(GOOD)


def huge(rng):
    return 1e150 * samples(rng, 12, 8)


DEGENERATE = {
    "zero rows": lambda rng: samples(rng) * (np.arange(12) % 3 > 0)[:, None],
    "zero columns": lambda rng: samples(rng) * (np.arange(9) % 3 > 0),
    "all zero": lambda rng: np.zeros((12, 9)),
    "duplicates": lambda rng: np.repeat(samples(rng)[:3], 4, axis=0),
    "all equal": lambda rng: np.ones((12, 9)),
    "more components than samples": lambda rng: samples(rng, 4, 9),
    "more components than features": lambda rng: samples(rng, 12, 2),
    "one sample": lambda rng: samples(rng, 1, 9),
    "one feature": lambda rng: rng.random((12, 1)),
    "huge": huge,
    "tiny": lambda rng: 1e-150 * samples(rng),
    "tiny in float32": lambda rng: (1e-30 * samples(rng)).astype(np.float32),
    "one huge sample": lambda rng: samples(rng, 10, 8) * np.where(np.arange(10) == 0, 1e150, 1)[:, None],
    "huge and tiny": lambda rng: 10 ** rng.uniform(-150, 150, size=(12, 9)),
    "integers": lambda rng: rng.integers(0, 255, size=(12, 9)),
    "booleans": lambda rng: rng.random((12, 9)) < 0.5,
    "fortran": lambda rng: np.asfortranarray(samples(rng)),
    "strided": lambda rng: samples(rng, 24, 18)[::2, ::2],
    "big-endian": lambda rng: samples(rng).astype(">f8"),
}


WEIGHTS = [{}, dict.fromkeys(("alpha", "beta", "lam"), 0.0), {"lam": 100.0}]
SETTINGS = [(cls, more) for cls in MODELS.values() for more in WEIGHTS if cls.spec.weights or not more]


@pytest.mark.parametrize("case", DEGENERATE)
@pytest.mark.parametrize(("cls", "weights"), SETTINGS)
@pytest.mark.filterwarnings("ignore:No sparse factors were found")
@pytest.mark.parametrize(("init", "sparse"), [(0, True), (-1, False)])
def test_degenerate_data_give_finite_nonnegative_results(cls, case, weights, init, sparse, rng):
    X, sparse = DEGENERATE[case](rng), sparse and cls.spec.sparse
    if sparse:
        X = sp.csr_array(X.astype(X.dtype.newbyteorder("=")))
    else:
        X.flags.writeable = False
    k = 5
    model = make(cls, k, init=list(cls.spec.starts)[init], max_iter=30, random_state=0, **weights)
    V = model.fit_transform(X)
    nonnegative = [model.transform(X), model.history_["objective"], model.reconstruction_err_]
    finite = [V, model.components_, model.inverse_transform(V)]
    if hasattr(model, "outliers"):
        nonnegative += [model.outlier_share_, model.outlier_norm_]
        finite.append(model.outliers(X))
    nonnegative += [] if cls.spec.signed else finite[:3]
    for values in nonnegative:
        assert (np.asarray(values) >= 0).all()
    for values in nonnegative + finite:
        assert np.isfinite(values).all()
    assert V.shape == (X.shape[0], k)
    objective = model.history_["objective"]
    size = float(X.multiply(X).sum()) if sparse else float((X.astype(float) ** 2).sum())
    assert (np.diff(objective) <= 1e-12 * (objective[0] + size)).all() or not monotone(cls)


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int16, np.uint8])
def test_dtypes(cls, dtype):
    expected = np.float32 if dtype == np.float32 else np.float64
    model = cls(3, max_iter=5, random_state=0)
    V = model.fit_transform(GOOD.astype(dtype))
    assert V.dtype == model.components_.dtype == model.transform(GOOD.astype(dtype)).dtype == expected
    assert isinstance(model.objective_, float)


def test_float32_is_near_float64(cls, rng):
    X = samples(rng, 40, 20)
    steps = 50 if monotone(cls) else 10  # an augmented Lagrangian method amplifies rounding
    double, single = (
        cls(3, max_iter=steps, tol=0, **weights(cls)).fit(X.astype(dtype), **start(cls, X, 3))
        for dtype in (np.float64, np.float32)
    )
    np.testing.assert_allclose(single.embedding_, double.embedding_, atol=2e-3)
    np.testing.assert_allclose(single.objective_, double.objective_, rtol=1e-4)


def test_input_is_not_changed(cls, rng):
    X = samples(rng)
    W = knn_graph(X, 3)
    first = start(cls, X, 3)
    before = [X.copy(), W.toarray(), *(F.copy() for F in first.values())]
    make(cls, 3, graph=W, max_iter=5).fit(X, **first)
    for array, copy in zip((X, W.toarray(), *first.values()), before, strict=True):
        np.testing.assert_array_equal(array, copy)


@pytest.mark.parametrize("name", ["GNMF", "RMNMF", "LS-NMF", "RLS-NMF"])
def test_a_bad_start_is_refused_before_the_graph_is_built(name, monkeypatch):
    monkeypatch.setattr("lognmf.graph.find_neighbours", lambda *_: pytest.fail("the graph was built"))
    with pytest.raises(ValueError, match=r"V0 must have shape \(12, 3\); got \(2, 2\)"):
        MODELS[name](3).fit(GOOD, V0=np.ones((2, 2)))


def test_a_scaler_that_leaves_its_range_in_new_samples_is_told_how_to_stay_inside(rng):
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import MinMaxScaler

    X = rng.random((20, 4))
    pipeline = make_pipeline(MinMaxScaler(), MODELS["LS-NMF"](2, max_iter=5)).fit(X)
    with pytest.raises(ValueError, match=r"shift or clip X first, as MinMaxScaler\(clip=True\) does, or use"):
        pipeline.transform(X - 0.5)
    assert pipeline.set_params(minmaxscaler__clip=True).fit(X).transform(X - 0.5).shape == (20, 2)
