"""The contract of every term: value, split gradient, batch."""

import numpy as np
import pytest
import scipy.sparse as sp
import scipy.special

from lognmf.core.data import InMemory
from lognmf.core.terms import LOSSES, PENALTIES, ROW_NORMS, frobenius
from problems import cut, factors, fits, penalties, samples

PENALTY_NAMES = [*PENALTIES, "laplacian"]
FIT_NAMES = [*LOSSES, *ROW_NORMS]
ROW_NORM_FORMULAS = {"l2log": np.log1p, "l21": lambda s: s}
B, k = 3, 4
WEIGHTS = np.array([0.0, 0.3, 2.0])
STEP = 1e-6
ALL = slice(None)


def numeric_gradient(value, F):
    """Central differences of ``value(F)`` (B,), entry by entry; settings don't interact."""
    gradient = np.zeros_like(F)
    for i in range(F.shape[0]):
        for j in range(F.shape[2]):
            up, down = F.copy(), F.copy()
            up[i, :, j] += STEP
            down[i, :, j] -= STEP
            gradient[i, :, j] = (value(up) - value(down)) / (2 * STEP)
    return gradient


def zero_if_none(half, F):
    return np.zeros_like(F) if half is None else half


@pytest.mark.parametrize("name", PENALTY_NAMES)
class TestPenalty:
    @pytest.fixture
    def F(self, rng):
        return 0.1 + rng.random((12, B, k))

    @pytest.fixture
    def penalty(self, name, rng):
        return penalties(samples(rng), WEIGHTS)[name]

    def test_split_gradient(self, penalty, F):
        neg, pos = (zero_if_none(half, F) for half in penalty.halves(F)(ALL))
        assert (neg >= 0).all()
        assert (pos >= 0).all()
        np.testing.assert_allclose(2 * (pos - neg), numeric_gradient(penalty.value, F), rtol=1e-6, atol=1e-7)

    def test_batch_is_its_settings(self, penalty, F):
        for b in range(B):
            one = penalty.take(np.array([b]))
            np.testing.assert_allclose(one.value(F[:, [b]]), penalty.value(F)[[b]], rtol=1e-14)
            for half, whole in zip(one.halves(F[:, [b]])(ALL), penalty.halves(F)(ALL), strict=True):
                if whole is None:
                    assert half is None
                else:
                    np.testing.assert_allclose(half, whole[:, [b]], rtol=1e-14)

    def test_value_is_float64_and_nonnegative(self, penalty, F):
        value = penalty.value(F)
        assert value.dtype == np.float64
        assert value.shape == (B,)
        assert (value >= -1e-12).all()
        assert value[0] == 0

    def test_halves_are_fresh(self, penalty, F):
        before = F.copy()
        for half in penalty.halves(F)(ALL):
            if half is not None:
                half += 1
        np.testing.assert_array_equal(F, before)


def test_roughness_of_nearly_constant_codes_in_float32(rng):
    """D V and W V all but cancel; the difference is what the graph term is about."""
    from lognmf.core.terms import Laplacian
    from lognmf.graph import knn_graph

    W = knn_graph(samples(rng, 40, 9), 5)
    V = (1 + 1e-4 * rng.random((40, 1, 3))).astype(np.float32)
    exact = V[:, 0].astype(float)
    i, j = W.nonzero()
    expected = 100 * 0.5 * (W.toarray()[i, j][:, None] * (exact[i] - exact[j]) ** 2).sum()
    value = Laplacian.of(W, np.array([100.0], dtype=np.float32)).value(V)
    np.testing.assert_allclose(value, expected, rtol=1e-6)


