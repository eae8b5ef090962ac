"""A fit whose blocks are on the workers of a Dask cluster is the fit in memory."""

import logging
import os
import signal

import numpy as np
import pytest
import scipy.sparse as sp

from lognmf import MODELS, in_blocks, load_model, on_workers, save_model
from lognmf.models.on_workers import RemoteMultiplicative
from lognmf.sources import Planted
from problems import make, samples, weights

distributed = pytest.importorskip("distributed", reason="distributed is an extra")
da = pytest.importorskip("dask.array", reason="dask is an extra")

NAMES = ["NMF", "GNMF", "WNMF", "LS-NMF", "RLS-NMF"]
KINDS = {"dense": np.asarray, "csr": sp.csr_array}
k = 3


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
    return weights(cls) | options | more


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("kind", KINDS)
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


def test_a_model_is_saved_with_its_codes(X, tmp_path, client):
    model = make(MODELS["NMF"], k, **settings(MODELS["NMF"], max_iter=1)).fit(on_workers(chunks(X, 20)))
    save_model(model, tmp_path / "model.npz")
    np.testing.assert_array_equal(load_model(tmp_path / "model.npz").embedding_, model.embedding_.compute())


def test_files_are_read_by_the_workers(X, tmp_path, client):
    np.save(tmp_path / "X.npy", X)
    cls = MODELS["NMF"]
    ours = make(cls, k, **settings(cls)).fit(on_workers(tmp_path / "X.npy"))
    np.testing.assert_allclose(ours.objective_, make(cls, k, **settings(cls)).fit(X).objective_, rtol=1e-10)


def test_nothing_of_n_rows_comes_here(client, monkeypatch):
    """What is gathered in an iteration is p·k + k² numbers; planted samples are made where they lie."""
    sizes = []
    gathered = type(client.submit(int, 1)).result

    def result(future, *args, **options):
        found = gathered(future, *args, **options)
        sizes.append(sum(np.size(part) for part in found))
        return found

    monkeypatch.setattr(distributed.Future, "result", result)
    source = Planted(5000, 7, k).in_blocks(rows=1000)
    make(MODELS["NMF"], k, **settings(MODELS["NMF"], max_iter=5)).fit(on_workers(source))
    assert max(sizes) <= 7 * 7 + 7 * k + k * k


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
        self.check(on_workers(chunks(X, 10)), r"^Block 3 of X \(rows 20 to 29\): it has missing entries")
        self.check(on_workers(chunks(X, 10)), r"^Block 3 of X .*: Input X contains NaN", name="RLS-NMF")
        wrong = chunks(X, 10).map_blocks(lambda block: block[1:], chunks=((10,) * 4, (12,)))
        self.check(on_workers(wrong), r"^Block 1 of X \(rows 0 to 9\): it should have the shape \(10, 12\)")

    def test_settings(self, X, client):
        X = on_workers(chunks(X, 10))
        self.check(X, "need a number for gamma", name="RLS-NMF", gamma="auto")
        self.check(X, "take no graph yet: set lam=0", graph="knn")
        self.check(X, 'solver="cd" needs the codes in one process', solver="cd")
        self.check(X, "init='spectral' needs all of X in memory", init="spectral")
        with pytest.raises(ValueError, match="take no first factors"):
            make(MODELS["NMF"], k, max_iter=2).fit(X, U0=np.ones((12, k)))
        with pytest.raises(TypeError, match="take no mask"):
            MODELS["WNMF"](k).fit(X, mask=np.ones((40, 12)))
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
    steps, step = [], RemoteMultiplicative.step
    setup = {"n_workers": 2, "threads_per_worker": 1, "dashboard_address": ":0", "memory_limit": 0}
    with distributed.LocalCluster(**setup) as cluster, distributed.Client(cluster) as client:

        def killing(rule, state):
            steps.append(1)
            if len(steps) == 6:
                os.kill(next(iter(client.run(os.getpid).values())), signal.SIGKILL)
            return step(rule, state)

        monkeypatch.setattr(RemoteMultiplicative, "step", killing)
        ours = MODELS["LS-NMF"](k, **options).fit(on_workers(source, client=client))
        np.testing.assert_allclose(ours.embedding_.compute(), memory.embedding_, atol=1e-8)
    np.testing.assert_allclose(ours.components_, memory.components_, atol=1e-8)
