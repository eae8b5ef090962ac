"""A fit over blocks of rows is the fit in memory."""

import gc
import itertools
import tracemalloc
from importlib.util import find_spec

import numpy as np
import pytest
import scipy.sparse as sp

from lognmf import MODELS, RobustLogSparseNMF, choose_components, in_blocks, knn_graph
from lognmf.blocks import RowBlocks
from lognmf.blocks.disk import OnDisk
from lognmf.core import sparse_products, starts
from lognmf.models import validation
from lognmf.models.blocks import check_data
from problems import make, peak_numbers, samples, start, weights

NAMES = ["NMF", "GNMF", "WNMF", "LS-NMF", "RLS-NMF"]
KINDS = {"dense": np.asarray, "csr": sp.csr_array}
CASES = [
    *itertools.product(["mu", "cd"], KINDS, ["array"]),
    *itertools.product(["mu"], KINDS, ["dask"]),
    ("mu", "dense", "memmap"),
]
k = 3
pytestmark = pytest.mark.filterwarnings("ignore:lam=.* has no effect")
GONE = ("the disk is gone",)


@pytest.fixture(autouse=True)
def _at_once():
    """Dask computes a chunk in this thread, which is faster where chunks are tiny."""
    if find_spec("dask") is None:
        yield
        return
    import dask

    with dask.config.set(scheduler="synchronous"):
        yield


@pytest.fixture
def X(rng):
    return samples(rng, 40, 12, density=0.7)


def blocks_of(X, source, count, folder):
    """``X`` in so many blocks of rows."""
    rows = -(-X.shape[0] // count)
    if source == "dask":
        da = pytest.importorskip("dask.array", reason="dask is an extra")
        parts = [X[i : i + rows] for i in range(0, X.shape[0], rows)]
        chunks = [da.from_array(part, chunks=part.shape, asarray=False) for part in parts]
        return in_blocks(da.concatenate(chunks), rows=rows)
    if source == "memmap":
        np.save(folder / "X.npy", X)
        X = np.load(folder / "X.npy", mmap_mode="r")
    return in_blocks(X, rows=rows)


def same(ours, theirs, tol):
    """Whether two fits end with the same factors and numbers."""
    for name in ("components_", "embedding_"):
        np.testing.assert_allclose(getattr(ours, name), getattr(theirs, name), rtol=tol, atol=tol)
    for name in ("objective_", "reconstruction_err_"):
        np.testing.assert_allclose(getattr(ours, name), getattr(theirs, name), rtol=tol)
    np.testing.assert_allclose(ours.history_["objective"], theirs.history_["objective"], rtol=tol)
    assert (ours.n_iter_, ours.stop_reason_) == (theirs.n_iter_, theirs.stop_reason_)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("graph", ["given", "none"])
@pytest.mark.parametrize(("solver", "kind", "source"), CASES)
def test_blocks_against_memory(name, graph, solver, kind, source, X, tmp_path):
    cls, options = MODELS[name], {"solver": solver, "max_iter": 50, "tol": 0}
    options |= weights(cls) | ({"graph": knn_graph(X, 4)} if graph == "given" else {"graph": None, "lam": 0})
    first = start(cls, X, k)
    X = KINDS[kind](X)
    memory = make(cls, k, **options).fit(X, **first)
    for count in {"array": (2, 8), "memmap": (1, 3), "dask": (1, 3)}[source]:
        ours = make(cls, k, **options).fit(blocks_of(X, source, count, tmp_path), **first)
        same(ours, memory, 0 if count == 1 else 1e-10)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("kind", KINDS)
def test_codes_of_new_samples(name, kind, X):
    model, new = make(MODELS[name], k, random_state=0, max_iter=20).fit(X), KINDS[kind](X[::-1])
    np.testing.assert_allclose(model.transform(in_blocks(new, rows=7)), model.transform(new), atol=1e-10)


@pytest.mark.parametrize("init", ["random", "scaled", "nndsvda", "nndsvdar"])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("shape", "unit"), [((40, 12), 1e-160), ((12, 40), 1.0), ((40, 4), 1e-160), ((5, 40), 1e150)]
)
def test_starts(init, kind, shape, unit, rng):
    """Also where X has more features than samples, few of them, or a scale whose squares are no numbers."""
    X = KINDS[kind](unit * samples(rng, *shape))
    memory = MODELS["NMF"](k, init=init, max_iter=0, random_state=0).fit(X)
    ours = MODELS["NMF"](k, init=init, max_iter=0, random_state=0).fit(in_blocks(X, rows=3))
    np.testing.assert_allclose(ours.components_, memory.components_, rtol=1e-6, atol=1e-9)
    np.testing.assert_allclose(ours.embedding_ / unit, memory.embedding_ / unit, rtol=1e-6, atol=1e-9)