@pytest.mark.parametrize("weighting", ["binary", "heat"])
def test_roughness_keeps_its_digits(weighting, rng):
    """Against the definition in long double, however little the codes differ."""
    from lognmf.core.terms import Laplacian
    from lognmf.graph import knn_graph

    W = knn_graph(samples(rng, 40, 9), 5, weighting=weighting)
    W.setdiag(rng.random(40))  # loops, which count for nothing
    V = 1 + 10.0 ** -np.arange(2, 14, 2)[:, None] * rng.random((40, 6, 3))
    exact, dense = V.astype(np.longdouble), W.toarray().astype(np.longdouble)
    L = np.diag(dense.sum(axis=1)) - dense
    expected = [0.7 * np.trace(exact[:, b].T @ L @ exact[:, b]) for b in range(2)]  # cancels too
    value = Laplacian.of(W, np.full(6, 0.7)).value(V)
    np.testing.assert_allclose(value[:2], np.array(expected, dtype=float), rtol=1e-9)
    i, j = np.nonzero(dense)
    pairs = (dense[i, j][:, None, None] * (exact[i] - exact[j]) ** 2).sum(axis=(0, 2)) / 2
    np.testing.assert_allclose(value, (0.7 * pairs).astype(float), rtol=1e-12)


@pytest.mark.parametrize("name", list(PENALTIES))
def test_one_coordinate_descends(name, rng):
    """`minimise` never goes up, and from its answer nothing near is better."""
    m = 2000
    curvature, slope = rng.uniform(0.01, 3, m), rng.uniform(-1, 3, m)
    weight, at = 10 ** rng.uniform(-3, 1, m), rng.uniform(0, 3, m)
    penalty = PENALTIES[name](weight)

    def value(x):
        return curvature * x**2 - 2 * slope * x + penalty.value(x[None, :, None])

    best = penalty.minimise(curvature, slope, weight, at)
    assert (best >= 0).all()
    assert (value(best) <= value(at) + 1e-12).all()
    for change in (-1e-4, 1e-4):
        assert (value(best) <= value(np.maximum(best + change, 0)) + 1e-12).all()


@pytest.mark.parametrize("name", list(PENALTIES))
def test_one_coordinate_between_going_and_staying(name):
    """Where the slope at 0 is that of the penalty, nothing is divided by zero: 0 is the answer."""
    curvature, slope, weight, at = np.array([[2.0, 3.0], [0.5, 0.25], [1.0, 0.5], [0.0, 0.0]])
    best = PENALTIES[name](weight).minimise(curvature, slope, weight, at)
    np.testing.assert_allclose(best, 0, atol=1e-15)


@pytest.mark.parametrize("a", [1.0, 0.0, 3.0])
def test_one_coordinate_where_the_stationary_points_of_the_log_penalty_meet(a):
    """The way down from above leads past them, to 0: x² − 2 a x + (a + 1)²/2 · log(1 + x)."""
    numbers = 1.0, a, (a + 1) ** 2 / 2, 5.0
    penalty = PENALTIES["log"](np.ones(1))
    assert penalty.minimise(*(np.array([number]) for number in numbers)).tolist() == [0]
    assert penalty.minimum(*numbers) == 0


