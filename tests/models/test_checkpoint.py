"""A fit that was killed goes on from its checkpoint, and ends with the same numbers."""

import os
import signal
import subprocess
import sys

import numpy as np
import pytest
import scipy.sparse as sp

from lognmf import MODELS, in_blocks, on_workers
from lognmf.core import loop
from lognmf.models import checkpoint as module
from lognmf.models.checkpoint import ABOUT, KeptFit
from problems import make, samples, weights

k = 3


class Killed(BaseException):
    """Stands for the death of the process."""


@pytest.fixture
def X(rng):
    return samples(rng, 40, 12, density=0.7)


@pytest.fixture
def die(monkeypatch):
    """A function that makes the n-th write from now on the last thing that happens."""
    monkeypatch.setattr(module, "SHARE", 0)  # a write at every evaluation
    write, left = KeptFit.write, [np.inf]

    def dying(kept, solution, *, finished):
        state = write(kept, solution, finished=finished)
        left[0] -= 1
        if left[0] <= 0:
            raise Killed
        return state

    monkeypatch.setattr(KeptFit, "write", dying)
    return lambda writes: left.__setitem__(0, writes)


def same(ours, theirs):
    for name in ("components_", "embedding_", "objective_", "n_iter_", "reconstruction_err_"):
        np.testing.assert_array_equal(getattr(ours, name), getattr(theirs, name))
    for name in ("iteration", "objective"):
        np.testing.assert_array_equal(ours.history_[name], theirs.history_[name])
    assert (np.diff(ours.history_["seconds"]) >= 0).all()
    assert ours.stop_reason_ == theirs.stop_reason_


def killed_again_and_again(model, X, folder, die, most=200):
    """The fit of a new model in each of several processes, all but the last killed after two writes."""
    for deaths in range(most):
        die(2)
        try:
            return model().fit(X, checkpoint=folder), deaths
        except Killed:
            continue
    raise AssertionError


@pytest.mark.parametrize("name", ["NMF", "GNMF", "LS-NMF", "RLS-NMF", "RMNMF", "ONMF"])
@pytest.mark.parametrize("solver", ["mu", "cd"])
def test_the_same_numbers(name, solver, X, tmp_path, die):
    cls = MODELS[name]
    if solver == "cd" and "solver" not in cls().get_params():
        pytest.skip("it has one solver")
    options = weights(cls) | {"solver": solver, "tol": 0, "max_iter": 9, "eval_every": 2, "random_state": 0}
    theirs = make(cls, k, **options).fit(X)
    ours, deaths = killed_again_and_again(lambda: make(cls, k, **options), X, tmp_path / "c", die)
    same(ours, theirs)
    assert deaths > 2
    same(make(cls, k, **options).fit(X, checkpoint=tmp_path / "c"), theirs)  # all is there


@pytest.mark.parametrize("kind", ["array", "csr", "blocks", "torch"])
def test_restarts_and_chosen_weights(kind, X, tmp_path, die):
    options = {"n_init": 3, "init": "random", "tol": 3e-3, "max_iter": 40, "eval_every": 3, "random_state": 1}
    Y = {"array": X, "csr": sp.csr_array(X), "blocks": in_blocks(X, rows=15)}.get(kind)
    if kind == "torch":
        Y = pytest.importorskip("torch", reason="torch is an extra").as_tensor(X)
    theirs = MODELS["RLS-NMF"](k, **options).fit(Y)
    ours, deaths = killed_again_and_again(lambda: MODELS["RLS-NMF"](k, **options), Y, tmp_path / "c", die)
    same(ours, theirs)
    assert (ours.alpha_, ours.beta_, ours.gamma_) == (theirs.alpha_, theirs.beta_, theirs.gamma_)
    assert deaths > 4


def test_what_is_finished_is_not_computed_again(X, tmp_path, monkeypatch):
    options = {"random_state": 0, "max_iter": 20}
    theirs = MODELS["LS-NMF"](k, **options).fit(X, checkpoint=tmp_path / "c")
    monkeypatch.setattr(loop, "_Log", None)
    same(MODELS["LS-NMF"](k, **options).fit(X, checkpoint=tmp_path / "c"), theirs)


OPTIONS = {"max_iter": 4, "tol": 0, "random_state": 0, "alpha": 0.1, "beta": 0.0}


