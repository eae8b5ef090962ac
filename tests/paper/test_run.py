"""A study survives kills, failures, two runs at once and any executor, with the same rows."""

import multiprocessing
import os
import random
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import numpy as np
import pytest

from lognmf import datasets
from lognmf.paper import work
from lognmf.paper.methods import PINNED
from lognmf.paper.run import EXECUTORS, _size, compute, cpu_seconds, missing
from lognmf.paper.spec import CLEAN, PRESETS, Data, Noise, cell, paper_cell
from lognmf.paper.store import StudyStore
from lognmf.paper.tables import DATASETS
from lognmf.paper.work import prepare, size
from lognmf.progress import listening

DATA = Data("digits", 40)
LOOP = {"max_iter": 8, "tol": 0.0}
CELLS = [
    cell(DATA, CLEAN, "GNMF", options=LOOP, grid={"lam": (0.1, 1.0)}),
    cell(DATA, CLEAN, "RMNMF", options=LOOP, grid={"lam": (0.1, 1.0)}),
    cell(DATA, CLEAN, "CNMF", options=LOOP, seeds=(0, 1)),
    cell(DATA, Noise("removal", 0.2, replacement=True), "WNMF", options={**LOOP, "mask": True}),
    cell(DATA, Noise("gaussian", 0.01), "LS-NMF", options=LOOP, grid={"lam": (0.1, 1.0)}, seeds=(0, 1)),
    cell(DATA, CLEAN, "k-means", seeds=(0,)),
    cell(DATA, CLEAN, "RLS-NMF", options={**LOOP, "eval_every": 1}, work="curve"),
]
SLOW = {"seconds"}


def rows(store, cells=CELLS):
    return [{k: v for k, v in row.items() if k not in SLOW} for c in cells for row in store.rows(c)]


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    store = StudyStore(tmp_path_factory.mktemp("whole") / "study.db")
    report = compute(CELLS, store, executor="inline")
    assert (report.done, report.failed, report.left) == (9, 0, 0)
    return store


def test_rows_are_those_of_single_fits(whole):
    from lognmf import GraphNMF, metrics

    samples = prepare(DATA, CLEAN)
    row = whole.rows(CELLS[0])[1]
    single = GraphNMF(samples.classes, lam=1.0, random_state=0, **LOOP).fit(samples.X)
    assert row["lam"] == 1.0
    assert row["objective"] == pytest.approx(single.objective_)
    assert row["sparseness_U"] == pytest.approx(metrics.hoyer_sparseness(single.components_))
    assert {"accuracy", "nmi", "purity", "normalized_cut"} <= row.keys()


def test_a_followed_fit_is_a_fit(whole):
    from lognmf import RobustLogSparseNMF

    samples = prepare(DATA, CLEAN)
    row = whole.rows(CELLS[-1])[0]
    options = {**PINNED["RLS-NMF"], **LOOP, "random_state": 0, "eval_every": 1}
    single = RobustLogSparseNMF(samples.classes, **options).fit(samples.X)
    np.testing.assert_allclose(row["objectives"], single.history_["objective"])
    assert row["iterations"] == list(single.history_["iteration"])
    (arrays,) = whole.arrays(CELLS[-1])
    np.testing.assert_allclose(arrays["V"], single.embedding_, rtol=1e-5)
    np.testing.assert_allclose(arrays["share"], single.outlier_share_, rtol=1e-5, atol=1e-6)


def test_a_mask_changes_what_wnmf_finds(whole, tmp_path):
    blind = cell(DATA, CELLS[3].noise, "WNMF", options=LOOP)
    store = StudyStore(tmp_path / "study.db")
    compute([blind], store, executor="inline")
    assert store.rows(blind)[0]["objective"] != whole.rows(CELLS[3])[0]["objective"]