@pytest.mark.parametrize("name", list(PENALTIES))
class TestScalarFunctions:
    """φ for one number, as coordinate descent uses it, against the formulas for arrays."""

    x = np.concatenate([[0.0], np.logspace(-18, 12, 61)])

    @pytest.fixture
    def penalty(self, name):
        return PENALTIES[name](np.ones(1))

    def test_cost_and_slope(self, penalty):
        for x in self.x.tolist():
            F = np.full((1, 1, 1), x)
            np.testing.assert_allclose(penalty.cost(x), penalty.value(F)[0], rtol=1e-14)
            neg, pos = (zero_if_none(half, F) for half in penalty.halves(F)(ALL))
            np.testing.assert_allclose(penalty.slope(x), 2 * (pos - neg).item(), rtol=1e-14)

    def test_bend(self, penalty):
        """x φ' + x² φ'', with φ'' by differences of φ'; optional."""
        if not hasattr(penalty, "bend"):
            return
        for x in self.x[self.x > 1e-9].tolist():
            up, down = (x * (1 + sign * 1e-4) for sign in (1, -1))
            curvature = (penalty.slope(up) - penalty.slope(down)) / (up - down)
            expected = x * penalty.slope(x) + x**2 * curvature
            np.testing.assert_allclose(penalty.bend(x), expected, rtol=1e-6, atol=1e-6 * x * penalty.slope(x))

    def test_what_the_solver_relies_on(self, penalty):
        """φ is 0 at 0, rises and is concave; with `bend`, the third derivative in log x ≤ 2 · the second."""
        assert penalty.cost(0.0) == 0
        slope = np.array([penalty.slope(x) for x in self.x.tolist()])
        assert (slope > 0).all()
        assert (np.diff(slope) <= 0).all()
        if not hasattr(penalty, "bend"):
            return
        bend = np.array([penalty.bend(x) for x in self.x.tolist()])
        assert (bend >= 0).all()
        step = np.log(self.x[2] / self.x[1])
        assert (np.abs(np.diff(np.log(bend[1:]))) <= (2 + 1e-9) * step).all()

    def test_minimum(self, penalty, rng):
        m = 3000
        curvature, weight = 10 ** rng.uniform(-9, 3, m), np.append(10 ** rng.uniform(-6, 3, m - 1), 0)
        slope, at = rng.normal(size=m) * 10 ** rng.uniform(-6, 3, m), rng.uniform(0, 3, m)
        expected = penalty.minimise(curvature, slope, weight, at)
        each = zip(*(array.tolist() for array in (curvature, slope, weight, at)), strict=True)
        found = np.array([max(penalty.minimum(*numbers), 0.0) for numbers in each])
        assert 0.1 < (found > 0).mean() < 0.9
        np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-12)

    def test_minimum_of_a_huge_slope(self, penalty):
        """Its square overflows, the minimum does not: it is where the quadratic has its own."""
        found = (
            penalty.minimum(1.0, 1e200, 1.0, 0.0),
            penalty.minimise(*np.array([[1.0], [1e200], [1.0], [0.0]])),
        )
        for one in found:
            np.testing.assert_allclose(one, 1e200, rtol=1e-14)

    def test_joined(self, penalty):
        """Optional: one number that costs as much as two."""
        if not hasattr(penalty, "joined"):
            return
        for x in self.x.tolist():
            for y in (0.0, 1e-17, 0.3, 1e9):
                joined = penalty.cost(penalty.joined(x, y))
                np.testing.assert_allclose(joined, penalty.cost(x) + penalty.cost(y), rtol=1e-14)


@pytest.mark.parametrize("weight", [0.0, 1e-22, 1e-3, 0.5])
def test_the_minimum_with_the_log_penalty_keeps_its_digits(weight):
    """Whatever its size: the formula of the root as it is in books loses entries below 1e-16."""
    a = np.longdouble(10.0) ** np.arange(-40, 40)
    w = np.longdouble(weight) / 2
    # x of (x − a)(1 + x) + w = 0, by Newton's method from above in long double
    x = a.copy()
    for _ in range(100):
        x = x - ((x - a) * (1 + x) + w) / (1 + 2 * x - a)
    far = a > 2 * w
    penalty = PENALTIES["log"](np.array([weight]))
    high = np.full(len(a), 1e50)
    one = penalty.minimise(np.ones(len(a)), a.astype(float), np.full(len(a), weight), high)
    other = [penalty.minimum(1.0, float(value), weight, 1e50) for value in a]
    for found in (one, np.array(other)):
        np.testing.assert_allclose(found[far], x[far].astype(float), rtol=1e-13)


def test_residuals_of_parts_that_cancel(rng):
    """Parts of both signs: the short form loses digits, whatever the size of the sample."""
    V = rng.random((6, 1, 3))
    U = 1e3 * rng.normal(size=(5, 1, 3))
    X = (V[:, 0, :] @ U[:, 0, :].T) * (1 + 1e-9 * rng.normal(size=(6, 5)))
    for sample in (X, 0 * X):
        data = InMemory(sample)
        exact = ((sample - V[:, 0, :].astype(np.longdouble) @ U[:, 0, :].T) ** 2).sum(axis=1)
        found = LOSSES["frobenius"](data).squared_residuals(data, U, V, data.times(U))[:, 0]
        np.testing.assert_allclose(found, exact.astype(float), rtol=1e-6)


