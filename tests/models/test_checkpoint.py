"""A fit that was killed goes on from its checkpoint: U, V, weights and iterations."""

import signal
import subprocess
import sys

import numpy as np
import pytest
import scipy.sparse as sp

from lognmf import MODELS, in_blocks, on_workers
from lognmf.blocks import checkpoint as module
from lognmf.blocks.checkpoint import ABOUT, FACTORS, Checkpoint
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
    write, left = Checkpoint.write, [np.inf]

    def dying(checkpoint, now):
        write(checkpoint, now)
        left[0] -= 1
        if left[0] <= 0:
            raise Killed

    monkeypatch.setattr(Checkpoint, "write", dying)
    return lambda writes: left.__setitem__(0, writes)


def killed_again_and_again(model, X, folder, die, most=50):
    """The fit of a new model in each of several processes, all but the last killed after two writes."""
    for deaths in range(most):
        die(2)
        try:
            return model().fit(X, checkpoint=folder), deaths
        except Killed:
            continue
    raise AssertionError


def close(ours, theirs, tol=1e-9):
    np.testing.assert_allclose(ours.components_, theirs.components_, atol=tol)
    np.testing.assert_allclose(np.asarray(ours.embedding_), np.asarray(theirs.embedding_), atol=tol)
    assert ours.objective_ == pytest.approx(theirs.objective_, rel=tol)
    assert ours.n_iter_ == theirs.n_iter_


@pytest.mark.parametrize("name", ["GNMF", "LS-NMF", "RLS-NMF", "ONMF"])
def test_multiplicative_updates_go_on_as_if_nothing_had_happened(name, X, tmp_path, die):
    cls = MODELS[name]
    options = weights(cls) | {"solver": "mu", "tol": 0, "max_iter": 9, "eval_every": 2, "random_state": 0}
    theirs = make(cls, k, **options).fit(X)
    ours, deaths = killed_again_and_again(lambda: make(cls, k, **options), X, tmp_path / "c", die)
    close(ours, theirs)
    assert deaths == 2
    assert ours.history_["iteration"][0] == 8
    close(make(cls, k, **options).fit(X, checkpoint=tmp_path / "c"), theirs)  # only the last step is left


@pytest.mark.parametrize("kind", ["array", "csr", "blocks", "torch"])
def test_coordinate_descent_restarts_and_chosen_weights(kind, X, tmp_path, die):
    options = {"n_init": 3, "init": "random", "tol": 1e-3, "max_iter": 60, "eval_every": 3, "random_state": 1}
    Y = {"array": X, "csr": sp.csr_array(X), "blocks": in_blocks(X, rows=15)}.get(kind)
    if kind == "torch":
        Y = pytest.importorskip("torch", reason="torch is an extra").as_tensor(X)
    theirs = MODELS["RLS-NMF"](k, **options).fit(Y)
    ours, deaths = killed_again_and_again(lambda: MODELS["RLS-NMF"](k, **options), Y, tmp_path / "c", die)
    assert deaths >= 1
    chosen = [[getattr(model, name) for name in ("alpha_", "beta_", "gamma_")] for model in (ours, theirs)]
    np.testing.assert_allclose(*chosen, rtol=1e-9)
    assert ours.objective_ == pytest.approx(theirs.objective_, rel=0.05)


OPTIONS = {"max_iter": 4, "tol": 0, "random_state": 0, "alpha": 0.1, "beta": 0.0, "eval_every": 2}


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
        assert MODELS["LS-NMF"](k, **OPTIONS, verbose=0).fit(X, checkpoint=folder).n_iter_ == model.n_iter_

    def test_other_folders(self, X, tmp_path):
        (tmp_path / "mine.txt").write_text("mine")
        self.check(X, tmp_path, "is no checkpoint of a fit: give an empty or a new folder")
        self.check(X, tmp_path / "mine.txt", "is no checkpoint of a fit")
        assert [path.name for path in tmp_path.iterdir()] == ["mine.txt"]

    def test_damage(self, X, tmp_path):
        folder = tmp_path / "c"
        MODELS["LS-NMF"](k, **OPTIONS).fit(X, checkpoint=folder)
        file = folder / FACTORS
        file.write_bytes(file.read_bytes()[:-300])
        self.check(X, folder, r"factors\.npz is damaged .*: remove .* and start again")
        (folder / ABOUT).write_text("{")
        self.check(X, folder, r"about\.json is damaged: remove")

    def test_a_generator(self, X, tmp_path):
        self.check(X, tmp_path / "c", "got RandomState", random_state=np.random.RandomState(0))


SCRIPT = """
import os, signal, sys
import numpy as np
from lognmf import LogSparseNMF, in_blocks
from lognmf.blocks import checkpoint
from lognmf.core.solvers import Multiplicative
checkpoint.SHARE, steps, step = 0, [], Multiplicative.step
def counted(rule, state):
    steps.append(1)
    if len(steps) > int(sys.argv[3]):
        os.kill(os.getpid(), signal.SIGKILL)
    return step(rule, state)
Multiplicative.step = counted
model = LogSparseNMF(3, random_state=0, max_iter=60, eval_every=5, tol=0, solver="mu", alpha=0.1, beta=0.0)
model.fit(in_blocks(sys.argv[1], rows=15), checkpoint=sys.argv[2])
np.savez(sys.argv[2] + "-end.npz", U=model.components_, V=model.embedding_, steps=len(steps))
"""


def test_kill_9(X, tmp_path):
    """A new process goes on after the last one was killed without a warning."""
    np.save(tmp_path / "X.npy", X)
    options = {"random_state": 0, "max_iter": 60, "eval_every": 5, "tol": 0, "solver": "mu", "alpha": 0.1}
    theirs = MODELS["LS-NMF"](k, beta=0.0, **options).fit(in_blocks(tmp_path / "X.npy", rows=15))
    folder, codes = str(tmp_path / "c"), []
    for steps in (33, 10**6):
        command = [sys.executable, "-W", "ignore", "-c", SCRIPT, str(tmp_path / "X.npy"), folder, str(steps)]
        codes.append(subprocess.run(command, check=False).returncode)
    assert codes == [-signal.SIGKILL, 0]
    end = np.load(f"{folder}-end.npz")
    assert end["steps"] == 30
    np.testing.assert_allclose(end["U"], theirs.components_, atol=1e-9)
    np.testing.assert_allclose(end["V"], theirs.embedding_, atol=1e-9)


def test_on_workers(X, tmp_path, die):
    """Codes are written where they are, and a new cluster goes on; older codes are removed."""
    distributed = pytest.importorskip("distributed", reason="distributed is an extra")
    setup = {"n_workers": 2, "threads_per_worker": 1, "dashboard_address": ":0", "processes": False}
    options = {"alpha": 0.1, "beta": 0.0, "solver": "mu", "max_iter": 6, "eval_every": 2, "tol": 0}
    theirs, deaths = MODELS["LS-NMF"](k, **options).fit(X), 0
    while True:
        die(2)
        with distributed.LocalCluster(**setup) as cluster, distributed.Client(cluster) as client:
            try:
                model = MODELS["LS-NMF"](k, **options)
                model.fit(on_workers(in_blocks(X, rows=15), client=client), checkpoint=tmp_path / "c")
            except Killed:
                deaths += 1
                continue
            close(model, theirs)
            break
    assert deaths == 1
    assert [path.name for path in (tmp_path / "c").iterdir() if path.is_dir()] == ["codes-00000006"]
