"""Files that need more memory than is allowed are fitted in blocks of rows."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import anndata
import h5py
import numpy as np
import pandas
import pytest
import scipy.sparse as sp
import zarr
from anndata import AnnData

from lognmf import LogSparseNMF, load_model, normalize
from lognmf.blocks import rows
from lognmf.cli import fit, prepare
from lognmf.cli.prepare import memory_in_bytes

pytestmark = pytest.mark.usefixtures("no_pictures")
NAMES = [f"f{j}" for j in range(6)]
WEIGHTS = {"alpha": 0.01, "beta": 0.001}
PLAIN = ["-k", 3, "--model", "ls-nmf", "--memory", "2kB", "--out", "r"]
FIT = ["--alpha", 0.01, "--beta", 0.001, *PLAIN]


@pytest.fixture(autouse=True)
def X(tmp_path, monkeypatch, rng):
    """Files of 60 × 6 numbers, 2.9 kB."""
    monkeypatch.chdir(tmp_path)
    X = np.eye(3)[np.arange(60) % 3].repeat(2, axis=1) + rng.random((60, 6)) / 5
    np.save("x.npy", X)
    zarr.create_array("x.zarr", data=X, chunks=(10, 6))
    AnnData(X, var=pandas.DataFrame(index=NAMES), layers={"log": sp.csr_matrix(X)}).write_h5ad("x.h5ad")
    (tmp_path / "x.parquet").mkdir()
    for part in range(3):
        frame = pandas.DataFrame(X[20 * part : 20 * part + 20], columns=NAMES)
        frame.to_parquet(tmp_path / "x.parquet" / f"{part}.parquet")
    (tmp_path / "kinds.txt").write_text("\n".join("uvw" * 20))
    return X


def factors(file):
    """U and V as they were written, in the format of the input."""
    match Path(file).suffix:
        case ".npy":
            return np.load("r/U.npy"), np.load("r/V.npy")
        case ".zarr":
            return (zarr.open("r/factors.zarr")[name][:] for name in "UV")
        case ".h5ad":
            cells = anndata.read_h5ad("r/factors.h5ad")
            assert cells.var_names.tolist() == NAMES
            return cells.varm["parts"], cells.obsm["codes"]
        case ".h5":
            with h5py.File("r/factors.h5") as file:
                return file["U"][:], file["V"][:]
    tables = (pandas.read_parquet(f"r/{name}.parquet") for name in ("parts", "codes"))
    return (table.iloc[:, 1:].to_numpy() for table in tables)


@pytest.mark.parametrize("file", ["x.npy", "x.zarr", "x.h5ad", "x.parquet"])
def test_the_fit_is_that_of_memory(run, X, monkeypatch, file):
    blocks = []
    build = prepare.in_blocks
    monkeypatch.setattr(prepare, "in_blocks", lambda *a, **k: blocks.append(build(*a, **k)) or blocks[-1])
    code, _, err = run("fit", file, *FIT, "--labels", "kinds.txt")
    assert code == 0, err
    assert len(blocks[-1].edges) > 3
    expected = LogSparseNMF(3, random_state=0, **WEIGHTS).fit(normalize(X))
    model = load_model("r/model.npz")
    np.testing.assert_allclose(model.components_, expected.components_, atol=1e-5)
    np.testing.assert_allclose(model.embedding_, expected.embedding_, atol=1e-5)
    parts = pandas.read_parquet("r/parts.parquet") if file == "x.parquet" else pandas.read_csv("r/parts.csv")
    numbers = [f"feature {j}" for j in range(6)]
    assert parts["feature"].tolist() == (NAMES if file in ("x.h5ad", "x.parquet") else numbers)
    assert json.loads(Path("r/summary.json").read_text())["results"]["accuracy"] == 1
    for found, factor in zip(factors(file), (model.components_.T, model.embedding_), strict=True):
        np.testing.assert_array_equal(found, factor)
    assert not Path("r.checkpoint").exists()
    assert run("transform", "r", "x.npy")[0] == 0
    np.testing.assert_allclose(pandas.read_csv("x-codes.csv").iloc[:, 1:], expected.embedding_, atol=1e-6)


def read_whole(folder):
    """Whether the data were read into memory: factors of data in blocks have the format of the input."""
    return Path(folder, "factors.npz").exists()


def test_small_files_are_read_whole(run):
    assert run("fit", "x.npy", "-k", 2, "--model", "nmf", "--memory", "1 MB", "--out", "r")[0] == 0
    assert run("fit", "x.zarr", "-k", 2, "--model", "nmf", "--out", "s")[0] == 0
    assert read_whole("r")
    assert read_whole("s")


def test_clusters_of_a_part_of_the_samples(run, X, monkeypatch):
    """The others join them, and so do new samples."""
    monkeypatch.setattr(rows, "MOST_SAMPLES", 40)
    asked = ["cluster", "x.npy", "-k", 3, "--labels", "kinds.txt", "--out", "r"]
    assert run(*asked, "--memory", "2kB")[0] == 0
    summary = json.loads(Path("r/summary.json").read_text())
    assert summary["results"]["accuracy"] == 1
    assert summary["settings"]["sampled"] == 40
    labels = pandas.read_csv("r/labels.csv")["cluster"].to_numpy()
    assert len(labels) == 60
    U, V = factors("x.npy")
    model = load_model("r/model.npz")
    Y = normalize(X)
    np.testing.assert_allclose(V, model.transform(Y), atol=1e-6)
    assert summary["results"]["reconstruction_err"] == pytest.approx(np.linalg.norm(Y - V @ U.T))
    assert "40 random samples were clustered" in Path("r/index.html").read_text()
    assert run("predict", "r", "x.npy", "--out", "new.csv")[0] == 0
    np.testing.assert_array_equal(pandas.read_csv("new.csv")["cluster"], labels)


def test_outliers_are_those_of_a_fit(run):
    code, _, told = run("cluster", "x.npy", "-k", 3, "--model", "rls-nmf", "--memory", "2kB", "--out", "r")
    assert code == 2
    assert "--model rls-nmf needs all of x.npy in memory" in told


def test_small_files_of_large_data(run, X, monkeypatch):
    """Bytes of pixels, or compressed ones, take much more memory than the file has bytes."""
    np.save("x.npy", (100 * X).astype(np.uint8))
    monkeypatch.setattr(rows, "BLOCK_BYTES", 1000)
    common = ["-k", 2, "--model", "nmf"]
    assert run("fit", "x.npy", *common, "--memory", "4kB", "--out", "r")[0] == 0
    assert read_whole("r")
    assert run("fit", "x.npy", *common, "--memory", "1.5kB", "--out", "s")[0] == 0
    assert not read_whole("s")


def test_a_layer_and_logarithms(run, X):
    code, _, err = run("fit", "x.h5ad", *FIT, "--layer", "log", "--scale-features", "log1p", "--no-normalize")
    assert code == 0, err
    expected = LogSparseNMF(3, random_state=0, **WEIGHTS).fit(sp.csr_array(np.log1p(X)))
    np.testing.assert_allclose(load_model("r/model.npz").components_, expected.components_, atol=1e-5)


def test_the_raw_counts_names_and_shapes(run, X, tmp_path):
    cells = AnnData(X, var=pandas.DataFrame(index=NAMES))
    cells.raw = cells.copy()
    cells.X = X[:, ::-1].copy()
    cells.write_h5ad("raw.h5ad")
    assert run("fit", "raw.h5ad", *FIT, "--layer", "raw")[0] == 0
    expected = LogSparseNMF(3, random_state=0, **WEIGHTS).fit(normalize(X))
    np.testing.assert_allclose(load_model("r/model.npz").components_, expected.components_, atol=1e-5)
    (tmp_path / "names.txt").write_text("\n".join("uvwxyz"))
    more = ["--features", "names.txt", "--image-shape", "2x3", "--force"]
    assert run("fit", "x.npy", *FIT, *more)[0] == 0
    assert pandas.read_csv("r/parts.csv")["feature"].tolist() == list("uvwxyz")
    assert json.loads(Path("r/summary.json").read_text())["settings"]["image_shape"] == [2, 3]
    code, _, err = run("fit", "x.npy", *FIT, "--image-shape", "2x2", "--force")
    assert (code, "--image-shape has 4 pixels" in err) == (2, True)


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--tune"], "--tune needs all of x.npy in memory"),
        (["--transpose"], "--transpose needs all of x.npy in memory: leave it out, or raise --memory"),
        (["--scale-features", "minmax"], "--scale-features minmax needs all of x.npy in memory"),
        (["--memory", "much"], "--memory must be a size like 500MB or 2GB; got 'much'."),
        (["--model", "onmf"], "--model onmf needs all of x.npy in memory"),
        (["--labels", "few.txt"], "There are 2 labels in few.txt for the 60 samples of x.npy"),
    ],
)
def test_refused_in_a_sentence(run, tmp_path, arguments, sentence):
    (tmp_path / "few.txt").write_text("u\nv\n")
    code, out, err = run("fit", "x.npy", *PLAIN, *arguments)
    assert (code, out) == (2, "")
    assert sentence in err
    assert not (tmp_path / "r").exists()


def test_a_block_that_cannot_be_used_is_named(run, X):
    X[33, 2] = -1
    with h5py.File("x.h5", "w") as file:
        file["X"] = X
    code, _, err = run("fit", "x.h5", *FIT)
    assert code == 2
    assert "Negative values in data passed to LogSparseNMF" in err
    assert "rows 30 to 34" in err, err


KILLED = """
import os, signal
from lognmf.blocks import checkpoint
from lognmf.cli.main import main
checkpoint.SHARE, write = 0, checkpoint.Checkpoint.write
def dying(self, now):
    write(self, now)
    os.kill(os.getpid(), signal.SIGKILL)
