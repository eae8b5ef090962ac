"""Coordinate descent on torch tensors: the loops against their twins in NumPy, whole fits against NumPy's."""

import numpy as np
import pytest
import scipy.sparse as sp

import sweeps
from lognmf import MODELS, knn_graph, to_device
from lognmf.core import arrays
from lognmf.core.arrays import gram, like, product, product_t, to_numpy
from lognmf.core.solvers.coordinate.coloured_graph import coloured, without_edges
from lognmf.core.terms import PENALTIES
from problems import factors, pattern, samples

torch = pytest.importorskip("torch", reason="torch is an extra")
tensors = pytest.importorskip("lognmf.core.torch.coordinate")


@pytest.fixture(params=["torch-cpu", "torch-cuda"])
def home(request):
    return pattern(request.param)


@pytest.fixture(params=PENALTIES)
def penalty(request):
    return request.param


@pytest.fixture(params=["kernels", "plain"])
def way(request, home, monkeypatch):
    """With kernels, where they run, and without."""
    if request.param == "kernels" and arrays.kernels(home) is None:
        pytest.skip("there is no GPU with Triton here")
    if request.param == "plain":
        monkeypatch.setattr(arrays, "_kernels", lambda: None)


def problem(rng, n=50, p=23, k=5, B=2):
    X = samples(rng, n, p, density=0.7)
    U, V = factors(rng, X, B, k)
    V[::3, :, 1] = 0
    return X, U, V


def both(name, penalty, home, arguments, *more):
    """A loop's results on tensors and in NumPy, from NumPy arrays."""
    terms = (PENALTIES[penalty](like(np.ones(2), home)), PENALTIES[penalty](np.ones(2)))
    there = [like(F, home) for F in arguments]
    ours = getattr(tensors.loops(terms[0]), name)(*there, *more)
    return ours, getattr(sweeps.loops(terms[1]), name)(*arguments, *more)


@pytest.mark.usefixtures("way")
class TestLoops:
    @pytest.mark.parametrize("robust", [False, True])
    @pytest.mark.parametrize("scale", [1e-3, 1.0, 100.0])
    @pytest.mark.parametrize("graph", [False, True])
    def test_sweep(self, home, penalty, robust, scale, graph, rng):
        X, U, V = problem(rng)
        kept = rng.random((50, 2)) if robust else np.zeros((0, 2))
        rows = coloured(knn_graph(X, 3)) if graph else without_edges(50)
        weights = np.array([0.5, 0.0]), scale * np.array([0.1, 0.0]), 3
        numpy_arrays = V, product(X, U), gram(U, U), kept
        there = [like(F, home) for F in numpy_arrays]
        placed = tensors.placed(rows, home) if graph else rows
        ours = tensors.loops(PENALTIES[penalty](like(np.ones(2), home))).sweep(*there, placed, *weights)
        twin = sweeps.loops(PENALTIES[penalty](np.ones(2))).sweep(*numpy_arrays, rows, *weights)
        assert ours.dtype == home.dtype
        np.testing.assert_allclose(to_numpy(ours), twin, atol=1e-10)
        np.testing.assert_array_equal(to_numpy(there[0]), V)

    def test_codes_of_a_part_that_died(self, home, penalty, rng):
        """A penalty makes them 0; without any they stay, since nothing depends on them."""
        X, U, V = problem(rng)
        U[:, :, 2] = 0
        rows, lam, weight = without_edges(50), np.zeros(2), np.array([0.1, 0.0])
        arguments = V, product(X, U), gram(U, U), np.zeros((0, 2))
        swept = to_numpy(both("sweep", penalty, home, arguments, rows, lam, weight, 1)[0])
        assert (swept[:, 0, 2] == 0).all()
        np.testing.assert_array_equal(swept[:, 1, 2], V[:, 1, 2])

    @pytest.mark.parametrize("weight", [0.01, 1.0, 1e3])
    @pytest.mark.parametrize("p", [23, 600])
    def test_sphere_sweep(self, home, penalty, weight, p, rng):
        X, U, V = problem(rng, p=p)
        V[:, 1, 3] = 0  # nothing is known of this column of U: it stays
        U /= np.linalg.norm(U, axis=0)
        ours, twin = both(
            "sphere_sweep", penalty, home, (U, product_t(X, V), gram(V, V)), np.array([weight, 0.0]), 2
        )
        np.testing.assert_allclose(to_numpy(ours), twin, atol=1e-10)
        np.testing.assert_array_equal(to_numpy(ours)[:, 1, 3], U[:, 1, 3])

    def test_sums_scales_and_steps(self, home, penalty, rng):
        X, U, V = problem(rng)
        rows, factor = coloured(knn_graph(X, 3)), rng.random((2, 5))
        there, V_there = like(U, home), like(V, home)
        for F in (U, 1e20 * U, 1e-17 * U, 0 * U):
            np.testing.assert_allclose(*both("penalty_sum", penalty, home, (F,)), rtol=1e-10)
        for ours, twin in zip(*both("scale_derivatives", penalty, home, (U,), factor), strict=True):
            np.testing.assert_allclose(ours, twin, rtol=1e-10)
        graph = tensors.placed(rows, home)[2:5]
        np.testing.assert_allclose(
            tensors.roughness(V_there, *graph), sweeps.roughness(V, *rows[2:5]), rtol=1e-10
        )
        momentum = np.array([0.7, 0.0])
        ours = tensors.extrapolated(there, 2 * torch.flip(there, [0]), momentum)
        np.testing.assert_allclose(to_numpy(ours), sweeps.extrapolated(U, 2 * U[::-1], momentum), atol=1e-12)
        np.testing.assert_allclose(
            to_numpy(tensors.scaled(there, factor)), sweeps.scaled(U, factor), rtol=1e-12
        )