def test_nothing_is_done_twice(whole, monkeypatch):
    monkeypatch.setattr("lognmf.paper.run.perform", lambda _: pytest.fail("done again"))
    assert missing(CELLS * 2, whole) == []
    assert compute(CELLS, whole, executor="inline").done == 0


def test_processes_give_the_same_rows(whole, tmp_path):
    store = StudyStore(tmp_path / "study.db")
    listener = Listener()
    with listening(listener):
        compute(CELLS, store, executor="processes", jobs=2)
    assert rows(store) == rows(whole)
    assert listener.seen == [(done, 9) for done in range(1, 10)]
    assert listener.left == pytest.approx(0, abs=1e-6)


class Listener:
    """Remembers how far the work was."""

    def __init__(self):
        self.seen, self.left = [], None

    def move(self, stage):
        self.seen.append((stage.done, stage.total))
        self.left = stage.left

    def begin(self, stage):
        pass

    end = say = begin


def _study(path):
    compute(CELLS, StudyStore(path), executor="inline")


def test_killed_at_any_moment_and_resumed(whole, tmp_path):
    """Kill -9 at random moments, each in a fresh store, then resume: the rows are those of a whole run."""
    # What is measured is a fork of this process, so that no import is waited for.
    fork = multiprocessing.get_context("fork")
    start = time.perf_counter()
    _study(tmp_path / "timed.db")
    usual = time.perf_counter() - start
    rng, cut = random.Random(0), 0
    for moment in range(6):
        path = tmp_path / f"{moment}.db"
        process = fork.Process(target=_study, args=(path,))
        process.start()
        time.sleep(rng.uniform(0.0, usual))
        process.kill()
        process.join()
        store = StudyStore(path)
        before = sum(map(len, store.done().values()))
        cut += before < 9
        assert compute(CELLS, store, executor="inline").done == 9 - before
        assert rows(store) == rows(whole)
    assert cut > 0


PROGRAM = """
    from lognmf.paper.run import compute
    from lognmf.paper.spec import CLEAN, Data, cell
    from lognmf.paper.store import StudyStore
    if __name__ == "__main__":
        options = {{"max_iter": 20_000, "tol": 0.0}}
        slow = cell(Data("digits", 200), CLEAN, "RMNMF", options=options, seeds=(0, 1))
        compute([slow], StudyStore({path!r}), jobs=2)
"""


@pytest.mark.skipif(not Path("/proc").is_dir(), reason="needs /proc to look for processes")
@pytest.mark.parametrize("kill", [signal.SIGKILL, signal.SIGINT])
def test_workers_do_not_outlive_a_killed_run(kill, tmp_path):
    program = tmp_path / "program.py"
    program.write_text(textwrap.dedent(PROGRAM.format(path=str(tmp_path / "study.db"))))
    with subprocess.Popen([sys.executable, str(program)], stderr=subprocess.DEVNULL) as process:
        while len(workers := _children(process.pid)) < 3:  # the resource tracker and two workers
            time.sleep(0.05)
        time.sleep(0.5)
        process.send_signal(kill)
    deadline = time.monotonic() + 60
    while any(map(_alive, workers)) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not any(map(_alive, workers))


def _children(pid):
    try:
        return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    except OSError:
        return []