checkpoint.Checkpoint.write = dying
main()
"""


def test_a_killed_fit_goes_on(run, tmp_path):
    """After kill -9 the same command continues from the checkpoint; another one is refused."""
    words = [sys.executable, "-W", "ignore", "-c", KILLED, "fit", "x.npy", *map(str, FIT)]
    assert subprocess.run(words, check=False, capture_output=True).returncode == -signal.SIGKILL
    assert not (tmp_path / "r").exists()
    assert list((tmp_path / "r.checkpoint").glob("*.npz"))
    code, _, err = run("fit", "x.npy", *FIT, "--seed", 1)
    assert (code, "r.checkpoint holds the checkpoint of another fit, which differs in " in err) == (2, True)
    code, _, err = run("fit", "x.npy", *FIT)
    assert code == 0, err
    assert not (tmp_path / "r.checkpoint").exists()
    assert run("fit", "x.npy", *FIT[:-1], "s")[0] == 0
    ours, theirs = (json.loads((tmp_path / name / "summary.json").read_text())["results"] for name in "rs")
    assert ours["objective"] == pytest.approx(theirs["objective"], rel=1e-3)


def test_an_interrupted_fit_says_how_to_go_on(run, monkeypatch):
    def interrupted(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(LogSparseNMF, "fit", interrupted)
    code, _, err = run("fit", "x.npy", *FIT)
    assert (code, "interrupted; the same command continues from " in err) == (130, True)
    assert "nothing written" not in err


@pytest.fixture
def scheduler(tmp_path):
    """The address of a scheduler with two workers, started as the docs say."""
    pytest.importorskip("distributed", reason="distributed is an extra")
    dask, file = Path(sys.executable).parent / "dask", tmp_path / "scheduler.json"
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, "cwd": "/"}
    options = ["--scheduler-file", str(file), "--port", "0", "--dashboard-address", ":0"]
    processes = [subprocess.Popen([dask, "scheduler", *options], **quiet)]
    while not file.exists() or not file.read_text():
        time.sleep(0.1)
    address = json.loads(file.read_text())["address"]
    options = ["--nthreads", "1", "--no-dashboard", "--local-directory", tmp_path]
    processes += [subprocess.Popen([dask, "worker", address, *options], **quiet) for _ in range(2)]
    yield address
    for process in processes[::-1]:
        process.terminate()
    for process in processes:
        process.wait()


def test_on_a_scheduler(run, X, scheduler):
    """Other processes read the file and fit; results come here in the format of the input."""
    for file in ("x.zarr", "x.npy"):
        options = {**WEIGHTS, "max_iter": 9}
        words = ("--scheduler", scheduler, "--solver", "mu", "--max-iter", 9, "--force")
        code, _, err = run("fit", file, *FIT, *words)
        assert code == 0, err
        expected = LogSparseNMF(3, random_state=0, solver="mu", **options).fit(normalize(X))
        U, V = factors(file)
        np.testing.assert_allclose(U, expected.components_.T, atol=1e-6)
        np.testing.assert_allclose(V, expected.embedding_, atol=1e-6)
    code, _, err = run("fit", "kinds.txt", *FIT, "--scheduler", scheduler, "--force")
    assert (code, "--scheduler takes files that end in .npy, .zarr" in err) == (2, True)


def test_no_scheduler(run, monkeypatch):
    monkeypatch.setattr(fit, "_PATIENCE", 0.5)
    code, _, err = run("fit", "x.zarr", *FIT, "--scheduler", "tcp://127.0.0.1:9")
    assert (code, "there is no Dask scheduler at tcp://127.0.0.1:9: start one with" in err) == (2, True)


@pytest.mark.parametrize(("text", "size"), [("2GB", 2e9), ("1.5 kB", 1500), ("7", 7), ("3MiB", 3e6)])
def test_sizes(text, size):
    assert memory_in_bytes(text) == size


def test_memory_where_the_system_does_not_say(run, monkeypatch):
    """Windows has no `os.sysconf`: an AttributeError in every fit, once."""
    assert memory_in_bytes(None) > 1e8
    monkeypatch.delattr(os, "sysconf")
    assert memory_in_bytes(None) == 4e9
    assert run("fit", "x.npy", "-k", 2, "--model", "nmf", "--max-iter", 2, "--out", "r")[0] == 0