FITS = {
    "NMF": {},
    "LS-NMF": {"alpha": 0.02, "beta": 0.01, "lam": 0.5, "unit_components": False},
    "RLS-NMF": {"alpha": 0.02, "beta": 0.01, "gamma": 0.5, "lam": 0.1, "penalty": "l1"},
    "GNMF": {"lam": 0.3},
}


@pytest.mark.usefixtures("way")
@pytest.mark.parametrize("name", FITS)
@pytest.mark.parametrize("sparse", [False, True])
def test_fits_are_those_of_numpy(name, sparse, home, rng):
    X = samples(rng, 60, 20, density=0.4)
    model = MODELS[name](4, solver="cd", max_iter=30, tol=0, n_init=2, random_state=0, **FITS[name])
    twin = MODELS[name](**model.get_params()).fit(X)
    there = to_device(sp.csr_array(X), str(home.device), "float64") if sparse else like(X, home)
    model.fit(there)
    assert model.embedding_.device == home.device
    assert model.objective_ == pytest.approx(twin.objective_, rel=1e-8)
    np.testing.assert_allclose(to_numpy(model.components_), twin.components_, atol=1e-6)
    np.testing.assert_allclose(to_numpy(model.transform(there)), twin.transform(X), atol=1e-6)


def test_escapes_on_tensors(home, rng):
    """Components that die are refilled, and useless ones exchanged, as in NumPy."""
    X = samples(rng, 40, 12)
    start = {"U0": rng.random((12, 5)), "V0": rng.random((40, 5))}
    start["U0"][:, 3], start["V0"][:, 3] = 1e-3, 1e-3
    for options in ({"alpha": 0.05, "beta": 0.05}, {"alpha": 0.0, "beta": 0.0}):
        model = MODELS["LS-NMF"](5, solver="cd", max_iter=200, unit_components=False, **options)
        here = model.fit(X, **start).objective_
        assert model.fit(like(X, home), **start).objective_ == pytest.approx(here, rel=1e-6)