def test_a_start_without_the_gram_matrix(rng, monkeypatch):
    """Where XᵀX is larger than a block, Lanczos iterations read X instead."""
    X = samples(rng, 40, 12)
    memory = MODELS["NMF"](k, init="nndsvda", max_iter=0).fit(X)
    monkeypatch.setattr("lognmf.core.starts.SMALL_GRAM", 1)
    monkeypatch.setattr("lognmf.core.data.InBlocks.gram", lambda *_: pytest.fail("XᵀX was made"))
    ours = MODELS["NMF"](k, init="nndsvda", max_iter=0).fit(in_blocks(X, rows=11))
    np.testing.assert_allclose(ours.components_, memory.components_, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("name", ["LS-NMF", "RLS-NMF"])
def test_defaults(name, rng):
    """Weights chosen from the data, coordinate descent, NNDSVD: all of it as in memory."""
    X = rng.gamma(1.0, size=(90, 3)) @ (rng.random((3, 20)) * (rng.random((3, 20)) < 0.4))
    X[3] = rng.random(20)
    memory, ours = (MODELS[name](3, random_state=0).fit(Y) for Y in (X, in_blocks(X, rows=25)))
    same(ours, memory, 1e-6)
    for weight in memory.spec.auto:
        np.testing.assert_allclose(getattr(ours, f"{weight}_"), getattr(memory, f"{weight}_"), rtol=1e-6)
    if name == "RLS-NMF":
        np.testing.assert_array_equal(ours.is_outlier_, memory.is_outlier_)
        np.testing.assert_allclose(ours.residual_norm_, memory.residual_norm_, rtol=1e-5, atol=1e-8)


@pytest.mark.parametrize("name", ["WNMF", "LS-NMF"])
def test_missing_entries_in_some_blocks(name, X, rng):
    """Blocks without missing entries have weights too, and the mask is cut like X."""
    cls, missing = MODELS[name], rng.random(X.shape) < 0.1
    missing[10:] = False
    options = weights(cls) | {"solver": "mu", "max_iter": 30, "tol": 0, "random_state": 0, "graph": None}
    holes = np.where(missing, np.nan, X)
    memory = make(cls, k, **options).fit(holes)
    same(make(cls, k, **options).fit(in_blocks(holes, rows=9)), memory, 1e-10)
    for mask in (~missing, in_blocks(~missing, rows=4), (~missing).tolist()):
        same(make(cls, k, **options).fit(in_blocks(X, rows=9), weights=mask), memory, 1e-10)
    known = np.where(np.arange(40)[:, None] < 10, X, np.nan)
    make(cls, k, **options).fit(in_blocks(known, rows=10))  # blocks of which nothing is known
    with pytest.raises(ValueError, match="no known entry"):
        make(cls, k, **options).fit(in_blocks(np.full((9, 4), np.nan), rows=2))
    with pytest.raises(ValueError, match=r"weights must have the shape of X, \(40, 12\); got \(40, 2\)"):
        make(cls, k, **options).fit(in_blocks(X, rows=9), weights=np.ones((40, 2)))


@pytest.mark.parametrize("dtype", ["float32", "uint8"])
def test_types(dtype, X):
    X = (200 * X).astype(dtype)
    memory, ours = (MODELS["NMF"](k, random_state=0, max_iter=20).fit(Y) for Y in (X, in_blocks(X, rows=9)))
    assert ours.components_.dtype == memory.components_.dtype
    np.testing.assert_allclose(ours.components_, memory.components_, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(("init", "squares"), [("random", 0), ("nndsvda", 3)])
@pytest.mark.parametrize("solver", ["mu", "cd"])
def test_memory_is_that_of_a_block(solver, init, squares, rng, tmp_path):
    """Two blocks at most, a number of arrays of the size of the factors, and what the start makes of XᵀX."""
    np.save(tmp_path / "X.npy", rng.random((2000, 300)))
    source = in_blocks(tmp_path / "X.npy", rows=200)
    options = {"init": init, "solver": solver, "alpha": 0.01, "beta": 0.0, "max_iter": 3, "tol": 0}
    peak = peak_numbers(MODELS["LS-NMF"](2, random_state=0, **options), source)
    assert 200 * 300 < peak < 2 * 200 * 300 + squares * 300**2 + 20 * 2300 * 2


def test_an_iteration_reads_every_block_once(X):
    """The objective and what is kept of the fit need no reading: the norms are known."""
    seen = []
    source = RowBlocks(X.shape, X.dtype, (0, 10, 25, 40), lambda a, b: (seen.append(a), X[a:b])[1])
    options = {"solver": "mu", "tol": 0, "random_state": 0, "alpha": 0.01, "beta": 0.0, "init": "random"}
    for name, more in (("LS-NMF", {}), ("RLS-NMF", {"gamma": 1.0})):
        seen.clear()
        MODELS[name](k, max_iter=20, **options, **more).fit(source)
        assert seen == [0, 10, 25] * (1 + 1 + 20)  # checked, started, iterated


@pytest.mark.parametrize("kind", KINDS)
def test_neighbours_are_sought_in_adjacent_blocks(kind, X):
    """In two blocks this is the graph of all samples; more blocks form a ring."""

    def graph(rows):
        return MODELS["GNMF"](k, max_iter=1, random_state=0).fit(in_blocks(KINDS[kind](X), rows=rows)).graph_

    np.testing.assert_array_equal(graph(15).toarray(), graph(15).toarray().T)
    np.testing.assert_array_equal(graph(20).toarray(), knn_graph(X, 5).toarray())
    np.testing.assert_array_equal(graph(39).toarray(), knn_graph(X, 5).toarray())
    W, near = graph(10).toarray(), np.zeros((40, 40))
    for block in range(4):
        rows = (10 * block + np.arange(20)) % 40
        near[np.ix_(rows, rows)] = np.maximum(near[np.ix_(rows, rows)], knn_graph(X[rows], 5).toarray())
    np.testing.assert_array_equal(W, near)
    assert not W[:10, 20:30].any()


class TestRefusals:
    """One sentence, before any work, that names the block; a fitted model stays as it was."""

    def check(self, X, words, kind=ValueError, rows=10, **options):
        model = MODELS["RLS-NMF"](2, random_state=0, max_iter=2, **options).fit(np.ones((5, 12)))
        before = dict(vars(model))
        with pytest.raises(kind, match=words):
            model.fit(X if isinstance(X, RowBlocks) else in_blocks(X, rows=rows))
        assert vars(model) == before

    def test_negative(self, X):
        X[23, 4] = -1
        self.check(X, r"^Block 3 of X \(rows 20 to 29\): Negative values .* smallest entry of X is -1\.")

    def test_nan(self, X):
        X[39, 0] = np.nan
        self.check(X, r"^Block 4 of X \(rows 30 to 39\): Input X contains NaN")

    def test_infinity(self, X):
        X[0, 0] = np.inf
        self.check(X, r"^Block 1 of X \(rows 0 to 9\): Input X contains infinity")

    def test_too_large_for_all_rows_together(self, X):
        """A block alone would do."""
        largest = np.sqrt(np.finfo(float).max / (16 * 12 * 20))
        X[11] = largest
        self.check(X, r"^Block 2 of X .* too large for float64")

    def test_ragged(self, X):
        def read(start, stop):
            return X[start:stop, : 11 if start else 12]

        source = RowBlocks(X.shape, X.dtype, (0, 10, 40), read)
        self.check(
            source, r"Block 2 of X \(rows 10 to 39\) cannot be read: it should have 30 rows and 12 col"
        )

    def test_unreadable(self, X):
        def read(start, stop):
            if start:
                raise OSError(*GONE)
            return X[start:stop]

        source = RowBlocks(X.shape, X.dtype, (0, 10, 40), read)
        self.check(source, r"^Block 2 of X \(rows 10 to 39\) cannot be read: the disk is gone\.$")

    def test_unreadable_later(self, X):
        """Also where the file was lost in the middle of the fit."""
        times = []

        def read(start, stop):
            times.append(start)
            if len(times) == 30:
                raise OSError(*GONE)
            return X[start:stop]

        source = RowBlocks(X.shape, X.dtype, (0, 10, 40), read)
        options = {"solver": "mu", "tol": 0}
        model = MODELS["NMF"](2, max_iter=100, **options)
        with pytest.raises(ValueError, match="cannot be read: the disk is gone"):
            model.fit(source)
        assert not hasattr(model, "components_")
        assert not hasattr(model, "n_features_in_")

    def test_start_that_needs_all_of_x(self, X):
        self.check(X, "^init='spectral' needs all of X in memory", init="spectral")

    def test_models_that_need_all_of_x(self, X):
        for name in set(MODELS) - set(NAMES):
            with pytest.raises(TypeError, match="needs all of X in memory: give it as a NumPy array"):
                MODELS[name](2).fit(in_blocks(X, rows=9))
        with pytest.raises(TypeError, match="needs all of X in memory, and X is in blocks of rows"):
            choose_components(in_blocks(X, rows=9), [2])

    def test_the_outlier_part_of_all_blocks(self, X):
        blocks = in_blocks(X, rows=9)
        model = MODELS["RLS-NMF"](2, random_state=0).fit(blocks)
        for given in (None, blocks):
            with pytest.raises(
                ValueError, match="as large as X, which is read in blocks of rows: ask for a few"
            ):
                model.outliers(given)
        some = model.outliers(X[:9], model.embedding_[:9])
        np.testing.assert_allclose(np.linalg.norm(some, axis=1), model.outlier_norm_[:9], atol=1e-10)

    def test_other_features(self, X):
        model = MODELS["NMF"](2, max_iter=2).fit(in_blocks(X, rows=9))
        with pytest.raises(ValueError, match="X has 3 features, but PlainNMF is expecting 12"):
            model.transform(in_blocks(X[:, :3], rows=9))


def test_small_arrays_are_read_into_memory(X):
    """One block is data in memory: any start, any solver, the same numbers to the bit."""
    zarr = pytest.importorskip("zarr", reason="zarr is an extra")
    array = zarr.array(X)
    assert not isinstance(check_data(MODELS["NMF"](), array, reset=True), OnDisk)
    ours, memory = (
        MODELS["LS-NMF"](k, init="spectral", random_state=0, max_iter=20).fit(Y) for Y in (array, X)
    )
    same(ours, memory, 0)


def test_blocks_are_checked_once(X, monkeypatch):
    """Every later read is as cheap as the source's own."""
    checks, check = [], validation.check_array
    monkeypatch.setattr(
        validation, "check_array", lambda *args, **more: (checks.append(1), check(*args, **more))[1]
    )
    options = {"init": "nndsvda", "max_iter": 20, "graph": None, "alpha": 0.1, "beta": 0.0, "random_state": 0}
    MODELS["LS-NMF"](k, **options).fit(in_blocks(X, rows=10))
    assert len(checks) == 4


@pytest.mark.parametrize("place", ["memory", "blocks"])
def test_a_start_of_ones_own(place, X, monkeypatch):
    """It is one function of the data, wherever they are, and one line in a dict; U has the unit of X."""

    def of_means(data, k, rng):
        ones = np.ones((data.shape[0], 1, k))
        return data.t_times(ones)[:, 0, :] / data.shape[0] + 0.01 * rng.random((data.shape[1], k)), ones[
            :, 0, :
        ]

    monkeypatch.setitem(starts.STARTS, "means", starts.Start(of_means, (1.0, 0.0)))
    model = MODELS["NMF"](k, init="means", max_iter=0, random_state=0)
    np.testing.assert_allclose(
        model.fit(X if place == "memory" else in_blocks(X, rows=15)).components_.mean(axis=0),
        X.mean(axis=0) + 0.005,
        atol=0.006,
    )


def test_no_second_copy_of_sparse_data_is_kept(monkeypatch):
    """A robust model holds its samples for `outliers`, but not the transposed copy that its fit has used."""
    for size in ("LARGE", "LEAST_BYTES"):
        monkeypatch.setattr(sparse_products, size, 1000)
    X = sp.random_array((3000, 400), density=0.1, rng=np.random.default_rng(0), format="csr")
    X = sp.csr_array(X / sp.linalg.norm(X, axis=1)[:, None])
    options = {"alpha": 0.1, "beta": 0.0, "gamma": 1.0, "init": "scaled", "random_state": 0, "max_iter": 2}
    first = MODELS["RLS-NMF"](2, solver="mu", scale=1.0, **options).fit(X)  # all code is loaded
    tracemalloc.start()
    try:
        model = MODELS["RLS-NMF"](2, solver="mu", scale=1.0, **options).fit(X)
        gc.collect()
        kept = tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()
    assert model.n_iter_ == first.n_iter_ == 2
    assert kept < 0.5 * (X.data.nbytes + X.indices.nbytes)


@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
def test_outliers_are_judged_as_in_memory(form, rng):
    """By neighbours and residuals, wherever the samples are."""
    X = rng.random((150, 4)) ** 2 @ (rng.random((4, 30)) * (rng.random((4, 30)) < 0.5))
    X += 0.05 * rng.random(X.shape) * (rng.random(X.shape) < 0.3)
    X[:8] = rng.permuted(X[:8], axis=1)
    memory = RobustLogSparseNMF(4, random_state=0).fit(form(X))
    ours = RobustLogSparseNMF(4, random_state=0).fit(in_blocks(form(X), rows=40))
    assert ours.gamma_ == pytest.approx(memory.gamma_, rel=1e-6)
    assert ours.offset_ == pytest.approx(memory.offset_, rel=1e-4)
    np.testing.assert_array_equal(ours.is_outlier_, memory.is_outlier_)
    np.testing.assert_array_equal(
        ours.is_outlier(in_blocks(form(X), rows=40), ours.embedding_), ours.is_outlier_
    )
