"""A fit whose blocks are on the workers of a Dask cluster is the fit in memory."""

import logging
import os
import pickle
import signal
from functools import partial
from types import SimpleNamespace

import numpy as np
import pytest
import scipy.sparse as sp

from lognmf import MODELS, in_blocks, load_model, on_workers, save_model
from lognmf.blocks import RowBlocks, rows
from lognmf.blocks.cluster import block_of
from lognmf.core.data import Facts
from lognmf.core.solvers.multiplicative import Multiplicative
from lognmf.models import outlying, sampled_weights
from planted import Planted
from problems import make, samples, weights

distributed = pytest.importorskip("distributed", reason="distributed is an extra")
dask = pytest.importorskip("dask", reason="dask is an extra")
da = pytest.importorskip("dask.array", reason="dask is an extra")

NAMES = ["NMF", "GNMF", "WNMF", "LS-NMF", "RLS-NMF"]
KINDS = {"dense": np.asarray, "csr": sp.csr_array}
k = 3
pytestmark = pytest.mark.filterwarnings("ignore:lam=.* has no effect")


@pytest.fixture(scope="module", autouse=True)
def _quiet():
    """Dask reports lost connections at length."""
    logging.getLogger("distributed").setLevel(logging.CRITICAL)
    yield
    logging.getLogger("distributed").setLevel(logging.WARNING)


@pytest.fixture(scope="module")
def client():
    options = {"n_workers": 2, "threads_per_worker": 1, "processes": False, "dashboard_address": ":0"}
    with distributed.LocalCluster(**options) as cluster, distributed.Client(cluster) as client:
        yield client


@pytest.fixture
def X(rng):
    return samples(rng, 40, 12, density=0.7)


def chunks(X, rows):
    parts = [X[i : i + rows] for i in range(0, X.shape[0], rows)]
    return da.concatenate([da.from_array(part, chunks=part.shape, asarray=False) for part in parts])


def settings(cls, **more):
    options = {"solver": "mu", "init": "nndsvda", "max_iter": 6, "tol": 0, "random_state": 0, "graph": None}
    options = weights(cls) | options | more
    return options | ({"lam": 0} if options["graph"] is None else {})


@pytest.mark.parametrize(("name", "kind"), [*((name, "dense") for name in NAMES), ("RLS-NMF", "csr")])
def test_workers_against_memory(name, kind, X, client):
    cls, X = MODELS[name], KINDS[kind](X)
    memory = make(cls, k, **settings(cls)).fit(X)
    ours = make(cls, k, **settings(cls)).fit(on_workers(chunks(X, 9), client=client))
    assert isinstance(ours.embedding_, da.Array)
    assert isinstance(ours.components_, np.ndarray)
    np.testing.assert_allclose(ours.components_, memory.components_, atol=1e-10)
    np.testing.assert_allclose(ours.embedding_.compute(), memory.embedding_, atol=1e-10)
    np.testing.assert_allclose(ours.history_["objective"], memory.history_["objective"], rtol=1e-10)
    np.testing.assert_allclose(ours.reconstruction_err_, memory.reconstruction_err_, rtol=1e-10)
    assert ours.scale_ == pytest.approx(memory.scale_, rel=1e-12)
    codes = ours.transform(on_workers(chunks(X, 15), client=client))
    np.testing.assert_allclose(codes.compute(), memory.transform(X), atol=1e-9)
    if name == "RLS-NMF":
        for part in ("outlier_share_", "outlier_norm_", "residual_norm_", "is_outlier_"):
            np.testing.assert_allclose(getattr(ours, part).compute(), getattr(memory, part), atol=1e-9)


@pytest.mark.parametrize(("name", "kind"), [("LS-NMF", "dense"), ("RLS-NMF", "csr")])
def test_coordinate_descent(name, kind, X, client):
    """The same steps, escapes and exchanges of components as in memory."""
    X, weights = KINDS[kind](X), [{"alpha": 0.02, "beta": 0.01}, {"alpha": 0.0, "beta": 0.0}]
    for options in weights:
        more = settings(
            MODELS[name], solver="cd", max_iter=25, unit_components=not options["alpha"], **options
        )
        memory, ours = (make(MODELS[name], 4, **more).fit(Y) for Y in (X, on_workers(in_blocks(X, rows=15))))
        same(ours, memory, tol=1e-8)