def _alive(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False


def test_failures_are_rows_and_are_tried_again(tmp_path, monkeypatch):
    store = StudyStore(tmp_path / "study.db")
    bad = cell(DATA, CLEAN, "WNMF", options={**LOOP, "mask": True})
    report = compute([bad, CELLS[0]], store, executor="inline")
    assert (report.done, report.failed) == (1, 1)
    ((spec, message),) = store.failures()
    assert spec["model"] == "WNMF"
    assert message == "ValueError: There is no mask for digits: its noise removes nothing."
    monkeypatch.setattr(work, "_given", lambda cell, samples: samples.X)
    assert compute([bad, CELLS[0]], store, executor="inline").done == 1
    assert store.failures() == []


def _die(piece):
    os._exit(3)


def test_a_process_that_dies_is_a_failure(tmp_path, monkeypatch):
    store = StudyStore(tmp_path / "study.db")
    monkeypatch.setattr("lognmf.paper.run.perform", _die)
    report = compute(CELLS[1:2], store, jobs=1)
    assert (report.done, report.failed) == (0, 2)
    assert "A process died" in store.failures()[0][1]


def test_two_runs_at_once(whole, tmp_path):
    fork = multiprocessing.get_context("fork")
    path = tmp_path / "study.db"
    both = [fork.Process(target=_study, args=(path,)) for _ in range(2)]
    for process in both:
        process.start()
    for process in both:
        process.join()
        assert process.exitcode == 0
    assert rows(StudyStore(path)) == rows(whole)


def test_parts_on_two_machines_merge(whole, tmp_path):
    one, other = StudyStore(tmp_path / "one.db"), StudyStore(tmp_path / "other.db")
    compute(CELLS[:3], one, executor="inline")
    compute(CELLS[2:], other, executor="inline")
    one.merge(other.path)
    assert missing(CELLS, one) == []
    assert rows(one) == rows(whole)


def test_no_piece_is_begun_after_the_limit(tmp_path):
    report = compute(CELLS, StudyStore(tmp_path / "study.db"), executor="inline", limit=-1.0)
    assert (report.done, report.left) == (0, 9)


def test_grids_run_on_the_device_and_the_rest_on_the_cores(whole, tmp_path, monkeypatch):
    pytest.importorskip("torch", reason="torch is an extra")
    store = StudyStore(tmp_path / "study.db")
    report = compute(CELLS, store, executor="processes", jobs=1, device="cpu")
    assert (report.done, report.failed) == (9, 0)
    for one, other in zip(rows(store), rows(whole), strict=True):
        if "objective" in one:
            assert one["objective"] == pytest.approx(other["objective"], rel=1e-6)
    devices = {machine["device"] for machine in store.environments()}
    assert devices == {
        "numpy, float64",
        "torch on the CPU, float64",
    }


def test_bad_arguments(tmp_path):
    store = StudyStore(tmp_path / "study.db")
    with pytest.raises(ValueError, match="executor must be one of"):
        compute(CELLS, store, executor="abacus")
    with pytest.raises(ValueError, match="jobs must be"):
        compute(CELLS, store, jobs=0)
    assert set(EXECUTORS) == {"inline", "processes", "dask"}


def test_dask_of_its_own(whole, tmp_path):
    pytest.importorskip("distributed")
    store = StudyStore(tmp_path / "study.db")
    compute(CELLS, store, executor="dask", jobs=1)
    assert rows(store) == rows(whole)


def test_dask_at_hand(whole, tmp_path):
    """The client of whoever calls is used, and left open."""
    distributed = pytest.importorskip("distributed")
    store = StudyStore(tmp_path / "study.db")
    with distributed.Client(
        n_workers=1, threads_per_worker=1, processes=False, dashboard_address=None
    ) as client:
        compute(CELLS, store, executor="dask", jobs=1)
        assert client.status == "running"
    assert rows(store) == rows(whole)


def test_without_dask(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(ValueError, match=r"needs Dask: run pip install \"lognmf\[dask\]\""):
        compute(CELLS, StudyStore(tmp_path / "study.db"), executor="dask")


def test_an_estimate_reads_no_file(monkeypatch):
    monkeypatch.setattr(datasets, "load", lambda *_, **__: pytest.fail("loaded"))
    for data in DATASETS.values():
        assert cpu_seconds(paper_cell(data, CLEAN, "LS-NMF", PRESETS["paper"])) > 0


def test_the_registry_has_the_sizes_of_the_files(data_home):
    for data in (DATASETS["Yale"], DATASETS["Semeion"], Data("digits", 25)):
        assert _size(data) == size(data)