class TestRefusals:
    def check(self, X, folder, words, **options):
        model = MODELS["LS-NMF"](k, **{**OPTIONS, **options})
        with pytest.raises((ValueError, TypeError), match=words):
            model.fit(X, checkpoint=folder)
        assert not hasattr(model, "components_")

    def test_other_data_and_settings(self, X, tmp_path):
        folder = tmp_path / "c"
        model = MODELS["LS-NMF"](k, **OPTIONS).fit(X, checkpoint=folder)
        self.check(X + 1, folder, "c holds the checkpoint of another fit, which differs in data: give")
        self.check(X[:, ::-1], folder, "differs in data")
        self.check(X, folder, "differs in parameter alpha, parameter max_iter", alpha=0.2, max_iter=5)
        with pytest.raises(ValueError, match="differs in U0"):
            model.fit(X, U0=np.ones((12, k)), checkpoint=folder)
        same(MODELS["LS-NMF"](k, **OPTIONS, verbose=0).fit(X, checkpoint=folder), model)

    def test_other_folders(self, X, tmp_path):
        (tmp_path / "mine.txt").write_text("mine")
        self.check(X, tmp_path, "is no checkpoint of a fit: give an empty or a new folder")
        self.check(X, tmp_path / "mine.txt", "is no checkpoint of a fit")
        assert [path.name for path in tmp_path.iterdir()] == ["mine.txt"]

    def test_damage(self, X, tmp_path):
        folder = tmp_path / "c"
        MODELS["LS-NMF"](k, **OPTIONS).fit(X, checkpoint=folder)
        file = folder / "fit-000.npz"
        file.write_bytes(file.read_bytes()[:-300])
        self.check(X, folder, r"fit-000\.npz is damaged .*: remove .* and start again")
        (folder / ABOUT).write_text("{")
        self.check(X, folder, r"about\.json is damaged: remove")

    def test_a_generator(self, X, tmp_path):
        self.check(X, tmp_path / "c", "got RandomState", random_state=np.random.RandomState(0))


SCRIPT = """
import sys
import numpy as np
from lognmf import LogSparseNMF, in_blocks
from lognmf.core.solvers.coordinate.rule import CoordinateDescent
from lognmf.models import checkpoint
checkpoint.SHARE, steps, step = 0, [], CoordinateDescent.step
def counted(rule, state):
    steps.append(1)
    if len(steps) > int(sys.argv[3]):
        import os, signal
        os.kill(os.getpid(), signal.SIGKILL)
    return step(rule, state)
CoordinateDescent.step = counted
model = LogSparseNMF(3, random_state=0, max_iter=60, eval_every=5)
model.fit(in_blocks(sys.argv[1], rows=15), checkpoint=sys.argv[2])
np.savez(sys.argv[2] + "-end.npz", U=model.components_, V=model.embedding_)
"""


def test_kill_9(X, tmp_path):
    """A new process goes on after the last one was killed without a warning."""
    np.save(tmp_path / "X.npy", X)
    theirs = MODELS["LS-NMF"](k, random_state=0, max_iter=60, eval_every=5).fit(
        in_blocks(tmp_path / "X.npy", rows=15)
    )
    folder, codes = str(tmp_path / "c"), []
    for steps in (33, 47, 10**6):
        command = [sys.executable, "-W", "ignore", "-c", SCRIPT, str(tmp_path / "X.npy"), folder, str(steps)]
        codes.append(subprocess.run(command, check=False).returncode)
    assert codes == [-signal.SIGKILL, -signal.SIGKILL, 0]
    end = np.load(f"{folder}-end.npz")
    np.testing.assert_array_equal(end["U"], theirs.components_)
    np.testing.assert_array_equal(end["V"], theirs.embedding_)


def test_on_workers(X, tmp_path, die):
    """Codes are written where they are; a new cluster goes on, also when a worker of it dies."""
    distributed = pytest.importorskip("distributed", reason="distributed is an extra")
    setup = {"n_workers": 2, "threads_per_worker": 1, "dashboard_address": ":0", "processes": False}
    options = {"n_init": 2, "init": "random", "tol": 1e-3, "max_iter": 60, "eval_every": 4, "random_state": 0}
    fits, deaths = [], 0
    for folder in (None, tmp_path / "c"):
        while True:
            die(4 if folder else np.inf)
            with distributed.LocalCluster(**setup) as cluster, distributed.Client(cluster) as client:
                try:
                    model = MODELS["LS-NMF"](k, **options)
                    model.fit(on_workers(in_blocks(X, rows=9), client=client), checkpoint=folder)
                except Killed:
                    deaths += 1
                    continue
                model.embedding_ = model.embedding_.compute()
                fits.append(model)
                break
    same(*fits)
    assert deaths > 2
    kept = sorted(path.name for path in (tmp_path / "c").iterdir() if path.is_dir())
    assert len(kept) == len(list((tmp_path / "c").glob("*.npz")))  # older codes are removed


def test_workers_that_die_read_from_the_checkpoint(X, tmp_path, monkeypatch):
    distributed = pytest.importorskip("distributed", reason="distributed is an extra")
    monkeypatch.setattr(module, "SHARE", 0)
    options = {"alpha": 0.1, "beta": 0.0, "solver": "mu", "max_iter": 12, "eval_every": 2, "tol": 0}
    theirs = MODELS["LS-NMF"](k, **options).fit(X)
    setup = {"n_workers": 2, "threads_per_worker": 1, "dashboard_address": ":0", "memory_limit": 0}
    record, seen = loop._Log.record, []
    with distributed.LocalCluster(**setup) as cluster, distributed.Client(cluster) as client:

        def killing(*args):
            seen.append(1)
            if len(seen) == 4:
                os.kill(next(iter(client.run(os.getpid).values())), signal.SIGKILL)
            return record(*args)

        monkeypatch.setattr(loop._Log, "record", killing)
        ours = MODELS["LS-NMF"](k, **options).fit(on_workers(in_blocks(X, rows=9)), checkpoint=tmp_path / "c")
        np.testing.assert_allclose(ours.embedding_.compute(), theirs.embedding_, atol=1e-9)