def test_default_settings(X, client):
    """Solver and weights are chosen as in memory."""
    options = {"graph": None, "random_state": 0, "max_iter": 8, "init": "nndsvda"}
    memory, ours = (MODELS["LS-NMF"](k, **options).fit(Y) for Y in (X, on_workers(in_blocks(X, rows=20))))
    np.testing.assert_allclose([ours.alpha_, ours.beta_], [memory.alpha_, memory.beta_], rtol=1e-6)
    same(ours, memory, tol=1e-6)


def test_default_weights_with_divergences(X, client):
    options = settings(MODELS["LS-NMF"], loss="kullback-leibler", alpha="auto", beta="auto", max_iter=3)
    memory, ours = (MODELS["LS-NMF"](k, **options).fit(Y) for Y in (X, on_workers(in_blocks(X, rows=20))))
    np.testing.assert_allclose([ours.alpha_, ours.beta_], [memory.alpha_, memory.beta_], rtol=1e-6)
    same(ours, memory, tol=1e-6)


def test_normalised_components_after_one_iteration(X, client):
    """Scaling the factors at the end keeps the error."""
    options = settings(MODELS["GNMF"], normalize=True, max_iter=1)
    memory, ours = (MODELS["GNMF"](k, **options).fit(Y) for Y in (X, on_workers(in_blocks(X, rows=20))))
    assert ours.reconstruction_err_ == pytest.approx(memory.reconstruction_err_, rel=1e-10)
    error = np.linalg.norm(X - ours.embedding_.compute() @ ours.components_)
    assert ours.reconstruction_err_ == pytest.approx(error, rel=1e-10)


def test_a_large_sample(X, client):
    """It decides neither the unit nor the start, and is found."""
    X[7] *= 40
    options = {"graph": None, "random_state": 0, "max_iter": 12, "init": "nndsvda", "solver": "mu"}
    source = in_blocks(X, rows=20)
    theirs, ours = (MODELS["RLS-NMF"](k, **options).fit(Y) for Y in (X, on_workers(source)))
    assert ours.scale_ == pytest.approx(theirs.scale_, rel=1e-12)
    assert ours.gamma_ == pytest.approx(theirs.gamma_, rel=1e-6)
    np.testing.assert_array_equal(ours.is_outlier_.compute(), theirs.is_outlier_)
    assert theirs.is_outlier_[7]


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("WNMF", {}),
        ("LS-NMF", {"alpha": "auto", "beta": "auto", "unit_components": True}),
        ("LS-NMF", {"loss": "kullback-leibler"}),
        ("LS-NMF", {"init": "scaled", "graph": "knn", "lam": 2.0}),
    ],
)
def test_missing_entries(name, options, X, client):
    """They are NaN; the first block has none."""
    cls = MODELS[name]
    X[9:][np.random.default_rng(0).random((31, 12)) < 0.2] = np.nan
    source = in_blocks(X, rows=9)
    options = settings(cls, max_iter=4) | options
    if options["init"] == "scaled":  # drawn block by block on workers
        rng = np.random.default_rng(1)
        factors = {"U0": rng.random((12, k)), "V0": rng.random((40, k))}
    else:
        factors = {}
    ours, theirs = (make(cls, k, **options).fit(Y, **factors) for Y in (on_workers(source), source))
    same(ours, theirs)
    np.testing.assert_allclose(ours.reconstruction_err_, theirs.reconstruction_err_, rtol=1e-10)
    codes = ours.transform(on_workers(chunks(X, 15), client=client))
    np.testing.assert_allclose(codes.compute(), theirs.transform(X), atol=1e-8)


def test_weights_of_some_samples(X, client, monkeypatch):
    """They are chosen here, from the samples that blocks on disk would give."""
    monkeypatch.setattr(rows, "MOST_SAMPLES", 25)
    monkeypatch.setattr(sampled_weights, "FEWEST", 25)
    monkeypatch.setattr(sampled_weights, "PER_COMPONENT", 1)
    X[3, 4] = np.nan
    source, options = in_blocks(X, rows=15), settings(MODELS["LS-NMF"], alpha="auto", beta=0.0, max_iter=30)
    ours, theirs = (make(MODELS["LS-NMF"], k, **options).fit(Y) for Y in (on_workers(source), source))
    assert ours.alpha_ > 0
    assert ours.alpha_ == pytest.approx(theirs.alpha_, rel=1e-9)
    same(ours, theirs, tol=1e-8)
    all_of_them = make(MODELS["LS-NMF"], k, **options).fit(X)
    assert all_of_them.alpha_ != pytest.approx(theirs.alpha_, rel=1e-6)


