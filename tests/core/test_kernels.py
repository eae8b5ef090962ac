"""Fused kernels compute what their plain twins compute; without them the plain formulas serve.

The kernels run on a GPU, or, slowly, anywhere with Triton under TRITON_INTERPRET=1.
"""

import itertools
import os
import sys

import numpy as np
import pytest

from lognmf import knn_graph
from lognmf.clustering.kmeans import kmeans
from lognmf.clustering.lloyd import Points, assign
from lognmf.core import arrays
from lognmf.core.arrays import like, scale_rows, to_numpy
from lognmf.core.data import InMemory
from lognmf.core.solvers import Multiplicative
from lognmf.core.terms import PENALTIES, ROW_NORMS, Frobenius, L2Log, Weighted, robust
from lognmf.core.terms.protocol import FitHalves, fused
from lognmf.core.terms.robust import kept_share
from lognmf.models.log_sparse import regularised
from problems import factors, fit_of, samples


@pytest.fixture(params=["float64", "float32"])
def home(request, monkeypatch):
    """A tensor where the kernels run."""
    torch = pytest.importorskip("torch", reason="torch is an extra")
    pytest.importorskip("triton", reason="Triton comes with torch for GPUs")
    dtype = getattr(torch, request.param)
    if torch.cuda.is_available():
        return torch.zeros(1, dtype=dtype, device="cuda")
    if os.environ.get("TRITON_INTERPRET") != "1":
        pytest.skip("there is no GPU here")
    from lognmf.core.torch import kernels

    monkeypatch.setattr(arrays, "on_gpu", lambda x: True)
    monkeypatch.setattr(arrays, "_kernels", lambda: kernels)
    return torch.zeros(1, dtype=dtype)


def multiplied(F, terms):
    return arrays.kernels(F).multiplied(F, terms)


def problem(home, X, fit, penalty, lam=1.0):
    data, weights = like(X, home), [like(np.array(w), home) for w in ([0.0, 0.3, 9.0], [0.2, 0.0, 2.0])]
    gamma, lam = like(np.array([0.1, 1.0, 1000.0]), home), like(np.array([0.5, 0.0, 10.0]) * lam, home)
    weights = {"alpha": weights[0], "beta": weights[1], "lam": lam}
    return regularised(InMemory(data), fit_of(fit, gamma), W=knn_graph(X, 3), penalty=penalty, **weights)


CASES = list(itertools.product(["frobenius", *ROW_NORMS], PENALTIES, [0.0, 1.0]))


@pytest.mark.parametrize(("fit", "penalty", "lam"), CASES)
def test_a_step_is_its_plain_twin(home, fit, penalty, lam, rng, monkeypatch):
    X = samples(rng, 21, 10)
    U, V = (like(F, home) for F in factors(rng, X, 3, 5))
    rule = Multiplicative(problem(home, X, fit, penalty, lam))
    exact = "float64" in str(home.dtype)

    def trajectory():
        state = rule.start(U, V)
        for _ in range(5):
            state = rule.step(state)
        squared = rule.problem.fit.squared_residuals(rule.problem.data, *rule.factors(state))
        return [to_numpy(x) for x in (state.U, state.V, squared, rule.value(state))]

    assert arrays.kernels(V) is not None
    ours = trajectory()
    monkeypatch.setattr(arrays, "_kernels", lambda: None)
    for one, other in zip(ours, trajectory(), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-10 if exact else 2e-3, atol=1e-13 if exact else 1e-6)


@pytest.mark.parametrize("norm", ROW_NORMS)
def test_shares_are_their_plain_twins(home, norm, rng, monkeypatch):
    r = like(np.concatenate([10.0 ** rng.uniform(-6, 3, (400, 5)), np.zeros((1, 5)), np.ones((1, 5))]), home)
    tau = like(np.array([1e-4, 0.05, 0.5, 1.0, 500.0]), home)
    F = like(rng.random((402, 5, 3)), home)
    ours = kept_share(ROW_NORMS[norm](), r, tau)
    scaled = scale_rows(F, ours)
    monkeypatch.setattr(arrays, "_kernels", lambda: None)
    exact = "float64" in str(home.dtype)
    theirs = kept_share(ROW_NORMS[norm](), r, tau)
    assert 0 < to_numpy(theirs < 1).mean() < 1
    np.testing.assert_allclose(to_numpy(ours), to_numpy(theirs), rtol=1e-13 if exact else 1e-5)
    np.testing.assert_allclose(to_numpy(scaled), to_numpy(scale_rows(F, ours)), rtol=1e-6)


@pytest.mark.parametrize(("fit", "penalty", "lam"), CASES[::3])
def test_the_objective_never_rises(home, fit, penalty, lam, rng):
    X = samples(rng, 21, 10)
    rule = Multiplicative(problem(home, X, fit, penalty, lam))
    state = rule.start(*(like(F, home) for F in factors(rng, X, 3, 5)))
    slack = 1e-12 if "float64" in str(home.dtype) else 1e-5
    before = to_numpy(rule.value(state))
    for _ in range(15):
        state = rule.step(state)
        after = to_numpy(rule.value(state))
        assert (after <= before * (1 + slack)).all()
        before = after