@pytest.mark.parametrize("size", [1e-3, 0.1, 1e3])
def test_residuals_of_small_samples_and_parts_that_cancel(size, rng):
    """Two parts that are all but opposite: their sizes, not the sample's, say how many digits are lost."""
    a, b = size * rng.random((2, 5))
    U = np.stack([a, -a + 1e-6 * b], axis=1)[:, None, :]
    data = InMemory(1e-6 * size * rng.random((4, 5)))
    V = np.ones((4, 1, 2))
    exact = ((data.X - U.astype(np.longdouble).sum(axis=2).T) ** 2).sum(axis=1)
    found = LOSSES["frobenius"](data).squared_residuals(data, U, V, data.times(U))[:, 0]
    np.testing.assert_allclose(found, exact.astype(float), rtol=1e-6)


@pytest.mark.parametrize("close", [[], [0], [7000], [3, 4000, 9999]])
def test_only_samples_in_doubt_are_taken_explicitly(close, rng, monkeypatch):
    """Among many: those before, between and after them stay as they are."""
    U, V = rng.random((20, 1, 2)), rng.random((10_000, 1, 2))
    X = rng.random((10_000, 20))
    X[close] = (V[:, 0] @ U[:, 0].T)[close] + 1e-7
    seen, explicit = [], frobenius._explicit
    monkeypatch.setattr(frobenius, "_explicit", lambda X, *UV: seen.append(len(X)) or explicit(X, *UV))
    data = InMemory(X)
    found = LOSSES["frobenius"](data).squared_residuals(data, U, V, data.times(U))[:, 0]
    np.testing.assert_allclose(found, ((X - V[:, 0] @ U[:, 0].T) ** 2).sum(axis=1), rtol=1e-9)
    assert len(seen) == len(close)


def test_residuals_where_squares_overflow():
    U, V = np.full((2, 1, 1), 1e20, dtype=np.float32), np.full((3, 1, 1), 2e-20, dtype=np.float32)
    data = InMemory(np.full((3, 2), 3, dtype=np.float32))
    with np.errstate(over="ignore", invalid="ignore"):
        found = LOSSES["frobenius"](data).squared_residuals(data, U, V, data.times(U))
    np.testing.assert_allclose(found, np.full((3, 1), 2.0), rtol=1e-5)


@pytest.mark.parametrize("name", list(ROW_NORMS))
def test_nothing_is_taken_out_of_a_residual_in_the_dead_zone(name):
    norm = ROW_NORMS[name]()
    tau = np.logspace(-8, 8, 161)
    zone = norm.dead_zone(tau)
    assert (zone > 0).all()
    for share in (1e-6, 0.5, 0.999999):
        assert (norm.shrink(share * zone, tau) == 0).all()
    assert norm.dead_zone(np.float32([0.0, 4.0])).dtype == np.float32


@pytest.mark.parametrize("name", list(ROW_NORMS))
def test_shrinkage_is_the_best_of_all_lengths(name):
    """Also where 0 and a stationary point are both minima, on either side of the jump between them."""
    norm, cost = ROW_NORMS[name](), ROW_NORM_FORMULAS[name]
    r, tau = (axis.reshape(-1) for axis in np.meshgrid(np.linspace(0, 12, 97), np.logspace(-3, 1.5, 46)))
    shrunk = norm.shrink(r, tau)
    assert ((shrunk >= 0) & (shrunk <= r)).all()
    lengths = np.linspace(0, 1, 1001)[:, None] * r
    best = ((lengths - r) ** 2 / 2 + tau * cost(lengths)).min(axis=0)
    assert ((shrunk - r) ** 2 / 2 + tau * cost(shrunk) <= best + 1e-12).all()
    assert 0.3 < (shrunk > 0).mean() < 0.9