def same(ours, theirs, tol=1e-9):
    np.testing.assert_allclose(ours.components_, theirs.components_, atol=tol)
    np.testing.assert_allclose(ours.embedding_.compute(), theirs.embedding_, atol=tol)
    np.testing.assert_allclose(ours.history_["objective"], theirs.history_["objective"], rtol=tol)


@pytest.mark.parametrize(
    ("name", "blocks", "kind"), [("GNMF", 1, "dense"), ("LS-NMF", 2, "csr"), ("LS-NMF", 4, "dense")]
)
def test_graphs(name, blocks, kind, X, client):
    """Neighbours are sought as in blocks on disk; rows of a given graph meet those of other workers."""
    cls, X = MODELS[name], KINDS[kind](X)
    source = in_blocks(X, rows=-(-40 // blocks))
    given = sp.random_array((40, 40), density=0.2, rng=np.random.default_rng(0))
    given = sp.csr_array(given + given.T)
    for graph, theirs in (("knn", source), (given, X)):
        options = settings(cls, graph=graph, lam=3.0)
        ours = make(cls, k, **options).fit(on_workers(source))
        same(ours, make(cls, k, **options).fit(theirs))
        assert (ours.graph_ is None) == isinstance(graph, str)


def test_a_graph_with_divergences(X, client):
    """There the update mixes bounds of two kinds."""
    options = settings(MODELS["LS-NMF"], graph="knn", lam=2.0, loss="kullback-leibler")
    source = in_blocks(X, rows=15)
    ours, theirs = (make(MODELS["LS-NMF"], k, **options).fit(Y) for Y in (on_workers(source), source))
    same(ours, theirs)


def test_first_factors(X, rng, client):
    blocks = on_workers(chunks(X, 9))
    U, V = rng.random((12, k)), rng.random((40, k))
    for cls in (MODELS["NMF"],):
        for first in ({"U0": U, "V0": V}, {"U0": U}, {"V0": V}):
            theirs = make(cls, k, **settings(cls)).fit(X, **first)
            same(make(cls, k, **settings(cls)).fit(blocks, **first), theirs)
        same(make(cls, k, **settings(cls)).fit(blocks, V0=da.from_array(V, chunks=7)), theirs)
    ours, theirs = (make(cls, k, **settings(cls, warm_start=True)).fit(Y) for Y in (blocks, X))
    same(ours.fit(blocks), theirs.fit(X))


def test_chosen_outlier_weight(rng, client, monkeypatch):
    X = rng.gamma(1.0, size=(60, 2)) @ rng.random((2, 9)) + 0.05 * rng.random((60, 9))
    X[::9] = rng.random((7, 9)) * X.max()
    options = {"solver": "mu", "alpha": 0.01, "beta": 0.0, "tol": 0, "max_iter": 10, "random_state": 0}
    options["init"], source = "nndsvda", in_blocks(X, rows=20)
    memory, ours = (MODELS["RLS-NMF"](2, **options).fit(Y) for Y in (X, on_workers(source)))
    assert memory.gamma_ < 1e3
    np.testing.assert_allclose(ours.gamma_, memory.gamma_, rtol=1e-6)
    monkeypatch.setattr(outlying, "MOST_RESIDUALS", 30)  # every second one
    some = MODELS["RLS-NMF"](2, **options).fit(on_workers(in_blocks(X, rows=20)))
    assert some.gamma_ != memory.gamma_
    np.testing.assert_allclose(some.gamma_, memory.gamma_, rtol=0.5)


@pytest.mark.parametrize("name", ["WNMF", "LS-NMF", "RLS-NMF", "graph"])
def test_torch_blocks(name, X, client):
    """A block may be a tensor on its worker's card; here it is on its CPU."""
    pytest.importorskip("torch", reason="torch is an extra")
    cls = MODELS["LS-NMF" if name == "graph" else name]
    options = settings(cls, **({"graph": "knn", "lam": 2.0} if name == "graph" else {}))
    source = in_blocks(X, rows=15)
    ours = make(cls, k, **options).fit(blocks := on_workers(source, device="cpu"))
    theirs = make(cls, k, **options).fit(source if name == "graph" else X)
    same(ours, theirs)
    codes = ours.transform(blocks).compute()
    assert isinstance(codes, np.ndarray)
    np.testing.assert_allclose(codes, theirs.transform(X), atol=1e-7)
    if name == "LS-NMF":
        auto = settings(cls, alpha="auto", beta="auto", unit_components=True, max_iter=3)
        memory, ours = (make(cls, k, **auto).fit(Y) for Y in (X, blocks))
        np.testing.assert_allclose([ours.alpha_, ours.beta_], [memory.alpha_, memory.beta_], rtol=1e-6)


def test_torch_refusals(X, client):
    pytest.importorskip("torch", reason="torch is an extra")
    with pytest.raises(ValueError, match=r"^Block 1 of X .* it is sparse, and sparse blocks are computed"):
        MODELS["NMF"](k).fit(on_workers(chunks(sp.csr_array(X), 20), device="cpu"))
    with pytest.raises(TypeError, match=r"device must be None or a name of torch .*; got 3"):
        on_workers(chunks(X, 20), device=3)


def test_blocks_say_how_large_they_are(X):
    """Else Dask would move them as if that were free."""
    from dask.sizeof import sizeof

    for kind in KINDS.values():
        block = block_of(kind(X), dtype=X.dtype)
        assert sizeof(block) >= 0.7 * X.nbytes
        block.squared_norms  # noqa: B018
        assert "squared_norms" not in vars(pickle.loads(pickle.dumps(block)))


@pytest.mark.parametrize("init", ["random", "scaled", "nndsvda", "nndsvdar"])
@pytest.mark.parametrize("shape", [(40, 4), (9, 20)])
def test_starts(init, shape, client, rng):
    X = samples(rng, *shape)
    options = settings(MODELS["NMF"], init=init, max_iter=0)
    blocks = on_workers(chunks(X, 5))
    memory, *ours = (make(MODELS["NMF"], k, **options).fit(Y) for Y in (X, blocks, blocks))
    for one in ours:  # the same again
        V = one.embedding_.compute()
        assert (V > 0).all()
        assert (one.components_ > 0).all()
        np.testing.assert_array_equal(V, ours[0].embedding_.compute())
        if init == "nndsvda":
            np.testing.assert_allclose(one.components_, memory.components_, atol=1e-9)
            np.testing.assert_allclose(V, memory.embedding_, atol=1e-9)
    assert (V[:4] != V[5:9]).any()  # blocks draw different numbers


def test_restarts_converge_and_the_best_wins(X, client):
    """Settings leave the batch when they have converged, on the workers too."""
    options = settings(MODELS["LS-NMF"], init="random", n_init=3, tol=3e-3, max_iter=100, eval_every=2)
    model = MODELS["LS-NMF"](k, **options).fit(on_workers(in_blocks(X, rows=9)))
    assert model.stop_reason_ == "converged"
    V, U = model.embedding_.compute(), model.components_
    np.testing.assert_allclose(np.linalg.norm(X - V @ U), model.reconstruction_err_, rtol=1e-9)
    assert (np.diff(model.history_["objective"]) <= 1e-12).all()


def test_chosen_weights(rng, client):
    X = rng.gamma(1.0, size=(40, 2)) @ (rng.random((2, 9)) * (rng.random((2, 9)) < 0.4))
    options = {"solver": "mu", "tol": 0, "max_iter": 3, "random_state": 0}
    memory, ours = (MODELS["LS-NMF"](2, **options).fit(Y) for Y in (X, on_workers(in_blocks(X, rows=20))))
    assert memory.alpha_ + memory.beta_ > 0
    np.testing.assert_allclose([ours.alpha_, ours.beta_], [memory.alpha_, memory.beta_], rtol=1e-6)
    np.testing.assert_allclose(ours.embedding_.compute(), memory.embedding_, atol=1e-6)


def test_callbacks_stay_here(X, client):
    """They may hold what cannot be sent, such as the lock of a progress bar."""
    callback = pytest.importorskip("sklearn.callback", reason="scikit-learn has callbacks since 1.9")
    model = make(MODELS["NMF"], k, **settings(MODELS["NMF"], max_iter=2))
    model.set_callbacks(callback.ProgressBar())
    blocks = on_workers(chunks(X, 20))
    model.fit(blocks).transform(blocks).compute()


def test_a_model_is_saved_with_its_codes(X, tmp_path, client):
    model = make(MODELS["NMF"], k, **settings(MODELS["NMF"], max_iter=1)).fit(on_workers(chunks(X, 20)))
    save_model(model, tmp_path / "model.npz")
    np.testing.assert_array_equal(load_model(tmp_path / "model.npz").embedding_, model.embedding_.compute())


def test_files_are_read_by_the_workers(X, tmp_path, client):
    np.save(tmp_path / "X.npy", X)
    cls = MODELS["NMF"]
    ours = make(cls, k, **settings(cls)).fit(on_workers(tmp_path / "X.npy"))
    np.testing.assert_allclose(ours.objective_, make(cls, k, **settings(cls)).fit(X).objective_, rtol=1e-10)


def test_what_comes_here_does_not_grow_with_the_samples(client, monkeypatch):
    """But for their norms, which come once: sums are p·k + k² numbers; samples are made where they lie."""
    sizes = []
    gathered = type(client.submit(int, 1)).result

    def result(future, *args, **options):
        found = gathered(future, *args, **options)
        arrays = found if isinstance(found, tuple) else ()
        sizes.append(sum(np.size(part) for part in arrays if not isinstance(part, Facts)))
        return found

    monkeypatch.setattr(distributed.Future, "result", result)
    source = Planted(5000, 7, k).in_blocks(rows=1000)
    make(MODELS["NMF"], k, **settings(MODELS["NMF"], max_iter=5)).fit(on_workers(source))
    assert 0 < max(sizes) <= 7 * 7 + 7 * k + k * k


def part_of(folder, start, stop):
    return np.load(f"{folder}/{start // 10}.npy")


def fatal(folder, start, stop):
    """The error of a block whose workers have died, without the deaths: a new worker may not come."""
    if start == 20:
        task, worker = "a block", SimpleNamespace(address="tcp://worker")
        raise distributed.KilledWorker(task, worker, 3)
    return part_of(folder, start, stop)


class TestRefusals:
    def check(self, X, words, kind=ValueError, name="LS-NMF", **options):
        cls = MODELS[name]
        model = make(cls, k, **settings(cls, max_iter=2))
        with pytest.raises(kind, match=words):
            model.set_params(**options).fit(X)
        assert not hasattr(model, "components_")
        assert not hasattr(model, "n_features_in_")

    def test_bad_blocks(self, X, client):
        X[23, 4] = -1
        self.check(on_workers(chunks(X, 10)), r"^Block 3 of X \(rows 20 to 29\): Negative values")
        X[23, 4] = np.nan
        self.check(on_workers(chunks(X, 10)), r"^Block 3 of X .*: Input X contains NaN", name="RLS-NMF")
        wrong = chunks(X, 10).map_blocks(lambda block: block[1:], chunks=((10,) * 4, (12,)))
        self.check(on_workers(wrong), r"^Block 1 of X \(rows 0 to 9\): it should have the shape \(10, 12\)")

    def test_files(self, X, tmp_path, client):
        """A file that cannot be read, at first or later; its part that is damaged is named."""
        for part in range(4):
            np.save(tmp_path / f"{part}.npy", X[10 * part : 10 * part + 10])
        folder = str(tmp_path)  # and no object of pytest
        parts = RowBlocks((40, 12), X.dtype, (0, 10, 20, 30, 40), partial(part_of, folder))
        good = make(MODELS["LS-NMF"], k, **settings(MODELS["LS-NMF"], max_iter=2)).fit(on_workers(parts))
        (tmp_path / "2.npy").write_bytes(b"x")
        self.check(on_workers(parts), r"^Block 3 of X \(rows 20 to 29\): .*pickle")
        (tmp_path / "2.npy").unlink()
        self.check(on_workers(parts), r"^Block 3 of X \(rows 20 to 29\): .*No such file")
        with pytest.raises(ValueError, match=r"^Block 3 of X"):
            good.fit(on_workers(parts))
        assert good.n_iter_ == 2  # as it was
        h5py = pytest.importorskip("h5py", reason="h5py is an extra")
        with h5py.File(tmp_path / "x.h5", "w") as file:
            file["X"] = X
            with pytest.raises(TypeError, match="give the path of its file"):
                on_workers(file["X"])

    def test_settings(self, X, client):
        X = on_workers(chunks(X, 10))
        self.check(
            X, 'solver="cd" takes no graph of samples that are on workers', solver="cd", graph="knn", lam=1
        )
        self.check(X, "init='spectral' needs all of X in memory", init="spectral")
        with pytest.raises(ValueError, match=r"V0 must have shape \(40, 3\); got \(39, 3\)"):
            make(MODELS["NMF"], k, max_iter=2).fit(X, V0=np.ones((39, k)))
        with pytest.raises(ValueError, match="V0 must be finite and nonnegative"):
            make(MODELS["NMF"], k, max_iter=2).fit(X, V0=da.full((40, k), -1.0))
        with pytest.raises(ValueError, match="graph must be 40×40 for 40 samples"):
            make(MODELS["GNMF"], k, graph=sp.eye_array(39), max_iter=2).fit(X)
        with pytest.raises(TypeError, match="take no weights: set missing entries to NaN"):
            MODELS["WNMF"](k).fit(X, weights=np.ones((40, 12)))
        self.check(on_workers(chunks(np.full((40, 12), np.nan), 10)), "X has no known entry")
        with pytest.raises(TypeError, match="needs all of X in memory"):
            MODELS["ONMF"](k).fit(X)

    def test_clients(self, X):
        with pytest.raises(TypeError, match=r"client must be a distributed\.Client; got int"):
            on_workers(X, client=3)


def test_without_a_client(X):
    if distributed.client._get_global_client() is None:
        with pytest.raises(ValueError, match="There is no Dask client: make one"):
            on_workers(X)


def test_a_killed_worker_costs_its_blocks_only(monkeypatch):
    """Its blocks are read again and their codes computed again: the same numbers."""
    source = Planted(400, 9, k).in_blocks(rows=100)
    options = settings(MODELS["LS-NMF"], max_iter=12)
    memory = MODELS["LS-NMF"](k, **options).fit(source)
    steps, step = [], Multiplicative.step
    setup = {"n_workers": 2, "threads_per_worker": 1, "dashboard_address": ":0", "memory_limit": 0}
    with distributed.LocalCluster(**setup) as cluster, distributed.Client(cluster) as client:

        def killing(rule, state):
            steps.append(1)
            if len(steps) == 6:
                os.kill(next(iter(client.run(os.getpid).values())), signal.SIGKILL)
            return step(rule, state)

        monkeypatch.setattr(Multiplicative, "step", killing)
        ours = MODELS["LS-NMF"](k, **options).fit(on_workers(source, client=client))
        np.testing.assert_allclose(ours.embedding_.compute(), memory.embedding_, atol=1e-8)
    np.testing.assert_allclose(ours.components_, memory.components_, atol=1e-8)


def test_a_block_that_is_too_large(X, tmp_path, client):
    """A worker that is killed again and again is said to lack memory, and by which block."""
    for part in range(4):
        np.save(tmp_path / f"{part}.npy", X[10 * part : 10 * part + 10])
    source = RowBlocks((40, 12), X.dtype, (0, 10, 20, 30, 40), partial(fatal, str(tmp_path)))
    model = MODELS["NMF"](k)
    words = r"^Block 3 of X \(rows 20 to 29\): the workers .* died, mostly for lack of memory"
    with pytest.raises(MemoryError, match=words):
        model.fit(on_workers(source, client=client))
    assert not hasattr(model, "components_")


@pytest.mark.parametrize("device", ["cpu", "cuda"])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_blocks_keep_their_type_on_a_card(device, dtype, X):
    torch = pytest.importorskip("torch", reason="torch is an extra")
    if device == "cuda" and not torch.cuda.is_available():
        pytest.skip("there is no GPU here")
    X[2, 3] = np.nan
    block = block_of(X, dtype=np.dtype(dtype), device=device, weights=True)
    assert str(block.X.dtype) == str(block.M.dtype) == f"torch.{dtype}"
