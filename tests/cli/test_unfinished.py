"""Ctrl-C keeps finished fits, and the next call goes on from them."""

import json
import os
import re
import signal
import subprocess
import sys
import textwrap

import numpy as np
import pandas
import pytest

PROGRAM = """
    import json, signal, sys
    signal.signal(signal.SIGINT, signal.default_int_handler)
    from lognmf.grid import batch
    from lognmf.cli.main import main
    rows = batch.Run.rows
    def told(run, pairs, **options):
        print(len(pairs), flush=True)
        return rows(run, pairs, **options)
    batch.Run.rows = told
    main(sys.argv[1:])
"""
FIT = ["fit", "x.npy", "-k", "3", "--model", "gnmf", "--tune", "--restarts", "8", "--out", "r"]
CLUSTER = ["cluster", "x.npy", "-k", "3", "--effort", "grid", "--out", "r"]


@pytest.fixture
def here(tmp_path, monkeypatch, rng):
    monkeypatch.chdir(tmp_path)
    X = np.repeat(np.eye(3).repeat(4, axis=1), 20, axis=0) * rng.random((60, 12)) + 0.3 * rng.random((60, 12))
    np.save("x.npy", X)
    return tmp_path


def start(arguments):
    environment = os.environ | {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    command = [sys.executable, "-u", "-c", textwrap.dedent(PROGRAM), *arguments]
    return subprocess.Popen(command, env=environment, **pipes)


def batches(out):
    """Numbers of fits of the batches that were computed, which the program prints."""
    return [int(line) for line in out.splitlines() if line.isdecimal()]


@pytest.mark.parametrize("arguments", [FIT, CLUSTER])
def test_a_second_call_goes_on(here, arguments):
    whole = start([*arguments[:-1], "whole"])
    out, err = whole.communicate()
    assert whole.returncode == 0, err
    total = len(batches(out))
    assert total > 2

    with start(arguments) as process:
        for _ in range(2):
            process.stdout.readline()
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert re.search(
        r"interrupted; \d+ fits are kept in .*r.unfinished.db: run the command again to go on", err
    )
    assert "Traceback" not in err
    assert sorted(path.name for path in here.iterdir()) == ["r.unfinished.db", "whole", "x.npy"]

    second = start(arguments)
    out, err = second.communicate()
    assert second.returncode == 0, err
    assert "Going on from" in err
    assert 0 < len(batches(out)) < total
    assert sorted(path.name for path in here.iterdir()) == ["r", "whole", "x.npy"]
    for name in ("labels.csv", "codes.csv", "parts.csv"):
        pandas.testing.assert_frame_equal(
            pandas.read_csv(here / "r" / name), pandas.read_csv(here / "whole" / name)
        )
    for folder in ("r", "whole"):
        settings = json.loads((here / folder / "summary.json").read_text())["settings"]
        assert "unfinished" not in json.dumps(settings)


def test_without_a_finished_fit_nothing_is_kept(here):
    with start(FIT) as process:
        process.stdout.readline()
        process.send_signal(signal.SIGINT)
        err = process.communicate(timeout=60)[1]
    assert process.returncode == 130
    assert "interrupted, nothing written" in err
    assert [path.name for path in here.iterdir()] == ["x.npy"]


@pytest.mark.usefixtures("no_pictures")
def test_fits_of_other_settings_are_forgotten(here, run):
    from lognmf import fit_grid

    fit_grid("NMF", np.load("x.npy"), {"n_components": [2]}, max_iter=2, store="r.unfinished.db")
    code, _, err = run(*FIT[:-4], "--restarts", 1, "--max-iter", 5, "--out", "r")
    assert code == 0, err
    assert "r.unfinished.db holds fits of other data or settings: starting anew" in err
    assert not (here / "r.unfinished.db").exists()