@pytest.mark.parametrize("name", FIT_NAMES)
class TestDataFit:
    @pytest.fixture
    def data(self, rng):
        return InMemory(samples(rng))

    @pytest.fixture
    def fit(self, name, data):
        return fits(data.X, WEIGHTS)[name]

    @pytest.fixture
    def UV(self, rng, data):
        return factors(rng, data.X, B, k)

    @staticmethod
    def value(fit, data, U, V):
        return fit.row_values(data, U, V, fit.project(data, U)).sum(axis=0)

    def test_split_gradient(self, fit, data, UV):
        """By the envelope theorem the gradient at the best S is that at fixed S."""
        U, V = UV
        XU = fit.project(data, U)
        kept = fit.separate(data, U, V, XU)
        sums = fit.sums(data, U, V, kept)
        cases = (
            (fit.halves_U(U, sums)(ALL), U, lambda F: self.value(fit, data, F, V)),
            (fit.halves_V(data, U, V, XU, kept, U)(ALL), V, lambda F: self.value(fit, data, U, F)),
        )
        for (neg, pos), F, value in cases:
            assert (neg >= 0).all()
            assert (pos >= 0).all()
            np.testing.assert_allclose(2 * (pos - neg), numeric_gradient(value, F), rtol=1e-5, atol=1e-6)

    def test_value_by_definition(self, fit, name, data, UV):
        U, V = UV
        value, X = self.value(fit, data, U, V), data.X
        for b in range(B):
            Y = V[:, b] @ U[:, b].T
            if name == "frobenius":
                expected = ((X - Y) ** 2).sum()
            elif name == "kullback-leibler":
                expected = (scipy.special.rel_entr(X, Y) - X + Y).sum()
            else:
                r = np.linalg.norm(X - Y, axis=1)
                grid = np.linspace(0, 1, 20001)[:, None] * r
                cost = ROW_NORM_FORMULAS[name](grid)
                expected = ((r - grid) ** 2 + WEIGHTS[b] * cost).min(axis=0).sum()
            np.testing.assert_allclose(value[b], expected, rtol=1e-6, atol=1e-7)

    def test_separation_leaves_nonnegative_data(self, fit, data, UV):
        """thm_nonnegative_xs, with S formed."""
        U, V = UV
        kept = fit.separate(data, U, V, fit.project(data, U))
        if not len(kept):
            assert not hasattr(fit, "row_norm")
            return
        assert ((kept >= 0) & (kept <= 1)).all()
        for b in range(B):
            S = (1 - kept[:, [b]]) * (data.X - V[:, b] @ U[:, b].T)
            assert (data.X - S >= -1e-15).all()

    def test_the_outlier_part_by_definition(self, fit, name, data, UV):
        """S is the residual, shrunk; also of one component."""
        for U, V in (UV, factors(np.random.default_rng(1), data.X, B, 1)):
            XU = fit.project(data, U)
            kept = fit.separate(data, U, V, XU)
            if name not in ROW_NORMS:
                assert kept.shape == (0, B)
                continue
            squared = fit.squared_residuals(data, U, V, XU)
            r = np.sqrt(squared)
            shrunk = np.stack([fit.row_norm.shrink(r[:, b], WEIGHTS[b] / 2) for b in range(B)], axis=1)
            assert (shrunk > 0).any()
            share, norm = fit.outlier_part(squared)
            np.testing.assert_allclose(norm, shrunk, rtol=1e-9, atol=1e-14)
            np.testing.assert_allclose(share, shrunk / r, rtol=1e-9, atol=1e-14)
            np.testing.assert_allclose(kept, 1 - shrunk / r, rtol=1e-9, atol=1e-14)

    def test_batch_is_its_settings(self, fit, data, UV):
        U, V = UV
        for b in range(B):
            one = self.value(fit.take(np.array([b])), data, U[:, [b]], V[:, [b]])
            np.testing.assert_allclose(one, self.value(fit, data, U, V)[[b]], rtol=1e-13)

    def test_close_fit_keeps_digits(self, fit, name, rng):
        """The short form of the residual alone would lose half of them."""
        U, V = rng.random((9, 1, 2)), rng.random((12, 1, 2))
        noise = 1e-7 * rng.random((12, 9))
        data = InMemory(V[:, 0] @ U[:, 0].T + noise)
        exact = (noise**2).sum(axis=1, keepdims=True)
        one = fits(data.X, np.zeros(1))[name]
        np.testing.assert_allclose(one.squared_residuals(data, U, V, one.project(data, U)), exact, rtol=1e-6)

    def test_blocks_add_up(self, fit, data, UV):
        """What a pass over blocks of rows gives is what all rows at once give."""
        U, V = UV
        XU = fit.project(data, U)
        kept = fit.separate(data, U, V, XU)
        parts = []
        for rows, block in cut(data.X, [1, 7]).blocks():
            own = fit.separate(block, U, V[rows], fit.project(block, U))
            np.testing.assert_allclose(own, kept[rows], rtol=1e-12)
            parts.append(fit.sums(block, U, V[rows], own))
        for whole, *pieces in zip(fit.sums(data, U, V, kept), *parts, strict=True):
            np.testing.assert_allclose(sum(pieces), whole, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("name", list(ROW_NORMS))
@pytest.mark.parametrize("gamma", [1e-3, 1e3])
def test_updates_where_all_samples_are_outliers_or_none_is(name, gamma, rng):
    """Against X − S, formed."""
    data = InMemory(samples(rng))
    U, V = factors(rng, data.X, 1, k)
    fit = fits(data.X, np.array([gamma]))[name]
    XU = fit.project(data, U)
    kept = fit.separate(data, U, V, XU)
    assert (kept < 1).all() if gamma < 1 else (kept == 1).all()
    rest = kept * data.X + (1 - kept) * (V[:, 0] @ U[:, 0].T)  # X − S
    for halves, F, neg in (
        (fit.halves_U(U, fit.sums(data, U, V, kept)), U, rest.T @ V[:, 0]),
        (fit.halves_V(data, U, V, XU, kept, U), V, rest @ U[:, 0]),
    ):
        other = V[:, 0] if F is U else U[:, 0]
        found = halves(ALL)
        np.testing.assert_allclose(found[0][:, 0], neg, rtol=1e-10)
        np.testing.assert_allclose(found[1][:, 0], F[:, 0] @ (other.T @ other), rtol=1e-10)


@pytest.mark.parametrize("name", list(ROW_NORMS))
@pytest.mark.parametrize("tau", [1e-9, 1e-8, 5e-8])
def test_outliers_of_a_close_fit(name, tau, rng):
    """Residuals of 1e-7, which the short form cannot give, against prices below them."""
    U, V = rng.random((9, 1, 2)), rng.random((12, 1, 2))
    noise = 1e-7 * rng.random((12, 9))
    data, fit = InMemory(V[:, 0] @ U[:, 0].T + noise), fits(noise, np.array([2 * tau]))[name]
    r = np.linalg.norm(noise, axis=1, keepdims=True)
    expected = 1 - fit.row_norm.shrink(r, np.array([tau])) / r
    assert (expected < 0.9).all()
    np.testing.assert_allclose(fit.separate(data, U, V, data.times(U)), expected, rtol=1e-5)


class TestCloseResiduals:
    """Residuals that the short form cannot give are taken by differences, in blocks, where they matter."""

    n, p, settings = 11, 9, 5

    @pytest.fixture
    def close(self, rng):
        """Data, factors of which settings 1, 3 and 4 fit closely, residuals, and what was formed of X."""
        U, V = rng.random((self.p, self.settings, 2)), rng.random((self.n, self.settings, 2))
        X = V[:, 1] @ U[:, 1].T
        for b in (3, 4):
            U[:, b], V[:, b] = U[:, 1] + b * 1e-9 * rng.random((self.p, 2)), V[:, 1]
        X[-2:] += 1  # samples that nobody fits
        exact = np.stack([((X - V[:, b] @ U[:, b].T) ** 2).sum(axis=1) for b in range(self.settings)], axis=1)
        formed = []

        class Watched(InMemory):
            def dense_rows(self, rows):
                formed.append(rows.stop - rows.start)
                return super().dense_rows(rows)

        return Watched(X), U, V, exact, formed

    @pytest.mark.parametrize(
        ("numbers", "heights"), [(1, [1] * 27), (20, [2] * 15), (250, [11, 11]), (300, [11])]
    )
    def test_in_blocks_of_so_many_numbers(self, close, numbers, heights, monkeypatch):
        """Nine samples of three settings are in doubt; one row of one setting is the least."""
        data, U, V, exact, formed = close
        monkeypatch.setattr(frobenius, "BLOCK_NUMBERS", numbers)
        found = frobenius.squared_residuals(data, U, V, data.times(U))
        np.testing.assert_allclose(found, exact, rtol=1e-6, atol=1e-28)
        assert formed == heights

    def test_only_where_they_matter(self, close):
        data, U, V, exact, formed = close
        XU = data.times(U)
        found = frobenius.squared_residuals(data, U, V, XU, np.full(self.settings, np.inf))
        assert not formed
        np.testing.assert_allclose(found, exact, atol=1e-12)
        found = frobenius.squared_residuals(data, U, V, XU, np.zeros(self.settings))
        assert formed
        np.testing.assert_allclose(np.where(found > 0, found, exact), exact, rtol=1e-6, atol=1e-28)


def test_kept_share_where_almost_all_is_taken():
    """1 − ξ/r in float32 would be rounding noise here."""
    from lognmf.core.terms.robust import kept_share

    r, tau = np.array([50.0]), np.array([5e-4])
    exact = kept_share(ROW_NORMS["l2log"](), r, tau)
    single = kept_share(ROW_NORMS["l2log"](), r.astype(np.float32), tau.astype(np.float32))
    np.testing.assert_allclose(single, exact, rtol=1e-5)
    np.testing.assert_allclose(exact, 5e-4 / (51 * 50), rtol=1e-4)


@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
class TestWeighted:
    """The fit with weights of the entries, each row for itself."""

    @pytest.fixture
    def data(self, form, rng):
        M = rng.random((12, 9)) * (rng.random((12, 9)) < 0.7)
        M[5] = 0
        return InMemory(form(samples(rng)), form(M))

    @staticmethod
    def dense(matrix):
        return matrix.toarray() if sp.issparse(matrix) else matrix

    def test_rows_by_definition(self, data, rng):
        X, M = self.dense(data.X), self.dense(data.M)
        fit = LOSSES["frobenius"](data)
        U, V = factors(rng, X, B, k)
        expected = np.stack([(M * (X - V[:, b] @ U[:, b].T) ** 2).sum(axis=1) for b in range(B)], axis=1)
        for of_rows in (fit.row_values, fit.squared_residuals):
            np.testing.assert_allclose(of_rows(data, U, V, fit.project(data, U)), expected, rtol=1e-12)

    def test_split_gradient(self, data, rng):
        fit = LOSSES["frobenius"](data)
        U, V = factors(rng, self.dense(data.X), B, k)
        XU = fit.project(data, U)

        def value(U, V):
            return fit.row_values(data, U, V, XU).sum(axis=0)

        kept = fit.separate(data, U, V, XU)
        for halves, F, of in (
            (fit.halves_U(U, fit.sums(data, U, V, kept)), U, lambda F: value(F, V)),
            (fit.halves_V(data, U, V, XU, kept, U), V, lambda F: value(U, F)),
        ):
            neg, pos = halves(ALL)
            np.testing.assert_allclose(2 * (pos - neg), numeric_gradient(of, F), rtol=1e-5, atol=1e-6)