def test_zeros_stay_and_nan_shows(home):
    torch = sys.modules["torch"]
    F, A = torch.zeros_like(home).repeat(4, 2, 3), torch.ones_like(home).repeat(4, 2, 3)
    P = torch.zeros_like(home).repeat(2, 3, 3)
    assert (multiplied(F, [FitHalves(F, A, P)]) == 0).all()
    A[1, 1, 2] = float("nan")
    found = multiplied(F + 1, [FitHalves(F + 1, A, P + 1)])
    assert found.isnan().sum() == 1
    tiny = torch.finfo(F.dtype).smallest_normal
    below = [FitHalves(F + 1, torch.full_like(F, 1e-9), P + 1e-8 / tiny)]  # to tiny / 30
    assert (multiplied(F + 1, below) == 0).all()


def test_many_columns(home, rng):
    """More columns than a program holds, and a number of settings that no block divides."""
    X = samples(rng, 5, 4)
    U, V = (like(F, home) for F in factors(rng, X, 301, 7))
    data = InMemory(like(X, home))
    halves = Frobenius().halves_V(data, U, V, data.times(U), V[:0, :, 0], U)
    neg, pos = halves(slice(None))
    np.testing.assert_allclose(to_numpy(multiplied(V, [halves])), to_numpy(V * neg / pos), rtol=1e-5)


@pytest.mark.parametrize("K", [1, 3, 37])
def test_nearest_centres(home, K, rng, monkeypatch):
    V = like(rng.integers(0, 3, (50, 2, 4)).astype(float), home)  # so coarse that many are tied
    points = Points.of(V)
    places = like(rng.integers(0, 50, (2, 3, K)), home).long()
    centres = points.at(places)[..., :-1]
    ours = assign(points, centres)
    labels = to_numpy(kmeans(V, min(K, 6), seed=0))
    monkeypatch.setattr(arrays, "_kernels", lambda: None)
    for one, other in zip(ours, assign(points, centres), strict=True):
        np.testing.assert_allclose(to_numpy(one).astype(float), to_numpy(other).astype(float), atol=1e-12)
    np.testing.assert_array_equal(labels, to_numpy(kmeans(V, min(K, 6), seed=0)))


def test_unknown_terms_are_left_to_the_plain_formula(home, rng):
    X = samples(rng, 6, 4)
    U, V = (like(F, home) for F in factors(rng, X, 2, 3))
    data = InMemory(like(X, home), like(np.ones_like(X), home))
    assert multiplied(V, [Weighted().halves_V(data, U, V, data.times(U), V[:0, :, 0], U)]) is None
    known = FitHalves(V, V, like(np.ones((2, 3, 3)), home))
    penalty = PENALTIES["log"](like(np.ones(2), home)).halves(V)
    assert multiplied(V, [known, penalty]) is not None
    assert multiplied(V, [known, penalty, penalty]) is None
    assert multiplied(V, [penalty]) is None


class Halved(L2Log):
    """A user's own norm that is one of ours by name and by inheritance, but not by its formula."""

    def value(self, s):
        return super().value(s) / 2

    def slope(self, s):
        return super().slope(s) / 2

    def shrink(self, r, tau):
        return super().shrink(r, tau / 2)


Halved.__name__ = "L2Log"


class Ours:
    """Stands for the kernels, which run on a card only."""

    ROW_NORMS, SWEPT = ("l2log", "l21"), ("log", "l1")

    @staticmethod
    def kept_share(name, r, tau):
        return f"the kernel of {name}"


def test_kernels_are_chosen_by_the_term_itself(rng, monkeypatch):
    """Not by a name that a user's own class may have too."""
    monkeypatch.setattr(robust, "kernels", lambda _: Ours)
    r, tau = 3 * rng.random((5, 2)), np.ones(2)
    assert robust.kept_share(L2Log(), r, tau) == "the kernel of l2log"
    assert robust.kept_share(ROW_NORMS["l21"](), r, tau) == "the kernel of l21"
    plain = robust.kept_share(Halved(), r, tau)
    np.testing.assert_allclose((1 - plain) * r, Halved().shrink(r, tau), atol=1e-12)
    assert {name: fused(PENALTIES[name](np.ones(1))) for name in PENALTIES} == {"log": "log", "l1": "l1"}
    assert fused(type("Log", (PENALTIES["log"],), {})(np.ones(1))) is None


def test_without_triton_there_are_no_kernels(monkeypatch):
    # An import that finds None here says so with an ImportError, as one that finds nothing.
    monkeypatch.setitem(sys.modules, "triton", None)
    monkeypatch.delitem(sys.modules, "lognmf.core.torch.kernels", raising=False)
    monkeypatch.delattr("lognmf.core.torch.kernels", raising=False)
    assert arrays._kernels.__wrapped__() is None


def test_a_cpu_has_no_kernels():
    assert arrays.kernels(np.zeros(1)) is None
    torch = pytest.importorskip("torch", reason="torch is an extra")
    assert arrays.kernels(torch.zeros(1)) is None
